//! Mistake in a file that people edit, such as settings or a lock.

use std::error::Error;
use std::fmt;

/// Mistake in a file of settings, with its place in the message.
#[derive(Debug)]
pub struct Mistake {
    /// Message with the place.
    pub message: String,
    /// Dotted key; `None` if the text is not TOML, for an item of a list, which cannot be removed alone, and for a key with a
    /// quoted part, which a dotted name on a command line does not tell from several.
    pub key: Option<String>,
    /// Suggested key.
    pub suggestion: Option<String>,
}

impl Mistake {
    /// Creates a mistake about a value or its key.
    pub fn of_key(message: String, key: &str) -> Self {
        Self { message, key: Some(key.to_owned()).filter(|key| !key.contains(['[', '"'])), suggestion: None }
    }

    /// Creates a mistake about a text that has no keys.
    pub fn of_text(message: String) -> Self {
        Self { message, key: None, suggestion: None }
    }

    /// Adds a suggestion.
    pub fn suggesting(self, hint: String) -> Self {
        Self { suggestion: Some(hint), ..self }
    }

    /// Returns the suggestion.
    pub(crate) fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Mistake {}
