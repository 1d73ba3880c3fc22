//! Tool `fs_read_lines`: reads a range of lines of a text file.

use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, error, files, lines};

const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
const MAX_RESULT_BYTES: usize = 128 * 1024;
const MAX_LINES: usize = 5000;
const DEFAULT_LINES: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
    #[serde(default = "first")]
    start: u64,
    end: Option<u64>,
    #[serde(default)]
    numbered: bool,
}

fn first() -> u64 {
    1
}

#[derive(Serialize)]
struct Output {
    path: String,
    start: usize,
    /// Last line in `content`; 0 for an empty file.
    end: usize,
    total_lines: usize,
    /// Lines with their line breaks.
    content: String,
    /// `true` if requested lines are left for another call; without a requested end, if any lines are left.
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_start: Option<usize>,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { path, start, end, numbered } = args;
    // No file has so many lines.
    let number = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
    let (start, end) = (number(start), end.map(number));
    if start == 0 {
        return Err(error!("start `0` is not a line; the first line is 1"));
    }
    if let Some(end) = end.filter(|end| *end < start) {
        return Err(error!("end `{end}` is before start `{start}`"));
    }
    let text = files::read_text(&path, MAX_FILE_BYTES)?;
    // The mark at the beginning of a file is not a part of its first line, as for the tools that edit lines.
    let text = lines::split_mark(&text).1;
    let total_lines = text.split_inclusive('\n').count();
    if start > total_lines.max(1) {
        return Err(error!("start `{start}` is past the end of `{path}`, which has {total_lines} lines"));
    }
    let wanted = end.unwrap_or(total_lines).min(total_lines);
    let count = if end.is_some() { MAX_LINES } else { DEFAULT_LINES };
    let mut content = String::new();
    let mut last = start - 1;
    for (index, line) in text.split_inclusive('\n').enumerate().take(wanted).skip(start - 1).take(count) {
        let number = if numbered { format!("{}\t", index + 1) } else { String::new() };
        if content.len() + number.len() + line.len() > MAX_RESULT_BYTES {
            break;
        }
        content.push_str(&number);
        content.push_str(line);
        last = index + 1;
    }
    if last < start && wanted >= start {
        return Err(error!(
            "line {start} of `{path}` is longer than {MAX_RESULT_BYTES} bytes; use `fs_read_file` to read a part of it"
        ));
    }
    let truncated = last < wanted;
    Ok(Output { path, start, end: last, total_lines, content, truncated, next_start: truncated.then_some(last + 1) })
}
