//! Text files of sources: a bounded read, and the path and byte order mark in one form.

use std::cell::OnceCell;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bundle::missing;
use super::files;

/// Maximum size of a text file that is read, in bytes.
const MAX_BYTES: u64 = 8 << 20;
/// Reason for which a file that is not UTF-8 is no source.
const NOT_TEXT: &str =
    "not a text file in UTF-8: neither JSON nor Markdown, and the name of a component ends in `.wasm`";

/// Path offered to the dialects, with the text of its file, which is read at most once.
pub(super) struct Candidate<'p> {
    path: &'p Path,
    /// Name of the only tool that is called, if the others do not matter.
    called: Option<&'p str>,
    text: OnceCell<Result<Arc<str>, String>>,
}

impl<'p> Candidate<'p> {
    /// Creates a candidate without reading anything.
    pub(super) fn new(path: &'p Path) -> Self {
        Self::for_calls(path, None)
    }

    /// Creates a candidate for calls of the tool with this name or alias; `None` means all tools.
    pub(super) fn for_calls(path: &'p Path, called: Option<&'p str>) -> Self {
        Self { path, called, text: OnceCell::new() }
    }

    /// Name of the only tool that is called; `None` if all tools are read whole.
    pub(super) fn called(&self) -> Option<&'p str> {
        self.called
    }

    /// Path as the caller gave it.
    pub(super) fn path(&self) -> &'p Path {
        self.path
    }

    /// Returns the text of the file.
    ///
    /// # Errors
    ///
    /// The system's reason, if the file cannot be read, is not a regular file or is larger than 8 MiB.
    pub(super) fn text(&self) -> Result<Arc<str>, String> {
        let read = || read_text(self.path).map(Arc::from).map_err(|error| error.to_string());
        self.text.get_or_init(read).clone()
    }
}

/// Returns the absolute path of a source file. A relative path starts at the working directory, so that files beside it
/// get absolute paths too.
pub(super) fn from_root(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Strips the byte order mark that some editors put before a text.
pub(super) fn without_mark(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

/// Reads the text of a source file.
///
/// # Errors
///
/// Fails if the file cannot be read, is not a regular file or UTF-8, or is larger than 8 MiB.
pub(super) fn read_text(path: &Path) -> std::io::Result<String> {
    let bytes = files::read(path, MAX_BYTES).map_err(|error| match error.kind() {
        ErrorKind::NotFound => missing(),
        ErrorKind::FileTooLarge => Error::other(format!("larger than the {MAX_BYTES} bytes allowed")),
        _ => error,
    })?;
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, NOT_TEXT))
}
