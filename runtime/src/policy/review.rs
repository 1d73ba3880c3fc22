//! Review of a source: its tools and hooks, what each requests, and one digest that pins everything. A person reviews a
//! source once; as long as its digest stays the same, its requests are granted.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::Error;
use crate::source::{self, LoadedSource};
use crate::tool::{Body, Capabilities, FileRequest, Glob, NetworkRequest, ScriptedHook, Service, ServiceKind, Tool};

use super::definition::definition_at;
use super::grant::is_fixed;
use super::hooks::source_id;
use super::location::real_path;

/// Maximum total size of the programs in a reviewed source, in bytes: about two seconds of hashing.
const MAX_PROGRAM_BYTES: usize = 1 << 30;

/// Everything that a person agrees to when they trust a source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceReview {
    /// Real path of the source: the manifest in a folder that has one, and the project folder.
    pub path: PathBuf,
    /// SHA-256 over the definitions, requests and programs of all tools and hooks, as `sha256:HEX`. It does not depend on
    /// the folder of the source.
    pub digest: String,
    /// Tools and hooks, in the order of the source.
    pub items: Vec<ReviewedItem>,
    /// `true` if the items are everything that the digest covers, and all of them are tools: the source has no hook and no policy,
    /// which could restrict a tool, and is no bundle.
    pub has_tools_alone: bool,
}

/// A tool or hook of a reviewed source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReviewedItem {
    /// Name of the tool or hook.
    pub name: String,
    /// Event that a hook handles; `None` for a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Digest of the definition, as `sha256:HEX`: everything except the program.
    pub definition: String,
    /// Digest of the program, as `sha256:HEX`; `None` for a script, which belongs to the definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Capabilities that trust grants, such as `net:api.example.com:443`, and limits that it raises, such as
    /// `limit:memory=1073741824`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<String>,
    /// Digests of a skill's files, as `sha256:HEX`, by their paths from its folder. The definition covers them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Everything that the tool or hook requests, also what trust does not grant. It is not serialized.
    #[serde(skip)]
    pub requested: Capabilities,
}

/// Reads a source and reviews it. Nothing is compiled or run.
///
/// # Errors
///
/// The first problem of the source as a whole or of a hook, a program that cannot be read, and programs of more than 1 GiB
/// together.
pub fn review(path: &Path) -> Result<SourceReview, Error> {
    SourceReview::of(path, &source::load_usable(path)?)
}

impl SourceReview {
    /// Reviews a loaded source.
    ///
    /// # Errors
    ///
    /// As for [`review`].
    pub(crate) fn of(path: &Path, loaded: &LoadedSource) -> Result<Self, Error> {
        let path = source_id(path).to_path_buf();
        let base = base(&path, loaded);
        let mut programs = Programs::default();
        let tools = loaded.tools.iter().map(|tool| (tool, None));
        let hooks = loaded.hooks.iter().map(|hook| (&hook.tool, Some(hook)));
        let items = tools.chain(hooks).map(|(tool, hook)| ReviewedItem::of(tool, hook, base, &mut programs));
        let items = items.collect::<Result<Vec<_>, String>>();
        let items = items.map_err(|message| Error::Source { path: path.clone(), message })?;
        let policies = format!("{:?}", loaded.policies);
        // Requests are a part of the definition, in which paths do not depend on the folder.
        let definitions = items.iter().map(|item| json!([item.name, item.event, item.definition, item.program]));
        let definitions = definitions.collect::<Value>();
        let content = match &loaded.bundle {
            None => json!([definitions, policies]),
            // Licences and everything else in a bundle count too.
            Some(bundle) => json!([definitions, policies, bundle.digest()]),
        };
        let digest = source::digest(content.to_string().as_bytes());
        let has_tools_alone = loaded.hooks.is_empty() && loaded.policies.is_empty() && loaded.bundle.is_none();
        Ok(Self { path, digest, items, has_tools_alone })
    }

    /// Digest that the program of a tool must have.
    pub(crate) fn program(&self, tool: &Tool) -> Option<&str> {
        self.items.iter().find(|item| item.name == tool.name && item.event.is_none())?.program.as_deref()
    }
}

impl ReviewedItem {
    /// Reviews one tool of a source. The other tools are not read.
    ///
    /// # Errors
    ///
    /// The program cannot be read, or has more than 1 GiB.
    pub(crate) fn of_tool(path: &Path, tool: &Tool, loaded: &LoadedSource) -> Result<Self, String> {
        Self::of(tool, None, base(source_id(path).as_ref(), loaded), &mut Programs::default())
    }

