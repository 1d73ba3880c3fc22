//! Media types for bundles and their entries, and their syntax.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toolcrib_foundation::text::shown;

/// `artifactType` of a bundle's manifest.
pub const BUNDLE_ARTIFACT_TYPE: &str = "application/vnd.toolcrib.bundle.v1+json";
/// Media type of a bundle's config.
pub const BUNDLE_CONFIG: &str = "application/vnd.toolcrib.bundle.config.v1+json";
/// Media type of the config for a WebAssembly artifact with one program.
pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Media type of an OCI image manifest.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// Media type of an OCI image index.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Media type in the syntax of RFC 6838, section 4.2: lower-case `type/subtype` without parameters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediaType(Cow<'static, str>);

/// Text that is no media type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a media type: expected lower-case `type/subtype` of at most 127 bytes each")]
#[non_exhaustive]
pub struct MediaTypeError {
    /// The first characters of the text.
    pub text: String,
}

impl MediaType {
    /// WebAssembly component or core module, never precompiled code.
    pub const WASM: Self = Self(Cow::Borrowed("application/wasm"));
    /// `tools.json`, or another file in its format.
    pub const TOOLS_JSON: Self = Self(Cow::Borrowed("application/vnd.toolcrib.tools.v1+json"));
    /// Agent Tool record.
    pub const AGENT_TOOL_RECORD: Self = Self(Cow::Borrowed("application/vnd.toolcrib.agent-tool.v1+json"));
    /// Markdown file, either a tool or documentation.
    pub const MARKDOWN: Self = Self(Cow::Borrowed("text/markdown"));
    /// Text of a licence.
    pub const LICENSE: Self = Self(Cow::Borrowed("application/vnd.toolcrib.license.v1"));
    /// Lock of the versions and digests in a bundle.
    pub const LOCK: Self = Self(Cow::Borrowed("application/vnd.toolcrib.lock.v1"));
    /// Software bill of materials in CycloneDX JSON.
    pub const SBOM: Self = Self(Cow::Borrowed("application/vnd.cyclonedx+json"));
    /// Provenance as an in-toto statement.
    pub const PROVENANCE: Self = Self(Cow::Borrowed("application/vnd.in-toto+json"));
    /// Other JSON, such as a schema.
    pub const JSON: Self = Self(Cow::Borrowed("application/json"));
    /// Other text.
    pub const TEXT: Self = Self(Cow::Borrowed("text/plain"));
    /// Any other file, such as one of a skill.
    pub const BYTES: Self = Self(Cow::Borrowed("application/octet-stream"));

    /// Returns the text of the media type.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns `true` if `name` is a restricted name of RFC 6838 in lower case.
fn is_restricted_name(name: &str) -> bool {
    let body = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$&-^_.+".contains(&byte);
    let first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 127 && name.as_bytes().first().is_some_and(first) && name.bytes().all(body)
}

impl FromStr for MediaType {
    type Err = MediaTypeError;

    fn from_str(text: &str) -> Result<Self, MediaTypeError> {
        match text.split_once('/') {
            Some((kind, subtype)) if is_restricted_name(kind) && is_restricted_name(subtype) => {
                Ok(Self(Cow::Owned(text.to_owned())))
            }
            _ => Err(MediaTypeError { text: shown(text) }),
        }
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for MediaType {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for MediaType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_media_type_of_ours_has_the_syntax_of_a_media_type() {
        for text in [BUNDLE_ARTIFACT_TYPE, BUNDLE_CONFIG, WASM_CONFIG, OCI_MANIFEST, OCI_INDEX] {
            assert_eq!(text.parse::<MediaType>().unwrap().as_str(), text);
        }
        for media_type in [
            MediaType::WASM,
            MediaType::TOOLS_JSON,
            MediaType::AGENT_TOOL_RECORD,
            MediaType::MARKDOWN,
            MediaType::LICENSE,
            MediaType::LOCK,
            MediaType::SBOM,
            MediaType::PROVENANCE,
            MediaType::JSON,
            MediaType::TEXT,
        ] {
            assert_eq!(media_type.as_str().parse::<MediaType>().unwrap(), media_type);
        }
    }

    #[test]
    fn text_that_is_no_media_type_is_refused() {
        let long = format!("text/{}", "a".repeat(128));
        for text in
            ["", "text", "text/", "/plain", "Text/plain", "text/plain; charset=utf-8", "a/b/c", "a/\n", "-a/b", &long]
        {
            assert!(text.parse::<MediaType>().is_err(), "{text}");
        }
        let longest = format!("{0}/{0}", "a".repeat(127));
        assert_eq!(longest.len(), 255);
        assert!(longest.parse::<MediaType>().is_ok());
    }
}
