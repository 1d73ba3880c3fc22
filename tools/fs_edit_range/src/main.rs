//! Tool `fs_edit_range`: replaces a range of lines or bytes of a text file.

mod range;

use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolcrib_guest::{Error, error, files, lines};

use crate::range::Unit;

const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
const MAX_CONTENT_BYTES: usize = 1024 * 1024;
/// Maximum characters of the actual text in an error.
const MAX_SHOWN_CHARS: usize = 400;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    #[serde(default)]
    unit: Unit,
    start: u64,
    end: u64,
    content: String,
    expected: Option<String>,
    expected_sha256: Option<String>,
}

#[derive(Serialize)]
struct Output {
    path: String,
    /// Size of the file after the edit.
    bytes: usize,
    /// SHA-256 of the file after the edit, for the next edit.
    sha256: String,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { path, unit, start, end, content, expected, expected_sha256 } = args;
    if content.len() > MAX_CONTENT_BYTES {
        return Err(error!("`content` is {} bytes, over the limit of {MAX_CONTENT_BYTES}", content.len()));
    }
    let text = files::read_text(&path, MAX_FILE_BYTES)?;
    if let Some(expected) = expected_sha256 {
        let found = sha256(&text);
        if !found.eq_ignore_ascii_case(&expected) {
            return Err(error!("`{path}` has changed: its sha256 is `{found}`, not `{expected}`"));
        }
    }
    // The mark is before the first line, and a part of the bytes.
    let (mark, rest) = match unit {
        Unit::Lines => lines::split_mark(&text),
        Unit::Bytes => ("", text.as_str()),
    };
    // No file is so large.
    let [start, end] = [start, end].map(|place| usize::try_from(place).unwrap_or(usize::MAX));
    let range = range::find(rest, unit, start, end).map_err(|problem| error!("edit `{path}`: {problem}"))?;
    let found = &rest[range.clone()];
    if let Some(expected) = expected
        && !range::same(found, &expected, unit)
    {
        let shown: String = found.chars().take(MAX_SHOWN_CHARS).collect();
        return Err(error!("`{path}` does not have the expected text there, but `{shown}`"));
    }
    let edited = format!("{mark}{}", range::replace(rest, range, &content, unit));
    if edited == text {
        return Err(error!("`{path}`: the edit changes nothing: the range has this content already"));
    }
    if edited.len() as u64 > MAX_FILE_BYTES {
        return Err(error!("edit `{path}`: the file would be over the limit of {MAX_FILE_BYTES} bytes"));
    }
    files::replace(&path, edited.as_bytes())?;
    Ok(Output { path, bytes: edited.len(), sha256: sha256(&edited) })
}

fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
