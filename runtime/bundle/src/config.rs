//! Config of a bundle: its metadata, its tools and its files, as one JSON blob.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::media_type::MediaType;
use crate::oci::{self, Annotations, TITLE};
use crate::path::BundlePath;
use crate::text::{Text, TextError};

/// Maximum number of tools per bundle.
pub const MAX_TOOLS: usize = 4096;
/// Maximum number of sources per bundle.
pub const MAX_SOURCES: usize = 256;
/// Maximum number of annotations per bundle, besides those derived from its metadata.
pub const MAX_ANNOTATIONS: usize = 64;

/// Version of the config that this crate reads and writes.
const VERSION: u32 = 1;

/// Prefix of the annotations that the OCI image specification defines. They are derived from [`Metadata`].
const OCI_PREFIX: &str = "org.opencontainers.";

/// Statements of the author about a bundle. Nothing of them is verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Metadata {
    /// Name, at most 128 bytes: lower-case letters and digits, separated by `.`, `_`, `-` or `/`.
    pub name: String,
    /// Version, at most 128 bytes: letters, digits, `.`, `-`, `+` and `_`.
    pub version: String,
    /// Description in plain text, at most 4096 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Licences of the content as an SPDX expression. Its characters are checked, its identifiers are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licenses: Option<String>,
    /// Address of the source code, such as `https://example.com/repository`. Paths of a host are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Revision of the source code, such as a commit, in a version's characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Address of the documentation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    /// Further annotations of the manifest, at most 64. Keys of `org.opencontainers.` are refused.
    #[serde(default, skip_serializing_if = "Annotations::is_empty")]
    pub annotations: Annotations,
}

impl Metadata {
    /// Returns metadata with a name and a version, which are checked when a bundle is built or read.
    #[must_use]
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            description: None,
            licenses: None,
            source: None,
            revision: None,
            documentation: None,
            annotations: Annotations::new(),
        }
    }

    /// Checks every text.
    pub(crate) fn check(&self) -> Result<()> {
        Text::Name.check("name", &self.name)?;
        Text::Version.check("version", &self.version)?;
        for (kind, field, text) in [
            (Text::Prose, "description", &self.description),
            (Text::License, "licenses", &self.licenses),
            (Text::Address, "source", &self.source),
            (Text::Version, "revision", &self.revision),
            (Text::Address, "documentation", &self.documentation),
        ] {
            text.as_ref().map_or(Ok(()), |text| kind.check(field, text))?;
        }
        if self.annotations.len() > MAX_ANNOTATIONS {
            return Err(Error::document("the metadata", format!("it has more than {MAX_ANNOTATIONS} annotations")));
        }
        for (key, value) in &self.annotations {
            Text::Key.check("annotation key", key)?;
            Text::Prose.check("annotation", value)?;
            if key.to_ascii_lowercase().starts_with(OCI_PREFIX) {
                let reason = format!("annotation `{key}` is reserved; use the field of the metadata");
                return Err(Error::document("the metadata", reason));
            }
        }
        Ok(())
    }

    /// Returns the annotations of the manifest. The time of creation is left out: equal content has an equal manifest.
    pub(crate) fn manifest_annotations(&self) -> Annotations {
        let mut annotations = self.annotations.clone();
        let standard = [
            (TITLE, Some(&self.name)),
            ("org.opencontainers.image.version", Some(&self.version)),
            ("org.opencontainers.image.description", self.description.as_ref()),
            ("org.opencontainers.image.licenses", self.licenses.as_ref()),
            ("org.opencontainers.image.source", self.source.as_ref()),
            ("org.opencontainers.image.revision", self.revision.as_ref()),
            ("org.opencontainers.image.documentation", self.documentation.as_ref()),
        ];
        let standard = standard.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.clone())));
        annotations.extend(standard);
        annotations
    }
}

/// Tool of a bundle, so that a bundle can be listed without reading its files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BundledTool {
    /// Name of the tool, at most 128 bytes.
    pub name: String,
    /// Description of the tool, at most 4096 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// File that defines the tool: a `tools.json`, an Agent Tool record, a Markdown file or a component.
    pub definition: BundlePath,
    /// Program of the tool, if it is another file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<BundlePath>,
}

