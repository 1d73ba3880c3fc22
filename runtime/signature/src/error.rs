//! Errors of signing and verification.
//!
//! Each message names the document, the field, the expected value and the value found.
//! Text from untrusted input is escaped and shortened before it enters a message; secrets never enter one.

use std::{io, path::PathBuf};

use toolcrib_foundation::text::shown;

/// Failure of an operation in this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A document, a field or a count exceeds its limit.
    #[error("{what}: found {found}, the limit is {max}")]
    Limit {
        /// Name of the bounded value, with its unit.
        what: String,
        /// Size or count that was found.
        found: u64,
        /// Largest accepted size or count.
        max: u64,
    },
    /// A document is not JSON, nests too deeply, repeats a key or has trailing data.
    #[error("{what} is not valid JSON")]
    Json {
        /// Name of the document.
        what: &'static str,
        /// Position and reason.
        #[source]
        source: serde_json::Error,
    },
    /// A field is missing, unknown, of the wrong type or has an unexpected value.
    #[error("{what}: field `{field}`: expected {expected}, found {found}")]
    Field {
        /// Name of the document.
        what: &'static str,
        /// Path of the field inside the document.
        field: String,
        /// Description of an accepted value.
        expected: String,
        /// Description of the value in the document.
        found: String,
    },
    /// The signed statement is about another artifact.
    #[error("the signature is for `{found}`, expected `{expected}`")]
    OtherArtifact {
        /// Digest the caller asked for.
        expected: String,
        /// Digest in the statement.
        found: String,
    },
    /// No trusted key verifies the signature.
    #[error("no trusted key verifies the signature: the bundle names key `{hint}`, trusted: {trusted}")]
    NoTrustedKey {
        /// Key hint in the bundle, shortened. The hint is not authenticated.
        hint: String,
        /// Identifiers of the trusted keys.
        trusted: String,
    },
    /// The certificate is valid, but belongs to an identity that the policy does not trust.
    #[error("signed by identity `{identity}` of issuer `{issuer}`, expected {expected}")]
    NoTrustedIdentity {
        /// Subject alternative name of the certificate, shortened.
        identity: String,
        /// OIDC issuer in the certificate, shortened.
        issuer: String,
        /// Identities the policy trusts.
        expected: String,
    },
    /// The policy cannot judge this kind of bundle.
    #[error("the policy has no {missing}, but the bundle has {found}")]
    Policy {
        /// Missing part of the policy.
        missing: &'static str,
        /// Evidence in the bundle that needs the missing part.
        found: String,
    },
    /// Certificate, log entry, timestamp or signature of a keyless bundle is not valid.
    #[error("the keyless evidence is not valid")]
    Keyless(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The trust root is not valid.
    #[error("the trust root is not valid")]
    TrustRoot(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A key cannot be read. The reason never contains key material.
    #[error("{what}: expected {expected}, found {found}")]
    Key {
        /// Kind of key.
        what: &'static str,
        /// Description of an accepted key.
        expected: String,
        /// Description of what was found.
        found: String,
    },
    /// A secret key is encrypted and no passphrase was given.
    #[error("the secret key is encrypted: expected a passphrase, found none")]
    PassphraseRequired,
    /// A passphrase does not decrypt the secret key, or the key is damaged.
    #[error("the passphrase does not decrypt the secret key, or the key is damaged")]
    Passphrase,
    /// A key file can be read or replaced by others, or is not a regular file.
    #[error("key file `{}`: {reason}", path.display())]
    KeyFile {
        /// Path as given by the caller.
        path: PathBuf,
        /// Property of the opened file that is refused.
        reason: String,
    },
    /// A file cannot be opened, read or written.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// `open`, `read` or `write`.
        action: &'static str,
        /// Path as given by the caller.
        path: PathBuf,
        /// Reason given by the system.
        #[source]
        source: io::Error,
    },
    /// The signed data cannot be read.
    #[error("cannot read the signed data")]
    Read(#[source] io::Error),
    /// A minisign document is malformed.
    #[error("minisign {what}: expected {expected}, found {found}")]
    Minisign {
        /// `signature`, `public key`, `secret key` or a comment.
        what: &'static str,
        /// Description of an accepted value.
        expected: String,
        /// Description of the value found.
        found: String,
    },
    /// A minisign signature does not verify.
    #[error("the minisign signature by key `{found}` does not verify with key `{expected}`")]
    MinisignSignature {
        /// Identifier of the trusted key.
        expected: String,
        /// Identifier of the key in the signature.
        found: String,
        /// Reason.
        #[source]
        source: minisign_verify::Error,
    },
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    Random(#[source] getrandom::Error),
}

impl Error {
    /// Returns [`Error::Limit`] when `found` exceeds `max`.
    pub(crate) fn limit(what: impl Into<String>, found: usize, max: usize) -> Result<(), Self> {
        if found <= max {
            return Ok(());
        }
        Err(Self::Limit { what: what.into(), found: found as u64, max: max as u64 })
    }

    /// Creates [`Error::Key`].
    pub(crate) fn key(what: &'static str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Key { what, expected: expected.into(), found: found.into() }
    }
}

/// Escapes control characters of untrusted text and shortens it to the length of a message.
pub(crate) fn excerpt(text: &str) -> String {
    shown(text).chars().flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_of_untrusted_text_are_short_and_free_of_control_characters() {
        let shown = excerpt(&"\u{1b}[2J\u{202e}".repeat(1_000));
        assert!(shown.len() < 800, "{shown}");
        assert!(!shown.chars().any(|c| c.is_control() || c == '\u{202e}'), "{shown}");
        assert!(shown.ends_with('…'));
    }
}
