//! Common representation of tools from all source formats: the [`Tool`]. A tool is plain data, read without running a
//! guest, and retains its source text and unknown fields. This module does not depend on any source format.

mod capability;
mod command_line;
mod destination;
mod enablement;
mod fact;
mod glob;
mod hook;
mod host;
mod interface;
mod interpreter;
mod limits;
pub(crate) mod mask;
pub(crate) mod names;
mod remote;
mod resource;
mod rich;
mod rows;
mod script;
mod secret;
mod service;
mod skill;
mod text;
pub mod typed;
mod word;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::{Error, UnknownToolWording};

pub use capability::{Access, Capabilities, FileRequest, FolderRequest, NetworkRequest};
pub use command_line::{ArgvGroup, ArgvItem, CommandLine, GroupCondition, OutputForm, Template, TemplateError};
pub(crate) use command_line::{END_OF_OPTIONS, MAX_ARGUMENT_BYTES, MAX_ARGUMENTS};
pub use destination::{Destination, DestinationError, DestinationErrorReason, Scheme};
pub(crate) use destination::{is_method, parse_port};
pub use enablement::Enablement;
pub(crate) use fact::FactValue;
pub use fact::{Basis, Fact, Row};
pub use glob::{Glob, GlobError};
pub use hook::{HookPoint, HookScope, ScriptedHook, UnknownHookPoint, When};
pub(crate) use host::split_port;
pub use host::{Host, HostError};
pub use interface::{
    Availability, Callers, Discovery, EmptyResult, Execution, FieldError, Identity, Interface, Interrupt, Permission,
    Persistence, Rendering, ResultRules, Risk, Safety, Schemas, SiblingFailure, Validation, Visibility,
};
pub(crate) use interpreter::INTERPRETER;
pub use interpreter::Interpreter;
pub use limits::{LimitRequest, Limits};
pub use mask::mask_arguments;
pub use remote::{Remote, RemoteAddress, RemoteAddressError, RemoteServer};
pub use resource::{Comparison, Operand, Resource, Use, ValueRule};
pub use rich::{Rich, RichExports};
pub use script::{Place, Script};
pub use secret::{
    Placement, PlacementError, SECRET_PLACEHOLDER, SecretHost, SecretHostError, SecretHostErrorReason, SecretRequest,
    is_secret_name,
};
pub use service::{Service, ServiceKind, ServiceUser};
#[cfg(test)]
pub(crate) use skill::tests::skill as skill_of;
pub(crate) use skill::{SKILL_FILE, SKILL_FOLDER};
pub use skill::{ScriptLanguage, Skill, SkillFile, SkillFileUse};
pub use text::{Grammar, Syntax, TextInput};
pub use toolcrib_component::externs::Import;

/// Tool: description for the model, program, requested capabilities and origin.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Tool {
    /// Unique name for calls.
    pub name: String,
    /// Description for the model.
    pub description: Option<String>,
    /// JSON Schema of the arguments, as in the source.
    pub parameters: Option<Value>,
    /// Text input, for a tool that takes text. The parameters then describe the object that carries the text.
    pub text: Option<TextInput>,
    /// Implementation of the tool.
    pub body: Body,
    /// Requested capabilities; [`crate::policy::Grant`] holds the granted ones.
    pub requested: Capabilities,
    /// Requested limits.
    pub limits: LimitRequest,
    /// Behavior of the tool.
    pub interface: Interface,
    /// Conditions of availability.
    pub enablement: Enablement,
    /// Imports of the program, and so everything that it can access; `None` if unknown.
    pub imports: Option<Arc<[Import]>>,
    /// Reason why the source disables the tool.
    pub disabled: Option<Disabled>,
    /// Fault in the tool's entry or program. The tool keeps its name, and every call fails.
    pub unusable: Option<Arc<Unusable>>,
    /// Origin of the tool.
    pub origin: Origin,
}

