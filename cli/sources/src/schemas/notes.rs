//! Notes of a conversion: differences between a schema and its form for another system, each with its place.

use toolcrib_base::render;

/// Maximum number of notes per tool. The number of further notes is stated.
pub(super) const MAX_NOTES: usize = 200;
/// Maximum length of a place in a note, in characters.
const MAX_PLACE: usize = 120;

/// Notes of one conversion, in schema order.
#[derive(Debug, Default)]
pub(super) struct Notes {
    notes: Vec<String>,
    omitted: usize,
}

impl Notes {
    /// Adds a note about a place, which is a JSON pointer from the root of the schema.
    pub(super) fn add(&mut self, place: &str, difference: &str) {
        let note = format!("`#{}`: {difference}", render::shortened(place, MAX_PLACE));
        if self.notes.contains(&note) {
            return;
        }
        match self.notes.len() < MAX_NOTES {
            true => self.notes.push(note),
            false => self.omitted += 1,
        }
    }

    /// Returns the notes. If notes were left out, the last one counts them.
    pub(super) fn finish(mut self) -> Vec<String> {
        if self.omitted > 0 {
            self.notes.push(format!("{} further differences", self.omitted));
        }
        self.notes
    }
}

/// Returns the place of a part with this name.
pub(super) fn below(place: &str, name: &str) -> String {
    format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_beyond_the_limit_are_counted() {
        let mut notes = Notes::default();
        (0..MAX_NOTES + 3).for_each(|n| notes.add(&below("/properties", &n.to_string()), "removed"));
        notes.add("/properties/0", "removed");
        let notes = notes.finish();
        assert_eq!(notes.len(), MAX_NOTES + 1);
        assert_eq!(notes[0], "`#/properties/0`: removed");
        assert_eq!(notes[MAX_NOTES], "3 further differences");
        assert_eq!(below("", "a/b~"), "/a~1b~0");
    }
}
