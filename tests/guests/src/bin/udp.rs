//! Tries to send a datagram, although only listed hosts are granted, and reports the result.

use std::net::UdpSocket;
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
        let sent = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"out", &args.address));
        Ok(match sent {
            Ok(_) => json!({ "sent": true }),
            Err(error) => json!({ "sent": false, "error": error.to_string() }),
        })
    })
}
