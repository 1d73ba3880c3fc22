//! Positions in a JSON document: the lines and columns of JSON pointers, found in one pass over the text.

use std::collections::HashMap;

use crate::tool::Place;

use super::document::without_mark;

/// Maximum depth at which a pointer is resolved. Parsed values are less deep.
const MAX_DEPTH: usize = 128;

/// Part of a document that a pointer refers to, or that contains such parts.
#[derive(Default)]
pub(super) struct Part {
    place: Option<Place>,
    /// Parts in it, by their names in a pointer.
    children: HashMap<String, Part>,
}

impl Part {
    /// Adds the part that a pointer refers to.
    pub(super) fn insert(&mut self, pointer: &str) {
        let mut part = self;
        for name in names(pointer) {
            part = part.children.entry(name.to_owned()).or_default();
        }
    }

    /// Returns the position of a part, or of the nearest part around it that was found.
    pub(super) fn nearest(&self, pointer: &str) -> Option<Place> {
        let mut names = names(pointer);
        let found = std::iter::successors(Some(self), |part| part.children.get(names.next()?));
        found.map_while(|part| part.place).last()
    }
}

/// Splits a pointer into names, the outermost first.
fn names(pointer: &str) -> impl Iterator<Item = &str> {
    pointer.split('/').skip(1).take(MAX_DEPTH)
}

/// Derives a pointer from a message: to the field that it starts with, such as `limits.fuel` or `command[0]`, or to the
/// unknown field that it names.
pub(super) fn subject(message: &str) -> String {
    let (within, rest) = match message.split_once(": unknown field `") {
        Some((within, rest)) => (within, Some(rest)),
        None => match message.strip_prefix("unknown field `") {
            Some(rest) => ("", Some(rest)),
            None => (message.split([' ', ':']).next().unwrap_or_default(), None),
        },
    };
    let mut pointer = String::new();
    for part in within.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
        add(&mut pointer, part);
    }
    if let Some(field) = rest.and_then(|rest| rest.split('`').next()) {
        add(&mut pointer, field);
    }
    pointer
}

fn add(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&escaped(name));
}

/// Escapes a name for a pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Returns the position of an error in the parsed text.
pub(super) fn place_of(error: &serde_json::Error) -> Option<Place> {
    let (line, column) = (u32::try_from(error.line()).ok()?, u32::try_from(error.column()).ok()?);
    Some(Place { line, column: column.max(1) }).filter(|place| place.line > 0)
}

/// Finds the parts of a text that was parsed before.
pub(super) fn find(text: &str, whole: &mut Part) {
    let cursor = Cursor::new(text);
    // In invalid JSON, the parts before the fault are found.
    let _ = Scan { at: cursor.at, cursor }.value(whole);
}

/// Scanner of a text. It enters only wanted parts, so its recursion is no deeper than they are, and steps over all others.
struct Scan<'t> {
    cursor: Cursor<'t>,
    at: usize,
}

