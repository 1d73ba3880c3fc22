//! From the words of a command to a file with WebAssembly in it, the same on every system; and which file that is, by its
//! size and digest.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::tool::Tool;

/// The largest program that is loaded.
pub(crate) const MOST_PROGRAM_BYTES: usize = 64 << 20;

/// Which program it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// SHA-256 of the file, as `sha256:HEX`.
    pub digest: String,
    /// The size of the file in bytes.
    pub bytes: usize,
}

/// The fingerprint of a program.
///
/// # Errors
///
/// Where the file cannot be read, is no regular file or is larger than any program that is loaded.
pub fn fingerprint(program: &Path) -> std::io::Result<Fingerprint> {
    let content = program_bytes(program)?;
    Ok(Fingerprint { digest: digest(&content), bytes: content.len() })
}

/// The bytes of a program.
///
/// # Errors
///
/// Where the file cannot be read, is no regular file or is larger than any program that is loaded.
pub fn program_bytes(program: &Path) -> std::io::Result<Vec<u8>> {
    if !program.metadata()?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut content = Vec::new();
    File::open(program)?.take(MOST_PROGRAM_BYTES as u64 + 1).read_to_end(&mut content)?;
    if content.len() > MOST_PROGRAM_BYTES {
        return Err(std::io::Error::other(format!("more than the {MOST_PROGRAM_BYTES} bytes that are loaded")));
    }
    Ok(content)
}

/// The SHA-256 of a program, as `sha256:HEX`.
pub(crate) fn digest(program: &[u8]) -> String {
    let mut text = String::with_capacity(7 + 64);
    text.push_str("sha256:");
    for byte in Sha256::digest(program) {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The program that `path` means: itself if it ends in `.wasm`, else the file beside it that does. A manifest written
/// for native programs names `NAME` or, for Windows, `NAME.exe`: both mean `NAME.wasm`.
pub(super) fn locate(path: &Path) -> PathBuf {
    if path.extension().is_some_and(|extension| extension == "wasm") {
        return path.to_path_buf();
    }
    let mut name = path.as_os_str().to_owned();
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("exe")) {
        name = path.with_extension("").into_os_string();
    }
    name.push(".wasm");
    let portable = PathBuf::from(name);
    if !portable.exists() && is_wasm(path).unwrap_or(false) { path.to_path_buf() } else { portable }
}

/// Fails where the tool's program is missing or is no WebAssembly.
pub(super) fn available(tool: &Tool) -> Result<(), Error> {
    let Some(program) = tool.body.program() else { return Ok(()) };
    let reason = match is_wasm(program) {
        Ok(true) => return Ok(()),
        Ok(false) => "not a WebAssembly component or module".to_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "program not found".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::Unavailable { name: tool.name.clone(), reason, program: program.display().to_string() })
}

fn is_wasm(path: &Path) -> std::io::Result<bool> {
    if !path.metadata()?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut magic = [0; 4];
    match File::open(path)?.read_exact(&mut magic) {
        Ok(()) => Ok(magic == *b"\0asm"),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
