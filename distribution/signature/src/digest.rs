//! SHA-256 digest of an OCI manifest.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};

use crate::error::{Error, excerpt};

/// SHA-256 digest, written as `sha256:` and 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Creates a digest from its 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the SHA-256 digest of `data`.
    #[must_use]
    pub fn of(data: &[u8]) -> Self {
        Self(Sha256::digest(data).into())
    }

    /// Returns the 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns 64 lowercase hexadecimal digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// Parses 64 lowercase hexadecimal digits.
    pub(crate) fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl FromStr for Digest {
    type Err = Error;

    /// Parses `sha256:` and 64 lowercase hexadecimal digits.
    ///
    /// # Errors
    /// [`Error::Digest`] for any other algorithm, length or letter case.
    fn from_str(text: &str) -> Result<Self, Error> {
        text.strip_prefix("sha256:").and_then(Self::from_hex).ok_or_else(|| Error::Digest { found: excerpt(text) })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes bytes as lowercase hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_written_and_read_back() {
        let digest = Digest::of(b"toolcrib");
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
    }

    #[test]
    fn other_algorithms_lengths_and_letter_cases_are_refused() {
        let hex = Digest::of(b"x").to_hex();
        for text in
            [format!("sha512:{hex}"), hex.clone(), format!("sha256:{}", hex.to_uppercase()), format!("sha256:{hex}0")]
        {
            assert!(matches!(text.parse::<Digest>(), Err(Error::Digest { .. })), "{text}");
        }
        assert!("sha256:".parse::<Digest>().is_err());
        assert!(format!("sha256:{}é", &hex[..62]).parse::<Digest>().is_err());
    }
}
