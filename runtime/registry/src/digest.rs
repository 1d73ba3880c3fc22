//! Content digests: parsing, streaming computation and comparison.
//!
//! Only the two algorithms registered by the OCI image specification are accepted. An unknown algorithm is an error,
//! because content under an unknown algorithm cannot be checked.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256, Sha512};
use toolcrib_foundation::hex;

/// Digest algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Algorithm {
    /// SHA-256, the default of every registry.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Algorithm {
    /// Returns the name used before the colon.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn hex_digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// Valid digest, `algorithm:lowercase-hexadecimal`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

/// Reason why a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DigestError {
    /// The text has no colon.
    #[error("a digest has the form `sha256:` and 64 hexadecimal digits; no `:` was found")]
    NoSeparator,
    /// The algorithm is neither `sha256` nor `sha512`.
    #[error("the digest algorithm is neither `sha256` nor `sha512`")]
    UnknownAlgorithm,
    /// The number of digits does not fit the algorithm.
    #[error("a `{algorithm}` digest has {expected} hexadecimal digits, found {found} characters")]
    Length {
        /// Name of the algorithm.
        algorithm: &'static str,
        /// Expected number of digits.
        expected: usize,
        /// Number of bytes found.
        found: usize,
    },
    /// A character is not a lowercase hexadecimal digit.
    #[error("a digest has lowercase hexadecimal digits only")]
    NotHexadecimal,
}

impl Digest {
    /// Computes the SHA-256 digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self::compute(Algorithm::Sha256, bytes)
    }

    /// Computes the digest of `bytes` with `algorithm`.
    pub fn compute(algorithm: Algorithm, bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the hexadecimal digits.
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Returns the tag under which referrers of this digest are listed in registries without the referrers API.
    ///
    /// Source: OCI distribution specification 1.1, "Referrers Tag Schema": the algorithm is cut at 32 characters and
    /// the digits at 64.
    pub(crate) fn referrers_tag(&self) -> String {
        format!("{}-{}", self.algorithm.name(), &self.hex[..self.hex.len().min(64)])
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let (name, hex) = text.split_once(':').ok_or(DigestError::NoSeparator)?;
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => return Err(DigestError::UnknownAlgorithm),
        };
        let expected = algorithm.hex_digits();
        if hex.len() != expected {
            return Err(DigestError::Length { algorithm: algorithm.name(), expected, found: hex.len() });
        }
        if !hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(DigestError::NotHexadecimal);
        }
        Ok(Self { algorithm, hex: hex.to_owned() })
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.name(), self.hex)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Streaming digest computation.
#[derive(Clone)]
pub(crate) enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    pub(crate) fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Sha256 => Self::Sha256(Sha256::new()),
            Algorithm::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
        }
    }

    pub(crate) fn finish(self) -> Digest {
        match self {
            Self::Sha256(hasher) => Digest { algorithm: Algorithm::Sha256, hex: hex(&hasher.finalize()) },
            Self::Sha512(hasher) => Digest { algorithm: Algorithm::Sha512, hex: hex(&hasher.finalize()) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_no_bytes_is_the_published_one() {
        let expected = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), expected);
        assert_eq!(expected.parse::<Digest>().unwrap(), Digest::of(b""));
        let long = Digest::compute(Algorithm::Sha512, b"");
        assert!(long.to_string().starts_with("sha512:cf83e1357eefb8bd"));
        assert_eq!(long.to_string().len(), 7 + 128);
        assert_eq!(long.referrers_tag().len(), 7 + 64);
    }

    #[test]
    fn a_text_that_is_not_a_digest_is_refused_with_its_reason() {
        let hex = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!("".parse::<Digest>(), Err(DigestError::NoSeparator));
        assert_eq!(format!("md5:{hex}").parse::<Digest>(), Err(DigestError::UnknownAlgorithm));
        assert_eq!(format!("SHA256:{hex}").parse::<Digest>(), Err(DigestError::UnknownAlgorithm));
        assert_eq!(format!("sha256:{}", hex.to_uppercase()).parse::<Digest>(), Err(DigestError::NotHexadecimal));
        assert!(matches!(format!("sha256:{hex}0").parse::<Digest>(), Err(DigestError::Length { found: 65, .. })));
        assert!(matches!(format!("sha512:{hex}").parse::<Digest>(), Err(DigestError::Length { found: 64, .. })));
        assert!(matches!("sha256:../../etc".parse::<Digest>(), Err(DigestError::Length { .. })));
    }
}
