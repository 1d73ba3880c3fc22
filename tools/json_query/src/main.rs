//! Tool `json_query`: runs a jq filter on JSON.

mod jq;

use std::process::ExitCode;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toolcrib_guest::{Error, error, files};

/// Mark at the beginning of some files.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const MAX_FILTER_BYTES: usize = 10_000;
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;
const MAX_RESULTS: usize = 1000;
const MAX_RESULT_BYTES: usize = 128 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    filter: String,
    /// Kept as text, so that no digit of a number is lost.
    #[serde(default, deserialize_with = "present")]
    input: Option<Box<RawValue>>,
    path: Option<String>,
    #[serde(default = "default_results")]
    max_results: usize,
}

fn default_results() -> usize {
    100
}

/// Accepts `null` as an input.
fn present<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(from).map(Some)
}

#[derive(Serialize)]
struct Output {
    /// Outputs of the filter.
    results: Vec<Box<RawValue>>,
    truncated: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let Args { filter, input, path, max_results } = args;
    if filter.len() > MAX_FILTER_BYTES {
        return Err(error!("the filter is over the limit of {MAX_FILTER_BYTES} bytes"));
    }
    if !(1..=MAX_RESULTS).contains(&max_results) {
        return Err(error!("max_results `{max_results}` is not between 1 and {MAX_RESULTS}"));
    }
    let json = match (&input, &path) {
        // `null` beside a path is no input.
        (Some(input), Some(path)) if input.get() == "null" => files::read(path, MAX_FILE_BYTES)?,
        (Some(input), None) => input.get().as_bytes().to_vec(),
        (None, Some(path)) => files::read(path, MAX_FILE_BYTES)?,
        _ => return Err(error!("give exactly one of `input` and `path`")),
    };
    let filter = jq::compile(&filter)?;
    let json = json.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&json);
    let mut output = Output { results: Vec::new(), truncated: false };
    let mut bytes = 0;
    jq::run(&filter, json, |result| {
        bytes += result.get().len() + 1;
        output.truncated = output.results.len() == max_results || bytes > MAX_RESULT_BYTES;
        if !output.truncated {
            output.results.push(result);
        }
        !output.truncated
    })?;
    Ok(output)
}
