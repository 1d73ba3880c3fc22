//! Tries to resolve a name by itself, past any list of names: a look-up tells the outside what it asks for.

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