impl Tool {
    /// Iterates over the name and the aliases.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.interface.identity.aliases.value).map(String::as_str)
    }

    /// Creates a tool with defaults in all other fields.
    pub(crate) fn new(name: impl Into<String>, body: Body, origin: Origin) -> Self {
        Self {
            name: name.into(),
            description: None,
            parameters: None,
            text: None,
            body,
            requested: Capabilities::default(),
            limits: LimitRequest::default(),
            interface: Interface::default(),
            enablement: Enablement::default(),
            imports: None,
            disabled: None,
            unusable: None,
            origin,
        }
    }

    /// Creates an unusable tool with a name and a fault.
    pub(crate) fn broken(name: impl Into<String>, unusable: Unusable, origin: Origin) -> Self {
        Self { unusable: Some(Arc::new(unusable)), ..Self::new(name, Body::Absent, origin) }
    }

    /// Returns the name of the tool's plugin: the package of its program if declared, else the program's file name,
    /// else the source's file name.
    pub fn plugin(&self) -> String {
        let package = self.origin.unknown.get("package").and_then(|package| package.get("name")?.as_str());
        let file = || self.body.program().unwrap_or(&self.origin.path).file_stem().unwrap_or_default();
        package.map_or_else(|| file().to_string_lossy().into_owned(), str::to_owned)
    }

    /// Returns `true` if calls of this name or alias mean the tool.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name == name || self.interface.identity.aliases.value.iter().any(|alias| alias == name)
    }

    /// Returns `true` if a person answers for the declarations of the tool's source.
    pub fn is_vouched_for(&self) -> bool {
        match self.origin.trust {
            Trust::Reviewed | Trust::Host => true,
            // A component by itself declares its facts in its own bytes, for which the operator does not vouch.
            Trust::Operator => self.origin.format != Format::Component,
            Trust::Stranger => false,
        }
    }

    /// Returns `true` if the tool gets arbitrary arguments and standard input, in which rules and hooks find no other argument.
    pub(crate) fn hides_arguments(&self) -> bool {
        // A command line that no source defines is one of the embedder.
        matches!(self.body, Body::Command { command_line: Some(_), .. }) && self.origin.text.is_none()
    }

    /// Returns `true` if the request for capabilities allows the resources that it names: a person reviewed it, or the
    /// operator vouches for the entry that names them.
    pub(crate) fn is_request_granted(&self) -> bool {
        match self.origin.trust {
            Trust::Reviewed => true,
            Trust::Operator => !self.requested.from_program,
            Trust::Stranger | Trust::Host => false,
        }
    }
}

/// Fault of a tool that cannot be used.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unusable {
    /// Reason for the model, without host paths.
    pub reason: String,
    /// Error for the operator.
    pub fault: Error,
}

/// Declaration of a source that disables a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Disabled {
    /// Field of the source that disables the tool.
    pub field: &'static str,
    /// Reason for the model.
    pub reason: String,
}

/// Implementation of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// Command: a program that reads JSON from standard input and writes one line of JSON to standard output, or has a command
    /// line of its own.
    Command {
        /// Path of the component or core module on the host.
        program: PathBuf,
        /// Fixed guest arguments; the first is the name of the program as in the source.
        argv: Vec<String>,
        /// Further arguments, standard input, form of the output and exit codes, if the source states them.
        command_line: Option<Arc<CommandLine>>,
    },
    /// Tool in a component that implements the rich tool interface.
    Rich(Arc<Rich>),
    /// Exported function of a component.
    Typed(Arc<typed::Typed>),
    /// Script for the interpreter.
    Script(Arc<Script>),
    /// Interpreter of programs that call tools. The tool itself cannot be called.
    Interpreter(Arc<Interpreter>),
    /// Tool on a remote server, which gets the arguments. The host neither runs nor restrains it.
    Remote(Arc<Remote>),
    /// No implementation: another source must provide it.
    Absent,
    /// Instructions and files of a skill, which the host reads.
    Skill(Arc<Skill>),
    /// Scripts of a skill, each run by its language's interpreter.
    SkillScripts(Arc<Skill>),
    /// Function of the host, without a program and without a grant.
    Builtin(Builtin),
}

/// Tool that the host implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Builtin {
    /// Reads a part of a result that exceeded the inline limit.
    ReadResult,
    /// Finds deferred tools and loads them.
    ToolSearch,
    /// Returns the state of a background task.
    TaskPoll,
    /// Waits for the end of a background task and returns its state.
    TaskAwait,
    /// Runs a program that calls tools.
    RunCode,
    /// Finds tools for programs.
    SearchTools,
    /// Describes tools for programs.
    DescribeTool,
}

impl Builtin {
    /// All builtin tools.
    pub const ALL: [Self; 7] = [
        Self::ReadResult,
        Self::ToolSearch,
        Self::TaskPoll,
        Self::TaskAwait,
        Self::RunCode,
        Self::SearchTools,
        Self::DescribeTool,
    ];
}

impl Body {
    /// Returns `true` for a program or a script, which another process can run as well.
    pub(crate) fn has_program(&self) -> bool {
        matches!(self, Self::Command { .. } | Self::Rich(_) | Self::Typed(_) | Self::Script(_))
    }

    /// Returns the path of the program, if the tool has one.
    pub fn program(&self) -> Option<&Path> {
        match self {
            Body::Command { program, .. } => Some(program),
            Body::Rich(rich) => Some(&rich.program),
            Body::Typed(typed) => Some(&typed.program),
            Body::Interpreter(interpreter) => Some(&interpreter.program),
            Body::Script(_)
            | Body::Remote(_)
            | Body::Absent
            | Body::Skill(_)
            | Body::SkillScripts(_)
            | Body::Builtin(_) => None,
        }
    }

