//! Opens a file repeatedly and keeps every handle until the host refuses one; then reports the number of handles.

use std::fs::File;
use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    path: String,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        let mut kept = Vec::new();
        loop {
            match File::open(&args.path) {
                Ok(file) => kept.push(file),
                Err(error) => {
                    return Ok(json!({ "opened": kept.len(), "error": error.to_string() }));
                }
            }
        }
    })
}
