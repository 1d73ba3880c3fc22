//! Scripts as they stand in their files: the text that the interpreter gets, and where it came from.

use std::sync::Arc;

use serde::Serialize;

/// A place in a file. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its text.
    pub source: Arc<str>,
    /// Where its first line begins in the file, where each of its lines is one of the file's.
    pub place: Option<Place>,
    /// SHA-256 of the text, as `sha256:HEX`.
    pub digest: String,
    /// Whether a call of it is answered at once, with a task that goes on.
    pub background: bool,
}

impl Script {
    /// The place in the file of a place in the script.
    pub fn in_file(&self, place: Place) -> Option<Place> {
        let begins = self.place?;
        let line = begins.line.checked_add(place.line.checked_sub(1)?)?;
        Some(Place { line, column: begins.column.checked_add(place.column.checked_sub(1)?)? })
    }
}
