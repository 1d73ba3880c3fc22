//! Files that the program contains. Its build script prepares them, and lays out a crib in the target folder.

/// Interpreter of scripts; empty in a build without the guests' workspace.
pub static INTERPRETER: &[u8] = include_bytes!(env!("TOOLCRIB_INTERPRETER"));
/// Tar file of the bundle with the shipped tools; empty in a build without them.
pub static BUILTIN: &[u8] = include_bytes!(env!("TOOLCRIB_BUILTIN"));
/// Digest of that bundle.
pub const BUILTIN_DIGEST: &str = env!("TOOLCRIB_BUILTIN_DIGEST");
/// Name and version of the engine.
pub const ENGINE: &str = env!("TOOLCRIB_ENGINE");
/// Files of the SDK for tools in Rust as paths and texts; empty in a build without the guests' workspace.
pub static SDK: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/sdk.rs"));
