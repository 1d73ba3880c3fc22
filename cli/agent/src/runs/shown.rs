//! Parts that a call showed to people, as its run keeps them: within limits, and with the masks of the run. The model gets none of
//! them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use toolcrib::call::{Link, Media, Part};
use toolcrib_base::render::{counted, shortened};

use super::masks::RunMasks;

/// Maximum parts of a call that are kept. Further ones are counted.
const MAX_PARTS: usize = 50;
/// Maximum characters of a text that is kept.
const MAX_TEXT: usize = 4_000;
/// Maximum bytes of a text that is cut to its beginning: the whole text is masked before the cut.
const MAX_MASKED: usize = 32 << 10;
/// Maximum bytes of a picture or another file.
const MAX_FILE: usize = 256 << 10;
/// Maximum total size of a call's files in bytes, so that its line stays below 1 MiB.
const MAX_FILES: usize = 640 << 10;

/// Part that a call showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ShownPart {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// File.
    File {
        /// Media type.
        mime_type: String,
        /// Name of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// Content as base64.
        data: String,
    },
    /// A link, or a file that is not kept, in words.
    Note {
        /// Text in place of the file.
        text: String,
    },
    /// Further parts that are not kept.
    More {
        /// Number of parts.
        count: u64,
    },
    /// A part of a later version.
    #[serde(other)]
    Unknown,
}

/// Parts of one call, until its result is kept.
#[derive(Debug, Default)]
pub struct ShownParts {
    /// Not masked yet.
    parts: Vec<Part>,
    /// Bytes of their files.
    files: usize,
    left_out: u64,
}

impl ShownParts {
    /// Adds a part. A progress is none.
    pub fn add(&mut self, part: &Part) {
        if matches!(part, Part::Progress { .. }) {
            return;
        }
        if self.parts.len() >= MAX_PARTS {
            self.left_out += 1;
            return;
        }
        self.parts.push(match part {
            Part::Media(Media { mime_type, name, data, .. }) if data.len() > MAX_FILE.min(MAX_FILES - self.files) => {
                Part::Text(not_kept(mime_type, name.as_deref(), "it is too large"))
            }
            Part::Text(text) | Part::Json(text) if text.len() > MAX_MASKED => {
                Part::Text(format!("A text of {}; not kept: it is too large", counted(text.len(), "byte")))
            }
            part => part.clone(),
        });
        if let Some(Part::Media(media)) = self.parts.last() {
            self.files += media.data.len();
        }
    }

    /// Returns the parts in their order, with the masks of the call. `room` is the number of bytes of files that the run can still
    /// keep, and is reduced.
    pub fn into_kept(self, masks: Option<(&RunMasks, &str)>, room: &mut usize) -> Vec<ShownPart> {
        let mask = |text: &str| masks.map_or_else(|| text.to_owned(), |(masks, id)| masks.mask_shown(id, text));
        let is_full = masks.is_some_and(|(masks, _)| masks.is_full());
        let text_of = |part: &Part| match part {
            Part::Text(text) | Part::Json(text) => Some(text.clone()),
            _ => None,
        };
        let texts: Vec<String> = self.parts.iter().filter_map(text_of).collect();
        let (joined, mut masked): (_, Vec<String>) =
            (mask(&texts.concat()), texts.iter().map(|text| mask(text)).collect());
        // A masked text may begin in one part and end in another: then they are kept as one.
        if joined != masked.concat() {
            masked = vec![joined];
        }
        let mut masked = masked.into_iter();
        let mut kept = Vec::new();
        for part in &self.parts {
            let short = |text: &str| shortened(text, MAX_TEXT).into_owned();
            kept.extend(match part {
                Part::Text(_) | Part::Json(_) => masked.next().map(|text| ShownPart::Text { text: short(&text) }),
                Part::Link(Link { uri, name, .. }) => {
                    let text = format!("Link {}: {uri}", name.as_deref().unwrap_or_default());
                    Some(ShownPart::Note { text: short(&mask(&text)) })
                }
                Part::Media(media) => Some(file(media, mask, is_full, room)),
                _ => Some(ShownPart::Note { text: "a part that this version does not keep".to_owned() }),
            });
        }
        kept.extend((self.left_out > 0).then_some(ShownPart::More { count: self.left_out }));
        kept
    }
}

