//! Signing: from a manifest digest or a statement to a Sigstore bundle.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    Digest, bundle,
    error::Error,
    key::Signer,
    limits::MAX_PAYLOAD_BYTES,
    statement::{Statement, signature_statement},
};

impl Signer {
    /// Signs the digest of an OCI manifest and returns a Sigstore bundle v0.3 in JSON.
    ///
    /// The bundle holds a DSSE envelope with an in-toto statement: subject = `digest`, predicate type =
    /// [`SIGNATURE_PREDICATE`](crate::statement::SIGNATURE_PREDICATE), empty predicate. The same key and digest always
    /// give the same bytes. The key hint is the base64 of [`KeyId`](crate::key::KeyId).
    ///
    /// # Errors
    /// [`Error::Key`] when the public key cannot be encoded.
    pub fn sign_digest(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        self.seal(&signature_statement(digest))
    }

    /// Signs an in-toto statement, for example SLSA provenance, and returns a Sigstore bundle v0.3 in JSON.
    ///
    /// # Errors
    /// [`Error::Limit`] over [`MAX_PAYLOAD_BYTES`]; [`Error::Json`] and [`Error::Field`] when the statement is one that
    /// this crate would not accept; [`Error::Key`] when the public key cannot be encoded.
    pub fn sign_statement(&self, statement: &[u8]) -> Result<Vec<u8>, Error> {
        Error::limit("in-toto statement, bytes", statement.len(), MAX_PAYLOAD_BYTES)?;
        Statement::parse(statement)?;
        self.seal(statement)
    }

    fn seal(&self, payload: &[u8]) -> Result<Vec<u8>, Error> {
        let hint = STANDARD.encode(self.public_key().id()?.as_bytes());
        Ok(bundle::write(&hint, payload, &self.sign(&bundle::signed_bytes(payload))))
    }
}
