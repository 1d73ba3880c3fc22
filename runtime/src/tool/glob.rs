//! Patterns over names: `*` stands for any text, `?` for one character, everything else for itself.

use std::fmt;
use std::str::FromStr;

use regex::Regex;

/// A pattern over a whole name or text.
#[derive(Debug, Clone)]
pub struct Glob {
    text: String,
    regex: Regex,
}

impl Glob {
    /// What `*` becomes.
    const EVERYTHING: &'static str = r"(?s)\A.*\z";

    /// Whether the whole text is as the pattern says.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// Whether it matches every text.
    pub fn is_everything(&self) -> bool {
        self.regex.as_str() == Self::EVERYTHING
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Glob {
    type Err = String;

    fn from_str(glob: &str) -> Result<Self, String> {
        let mut text = String::from(r"(?s)\A");
        for c in glob.chars() {
            match c {
                '*' => text.push_str(".*"),
                '?' => text.push('.'),
                c => text.push_str(&regex::escape(c.encode_utf8(&mut [0; 4]))),
            }
        }
        text.push_str(r"\z");
        let regex = Regex::new(&text).map_err(|_| format!("`{glob}` is too long for a pattern"))?;
        Ok(Self { text: glob.to_owned(), regex })
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}
