//! Replacement of all matches in one text. Knows no files.
//!
//! Patterns see each line break as `\n`, whatever the text has. Line breaks of the text stay as they are, and new ones are like
//! the break that they replace, or else like that of the line.

use std::borrow::Cow;

use regex::{Captures, Regex, RegexBuilder};
use toolcrib_guest::{Error, error, lines};

/// Maximum memory of a compiled pattern, in bytes, which limits its repetitions.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;

/// Options of the pattern.
#[derive(Clone, Copy, Default)]
pub(crate) struct Options {
    pub(crate) regex: bool,
    pub(crate) ignore_case: bool,
}

/// Compiled pattern and its replacement.
pub(crate) struct Replacer {
    regex: Regex,
    replacement: String,
    /// `true` if `$1` in the replacement is a group.
    expands: bool,
}

/// Text with all matches replaced.
#[derive(Debug, PartialEq)]
pub(crate) struct Replaced {
    pub(crate) text: String,
    /// Number of matches that were replaced by another text.
    pub(crate) replaced: usize,
    /// Number of matches that are equal to their replacement.
    pub(crate) same: usize,
}

/// The new text would be larger than its limit.
#[derive(Debug, PartialEq)]
pub(crate) struct TooLarge;

impl Replacer {
    pub(crate) fn new(pattern: &str, replacement: &str, options: Options) -> Result<Self, Error> {
        let pattern = with_newlines(pattern);
        let source = if options.regex { pattern } else { regex::escape(&pattern).into() };
        let regex = RegexBuilder::new(&source)
            .multi_line(true)
            .case_insensitive(options.ignore_case)
            .size_limit(MAX_PATTERN_BYTES)
            .build()
            .map_err(|error| error!("pattern `{source}`: {error}"))?;
        let replacer = Self { regex, replacement: with_newlines(replacement).into(), expands: options.regex };
        if replacer.expands {
            replacer.check_groups()?;
        }
        Ok(replacer)
    }

    /// Refuses a replacement that names a group that the pattern has not, which would silently be empty.
    fn check_groups(&self) -> Result<(), Error> {
        let mut rest = self.replacement.as_str();
        while let Some(at) = rest.find('$') {
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                rest = after;
                continue;
            }
            let name = match rest.strip_prefix('{') {
                Some(braced) => braced.split_once('}').map_or("", |(name, _)| name),
                None => &rest[..rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len())],
            };
            let known = match name.parse::<usize>() {
                Ok(index) => index < self.regex.captures_len(),
                Err(_) => name.is_empty() || self.regex.capture_names().flatten().any(|known| known == name),
            };
            if !known {
                return Err(error!(
                    "replacement: the pattern has no group `{name}`; write `${{1}}` before a letter, a digit or `_`, and `$$` for `$`"
                ));
            }
        }
        Ok(())
    }

    /// Replaces all matches that do not overlap, from the start on. Returns `None` without a match.
    ///
    /// # Errors
    ///
    /// If the new text is larger than `limit` bytes.
    pub(crate) fn replace(&self, text: &str, limit: usize) -> Result<Option<Replaced>, TooLarge> {
        let (mark, text) = lines::split_mark(text);
        let plain = with_newlines(text);
        let mut matches = self.regex.captures_iter(&plain).peekable();
        if matches.peek().is_none() {
            return Ok(None);
        }
        let mut edited = Edited { text: mark.to_owned(), windows: windows(text), next: 0 };
        let (mut at, mut replaced, mut same) = (0, 0, 0);
        for captures in matches {
            let found = captures.get_match();
            let new = self.expand(&captures);
            edited.keep(&plain[at..found.start()]);
            edited.replace(found.as_str(), &new);
            at = found.end();
            *if *new == *found.as_str() { &mut same } else { &mut replaced } += 1;
            if edited.text.len() > limit {
                return Err(TooLarge);
            }
        }
        edited.keep(&plain[at..]);
        if edited.text.len() > limit {
            return Err(TooLarge);
        }
        Ok(Some(Replaced { text: edited.text, replaced, same }))
    }

    fn expand(&self, captures: &Captures<'_>) -> Cow<'_, str> {
        if !self.expands || !self.replacement.contains('$') {
            return Cow::Borrowed(&self.replacement);
        }
        let mut text = String::new();
        captures.expand(&self.replacement, &mut text);
        Cow::Owned(text)
    }
}

/// Returns a text in which each line break is `\n`.
fn with_newlines(text: &str) -> Cow<'_, str> {
    if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) }
}

/// Returns `true` for each line break of a text that is `\r\n`; nothing for a text without one.
fn windows(text: &str) -> Vec<bool> {
    if !text.contains("\r\n") {
        return Vec::new();
    }
    let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    breaks.map(|(at, _)| text[..at].ends_with('\r')).collect()
}

/// New text, written from its start on.
struct Edited {
    text: String,
    /// `true` for each line break of the old text that is `\r\n`.
    windows: Vec<bool>,
    /// Number of old line breaks that are done.
    next: usize,
}

