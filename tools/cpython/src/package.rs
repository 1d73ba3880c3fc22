//! Published build of CPython: fetched by the user's cargo, which runs nothing of it, and checked by its digests.

use std::fs;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::steps::{read, run};

/// Package and version.
const PACKAGE: (&str, &str) = ("bashkit-cpython-wasm", "0.20.2");
/// CPython after its start, compressed.
const PROGRAM: (&str, &str) =
    ("artifacts/python.wasm.xz", "93b66c1e1357a3b77481fee8e14448b55ca83a0dec4b05ec0284b33b58099b75");
/// Standard library.
const ARCHIVE: (&str, &str) =
    ("artifacts/python314.zip", "a2fbfc15b11fe851fffe3a84369f4d8c73992904ea23bbc045d89373737e15ea");

/// Published build.
pub(crate) struct Package {
    /// Module of CPython.
    pub(crate) module: Vec<u8>,
    /// Archive of the standard library.
    pub(crate) archive: Vec<u8>,
}

/// Fetches the package into a folder.
///
/// # Errors
///
/// The package cannot be fetched, or its content is another one.
pub(crate) fn fetch(folder: &Path) -> Result<Package, String> {
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
    let compressed = checked(&package, PROGRAM)?;
    let mut module = Vec::new();
    lzma_rs::xz_decompress(&mut &compressed[..], &mut module).map_err(|error| format!("{}: {error}", PROGRAM.0))?;
    Ok(Package { module, archive: checked(&package, ARCHIVE)? })
}

fn checked(package: &Path, (path, digest): (&str, &str)) -> Result<Vec<u8>, String> {
    let bytes = read(&package.join(path))?;
    let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if found == digest {
        return Ok(bytes);
    }
    Err(format!("`{path}` of {} {} has sha256:{found}, not sha256:{digest}", PACKAGE.0, PACKAGE.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_other_bytes_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("file"), "abc").expect("a file");
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(checked(folder.path(), ("file", abc)), Ok(b"abc".to_vec()));
        fs::write(folder.path().join("file"), "abd").expect("a file");
        assert!(checked(folder.path(), ("file", abc)).is_err_and(|error| error.contains(abc)));
    }
}
