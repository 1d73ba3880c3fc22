//! Content of a Sigstore bundle that is read without verification, to show what an unknown signer claims.

use crate::{
    Digest,
    bundle::{Bundle, Material},
    error::Error,
    statement::Statement,
};

/// Unverified content of a Sigstore bundle: anybody can write it.
///
/// Texts come from the bundle as they are; escape them before they reach a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Claim {
    /// Hint at the key, or `None` for a keyless signature.
    pub key_hint: Option<String>,
    /// Type of the predicate.
    pub predicate_type: String,
    /// In-toto statement in JSON.
    pub statement: Vec<u8>,
}

impl Claim {
    /// Reads a bundle about the artifact `expected`. Verifies neither the signature nor the signer.
    ///
    /// # Errors
    /// [`Error::Json`], [`Error::Limit`] and [`Error::Field`] for a malformed or unknown bundle;
    /// [`Error::OtherArtifact`] for another digest.
    pub fn read(bundle: &[u8], expected: &Digest) -> Result<Self, Error> {
        let bundle = Bundle::parse(bundle)?;
        let statement = Statement::parse(&bundle.payload)?;
        if statement.subject != *expected {
            return Err(Error::OtherArtifact { expected: expected.to_string(), found: statement.subject.to_string() });
        }
        let key_hint = match bundle.material {
            Material::PublicKey { hint } => Some(hint),
            Material::Certificate => None,
        };
        Ok(Self { key_hint, predicate_type: statement.predicate_type, statement: bundle.payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{key::Algorithm, key::Signer, statement::SIGNATURE_PREDICATE};

    #[test]
    fn a_claim_is_read_for_its_own_artifact_only() {
        let digest = Digest::of(b"manifest");
        let signer = Signer::generate(Algorithm::Ed25519).unwrap();
        let bundle = signer.sign_digest(&digest).unwrap();
        let claim = Claim::read(&bundle, &digest).unwrap();
        assert_eq!(claim.predicate_type, SIGNATURE_PREDICATE);
        assert!(claim.key_hint.is_some_and(|hint| !hint.is_empty()));
        assert!(matches!(Claim::read(&bundle, &Digest::of(b"other")), Err(Error::OtherArtifact { .. })));
        assert!(Claim::read(b"{}", &digest).is_err());
    }
}
