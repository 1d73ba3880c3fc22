//! Tries to resolve a name directly, although only listed hosts are granted: a look-up reveals the name to the network.

use std::net::ToSocketAddrs;
use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::json;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    name: String,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        Ok(match (args.name.as_str(), 80).to_socket_addrs() {
            Ok(addresses) => json!({ "resolved": addresses.count() }),
            Err(error) => json!({ "resolved": null, "error": error.to_string() }),
        })
    })
}
