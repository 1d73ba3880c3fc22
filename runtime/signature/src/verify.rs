//! Verification of a Sigstore bundle against a digest and a policy.

use std::fmt;

use crate::{
    Digest,
    bundle::{Bundle, Material, shown_hint},
    error::Error,
    key::{KeyId, PublicKey},
    policy::{Identity, Policy},
    statement::{SIGNATURE_PREDICATE, Statement},
};

/// Trusted signer of a valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignedBy {
    /// Trusted key.
    Key(KeyId),
    /// Trusted identity, certified by an authority of the trust root.
    Identity(Identity),
}

impl fmt::Display for SignedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(id) => write!(f, "key `{id}`"),
            Self::Identity(identity) => write!(f, "identity {identity}"),
        }
    }
}

/// Format of a verified signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Sigstore bundle v0.3 with a DSSE envelope.
    SigstoreBundleV03,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SigstoreBundleV03 => f.write_str("Sigstore bundle v0.3"),
        }
    }
}

/// Result of a successful verification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Signer.
    pub signed_by: SignedBy,
    /// Format of the signature.
    pub format: Format,
    /// Earliest time at which a trusted log or timestamp authority saw the signature, if one did.
    pub time: Option<jiff::Timestamp>,
}

/// Verifies that a signer whom `policy` trusts signed the OCI manifest with the digest `expected`.
///
/// `bundle` is JSON of at most [`MAX_JSON_BYTES`](crate::limits::MAX_JSON_BYTES). Only the predicate type
/// [`SIGNATURE_PREDICATE`] counts: provenance by the same signer describes a build and does not approve it.
///
/// # Errors
/// [`Error::Json`], [`Error::Limit`] and [`Error::Field`] for a malformed or unknown bundle; [`Error::NoTrustedKey`],
/// [`Error::NoTrustedIdentity`] and [`Error::Policy`] for a signer whom the policy does not trust; [`Error::Keyless`] for
/// invalid certificates, log entries or timestamps; [`Error::OtherArtifact`] for another digest.
pub fn verify(bundle: &[u8], expected: &Digest, policy: &Policy) -> Result<Verified, Error> {
    verify_statement(bundle, expected, SIGNATURE_PREDICATE, policy).map(|(verified, _)| verified)
}

/// Verifies a statement of one predicate type and returns the statement.
pub(crate) fn verify_statement(
    json: &[u8],
    expected: &Digest,
    predicate_type: &str,
    policy: &Policy,
) -> Result<(Verified, Statement), Error> {
    let bundle = Bundle::parse(json)?;
    let (signed_by, time) = match &bundle.material {
        Material::PublicKey { hint } => {
            let key = trusted_key(&bundle, hint, policy)?;
            (SignedBy::Key(key.id()?), key_evidence(json, &bundle, key, expected, policy)?)
        }
        Material::Certificate => {
            let trust_root = policy.trust_root.as_ref().ok_or_else(|| missing("trust root", "a certificate"))?;
            if policy.identities.is_empty() {
                return Err(missing("trusted identity", "a certificate"));
            }
            let (identity, time) = trust_root.verify_certificate(json, expected, &policy.identities)?;
            (SignedBy::Identity(identity), Some(time))
        }
    };
    // The payload is read only after its signature has been verified.
    let statement = Statement::parse(&bundle.payload)?;
    statement.expect(expected, predicate_type)?;
    Ok((Verified { signed_by, format: Format::SigstoreBundleV03, time }, statement))
}

/// Finds the trusted key that verifies the signature. The hint of the bundle decides nothing.
fn trusted_key<'a>(bundle: &Bundle, hint: &str, policy: &'a Policy) -> Result<&'a PublicKey, Error> {
    if policy.keys.is_empty() {
        return Err(missing("trusted key", &format!("a signature by key `{}`", shown_hint(hint))));
    }
    let message = bundle.signed_bytes();
    if let Some(key) = policy.keys.iter().find(|key| key.verifies(&message, &bundle.signature)) {
        return Ok(key);
    }
    let trusted = policy.keys.iter().map(|key| Ok(format!("`{}` ({})", key.id()?, key.algorithm())));
    let trusted = trusted.collect::<Result<Vec<_>, Error>>()?.join(", ");
    Err(Error::NoTrustedKey { hint: shown_hint(hint), trusted })
}

/// Checks log entries and timestamps of a key-signed bundle, which has none unless it was logged.
fn key_evidence(
    json: &[u8],
    bundle: &Bundle,
    key: &PublicKey,
    expected: &Digest,
    policy: &Policy,
) -> Result<Option<jiff::Timestamp>, Error> {
    if bundle.log_entries + bundle.timestamps == 0 {
        return Ok(None);
    }
    match &policy.trust_root {
        Some(trust_root) => trust_root.verify_key_evidence(json, bundle.log_entries > 0, key, expected),
        None if policy.ignores_unchecked_evidence => Ok(None),
        None => {
            let found = format!("{} log entries and {} timestamps", bundle.log_entries, bundle.timestamps);
            Err(missing("trust root", &found))
        }
    }
}

fn missing(missing: &'static str, found: &str) -> Error {
    Error::Policy { missing, found: found.to_owned() }
}
