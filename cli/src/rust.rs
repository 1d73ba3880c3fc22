//! The Rust toolchain of whoever writes tools: whether it compiles for the sandbox, and a build with it. What is started here
//! runs on the author's word and with the author's rights; no call of a tool leads here.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::Context;
use serde::Deserialize;

use crate::render::{self, Advice};

/// What tools are compiled for.
pub(crate) const TARGET: &str = "wasm32-wasip2";
/// What to do where there is no Rust.
const INSTALL: &str = "install Rust from https://rustup.rs; a tool in another language is built by its own compiler, and \
                       `toolcrib describe` then writes what it says of itself";

/// Whether the toolchain that is used in a folder has the standard library for tools.
///
/// # Errors
///
/// Where there is no toolchain.
pub(crate) fn has_target(folder: &Path) -> io::Result<bool> {
    let mut rustc = Command::new("rustc");
    let output = rustc.args(["--print", "target-libdir", "--target", TARGET]).current_dir(folder).output()?;
    Ok(output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Compiles the package in a folder, and gives the components that came of it. The messages of what runs go to standard error.
pub(crate) async fn build(folder: &Path, debug: bool) -> anyhow::Result<Vec<PathBuf>> {
    let manifest = folder.join("Cargo.toml");
    let Ok(manifest) = manifest.canonicalize() else {
        let hint = "name the folder of a Rust package, or begin one with `toolcrib new tool NAME`";
        return Err(Advice::new(format!("there is no `{}`", manifest.display()), hint).into());
    };
    add_target(folder)?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--target", TARGET, "--message-format", "json-render-diagnostics"]);
    cargo.args((!debug).then_some("--release")).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut cargo = cargo.spawn().map(Running).map_err(|error| missing("cargo", &error))?;
    let output = cargo.0.stdout.take().context("cargo has no output")?;
    // Whoever interrupts is not kept waiting: what runs ends with this.
    let components = tokio::task::spawn_blocking(move || components(output, &manifest)).await??;
    let status = cargo.0.wait().context("cannot wait for cargo")?;
    if !status.success() {
        let hint = "cargo's messages above say what is wrong";
        return Err(Advice::new(format!("building `{}` failed ({status})", folder.display()), hint).into());
    }
    Ok(components)
}

/// Sees that the standard library for tools is there, or has it installed.
fn add_target(folder: &Path) -> anyhow::Result<()> {
    if has_target(folder).map_err(|error| missing("rustc", &error))? {
        return Ok(());
    }
    render::aside(&format!("info: installing the Rust target `{TARGET}`"));
    // Its output is no result of ours.
    let mut rustup = Command::new("rustup");
    let added = rustup.args(["target", "add", TARGET]).current_dir(folder).stdout(io::stderr()).status();
    if added.as_ref().is_ok_and(ExitStatus::success) && has_target(folder)? {
        return Ok(());
    }
    let why = added.map_or_else(|error| error.to_string(), |status| status.to_string());
    let hint = format!("run `rustup target add {TARGET}`, or install the target as your system installs Rust");
    Err(Advice::new(format!("the Rust target `{TARGET}` is missing, and rustup did not add it ({why})"), hint).into())
}

/// The components among the artifacts that cargo names, of the package of this manifest alone.
fn components(output: ChildStdout, manifest: &Path) -> anyhow::Result<Vec<PathBuf>> {
    #[derive(Deserialize)]
    struct Artifact {
        manifest_path: PathBuf,
        filenames: Vec<PathBuf>,
    }
    let mut components = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line.context("cannot read what cargo says")?;
        // Messages of other kinds have other members.
        let Ok(artifact) = serde_json::from_str::<Artifact>(&line) else { continue };
        if artifact.manifest_path.canonicalize().is_ok_and(|path| path == manifest) {
            components.extend(artifact.filenames.into_iter().filter(|file| file.extension() == Some("wasm".as_ref())));
        }
    }
    Ok(components)
}

fn missing(program: &str, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => Advice::new(format!("there is no `{program}` here"), INSTALL).into(),
        _ => anyhow::anyhow!("cannot run `{program}`: {error}"),
    }
}

/// A process, which ends at the latest with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
