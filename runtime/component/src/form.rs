//! The form of a program, its digest, and the largest size that is loaded.

use std::io::{self, ErrorKind, Read};

use sha2::{Digest, Sha256};
use toolcrib_foundation::hex;
use wasmparser::Parser;

/// Maximum bytes of a program that is loaded.
pub const MAX_PROGRAM_BYTES: usize = 256 << 20;

/// Form of a program's binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A component.
    Component,
    /// A core module.
    Module,
}

impl Form {
    /// Returns a program's form; `None` for bytes that are not WebAssembly of a known version.
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
    text(&Sha256::digest(program))
}

/// Number of bytes that are read and hashed at once: few enough to stay in the nearest memory of a processor.
const PIECE: usize = 64 << 10;

/// Reads a program to its end, and returns its digest like [`digest`], and its number of bytes. It is never in memory as a whole.
///
/// # Errors
///
/// The error of the reader.
pub fn digest_of(mut program: impl Read) -> io::Result<(String, u64)> {
    let (mut hasher, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
    loop {
        match program.read(&mut piece) {
            Ok(0) => return Ok((text(&hasher.finalize()), bytes)),
            Ok(read) => {
                hasher.update(&piece[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn text(hash: &[u8]) -> String {
    format!("sha256:{}", hex(hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that is interrupted before each read, and gives three bytes at most.
    struct Slow<'a>(&'a [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            let max = into.len().min(3);
            if self.1 { Err(ErrorKind::Interrupted.into()) } else { self.0.read(&mut into[..max]) }
        }
    }

    #[test]
    fn a_program_has_one_digest_in_pieces_and_as_a_whole() {
        let bytes: Vec<u8> = (0..PIECE * 2 + 7).map(|at| (at * 31 % 251) as u8).collect();
        for len in [0, 1, PIECE - 1, PIECE, PIECE + 1, PIECE * 2, bytes.len()] {
            let expected = (digest(&bytes[..len]), len as u64);
            assert_eq!(digest_of(&bytes[..len]).unwrap(), expected);
            assert_eq!(digest_of(Slow(&bytes[..len], false)).unwrap(), expected);
        }
        assert!(digest_of(Slow(&[], false)).unwrap().0.starts_with("sha256:e3b0c44298fc1c149afbf4c8996fb924"));
    }
}
