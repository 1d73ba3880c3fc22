//! What goes wrong, in two types that never mix: [`Error`] is a fault for the operator, [`ToolError`] is what the model
//! may see. Neither knows how it is printed.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

/// A fault of the host, its configuration or its surroundings, told to the operator and never to the model.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A source of tools could not be read or breaks its own format.
    #[error("{}: {message}", path.display())]
    Source {
        /// The file or folder that was read.
        path: PathBuf,
        /// What was found and where in the file.
        message: String,
    },
    /// A tool is configured but its program is not there.
    #[error("configured tool {name:?} is unavailable: {reason} (program {program:?})")]
    Unavailable {
        /// The tool's name.
        name: String,
        /// Why the program cannot be used.
        reason: String,
        /// The program as it was looked for.
        program: String,
    },
    /// Two sources bring a tool of one name.
    #[error("tool `{name}` is defined twice: in {first} and in {second}")]
    Duplicate {
        /// The name that both carry.
        name: String,
        /// The source loaded first.
        first: String,
        /// The source loaded second.
        second: String,
    },
    /// Two sources bring tools whose names a reader takes for one another.
    #[error("tool `{name}` in {second} looks like `{like}` in {first}")]
    LookAlike {
        /// The name that looks like another.
        name: String,
        /// The name that was there first.
        like: String,
        /// The source loaded first.
        first: String,
        /// The source loaded second.
        second: String,
    },
    /// No tool has this name.
    #[error("{}", wording.message(name))]
    UnknownTool {
        /// The name that was asked for.
        name: String,
        /// Wording of the message.
        wording: UnknownToolWording,
        /// The nearest name that exists.
        nearest: Option<String>,
    },
    /// A program is not a component that the sandbox can run.
    #[error("{}: {reason}", path.display())]
    Component {
        /// The file that was read.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A permission cannot be given as it was written.
    #[error("{permission}: {reason}")]
    Permission {
        /// The permission, as the operator wrote it.
        permission: String,
        /// Why it cannot be given.
        reason: String,
    },
    /// What requests are sent with cannot be used: certificates, name servers.
    #[error("network: {0}")]
    Network(String),
    /// The audit log cannot be written.
    #[error("audit log {}: {reason}", path.display())]
    Audit {
        /// The log's folder or file.
        path: PathBuf,
        /// What the system answered.
        reason: String,
    },
    /// What was agreed to for always cannot be read or kept.
    #[error("approvals {}: {reason}", path.display())]
    Approvals {
        /// The file of the approvals.
        path: PathBuf,
        /// What the system answered or what was found.
        reason: String,
    },
    /// A secret cannot be kept, read or used. Its value is never part of this.
    #[error("secret `{name}`: {reason}")]
    Secret {
        /// The secret's name, or what was given for one.
        name: String,
        /// Why.
        reason: String,
    },
    /// Results cannot be kept, or one is not as it was kept.
    #[error("result store {}: {reason}", path.display())]
    Results {
        /// The folder of the results, or the file of one.
        path: PathBuf,
        /// What the system answered or what was found.
        reason: String,
    },
    /// A reference names no result.
    #[error("no result `{reference}`: {reason}")]
    NoResult {
        /// The reference, or the beginning of what is none.
        reference: String,
        /// Why it names nothing.
        reason: String,
    },
    /// The audit log cannot be read.
    #[error("audit log {} cannot be read: {reason}", path.display())]
    AuditUnread {
        /// The log's folder or file.
        path: PathBuf,
        /// What the system answered.
        reason: String,
    },
    /// The engine could not be set up.
    #[error("engine: {0}")]
    Engine(String),
}

/// Wording of [`Error::UnknownTool`], which the format of a source may prescribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UnknownToolWording {
    /// `unknown tool: NAME`
    #[default]
    Unknown,
    /// `tool "NAME" not found`
    NotFound,
}

impl UnknownToolWording {
    fn message(self, name: &str) -> String {
        match self {
            Self::Unknown => format!("unknown tool: {}", clip(name)),
            Self::NotFound => format!("tool {:?} not found", clip(name)),
        }
    }
}

/// The most characters that a message tells of a name that somebody made up.
const MAX_NAME: usize = 256;

/// A name as far as a message tells it.
fn clip(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => Cow::Owned(format!("{}…", &name[..end])),
        None => Cow::Borrowed(name),
    }
}

impl Error {
    /// What a person can do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Unavailable { program, .. } => {
                Some(format!("build or copy the component to `{program}`, or remove the tool from its manifest"))
            }
            Error::Duplicate { .. } => Some(
                "rename one of the two, load only one of the sources, or name a component and its function in a \
                 `tools.json` under a name of your own"
                    .into(),
            ),
            Error::LookAlike { .. } => Some(
                "rename one of them so that they cannot be confused, or load only one of the sources".into(),
            ),
            Error::UnknownTool { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
            Error::Audit { .. } => {
                Some("calls are not run unlogged: make the folder writable, or choose another".into())
            }
            Error::Approvals { .. } => Some(
                "nothing was changed: check that only you own and can write the file, then repair it, or delete it to be asked again"
                    .into(),
            ),
            Error::Results { .. } => {
                Some("see that the folder is yours alone, can be written and has room, or name another".into())
            }
            Error::NoResult { .. } => Some("results are stored for a limited time; call the tool again".into()),
            _ => None,
        }
    }
}