    fn of(tool: &Tool, hook: Option<&ScriptedHook>, base: &Path, programs: &mut Programs) -> Result<Self, String> {
        let program = tool.body.program().filter(|_| tool.unusable.is_none());
        let program = program.map(|program| programs.digest(program)).transpose()?;
        Ok(Self {
            name: tool.name.clone(),
            event: hook.map(|hook| hook.event.to_string()),
            definition: item_definition(tool, hook, base),
            program,
            requests: named_requests(tool),
            files: skill_files(tool),
            requested: tool.requested.clone(),
        })
    }
}

/// Returns the digests of a skill's files.
fn skill_files(tool: &Tool) -> BTreeMap<String, String> {
    let files = tool.body.skill().into_iter().flat_map(|skill| &skill.files);
    files.map(|file| (file.path.clone(), file.digest.clone())).collect()
}

/// Returns the base folder of relative paths in definitions: the source's folder at its real path.
fn base<'p>(path: &'p Path, loaded: &LoadedSource) -> &'p Path {
    let is_whole = path.is_dir() || loaded.bundle.is_some();
    if is_whole { path } else { path.parent().unwrap_or(path) }
}

/// Digests of programs, each read once.
#[derive(Default)]
struct Programs {
    digests: HashMap<PathBuf, String>,
    bytes: usize,
}

impl Programs {
    fn digest(&mut self, program: &Path) -> Result<String, String> {
        if let Some(digest) = self.digests.get(program) {
            return Ok(digest.clone());
        }
        let found = source::fingerprint(program).map_err(|error| format!("read {}: {error}", program.display()))?;
        self.bytes += found.bytes;
        if self.bytes > MAX_PROGRAM_BYTES {
            return Err(format!("its programs have more than {MAX_PROGRAM_BYTES} bytes together"));
        }
        self.digests.insert(program.to_path_buf(), found.digest.clone());
        Ok(found.digest)
    }
}

/// Computes the digest of a tool or hook. Paths inside the folder of the source are relative to it.
fn item_definition(tool: &Tool, hook: Option<&ScriptedHook>, base: &Path) -> String {
    let place = |path: &Path| {
        let real = real_path(path);
        match real.strip_prefix(base) {
            Ok(inside) => format!("./{}", inside.display()),
            Err(_) => real.display().to_string(),
        }
    };
    let tool = definition_at(tool, place);
    match hook {
        None => tool,
        Some(ScriptedHook { tool: _, event, priority, when, scope: _ }) => {
            source::digest(json!([tool, event.to_string(), priority, format!("{when:?}")]).to_string().as_bytes())
        }
    }
}

/// Lists the capabilities that a tool names and the limits that it raises: everything that trust in its source grants. A
/// request for everything that flags allow, without a name, grants nothing by itself and is not listed, nor is a variable with
/// a fixed value such as `HOME`.
pub fn named_requests(tool: &Tool) -> Vec<String> {
    let requested = &tool.requested;
    let folders = match &requested.files {
        FileRequest::Folders(folders) => folders.as_slice(),
        FileRequest::None | FileRequest::Workspace(_) => &[],
    };
    let folders =
        folders.iter().map(|folder| format!("{}:{}", folder.access.as_str(), real_path(&folder.path).display()));
    let env = requested.env.iter().filter(|name| !is_fixed(name)).map(|name| format!("env:{name}"));
    let destinations = match &requested.network {
        NetworkRequest::Destinations(destinations) => destinations.as_slice(),
        NetworkRequest::None | NetworkRequest::Workspace => &[],
    };
    let network = destinations.iter().map(|one| format!("net:{}", one.clone().with_default_port()));
    let secrets = requested.secrets.iter().map(crate::tool::SecretRequest::capability);
    let services = Service::ALL.into_iter().flat_map(|service| {
        let names = requested.service(service);
        let texts: Vec<_> = match service.kind() {
            ServiceKind::Switch => names.iter().map(|_| service.as_str().to_owned()).collect(),
            ServiceKind::Names => {
                let named = names.iter().filter(|name| !name.is_everything());
                named.map(|name: &Glob| format!("{}:{}", service.as_str(), name.as_str())).collect()
            }
        };
        texts
    });
    let programs = match &tool.body {
        Body::Interpreter(interpreter) => Some(interpreter.capability()),
        _ => None,
    };
    let limits = tool.limits.raised().into_iter().map(|(name, value)| format!("limit:{name}={value}"));
    folders.chain(env).chain(network).chain(secrets).chain(services).chain(programs).chain(limits).collect()
}
