//! SLSA provenance v1: a summary of how an artifact was built, for people to read.
//!
//! Provenance without a verified signature is a claim by whoever wrote it, and is marked as one.

use std::fmt;

use serde_json::Value;

use crate::{
    Digest,
    error::{Error, excerpt},
    json::Object,
    limits::{MAX_DEPENDENCIES, MAX_FIELD_BYTES, MAX_SUBJECTS},
    policy::Policy,
    statement::{PROVENANCE_PREDICATE, Statement},
    verify::{Verified, verify_statement},
};

/// Reason to believe a provenance.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assurance {
    /// A trusted signer signed the provenance.
    Signed(Verified),
    /// Nobody signed the provenance: it may be invented.
    Claim,
}

impl fmt::Display for Assurance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signed(verified) => write!(f, "signed by {}", verified.signed_by),
            Self::Claim => f.write_str("claim, not signed"),
        }
    }
}

/// Source repository of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Source {
    /// URI of the repository, as the builder wrote it.
    pub repository: String,
    /// Git commit in hexadecimal digits.
    pub revision: String,
}

/// Summary of SLSA provenance. No text in it has control characters or more than [`MAX_FIELD_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provenance {
    /// Signer of the summary, or the remark that nobody signed.
    pub assurance: Assurance,
    /// URI of the builder.
    pub builder_id: String,
    /// URI of the template that the build followed.
    pub build_type: String,
    /// Source repositories: dependencies that carry a Git commit, in the order of the document.
    pub sources: Vec<Source>,
    /// Identifier of the build on the builder.
    pub invocation_id: Option<String>,
    /// Time at which the build started.
    pub started: Option<jiff::Timestamp>,
    /// Time at which the build finished.
    pub finished: Option<jiff::Timestamp>,
}

impl Provenance {
    /// Verifies a Sigstore bundle with provenance of the artifact `expected` and returns its summary.
    ///
    /// # Errors
    /// As [`verify`](crate::verify::verify), and as [`Self::read_claim`] for the content.
    pub fn verify(bundle: &[u8], expected: &Digest, policy: &Policy) -> Result<Self, Error> {
        let (verified, statement) = verify_statement(bundle, expected, PROVENANCE_PREDICATE, policy)?;
        Self::read(statement, Assurance::Signed(verified))
    }

    /// Reads an unsigned in-toto statement with provenance of the artifact `expected` and marks it as a claim.
    ///
    /// # Errors
    /// [`Error::Json`], [`Error::Limit`] and [`Error::Field`] for a malformed statement, another predicate type or text
    /// with control characters; [`Error::OtherArtifact`] for another digest.
    pub fn read_claim(statement: &[u8], expected: &Digest) -> Result<Self, Error> {
        let statement = Statement::parse(statement)?;
        statement.expect(expected, PROVENANCE_PREDICATE)?;
        Self::read(statement, Assurance::Claim)
    }

    /// Reads the fields of the summary. SLSA allows extensions, so other fields of the predicate are skipped.
    fn read(statement: Statement, assurance: Assurance) -> Result<Self, Error> {
        let mut predicate = statement.into_predicate()?;
        let mut definition = predicate.object("buildDefinition")?;
        let mut run = predicate.object("runDetails")?;
        let build_type = required_text(&mut definition, "buildType")?;
        let builder_id = required_text(&mut run.object("builder")?, "id")?;
        let mut sources = Vec::new();
        for dependency in definition.objects("resolvedDependencies", MAX_DEPENDENCIES)? {
            sources.extend(source(dependency)?);
        }
        Error::limit("source repositories in the provenance", sources.len(), MAX_SUBJECTS)?;
        let (mut invocation_id, mut started, mut finished) = (None, None, None);
        if let Some(mut metadata) = run.optional_object("metadata")? {
            invocation_id = text(&mut metadata, "invocationId")?;
            started = time(&mut metadata, "startedOn")?;
            finished = time(&mut metadata, "finishedOn")?;
        }
        Ok(Self { assurance, builder_id, build_type, sources, invocation_id, started, finished })
    }
}

/// Reads a dependency that is a Git repository at a commit.
fn source(mut dependency: Object) -> Result<Option<Source>, Error> {
    let Some(mut digest) = dependency.optional_object("digest")? else { return Ok(None) };
    let Some(revision) = text(&mut digest, "gitCommit")? else { return Ok(None) };
    if !matches!(revision.len(), 40 | 64) || !revision.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(digest.unexpected("gitCommit", "40 or 64 hexadecimal digits", format!("`{}`", excerpt(&revision))));
    }
    let repository = required_text(&mut dependency, "uri")?;
    Ok(Some(Source { repository, revision }))
}

/// Takes an optional text without control characters.
fn text(object: &mut Object, key: &str) -> Result<Option<String>, Error> {
    let text = object.optional_text(key, MAX_FIELD_BYTES)?;
    if let Some(text) = text.as_ref().filter(|text| text.chars().any(char::is_control)) {
        return Err(object.unexpected(key, "text without control characters", format!("`{}`", excerpt(text))));
    }
    Ok(text)
}

fn required_text(object: &mut Object, key: &str) -> Result<String, Error> {
    let found = text(object, key)?.filter(|text| !text.is_empty());
    found.ok_or_else(|| object.unexpected(key, "text", "none"))
}

/// Takes an optional RFC 3339 time.
fn time(object: &mut Object, key: &str) -> Result<Option<jiff::Timestamp>, Error> {
    let value = match object.take(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(value) => value,
    };
    let parsed = value.as_str().and_then(|text| text.parse().ok());
    let parsed = parsed.ok_or_else(|| {
        let found =
            value.as_str().map_or_else(|| crate::json::kind(&value).to_owned(), |t| format!("`{}`", excerpt(t)));
        object.unexpected(key, "an RFC 3339 time", found)
    })?;
    Ok(Some(parsed))
}
