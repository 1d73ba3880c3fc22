//! Capabilities that a tool requests. A request grants nothing: see [`crate::policy`].

use std::path::PathBuf;

use serde::Serialize;

use super::destination::Destination;
use super::glob::Glob;
use super::secret::SecretRequest;

/// Capabilities that a tool requests. The digest that binds an approval to a tool covers all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Files and folders.
    pub files: FileRequest,
    /// Names of environment variables, upper case, each once.
    pub env: Vec<String>,
    /// Secrets, each with the host that it is for.
    pub secrets: Vec<SecretRequest>,
    /// Destinations of requests.
    pub network: NetworkRequest,
    /// Programs of the crib that its script runs, by name.
    pub exec: Vec<Glob>,
    /// `true` if its script hands tasks to other agents.
    pub delegate: bool,
    /// `true` if its script adds tools and hooks to its run.
    pub meta: bool,
    /// `true` if it stores values for its later calls, for the run or in the operator's folder.
    pub cache: bool,
    /// `true` if it asks the host's model.
    pub model: bool,
    /// Tools that it calls, by name.
    pub tools: Vec<Glob>,
    /// `true` if its program declares the requests: no operator wrote them, so only flags allow the items that they name.
    pub from_program: bool,
    /// `true` if the source declares capabilities. Otherwise the tool gets everything that the operator's flags allow.
    pub declared: bool,
}

/// Files that a tool requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FileRequest {
    /// None.
    #[default]
    None,
    /// The folders that the operator's flags allow, with at most this access.
    Workspace(Access),
    /// These folders.
    Folders(Vec<FolderRequest>),
}

/// Destinations that a tool requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NetworkRequest {
    /// None.
    #[default]
    None,
    /// The destinations that the operator's flags allow.
    Workspace,
    /// These destinations.
    Destinations(Vec<Destination>),
}

/// One folder that a tool requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderRequest {
    /// The folder on the host, resolved against its manifest.
    pub path: PathBuf,
    /// The folder of the requesting file. No link below it is followed on the way to the requested folder.
    pub beside: PathBuf,
    /// Requested access.
    pub access: Access,
}

/// Access to a folder. Ordered: writing includes reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Read files, list folders, see metadata.
    Read,
    /// Read, and create, change, rename or delete.
    Write,
}

impl Access {
    /// Returns the name in manifests, flags and receipts.
    pub fn as_str(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
        }
    }
}
