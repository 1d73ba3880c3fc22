//! Pushes a bundle or a component: blobs first and the manifest last, so that nobody finds a part of it.

use std::path::Path;

use anyhow::ensure;
use toolcrib_base::progress;
use toolcrib_base::render::Advice;
use toolcrib_registry::{Client, Manifest, PushedBlob, Reference, Tag, UploadMode};

use super::artifact::{Artifact, Artifacts};
use super::failed;
use super::transfer::Transfer;

/// Bundle or component that was pushed.
#[derive(Debug)]
pub struct Pushed {
    /// Reference with the digest of the manifest.
    pub reference: Reference,
    /// Bytes of all blobs.
    pub bytes: u64,
    /// Number of blobs that were uploaded.
    pub uploaded: usize,
    /// Number of blobs that the repository had.
    pub existing: usize,
    /// Number of artifacts attached to the bundle, such as signatures, that were pushed with it.
    pub attached: usize,
}

/// Pushes the bundle or component in a file.
///
/// # Errors
///
/// The file is neither, the reference has another digest, or the registry refuses it.
pub async fn push(client: &Client, file: &Path, reference: &Reference) -> anyhow::Result<Pushed> {
    let path = file.to_owned();
    let artifacts = tokio::task::spawn_blocking(move || Artifacts::read(&path)).await??;
    let digest = artifacts.main.manifest.descriptor.digest.clone();
    if let Some(expected) = reference.digest() {
        ensure!(
            *expected == digest,
            Advice::new(
                format!("`{}` has the digest {digest}, not {expected}", file.display()),
                "name its digest, or none"
            )
        );
    }
    let all = || std::iter::once(&artifacts.main).chain(&artifacts.attached);
    let total = all().flat_map(|artifact| &artifact.blobs).map(|(blob, _)| blob.size).sum();
    let mut pushed = Pushed {
        reference: reference.clone().with_digest(digest),
        bytes: total,
        uploaded: 0,
        existing: 0,
        attached: artifacts.attached.len(),
    };
    let mut transfer = Transfer::new("pushing", total);
    let bar = transfer.bar.clone();
    let work = async {
        for (artifact, tag) in all().zip(std::iter::once(reference.tag()).chain(std::iter::repeat(None))) {
            push_one(client, reference, artifact, tag, &mut transfer, &mut pushed).await?;
        }
        anyhow::Ok(())
    };
    progress::shown(&bar, work).await?;
    Ok(pushed)
}

async fn push_one(
    client: &Client,
    reference: &Reference,
    artifact: &Artifact,
    tag: Option<&Tag>,
    transfer: &mut Transfer,
    pushed: &mut Pushed,
) -> anyhow::Result<()> {
    let repository = reference.repository();
    let advise = |error| failed(error, &format!("push to `{reference}`"), repository.registry());
    for (blob, source) in &artifact.blobs {
        let on_progress = Some(transfer.next(blob.size));
        match client.push_blob(repository, blob, source, UploadMode::Auto, on_progress).await.map_err(advise)? {
            PushedBlob::Uploaded => pushed.uploaded += 1,
            _ => pushed.existing += 1,
        }
    }
    let manifest: &Manifest = &artifact.manifest;
    client.push_manifest(repository, manifest, tag).await.map_err(advise)?;
    Ok(())
}