impl Edited {
    /// Adds a part of the old text with its line breaks.
    fn keep(&mut self, part: &str) {
        let count = part.matches('\n').count();
        self.push(part, count);
    }

    /// Adds a text in place of a part of the old text.
    fn replace(&mut self, old: &str, new: &str) {
        self.push(new, old.matches('\n').count());
    }

    /// Adds a text in place of a part with `count` line breaks. Further ones are like the one after the part, or the last one.
    fn push(&mut self, text: &str, count: usize) {
        let mut parts = text.split('\n');
        self.text.push_str(parts.next().unwrap_or_default());
        for (index, part) in parts.enumerate() {
            let old = self.windows.get(self.next + index.min(count)).or(self.windows.last());
            self.text.push_str(if old == Some(&true) { "\r\n" } else { "\n" });
            self.text.push_str(part);
        }
        self.next += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGEX: Options = Options { regex: true, ignore_case: false };
    const LITERAL: Options = Options { regex: false, ignore_case: false };

    fn replaced(text: &str, pattern: &str, replacement: &str, options: Options) -> Option<(String, usize, usize)> {
        let replacer = Replacer::new(pattern, replacement, options).expect("a pattern");
        let done = replacer.replace(text, 1000).expect("small enough")?;
        Some((done.text, done.replaced, done.same))
    }

    fn text(text: &str, pattern: &str, replacement: &str, options: Options) -> String {
        replaced(text, pattern, replacement, options).expect("a match").0
    }

    #[test]
    fn a_literal_and_its_replacement_have_no_special_characters() {
        assert_eq!(replaced("a.b axb a.b", "a.b", "$0$", LITERAL), Some(("$0$ axb $0$".into(), 2, 0)));
        assert_eq!(replaced("axb", "a.b", "", LITERAL), None);
        let ignoring = Options { ignore_case: true, ..LITERAL };
        assert_eq!(replaced("ÉCOLE école", "école", "école", ignoring), Some(("école école".into(), 1, 1)));
    }

    #[test]
    fn matches_do_not_overlap() {
        assert_eq!(replaced("aaaaa", "aa", "b", LITERAL), Some(("bba".into(), 2, 0)));
        assert_eq!(replaced("aa", "a", "aa", LITERAL), Some(("aaaa".into(), 2, 0)), "a replacement is not searched");
    }

    #[test]
    fn groups_are_those_of_the_pattern() {
        assert_eq!(text("f(x, y)", r"f\((\w), (?<last>\w)\)", "g(${last}, $1)$$", REGEX), "g(y, x)$");
        for (replacement, name) in [("$2", "`2`"), ("$1a", "`1a`"), ("${n}", "`n`")] {
            let error = Replacer::new("(a)", replacement, REGEX).err().expect("no group").to_string();
            assert!(error.contains(&format!("the pattern has no group {name}")), "{error}");
        }
    }

    #[test]
    fn an_empty_match_is_a_place() {
        assert_eq!(replaced("ab\r\nc\n", "^", "> ", REGEX), Some(("> ab\r\n> c\n> ".into(), 3, 0)));
        assert_eq!(text("é", "x*", "-", REGEX), "-é-");
        assert_eq!(replaced("", "^", "a", REGEX), Some(("a".into(), 1, 0)));
    }

    #[test]
    fn line_breaks_stay_as_they_are() {
        for (before, pattern, replacement, options, after) in [
            ("a\r\nb\nc\r\n", "b", "x\ny", LITERAL, "a\r\nx\ny\nc\r\n"),
            ("a\r\nb\r\nc", "a\nb", "A\nB", LITERAL, "A\r\nB\r\nc"),
            ("a\r\nb\nc", "a\nb\nc", "A\nB\nC\nD", LITERAL, "A\r\nB\nC\nD"),
            ("a\nb\n", "a\r\nb", "A\r\nB", LITERAL, "A\nB\n"),
            ("a\r\nb", "b", "x\ny", LITERAL, "a\r\nx\r\ny"),
            ("a \r\nb \r\n", r"\s+$", "", REGEX, "a\r\nb"),
            ("a \r\nb \r\n", r" +$", "", REGEX, "a\r\nb\r\n"),
            ("a\r\nb\r\n", r"(\w)\n", "$1;\n", REGEX, "a;\r\nb;\r\n"),
            ("a\r\nb\r\n", "\n", "", LITERAL, "ab"),
            ("a\rb\r\r\n", "b", "c", LITERAL, "a\rc\r\r\n"),
            ("\u{feff}a\r\n", "^a", "b", REGEX, "\u{feff}b\r\n"),
        ] {
            assert_eq!(text(before, pattern, replacement, options), after, "{before:?} {pattern:?}");
        }
    }

    #[test]
    fn a_text_over_its_limit_is_refused() {
        let replacer = Replacer::new("a", "12345", LITERAL).expect("a pattern");
        assert!(replacer.replace("aa", 10).is_ok());
        assert_eq!(replacer.replace("aaa", 14), Err(TooLarge));
        assert_eq!(replacer.replace("aab", 10), Err(TooLarge));
    }
}
