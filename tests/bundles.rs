//! Bundles: one file with tools, packed from sources and used in their place without unpacking.

mod hostile;
mod pack;
mod source;
mod trusted;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran};

/// Size of a program in a list of files, which changes with each change of the SDK.
const SIZE: &str = r"(application/wasm +)\d+";

/// Crib that nobody trusts, with the tools `echo` and `env_dump`; the second requests a variable.
fn crib() -> Crib {
    let mut crib = Crib::new();
    crib.trusts = false;
    let mut dump = crib.entry("env_dump");
    dump["capabilities"] = json!({"env": ["TOKEN"]});
    dump["description"] = json!("Prints the variables");
    crib.manifest(&json!({ "tools": [crib.entry("echo"), dump] }));
    fs::write(crib.path("LICENSE"), "Do what you like.\n").unwrap();
    fs::write(crib.path(".env"), "TOKEN=canary").unwrap();
    crib
}

/// Packs a source of a crib into a file, and returns the output.
fn pack(crib: &Crib, source: &str, file: &str) -> Ran {
    crib.run(&["bundle", "pack", source, "-o", file, "--json"])
}

/// Packs a source that is sound, and returns the description of the bundle.
fn packed(crib: &Crib, source: &str, file: &str) -> Value {
    let ran = pack(crib, source, file);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Crib with nothing but a bundle `x.tar`, packed from [`crib`].
fn with_bundle() -> Crib {
    let from = crib();
    packed(&from, "tools.json", "x.tar");
    let mut crib = Crib::new();
    crib.trusts = false;
    fs::copy(from.path("x.tar"), crib.path("x.tar")).unwrap();
    crib
}

/// Paths of the files in a bundle.
fn files(path: &Path) -> Vec<String> {
    let bundle = toolcrib_bundle::Bundle::open(fs::File::open(path).unwrap()).unwrap();
    bundle.files().iter().map(|file| file.path.to_string()).collect()
}
