//! Build script: builds the guests together with the host, in one inner `cargo build`, and lays out a crib in the
//! target folder. The crib is `crib/tools.json` with `crib/tools/bin/NAME.wasm`, a folder that works after it is copied
//! anywhere, and a copy of the demonstration's folders in `crib/demo`. The script knows the path of the guests'
//! workspace and nothing about the guests; without that workspace it does nothing. It also prepares the files that the
//! program embeds: a snapshot of the interpreter of scripts, the SDK, and a bundle of the crib.

#![allow(clippy::print_stdout, reason = "a build script talks to cargo on standard output")]

mod builtin;
mod sdk;
mod snapshot;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "guest";
/// Guest that runs scripts.
const INTERPRETER: &str = "starlark_interpreter";
/// Manifest of the crib, and of the guests that are in it.
const MANIFEST: &str = "tools.json";
/// Folder of the programs of the crib.
const PROGRAMS: &str = "tools/bin";
/// Folders of the demonstration, which writes into its own copy of them.
const DEMO: &str = "cli/demo";
/// Variables of the outer build that the inner one keeps: the sources of crates, and no compiler settings.
const INHERITED: [&str; 6] =
    ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_"];

fn main() -> ExitCode {
    match guests() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("cargo::error={message}");
            ExitCode::FAILURE
        }
    }
}

fn guests() -> Result<(), String> {
    let root =
        path_from("CARGO_MANIFEST_DIR")?.parent().map(Path::to_path_buf).ok_or("the crate has no parent folder")?;
    println!("cargo::rerun-if-changed=build");
    name_engine(&root.join("Cargo.lock"));
    // Symbols are a fifth of the program and serve debuggers only: a panic names its place without them.
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bin=toolcrib=-Wl,--strip-all");
    }
    let workspace = root.join("tools");
    let out = path_from("OUT_DIR")?;
    let interpreter = out.join("interpreter.wasm");
    println!("cargo::rustc-env=TOOLCRIB_INTERPRETER={}", interpreter.display());
    sdk::gather(&root, &out)?;
    if !workspace.join("Cargo.toml").is_file() {
        // An empty file means that there is no interpreter: the program reports it when a script needs one.
        replace(&interpreter, &[])?;
        return builtin::pack(None, &out);
    }
    for sources in ["tools", "guest-sdk", "wit", "tests/guests", DEMO] {
        println!("cargo::rerun-if-changed={}", root.join(sources).display());
    }
    let target = target_folder(&out)?;
    require_target()?;
    build(&root, &target.join("guests"))?;
    let built = read(&target.join("guests").join(TARGET).join(PROFILE).join(format!("{INTERPRETER}.wasm")))?;
    let snapshot = snapshot::of_component(&built)
        .map_err(|error| format!("cannot take a snapshot of `{INTERPRETER}`: {error}"))?;
    replace(&interpreter, &snapshot)?;
    let crib = target.join("crib");
    lay_out(&workspace, &target, &crib)?;
    builtin::pack(Some(&crib), &out)?;
    lay_out_demo(&root.join(DEMO), &crib.join("demo"))
}

/// Passes the version of the engine in the lock file to the program.
fn name_engine(lock: &Path) {
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(lock).unwrap_or_default();
    let version = text.split("name = \"wasmtime\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
    println!("cargo::rustc-env=TOOLCRIB_ENGINE=wasmtime {}", version.unwrap_or("of an unknown version"));
}

fn path_from(variable: &str) -> Result<PathBuf, String> {
    env::var_os(variable).map(PathBuf::from).ok_or_else(|| format!("`{variable}` is not set: run this through cargo"))
}

/// `TARGET/[TRIPLE/]PROFILE/build/PACKAGE/out` → `TARGET`.
fn target_folder(out: &Path) -> Result<PathBuf, String> {
    let above = out
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "build"))
        .and_then(|build| build.parent()?.parent())
        .ok_or_else(|| format!("no target folder above `{}`", out.display()))?;
    let triple = env::var_os("TARGET");
    let cross = above.file_name() == triple.as_deref();
    Ok(if cross { above.parent().unwrap_or(above) } else { above }.to_path_buf())
}

/// Ensures that the standard library for guests is installed.
fn require_target() -> Result<(), String> {
    if has_target()? {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", TARGET]).status();
    let fix = format!("run `rustup target add {TARGET}` for the toolchain that builds toolcrib, then build again");
    match added {
        Ok(status) if status.success() && has_target()? => Ok(()),
        Ok(status) => {
            Err(format!("the Rust target `{TARGET}` is missing and `rustup target add` ended with {status}; {fix}"))
        }
        Err(error) => Err(format!("the Rust target `{TARGET}` is missing and `rustup` cannot be run ({error}); {fix}")),
    }
}

fn has_target() -> Result<bool, String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("cannot run `{}`: {error}", rustc.display()))?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && Path::new(folder.trim()).is_dir())
}

