//! SHA-256 digests in the notation of OCI descriptors, and a writer that computes one.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use toolcrib_foundation::text::shown;

/// Prefix of the only accepted algorithm.
const ALGORITHM: &str = "sha256:";

/// SHA-256 digest, written `sha256:` and 64 lower-case hexadecimal digits.
///
/// Other algorithms and upper-case digits are refused, so that equal content has exactly one name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Text that is no SHA-256 digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a digest: expected `sha256:` and 64 lower-case hexadecimal digits")]
#[non_exhaustive]
pub struct DigestError {
    /// The first characters of the text.
    pub text: String,
}

impl Digest {
    /// Computes the digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Computes the digest of all that `reader` yields, in parts of 64 KiB.
    ///
    /// # Errors
    ///
    /// The errors of the reader.
    pub fn of_reader(mut reader: impl Read) -> io::Result<Self> {
        let (mut hasher, mut part) = (Hasher::default(), vec![0; 64 << 10]);
        loop {
            match reader.read(&mut part) {
                Ok(0) => return Ok(hasher.finish()),
                Ok(count) => hasher.update(&part[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the 32 bytes of the digest.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the 64 lower-case hexadecimal digits, without the algorithm.
    #[must_use]
    pub fn hex(&self) -> String {
        toolcrib_foundation::hex(&self.0)
    }

    /// Parses exactly 64 lower-case hexadecimal digits.
    pub(crate) fn from_hex(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(bytes))
    }
}

/// Returns the value of a lower-case hexadecimal digit.
fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ALGORITHM}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        text.strip_prefix(ALGORITHM)
            .and_then(|hex| Self::from_hex(hex.as_bytes()))
            .ok_or_else(|| DigestError { text: shown(text) })
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Running digest of a stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    /// Adds `bytes` to the stream.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest of the stream.
    pub(crate) fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

/// Writer that forwards to another one and computes the digest and size of the bytes that were accepted.
pub(crate) struct HashWriter<W> {
    inner: W,
    hasher: Hasher,
    size: u64,
}

impl<W: Write> HashWriter<W> {
    /// Wraps `inner`.
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, hasher: Hasher::default(), size: 0 }
    }

    /// Returns the digest and the number of bytes written.
    pub(crate) fn finish(self) -> (Digest, u64) {
        (self.hasher.finish(), self.size)
    }
}

impl<W: Write> Write for HashWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_survives_its_text_form() {
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse::<Digest>().unwrap(), Digest::of(b""));
    }

    #[test]
    fn another_algorithm_length_or_case_is_refused() {
        let hex = &EMPTY[7..];
        for text in [
            String::new(),
            hex.to_owned(),
            format!("sha512:{hex}{hex}"),
            format!("SHA256:{hex}"),
            format!("sha256:{}", hex.to_uppercase()),
            format!("sha256:{}", &hex[1..]),
            format!("sha256:{hex}0"),
            format!("sha256: {}", &hex[1..]),
            format!("sha256:../../{}", &hex[6..]),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_error_quotes_a_bounded_part_of_the_text() {
        let error = "x".repeat(1 << 20).parse::<Digest>().unwrap_err();
        assert_eq!(error.text.chars().count(), 80);
    }
}
