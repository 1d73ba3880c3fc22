//! Public keys and verification of minisign signatures.

use std::{fmt, io::Read};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{COMMENT, TRUSTED_COMMENT, check_comment, lines, malformed};
use crate::error::{Error, excerpt};
use crate::limits::{MAX_FIELD_BYTES, MAX_TRUSTED_COMMENT_BYTES};

/// Bytes of a public key: algorithm, identifier, Ed25519 key.
const PUBLIC_KEY_BYTES: usize = 2 + 8 + 32;
/// Bytes of a signature: algorithm, identifier, Ed25519 signature.
const SIGNATURE_BYTES: usize = 2 + 8 + 64;
const CHUNK_BYTES: usize = 64 << 10;

/// Public key of minisign.
#[derive(Clone)]
pub struct MinisignKey {
    key: minisign_verify::PublicKey,
    bytes: [u8; PUBLIC_KEY_BYTES],
}

impl MinisignKey {
    /// Reads a public key: the two lines of `minisign.pub`, or its second line alone.
    ///
    /// # Errors
    /// [`Error::Limit`] and [`Error::Minisign`] for anything else.
    pub fn parse(document: &[u8]) -> Result<Self, Error> {
        let encoded = match lines::<1>(WHAT_KEY, document) {
            Ok([encoded]) => encoded,
            Err(limit @ Error::Limit { .. }) => return Err(limit),
            Err(_) => {
                let [comment, encoded] = lines(WHAT_KEY, document)?;
                let comment = prefixed(WHAT_KEY, COMMENT, comment)?;
                check_comment("untrusted comment", comment, MAX_FIELD_BYTES)?;
                encoded
            }
        };
        let bytes = decode::<PUBLIC_KEY_BYTES>(WHAT_KEY, encoded)?;
        Self::from_bytes(bytes)
    }

    pub(super) fn from_bytes(bytes: [u8; PUBLIC_KEY_BYTES]) -> Result<Self, Error> {
        if !bytes.starts_with(b"Ed") {
            return Err(malformed(WHAT_KEY, "the algorithm `Ed`", shown_algorithm(&bytes)));
        }
        let key = minisign_verify::PublicKey::from_base64(&STANDARD.encode(bytes))
            .map_err(|error| malformed(WHAT_KEY, "an Ed25519 key", error.to_string()))?;
        Ok(Self { key, bytes })
    }

    /// Returns the identifier, as `minisign` shows it: 16 hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> String {
        id_of(&self.bytes)
    }

    /// Returns the key as base64, the second line of `minisign.pub`.
    #[must_use]
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.bytes)
    }

    /// Returns the two lines of `minisign.pub`.
    #[must_use]
    pub fn to_file(&self) -> String {
        format!("{COMMENT}minisign public key {}\n{}\n", self.id(), self.to_base64())
    }
}

impl fmt::Debug for MinisignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MinisignKey").field("id", &self.id()).finish()
    }
}

/// Result of a successful verification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MinisignVerified {
    /// Identifier of the key that signed.
    pub key_id: String,
    /// Comment that the signature covers: text of the signer without control characters except tabs.
    pub trusted_comment: String,
}

/// Verifies a detached signature, the content of `FILE.minisig`, over everything that `data` yields.
///
/// # Errors
/// [`Error::Limit`] and [`Error::Minisign`] for a malformed signature, an old signature that is not prehashed, comments
/// that are too long or have control characters; [`Error::MinisignSignature`] for another key, other data or another
/// trusted comment; [`Error::Read`] when `data` fails.
pub fn verify(mut data: impl Read, signature: &[u8], key: &MinisignKey) -> Result<MinisignVerified, Error> {
    let [comment, encoded, trusted, global] = lines(WHAT, signature)?;
    let comment = prefixed(WHAT, COMMENT, comment)?;
    check_comment("untrusted comment", comment, MAX_FIELD_BYTES)?;
    let trusted = prefixed(WHAT, TRUSTED_COMMENT, trusted)?;
    check_comment("trusted comment", trusted, MAX_TRUSTED_COMMENT_BYTES)?;
    let bytes = decode::<SIGNATURE_BYTES>(WHAT, encoded)?;
    decode::<64>(WHAT, global)?;
    if !bytes.starts_with(b"ED") {
        return Err(malformed(WHAT, "the prehashed algorithm `ED`", shown_algorithm(&bytes)));
    }

    let refused = |source| Error::MinisignSignature { expected: key.id(), found: id_of(&bytes), source };
    let document = format!("{COMMENT}{comment}\n{encoded}\n{TRUSTED_COMMENT}{trusted}\n{global}\n");
    let parsed = minisign_verify::Signature::decode(&document).map_err(refused)?;
    let mut verifier = key.key.verify_stream(&parsed).map_err(refused)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match data.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => verifier.update(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::Read(error)),
        }
    }
    verifier.finalize().map_err(refused)?;
    Ok(MinisignVerified { key_id: key.id(), trusted_comment: trusted.to_owned() })
}

const WHAT: &str = "signature";
const WHAT_KEY: &str = "public key";

fn id_of(bytes: &[u8]) -> String {
    let mut id = [0; 8];
    id.copy_from_slice(&bytes[2..10]);
    super::shown_id(id)
}

fn shown_algorithm(bytes: &[u8]) -> String {
    format!("the algorithm `{}`", excerpt(&String::from_utf8_lossy(&bytes[..2])))
}

fn prefixed<'a>(what: &'static str, prefix: &str, line: &'a str) -> Result<&'a str, Error> {
    line.strip_prefix(prefix)
        .ok_or_else(|| malformed(what, format!("a line that starts with `{prefix}`"), format!("`{}`", excerpt(line))))
}

/// Decodes canonical padded base64 of exactly `N` bytes.
fn decode<const N: usize>(what: &'static str, text: &str) -> Result<[u8; N], Error> {
    let bytes = STANDARD.decode(text).map_err(|error| malformed(what, "padded base64", error.to_string()))?;
    let count = bytes.len();
    bytes.try_into().map_err(|_| malformed(what, format!("{N} bytes in base64"), format!("{count} bytes")))
}
