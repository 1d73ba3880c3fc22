//! Signatures in a registry: referrers of a bundle, in the layout that cosign writes and reads since version 3.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::stream::{self, StreamExt};
use serde_json::json;
use tokio::time::timeout;
use toolcrib_registry::{
    Algorithm, BlobSource, Client, Descriptor, Manifest, OCI_MANIFEST, Reference, Repository, UploadMode,
};
use toolcrib_signature::Digest;
use toolcrib_signature::bundle::BUNDLE_MEDIA_TYPE;

use super::attached::{self, MAX_ATTACHED, MAX_ATTACHED_MANIFEST_BYTES};
use super::finding::{Finding, Format};
use super::{SignatureReport, TrustedSigners};

/// Maximum time for finding and reading all signatures of a bundle.
const MAX_TIME: Duration = Duration::from_secs(120);
/// Number of signatures that are fetched at the same time.
const CONCURRENCY: usize = 8;
/// Media type of the empty configuration. Source: OCI image specification 1.1, "Guidance for an Empty Descriptor".
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const EMPTY: &[u8] = b"{}";

/// Resolves a reference to the manifest that a signature covers. The content is fetched and its digest checked.
///
/// # Errors
///
/// The registry does not answer or has no such manifest, or the reference has another digest than SHA-256.
pub async fn signable(client: &Client, reference: &Reference) -> anyhow::Result<Descriptor> {
    let manifest = client.pull_manifest(reference).await.with_context(|| format!("cannot read `{reference}`"))?;
    ensure!(
        manifest.descriptor.digest.algorithm() == Algorithm::Sha256,
        "`{reference}` has the digest `{}`: signatures cover SHA-256 digests only",
        manifest.descriptor.digest
    );
    Ok(manifest.descriptor)
}

/// Pushes a Sigstore bundle as a referrer of `subject` and returns its manifest's digest. The same signature always
/// becomes the same manifest.
///
/// # Errors
///
/// The registry refuses a part.
pub async fn attach(
    client: &Client,
    repository: &Repository,
    subject: &Descriptor,
    bundle: Vec<u8>,
    predicate_type: &str,
) -> anyhow::Result<toolcrib_registry::Digest> {
    let failed = || format!("cannot attach the signature in `{repository}`");
    let mut config = Descriptor::of(EMPTY_TYPE, EMPTY);
    config.artifact_type = Some(BUNDLE_MEDIA_TYPE.to_owned());
    let layer = Descriptor::of(BUNDLE_MEDIA_TYPE, &bundle);
    let subject = Descriptor::new(&subject.media_type, subject.digest.clone(), subject.size);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": BUNDLE_MEDIA_TYPE,
        "config": config,
        "layers": [layer],
        "subject": subject,
        "annotations": {
            "dev.sigstore.bundle.content": "dsse-envelope",
            "dev.sigstore.bundle.predicateType": predicate_type,
        },
    });
    let manifest = Manifest::new(OCI_MANIFEST, manifest.to_string()).with_context(failed)?;
    for (blob, content) in [(&config, EMPTY.to_vec()), (&layer, bundle)] {
        let source = BlobSource::Bytes(content.into());
        client.push_blob(repository, blob, &source, UploadMode::Auto, None).await.with_context(failed)?;
    }
    let pushed = client.push_manifest(repository, &manifest, None).await.with_context(failed)?;
    Ok(pushed.descriptor.digest)
}

/// Finds and judges the signatures of a bundle in a registry.
pub(super) async fn find(
    client: &Client,
    repository: &Repository,
    subject: &Descriptor,
    trusted: &TrustedSigners,
) -> anyhow::Result<SignatureReport> {
    let digest: Digest = subject.digest.to_string().parse()?;
    let search = async {
        let listed = client.referrers(repository, &subject.digest, None).await;
        let listed = listed.with_context(|| format!("cannot list the signatures of `{repository}@{digest}`"))?;
        let mut seen = HashSet::new();
        let known =
            listed.into_iter().filter_map(|entry| Some((attached::format(entry.artifact_type.as_deref()?)?, entry)));
        let mut known: Vec<_> = known.filter(|(_, entry)| seen.insert(entry.digest.clone())).collect();
        let skipped = known.len().saturating_sub(MAX_ATTACHED);
        known.truncate(MAX_ATTACHED);
        let findings = stream::iter(known).map(|(format, entry)| {
            let digest = &digest;
            async move {
                let place = entry.digest.to_string();
                match content(client, repository, &entry, digest, format).await {
                    Ok(content) => attached::judge(place, format, &content, digest, trusted),
                    Err(error) => Finding::invalid(place, format, error),
                }
            }
        });
        anyhow::Ok((findings.buffered(CONCURRENCY).collect::<Vec<_>>().await, skipped))
    };
    let (findings, skipped) = timeout(MAX_TIME, search)
        .await
        .with_context(|| format!("the signatures of `{repository}@{digest}` did not arrive within {MAX_TIME:?}"))??;
    Ok(SignatureReport { bundle: format!("oci://{repository}"), digest, findings, skipped })
}

/// Fetches the content of one referrer.
async fn content(
    client: &Client,
    repository: &Repository,
    entry: &Descriptor,
    subject: &Digest,
    format: Format,
) -> anyhow::Result<Vec<u8>> {
    let size = entry.size;
    ensure!(
        size <= MAX_ATTACHED_MANIFEST_BYTES,
        "the manifest has {size} bytes, the limit is {MAX_ATTACHED_MANIFEST_BYTES}"
    );
    let reference: Reference = format!("oci://{repository}@{}", entry.digest).parse()?;
    let manifest = client.pull_manifest(&reference).await?;
    ensure!(
        manifest.descriptor.size == size,
        "the manifest has {} bytes, {size} were announced",
        manifest.descriptor.size
    );
    let layer = attached::layer(&manifest, subject, format)?;
    let mut content = Vec::new();
    client.pull_blob(repository, &layer, &mut content, None).await?;
    Ok(content)
}
