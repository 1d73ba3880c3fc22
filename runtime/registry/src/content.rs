//! Descriptors, manifests and indexes: the parts of the OCI image specification that moving content needs.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{Error, What};
use crate::limits::{MAX_DOCUMENT_BYTES, MAX_MANIFEST_ENTRIES};

/// Media type of an OCI image manifest.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an OCI image index.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Media type of a Docker image manifest.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Media type of a Docker manifest list.
pub const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// Media types accepted for a manifest, in the order of preference.
pub(crate) const MANIFEST_TYPES: [&str; 4] = [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_INDEX];

/// Description of content by type, digest and size.
///
/// The field `urls` of the specification is neither read nor followed, and `data` is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Descriptor {
    /// Media type of the content.
    pub media_type: String,
    /// Digest of the content.
    pub digest: Digest,
    /// Size of the content in bytes.
    pub size: u64,
    /// Type of the artifact that a described manifest holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Platform that a described manifest is meant for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_as_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// Creates a descriptor without annotations.
    pub fn new(media_type: impl Into<String>, digest: Digest, size: u64) -> Self {
        let annotations = BTreeMap::new();
        Self { media_type: media_type.into(), digest, size, artifact_type: None, platform: None, annotations }
    }

    /// Creates the descriptor of `bytes` with a SHA-256 digest.
    pub fn of(media_type: impl Into<String>, bytes: &[u8]) -> Self {
        Self::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }
}

/// Platform of a manifest in an index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Platform {
    /// Processor architecture, for example `wasm` or `amd64`.
    #[serde(default)]
    pub architecture: String,
    /// Operating system, for example `wasip2` or `linux`.
    #[serde(default)]
    pub os: String,
    /// Variant of the architecture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// Manifest or index as the registry holds it, byte for byte. Its digest is checked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Manifest {
    /// Media type, digest and size.
    pub descriptor: Descriptor,
    /// Content.
    pub bytes: Bytes,
}

/// Parsed manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Manifest with a configuration and layers.
    Image(ImageManifest),
    /// Index of several manifests, for the caller to select from.
    Index(Index),
}

/// Manifest of an image or artifact.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ImageManifest {
    /// Type of the artifact, for manifests that are not images.
    #[serde(default)]
    pub artifact_type: Option<String>,
    /// Configuration blob.
    pub config: Descriptor,
    /// Layers in order.
    pub layers: Vec<Descriptor>,
    /// Manifest that this one refers to.
    #[serde(default)]
    pub subject: Option<Descriptor>,
    /// Annotations.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Index of manifests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Index {
    /// Type of the artifact.
    #[serde(default)]
    pub artifact_type: Option<String>,
    /// Manifests in order.
    pub manifests: Vec<Descriptor>,
    /// Manifest that this index refers to.
    #[serde(default)]
    pub subject: Option<Descriptor>,
    /// Annotations.
    #[serde(default, deserialize_with = "null_as_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Fields that decide how a manifest is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
}

impl Manifest {
    /// Takes manifest bytes of the given media type, and computes their digest.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] over [`MAX_DOCUMENT_BYTES`], [`Error::MediaType`] if the type is no manifest type or
    /// contradicts the field `mediaType`, [`Error::Malformed`] if the content is not a manifest.
    pub fn new(media_type: &str, bytes: impl Into<Bytes>) -> Result<Self, Error> {
        let bytes = bytes.into();
        let manifest = Self { descriptor: Descriptor::of(media_type, &bytes), bytes };
        manifest.parse()?;
        Ok(manifest)
    }

    /// Parses the content.
    ///
    /// # Errors
    ///
    /// See [`Manifest::new`]; [`Error::TooMany`] over [`MAX_MANIFEST_ENTRIES`].
    pub fn parse(&self) -> Result<Content, Error> {
        let what = What::Manifest;
        if self.bytes.len() > MAX_DOCUMENT_BYTES {
            return Err(Error::TooLarge { what, limit: MAX_DOCUMENT_BYTES as u64 });
        }
        // An array would be read as the fields in order.
        if self.bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(Error::malformed(what, "it is not a JSON object"));
        }
        let header: Header = serde_json::from_slice(&self.bytes).map_err(|error| Error::json(what, &error))?;
        if header.schema_version != 2 {
            return Err(Error::malformed(what, format!("the schema version is {}, expected 2", header.schema_version)));
        }
        let media_type = self.descriptor.media_type.as_str();
        if let Some(found) = header.media_type.filter(|found| found != media_type) {
            let expected = "the same in the response header and in the manifest";
            return Err(Error::MediaType { what, found: crate::text::excerpt(&found), expected });
        }
        let (content, entries) = match media_type {
            OCI_MANIFEST | DOCKER_MANIFEST => {
                let image: ImageManifest =
                    serde_json::from_slice(&self.bytes).map_err(|error| Error::json(what, &error))?;
                let entries = image.layers.len();
                (Content::Image(image), entries)
            }
            OCI_INDEX | DOCKER_INDEX => {
                let index: Index = serde_json::from_slice(&self.bytes).map_err(|error| Error::json(what, &error))?;
                let entries = index.manifests.len();
                (Content::Index(index), entries)
            }
            found => {
                let expected = "an image manifest or index of OCI or Docker";
                return Err(Error::MediaType { what, found: crate::text::excerpt(found), expected });
            }
        };
        if entries > MAX_MANIFEST_ENTRIES {
            return Err(Error::TooMany { what, limit: MAX_MANIFEST_ENTRIES });
        }
        Ok(content)
    }
}

