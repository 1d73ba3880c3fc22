//! Errors in two types that never mix: [`Error`] is for the operator, [`ToolError`] is the part that a model may see. Neither
//! decides how it is printed.

use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Cause of an [`Error`], shared because errors are cloned.
pub type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Error of the host or its configuration, for the operator and never for the model.
///
/// The message of an error contains the message of its [source](std::error::Error::source).
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A source of tools cannot be read or is invalid.
    #[error("{}: {message}", path.display())]
    Source {
        /// File or folder of the source.
        path: PathBuf,
        /// Position in the file, value found and fix.
        message: String,
    },
    /// The program of a configured tool is missing.
    #[error("configured tool {name:?} is unavailable: {reason} (program {program:?})")]
    Unavailable {
        /// Name of the tool.
        name: String,
        /// Reason why the program is unavailable.
        reason: String,
        /// Path of the program.
        program: String,
    },
    /// Two sources define a tool with the same name.
    #[error("tool `{name}` is defined twice: in {first} and in {second}")]
    Duplicate {
        /// Name of both tools.
        name: String,
        /// Source that was loaded first.
        first: String,
        /// Source that was loaded second.
        second: String,
    },
    /// Two tools have names that a reader can confuse.
    #[error("tool `{name}` in {second} looks like `{like}` in {first}")]
    LookAlike {
        /// Name of the second tool.
        name: String,
        /// Name of the first tool.
        like: String,
        /// Source that was loaded first.
        first: String,
        /// Source that was loaded second.
        second: String,
    },
    /// No tool has this name.
    #[error("{}", wording.message(name))]
    UnknownTool {
        /// Name in the call, cut if it is too long for the name of a tool.
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
        /// Reason why the program is refused.
        reason: String,
    },
    /// A permission cannot be granted as written.
    #[error("{permission}: {reason}")]
    Permission {
        /// The permission, as the operator wrote it.
        permission: String,
        /// Reason why the permission is refused.
        reason: String,
    },
    /// The network settings are invalid: certificates or name servers.
    #[error("network: {0}")]
    Network(String),
    /// The audit log cannot be written.
    #[error("audit log {}: {reason}", path.display())]
    Audit {
        /// The log's folder or file.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
        /// Cause of the failure.
        source: Option<Cause>,
    },
    /// Permanent approvals cannot be read or stored.
    #[error("approvals {}: {reason}", path.display())]
    Approvals {
        /// The file of the approvals.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
        /// Cause of the failure.
        source: Option<Cause>,
    },
    /// A secret cannot be stored, read or used. Its value is never part of the error.
    #[error("secret `{name}`: {reason}")]
    Secret {
        /// Name of the secret, or the text given as its name.
        name: String,
        /// Reason for the failure. It never contains the value.
        reason: String,
    },
    /// Results cannot be stored, or a stored result is damaged.
    #[error("result store {}: {reason}", path.display())]
    Results {
        /// The folder of the results, or a result file.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
        /// Cause of the failure.
        source: Option<Cause>,
    },
    /// No result has this reference.
    #[error("no result `{reference}`: {reason}")]
    NoResult {
        /// Reference, or the start of an invalid one.
        reference: String,
        /// Reason why no result was found.
        reason: String,
    },
    /// The cache cannot be listed, or entries cannot be removed.
    #[error("cache {}: {reason}", path.display())]
    Cache {
        /// The folder of the cache.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
        /// Cause of the failure.
        source: Option<Cause>,
    },
    /// The audit log cannot be read.
    #[error("audit log {} cannot be read: {reason}", path.display())]
    AuditUnread {
        /// The log's folder or file.
        path: PathBuf,
        /// Reason for the failure.
        reason: String,
        /// Cause of the failure.
        source: Option<Cause>,
    },
    /// The engine could not be set up.
    #[error("engine: {0}")]
    Engine(String),
}

/// Wording of [`Error::UnknownTool`], which a source format may prescribe.
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
            Self::Unknown => format!("unknown tool: {name}"),
            Self::NotFound => format!("tool {name:?} not found"),
        }
    }
}

impl Error {
    /// Suggests a fix, if one is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Unavailable { program, .. } => {
                let build = match package(program) {
                    Some(folder) => format!(" (`toolcrib build {}` builds the Rust package there)", folder.display()),
                    None => String::new(),
                };
                Some(format!("build or copy the component to `{program}`{build}, or remove the tool from its source"))
            }
            Error::Source { path, .. } if is_missing(path) => {
                Some("pass an existing path; a relative one starts at the current directory".into())
            }
            Error::Duplicate { .. } => Some(
                "rename one of the two, load only one of the sources (`toolcrib remove` removes an installed bundle), or \
                 name a component and its function in a `tools.json` under a name of your own"
                    .into(),
            ),
            Error::LookAlike { .. } => Some(
                "rename one of them so that they cannot be confused, or load only one of the sources".into(),
            ),
            Error::UnknownTool { nearest: Some(nearest), .. } => Some(format!("did you mean `{nearest}`?")),
            Error::UnknownTool { nearest: None, .. } => Some("`toolcrib list` shows the tools".into()),
            Error::Audit { .. } => {
                Some("calls are not run unlogged: make the directory writable, or name another with `--set records.audit_dir=DIR`".into())
            }
            Error::Approvals { .. } => Some(
                "nothing was changed: check that only you own and can write the file, then repair it, or delete it to be asked again"
                    .into(),
            ),
            Error::Cache { .. } => Some("check that only you own and can write the directory, or name another with `--set cache.dir=DIR`".into()),
            Error::Results { .. } => {
                Some("check that only you own and can write the directory and that it has free space, or name another".into())
            }
            Error::Source { path, .. } if is_plain(path) => {
                Some(format!("`toolcrib validate {}` lists every problem of the source", path.display()))
            }
            Error::AuditUnread { path, .. } if is_missing(path) => {
                Some("the first call that is logged there creates it; name another with `--set records.audit_dir=DIR`".into())
            }
            Error::AuditUnread { .. } => Some("check that only you own the directory, or name another with `--set records.audit_dir=DIR`".into()),
            Error::Network(_) => Some("correct `network.nameservers` or `network.ca` in the settings or after `--set`".into()),
            Error::Engine(_) => {
                Some("the system may lack memory or threads: see `ulimit -a`, and `toolcrib doctor` for this machine".into())
            }
            Error::NoResult { .. } => Some("results are stored for a limited time; call the tool again".into()),
            _ => None,
        }
    }
}

