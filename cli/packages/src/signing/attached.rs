//! Attached manifests: the one blob of a referrer that holds a signature or a statement, in a registry or inside a tar.

use anyhow::{bail, ensure};
use toolcrib_registry::{Content, Descriptor, Manifest};
use toolcrib_signature::Digest;
use toolcrib_signature::bundle::{BUNDLE_MEDIA_TYPE, PAYLOAD_TYPE};
use toolcrib_signature::limits::MAX_JSON_BYTES;

use super::TrustedSigners;
use super::finding::{Finding, Format};

/// Maximum number of attached signatures and statements that are examined.
pub(crate) const MAX_ATTACHED: usize = 64;
/// Maximum size of an attached manifest in bytes.
pub(crate) const MAX_ATTACHED_MANIFEST_BYTES: u64 = 64 << 10;

/// Format of an attached artifact: a Sigstore bundle or an unsigned in-toto statement. `None` for any other.
pub(super) fn format(artifact_type: &str) -> Option<Format> {
    match artifact_type {
        BUNDLE_MEDIA_TYPE => Some(Format::Sigstore),
        PAYLOAD_TYPE => Some(Format::Statement),
        _ => None,
    }
}

/// Returns the only layer of a manifest that is attached to the bundle with this digest.
///
/// # Errors
///
/// The manifest is attached to something else, or does not have exactly one layer of the format within the limits.
pub(super) fn layer(manifest: &Manifest, subject: &Digest, expected: Format) -> anyhow::Result<Descriptor> {
    let Content::Image(image) = manifest.parse()? else { bail!("an index is attached instead of a manifest") };
    let found = image.subject.map(|subject| subject.digest.to_string());
    ensure!(found == Some(subject.to_string()), "the manifest is not attached to {subject}");
    let [layer] = &image.layers[..] else { bail!("expected 1 layer, found {}", image.layers.len()) };
    ensure!(format(&layer.media_type) == Some(expected), "the layer has another media type than the artifact");
    ensure!(layer.size <= MAX_JSON_BYTES as u64, "the layer has {} bytes, the limit is {MAX_JSON_BYTES}", layer.size);
    Ok(layer.clone())
}

/// Judges the content of a layer.
pub(super) fn judge(
    place: String,
    format: Format,
    content: &[u8],
    digest: &Digest,
    trusted: &TrustedSigners,
) -> Finding {
    match format {
        Format::Statement => Finding::of_statement(place, content, digest),
        _ => Finding::of_bundle(place, content, digest, trusted),
    }
}