impl Content {
    /// Returns the manifest that this one refers to.
    pub fn subject(&self) -> Option<&Descriptor> {
        match self {
            Self::Image(image) => image.subject.as_ref(),
            Self::Index(index) => index.subject.as_ref(),
        }
    }

    /// Returns the artifact type: the field, or else the media type of the configuration.
    ///
    /// Source: OCI distribution specification 1.1, "Listing referrers".
    pub fn artifact_type(&self) -> Option<&str> {
        match self {
            Self::Image(image) => Some(image.artifact_type.as_deref().unwrap_or(&image.config.media_type)),
            Self::Index(index) => index.artifact_type.as_deref(),
        }
    }

    /// Returns the annotations.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Image(image) => &image.annotations,
            Self::Index(index) => &index.annotations,
        }
    }
}

fn null_as_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptor() -> String {
        format!(r#"{{"mediaType":"a/b","digest":"{}","size":0}}"#, Digest::of(b""))
    }

    #[test]
    fn an_image_manifest_is_parsed() {
        let text = format!(
            r#"{{"schemaVersion":2,"config":{0},"layers":[{0}],"subject":{0},"annotations":null,"x":1}}"#,
            descriptor()
        );
        let content = Manifest::new(OCI_MANIFEST, text).unwrap().parse().unwrap();
        assert_eq!(content.artifact_type(), Some("a/b"));
        assert!(content.subject().is_some());
    }

    #[test]
    fn a_media_type_that_does_not_match_is_refused() {
        let index = format!(r#"{{"schemaVersion":2,"mediaType":"{OCI_INDEX}","manifests":[]}}"#);
        assert!(Manifest::new(OCI_INDEX, index.clone()).is_ok());
        assert!(matches!(Manifest::new(OCI_MANIFEST, index.clone()), Err(Error::MediaType { .. })));
        assert!(matches!(Manifest::new("text/html", r#"{"schemaVersion":2}"#), Err(Error::MediaType { .. })));
        assert!(matches!(Manifest::new(OCI_MANIFEST, r#"{"schemaVersion":2}"#), Err(Error::Malformed { .. })));
        assert!(matches!(Manifest::new(OCI_INDEX, r#"{"schemaVersion":1}"#), Err(Error::Malformed { .. })));
        assert!(matches!(Manifest::new(OCI_INDEX, "[2]"), Err(Error::Malformed { .. })));
    }

    #[test]
    fn too_many_entries_and_too_many_bytes_are_refused() {
        let entries = vec![descriptor(); MAX_MANIFEST_ENTRIES + 1].join(",");
        let text = format!(r#"{{"schemaVersion":2,"manifests":[{entries}]}}"#);
        assert!(text.len() < MAX_DOCUMENT_BYTES);
        assert!(matches!(Manifest::new(OCI_INDEX, text), Err(Error::TooMany { .. })));
        let long = format!(r#"{{"schemaVersion":2,"manifests":[],"x":"{}"}}"#, "x".repeat(MAX_DOCUMENT_BYTES));
        assert!(matches!(Manifest::new(OCI_INDEX, long), Err(Error::TooLarge { .. })));
        let negative = descriptor().replace("\"size\":0", "\"size\":-1");
        let text = format!(r#"{{"schemaVersion":2,"manifests":[{negative}]}}"#);
        assert!(matches!(Manifest::new(OCI_INDEX, text), Err(Error::Malformed { .. })));
        let deep = format!(r#"{{"schemaVersion":2,"manifests":[],"x":{}}}"#, "[".repeat(100_000));
        assert!(matches!(Manifest::new(OCI_INDEX, deep), Err(Error::Malformed { .. })));
    }
}
