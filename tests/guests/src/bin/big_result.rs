//! Answers with one JSON string of as many letters as it is told to.

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
