//! Target folder that all tools share, and the SDK of this version in it: the second tool finds its dependencies compiled. One
//! process at a time builds in the folder and takes the result.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;
use toolcrib::source::digest;

use crate::{render, sdk};

/// Name of the folder below that of the cache.
const FOLDER: &str = "build";
/// File that is locked while a tool is built.
const LOCK: &str = "toolcrib.lock";

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
