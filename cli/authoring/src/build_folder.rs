//! Target folder that all tools share, and the SDK of this version in it: the second tool finds its dependencies compiled. One
//! process at a time builds in the folder and takes the result.
//!
//! Cargo identifies a package by its path below the root of its workspace: packages of one name in two projects are one to it.
//! So the folder has the results of one project at a time, plus the results of registry crates and of the SDK.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;
use toolcrib::owner_only::FileLock;
use toolcrib::source::digest;
use toolcrib_base::render;

use crate::sdk;

/// Folder name in the cache folder; the folder has a subfolder for this version.
const FOLDER: &str = "build";
/// File that is locked while a tool is built.
const LOCK: &str = "toolcrib.lock";
/// File with the path of the last project, a line, and the names of its packages, a line each.
const PROJECT: &str = "project";
/// Folder of cargo with an entry `NAME-HASH` for each package that is compiled.
const FINGERPRINTS: &str = ".fingerprint";
/// Maximum folder size in bytes; a larger folder is emptied before the next build.
const MAX_BYTES: u64 = 4 << 30;

/// The folder, locked until it is dropped.
pub struct BuildFolder {
    path: PathBuf,
    max_bytes: u64,
    _lock: FileLock,
}

impl BuildFolder {
    /// Opens the folder in the cache folder; waits while another process builds. Removes the folders of other versions.
    ///
    /// # Errors
    ///
    /// The folder cannot be created or locked.
    pub fn open(cache: &Path) -> anyhow::Result<Self> {
        // Cargo runs in the folder of the package.
        let cache = std::path::absolute(cache).context("no current folder")?;
        let path = cache.join(FOLDER).join(env!("CARGO_PKG_VERSION"));
        let context = || format!("cannot use the build folder `{}`", path.display());
        fs::create_dir_all(&path).with_context(context)?;
        let lock = File::options().create(true).append(true).open(path.join(LOCK)).with_context(context)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                render::aside("info: waiting for another build to end");
                lock.lock().with_context(context)?;
            }
            Err(TryLockError::Error(error)) => return Err(error).with_context(context),
        }
        // They only take space.
        let _ = remove(&cache, Some(&path));
        Ok(Self { path, max_bytes: MAX_BYTES, _lock: FileLock::of_locked(lock) })
    }

    /// Removes the folders of all versions from the cache folder, except the ones that a process builds in.
    ///
    /// # Errors
    ///
    /// A folder cannot be removed.
    pub fn clear(cache: &Path) -> io::Result<()> {
        remove(cache, None)
    }

    /// Prepares the folder for a project before its build: packages of another project are compiled anew, because cargo
    /// could take them for this project's packages.
    ///
    /// # Errors
    ///
    /// The folder cannot be read or written.
    pub(crate) fn enter(&self, package: &Path) -> anyhow::Result<()> {
        let context = || format!("cannot use the build folder `{}`", self.path.display());
        if size(&self.path, self.max_bytes) > self.max_bytes {
            empty(&self.path).with_context(context)?;
        }
        let note = self.note();
        let mut lines = note.lines();
        let project = package.to_string_lossy();
        if lines.next() == Some(&project) {
            return Ok(());
        }
        let names: BTreeSet<&str> = lines.collect();
        for fingerprints in self.fingerprints() {
            forget(&fingerprints, &names).with_context(context)?;
        }
        fs::write(self.path.join(PROJECT), format!("{project}\n")).with_context(context)
    }

    /// Notes the project's packages after a build, in addition to the packages of its earlier builds. Without a note,
    /// the next project compiles everything anew.
    pub(crate) fn leave(&self, packages: &BTreeSet<String>) {
        let note = self.note();
        let mut lines = note.lines();
        let project = lines.next().unwrap_or_default();
        let all: BTreeSet<&str> = lines.chain(packages.iter().map(String::as_str)).collect();
        let text = all.into_iter().fold(format!("{project}\n"), |text, name| text + name + "\n");
        let _ = fs::write(self.path.join(PROJECT), text);
    }

    fn note(&self) -> String {
        fs::read_to_string(self.path.join(PROJECT)).unwrap_or_default()
    }

    /// Folders of fingerprints, of each target and profile.
    fn fingerprints(&self) -> Vec<PathBuf> {
        let profiles = entries(&self.path).into_iter().flat_map(|path| [entries(&path), vec![path]].concat());
        profiles.map(|profile| profile.join(FINGERPRINTS)).filter(|path| path.is_dir()).collect()
    }

    /// Lets cargo use one copy of the SDK for all tools, if a package has the SDK of this version unchanged. Returns `true` if it
    /// does; cargo then warns of the override.
    pub(crate) fn override_sdk(&self, package: &Path, cargo: &mut Command) -> anyhow::Result<bool> {
        if !sdk::is_unchanged(&package.join(sdk::FOLDER)) {
            return Ok(false);
        }
        let all: String = sdk::sources().map(|(path, text)| format!("{path}\n{text}\n")).collect();
        let name = digest(all.as_bytes()).replace(':', "-");
        let copy = self.path.join(format!("{}-{name}", sdk::FOLDER));
        if !sdk::is_unchanged(&copy) {
            sdk::write(&copy).with_context(|| format!("cannot write `{}`", copy.display()))?;
        }
        let path = Value::from(copy.join(sdk::CRATE).to_string_lossy());
        cargo.arg("--config").arg(format!("paths=[{path}]"));
        Ok(true)
    }

    /// Path of the target folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes the build folders in the cache folder, except `kept` and the ones that a process builds in.
