//! Steps from the published build to the interpreter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use wasm_encoder::{ComponentSection, CustomSection};
use wit_component::ComponentEncoder;

use crate::package::Build;
use crate::{merge, packages};

/// Target of the guest: it imports nothing but what its contract names.
const TARGET: &str = "wasm32-unknown-unknown";
/// Custom section that describes the language.
const LANGUAGE: &str = "toolcrib:language";
/// Environment variables with the paths of the standard library and of packages, for the build of the guest.
const ARCHIVES: [&str; 2] = ["CPYTHON_ARCHIVE", "CPYTHON_PACKAGES"];

/// Builds the interpreter with the packages of a folder, and writes it to a file.
///
/// # Errors
///
/// The reason why a step failed.
pub(crate) fn build(build: Build, interpreter: &Path, packages: Option<&Path>) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("target/steps");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("cannot remove `{}`: {error}", folder.display()))?;
    }
    fs::create_dir_all(&folder).map_err(|error| format!("cannot create `{}`: {error}", folder.display()))?;
    let package = build.fetch(&folder)?;
    let archives = [folder.join("library.zip"), folder.join("packages.zip")];
    write(&archives[0], &package.archive)?;
    write(&archives[1], &packages::archive(packages)?)?;
    let guest = read(&guest(build, root, &archives, merge::memory(&package.module)?)?)?;
    let merged = merge::modules(&package.module, &guest)?;
    let component = ComponentEncoder::default().module(&merged).and_then(|encoder| encoder.validate(true).encode());
    let component = component.map_err(|error| format!("{error:#}"))?;
    let started = folder.join("component.wasm");
    write(&started, &component)?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["run", "--quiet", "--release", "--locked", "--manifest-path"]).arg(root.join("../snapshot/Cargo.toml"));
    let snapshot = folder.join("snapshot.wasm");
    if build == Build::Numeric {
        cargo.args(["--features", "compiled"]);
    }
    cargo.arg("--target-dir").arg(root.join("target/snapshot")).arg("--").arg(&started).arg(&snapshot);
    run(cargo, "taking the snapshot")?;
    let mut bytes = read(&snapshot)?;
    let language = build.language();
    let described = json!({
        "language": language.name,
        "version": language.version,
        "implementation": language.implementation,
        "guide": language.guide,
    });
    let data = described.to_string().into_bytes();
    CustomSection { name: LANGUAGE.into(), data: data.into() }.append_to_component(&mut bytes);
    // Whole or not at all.
    let mut unfinished = interpreter.as_os_str().to_owned();
    unfinished.push(".new");
    write(unfinished.as_ref(), &bytes)?;
    let renamed = fs::rename(&unfinished, interpreter);
    renamed.map_err(|error| format!("cannot write `{}`: {error}", interpreter.display()))
}

/// Compiles the guest, with its data from an address on, and returns its path.
fn guest(build: Build, root: &Path, archives: &[PathBuf; 2], data: u64) -> Result<PathBuf, String> {
    let target = root.join("target/guest");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--quiet",
        "--locked",
        "--profile",
        "guest",
        "--package",
        "cpython_guest",
        "--target",
        TARGET,
    ]);
    if build == Build::Numeric {
        cargo.args(["--features", "numeric"]);
    }
    cargo.arg("--manifest-path").arg(root.join("Cargo.toml")).arg("--target-dir").arg(&target);
    cargo.env("RUSTFLAGS", format!("-C link-arg=--import-memory -C link-arg=--global-base={data}"));
    cargo.envs(ARCHIVES.into_iter().zip(archives));
    run(cargo, &format!("compiling the guest; `rustup target add {TARGET}` adds its target"))?;
    Ok(target.join(TARGET).join("guest/cpython_guest.wasm"))
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command, doing: &str) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{doing}: {status}")),
        Err(error) => Err(format!("{doing}: {error}")),
    }
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}
