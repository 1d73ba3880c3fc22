//! Answers with one JSON string of the requested length.

use std::process::ExitCode;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    bytes: usize,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| Ok("x".repeat(args.bytes)))
}