/// `true` if nothing is at a path. A file in a bundle is at none, but its path leads through a file.
fn is_missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Returns the folder of a program if it is a Rust package with a path that needs no quotes in a shell.
fn package(program: &str) -> Option<&Path> {
    let folder = Path::new(program).parent()?;
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    (is_plain(folder) && folder.join("Cargo.toml").is_file()).then_some(folder)
}

/// Returns `true` if a path needs no quotes in a shell.
fn is_plain(path: &Path) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    path.to_str().is_some_and(|path| !path.is_empty() && path.chars().all(is_plain))
}

/// Failure of a hook, model or agent that the embedding program supplies. The model or the tool that waits gets its
/// message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HandlerError(String);

impl HandlerError {
    /// Creates a failure with a message for the model.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Returns the message.
    pub fn message(&self) -> &str {
        &self.0
    }
}

impl From<String> for HandlerError {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for HandlerError {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

/// Severity of a tool source diagnostic or an audit log problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The source cannot be loaded, or the log was changed.
    Error,
    /// The source can be loaded, or the log has lines that prove no change.
    Warning,
}

/// Outcome of a call, as in results, receipts and the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The tool answered.
    Ok,
    /// The tool ran and reported a failure.
    Failed,
    /// The model's call was invalid; the guest was not started.
    BadArguments,
    /// A grant, rule, person or hook refused the call.
    Denied,
    /// The model has to search for the tool before it calls it.
    SchemaNotLoaded,
    /// Too many calls wait, or the system had no memory for the call, which may have begun.
    Busy,
    /// The tool broke its contract: its answer is not one line of JSON.
    BadResult,
    /// The wall-clock deadline passed.
    Deadline,
    /// The fuel was used up.
    Fuel,
    /// Memories and tables together exceeded the cap.
    Memory,
    /// The guest recursed beyond its stack.
    Stack,
    /// The guest held more host resources than the cap.
    Handles,
    /// The guest wrote or created more in its folders than the cap, and then failed.
    Quota,
    /// Standard output, standard error, the result, or the data sent or received was larger than the cap.
    OutputLimit,
    /// The guest started more HTTP requests than the cap.
    RequestLimit,
    /// The server of a request failed, and then the tool failed.
    Upstream,
    /// The guest trapped in any other way.
    Trap,
    /// The program cannot be run as a tool.
    BadComponent,
    /// The caller stopped waiting, or another call of the step failed, before the call ended.
    Cancelled,
    /// The call could not be written to the audit log and was refused.
    Unlogged,
}

impl Outcome {
    /// All outcomes.
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
    /// Outcome of the call; never [`Outcome::Ok`].
    pub outcome: Outcome,
    /// One sentence for the model.
    pub message: String,
    /// Error object from the tool itself, one JSON line, passed on unchanged; `None` if it gave none.
    pub json: Option<String>,
}

impl ToolError {
    /// Creates an error with a message from the host.
    pub fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self { outcome, message: message.into(), json: None }
    }

    /// Converts an error of the host. The model sees the part that concerns its call, and no path of the host.
    pub(crate) fn of_fault(fault: &Error) -> Self {
        match fault {
            Error::UnknownTool { wording: UnknownToolWording::Unknown, nearest: Some(nearest), .. } => {
                Self::new(Outcome::BadArguments, format!("{fault}; did you mean `{nearest}`?"))
            }
            Error::UnknownTool { .. } | Error::NoResult { .. } => Self::new(Outcome::BadArguments, fault.to_string()),
            Error::Component { reason, .. } => Self::new(Outcome::BadComponent, reason.clone()),
            Error::Secret { name, .. } => {
                Self::new(Outcome::Denied, format!("the tool needs the secret `{name}`, which cannot be given to it"))
            }
            Error::Results { .. } => {
                Self::new(Outcome::Failed, "the stored results cannot be read now: try again later")
            }
            Error::Audit { .. } => Self::new(Outcome::Unlogged, "refused: the call cannot be written to the audit log"),
            _ => Self::new(Outcome::BadComponent, "the tool cannot be run on this host"),
        }
    }

    /// Returns the text for the model: the tool's own error object, or `{"error": message}`.
    pub fn content(&self) -> String {
        match &self.json {
            Some(json) => json.clone(),
            None => serde_json::json!({ "error": self.message }).to_string(),
        }
    }
}