fn remove(cache: &Path, kept: Option<&Path>) -> io::Result<()> {
    for path in entries(&cache.join(FOLDER)).into_iter().filter(|path| kept != Some(path) && path.is_dir()) {
        let lock = File::options().create(true).append(true).open(path.join(LOCK))?;
        if let Ok(lock) = FileLock::exclusive(lock) {
            empty(&path)?;
            drop(lock);
            // Another process may have begun to build there.
            let _ = fs::remove_file(path.join(LOCK)).and_then(|()| fs::remove_dir(&path));
        }
    }
    Ok(())
}

/// Removes everything of a build folder but the lock.
fn empty(folder: &Path) -> io::Result<()> {
    for path in entries(folder) {
        match path.is_dir() {
            true => fs::remove_dir_all(&path)?,
            false if path.ends_with(LOCK) => {}
            false => fs::remove_file(&path)?,
        }
    }
    Ok(())
}

/// Removes the fingerprints of packages, or all if there are no names.
fn forget(fingerprints: &Path, names: &BTreeSet<&str>) -> io::Result<()> {
    if names.is_empty() {
        return fs::remove_dir_all(fingerprints);
    }
    for path in entries(fingerprints) {
        let name = path.file_name().and_then(|file| file.to_str()?.rsplit_once('-'));
        if name.is_some_and(|(name, _)| names.contains(name)) {
            fs::remove_dir_all(path)?;
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Returns the bytes of the files below a folder; counting ends above `max`.
fn size(folder: &Path, max: u64) -> u64 {
    let (mut left, mut bytes) = (vec![folder.to_path_buf()], 0);
    while let Some(path) = left.pop().filter(|_| bytes <= max) {
        let Ok(about) = path.symlink_metadata() else { continue };
        match about.is_dir() {
            true => left.extend(entries(&path)),
            false => bytes += about.len(),
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> (tempfile::TempDir, BuildFolder) {
        let cache = tempfile::tempdir().unwrap();
        let folder = BuildFolder::open(cache.path()).unwrap();
        (cache, folder)
    }

    fn compile(folder: &BuildFolder, package: &str) -> PathBuf {
        let path = folder.path().join("wasm32-wasip2/release/.fingerprint").join(format!("{package}-0123456789abcdef"));
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn another_project_compiles_the_packages_of_the_last_anew_and_no_other_crates() {
        let (_cache, folder) = opened();
        let (left, right) = (Path::new("/left"), Path::new("/right"));
        folder.enter(left).unwrap();
        let (tool, part, shared) = (compile(&folder, "a-tool"), compile(&folder, "part"), compile(&folder, "serde"));
        folder.leave(&names(&["a-tool"]));
        folder.leave(&names(&["part"]));
        folder.enter(left).unwrap();
        assert!(tool.exists() && part.exists(), "one project keeps its own");
        folder.enter(right).unwrap();
        assert!(!tool.exists() && !part.exists() && shared.exists());
        let tool = compile(&folder, "a-tool");
        folder.enter(left).unwrap();
        assert!(!tool.exists() && !shared.exists(), "nothing is known of a build that did not end");
    }

    #[test]
    fn a_folder_above_its_maximum_is_emptied() {
        let (_cache, mut folder) = opened();
        folder.max_bytes = 1000;
        folder.enter(Path::new("/a")).unwrap();
        let large = folder.path().join("release");
        fs::create_dir(&large).unwrap();
        let file = File::create(large.join("file")).unwrap();
        file.set_len(900).unwrap();
        folder.enter(Path::new("/a")).unwrap();
        assert!(large.exists());
        file.set_len(1001).unwrap();
        folder.enter(Path::new("/a")).unwrap();
        assert!(!large.exists() && folder.path().join(LOCK).exists());
    }

    #[test]
    fn folders_of_other_versions_are_removed_unless_a_process_builds_there() {
        let (cache, folder) = opened();
        let other = |version: &str| {
            let path = cache.path().join(FOLDER).join(version);
            fs::create_dir_all(&path).unwrap();
            (path.clone(), File::create(path.join(LOCK)).unwrap())
        };
        let ((old, _), (used, lock)) = (other("0.0.1"), other("0.0.2"));
        lock.lock().unwrap();
        drop(folder);
        let folder = BuildFolder::open(cache.path()).unwrap();
        assert!(!old.exists() && used.exists());
        BuildFolder::clear(cache.path()).unwrap();
        assert!(folder.path().exists() && used.exists(), "both are in use");
        drop((folder, lock));
        BuildFolder::clear(cache.path()).unwrap();
        assert_eq!(entries(&cache.path().join(FOLDER)), [] as [PathBuf; 0]);
    }
}
