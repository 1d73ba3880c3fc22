//! The inner build: guests are compiled by a cargo of their own, with no setting of the outer build, below its target folder.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::read;

/// Rust target of guests.
pub const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "guest";
/// Variables of the outer build that the inner one keeps: the sources of crates, and no compiler settings.
const INHERITED: [&str; 6] =
    ["CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_"];

/// The guests' workspace, and where its programs are built.
pub struct Guests {
    root: PathBuf,
    /// Manifest of the workspace, below the root.
    manifest: String,
    target: PathBuf,
}

impl Guests {
    /// Guests of the repository at `root`, built below the target folder `target` of the outer build.
    #[must_use]
    pub fn new(root: &Path, target: &Path) -> Self {
        Self { root: root.to_path_buf(), manifest: "tools/Cargo.toml".to_owned(), target: target.join("guests") }
    }

    /// Guests of a copy of the sources, built beside it.
    pub(crate) fn staged(root: &Path, target: &Path) -> Self {
        Self { root: root.to_path_buf(), manifest: "Cargo.toml".to_owned(), target: target.join("recorded") }
    }

    /// The workspace in another folder, with the same root and target folder.
    pub(crate) fn of_workspace(&self, folder: &str) -> Self {
        Self { root: self.root.clone(), manifest: format!("{folder}/Cargo.toml"), target: self.target.clone() }
    }

    /// Compiles packages of the guests' workspace.
    ///
    /// # Errors
    ///
    /// If the Rust target is missing and cannot be installed, or if the compilation fails.
    pub fn build(&self, packages: &[String]) -> Result<(), String> {
        require_target()?;
        let mut cargo = self.cargo("build", &self.manifest);
        cargo.args(["--target", TARGET, "--profile", PROFILE, "--target-dir"]).arg(&self.target);
        cargo.args(packages.iter().flat_map(|package| ["--package", package]));
        run(cargo, "building the guests")
    }

    /// Path of a compiled program.
    #[must_use]
    pub fn program(&self, name: &str) -> PathBuf {
        self.target.join(TARGET).join(PROFILE).join(format!("{name}.wasm"))
    }

    /// Returns a snapshot of a compiled program.
    pub(crate) fn snapshot(&self, name: &str) -> Result<Vec<u8>, String> {
        let snapshot = self.target.join(format!("{name}.snapshot.wasm"));
        // Optimised, because it interprets the start of the program.
        let mut cargo = self.cargo("run", "tools/snapshot/Cargo.toml");
        cargo.args(["--quiet", "--release", "--target-dir"]).arg(self.target.join("snapshot"));
        cargo.arg("--").arg(self.program(name)).arg(&snapshot);
        run(cargo, &format!("taking a snapshot of `{name}`"))?;
        read(&snapshot)
    }

    fn cargo(&self, command: &str, manifest: &str) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut inner = Command::new(cargo);
        inner.args([command, "--locked", "--manifest-path"]).arg(self.root.join(manifest));
        for (name, _) in env::vars_os().filter(|(name, _)| belongs_to_the_outer_build(&name.to_string_lossy())) {
            inner.env_remove(name);
        }
        inner.env("CARGO_ENCODED_RUSTFLAGS", path_remapping_flags(&self.root));
        inner
    }
}

fn run(mut cargo: Command, purpose: &str) -> Result<(), String> {
    match cargo.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{purpose} ended with {status}; see its messages above")),
        Err(error) => Err(format!("{purpose}: cannot run cargo: {error}")),
    }
}

/// Version of the compiler.
pub(crate) fn compiler() -> Result<String, String> {
    let output = rustc(&["--version"])?;
    Ok(output.trim().to_owned())
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
    let folder = rustc(&["--print", "target-libdir", "--target", TARGET])?;
    Ok(Path::new(folder.trim()).is_dir())
}

/// Returns the output of the compiler, empty if it failed.
fn rustc(arguments: &[&str]) -> Result<String, String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(&rustc).args(arguments).output();
    let output = output.map_err(|error| format!("cannot run `{}`: {error}", rustc.display()))?;
    Ok(if output.status.success() { String::from_utf8_lossy(&output.stdout).into_owned() } else { String::new() })
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

/// Returns the target folder of the outer build, from the output folder of a build script:
/// `TARGET/[TRIPLE/]PROFILE/build/PACKAGE/out` → `TARGET`.
///
/// # Errors
///
/// If the folder has another form.
pub fn target_folder(out: &Path) -> Result<PathBuf, String> {
    let above = out
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "build"))
        .and_then(|build| build.parent()?.parent())
        .ok_or_else(|| format!("no target folder above `{}`", out.display()))?;
    let triple = env::var_os("TARGET");
    let cross = above.file_name() == triple.as_deref();
    Ok(if cross { above.parent().unwrap_or(above) } else { above }.to_path_buf())
}