    /// Returns the skill whose files or scripts the tool is.
    pub fn skill(&self) -> Option<&Arc<Skill>> {
        match self {
            Body::Skill(skill) | Body::SkillScripts(skill) => Some(skill),
            _ => None,
        }
    }

    /// Returns the arguments of a command after the name of its program, as JSON: the fixed ones, then those that each call fills.
    pub fn arguments(&self) -> Vec<Value> {
        let Body::Command { argv, command_line, .. } = self else { return Vec::new() };
        let filled = command_line.iter().flat_map(|line| line.argv.iter().flatten());
        let fixed = argv.iter().skip(1).map(|fixed| Value::from(fixed.as_str()));
        fixed.chain(filled.map(|item| serde_json::to_value(item).unwrap_or_default())).collect()
    }
}

/// Origin of a tool.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Format of the source, for display and export.
    pub format: Format,
    /// Trust in the source.
    pub trust: Trust,
    /// Digest that the program must have, as `sha256:HEX`; `None` if the program may change.
    pub pin: Option<Arc<str>>,
    /// Wording for an unknown tool name in this format.
    pub wording: UnknownToolWording,
    /// `true` if an unusable tool of this source has its name from the file alone, so that a working tool may take the name.
    pub provisional_name: bool,
    /// `true` if the tool is left out where another tool has its name, or a name that looks like it.
    pub yields: bool,
    /// Source of the tool, as one absolute path however the operator wrote it; `None` for the host's own tools and outside
    /// a runtime.
    pub source: Option<Arc<Path>>,
    /// File that was read.
    pub path: Arc<Path>,
    /// Index of the tool in that file, from 0, in formats with several tools a file.
    pub index: Option<usize>,
    /// Text the tool was read from, if the source is text.
    pub text: Option<Arc<str>>,
    /// Unknown fields of the source, unchanged.
    pub unknown: Map<String, Value>,
}

impl Origin {
    /// Creates the origin of an untrusted tool without text.
    pub(crate) fn of(format: Format, path: impl Into<Arc<Path>>) -> Self {
        Self {
            format,
            trust: Trust::Stranger,
            pin: None,
            wording: UnknownToolWording::default(),
            provisional_name: false,
            yields: false,
            source: None,
            path: path.into(),
            index: None,
            text: None,
            unknown: Map::new(),
        }
    }

    /// Creates the origin of the host's own tools.
    pub(crate) fn host() -> Self {
        Self { trust: Trust::Host, ..Self::of(Format::Builtin, Path::new("toolcrib")) }
    }

    /// Describes the origin for people: the path, and the index if there is one.
    pub fn describe(&self) -> String {
        match self.index {
            Some(index) => format!("{} (tool[{index}])", self.path.display()),
            None => self.path.display().to_string(),
        }
    }
}

/// Trust in a tool source, and so the effect of its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trust {
    /// The operator vouches for the source: a folder, host or limit that it names is granted, but nothing that its programs
    /// request.
    Operator,
    /// A person reviewed this content of the source: everything that it requests is granted.
    Reviewed,
    /// Nobody reviewed the source: a request is granted only as far as the operator's policy allows it.
    Stranger,
    /// The host itself.
    Host,
}

impl Trust {
    /// Returns `true` if the source counts as the operator's own.
    pub(crate) fn is_operators(self) -> bool {
        matches!(self, Trust::Operator | Trust::Reviewed)
    }
}

/// Format of a tool source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Entry of a `tools.json`.
    ToolsJson,
    /// Component by itself.
    Component,
    /// The host itself.
    Builtin,
    /// Agent Tool definition.
    AgentTool,
    /// Markdown file with a script.
    Markdown,
    /// Format without a variant here, by its name in lower case.
    Other(&'static str),
}

impl Format {
    /// Name used in output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolsJson => "manifest",
            Self::Component => "component",
            Self::Builtin => "builtin",
            Self::AgentTool => "agent-tool",
            Self::Markdown => "markdown",
            Self::Other(name) => name,
        }
    }

    /// Name in the digest that binds a stored approval to a definition. It must never change.
    pub(crate) fn approval_name(self) -> &'static str {
        match self {
            Self::AgentTool => "record",
            Self::Markdown => "artifact",
            other => other.as_str(),
        }
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a command tool with a name and defaults in all other fields.
    pub(crate) fn plain(name: &str) -> Tool {
        let body = Body::Command { program: PathBuf::new(), argv: Vec::new(), command_line: None };
        Tool::new(name, body, Origin::of(Format::Component, Path::new("")))
    }
}
