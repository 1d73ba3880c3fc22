//! Installed bundles: `toolcrib install`, `update`, `outdated` and `remove`, the lock and the user's records.

mod after;
#[cfg(target_os = "linux")]
mod answers;
mod beside;
mod calls;
mod cases;
mod locks;
#[cfg(unix)]
mod recipes;
#[cfg(unix)]
mod stores;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use toolcrib_bundle::{BundleBuilder, BundledTool, MediaType, Metadata};

use crate::crib::{Crib, Ran, guest};

/// Name of the bundle of these tests.
const NAME: &str = "acme/weather";
/// File that it is installed from.
const FILE: &str = "./weather.tar";

/// Release of a bundle with one tool or several, all of the guest `env_dump`.
#[derive(Clone)]
struct Release {
    name: &'static str,
    version: &'static str,
    tools: Vec<Value>,
    /// Further bytes, to make the release larger or another one.
    padding: Vec<u8>,
}

impl Release {
    fn new(version: &'static str) -> Self {
        let tools = vec![tool("forecast", "Forecasts rain.", &["TOKEN"]), tool("now", "Shows the sun.", &[])];
        Self { name: NAME, version, tools, padding: Vec::new() }
    }

    /// Changes the first tool.
    fn with(mut self, change: impl FnOnce(&mut Value)) -> Self {
        change(&mut self.tools[0]);
        self
    }

    /// Writes the bundle file, and returns the digest of the bundle.
    fn write(&self, crib: &Crib, file: &str) -> String {
        let program = fs::read(guest("env_dump")).expect("the guest was built");
        let manifest = json!({ "tools": self.tools }).to_string();
        let mut builder = BundleBuilder::new(Metadata::new(self.name, self.version)).unwrap();
        builder.add_bytes("tools.json", MediaType::TOOLS_JSON, manifest).unwrap();
        builder.add_bytes("tools/bin/env_dump.wasm", MediaType::WASM, program).unwrap();
        builder.add_bytes("notes.txt", MediaType::TEXT, self.padding.clone()).unwrap();
        for tool in &self.tools {
            let mut listed = BundledTool::new(tool["name"].as_str().unwrap(), "tools.json".parse().unwrap());
            listed.program = Some("tools/bin/env_dump.wasm".parse().unwrap());
            builder.add_tool(listed);
        }
        let mut bytes = Vec::new();
        let written = builder.write_to(&mut bytes).unwrap();
        // Replaced at once: a process of a test may be reading it.
        let new = crib.path(format!("{file}.new"));
        fs::write(&new, bytes).unwrap();
        fs::rename(new, crib.path(file)).unwrap();
        written.manifest.to_string()
    }
}

/// Entry of a tool in a manifest.
fn tool(name: &str, description: &str, env: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "command": ["./tools/bin/env_dump"],
        "schema": {"type": "object", "properties": {"city": {"type": "string"}}},
        "capabilities": {"env": env},
    })
}

/// Crib that nobody trusts, without a manifest.
fn crib() -> Crib {
    let mut crib = Crib::new();
    crib.trusts = false;
    crib
}

/// Crib with an installed release 1.2.0 with all permissions; also returns its digest.
fn installed() -> (Crib, String) {
    let crib = crib();
    let digest = Release::new("1.2.0").write(&crib, FILE);
    let ran = crib.run(&["install", FILE, &format!("--trust={digest}")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    (crib, digest)
}

fn lock_file(crib: &Crib) -> PathBuf {
    crib.path("toolcrib.lock")
}

fn lock(crib: &Crib) -> String {
    fs::read_to_string(lock_file(crib)).unwrap_or_default()
}

/// The user's records of installations.
fn records(crib: &Crib) -> Vec<Value> {
    let text = fs::read(crib.path("home/.local/state/toolcrib/installed.json")).unwrap_or_else(|_| b"null".into());
    let records: Value = serde_json::from_slice(&text).unwrap();
    records["installed"].as_array().cloned().unwrap_or_default()
}

/// Stored file of a bundle.
fn stored(crib: &Crib, digest: &str) -> PathBuf {
    crib.path("home/.local/share/toolcrib/bundles").join(format!("{}.tar", digest.replace(':', "-")))
}

/// Lines of JSON that a command printed.
fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran:?}")))
        .collect()
}