/// Keeps a file if there is room for it, and if no mask covers a part of it: masks cannot be applied within a file.
fn file(media: &Media, mask: impl Fn(&str) -> String, is_full: bool, room: &mut usize) -> ShownPart {
    let Media { mime_type, name, data, .. } = media;
    let name = name.as_deref().map(|name| shortened(&mask(name), 200).into_owned());
    let mime_type = shortened(mime_type, 200).into_owned();
    if data.len() > *room {
        return ShownPart::Note { text: not_kept(&mime_type, name.as_deref(), "the run is full") };
    }
    let text = String::from_utf8_lossy(data);
    if is_full || mask(&text) != text {
        return ShownPart::Note { text: not_kept(&mime_type, name.as_deref(), "it has a masked text") };
    }
    *room -= data.len();
    ShownPart::File { mime_type, name, data: BASE64_STANDARD.encode(data) }
}

fn not_kept(mime_type: &str, name: Option<&str>, reason: &str) -> String {
    format!("{}, {mime_type}; not kept: {reason}", name.unwrap_or("without a name"))
}

#[cfg(test)]
mod tests {
    use toolcrib::audit::Redactions;

    use super::*;

    fn kept(parts: impl IntoIterator<Item = Part>, masks: Option<&RunMasks>, mut room: usize) -> Vec<ShownPart> {
        let mut shown = ShownParts::default();
        parts.into_iter().for_each(|part| shown.add(&part));
        shown.into_kept(masks.map(|masks| (masks, "c")), &mut room)
    }

    #[test]
    fn parts_texts_and_files_have_limits() {
        let texts = (0..MAX_PARTS + 7).map(|_| Part::Text("x".repeat(MAX_TEXT + 1)));
        let all = kept(texts.chain([Part::Progress { done: 1, total: None }]), None, 0);
        assert_eq!((all.len(), &all[MAX_PARTS]), (MAX_PARTS + 1, &ShownPart::More { count: 7 }));
        assert!(matches!(&all[0], ShownPart::Text { text } if text.chars().count() <= MAX_TEXT + 1));
        let long = kept([Part::Text("x".repeat(MAX_MASKED + 1))], None, 0);
        assert!(matches!(&long[0], ShownPart::Text { text } if text.contains("32769 bytes")), "{long:?}");
        let file = |len: usize| Part::Media(Media::new("image/png", Some("p".to_owned()), vec![0xff; len]));
        let are_files = |room: usize, lengths: &[usize]| -> Vec<bool> {
            let all = kept(lengths.iter().map(|len| file(*len)), None, room);
            all.iter().map(|part| matches!(part, ShownPart::File { .. })).collect()
        };
        assert_eq!(
            are_files(usize::MAX, &[MAX_FILE + 1, MAX_FILE, MAX_FILE, MAX_FILE, 1]),
            [false, true, true, false, true]
        );
        assert_eq!(are_files(10, &[9, 2, 1]), [true, false, true], "of the run");
    }

    #[test]
    fn what_is_masked_is_kept_in_no_part() {
        let mut redactions = Redactions::default();
        redactions.add_literal(["secret".to_owned()]);
        let masks = RunMasks::new(redactions, Some(6));
        let text = |text: &str| Part::Text(text.to_owned());
        let drawing = |data: &[u8]| Part::Media(Media::new("image/svg+xml", None, data.to_vec()));
        let all = kept(
            [text("a secret"), drawing(b"<svg>secret</svg>"), drawing(b"\xffsecret"), drawing(b"<svg/>")],
            Some(&masks),
            99,
        );
        assert!(matches!(&all[0], ShownPart::Text { text } if !text.contains("secret")), "{all:?}");
        for part in &all[1..3] {
            assert!(matches!(part, ShownPart::Note { text } if text.contains("masked")), "{all:?}");
        }
        assert!(matches!(&all[3], ShownPart::File { .. }), "{all:?}");
        let all = kept([text("a sec"), drawing(b"x"), text("ret")], Some(&masks), 99);
        assert!(!format!("{all:?}").contains("sec"), "shown in two parts: {all:?}");
        assert_eq!(all.len(), 2, "{all:?}");
    }

    #[test]
    fn a_part_of_a_later_version_is_read() {
        assert_eq!(serde_json::from_str::<ShownPart>(r#"{"type":"film","x":1}"#).unwrap(), ShownPart::Unknown);
    }
}
