//! Script of a Markdown file, with its lines' position in the file.

use std::sync::Arc;

use crate::source::digest;
use crate::tool::{Body, Place, Script};

use super::node::{Data, Node};

/// Maximum column of a script that has a position.
const MAX_COLUMN: u32 = 1000;

/// Lines of a file, indexed.
pub(super) struct Lines<'f> {
    text: &'f str,
    /// Byte offset of each line.
    starts: Vec<usize>,
}

impl<'f> Lines<'f> {
    /// Indexes the lines of a text.
    pub(super) fn of(text: &'f str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }

    /// Iterates over the lines from a number, starting at 1.
    fn from(&self, number: u32) -> impl Iterator<Item = &'f str> {
        let start = self.starts.get((number as usize).saturating_sub(1));
        start.and_then(|at| self.text.get(*at..)).unwrap_or_default().lines()
    }
}

/// Creates the script at a position of its file. The position is kept only if each line of the script is a line of the file.
pub(super) fn read(source: String, place: Option<Place>, file: &Lines<'_>, background: bool) -> Script {
    // YAML reports the first line of a block that is not empty.
    let empty = source.lines().take_while(|line| line.is_empty()).count();
    let first = |place: Place| Some(Place { line: place.line.checked_sub(u32::try_from(empty).ok()?)?, ..place });
    let place = place.and_then(first).filter(|place| is_verbatim(&source, *place, file));
    Script { digest: digest(source.as_bytes()), source: Arc::from(source), place, background }
}

/// Returns the body of a faulty tool: its script, which can be checked although no call runs it.
pub(super) fn of_faulty(script: Option<&Node>, file: &Lines<'_>) -> Body {
    match script.map(|node| (&node.data, node.place)) {
        Some((Data::Text(source), place)) if !source.trim().is_empty() => {
            Body::Script(Arc::new(read(source.clone(), place, file, false)))
        }
        _ => Body::Absent,
    }
}

/// Returns `true` if each script line is a line of the file, all from one column. Of the ways to write several lines in
/// YAML, this is true of literal blocks alone.
fn is_verbatim(source: &str, place: Place, file: &Lines<'_>) -> bool {
    let mut lines = file.from(place.line);
    place.column <= MAX_COLUMN
        && source.lines().all(|written| {
            let line = lines.next().unwrap_or_default();
            let start =
                line.char_indices().nth((place.column as usize).saturating_sub(1)).map_or(line.len(), |(at, _)| at);
            line[start..].trim_end() == written.trim_end()
        })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::source::markdown::yaml;

    /// The place of this front matter's script.
    fn place(text: &str) -> Option<(u32, u32)> {
        let node = yaml::parse(text).unwrap().fields("top").unwrap().take("script").unwrap();
        let (place, source) = (node.place, node.text("script").unwrap());
        read(source, place, &Lines::of(text), false).place.map(|place| (place.line, place.column))
    }

    #[test]
    fn the_lines_of_a_literal_block_are_lines_of_the_file() {
        assert_eq!(place("---\nscript: |\n  def run(args):\n    return 1\n"), Some((3, 3)));
        assert_eq!(place("---\nscript: |\n\n\n  def run(args):\n\n    return 1\ntimeout_ms: 1\n"), Some((3, 3)));
        assert_eq!(place("---\r\na: 1\r\nscript: |-\r\n    a\r\n    b\r\n"), Some((4, 5)));
        assert_eq!(place("---\nscript: &s !!str |2+ # why\n    a\n  b\n\n"), Some((3, 3)));
        assert_eq!(place("---\nx: &s |\n  a\n  b\nscript: *s\n"), Some((3, 3)));
        assert_eq!(place("---\nscript: def\n"), Some((2, 9)));
    }

    #[test]
    fn lines_that_are_folded_or_escaped_have_no_place() {
        for script in [">\n  a\n  b\n", "\"a\\nb\"\n", "'a'\n", "a\n  b\n", "a # why\n"] {
            assert_eq!(place(&format!("---\nscript: {script}")), None, "{script:?}");
        }
    }

    #[test]
    fn the_length_of_a_file_costs_nothing_at_each_script() {
        let long = format!("{}{}\nx", "\n".repeat(4 << 20), "é".repeat(2 << 20));
        let (file, start) = (Lines::of(&long), Instant::now());
        let place = |line, column| read("x".to_owned(), Some(Place { line, column }), &file, false).place;
        for _ in 0..10_000 {
            assert_eq!(place((4 << 20) + 2, 1), Some(Place { line: (4 << 20) + 2, column: 1 }));
            assert_eq!(place((4 << 20) + 1, 2 << 20), None);
            assert_eq!(place(u32::MAX, 1), None);
        }
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    }

    #[test]
    fn the_digest_is_that_of_the_text() {
        let script = read("abc".to_owned(), None, &Lines::of(""), true);
        assert_eq!(script.digest, "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(script.background);
    }
}
