//! Computes for about the requested number of milliseconds, then reports the number of iterations.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde::Deserialize;
use toolcrib_guest::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    ms: u64,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        let start = Instant::now();
        let mut turns = 0_u64;
        while start.elapsed() < Duration::from_millis(args.ms) {
            (0..10_000).for_each(|_| turns = black_box(turns + 1));
        }
        Ok(json!({ "turns": turns }))
    })
}
