//! Judgement of one signature or statement about a bundle.

use std::fs::File;
use std::io::{Seek, SeekFrom};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Value, json};
use toolcrib_base::render;
use toolcrib_foundation::hex;
use toolcrib_signature::provenance::{Assurance, Provenance};
use toolcrib_signature::statement::{PROVENANCE_PREDICATE, SIGNATURE_PREDICATE};
use toolcrib_signature::{Claim, Digest, Error, SignedBy, Verified, minisign, verify};

use super::TrustedSigners;

const UNSIGNED: &str = "it is not signed";

/// Format of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Bundle of Sigstore.
    Sigstore,
    /// Signature of minisign.
    Minisign,
    /// In-toto statement that nobody signed.
    Statement,
}

impl Format {
    /// Returns the name of the format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sigstore => "sigstore-bundle-v0.3",
            Self::Minisign => "minisign",
            Self::Statement => "in-toto-statement",
        }
    }
}

/// Meaning of a signed statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Approval of the bundle.
    Signature,
    /// Description of a build, which approves nothing.
    Provenance,
    Other,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Signature => "signature",
            Self::Provenance => "provenance",
            Self::Other => "other",
        }
    }
}

/// Trusted signer of a valid signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signer {
    /// Stable identifier: `key:SHA256`, `minisign:PUBLIC-KEY`, or `identity:NAME issuer:URL`. Equal signers have equal
    /// identifiers, and different signers have different ones.
    pub(crate) id: String,
    /// Public key as `--key` reads it from a file; `None` for an identity.
    pub(crate) public_key: Option<String>,
    pub(crate) format: Format,
    /// Earliest time at which a trusted authority saw the signature.
    pub(crate) time: Option<Timestamp>,
}

impl Signer {
    /// Formats the signer for a lock: `key:SHA256 BASE64` with the public key itself, `minisign:PUBLIC-KEY`, or
    /// `identity:NAME issuer:URL`. [`TrustedSigners::add_pinned`] reads it.
    pub(crate) fn pin(&self) -> String {
        let Some(pem) = self.public_key.as_ref().filter(|_| self.format == Format::Sigstore) else {
            return self.id.clone();
        };
        format!("{} {}", self.id, pem.lines().filter(|line| !line.starts_with('-')).collect::<String>())
    }

    fn of_bundle(verified: &Verified, trusted: &TrustedSigners) -> Self {
        let (id, public_key) = match &verified.signed_by {
            SignedBy::Key(id) => {
                let key = trusted.keys.iter().find(|key| key.id().is_ok_and(|known| known == *id));
                (format!("key:{id}"), key.and_then(|key| key.to_pem().ok()))
            }
            SignedBy::Identity(identity) => {
                (format!("identity:{} issuer:{}", identity.name(), identity.issuer()), None)
            }
            other => (format!("other:{other}"), None),
        };
        Self { id, public_key, format: Format::Sigstore, time: verified.time }
    }

    fn of_minisign(key: &minisign::MinisignKey) -> Self {
        // The 8 bytes that minisign shows as an identifier can be chosen by anybody.
        let id = format!("minisign:{}", key.to_base64());
        Self { id, public_key: Some(key.to_file()), format: Format::Minisign, time: None }
    }
}

/// Judgement of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Valid(Signer),
    /// Not by a trusted signer, or not verifiable with the trusted ones: the reason.
    NotTrusted(String),
    /// Malformed, for another bundle, or changed after it was made: the reason.
    Invalid(String),
    /// Of a kind that is not verified: the reason.
    NotChecked(String),
}

/// Signature or statement about a bundle, with its judgement.
#[derive(Debug)]
pub(crate) struct Finding {
    /// File, or digest of the attached manifest.
    pub(super) place: String,
    pub(super) kind: Kind,
    pub(super) format: Format,
    pub(super) verdict: Verdict,
    pub(super) provenance: Option<Provenance>,
}

impl Finding {
    /// Creates the finding of something that cannot be used.
    pub(super) fn invalid(place: String, format: Format, reason: impl Into<anyhow::Error>) -> Self {
        let verdict = Verdict::Invalid(render::message(&reason.into()));
        Self { place, kind: Kind::Other, format, verdict, provenance: None }
    }

    /// Judges a Sigstore bundle about the bundle with this digest.
    pub(super) fn of_bundle(place: String, bytes: &[u8], digest: &Digest, trusted: &TrustedSigners) -> Self {
        let claim = match Claim::read(bytes, digest) {
            Ok(claim) => claim,
            Err(error) => return Self::invalid(place, Format::Sigstore, error),
        };
        let mut provenance = None;
        let (kind, verdict) = match claim.predicate_type.as_str() {
            SIGNATURE_PREDICATE => {
                let verified = verify(bytes, digest, &trusted.policy);
                let valid = |verified: Verified| Verdict::Valid(Signer::of_bundle(&verified, trusted));
                (Kind::Signature, verified.map_or_else(|error| refusal(error, &claim, trusted), valid))
            }
            PROVENANCE_PREDICATE => {
                let verdict = match Provenance::verify(bytes, digest, &trusted.policy) {
                    Ok(read) => assured(&provenance.insert(read).assurance, trusted),
                    Err(error) => refusal(error, &claim, trusted),
                };
                if matches!(verdict, Verdict::NotTrusted(_)) {
                    provenance = Provenance::read_claim(&claim.statement, digest).ok();
                }
                (Kind::Provenance, verdict)
            }
            other => {
                let shown = render::excerpt(other);
                let reason = format!("a statement of type `{shown}` is neither a signature nor provenance");
                (Kind::Other, Verdict::NotChecked(reason))
            }
        };
        Self { place, kind, format: Format::Sigstore, verdict, provenance }
    }

