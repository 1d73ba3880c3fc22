//! Script of a tool: the text for the interpreter and its position in the source file.

use std::sync::Arc;

use serde::Serialize;

/// Position in a file. Lines and columns count from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// Script of a tool or a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Script {
    /// Text of the script.
    pub source: Arc<str>,
    /// Position of the first line in the file, if each script line is a line of the file.
    pub place: Option<Place>,
    /// SHA-256 digest of the text, as `sha256:HEX`.
    pub digest: String,
    /// `true` if a call returns a task at once and the script continues in the background.
    pub background: bool,
}

impl Script {
    /// Converts a position in the script to a position in the file.
    pub fn in_file(&self, place: Place) -> Option<Place> {
        let start = self.place?;
        let line = start.line.checked_add(place.line.checked_sub(1)?)?;
        Some(Place { line, column: start.column.checked_add(place.column.checked_sub(1)?)? })
    }
}
