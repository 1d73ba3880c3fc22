//! Tool `fs_search`: searches the lines of text files for a pattern.

mod matcher;
mod rest;

use std::fs;
use std::process::ExitCode;

use file_selection::{
    Entry, Filter, LeftOut, MAX_FILE_BYTES, MAX_FILES, check, default_exclude, default_file_bytes, default_path,
};
use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, PathContext, error, lines};

use crate::matcher::{Match, Matcher};
use crate::rest::Rest;

const MAX_RESULTS: usize = 1000;
const MAX_CONTEXT: usize = 10;
const MAX_RESULT_BYTES: usize = 128 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    pattern: String,
    #[serde(default = "default_path")]
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

fn default_results() -> usize {
    100
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
    let filter = Filter::new(&args.include, &args.exclude)?;
    let is_file = fs::metadata(&args.path).at("search", &args.path)?.is_file();

    let mut left_out = LeftOut::default();
    let (mut matches, mut files_searched, mut bytes) = (Vec::new(), 0, 0);
    // Once the result is full, further matches are only counted.
    let mut rest: Option<Rest> = None;
    for entry in file_selection::entries(&args.path, &filter) {
        let Entry::File(path) = entry else {
            left_out.count(&entry);
            continue;
        };
        if files_searched + left_out.files() == MAX_FILES {
            match &mut rest {
                Some(rest) => rest.end_early(),
                None => left_out.stop(format!("files after the first {MAX_FILES}: search a folder below")),
            }
            break;
        }
        let text = match file_selection::text(&path, args.max_file_bytes) {
            Ok(text) => text,
            Err(reason) if is_file => return Err(error!("search `{path}`: {}", reason.of_one(args.max_file_bytes))),
            Err(reason) => {
                left_out.skip(reason);
                continue;
            }
        };
        files_searched += 1;
        let mut found = matcher.matches(lines::split_mark(&text).1);
        // The match that is the first without room.
        let mut first = 0;
        while rest.is_none()
            && let Some(found) = found.next()
        {
            bytes += path.len() + found.bytes();
            if matches.len() < args.max_results && bytes <= MAX_RESULT_BYTES {
                matches.push(Found { path: path.clone(), found });
                continue;
            }
            let full = Rest::new(match matches.len() == args.max_results {
                true => format!("`max_results` is {}", args.max_results),
                false => format!("a result has at most {MAX_RESULT_BYTES} bytes"),
            });
            first = 1;
            rest = Some(full);
        }
        if let Some(rest) = &mut rest
            && !rest.add(first + found.count())
        {
            rest.end_early();
            break;
        }
    }
    if let Some(rest) = rest {
        left_out.stop(rest.describe());
    }
    Ok(Output {
        matches,
        files_searched,
        files_skipped: left_out.files(),
        truncated: left_out.is_stopped(),
        left_out: left_out.reasons(files_searched, args.max_file_bytes),
    })
}
