//! The Rust toolchain: checks its target and builds tool packages. Processes started here run with the user's own rights;
//! no tool call starts one.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use toolcrib::policy::canonical;
use toolcrib_base::render::{self, Advice};
use toolcrib_sources::staleness::SCRIPT;

use crate::build_folder::BuildFolder;
use crate::cargo_messages;

/// Compilation target of tools.
pub const TARGET: &str = "wasm32-wasip2";
/// Hint if Rust is not installed.
const INSTALL: &str = "install Rust from https://rustup.rs; for other languages, use their own compilers and \
                       add tool metadata with `toolcrib describe`";

/// Maximum time for the last messages of cargo after its end.
const MAX_COPY: Duration = Duration::from_secs(2);

/// Variables of cargo with the author's own target folder.
const TARGET_VARIABLES: [&str; 2] = ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET_DIR"];

/// `true` if the toolchain of a folder has the standard library for [`TARGET`].
///
/// # Errors
///
/// Fails if there is no toolchain.
pub fn has_target(folder: &Path) -> io::Result<bool> {
    let mut rustc = Command::new("rustc");
    let output = rustc.args(["--print", "target-libdir", "--target", TARGET]).current_dir(folder).output()?;
    Ok(output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Compiles the package in a folder and returns the components. Messages of cargo go to standard error. Without a target
/// folder of the author's, `shared` takes what is compiled.
pub async fn build(folder: &Path, debug: bool, shared: Option<&BuildFolder>) -> anyhow::Result<Vec<PathBuf>> {
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
    let target = shared.filter(|_| TARGET_VARIABLES.iter().all(|name| std::env::var_os(name).is_none()));
    if let Some(shared) = shared
        && shared.override_sdk(folder, &mut cargo)?
    {
        cargo_messages::pipe(&mut cargo);
    }
    if let Some(target) = target {
        target.enter(manifest.parent().unwrap_or(folder))?;
        cargo.arg("--target-dir").arg(target.path());
    }
    cargo.args((!debug).then_some("--release")).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut cargo = Running::start(&mut cargo).map_err(|error| missing("cargo", &error))?;
    let output = cargo.child.stdout.take().context("cargo has no output")?;
    let messages = cargo.child.stderr.take();
    let copied = messages.map(|messages| {
        let (ended, end) = mpsc::channel();
        thread::spawn(move || ended.send(cargo_messages::copy(messages, io::stderr())));
        end
    });
    // An interruption drops the process, which ends it.
    let sdk = shared.map(|shared| shared.path().to_path_buf());
    let built = tokio::task::spawn_blocking(move || Built::read(output, &manifest, sdk.as_deref())).await??;
    let status = cargo.child.wait().context("cannot wait for cargo")?;
    // Before the messages of this program; a closed terminal takes none. A process that cargo left behind, such as the daemon of a
    // compiler's cache, may hold the pipe for ever.
    let _ = copied.map(|end| end.recv_timeout(MAX_COPY));
    if let Some(target) = target {
        target.leave(&built.packages);
    }
    if !status.success() {
        let hint = "see cargo's messages above";
        return Err(Advice::new(format!("building `{}` failed ({status})", folder.display()), hint).into());
    }
    Ok(built.components)
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

/// Result of a build, from the messages of cargo.
#[derive(Default)]
struct Built {
    /// Components of the package.
    components: Vec<PathBuf>,
    /// Names of the package and of all others in folders of the author.
    packages: BTreeSet<String>,
}

impl Built {
    /// Reads the messages about the package of `manifest`. Packages in the folder `shared` are not the author's.
    fn read(output: ChildStdout, manifest: &Path, shared: Option<&Path>) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Artifact {
            package_id: String,
            manifest_path: PathBuf,
            filenames: Vec<PathBuf>,
        }
        let mut built = Self::default();
        for line in BufReader::new(output).lines() {
            let line = line.context("cannot read cargo's output")?;
            // Other messages have other fields.
            let Ok(artifact) = serde_json::from_str::<Artifact>(&line) else { continue };
            let is_shared = shared.is_some_and(|shared| artifact.manifest_path.starts_with(shared));
            built.packages.extend(name_in_folder(&artifact.package_id).filter(|_| !is_shared).map(str::to_owned));
            if canonical(&artifact.manifest_path).is_ok_and(|path| path == manifest) {
                let files = artifact.filenames.into_iter();
                built.components.extend(files.filter(|file| file.extension() == Some("wasm".as_ref())));
            }
        }
        Ok(built)
    }
}

/// Returns the name of a package in a folder from its identifier: `path+file:///FOLDER/NAME#VERSION` or
/// `path+file:///FOLDER#NAME@VERSION`; `None` for a package from a registry or a repository.
fn name_in_folder(id: &str) -> Option<&str> {
    let (folder, version) = id.strip_prefix("path+file://")?.rsplit_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => folder.rsplit('/').next(),
    }
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

    use toolcrib_base::windows::job_object::{JobObject, SUSPENDED};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_package_in_a_folder_is_the_authors() {
        for (id, name) in [
            ("path+file:///home/ada/left/same-name#0.1.0", Some("same-name")),
            ("path+file:///home/ada/left#same-name@0.1.0", Some("same-name")),
            ("path+file:///C:/ada/left#same-name@0.1.0", Some("same-name")),
            ("registry+https://example.com/index#serde@1.0.0", None),
            ("git+https://example.com/part#0.1.0", None),
        ] {
            assert_eq!(name_in_folder(id), name, "{id}");
        }
    }
}
