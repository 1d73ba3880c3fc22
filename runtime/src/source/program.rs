//! The file of a program: its location for a command, the same on every system, its bytes, its size and its digest.

use std::io::{self, Error, ErrorKind};
use std::path::{Path, PathBuf};

use toolcrib_component::MAX_PROGRAM_BYTES;

use super::files;

/// Identity of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// SHA-256 of the file, as `sha256:HEX`.
    pub digest: String,
    /// Size of the file in bytes.
    pub bytes: usize,
}

/// Reads the fingerprint of a program. A bundle states the fingerprints of its programs, and every read checks them.
///
/// # Errors
///
/// The file cannot be read, is no regular file or is larger than any program that is loaded.
pub fn fingerprint(program: &Path) -> io::Result<Fingerprint> {
    let (digest, bytes) = files::facts(program, MAX_PROGRAM_BYTES as u64).map_err(too_large)?;
    Ok(Fingerprint { digest, bytes: usize::try_from(bytes).map_err(Error::other)? })
}

/// Reads the bytes of a program.
///
/// # Errors
///
/// The file cannot be read, is no regular file or is larger than any program that is loaded.
pub fn program_bytes(program: &Path) -> io::Result<Vec<u8>> {
    files::read(program, MAX_PROGRAM_BYTES as u64).map_err(too_large)
}

/// Adds the limit to the error for a file that exceeds it.
fn too_large(error: Error) -> Error {
    match error.kind() {
        ErrorKind::FileTooLarge => {
            Error::new(error.kind(), format!("more than the {MAX_PROGRAM_BYTES} bytes that are loaded"))
        }
        _ => error,
    }
}

/// Returns the program for a path: the path itself if it ends in `.wasm`, else the file beside it that does. A manifest for
/// native programs names `NAME` or, for Windows, `NAME.exe`: both mean `NAME.wasm`.
pub(super) fn locate(path: &Path) -> PathBuf {
    match portable(path) {
        Some(portable) if files::exists(&portable) || !files::is_wasm(path).unwrap_or(false) => portable,
        _ => path.to_path_buf(),
    }
}

/// Returns the file that takes precedence over `path` if it exists; `None` if `path` ends in `.wasm` itself.
pub(crate) fn portable(path: &Path) -> Option<PathBuf> {
    if path.extension().is_some_and(|extension| extension == "wasm") {
        return None;
    }
    let mut name = path.as_os_str().to_owned();
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("exe")) {
        name = path.with_extension("").into_os_string();
    }
    name.push(".wasm");
    Some(PathBuf::from(name))
}

/// Checks that a program exists and is WebAssembly.
pub(super) fn available(program: &Path) -> Result<(), String> {
    match files::is_wasm(program) {
        Ok(true) => Ok(()),
        Ok(false) if files::size(program) == Some(0) => {
            Err("not a WebAssembly component or module: the file is empty".to_owned())
        }
        Ok(false) => {
            let begin = files::beginning(program).unwrap_or_default();
            Err(toolcrib_component::Error::not_webassembly(&begin).to_string())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err("program not found".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
