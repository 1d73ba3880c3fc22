//! Policy of a verification: trusted keys, identities and authorities.

use std::fmt;

use crate::limits::{MAX_ENTRIES, MAX_TEXT_BYTES};
use crate::{error::Error, key::PublicKey, keyless::TrustRoot};

/// Signer of a keyless signature: a certified name and the issuer that vouched for the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    name: String,
    issuer: String,
}

impl Identity {
    /// Creates an identity. Both texts are compared exactly; there are no patterns.
    ///
    /// `name` is the subject alternative name of the certificate: an e-mail address or the URI of a workflow. `issuer`
    /// is the URL of the OIDC issuer.
    ///
    /// # Errors
    /// [`Error::Limit`] over [`MAX_TEXT_BYTES`]; [`Error::Policy`] when either text is empty.
    pub fn new(name: impl Into<String>, issuer: impl Into<String>) -> Result<Self, Error> {
        let identity = Self { name: name.into(), issuer: issuer.into() };
        for (missing, text) in [("identity", &identity.name), ("issuer", &identity.issuer)] {
            Error::limit(format!("{missing}, bytes"), text.len(), MAX_TEXT_BYTES)?;
            if text.is_empty() {
                return Err(Error::Policy { missing, found: "none would match".into() });
            }
        }
        Ok(identity)
    }

    /// Returns the certified name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the URL of the OIDC issuer.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.issuer
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of issuer `{}`", self.name, self.issuer)
    }
}

/// Trusted keys, trusted identities and the trust root of keyless signatures. A new policy trusts nobody.
#[derive(Debug, Default)]
pub struct Policy {
    pub(crate) keys: Vec<PublicKey>,
    pub(crate) identities: Vec<Identity>,
    pub(crate) trust_root: Option<TrustRoot>,
    pub(crate) ignores_unchecked_evidence: bool,
}

impl Policy {
    /// Creates a policy that trusts nobody.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts signatures by a key.
    ///
    /// # Errors
    /// [`Error::Limit`] over [`MAX_ENTRIES`].
    pub fn trust_key(mut self, key: PublicKey) -> Result<Self, Error> {
        Error::limit("trusted keys", self.keys.len() + 1, MAX_ENTRIES)?;
        self.keys.push(key);
        Ok(self)
    }

    /// Trusts keyless signatures of an identity; they also need [`Self::trust_root`].
    ///
    /// # Errors
    /// [`Error::Limit`] over [`MAX_ENTRIES`].
    pub fn trust_identity(mut self, identity: Identity) -> Result<Self, Error> {
        Error::limit("trusted identities", self.identities.len() + 1, MAX_ENTRIES)?;
        self.identities.push(identity);
        Ok(self)
    }

    /// Sets the authorities and logs against which certificates, log entries and timestamps are checked.
    #[must_use]
    pub fn trust_root(mut self, trust_root: TrustRoot) -> Self {
        self.trust_root = Some(trust_root);
        self
    }

    /// Accepts key-signed bundles with log entries or timestamps that cannot be checked without a trust root.
    ///
    /// The evidence is then ignored and proves no time. Without this call such bundles are refused.
    #[must_use]
    pub fn ignore_unchecked_evidence(mut self) -> Self {
        self.ignores_unchecked_evidence = true;
        self
    }
}
