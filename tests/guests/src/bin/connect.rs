//! Tries a raw TCP connection, and reports the result.

use std::net::TcpStream;
use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    address: String,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        Ok(match TcpStream::connect(&args.address) {
            Ok(_) => json!({ "connected": true }),
            Err(error) => json!({ "connected": false, "error": error.to_string() }),
        })
    })
}