/// Severity of a diagnostic of a tool source or of a problem of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The source cannot be loaded, or the log was changed.
    Error,
    /// The source can be loaded, or the log has lines that prove no change.
    Warning,
}

/// How a call ended: the one vocabulary of results, receipts and the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The tool answered.
    Ok,
    /// The tool ran and said itself that it failed.
    Failed,
    /// The model's call was wrong; the guest was not started.
    BadArguments,
    /// A grant, rule, person or hook refused the call.
    Denied,
    /// The model has to search for the tool before it calls it.
    SchemaNotLoaded,
    /// Too many calls wait already.
    Busy,
    /// The tool broke its contract: its answer is not one line of JSON.
    BadResult,
    /// The wall-clock deadline passed.
    Deadline,
    /// The fuel was used up.
    Fuel,
    /// Memories and tables together wanted more than the cap.
    Memory,
    /// The guest recursed beyond its stack.
    Stack,
    /// The guest held more host resources than the cap.
    Handles,
    /// The guest wrote or made more in its folders than the cap, and then failed.
    Quota,
    /// Standard output, standard error, the result, or what was sent or received was larger than the cap.
    OutputLimit,
    /// The guest wanted more HTTP requests than the cap.
    RequestLimit,
    /// The far side of a request failed, and then the tool did.
    Upstream,
    /// The guest trapped in any other way.
    Trap,
    /// The program cannot be run as a tool.
    BadComponent,
    /// The caller went away, or a call of its step failed, before it ended.
    Cancelled,
    /// The call could not be written to the audit log and was refused.
    Unlogged,
}

impl Outcome {
    /// Every outcome there is.
    pub const ALL: [Self; Self::Unlogged as usize + 1] = [
        Self::Ok,
        Self::Failed,
        Self::BadArguments,
        Self::Denied,
        Self::SchemaNotLoaded,
        Self::Busy,
        Self::BadResult,
        Self::Deadline,
        Self::Fuel,
        Self::Memory,
        Self::Stack,
        Self::Handles,
        Self::Quota,
        Self::OutputLimit,
        Self::RequestLimit,
        Self::Upstream,
        Self::Trap,
        Self::BadComponent,
        Self::Cancelled,
        Self::Unlogged,
    ];

    /// The name used in receipts and in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Failed => "failed",
            Outcome::BadArguments => "bad-arguments",
            Outcome::Denied => "denied",
            Outcome::SchemaNotLoaded => "schema-not-loaded",
            Outcome::Busy => "busy",
            Outcome::BadResult => "bad-result",
            Outcome::Deadline => "deadline",
            Outcome::Fuel => "fuel",
            Outcome::Memory => "memory",
            Outcome::Stack => "stack",
            Outcome::Handles => "handles",
            Outcome::Quota => "quota",
            Outcome::OutputLimit => "output-limit",
            Outcome::RequestLimit => "request-limit",
            Outcome::Upstream => "upstream",
            Outcome::Trap => "trap",
            Outcome::BadComponent => "bad-component",
            Outcome::Cancelled => "cancelled",
            Outcome::Unlogged => "unlogged",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A failed call, as the model may see it: no host path, no user name, no backtrace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// How the call ended; never [`Outcome::Ok`].
    pub outcome: Outcome,
    /// One sentence for the model.
    pub message: String,
    /// The tool's own error object, one line of JSON, where it gave one: passed on as it is.
    pub json: Option<String>,
}

impl ToolError {
    /// An error that the host words.
    pub fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self { outcome, message: message.into(), json: None }
    }

    /// What the model is told of a fault of the host: what concerns its call, and nothing of where things lie.
    pub(crate) fn of_fault(fault: &Error) -> Self {
        match fault {
            Error::UnknownTool { .. } | Error::NoResult { .. } => Self::new(Outcome::BadArguments, fault.to_string()),
            Error::Component { reason, .. } => Self::new(Outcome::BadComponent, reason.clone()),
            Error::Secret { name, .. } => {
                Self::new(Outcome::Denied, format!("the tool needs the secret `{name}`, which cannot be given to it"))
            }
            Error::Audit { .. } => Self::new(Outcome::Unlogged, "refused: the call cannot be written to the audit log"),
            _ => Self::new(Outcome::BadComponent, "the tool cannot be run on this host"),
        }
    }

    /// What the model gets: the tool's own error object, or `{"error": message}`.
    pub fn content(&self) -> String {
        match &self.json {
            Some(json) => json.clone(),
            None => serde_json::json!({ "error": self.message }).to_string(),
        }
    }
}
