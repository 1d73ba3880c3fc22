//! Parts of a result on a page: bounded texts, and pictures.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use maud::{Markup, html};
use toolcrib::call::{Link, Media, Part};
use toolcrib_agent::runs::ShownPart;
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::{counted, shortened};

use super::content;
use super::layout::{self, MAX_BLOCK};
use super::picture;

/// Pictures and characters of kept texts that a page can still show.
pub(super) struct Room {
    pub(super) pictures: usize,
    pub(super) text: usize,
}

/// Part as a page shows it.
#[derive(Debug)]
pub(super) enum PartView {
    Text(String),
    Picture {
        label: String,
        address: String,
        is_drawing: bool,
    },
    /// Text with a media type.
    Document {
        label: String,
        mime_type: String,
        text: String,
    },
    Note(String),
}

impl PartView {
    pub(super) fn of(part: &Part, room: &mut Room) -> Self {
        let cut = |text: &str| shortened(text, MAX_BLOCK).into_owned();
        match part {
            Part::Text(text) => Self::Text(cut(text)),
            Part::Json(text) => Self::Text(cut(text)),
            Part::Media(media) => Self::of_media(media, room),
            Part::Link(Link { uri, name, .. }) => {
                Self::Note(format!("Link {}: {}", cut(name.as_deref().unwrap_or_default()), cut(uri)))
            }
            Part::Progress { done, total: Some(total) } => Self::Note(format!("{done} of {total}")),
            Part::Progress { done, total: None } => Self::Note(done.to_string()),
            _ => Self::Note("a part that this version does not show".to_owned()),
        }
    }

    /// Views a part that a run has kept.
    pub(super) fn of_kept(part: &ShownPart, room: &mut Room) -> Self {
        match part {
            ShownPart::Text { text } | ShownPart::Note { text } if text.len() > room.text => {
                room.text = 0;
                Self::Note("a text that is too long for this page".to_owned())
            }
            ShownPart::Text { text } => {
                room.text -= text.len();
                Self::Text(shortened(text, MAX_BLOCK).into_owned())
            }
            ShownPart::Note { text } => {
                room.text -= text.len();
                Self::Note(shortened(text, MAX_BLOCK).into_owned())
            }
            ShownPart::Unknown => Self::Note("a part that this version does not show".to_owned()),
            ShownPart::File { mime_type, .. } if room.pictures == 0 => {
                Self::Note(format!("{}; not shown: a page shows a few pictures alone", shortened(mime_type, 200)))
            }
            ShownPart::More { count } => Self::Note(format!("and {}", counted(*count, "more part"))),
            ShownPart::File { mime_type, name, data } => match BASE64_STANDARD.decode(data) {
                Ok(data) => Self::of_media(&Media::new(mime_type, name.clone(), data), room),
                Err(_) => Self::Note("a file that is damaged in the run".to_owned()),
            },
        }
    }

    fn of_media(media: &Media, room: &mut Room) -> Self {
        let name = media.name.as_deref().unwrap_or("without a name");
        let label = format!("{name}, {}, {}", media.mime_type, rounded_size(media.data.len() as u64));
        let label = shortened(&label, 400).into_owned();
        if let Some(text) = document(media).filter(|text| text.len() <= room.text) {
            room.text -= text.len();
            let text = shortened(text, MAX_BLOCK).into_owned();
            return Self::Document { label, mime_type: media.mime_type.clone(), text };
        }
        let address = match room.pictures {
            0 => Err("a page shows a few pictures alone"),
            _ => picture::address(media),
        };
        match address {
            Ok(address) => {
                room.pictures -= 1;
                Self::Picture { label, address, is_drawing: media.mime_type == picture::DRAWING }
            }
            Err(why) => Self::Note(format!("{label}; not shown: {why}")),
        }
    }

    pub(super) fn shown(&self) -> Markup {
        html! {
            @match self {
                Self::Text(text) => (content::shown(text, MAX_BLOCK)),
                Self::Document { label, mime_type, text } => {
                    (content::of_type(mime_type, text, MAX_BLOCK).unwrap_or_else(|| layout::block(text, MAX_BLOCK)))
                    p.quiet { (layout::line(label, 400)) }
                },
                Self::Note(text) => p.quiet { (layout::line(text, 2 * MAX_BLOCK)) },
                Self::Picture { label, address, is_drawing } => figure {
                    img src=(address) alt=(layout::plain(label, 400)) class=[is_drawing.then_some("drawing")];
                    figcaption.quiet { (layout::line(label, 400)) }
                },
            }
        }
    }
}

/// Returns the text of a media that is shown by its type.
fn document(media: &Media) -> Option<&str> {
    let text = std::str::from_utf8(&media.data).ok()?;
    content::of_type(&media.mime_type, "", 0).map(|_| text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_pictures_are_named() {
        let picture = Part::Media(Media::new("image/gif", Some("p.gif".to_owned()), b"GIF89a\x01\0\x01\0".to_vec()));
        let mut room = Room { pictures: 2, text: 0 };
        let shown: Vec<PartView> = (0..3).map(|_| PartView::of(&picture, &mut room)).collect();
        assert!(shown[..2].iter().all(|part| matches!(part, PartView::Picture { .. })));
        let PartView::Note(note) = &shown[2] else { panic!("it is shown") };
        assert!(note.starts_with("p.gif, image/gif") && note.contains("not shown"), "{note}");
    }

    #[test]
    fn texts_beyond_the_room_of_a_page_are_named() {
        let text = ShownPart::Text { text: "x".repeat(60) };
        let mut room = Room { pictures: 0, text: 100 };
        let shown: Vec<PartView> = (0..3).map(|_| PartView::of_kept(&text, &mut room)).collect();
        assert!(matches!(&shown[0], PartView::Text(text) if text.len() == 60));
        assert!(
            shown[1..]
                .iter()
                .all(|part| matches!(part, PartView::Note(note) if note.contains("too long for this page")))
        );
    }

    #[test]
    fn kept_parts_are_as_inert_as_those_of_a_result() {
        let file = |mime_type: &str, data: &str| ShownPart::File {
            mime_type: mime_type.to_owned(),
            name: Some("<script>".to_owned()),
            data: data.to_owned(),
        };
        let text =
            |part: &ShownPart| PartView::of_kept(part, &mut Room { pictures: 1, text: 99 }).shown().into_string();
        let drawing = BASE64_STANDARD.encode("<svg onload='x'><script>1</script></svg>");
        let shown = text(&file("image/svg+xml", &drawing));
        assert!(shown.contains("<img src=\"data:image/svg+xml;base64,") && !shown.contains("<script>"), "{shown}");
        for part in
            [file("text/html", &drawing), file("image/png", "no base64"), ShownPart::Text { text: "<b>".to_owned() }]
        {
            let shown = text(&part);
            assert!(!shown.contains("<img") && !shown.contains("<b>") && !shown.contains("<script>"), "{shown}");
        }
    }
}
