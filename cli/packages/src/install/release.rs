//! Facts about a release of a bundle: its digest, version, signers and tools, read without running anything.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde_json::Value;
use toolcrib::policy::{named_requests, review};
use toolcrib::source::{digest, load_usable};
use toolcrib::tool::Body;
use toolcrib_bundle::Bundle;
use toolcrib_settings::trust::ceilings;

use super::comparison::Candidate;
use super::facts;
use super::lock::{LockedBundle, LockedTool};
use super::source::BundleSource;

/// Version of a bundle that was packed without one.
const UNVERSIONED: &str = "0.0.0";
/// Maximum total number of requests by the tools of a bundle.
const MAX_REQUESTS: usize = 16_384;

/// Release of a bundle.
#[derive(Debug)]
pub struct Release {
    /// Bundle file.
    pub file: PathBuf,
    /// Name that the publisher states.
    pub name: String,
    /// Published package that a recipe names.
    pub package: Option<String>,
    /// Licences that the publisher states, as an SPDX expression.
    pub licenses: Option<String>,
    /// Version of the bundle.
    pub version: Option<String>,
    /// Digest of the manifest, as `sha256:HEX`.
    pub digest: String,
    /// Verified signers.
    pub signers: Vec<String>,
    /// `true` if somebody signed it whom the user does not trust.
    pub has_other_signers: bool,
    /// Tools and hooks, in the order of the bundle.
    pub tools: Vec<ReleasedTool>,
    /// Digest of the review that trust pins.
    pub(crate) review: String,
}

/// Tool or hook of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleasedTool {
    /// Name of the tool.
    pub name: String,
    /// Description of the tool.
    pub description: String,
    /// Schema of the arguments, formatted.
    pub schema: String,
    /// Other facts of its definition, one a line.
    pub definition: String,
    /// Capabilities that it requests.
    pub requests: Vec<String>,
    /// Requests without a name, in plain words.
    pub ceilings: Vec<String>,
    /// Interfaces that its program imports; `None` if they are not known.
    pub imports: Option<Vec<String>>,
    /// `true` for a tool on a remote server.
    pub is_remote: bool,
}

impl Release {
    /// Reads the facts of a bundle file. Its signers are not known yet.
    ///
    /// # Errors
    ///
    /// The file is no valid bundle, or a tool of it is faulty as a whole.
    pub fn read(file: &Path, source: &BundleSource) -> anyhow::Result<Self> {
        let invalid = || format!("cannot read the bundle `{}`", file.display());
        let mut bundle = open(file).with_context(invalid)?;
        bundle.verify().with_context(invalid)?;
        let metadata = bundle.metadata();
        let name = metadata.map_or_else(|| source.name(), |metadata| metadata.name.clone());
        let licenses = metadata.and_then(|metadata| metadata.licenses.clone());
        let stated = metadata.map(|metadata| metadata.version.clone());
        // A bundle that was packed without a version has this one.
        let version = stated.clone().filter(|version| version != UNVERSIONED).or_else(|| source.tag()).or(stated);
        let digest = bundle.digest().to_string();
        let (tools, review) = content(file).with_context(invalid)?;
        let requests: usize = tools.iter().map(|tool| tool.requests.len()).sum();
        if requests > MAX_REQUESTS {
            return Err(anyhow!("its tools have more than the {MAX_REQUESTS} requests allowed").context(invalid()));
        }
        Ok(Self {
            file: file.to_path_buf(),
            name,
            package: None,
            licenses,
            version,
            digest,
            signers: Vec::new(),
            has_other_signers: false,
            tools,
            review,
        })
    }

    /// Returns the release as it is compared, under the name that it has in the lock.
    pub fn candidate(&self, name: &str, source: &str) -> Candidate {
        let of = |text: &str| digest(text.as_bytes());
        let tool = |tool: &ReleasedTool| LockedTool {
            name: tool.name.clone(),
            description: of(&tool.description),
            schema: of(&tool.schema),
            definition: of(&tool.definition),
            requests: sorted(tool.requests.clone()),
        };
        let mut tools: Vec<LockedTool> = self.tools.iter().map(tool).collect();
        tools.sort_by(|one, other| one.name.cmp(&other.name));
        let mut signers = self.signers.clone();
        signers.sort();
        let requests = sorted(self.tools.iter().flat_map(|tool| tool.requests.clone()).collect());
        let bundle = LockedBundle {
            name: name.to_owned(),
            source: source.to_owned(),
            version: self.version.clone(),
            digest: self.digest.clone(),
            signers,
            granted: Vec::new(),
            declined: Vec::new(),
            tools,
        };
        Candidate { bundle, requests }
    }

    /// Returns a tool.
    pub fn tool(&self, name: &str) -> Option<&ReleasedTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// Opens a bundle file.
///
/// # Errors
///
/// The file cannot be read or is no valid bundle.
pub(crate) fn open(file: &Path) -> anyhow::Result<Bundle<File>> {
    let is_file = file.metadata().map(|metadata| metadata.is_file());
    if !is_file? {
        return Err(anyhow!("not a regular file"));
    }
    Ok(Bundle::open(File::open(file)?)?)
}

/// Reads the tools of a source, and its review's digest.
fn content(source: &Path) -> anyhow::Result<(Vec<ReleasedTool>, String)> {
    let loaded = load_usable(source)?;
    let hooks = loaded
        .hooks
        .iter()
        .map(|hook| (format!("hook {} ({})", hook.tool.name, hook.event), &hook.tool, facts::hook(hook)));
    let tools = loaded.tools.iter().map(|tool| (tool.name.clone(), tool, facts::tool(tool))).chain(hooks);
    let tools = tools.map(|(name, tool, definition)| ReleasedTool {
        name,
        definition,
        description: tool.description.clone().unwrap_or_default(),
        schema: tool.parameters.as_ref().map(formatted).unwrap_or_default(),
        requests: named_requests(tool),
        ceilings: ceilings(&tool.requested),
        is_remote: matches!(tool.body, Body::Remote(_)),
        imports: tool.imports.as_ref().map(|imports| imports.iter().map(|import| import.from.clone()).collect()),
    });
    Ok((tools.collect(), review(source)?.digest))
}

/// Formats a schema, one field a line.
fn formatted(schema: &Value) -> String {
    serde_json::to_string_pretty(schema).unwrap_or_default()
}

/// Returns each text once, sorted.
fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts.dedup();
    texts
}
