//! Passes one handle to the host as many times as requested, in one list, repeatedly.

use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Error, Value};
use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::io::poll::poll;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    times: usize,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| -> Result<Value, Error> {
        let always = subscribe_duration(0);
        let list = vec![&always; args.times];
        loop {
            poll(&list);
        }
    })
}
