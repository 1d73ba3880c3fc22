//! Report of a bundle's signatures, as text and as JSON.

use serde_json::{Value, json};
use toolcrib_base::render::one_line;
use toolcrib_signature::Digest;
use toolcrib_signature::provenance::{Assurance, Provenance};

use super::attached::MAX_ATTACHED;
use super::finding::{Finding, Kind, Signer, Verdict};

/// Signatures of a bundle that were found, each with its judgement.
#[derive(Debug)]
pub struct SignatureReport {
    /// Name of the bundle: its path, or its repository.
    pub(crate) bundle: String,
    /// Digest of the manifest that the signatures cover.
    pub digest: Digest,
    pub(super) findings: Vec<Finding>,
    /// Number of attached signatures over the limit, which were not examined.
    pub(super) skipped: usize,
}

impl SignatureReport {
    /// Returns the trusted signers of valid signatures, each once.
    pub fn signers(&self) -> Vec<&Signer> {
        let mut signers: Vec<&Signer> = Vec::new();
        for signer in self.findings.iter().filter_map(Finding::signer) {
            if !signers.iter().any(|known| known.id == signer.id) {
                signers.push(signer);
            }
        }
        signers
    }

    /// Returns `true` if somebody signed the bundle who is not trusted.
    pub(crate) fn has_others(&self) -> bool {
        let is_other =
            |finding: &Finding| finding.kind == Kind::Signature && matches!(finding.verdict, Verdict::NotTrusted(_));
        self.findings.iter().any(is_other)
    }

    /// Describes the report for people.
    pub fn text(&self) -> String {
        let mut lines =
            vec![format!("Bundle: {}", one_line(&self.bundle)), format!("Digest: {}", self.digest), String::new()];
        if self.findings.is_empty() {
            lines.push("No signatures were found.".to_owned());
        }
        lines.extend(self.finding_lines());
        lines.extend(self.provenance_lines());
        lines.join("\n")
    }

    /// Describes each finding for people, in two lines.
    pub fn finding_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for finding in &self.findings {
            let (status, detail) = match &finding.verdict {
                Verdict::Valid(signer) => ("valid", describe(signer)),
                Verdict::NotTrusted(reason) => ("not trusted", reason.clone()),
                Verdict::Invalid(reason) => ("invalid", reason.clone()),
                Verdict::NotChecked(reason) => ("not checked", reason.clone()),
            };
            let (kind, format) = (finding.kind.as_str(), finding.format.as_str());
            lines.push(format!("{status:<11}  {}  ({kind}, {format})", one_line(&finding.place)));
            lines.push(format!("             {}", one_line(&detail)));
        }
        if self.skipped > 0 {
            lines.push(format!("{} more were not examined: the limit is {MAX_ATTACHED}", self.skipped));
        }
        lines
    }

    /// Describes the attached provenance for people. Everything that no trusted signer signed is called a claim.
    pub(crate) fn provenance_lines(&self) -> Vec<String> {
        let described = self.findings.iter().filter_map(|finding| Some((finding, finding.provenance.as_ref()?)));
        described.flat_map(|(finding, provenance)| provenance_lines(&one_line(&finding.place), provenance)).collect()
    }

    /// Describes the report for programs.
    pub fn to_json(&self) -> Value {
        let signers = self.signers();
        let provenance = self.findings.iter().filter_map(|finding| {
            let provenance = finding.provenance.as_ref()?;
            Some(json!({
                "place": finding.place,
                "is_claim": matches!(provenance.assurance, Assurance::Claim),
                "builder": provenance.builder_id,
                "build_type": provenance.build_type,
                "sources": provenance.sources.iter().map(|source| json!({
                    "repository": source.repository,
                    "revision": source.revision,
                })).collect::<Vec<_>>(),
                "invocation": provenance.invocation_id,
                "started": provenance.started,
                "finished": provenance.finished,
            }))
        });
        json!({
            "bundle": self.bundle,
            "digest": self.digest.to_string(),
            "verified": !signers.is_empty(),
            "signers": signers.iter().map(|signer| json!({
                "id": signer.id,
                "format": signer.format.as_str(),
                "public_key": signer.public_key,
                "time": signer.time,
            })).collect::<Vec<_>>(),
            "signatures": self.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
            "not_examined": self.skipped,
            "provenance": provenance.collect::<Vec<_>>(),
        })
    }
}

fn describe(signer: &Signer) -> String {
    match signer.time {
        Some(time) => format!("{}, seen by a trusted authority at {time}", signer.id),
        None => signer.id.clone(),
    }
}

fn provenance_lines(place: &str, provenance: &Provenance) -> Vec<String> {
    let assurance = match &provenance.assurance {
        Assurance::Signed(verified) => format!("signed by {}", one_line(&verified.signed_by.to_string())),
        _ => "claim: no trusted signer".to_owned(),
    };
    let mut lines = vec![
        String::new(),
        format!("Provenance in {place} ({assurance})"),
        format!("  Builder: {}", one_line(&provenance.builder_id)),
        format!("  Build type: {}", one_line(&provenance.build_type)),
    ];
    for source in &provenance.sources {
        lines.push(format!("  Source: {} at {}", one_line(&source.repository), one_line(&source.revision)));
    }
    for (name, time) in [("Started", provenance.started), ("Finished", provenance.finished)] {
        lines.extend(time.map(|time| format!("  {name}: {time}")));
    }
    lines
}
