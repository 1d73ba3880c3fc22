//! minisign: detached signatures `FILE.minisig` beside a file.
//!
//! Only prehashed signatures (`ED`, BLAKE2b-512) are made and accepted, so that files are streamed in bounded memory.
//! The crate `minisign-verify` verifies signatures. Secret keys are read and written here, because they have to be
//! erased from memory and must not show in `Debug`.

mod secret;
mod verify;

pub use secret::{SecretKey, sign, signature_comment};
pub use verify::{MinisignKey, MinisignVerified, verify};

use crate::error::{Error, excerpt};
use crate::limits::MAX_PART_BYTES;

const COMMENT: &str = "untrusted comment: ";
const TRUSTED_COMMENT: &str = "trusted comment: ";

/// Identifier of a minisign key: 8 random bytes, shown as a little-endian number in hexadecimal digits.
fn shown_id(id: [u8; 8]) -> String {
    format!("{:016X}", u64::from_le_bytes(id))
}

/// Refuses a comment that is too long or would break a line or a terminal. A tab is allowed, since `minisign` writes it.
fn check_comment(what: &'static str, comment: &str, max: usize) -> Result<(), Error> {
    Error::limit(format!("minisign {what}, bytes"), comment.len(), max)?;
    if comment.chars().any(|c| c.is_control() && c != '\t') {
        return Err(malformed(what, "text without control characters", format!("`{}`", excerpt(comment))));
    }
    Ok(())
}

/// Reads a document as exactly `N` lines with an optional line break at the end.
fn lines<'a, const N: usize>(what: &'static str, document: &'a [u8]) -> Result<[&'a str; N], Error> {
    Error::limit(format!("minisign {what}, bytes"), document.len(), MAX_PART_BYTES)?;
    let text = std::str::from_utf8(document).map_err(|_| malformed(what, "text", "bytes that are not UTF-8"))?;
    let lines: Vec<&str> = text.lines().collect();
    let count = lines.len();
    lines.try_into().map_err(|_| malformed(what, format!("{N} lines"), format!("{count} lines")))
}

fn malformed(what: &'static str, expected: impl Into<String>, found: impl Into<String>) -> Error {
    Error::Minisign { what, expected: expected.into(), found: found.into() }
}
