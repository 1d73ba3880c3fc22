//! In-toto statements: the claim that a signature covers.
//!
//! A statement names its subjects by digest and a predicate by type. This crate accepts statements about exactly one
//! artifact: every subject has to carry the same SHA-256 digest and no other digest, because nothing else is checked.

use serde_json::{Map, Value};

use crate::{
    Digest,
    error::{Error, excerpt},
    json::{self, Object},
    limits::{MAX_SUBJECTS, MAX_TEXT_BYTES},
};

/// Type of statement that is read and written (in-toto attestation framework, version 1).
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
/// Predicate type of a plain signature, as `cosign sign` writes it since version 3.
pub const SIGNATURE_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
/// Predicate type of build provenance.
pub const PROVENANCE_PREDICATE: &str = "https://slsa.dev/provenance/v1";

const WHAT: &str = "in-toto statement";
const DIGEST: &str = "one `sha256` digest of 64 lowercase hexadecimal digits";

/// Statement about one artifact.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) subject: Digest,
    pub(crate) predicate_type: String,
    pub(crate) predicate: Map<String, Value>,
}

impl Statement {
    /// Reads a statement with 1 to [`MAX_SUBJECTS`] subjects that all have the same digest.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut fields = json::object(WHAT, bytes)?;
        fields.constant("_type", STATEMENT_TYPE)?;
        let mut subjects = fields.objects("subject", MAX_SUBJECTS)?.into_iter();
        let first = subjects.next().ok_or_else(|| fields.unexpected("subject", "at least one subject", "none"))?;
        let subject = digest_of(first)?;
        for other in subjects {
            let digest = digest_of(other)?;
            if digest != subject {
                let expected = format!("`{subject}` in every subject");
                return Err(fields.unexpected("subject", expected, format!("`{digest}`")));
            }
        }
        let predicate_type = fields.text("predicateType", MAX_TEXT_BYTES)?;
        let predicate = fields.optional_object("predicate")?.map(|mut object| object.rest()).unwrap_or_default();
        fields.finish()?;
        Ok(Self { subject, predicate_type, predicate })
    }

    /// Refuses a statement about another artifact or with another predicate type.
    pub(crate) fn expect(&self, subject: &Digest, predicate_type: &str) -> Result<(), Error> {
        if self.subject != *subject {
            return Err(Error::OtherArtifact { expected: subject.to_string(), found: self.subject.to_string() });
        }
        if self.predicate_type != predicate_type {
            return Err(Error::Field {
                what: WHAT,
                field: "predicateType".into(),
                expected: format!("`{predicate_type}`"),
                found: format!("`{}`", excerpt(&self.predicate_type)),
            });
        }
        Ok(())
    }

    /// Takes the predicate for reading its fields.
    pub(crate) fn into_predicate(self) -> Result<Object, Error> {
        Object::new(WHAT, "predicate".into(), Value::Object(self.predicate))
    }
}

/// Writes the statement of a plain signature: one subject, an empty predicate.
///
/// Some verifiers require `name`, so it is present; it repeats the digest and adds no claim.
pub(crate) fn signature_statement(subject: &Digest) -> Vec<u8> {
    let hex = subject.hex();
    format!(
        "{{\"_type\":\"{STATEMENT_TYPE}\",\"subject\":[{{\"name\":\"{subject}\",\"digest\":{{\"sha256\":\"{hex}\"}}}}],\
         \"predicateType\":\"{SIGNATURE_PREDICATE}\",\"predicate\":{{}}}}"
    )
    .into_bytes()
}

fn digest_of(mut subject: Object) -> Result<Digest, Error> {
    let mut digests = subject.object("digest")?;
    let text = digests.text("sha256", MAX_TEXT_BYTES)?;
    let digest: Option<Digest> = format!("sha256:{text}").parse().ok();
    let digest = digest.ok_or_else(|| digests.unexpected("sha256", DIGEST, format!("`{}`", excerpt(&text))))?;
    digests.finish()?;
    // Descriptive fields of a resource descriptor: bounded, never used for a decision.
    for key in ["name", "uri", "mediaType", "downloadLocation"] {
        subject.optional_text(key, MAX_TEXT_BYTES)?;
    }
    subject.optional_object("annotations")?;
    subject.finish()?;
    Ok(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(subjects: &str) -> Vec<u8> {
        format!(r#"{{"_type":"{STATEMENT_TYPE}","subject":{subjects},"predicateType":"p","predicate":{{}}}}"#).into()
    }

    fn subject(data: &[u8]) -> String {
        format!(r#"{{"digest":{{"sha256":"{}"}}}}"#, Digest::of(data).hex())
    }

    #[test]
    fn the_statement_of_a_signature_is_read_back() {
        let digest = Digest::of(b"manifest");
        let statement = Statement::parse(&signature_statement(&digest)).unwrap();
        statement.expect(&digest, SIGNATURE_PREDICATE).unwrap();
        assert!(matches!(
            statement.expect(&Digest::of(b"other"), SIGNATURE_PREDICATE),
            Err(Error::OtherArtifact { .. })
        ));
        assert!(matches!(statement.expect(&digest, PROVENANCE_PREDICATE), Err(Error::Field { .. })));
    }

    #[test]
    fn subjects_that_differ_are_refused() {
        let same = format!("[{},{}]", subject(b"a"), subject(b"a"));
        assert!(Statement::parse(&statement(&same)).is_ok());
        let differ = format!("[{},{}]", subject(b"a"), subject(b"b"));
        assert!(Statement::parse(&statement(&differ)).unwrap_err().to_string().contains("in every subject"));
        assert!(Statement::parse(&statement("[]")).is_err());
    }

    #[test]
    fn more_subjects_than_the_limit_are_refused() {
        let many = |count| statement(&format!("[{}]", vec![subject(b"a"); count].join(",")));
        assert!(Statement::parse(&many(MAX_SUBJECTS)).is_ok());
        assert!(matches!(Statement::parse(&many(MAX_SUBJECTS + 1)), Err(Error::Limit { .. })));
    }

    #[test]
    fn digests_that_nobody_checks_are_refused() {
        let hex = Digest::of(b"a").hex();
        for digest in [
            format!(r#"{{"sha512":"{hex}"}}"#),
            format!(r#"{{"sha256":"{hex}","sha512":"{hex}"}}"#),
            format!(r#"{{"sha256":"{}"}}"#, hex.to_uppercase()),
            format!(r#"{{"sha256":"{}"}}"#, &hex[1..]),
            r#"{"sha256":null}"#.to_owned(),
            "{}".to_owned(),
        ] {
            assert!(Statement::parse(&statement(&format!(r#"[{{"digest":{digest}}}]"#))).is_err(), "{digest}");
        }
    }

    #[test]
    fn other_statement_types_and_unknown_fields_are_refused() {
        let text = String::from_utf8(signature_statement(&Digest::of(b"a"))).unwrap();
        assert!(Statement::parse(text.replace("Statement/v1", "Statement/v0.1").as_bytes()).is_err());
        assert!(Statement::parse(text.replace("\"predicate\":", "\"other\":").as_bytes()).is_err());
    }
}
