//! Documents of the OCI image specification 1.1: descriptors, manifests and indexes, with the rules that readers differ on.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::json;
use crate::media_type::{MediaType, OCI_INDEX, OCI_MANIFEST};

/// Annotation with the ref name of a manifest in an index.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// Annotation with the path of a layer, or an artifact's name.
pub const TITLE: &str = "org.opencontainers.image.title";

/// Annotations of a document: keys and values.
pub type Annotations = BTreeMap<String, String>;

/// Reference to a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Descriptor {
    /// Media type of the blob.
    pub media_type: MediaType,
    /// Digest of the blob.
    pub digest: Digest,
    /// Size of the blob in bytes.
    pub size: u64,
    /// Type of the artifact, if the blob is its manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
}

impl Descriptor {
    /// Returns a descriptor without artifact type and annotations.
    #[must_use]
    pub fn new(media_type: MediaType, digest: Digest, size: u64) -> Self {
        Self { media_type, digest, size, artifact_type: None, annotations: Annotations::new() }
    }
}

/// Image manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Manifest {
    schema_version: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    /// Type of the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// Config blob.
    pub config: Descriptor,
    /// Layers, which are files in a bundle.
    pub layers: Vec<Descriptor>,
    /// Manifest that this one is attached to, such as the signed bundle of a signature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: Annotations,
    /// Key of an index, absent from a manifest.
    #[serde(default, skip_serializing)]
    manifests: Present,
}

impl Manifest {
    /// Returns a manifest without subject and annotations.
    #[must_use]
    pub fn new(artifact_type: &str, config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(OCI_MANIFEST.to_owned()),
            artifact_type: Some(artifact_type.to_owned()),
            config,
            layers,
            subject: None,
            annotations: Annotations::new(),
            manifests: Present(false),
        }
    }

    /// Parses a manifest and checks its version and media type.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Json`] or [`Error::Document`] with the name `document`.
    pub fn parse(document: &str, bytes: &[u8]) -> Result<Self> {
        let manifest: Self = parse(document, bytes)?;
        check_version(document, manifest.schema_version)?;
        check_media_type(document, manifest.media_type.as_deref(), OCI_MANIFEST)?;
        if manifest.manifests.0 {
            return Err(Error::document(document, "a manifest cannot have `manifests`"));
        }
        Ok(manifest)
    }

    /// Writes the manifest as canonical JSON.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Json`] if it cannot be serialized.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        write("the manifest", self)
    }
}

/// Image index, as in `index.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Index {
    schema_version: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    pub(crate) manifests: Vec<Descriptor>,
    #[serde(default, skip_serializing)]
    layers: Present,
    #[serde(default, skip_serializing)]
    config: Present,
}

impl Index {
    /// Returns an index of manifests.
    pub(crate) fn new(manifests: Vec<Descriptor>) -> Self {
        let media_type = Some(OCI_INDEX.to_owned());
        Self { schema_version: 2, media_type, manifests, layers: Present(false), config: Present(false) }
    }

    /// Parses an index and checks its version and media type.
    pub(crate) fn parse(document: &str, bytes: &[u8]) -> Result<Self> {
        let index: Self = parse(document, bytes)?;
        check_version(document, index.schema_version)?;
        check_media_type(document, index.media_type.as_deref(), OCI_INDEX)?;
        if index.layers.0 || index.config.0 {
            return Err(Error::document(document, "an index cannot have `layers` or `config`"));
        }
        Ok(index)
    }

    /// Writes the index as canonical JSON.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>> {
        write("index.json", self)
    }
}

/// File `oci-layout`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Layout {
    image_layout_version: String,
}

impl Layout {
    /// Returns the content of `oci-layout`.
    pub(crate) fn to_json() -> Result<Vec<u8>> {
        write("oci-layout", &Self { image_layout_version: "1.0.0".to_owned() })
    }

    /// Checks the version in `oci-layout`.
    pub(crate) fn check(bytes: &[u8]) -> Result<()> {
        let layout: Self = parse("oci-layout", bytes)?;
        match layout.image_layout_version.as_str() {
            "1.0.0" => Ok(()),
            _ => Err(Error::document("oci-layout", "`imageLayoutVersion` is not `1.0.0`")),
        }
    }
}

/// `true` if a key occurs in a document, with any value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Present(bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}

/// Parses a document.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(document: &str, bytes: &[u8]) -> Result<T> {
    json::read(bytes).map_err(|source| Error::Json { document: document.to_owned(), source })
}

/// Writes a document as canonical JSON.
pub(crate) fn write<T: Serialize>(document: &str, value: &T) -> Result<Vec<u8>> {
    json::write(value).map_err(|source| Error::Json { document: document.to_owned(), source })
}

/// Refuses another version than 2.
fn check_version(document: &str, version: u8) -> Result<()> {
    if version == 2 { Ok(()) } else { Err(Error::document(document, "`schemaVersion` is not 2")) }
}

/// Refuses another media type inside a document. Older tools leave it out.
fn check_media_type(document: &str, found: Option<&str>, expected: &str) -> Result<()> {
    match found {
        Some(found) if found != expected => Err(Error::document(document, format!("`mediaType` is not `{expected}`"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESCRIPTOR: &str = r#"{"mediaType":"application/wasm","digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":0}"#;

    fn manifest(extra: &str) -> Result<Manifest> {
        Manifest::parse(
            "m",
            format!(r#"{{"schemaVersion":2,"config":{DESCRIPTOR},"layers":[{DESCRIPTOR}]{extra}}}"#).as_bytes(),
        )
    }

    #[test]
    fn a_manifest_survives_its_canonical_form() {
        let parsed =
            manifest(r#","mediaType":"application/vnd.oci.image.manifest.v1+json","annotations":{"b":"1","a":"2"}"#)
                .unwrap();
        let bytes = parsed.to_json().unwrap();
        assert!(bytes.starts_with(br#"{"annotations":{"a":"2","b":"1"},"config":{"digest":"#));
        assert_eq!(Manifest::parse("m", &bytes).unwrap(), parsed);
    }

    #[test]
    fn a_document_that_is_both_manifest_and_index_is_refused() {
        assert!(matches!(manifest(r#","manifests":[]"#), Err(Error::Document { .. })));
        assert!(matches!(manifest(r#","manifests":null"#), Err(Error::Document { .. })));
        for extra in [r#""layers":[]"#, r#""config":{}"#] {
            let index = format!(r#"{{"schemaVersion":2,"manifests":[],{extra}}}"#);
            assert!(matches!(Index::parse("i", index.as_bytes()), Err(Error::Document { .. })));
        }
    }

    #[test]
    fn another_version_or_media_type_is_refused() {
        assert!(matches!(
            manifest(r#","mediaType":"application/vnd.oci.image.index.v1+json""#),
            Err(Error::Document { .. })
        ));
        assert!(Index::parse("i", br#"{"schemaVersion":1,"manifests":[]}"#).is_err());
        assert!(Index::parse("i", br#"{"manifests":[]}"#).is_err());
        assert!(Layout::check(br#"{"imageLayoutVersion":"1.0.0"}"#).is_ok());
        assert!(Layout::check(br#"{"imageLayoutVersion":"2.0.0"}"#).is_err());
    }

    #[test]
    fn sizes_that_are_no_natural_numbers_are_refused() {
        for size in ["-1", "1.5", "1e3", "\"1\"", "18446744073709551616", "null"] {
            let text = DESCRIPTOR.replace("\"size\":0", &format!("\"size\":{size}"));
            assert!(parse::<Descriptor>("d", text.as_bytes()).is_err(), "{size}");
        }
    }
}
