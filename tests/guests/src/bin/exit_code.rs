//! Prints the requested texts unchanged, and exits with the requested code.

use std::io::{self, Write};
use std::process;

use serde::Deserialize;
use toolcrib_guest::Error;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    code: i32,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
}

fn run(args: Args) -> Result<(), Error> {
    io::stdout().write_all(args.stdout.as_bytes())?;
    io::stdout().flush()?;
    io::stderr().write_all(args.stderr.as_bytes())?;
    process::exit(args.code)
}

fn main() -> process::ExitCode {
    toolcrib_guest::command(run)
}
