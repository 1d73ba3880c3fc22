//! What a tool may ask for. Asking grants nothing: see [`crate::policy`].

use std::path::PathBuf;

use serde::Serialize;

use super::destination::Destination;
use super::glob::Glob;
use super::secret::SecretRequest;

/// Everything a tool asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Files and folders.
    pub files: FileRequest,
    /// Names of environment variables, upper case, each once.
    pub env: Vec<String>,
    /// Secrets, each with the host that it is for.
    pub secrets: Vec<SecretRequest>,
    /// Where it would send requests.
    pub network: NetworkRequest,
    /// The programs of the crib that its script would run, by their names.
    pub exec: Vec<Glob>,
    /// Whether its script would hand tasks to other agents.
    pub delegate: bool,
    /// Whether its script would add tools and hooks to its run.
    pub meta: bool,
    /// Whether it would keep values for its later calls, as long as the run lasts or in the operator's folder.
    pub cache: bool,
    /// Whether it would ask the host's model.
    pub model: bool,
    /// The tools that it would call, by their names.
    pub tools: Vec<Glob>,
    /// Whether its program says so itself, which no operator has written: what it names is allowed by flags alone.
    pub by_program: bool,
    /// Whether the source stated its capabilities. Where it did not, the tool takes whatever the operator's flags allow.
    pub stated: bool,
}

/// Which files a tool asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FileRequest {
    /// None.
    #[default]
    None,
    /// Whatever folders the operator's flags allow, with at most this access.
    Workspace(Access),
    /// These folders by name.
    Folders(Vec<FolderRequest>),
}

/// Where a tool asks to send requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NetworkRequest {
    /// Nowhere.
    #[default]
    None,
    /// Wherever the operator's flags allow.
    Workspace,
    /// To these destinations.
    Destinations(Vec<Destination>),
}

/// One folder that a tool asks for by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderRequest {
    /// The folder on the host, resolved against its manifest.
    pub path: PathBuf,
    /// The folder of the file that asks for it, below which no link is followed to it.
    pub beside: PathBuf,
    /// What it would do there.
    pub access: Access,
}

/// What may be done in a folder. Ordered: writing includes reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read files, list folders, see metadata.
    Read,
    /// Read, and create, change, rename or delete.
    Write,
}

impl Access {
    /// The name used in manifests, flags and receipts.
    pub fn as_str(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
        }
    }
}
