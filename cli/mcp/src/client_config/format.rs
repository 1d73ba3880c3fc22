//! Formats of settings files behind one interface: reading, setting one value, and the fragment for a person.

use serde_json::Value;

use super::json::Dialect;
use super::{json, toml, yaml};

/// Format of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON without comments.
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    Toml,
    Yaml,
}

impl Format {
    /// Word for JSON output.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Jsonc => "jsonc",
            Self::Toml => "toml",
            Self::Yaml => "yaml",
        }
    }

    /// Reads a document as an object; an empty document is an empty object.
    ///
    /// # Errors
    ///
    /// The reason why the text is not such a document, with its line.
    pub(super) fn read(self, text: &str) -> Result<Value, String> {
        match self {
            Self::Json => json::read(text, Dialect::Strict),
            Self::Jsonc => json::read(text, Dialect::Comments),
            Self::Toml => toml::read(text),
            Self::Yaml => yaml::read(text),
        }
    }

    /// Returns the text with `entry` at the end of `keys`, and all else as it was.
    ///
    /// # Errors
    ///
    /// The reason why the text cannot be edited.
    pub(super) fn set(self, text: &str, keys: &[&str], entry: &Value) -> Result<String, String> {
        match self {
            Self::Json => json::set(text, Dialect::Strict, keys, entry),
            Self::Jsonc => json::set(text, Dialect::Comments, keys, entry),
            Self::Toml => toml::set(text, keys, entry),
            Self::Yaml => yaml::set(text, keys, entry),
        }
    }

    /// Returns a document with nothing but `entry` at the end of `keys`.
    pub(super) fn fragment(self, keys: &[&str], entry: &Value) -> String {
        match self {
            Self::Json | Self::Jsonc => json::fragment(keys, entry),
            Self::Toml => toml::fragment(keys, entry),
            Self::Yaml => yaml::fragment(keys, entry),
        }
    }
}

/// Line break of a text.
pub(super) fn line_break(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}
