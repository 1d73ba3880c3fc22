//! The form of a program, its digest, and the largest size that is loaded.

use sha2::{Digest, Sha256};
use wasmparser::Parser;

/// Maximum bytes of a program that is loaded.
pub const MAX_PROGRAM_BYTES: usize = 64 << 20;

/// Form of a program's binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A component.
    Component,
    /// A core module.
    Module,
}

impl Form {
    /// Returns the form of a program; `None` for bytes that are not WebAssembly of a known version.
    pub fn find(program: &[u8]) -> Option<Self> {
        if Parser::is_component(program) {
            Some(Self::Component)
        } else if Parser::is_core_wasm(program) {
            Some(Self::Module)
        } else {
            None
        }
    }

    /// Returns the form of these bytes. Bytes that are not WebAssembly count as a core module.
    pub fn of(program: &[u8]) -> Self {
        Self::find(program).unwrap_or(Self::Module)
    }
}

/// Returns the SHA-256 of a program as `sha256:HEX`.
pub fn digest(program: &[u8]) -> String {
    let mut text = String::with_capacity(7 + 64);
    text.push_str("sha256:");
    for byte in Sha256::digest(program) {
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
