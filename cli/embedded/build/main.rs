//! Build script: prepares the files that the program embeds (the interpreters, a bundle of the shipped tools, the SDK), and lays out a crib in the target folder. The crib is `crib/tools.json` with `crib/tools/bin/NAME.wasm`, a folder that
//! works after it is copied anywhere, and a copy of the demonstration's folders in `crib/demo`. Without the guests' workspace
//! it does nothing.

#![allow(clippy::print_stdout, reason = "a build script talks to cargo on standard output")]

mod builtin;
mod compressed;
mod sdk;

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toolcrib_bundle::Digest;
use toolcrib_programs::{Group, INTERPRETER, MANIFEST, Programs, Repository, target_folder};

/// Folder of the programs in the crib.
const PROGRAMS: &str = "tools/bin";
/// Folders of the demonstration, which writes into its own copy of them.
const DEMO: &str = "cli/demo";

fn main() -> ExitCode {
    match prepare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            println!("cargo::error={message}");
            ExitCode::FAILURE
        }
    }
}

fn prepare() -> Result<(), String> {
    let package = path_from("CARGO_MANIFEST_DIR")?;
    let root = package.ancestors().nth(2).ok_or("the crate is not two levels below the repository")?.to_path_buf();
    println!("cargo::rerun-if-changed=build");
    name_engine(&root.join("Cargo.lock"));
    let out = path_from("OUT_DIR")?;
    sdk::gather(&root, &out)?;
    let Some(repository) = Repository::at(&root) else {
        // Without an interpreter, the program reports it when a script needs one.
        name_component(&[], &out, "interpreter")?;
        for language in Group::LANGUAGES {
            name_component(&[], &out, language.name())?;
            replace(&out.join(format!("{}.txt", language.name())), b"")?;
        }
        return builtin::pack(None, &out);
    };
    println!("cargo::rerun-if-env-changed={}", toolcrib_programs::FROM_SOURCE);
    for path in repository.dependencies().into_iter().chain([root.join(DEMO)]) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let target = target_folder(&out)?;
    let built = repository.programs(Group::Interpreter, &target)?;
    name_component(built.get(INTERPRETER).ok_or("there is no interpreter")?, &out, "interpreter")?;
    for language in Group::LANGUAGES {
        let (built, name) = (repository.programs(language, &target)?, language.name());
        let component = built.into_values().next().ok_or_else(|| format!("there is no interpreter of {name}"))?;
        name_component(&component, &out, name)?;
        let workspace = language.own_workspace().ok_or_else(|| format!("{name} has no workspace"))?;
        replace(&out.join(format!("{name}.txt")), &read(&root.join(workspace).join("guide.txt"))?)?;
    }
    let (crib, manifest) = (target.join("crib"), read(&root.join("tools").join(MANIFEST))?);
    let programs = repository.programs(Group::Tools, &target)?;
    lay_out(&manifest, &programs, &crib)?;
    builtin::pack(Some((manifest, programs)), &out)?;
    lay_out_demo(&root.join(DEMO), &crib.join("demo"))
}

/// Passes an interpreter to the program: its compressed bytes, size and digest.
fn name_component(bytes: &[u8], out: &Path, name: &str) -> Result<(), String> {
    compressed::write(bytes, out, name)?;
    let digest = if bytes.is_empty() { String::new() } else { Digest::of(bytes).to_string() };
    println!("cargo::rustc-env=TOOLCRIB_{}_DIGEST={digest}", name.to_uppercase());
    Ok(())
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

/// Copies the manifest and the programs that it names into the crib.
fn lay_out(manifest: &[u8], programs: &Programs, crib: &Path) -> Result<(), String> {
    let bin = crib.join(PROGRAMS);
    fs::create_dir_all(&bin).map_err(|error| format!("cannot create `{}`: {error}", bin.display()))?;
    for (name, program) in programs {
        replace(&bin.join(format!("{name}.wasm")), program)?;
    }
    replace(&crib.join(MANIFEST), manifest)
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
