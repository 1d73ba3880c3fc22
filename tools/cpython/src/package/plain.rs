//! Build with the standard library, from a crate.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::steps::{read, run};

use super::{Package, checked};

/// Package and version.
const PACKAGE: (&str, &str) = ("bashkit-cpython-wasm", "0.20.2");
/// CPython after its start, compressed.
const PROGRAM: (&str, &str) =
    ("artifacts/python.wasm.xz", "93b66c1e1357a3b77481fee8e14448b55ca83a0dec4b05ec0284b33b58099b75");
/// Standard library.
const ARCHIVE: (&str, &str) =
    ("artifacts/python314.zip", "a2fbfc15b11fe851fffe3a84369f4d8c73992904ea23bbc045d89373737e15ea");

/// Fetches the crate into a folder, by the user's cargo.
///
/// # Errors
///
/// The crate cannot be fetched, or its content is another one.
pub(super) fn fetch(folder: &Path) -> Result<Package, String> {
    let (name, version) = PACKAGE;
    let project = folder.join("package");
    let write = |path: &str, text: String| {
        let path = project.join(path);
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
        written.map_err(|error| format!("cannot write `{}`: {error}", path.display()))
    };
    let manifest = format!(
        "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\n{name} = \"={version}\"\n"
    );
    write("Cargo.toml", manifest)?;
    write("src/lib.rs", String::new())?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["vendor", "--quiet", "--versioned-dirs", "packages"]).current_dir(&project);
    run(cargo, &format!("fetching {name} {version}"))?;
    let package = project.join("packages").join(format!("{name}-{version}"));
    let file = |(path, digest)| checked(path, read(&package.join(path))?, digest);
    let mut module = Vec::new();
    lzma_rs::xz_decompress(&mut &file(PROGRAM)?[..], &mut module).map_err(|error| format!("{}: {error}", PROGRAM.0))?;
    Ok(Package { module, archive: file(ARCHIVE)? })
}
