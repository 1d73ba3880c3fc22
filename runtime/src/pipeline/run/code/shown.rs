//! Parts that a program's calls show to people: they belong to the program's result, and its model gets a list of the media.

use serde_json::{Map, Value, json};
use toolcrib_foundation::text::truncate;

use crate::call::{Media, Part};

/// Maximum number of parts that a program shows.
const MAX_PARTS: usize = 256;
/// Maximum bytes of all parts that a program shows.
const MAX_BYTES: usize = 16 << 20;
/// Maximum number of media in the list for the model.
const MAX_LISTED: usize = 20;
/// Maximum characters of a name.
const MAX_NAME: usize = 100;

/// Shown parts of a program.
#[derive(Debug, Default)]
pub(super) struct ShownParts {
    parts: Vec<Part>,
    bytes: usize,
    /// Media for the list, and the number of all media.
    listed: Vec<Value>,
    media: usize,
    dropped: usize,
}

impl ShownParts {
    /// Adds the media and parts of a result.
    pub(super) fn add(&mut self, tool: &str, media: Vec<Media>, parts: Vec<Part>) {
        for part in media.into_iter().map(Part::Media).chain(parts) {
            let bytes = match &part {
                Part::Text(text) | Part::Json(text) => text.len(),
                Part::Media(media) => media.data.len(),
                Part::Link(link) => link.uri.len(),
                // It was shown when it was made.
                Part::Progress { .. } => continue,
            };
            if self.parts.len() == MAX_PARTS || bytes > MAX_BYTES - self.bytes {
                self.dropped += 1;
                continue;
            }
            if let Part::Media(media) = &part {
                self.media += 1;
                if self.listed.len() < MAX_LISTED {
                    self.listed.push(described(tool, media));
                }
            }
            self.bytes += bytes;
            self.parts.push(part);
        }
    }

    /// Adds the list of the media to an answer.
    pub(super) fn add_to(&self, answer: &mut Map<String, Value>) {
        if !self.listed.is_empty() {
            answer.insert("shown".to_owned(), json!(self.listed));
        }
        if self.media > self.listed.len() {
            answer.insert("more_shown".to_owned(), json!(self.media - self.listed.len()));
        }
        if self.dropped > 0 {
            answer.insert("not_shown".to_owned(), json!(self.dropped));
        }
    }

    /// Takes the parts, and returns the number of those that were dropped.
    pub(super) fn take(&mut self) -> (Vec<Part>, usize) {
        (std::mem::take(&mut self.parts), self.dropped)
    }
}

/// Describes media for the model.
fn described(tool: &str, media: &Media) -> Value {
    let mut described = json!({"tool": truncate(tool, MAX_NAME), "type": truncate(&media.mime_type, MAX_NAME)});
    if let Some(name) = &media.name {
        described["name"] = json!(truncate(name, MAX_NAME));
    }
    described
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(bytes: usize) -> Part {
        Part::Media(Media::new("image/png", None, vec![0; bytes]))
    }

    #[test]
    fn parts_beyond_their_limits_are_dropped_and_counted() {
        let mut shown = ShownParts::default();
        shown.add("draw", Vec::new(), vec![picture(1); MAX_PARTS + 2]);
        let mut answer = Map::new();
        shown.add_to(&mut answer);
        assert_eq!(answer["shown"].as_array().map(Vec::len), Some(MAX_LISTED));
        assert_eq!((&answer["more_shown"], &answer["not_shown"]), (&json!(MAX_PARTS - MAX_LISTED), &json!(2)));
        let mut shown = ShownParts::default();
        shown.add("draw", Vec::new(), vec![picture(MAX_BYTES), picture(1), Part::Text("x".to_owned())]);
        let (parts, dropped) = shown.take();
        assert_eq!((parts.len(), dropped), (1, 2));
    }
}
