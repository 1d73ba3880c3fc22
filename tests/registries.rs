//! Bundles and components in registries on loopback, through the built program.

mod hostile;
mod interrupted;
mod login;
mod moved;
mod server;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_bundle::{Bundle, BundleBuilder, BundledTool, MediaType, Metadata};

use crate::crib::{Crib, Ran, guest};

pub(crate) use server::Registry;

/// Command of the program with a cache of its own.
fn command(crib: &Crib, args: &[&str]) -> std::process::Command {
    let mut command = crib.toolcrib(args);
    command.env("TOOLCRIB_CACHE_DIR", crib.path("cache"));
    command
}

fn run(crib: &Crib, args: &[&str]) -> Ran {
    Ran::of(&mut command(crib, args))
}

/// Runs a command that succeeds, and returns its JSON object.
fn json(crib: &Crib, args: &[&str]) -> Value {
    let ran = run(crib, &[args, &["--json"]].concat());
    assert_eq!(ran.code, Some(0), "{args:?} {ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Writes a bundle with one tool and this many further bytes, and returns its file and digest.
fn bundle(folder: &Path, bytes: usize) -> (PathBuf, String) {
    let manifest = br#"{"tools":[{"name":"echo","command":["./tools/bin/echo"]}]}"#;
    let mut builder = BundleBuilder::new(Metadata::new("acme/echo", "1.2.0+build")).unwrap();
    builder.add_bytes("tools.json", MediaType::TOOLS_JSON, manifest).unwrap();
    builder.add_bytes("tools/bin/echo.wasm", MediaType::WASM, fs::read(guest("echo")).unwrap()).unwrap();
    let data: String = (0..bytes / 8).map(|number| format!("{number:07}\n")).collect();
    builder.add_bytes("data.txt", MediaType::TEXT, data).unwrap();
    builder.add_tool(BundledTool::new("echo", "tools.json".parse().unwrap()));
    let path = folder.join("bundle.tar");
    let written = builder.write_to(File::create(&path).unwrap()).unwrap();
    (path, written.manifest.to_string())
}

/// Crib with a bundle, and a registry that has it under the tag `1`.
fn published(bytes: usize) -> (Crib, Registry, String) {
    let (crib, registry) = (Crib::new(), Registry::start());
    let (path, digest) = bundle(crib.dir.path(), bytes);
    let pushed = json(&crib, &["push", path.to_str().unwrap(), &registry.reference("echo:1")]);
    assert_eq!(pushed["digest"], digest);
    registry.requests();
    (crib, registry, digest)
}

/// Opens a file as a bundle, checks all of it, and returns the digest.
fn opened(path: &Path) -> String {
    let mut bundle = Bundle::open(File::open(path).unwrap()).unwrap();
    bundle.verify().unwrap();
    bundle.digest().to_string()
}

/// Kinds of the entries of the cache, sorted.
fn cached(crib: &Crib) -> Vec<String> {
    let listed = json(crib, &["cache", "list"]);
    let mut kinds: Vec<String> =
        listed.as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect();
    kinds.sort();
    kinds
}
