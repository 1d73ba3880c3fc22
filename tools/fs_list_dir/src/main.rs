//! Tool `fs_list_dir`: lists the entries of a folder.

use std::fs::FileType;
use std::io;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error};
use walkdir::WalkDir;

const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 2000;
const MAX_RESULT_BYTES: usize = 128 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default = "here")]
    path: String,
    #[serde(default = "one")]
    depth: usize,
    #[serde(default = "default_entries")]
    max_entries: usize,
}

fn here() -> String {
    ".".into()
}

fn one() -> usize {
    1
}

fn default_entries() -> usize {
    500
}

#[derive(Serialize)]
struct Output {
    path: String,
    entries: Vec<Entry>,
    truncated: bool,
}

#[derive(Serialize)]
struct Entry {
    /// Path relative to the listed folder.
    path: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { path, depth, max_entries } = args;
    if !(1..=MAX_DEPTH).contains(&depth) {
        return Err(error!("depth `{depth}` is not between 1 and {MAX_DEPTH}"));
    }
    if !(1..=MAX_ENTRIES).contains(&max_entries) {
        return Err(error!("max_entries `{max_entries}` is not between 1 and {MAX_ENTRIES}"));
    }
    if !std::fs::metadata(&path).at("list", &path)?.is_dir() {
        return Err::<Output, _>(io::Error::from(io::ErrorKind::NotADirectory)).at("list", &path);
    }
    let mut entries = Vec::new();
    let mut bytes = 0;
    for found in WalkDir::new(&path).min_depth(1).max_depth(depth).sort_by_file_name() {
        let found = found.map_err(|error| {
            let at = error.path().map_or_else(|| path.clone(), |at| at.display().to_string());
            (at, io::Error::from(error))
        });
        let found = match found {
            Ok(found) => found,
            Err((at, error)) => return Err(error).at("list", at),
        };
        let size = match found.file_type().is_file() {
            true => Some(found.metadata().map_err(io::Error::from).at("list", found.path())?.len()),
            false => None,
        };
        let below = found.path().strip_prefix(&path).unwrap_or(found.path());
        let below = below.to_string_lossy().into_owned();
        bytes += below.len();
        if entries.len() == max_entries || bytes > MAX_RESULT_BYTES {
            return Ok(Output { path, entries, truncated: true });
        }
        entries.push(Entry { path: below, kind: kind(found.file_type()), size });
    }
    Ok(Output { path, entries, truncated: false })
}

fn kind(found: FileType) -> &'static str {
    if found.is_file() {
        "file"
    } else if found.is_dir() {
        "folder"
    } else if found.is_symlink() {
        "symlink"
    } else {
        "other"
    }
}
