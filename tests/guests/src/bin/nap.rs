//! Creates the requested file, sleeps for the requested number of milliseconds, and then succeeds or fails as requested.

use std::fs;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use toolcrib_guest::{Value, error, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    fail: bool,
    /// File that shows that the call has begun.
    mark: Option<String>,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| -> Result<Value, toolcrib_guest::Error> {
        if let Some(mark) = args.mark {
            fs::write(mark, "").map_err(|why| error!("{why}"))?;
        }
        thread::sleep(Duration::from_millis(args.ms));
        if args.fail { Err(error!("told to fail")) } else { Ok(json!({"slept": args.ms})) }
    })
}
