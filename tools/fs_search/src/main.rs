//! Tool `fs_search`: searches the lines of text files for a pattern.

mod matcher;
mod walk;

use std::fs;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error, files};

use crate::matcher::{Match, Matcher};

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
    fs::metadata(&args.path).at("search", &args.path)?;

    let mut output = Output { matches: Vec::new(), files_searched: 0, files_skipped: 0, truncated: false };
    let mut bytes = 0;
    for path in walk::files(&args.path, &filter) {
        if output.files_searched + output.files_skipped == MAX_FILES {
            output.truncated = true;
            break;
        }
        let Some(text) = path.as_deref().and_then(|path| text(path, args.max_file_bytes)) else {
            output.files_skipped += 1;
            continue;
        };
        output.files_searched += 1;
        let path = path.unwrap_or_default();
        for found in matcher.matches(&text) {
            bytes += path.len() + found.bytes();
            if output.matches.len() == args.max_results || bytes > MAX_RESULT_BYTES {
                output.truncated = true;
                return Ok(output);
            }
            output.matches.push(Found { path: path.clone(), found });
        }
    }
    Ok(output)
}

fn check(name: &str, value: u64, least: u64, most: u64) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(error!("{name} `{value}` is not between {least} and {most}"))
}

/// Text of a file; `None` if it is skipped.
fn text(path: &str, limit: u64) -> Option<String> {
    files::read_text(path, limit).ok().filter(|text| !text.contains('\0'))
}