impl BundledTool {
    /// Returns a tool without description and program.
    #[must_use]
    pub fn new(name: impl Into<String>, definition: BundlePath) -> Self {
        Self { name: name.into(), description: None, definition, program: None }
    }

    /// Checks the name of a tool.
    ///
    /// # Errors
    ///
    /// [`TextError`] if a bundle with this tool cannot be written.
    pub fn check_name(name: &str) -> Result<(), TextError> {
        Text::ToolName.check("tool name", name)
    }
}

/// File of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct BundledFile {
    /// Path inside the bundle.
    pub path: BundlePath,
    /// Media type.
    pub media_type: MediaType,
    /// Digest of the content.
    pub digest: Digest,
    /// Size of the content in bytes.
    pub size: u64,
}

/// Config blob of a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Config {
    version: u32,
    pub(crate) metadata: Metadata,
    pub(crate) tools: Vec<BundledTool>,
    pub(crate) files: Vec<BundledFile>,
    /// Files and folders that define tools, in the order in which they are read. Without any, the root of the bundle does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) sources: Vec<BundlePath>,
}

impl Config {
    /// Returns a checked config with its tools and files in order.
    pub(crate) fn new(
        metadata: Metadata,
        mut tools: Vec<BundledTool>,
        mut files: Vec<BundledFile>,
        sources: Vec<BundlePath>,
    ) -> Result<Self> {
        tools.sort();
        files.sort();
        let config = Self { version: VERSION, metadata, tools, files, sources };
        config.check()?;
        Ok(config)
    }

    /// Parses and checks a config. Files have to be compared with the layers of the manifest by the caller.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let config: Self = oci::parse("the config of the bundle", bytes)?;
        if config.version != VERSION {
            return Err(Self::invalid(format!("version {} is not supported, only {VERSION}", config.version)));
        }
        config.check()?;
        Ok(config)
    }

    /// Writes the config as canonical JSON.
    pub(crate) fn to_json(&self) -> Result<Vec<u8>> {
        oci::write("the config of the bundle", self)
    }

    /// Checks metadata, tools and sources.
    fn check(&self) -> Result<()> {
        self.metadata.check()?;
        if self.tools.len() > MAX_TOOLS {
            return Err(Self::invalid(format!("it has more than {MAX_TOOLS} tools")));
        }
        let paths = self.files.iter().map(|file| &file.path).collect::<std::collections::HashSet<_>>();
        let mut names = std::collections::HashSet::new();
        for tool in &self.tools {
            BundledTool::check_name(&tool.name)?;
            tool.description.as_ref().map_or(Ok(()), |text| Text::Prose.check("description of a tool", text))?;
            if !names.insert(&tool.name) {
                return Err(Self::invalid(format!("tool `{}` occurs twice", tool.name)));
            }
            for path in std::iter::once(&tool.definition).chain(&tool.program) {
                if !paths.contains(path) {
                    return Err(Self::invalid(format!(
                        "tool `{}` names `{path}`, which is not in the bundle",
                        tool.name
                    )));
                }
            }
        }
        self.check_sources()
    }

    /// Checks that every source is a file of the bundle or a folder with one, and occurs once.
    fn check_sources(&self) -> Result<()> {
        if self.sources.len() > MAX_SOURCES {
            return Err(Self::invalid(format!("it has more than {MAX_SOURCES} sources")));
        }
        let mut known = std::collections::HashSet::new();
        for source in &self.sources {
            let holds = |file: &BundledFile| {
                let rest = file.path.as_str().strip_prefix(source.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            if !self.files.iter().any(holds) {
                return Err(Self::invalid(format!("its source `{source}` is not in the bundle")));
            }
            if !known.insert(source) {
                return Err(Self::invalid(format!("its source `{source}` occurs twice")));
            }
        }
        Ok(())
    }

    /// Returns an error about the config.
    pub(crate) fn invalid(reason: String) -> Error {
        Error::document("the config of the bundle", reason)
    }
}