/// Builds the guests, and then the interpreter alone: its features of shared crates would make the other guests larger,
/// and change how they read numbers.
fn build(root: &Path, target: &Path) -> Result<(), String> {
    cargo_build(root, target, &["--workspace", "--exclude", INTERPRETER])?;
    cargo_build(root, target, &["--package", INTERPRETER])
}

fn cargo_build(root: &Path, target: &Path, packages: &[&str]) -> Result<(), String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut inner = Command::new(cargo);
    inner.args(["build", "--locked", "--target", TARGET, "--profile", PROFILE, "--target-dir"]).arg(target);
    inner.arg("--manifest-path").arg(root.join("tools/Cargo.toml")).args(packages);
    for (name, _) in env::vars_os().filter(|(name, _)| belongs_to_the_outer_build(&name.to_string_lossy())) {
        inner.env_remove(name);
    }
    inner.env("CARGO_ENCODED_RUSTFLAGS", path_remapping_flags(root));
    match inner.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("building the guests ended with {status}; see its messages above")),
        Err(error) => Err(format!("cannot run cargo for the guests: {error}")),
    }
}

fn belongs_to_the_outer_build(name: &str) -> bool {
    let compiler = name.starts_with("RUSTC") || matches!(name, "RUSTFLAGS" | "RUSTDOCFLAGS" | "MAKEFLAGS" | "MFLAGS");
    compiler || (name.starts_with("CARGO") && !INHERITED.iter().any(|prefix| name.starts_with(prefix)))
}

/// Flags that keep this machine's folders out of the guests' panic messages, so that builds are reproducible.
fn path_remapping_flags(root: &Path) -> OsString {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| env::home_dir().map(|home| home.join(".cargo")));
    let remaps = [(Some(root.to_path_buf()), "toolcrib"), (home, "cargo")];
    let flags = remaps.into_iter().filter_map(|(folder, name)| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(folder?);
        flag.push(format!("={name}"));
        Some(flag)
    });
    // The separator of `CARGO_ENCODED_RUSTFLAGS`, so that folders with spaces stay whole.
    flags.collect::<Vec<_>>().join(&OsString::from("\u{1f}"))
}

/// Copies the manifest, and every program that it names, from the inner build into the crib.
fn lay_out(workspace: &Path, target: &Path, crib: &Path) -> Result<(), String> {
    let manifest = read(&workspace.join(MANIFEST))?;
    let bin = crib.join(PROGRAMS);
    fs::create_dir_all(&bin).map_err(|error| format!("cannot create `{}`: {error}", bin.display()))?;
    for name in programs(&String::from_utf8_lossy(&manifest)) {
        let built = target.join("guests").join(TARGET).join(PROFILE).join(format!("{name}.wasm"));
        replace(&bin.join(format!("{name}.wasm")), &read(&built)?)?;
    }
    replace(&crib.join(MANIFEST), &manifest)
}

/// Copies the folders of the demonstration, one level deep.
fn lay_out_demo(demo: &Path, copy: &Path) -> Result<(), String> {
    let entries = |folder: &Path| -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(folder).map_err(|error| format!("cannot read `{}`: {error}", folder.display()))?;
        Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
    };
    for folder in entries(demo)?.into_iter().filter(|path| path.is_dir()) {
        let to = copy.join(folder.file_name().unwrap_or_default());
        fs::create_dir_all(&to).map_err(|error| format!("cannot create `{}`: {error}", to.display()))?;
        for file in entries(&folder)? {
            replace(&to.join(file.file_name().unwrap_or_default()), &read(&file)?)?;
        }
    }
    Ok(())
}

/// Names after `./tools/bin/` in a manifest. The library reads manifests completely; this function only collects files.
fn programs(manifest: &str) -> impl Iterator<Item = &str> {
    manifest.split("\"./tools/bin/").skip(1).filter_map(|rest| rest.split('"').next())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

/// Replaces a file so that a reader sees either the old or the new content, and leaves an unchanged file alone.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let fresh = path.with_extension(format!("{}.tmp", std::process::id()));
    let moved: io::Result<()> = fs::write(&fresh, bytes).and_then(|()| fs::rename(&fresh, path));
    moved.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
}
