//! Keyless evidence: certificates, log entries and timestamps, checked offline against a trust root.
//!
//! The crate `sigstore-verify` does the checks themselves. This module bounds their input, gives them a
//! cryptographic provider and compares the certified identity with the policy.

use std::{fmt, sync::Arc};

use sigstore_verify::{
    PublicKeyVerificationPolicy, VerificationPolicy, Verifier,
    trust_root::TrustedRoot,
    types::{self, DerPublicKey, Sha256Hash},
};

use crate::{
    Digest,
    error::{Error, excerpt},
    json::{self, Object},
    key::PublicKey,
    limits::{MAX_CHAIN_CERTIFICATES, MAX_ENTRIES, MAX_PART_BYTES},
    policy::Identity,
    provider,
};

/// Authorities and logs that keyless signatures are checked against: the content of a `trusted_root.json`.
#[derive(Clone)]
pub struct TrustRoot(Arc<Verifier>);

impl TrustRoot {
    /// Reads a `trusted_root.json` (`application/vnd.dev.sigstore.trustedroot+json;version=0.1` and later).
    ///
    /// The caller is responsible for the origin of the file: whoever controls it controls every keyless verification.
    ///
    /// # Errors
    /// [`Error::Json`] and [`Error::Limit`] for a malformed or too large document; [`Error::TrustRoot`] for invalid keys,
    /// certificates or validity periods.
    pub fn from_json(bytes: &[u8]) -> Result<Self, Error> {
        let mut root = json::object(WHAT, bytes)?;
        for key in ["tlogs", "ctlogs"] {
            root.objects(key, MAX_ENTRIES)?;
        }
        for key in ["certificateAuthorities", "timestampAuthorities"] {
            root.objects(key, MAX_ENTRIES)?.into_iter().try_for_each(check_authority)?;
        }
        provider::install();
        let root = TrustedRoot::from_json(text(bytes)?).map_err(|error| Error::TrustRoot(error.into()))?;
        let verifier = Verifier::new(&root).map_err(|error| Error::TrustRoot(error.into()))?;
        Ok(Self(Arc::new(verifier)))
    }

    /// Verifies a keyless bundle completely and returns the trusted identity and the earliest proven time.
    pub(crate) fn verify_certificate(
        &self,
        json: &[u8],
        expected: &Digest,
        identities: &[Identity],
    ) -> Result<(Identity, jiff::Timestamp), Error> {
        let verified = self
            .0
            .verify(artifact(expected)?, &bundle(json)?, &VerificationPolicy::any_identity())
            .map_err(|error| Error::Keyless(error.into()))?;
        if !(verified.certificate_verified() && verified.sct_verified() && verified.tlog_verified()) {
            return Err(Error::Keyless("certificate, certificate log or transparency log was not checked".into()));
        }
        let time = verified.verified_timestamps().iter().min().copied();
        let time = time.ok_or_else(|| Error::Keyless("no authority proves the time of the signature".into()))?;
        let name = verified.identity().map_or("", |name| name.as_str());
        let issuer = verified.issuer().unwrap_or_default();
        match identities.iter().find(|trusted| trusted.name() == name && trusted.issuer() == issuer) {
            Some(trusted) => Ok((trusted.clone(), time)),
            None => Err(Error::NoTrustedIdentity {
                identity: excerpt(name),
                issuer: excerpt(issuer),
                expected: identities.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or "),
            }),
        }
    }

    /// Verifies log entries and timestamps of a key-signed bundle and returns the earliest proven time.
    pub(crate) fn verify_key_evidence(
        &self,
        json: &[u8],
        logged: bool,
        key: &PublicKey,
        expected: &Digest,
    ) -> Result<Option<jiff::Timestamp>, Error> {
        let policy = PublicKeyVerificationPolicy::new(DerPublicKey::new(key.to_der()?));
        // A bundle that has only timestamps has no log entry to check; entries that exist are always checked.
        let policy = if logged { policy } else { policy.skip_tlog_unsafe() };
        let verified = self
            .0
            .verify(artifact(expected)?, &bundle(json)?, &policy)
            .map_err(|error| Error::Keyless(error.into()))?;
        Ok(verified.verified_timestamps().iter().min().copied())
    }
}

impl fmt::Debug for TrustRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustRoot").finish_non_exhaustive()
    }
}

const WHAT: &str = "trust root";

fn check_authority(mut authority: Object) -> Result<(), Error> {
    let mut chain = authority.object("certChain")?;
    for mut certificate in chain.objects("certificates", MAX_CHAIN_CERTIFICATES)? {
        certificate.bytes("rawBytes", MAX_PART_BYTES)?;
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(bytes).map_err(|error| Error::Keyless(error.into()))
}

fn bundle(json: &[u8]) -> Result<types::Bundle, Error> {
    types::Bundle::from_json(text(json)?).map_err(|error| Error::Keyless(error.into()))
}

fn artifact(digest: &Digest) -> Result<Sha256Hash, Error> {
    Sha256Hash::from_hex(&digest.hex()).map_err(|error| Error::Keyless(error.into()))
}
