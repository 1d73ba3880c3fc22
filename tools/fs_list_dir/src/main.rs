//! Tool `fs_list_dir`: lists the entries of a folder.

use std::fs::FileType;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error};
use walkdir::WalkDir;

const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 2000;
const MAX_RESULT_BYTES: usize = 128 * 1024;
/// Maximum number of unreadable folders that are named.
const MAX_NAMED: usize = 20;

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
    /// Entries that could not be read, with the reason: a folder without its content, a file without its size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
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
    let mut unreadable = Vec::new();
    let mut bytes = 0;
    // An entry below that cannot be read is named, and the others are listed.
    let mut note = |at: &Path, error: &io::Error| {
        if unreadable.len() < MAX_NAMED {
            let below = at.strip_prefix(&path).unwrap_or(at);
            unreadable.push(format!("{}: {error}", below.display()));
        } else if unreadable.len() == MAX_NAMED {
            unreadable.push("further entries".to_owned());
        }
    };
    for found in WalkDir::new(&path).min_depth(1).max_depth(depth).sort_by_file_name() {
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let at = error.path().unwrap_or(Path::new(&path)).to_owned();
                let depth = error.depth();
                let error = io::Error::from(error);
                if depth == 0 {
                    return Err(error).at("list", at);
                }
                note(&at, &error);
                continue;
            }
        };
        let size = match found.file_type().is_file() {
            true => found.metadata().map_err(|error| note(found.path(), &error.into())).ok().map(|about| about.len()),
            false => None,
        };
        let below = found.path().strip_prefix(&path).unwrap_or(found.path());
        let below = below.to_string_lossy().into_owned();
        bytes += below.len();
        if entries.len() == max_entries || bytes > MAX_RESULT_BYTES {
            return Ok(Output { path, entries, truncated: true, unreadable });
        }
        entries.push(Entry { path: below, kind: kind(found.file_type()), size });
    }
    Ok(Output { path, entries, truncated: false, unreadable })
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
