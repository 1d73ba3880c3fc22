//! The Rust toolchain: checks its target and builds tool packages. Processes started here run with the user's own rights;
//! no tool call starts one.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use anyhow::Context;
use serde::Deserialize;
use toolcrib::policy::canonical;

use crate::build_folder::BuildFolder;
use crate::render::{self, Advice};

/// Compilation target of tools.
pub(crate) const TARGET: &str = "wasm32-wasip2";
/// Hint if Rust is not installed.
const INSTALL: &str = "install Rust from https://rustup.rs; for other languages, use their own compilers and \
                       add tool metadata with `toolcrib describe`";

/// Script of projects in other languages, as `toolcrib new tool --lang` creates it.
const SCRIPT: &str = "build";
/// Variable of cargo with the author's own target folder.
const TARGET_VARIABLE: &str = "CARGO_TARGET_DIR";

/// `true` if the toolchain of a folder has the standard library for [`TARGET`].
///
/// # Errors
///
/// Fails if there is no toolchain.
pub(crate) fn has_target(folder: &Path) -> io::Result<bool> {
    let mut rustc = Command::new("rustc");
    let output = rustc.args(["--print", "target-libdir", "--target", TARGET]).current_dir(folder).output()?;
    Ok(output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Compiles the package in a folder and returns the components. Messages of cargo go to standard error. Without a target
/// folder of the author's, `shared` takes what is compiled.
pub(crate) async fn build(folder: &Path, debug: bool, shared: Option<&BuildFolder>) -> anyhow::Result<Vec<PathBuf>> {
    let manifest = folder.join("Cargo.toml");
    let Ok(manifest) = canonical(&manifest) else {
        let script = folder.join(SCRIPT);
        let hint = match script.is_file() {
            true => format!("`toolcrib build` builds Rust; the script of this project is `{}`", script.display()),
            false => "pass the folder of a Rust package, or create one with `toolcrib new tool NAME`".to_owned(),
        };
        return Err(Advice::new(format!("`{}` not found", manifest.display()), hint).into());
    };
    add_target(folder)?;
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--target", TARGET, "--message-format", "json-render-diagnostics"]);
    let package = manifest.parent().unwrap_or(folder).to_path_buf();
    let target = shared.filter(|_| std::env::var_os(TARGET_VARIABLE).is_none());
    if let Some(shared) = shared {
        shared.override_sdk(folder, &mut cargo)?;
    }
    if let Some(target) = target {
        target.enter(&package)?;
        cargo.arg("--target-dir").arg(target.path());
    }
    cargo.args((!debug).then_some("--release")).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut cargo = Running::start(&mut cargo).map_err(|error| missing("cargo", &error))?;
    let output = cargo.child.stdout.take().context("cargo has no output")?;
    // An interruption drops the process, which ends it.
    let components = tokio::task::spawn_blocking(move || components(output, &manifest)).await??;
    let status = cargo.child.wait().context("cannot wait for cargo")?;
    if let Some(target) = target {
        target.leave(&package);
    }
    if !status.success() {
        let hint = "see cargo's messages above";
        return Err(Advice::new(format!("building `{}` failed ({status})", folder.display()), hint).into());
    }
    Ok(components)
}

/// Installs the standard library for [`TARGET`] if it is missing.
fn add_target(folder: &Path) -> anyhow::Result<()> {
    if has_target(folder).map_err(|error| missing("rustc", &error))? {
        return Ok(());
    }
    render::aside(&format!("info: installing the Rust target `{TARGET}`"));
    // Standard output is reserved for the command's result.
    let mut rustup = Command::new("rustup");
    let added = rustup.args(["target", "add", TARGET]).current_dir(folder).stdout(io::stderr()).status();
    if added.as_ref().is_ok_and(ExitStatus::success) && has_target(folder)? {
        return Ok(());
    }
    let reason = added.map_or_else(|error| error.to_string(), |status| status.to_string());
    let hint = format!("run `rustup target add {TARGET}`, or install the target with your system's package manager");
    Err(Advice::new(format!("the Rust target `{TARGET}` is not installed, and rustup did not add it ({reason})"), hint)
        .into())
}

/// Returns the components among cargo's artifacts that belong to the package of `manifest`.
fn components(output: ChildStdout, manifest: &Path) -> anyhow::Result<Vec<PathBuf>> {
    #[derive(Deserialize)]
    struct Artifact {
        manifest_path: PathBuf,
        filenames: Vec<PathBuf>,
    }
    let mut components = Vec::new();
    for line in BufReader::new(output).lines() {
        let line = line.context("cannot read cargo's output")?;
        // Other messages have other fields.
        let Ok(artifact) = serde_json::from_str::<Artifact>(&line) else { continue };
        if canonical(&artifact.manifest_path).is_ok_and(|path| path == manifest) {
            components.extend(artifact.filenames.into_iter().filter(|file| file.extension() == Some("wasm".as_ref())));
        }
    }
    Ok(components)
}

fn missing(program: &str, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => Advice::new(format!("`{program}` not found"), INSTALL).into(),
        _ => anyhow::anyhow!("cannot run `{program}`: {error}"),
    }
}

/// A child process that is killed on drop; on Windows with all that it started.
struct Running {
    child: Child,
    _group: system::Group,
}

impl Running {
    fn start(command: &mut Command) -> io::Result<Self> {
        let (child, group) = system::spawn(command)?;
        Ok(Self { child, _group: group })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::process::{Child, Command};

    /// The compilers end by themselves: a signal of the terminal reaches them too.
    pub(super) struct Group;

    pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Group)> {
        Ok((command.spawn()?, Group))
    }
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::os::windows::process::CommandExt;
    use std::process::{Child, Command};

    use crate::windows::job_object::{JobObject, SUSPENDED};

    /// Job object with a process and all that it starts: the `cargo` on the path may be a program of rustup that starts another.
    pub(super) type Group = JobObject;

    pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Group)> {
        let job = JobObject::new()?;
        let mut child = command.creation_flags(SUSPENDED).spawn()?;
        if let Err(error) = job.admit(&child) {
            let _ = child.kill();
            return Err(error);
        }
        Ok((child, job))
    }
}
