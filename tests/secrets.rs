//! Secrets by name: readable only by their owner, sent in requests to one host, and found nowhere else, in no encoding,
//! after any action of a tool, a server or a run.

mod echo;
mod everywhere;
mod placing;
mod repeated;
#[cfg(target_os = "linux")]
mod store;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran};

/// Value with characters that every encoding writes differently.
const CANARY: &str = "canary~7f/Q+3=x&9Zk";

/// Stores a secret.
fn keep(crib: &Crib, name: &str, value: &str) -> Ran {
    Ran::with_input(&mut crib.toolcrib(&["secret", "set", name]), value)
}

/// Manifest entry of the guest that searches for the secret, which is sent to this host.
fn entry(crib: &Crib, host: &str) -> Value {
    let mut entry = crib.entry("canary");
    entry["capabilities"] = json!({
        "files": "write",
        "network": [host],
        "secrets": [{"name": "canary", "host": host, "header": "Authorization", "format": "Bearer {}"}],
    });
    entry
}

/// Creates a crib with that tool, and the secret.
fn crib(host: &str) -> Crib {
    let crib = Crib::new();
    let entry = entry(&crib, host);
    crib.manifest(&json!({ "tools": [entry] }));
    assert_eq!(keep(&crib, "canary", CANARY).code, Some(0));
    crib
}
