//! Tool `fs_search`: searches the lines of text files for a pattern.

mod left_out;
mod matcher;
mod walk;

use std::fs;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error, files, lines};

use crate::left_out::{LeftOut, Reason};
use crate::matcher::{Match, Matcher};
use crate::walk::Entry;

const MAX_RESULTS: usize = 1000;
const MAX_CONTEXT: usize = 10;
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
const MAX_FILES: usize = 20_000;
const MAX_RESULT_BYTES: usize = 128 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    pattern: String,
    #[serde(default = "here")]
    path: String,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    include: Vec<String>,
    #[serde(default = "default_exclude")]
    exclude: Vec<String>,
    #[serde(default = "default_results")]
    max_results: usize,
    #[serde(default)]
    context: usize,
    #[serde(default = "default_file_bytes")]
    max_file_bytes: u64,
}

fn here() -> String {
    ".".into()
}

fn default_exclude() -> Vec<String> {
    vec![".git".into()]
}

fn default_results() -> usize {
    100
}

fn default_file_bytes() -> u64 {
    1024 * 1024
}

#[derive(Serialize)]
struct Output {
    matches: Vec<Found>,
    files_searched: usize,
    /// Number of files that are binary, too large, or not readable.
    files_skipped: usize,
    truncated: bool,
    /// Files and folders that were not searched, each kind with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct Found {
    path: String,
    #[serde(flatten)]
    found: Match,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    check("max_results", args.max_results as u64, 1, MAX_RESULTS as u64)?;
    check("context", args.context as u64, 0, MAX_CONTEXT as u64)?;
    check("max_file_bytes", args.max_file_bytes, 1, MAX_FILE_BYTES)?;
    let matcher = Matcher::new(&args.pattern, args.literal, args.ignore_case, args.context)?;
    let filter = walk::Filter::new(&args.include, &args.exclude)?;
    let is_file = fs::metadata(&args.path).at("search", &args.path)?.is_file();

    let mut left_out = LeftOut::default();
    let (mut matches, mut files_searched, mut bytes) = (Vec::new(), 0, 0);
    'files: for entry in walk::entries(&args.path, &filter) {
        let Entry::File(path) = entry else {
            left_out.count(&entry);
            continue;
        };
        if files_searched + left_out.files() == MAX_FILES {
            left_out.stop(format!("files after the first {MAX_FILES}: search a folder below"));
            break;
        }
        let text = match text(&path, args.max_file_bytes) {
            Ok(text) => text,
            Err(reason) if is_file => return Err(error!("search `{path}`: {}", reason.of_one(args.max_file_bytes))),
            Err(reason) => {
                left_out.skip(reason);
                continue;
            }
        };
        files_searched += 1;
        for found in matcher.matches(lines::split_mark(&text).1) {
            bytes += path.len() + found.bytes();
            if matches.len() == args.max_results || bytes > MAX_RESULT_BYTES {
                left_out.stop(match matches.len() == args.max_results {
                    true => format!("matches after the first {}: `max_results`", args.max_results),
                    false => format!("matches after {MAX_RESULT_BYTES} bytes of results"),
                });
                break 'files;
            }
            matches.push(Found { path: path.clone(), found });
        }
    }
    Ok(Output {
        matches,
        files_searched,
        files_skipped: left_out.files(),
        truncated: left_out.is_stopped(),
        left_out: left_out.reasons(files_searched, args.max_file_bytes),
    })
}

fn check(name: &str, value: u64, least: u64, most: u64) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(error!("{name} `{value}` is not between {least} and {most}"))
}

/// Returns the text of a file, or the reason why it is skipped.
fn text(path: &str, limit: u64) -> Result<String, Reason> {
    let size = fs::metadata(path).map_err(|_| Reason::Unreadable)?.len();
    if size > limit {
        return Err(Reason::TooLarge);
    }
    let bytes = files::read(path, limit).map_err(|_| Reason::Unreadable)?;
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')).ok_or(Reason::Binary)
}
