//! The record that every dialect becomes: one [`Tool`]. It is data, read from bytes without running a guest, and keeps
//! what it was made from, so that nothing a source said is lost. It knows no dialect.

mod bounds;
mod capability;
mod destination;
mod enablement;
mod fact;
mod glob;
mod hook;
mod host;
mod interface;
mod limits;
mod resource;
mod rich;
mod rows;
mod script;
mod secret;
mod service;
mod shape;
mod text;
pub mod typed;
mod word;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Error;

pub use capability::{Access, Capabilities, FileRequest, FolderRequest, NetworkRequest};
pub use destination::{Destination, Scheme};
pub(crate) use destination::{is_method, port};
pub use enablement::Enablement;
pub(crate) use fact::Stated;
pub use fact::{Basis, Fact, Row};
pub use glob::Glob;
pub use hook::{HookPoint, ScriptedHook, When};
pub use host::Host;
pub(crate) use host::split_port;
pub use interface::{
    Availability, Discovery, EmptyResult, Execution, Identity, Interface, Interrupt, Permission, Persistence,
    Rendering, ResultRules, Risk, Safety, Schemas, SiblingFailure, Validation, Visibility,
};
pub use limits::{LimitRequest, Limits};
pub use resource::{Comparison, Operand, Resource, Use, ValueRule};
pub use rich::{Rich, Says};
pub use script::{Place, Script};
pub use secret::{Placement, SLOT, SecretHost, SecretRequest, is_secret_name};
pub use service::{Service, ServiceKind, ServiceUser};
pub(crate) use shape::masked;
pub use text::{Grammar, Syntax, TextInput};
pub use toolcrib_component::externs::Import;

/// A tool: what the model sees, what runs, what it asks for, and where it came from.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The unique name by which the model calls it.
    pub name: String,
    /// What the model reads when it decides whether to call it.
    pub description: Option<String>,
    /// The JSON Schema of the arguments, as its source gave it.
    pub parameters: Option<Value>,
    /// How it takes text, where it does; the parameters are then those of an object that carries it.
    pub text: Option<TextInput>,
    /// What is executed.
    pub body: Body,
    /// What it asks for; see [`crate::policy::Grant`] for what it gets.
    pub requested: Capabilities,
    /// The limits it sets for itself.
    pub limits: LimitRequest,
    /// How it behaves.
    pub interface: Interface,
    /// For whom it is.
    pub enablement: Enablement,
    /// What its program imports, and so all that it can reach; `None` where its bytes do not tell.
    pub imports: Option<Arc<[Import]>>,
    /// Why it cannot be called, where its source says so.
    pub disabled: Option<Disabled>,
    /// Why nothing can be run for it: its entry or its program is wrong. It keeps its name, and every call is refused.
    pub unusable: Option<Arc<Unusable>>,
    /// Where it came from.
    pub origin: Origin,
}

impl Tool {
    /// A tool of which nothing else is known.
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

    /// A tool of which only the name and the fault are known.
    pub(crate) fn broken(name: impl Into<String>, unusable: Unusable, origin: Origin) -> Self {
        Self { unusable: Some(Arc::new(unusable)), ..Self::new(name, Body::Absent, origin) }
    }

    /// The plugin that it belongs to: the package of its program where that says so, else the program's file, else the source.
    pub fn plugin(&self) -> String {
        let package = self.origin.unknown.get("package").and_then(|package| package.get("name")?.as_str());
        let file = || self.body.program().unwrap_or(&self.origin.path).file_stem().unwrap_or_default();
        package.map_or_else(|| file().to_string_lossy().into_owned(), str::to_owned)
    }

    /// Whether the operator himself wrote what it asks for, so that what it names is allowed by that.
    pub(crate) fn asks_for_its_operator(&self) -> bool {
        self.origin.is_operators() && !self.requested.by_program
    }
}

/// The fault of a tool that cannot be used.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Unusable {
    /// The reason in words for the model, without a path of the host.
    pub why: String,
    /// The fault as the operator is told it.
    pub fault: Error,
}

/// Why a tool cannot be called, whatever the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disabled {
    /// What of its source says so: a field.
    pub by: &'static str,
    /// Why, in words for the model.
    pub why: String,
}

/// What is executed when a tool is called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// A program with the contract of a command: JSON on standard input, one line of JSON on standard output.
    Command {
        /// The component or core module on the host.
        program: PathBuf,
        /// The guest's arguments; the first is the program's name as its source wrote it.
        argv: Vec<String>,
    },
    /// A tool of a component with the contract of rich tools.
    Rich(Arc<Rich>),
    /// A function that a component exports.
    Typed(Arc<typed::Typed>),
    /// A script, run by the interpreter.
    Script(Arc<Script>),
    /// Nothing: the tool is known, and somebody else has to bring what it does.
    Absent,
    /// Something that the host does itself, with no program and no grant.
    Builtin(Builtin),
}

/// What the host can do itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Builtin {
    /// Open a part of an answer that was too long to be told whole.
    ReadResult,
    /// Find tools that the model was not shown, and load them.
    ToolSearch,
    /// Tell what has become of a call that goes on.
    TaskPoll,
    /// The same when it has ended.
    TaskAwait,
}

impl Builtin {
    /// Everything.
    pub const ALL: [Self; 4] = [Self::ReadResult, Self::ToolSearch, Self::TaskPoll, Self::TaskAwait];
}

impl Body {
    /// The file that holds the program, where there is one.
    pub fn program(&self) -> Option<&Path> {
        match self {
            Body::Command { program, .. } => Some(program),
            Body::Rich(rich) => Some(&rich.program),
            Body::Typed(typed) => Some(&typed.program),
            Body::Script(_) | Body::Absent | Body::Builtin(_) => None,
        }
    }
}

/// Where a tool came from.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The format of the source.
    pub format: Format,
    /// The file that was read.
    pub path: Arc<Path>,
    /// The tool's place in that file, counted from 0, where the format holds several.
    pub index: Option<usize>,
    /// The text it was made from, where the source is text.
    pub text: Option<Arc<str>>,
    /// Fields of the source that no rule knows, kept as they were.
    pub unknown: Map<String, Value>,
}

impl Origin {
    /// Of one tool that a file is or holds, of which no text is kept.
    pub(crate) fn of(format: Format, path: impl Into<Arc<Path>>) -> Self {
        Self { format, path: path.into(), index: None, text: None, unknown: Map::new() }
    }

    /// Whether the source is the operator's own, so that what it names is allowed by that. Everything else may be a
    /// stranger's.
    pub(crate) fn is_operators(&self) -> bool {
        self.format == Format::ToolsJson
    }
}

impl Origin {
    /// The place in words: the path, and the index where there is one.
    pub fn describe(&self) -> String {
        match self.index {
            Some(index) => format!("{} (tool[{index}])", self.path.display()),
            None => self.path.display().to_string(),
        }
    }
}

/// The format of a source of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// An entry of a `tools.json`.
    #[serde(rename = "manifest")]
    ToolsJson,
    /// A component by itself.
    Component,
    /// The host itself.
    Builtin,
    /// A record of the Agent Tool standard.
    #[serde(rename = "record")]
    AgentTool,
    /// A Markdown file with a script.
    #[serde(rename = "artifact")]
    Markdown,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A tool of which nothing is known but its name.
    pub(crate) fn plain(name: &str) -> Tool {
        let body = Body::Command { program: PathBuf::new(), argv: Vec::new() };
        Tool::new(name, body, Origin::of(Format::Component, Path::new("")))
    }
}
