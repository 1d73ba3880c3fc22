//! Files that the program contains. Its build script prepares them, and lays out a crib in the target folder.

use std::io;

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

/// Digest of the interpreter of scripts, as `sha256:HEX`; empty in a build without the guests' workspace.
pub const INTERPRETER_DIGEST: &str = env!("TOOLCRIB_INTERPRETER_DIGEST");
/// Digest of the bundle with the shipped tools; empty in a build without them.
pub const BUILTIN_DIGEST: &str = env!("TOOLCRIB_BUILTIN_DIGEST");
/// Digest of the tar file of that bundle.
pub const BUILTIN_TAR_DIGEST: &str = env!("TOOLCRIB_BUILTIN_TAR_DIGEST");
/// Size of that tar file in bytes.
pub const BUILTIN_SIZE: usize = include!(concat!(env!("OUT_DIR"), "/builtin.size"));
/// Parts of that tar file as positions and bytes: everything except the content of the programs.
pub static BUILTIN_OUTLINE: &[(usize, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/outline.rs"));
/// Name and version of the engine.
pub const ENGINE: &str = env!("TOOLCRIB_ENGINE");
/// Files of the SDK for tools in Rust as paths and texts; empty in a build without the guests' workspace.
pub static SDK: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/sdk.rs"));

/// Language of programs that call tools, with its interpreter.
#[derive(Debug, Clone, Copy)]
pub struct Language {
    /// Name, such as `python`.
    pub name: &'static str,
    /// Part of the language that programs may use, for a model.
    pub guide: &'static str,
    /// Digest of the interpreter's component, as `sha256:HEX`; empty in a build without the guests' workspace.
    pub digest: &'static str,
    /// Decompresses the component. It fails as [`interpreter`] does.
    pub read: fn() -> io::Result<Vec<u8>>,
}

/// Languages of programs that call tools; the first is the default.
pub static LANGUAGES: [Language; 2] = [
    Language {
        name: "python",
        guide: include_str!(concat!(env!("OUT_DIR"), "/python.txt")),
        digest: env!("TOOLCRIB_PYTHON_DIGEST"),
        read: || decompressed(PYTHON, PYTHON_SIZE),
    },
    Language {
        name: "javascript",
        guide: include_str!(concat!(env!("OUT_DIR"), "/javascript.txt")),
        digest: env!("TOOLCRIB_JAVASCRIPT_DIGEST"),
        read: || decompressed(JAVASCRIPT, JAVASCRIPT_SIZE),
    },
];

static INTERPRETER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/interpreter.zlib"));
const INTERPRETER_SIZE: usize = include!(concat!(env!("OUT_DIR"), "/interpreter.size"));
static PYTHON: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/python.zlib"));
const PYTHON_SIZE: usize = include!(concat!(env!("OUT_DIR"), "/python.size"));
static JAVASCRIPT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/javascript.zlib"));
const JAVASCRIPT_SIZE: usize = include!(concat!(env!("OUT_DIR"), "/javascript.size"));
static BUILTIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/builtin.zlib"));

/// Decompresses the component of the interpreter of scripts.
///
/// # Errors
///
/// The program is damaged, or was built without the guests' workspace.
pub fn interpreter() -> io::Result<Vec<u8>> {
    decompressed(INTERPRETER, INTERPRETER_SIZE)
}

/// Decompresses the tar file of the bundle with the shipped tools.
///
/// # Errors
///
/// The program is damaged, or was built without the shipped tools.
pub fn builtin() -> io::Result<Vec<u8>> {
    decompressed(BUILTIN, BUILTIN_SIZE)
}

fn decompressed(bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
    decompress_to_vec_zlib_with_limit(bytes, size).map_err(|error| io::Error::other(error.to_string()))
}