    /// Judges a statement that nobody signed.
    pub(super) fn of_statement(place: String, statement: &[u8], digest: &Digest) -> Self {
        match Provenance::read_claim(statement, digest) {
            Ok(provenance) => Self {
                place,
                kind: Kind::Provenance,
                format: Format::Statement,
                verdict: Verdict::NotTrusted(UNSIGNED.to_owned()),
                provenance: Some(provenance),
            },
            Err(error) => Self::invalid(place, Format::Statement, error),
        }
    }

    /// Judges a minisign signature of a file.
    pub(super) fn of_minisign(place: String, signature: &[u8], file: &mut File, trusted: &TrustedSigners) -> Self {
        let mut reason = "no minisign key is trusted".to_owned();
        for key in &trusted.minisign {
            let verified = match file.seek(SeekFrom::Start(0)) {
                Ok(_) => minisign::verify(&mut *file, signature, key),
                Err(error) => Err(Error::Read(error)),
            };
            match verified {
                Ok(_) => {
                    let verdict = Verdict::Valid(Signer::of_minisign(key));
                    let (kind, format) = (Kind::Signature, Format::Minisign);
                    return Self { place, kind, format, verdict, provenance: None };
                }
                Err(Error::MinisignSignature { expected, found, .. }) if expected != found => {
                    reason = format!("no trusted minisign key verifies the signature: it names key `{found}`");
                }
                Err(error) => return Self::invalid(place, Format::Minisign, error),
            }
        }
        let verdict = Verdict::NotTrusted(reason);
        Self { place, kind: Kind::Signature, format: Format::Minisign, verdict, provenance: None }
    }

    /// Returns the signer of a valid signature. Provenance does not count.
    pub(super) fn signer(&self) -> Option<&Signer> {
        match &self.verdict {
            Verdict::Valid(signer) if self.kind == Kind::Signature => Some(signer),
            _ => None,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let (status, signer, reason) = match &self.verdict {
            Verdict::Valid(signer) => ("valid", Some(signer), None),
            Verdict::NotTrusted(reason) => ("not_trusted", None, Some(reason)),
            Verdict::Invalid(reason) => ("invalid", None, Some(reason)),
            Verdict::NotChecked(reason) => ("not_checked", None, Some(reason)),
        };
        json!({
            "place": self.place,
            "kind": self.kind.as_str(),
            "format": self.format.as_str(),
            "status": status,
            "signer": signer.map(|signer| &signer.id),
            "time": signer.and_then(|signer| signer.time),
            "reason": reason,
        })
    }
}

fn assured(assurance: &Assurance, trusted: &TrustedSigners) -> Verdict {
    match assurance {
        Assurance::Signed(verified) => Verdict::Valid(Signer::of_bundle(verified, trusted)),
        _ => Verdict::NotTrusted(UNSIGNED.to_owned()),
    }
}

/// Tells a signer who is not trusted from a signature that is wrong.
fn refusal(error: Error, claim: &Claim, trusted: &TrustedSigners) -> Verdict {
    let names =
        |hint: &String| trusted.keys.iter().any(|key| key.id().is_ok_and(|id| STANDARD.encode(id.as_bytes()) == *hint));
    match &error {
        Error::NoTrustedKey { .. } if claim.key_hint.as_ref().is_some_and(names) => Verdict::Invalid(
            "the signature names a trusted key but does not match it: it was changed or forged".to_owned(),
        ),
        Error::NoTrustedKey { .. } | Error::Policy { missing: "trusted key", .. } => {
            let named = claim.key_hint.as_deref().map_or_else(|| "no key".to_owned(), named_key);
            Verdict::NotTrusted(format!("no trusted key verifies the signature: it names {named}"))
        }
        Error::NoTrustedIdentity { .. } | Error::Policy { .. } => Verdict::NotTrusted(error.to_string()),
        _ => Verdict::Invalid(render::message(&error.into())),
    }
}

/// Describes the key that a signature names. Anybody can write that name.
fn named_key(hint: &str) -> String {
    match STANDARD.decode(hint).ok().filter(|id| id.len() == 32) {
        Some(id) => format!("`key:{}`", hex(&id)),
        None => format!("`{}`", render::excerpt(hint)),
    }
}

#[cfg(test)]
#[path = "finding_tests.rs"]
mod tests;
