//! Target folder that all tools share, and the SDK of this version in it: the second tool finds its dependencies compiled. One
//! process at a time builds in the folder and takes the result.
//!
//! Cargo identifies a package by its path below the root of its workspace: packages of one name in two projects are one to it.
//! So the folder has the results of one project at a time, beside those of crates from registries and of the SDK.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;
use toml_edit::DocumentMut;
use toolcrib::source::digest;

use crate::{render, sdk};

/// Name of the folder below that of the cache.
const FOLDER: &str = "build";
/// File that is locked while a tool is built.
const LOCK: &str = "toolcrib.lock";

/// File with the path of the last project, a line, and, once it was built, the names of its packages, a line each.
const PROJECT: &str = "project";
/// Folder of cargo with an entry `NAME-HASH` for each package that is compiled.
const FINGERPRINTS: &str = ".fingerprint";

/// The folder, locked until it is dropped.
pub(crate) struct BuildFolder {
    path: PathBuf,
    _lock: File,
}

impl BuildFolder {
    /// Opens the folder below that of the cache; waits while another process builds.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or locked.
    pub(crate) fn open(cache: &Path) -> anyhow::Result<Self> {
        // Cargo runs in the folder of the package.
        let cache = std::path::absolute(cache).context("no current folder")?;
        let path = cache.join(FOLDER).join(env!("CARGO_PKG_VERSION"));
        let told = || format!("cannot use the build folder `{}`", path.display());
        fs::create_dir_all(&path).with_context(told)?;
        let lock = File::options().create(true).append(true).open(path.join(LOCK)).with_context(told)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                render::aside("info: waiting for another build to end");
                lock.lock().with_context(told)?;
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(told),
        }
        Ok(Self { path, _lock: lock })
    }

    /// Makes the folder that of a project before it is built: packages of another project are compiled anew, because cargo could
    /// take them for those of this one.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or written.
    pub(crate) fn enter(&self, package: &Path) -> anyhow::Result<()> {
        let told = || format!("cannot use the build folder `{}`", self.path.display());
        let file = self.path.join(PROJECT);
        let last = fs::read_to_string(&file).unwrap_or_default();
        let mut lines = last.lines();
        let project = package.to_string_lossy();
        if lines.next() == Some(&project) {
            return Ok(());
        }
        let names: Vec<&str> = lines.collect();
        for fingerprints in self.fingerprints() {
            forget(&fingerprints, &names).with_context(told)?;
        }
        fs::write(&file, format!("{project}\n")).with_context(told)
    }

    /// Notes the packages of a project after its build. Without the note, the next project compiles everything anew.
    pub(crate) fn leave(&self, package: &Path) {
        let is_shared = sdk::is_unchanged(&package.join(sdk::FOLDER));
        let Some(names) = own_packages(package) else { return };
        let names = names.into_iter().filter(|name| !(is_shared && sdk::PACKAGES.contains(&name.as_str())));
        let lines: Vec<String> = std::iter::once(package.to_string_lossy().into_owned()).chain(names).collect();
        let _ = fs::write(self.path.join(PROJECT), lines.join("\n") + "\n");
    }

    /// Folders of fingerprints, of each target and profile.
    fn fingerprints(&self) -> Vec<PathBuf> {
        let folders = |path: &Path| -> Vec<PathBuf> {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        let profiles = folders(&self.path).into_iter().flat_map(|path| [folders(&path), vec![path]].concat());
        profiles.map(|profile| profile.join(FINGERPRINTS)).filter(|path| path.is_dir()).collect()
    }

    /// Lets cargo use one copy of the SDK for all tools, if a package has the SDK of this version unchanged.
    pub(crate) fn override_sdk(&self, package: &Path, cargo: &mut Command) -> anyhow::Result<()> {
        if !sdk::is_unchanged(&package.join(sdk::FOLDER)) {
            return Ok(());
        }
        let all: String = sdk::sources().map(|(path, text)| format!("{path}\n{text}\n")).collect();
        let name = digest(all.as_bytes()).replace(':', "-");
        let copy = self.path.join(format!("{}-{name}", sdk::FOLDER));
        if !sdk::is_unchanged(&copy) {
            sdk::write(&copy).with_context(|| format!("cannot write `{}`", copy.display()))?;
        }
        let path = Value::from(copy.join(sdk::CRATE).to_string_lossy());
        cargo.arg("--config").arg(format!("paths=[{path}]"));
        Ok(())
    }

    /// Path of the target folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the fingerprints of packages, or all if there are no names.
fn forget(fingerprints: &Path, names: &[&str]) -> io::Result<()> {
    if names.is_empty() {
        return fs::remove_dir_all(fingerprints);
    }
    for entry in fs::read_dir(fingerprints)? {
        let entry = entry?;
        let file = entry.file_name();
        let is_named = |name: &str| names.contains(&name);
        if file.to_str().and_then(|file| file.rsplit_once('-')).is_some_and(|(name, _)| is_named(name)) {
            fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Names of the packages that are no part of a registry, from the lock file that cargo has written for a package or its
/// workspace; `None` if it cannot be read.
fn own_packages(package: &Path) -> Option<Vec<String>> {
    let lock = package.ancestors().map(|folder| folder.join("Cargo.lock")).find(|file| file.is_file())?;
    let lock: DocumentMut = fs::read_to_string(lock).ok()?.parse().ok()?;
    let all = lock.get("package")?.as_array_of_tables()?;
    let own = all.iter().filter(|package| !package.contains_key("source"));
    own.map(|package| Some(package.get("name")?.as_str()?.to_owned())).collect()
}
