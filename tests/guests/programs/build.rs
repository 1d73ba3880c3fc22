//! Compiles the guests of the tests, below the target folder of the outer build.

#![allow(clippy::print_stdout, reason = "a build script talks to cargo on standard output")]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toolcrib_programs::{Guests, target_folder};

/// Sources of the guests, below the root of the repository.
const SOURCES: [&str; 5] = ["tests/guests", "guest-sdk", "wit", "tools/Cargo.toml", "tools/Cargo.lock"];

fn main() -> ExitCode {
    match compile() {
        Ok(folder) => {
            println!("cargo::rustc-env=TOOLCRIB_TEST_GUESTS={}", folder.display());
            ExitCode::SUCCESS
        }
        Err(message) => {
            println!("cargo::error={message}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the folder of the programs.
fn compile() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).ok_or("no repository around the crate")?;
    for path in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    let out = env::var_os("OUT_DIR").map(PathBuf::from).ok_or("`OUT_DIR` is not set: run this through cargo")?;
    let guests = Guests::new(root, &target_folder(&out)?);
    guests.build(&packages(&root.join("tests/guests"))?)?;
    guests.program("echo").parent().map(Path::to_path_buf).ok_or_else(|| "no folder of programs".to_owned())
}

/// Names of the packages in and below a folder that belong to the guests' workspace.
fn packages(folder: &Path) -> Result<Vec<String>, String> {
    let failed = |error: std::io::Error| format!("cannot read `{}`: {error}", folder.display());
    let mut manifests = vec![folder.join("Cargo.toml")];
    for entry in fs::read_dir(folder).map_err(failed)? {
        manifests.push(entry.map_err(failed)?.path().join("Cargo.toml"));
    }
    let mut names = Vec::new();
    for text in manifests.iter().filter_map(|manifest| fs::read_to_string(manifest).ok()) {
        let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        if let (Some(name), true) = (name, text.contains("\nworkspace = \"")) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}
