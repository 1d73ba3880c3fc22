//! Selection of text files by globs, in order, with counts of everything that is left out. Shared by the tools that search and
//! replace.

mod left_out;
mod walk;

use std::fs;

use toolcrib_guest::{Error, error, files};

pub use left_out::{LeftOut, Reason};
pub use walk::{Entry, Filter, entries};

/// Maximum files that one call reads.
pub const MAX_FILES: usize = 20_000;
/// Maximum value of `max_file_bytes`.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// Value of `max_file_bytes` in calls without it.
pub const DEFAULT_FILE_BYTES: u64 = 1024 * 1024;

/// Returns the value of `path` in calls without it.
pub fn default_path() -> String {
    ".".into()
}

/// Returns the value of `max_file_bytes` in calls without it.
pub fn default_file_bytes() -> u64 {
    DEFAULT_FILE_BYTES
}

/// Returns the value of `exclude` in calls without it.
pub fn default_exclude() -> Vec<String> {
    vec![".git".into()]
}

/// Checks that the argument `name` is in its range.
///
/// # Errors
///
/// If `value` is less than `least` or more than `most`.
pub fn check(name: &str, value: u64, least: u64, most: u64) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(error!("{name} `{value}` is not between {least} and {most}"))
}

/// Formats a number with a noun: `1 file`, `2 files`.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Reads the text of a file of at most `limit` bytes.
///
/// # Errors
///
/// The reason why the file is skipped.
pub fn text(path: &str, limit: u64) -> Result<String, Reason> {
    let size = fs::metadata(path).map_err(|_| Reason::Unreadable)?.len();
    if size > limit {
        return Err(Reason::TooLarge);
    }
    let bytes = files::read(path, limit).map_err(|_| Reason::Unreadable)?;
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or(Reason::Binary)
}