impl Scan<'_> {
    fn value(&mut self, part: &mut Part) -> Option<()> {
        self.skip_space();
        part.place = self.cursor.place(self.at);
        match self.ahead()? {
            b'{' if !part.children.is_empty() => self.members(part),
            b'[' if !part.children.is_empty() => self.items(part),
            _ => self.step_over(),
        }
    }

    fn members(&mut self, part: &mut Part) -> Option<()> {
        self.at += 1;
        loop {
            self.skip_space();
            match self.ahead()? {
                b'}' => break,
                b',' => self.at += 1,
                _ => {
                    let key: String = serde_json::from_str(self.string()?).ok()?;
                    self.skip_space();
                    self.at += 1;
                    self.child(part, &escaped(&key))?;
                }
            }
        }
        self.at += 1;
        Some(())
    }

    fn items(&mut self, part: &mut Part) -> Option<()> {
        self.at += 1;
        let mut index = 0_usize;
        loop {
            self.skip_space();
            match self.ahead()? {
                b']' => break,
                b',' => self.at += 1,
                _ => {
                    self.child(part, &index.to_string())?;
                    index += 1;
                }
            }
        }
        self.at += 1;
        Some(())
    }

    /// Scans the value of a name within a part.
    fn child(&mut self, part: &mut Part, name: &str) -> Option<()> {
        match part.children.get_mut(name) {
            Some(child) => self.value(child),
            None => self.step_over(),
        }
    }

    /// Steps over a value of any depth.
    fn step_over(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.skip_space();
            match self.ahead()? {
                b'"' => {
                    self.string()?;
                }
                b',' | b':' if depth > 0 => self.at += 1,
                b',' | b':' => return None,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                _ => {
                    while self.ahead().is_some_and(|byte| !b",:]} \t\r\n".contains(&byte)) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Steps over a string and returns it with its quotes.
    fn string(&mut self) -> Option<&str> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.ahead()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        self.cursor.text.get(start..self.at)
    }

    fn skip_space(&mut self) {
        while self.ahead().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    fn ahead(&self) -> Option<u8> {
        self.cursor.text.as_bytes().get(self.at).copied()
    }
}

/// Converter of byte offsets into positions. Offsets must be ascending, so that each character is counted once.
pub(super) struct Cursor<'t> {
    pub(super) text: &'t str,
    at: usize,
    place: Place,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        // A byte order mark is not part of the text.
        Self { text, at: text.len() - without_mark(text).len(), place: Place { line: 1, column: 1 } }
    }

    /// Returns the position of a byte, or `None` if it lies before the last one.
    pub(super) fn place(&mut self, at: usize) -> Option<Place> {
        for character in self.text.get(self.at..at)?.chars() {
            let Place { line, column } = &mut self.place;
            match character {
                '\n' => (*line, *column) = (line.saturating_add(1), 1),
                _ => *column = column.saturating_add(1),
            }
        }
        self.at = at;
        Some(self.place)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn found(text: &str, pointer: &str) -> Option<(u32, u32)> {
        let mut whole = Part::default();
        whole.insert(pointer);
        find(text, &mut whole);
        whole.nearest(pointer).map(|place| (place.line, place.column))
    }

    #[test]
    fn a_part_is_found_by_its_line_and_column() {
        let text = "{\n  \"a\": [1, {\"b/c\": \"é\\\"]\", \"d\": tru}, \"é\", 7]\n}";
        for (pointer, place) in [
            ("", (1, 1)),
            ("/a", (2, 8)),
            ("/a/0", (2, 9)),
            ("/a/1", (2, 12)),
            ("/a/1/b~1c", (2, 20)),
            ("/a/1/d", (2, 33)),
            ("/a/3", (2, 44)),
        ] {
            assert_eq!(found(text, pointer), Some(place), "{pointer}");
        }
    }

    #[test]
    fn what_is_not_there_has_the_place_around_it() {
        assert_eq!(found("{\"a\": {\"b\": 1}}", "/a/c/d"), Some((1, 7)));
        assert_eq!(found("\u{feff}[1, 2]", "/1"), Some((1, 5)));
        for text in ["", "{", "{\"a", "[1,", "{\"a\" 1}", "\"\\"] {
            assert!(found(text, "/x/y").is_none_or(|place| place == (1, 1)), "{text}");
        }
    }

    #[test]
    fn the_last_member_of_a_name_counts() {
        assert_eq!(found("{\"a\": 1, \"a\": 2}", "/a"), Some((1, 15)));
    }

    #[test]
    fn a_message_begins_with_what_it_is_about() {
        for (message, pointer) in [
            ("command[0] must not start with '..'", "/command/0"),
            ("envPassthrough[1]: invalid name \"x\"", "/envPassthrough/1"),
            ("interface.rendering.ui_summary must be a string", "/interface/rendering/ui_summary"),
            ("unknown field `a/b` is ignored; did you mean `c`?", "/a~1b"),
            ("interface.rendering: unknown field `colour` is ignored", "/interface/rendering/colour"),
            ("name is required", "/name"),
            ("", ""),
        ] {
            assert_eq!(subject(message), pointer, "{message}");
        }
    }

    #[test]
    fn a_byte_has_a_place() {
        let mut cursor = Cursor::new("\u{feff}é\nab");
        let mut place = |at| cursor.place(at).map(|place| (place.line, place.column));
        assert_eq!(
            [place(3), place(4), place(5), place(7), place(7), place(5), place(12)],
            [Some((1, 1)), None, Some((1, 2)), Some((2, 2)), Some((2, 2)), None, None]
        );
    }

    #[test]
    fn a_value_of_any_depth_is_stepped_over() {
        let deep = format!("{}\"]\\\"}}\"{}", "[{\"x\":".repeat(500_000), "}]".repeat(500_000));
        let text = format!("{{\"a\":{deep},\n\"b\":[{deep},\n7]}}");
        assert_eq!(found(&text, "/b/1"), Some((3, 1)));
        let pointer = "/0".repeat(500_000);
        assert_eq!(found(&"[".repeat(500_000), &pointer), Some((1, MAX_DEPTH as u32 + 1)));
    }

    #[test]
    fn the_length_of_a_pointer_costs_nothing_at_each_value() {
        let key = "k".repeat(1 << 20);
        let text = format!("{{\"{key}\":[{}1],\n\"b\":2}}", "1,".repeat(1 << 20));
        let start = Instant::now();
        assert_eq!(found(&text, "/b"), Some((2, 5)));
        assert_eq!(found(&text, &format!("/{key}/{}", 1 << 20)), Some((1, (3 << 20) + 6)));
        found("{}", &"/a".repeat(1 << 20));
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }

    #[test]
    fn what_is_no_json_ends_the_walk() {
        for text in ["[}", "[:", "{\"0\":}", "{\"0\":,", "[1}", "[{]"] {
            assert!(found(text, "/0/a").is_some() && found(text, "/9/a").is_some(), "{text}");
        }
    }
}
