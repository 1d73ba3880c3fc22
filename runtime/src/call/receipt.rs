//! Receipt of a call: figures, decisions and changes for the caller and for the audit log.

use serde::Serialize;

use crate::error::Outcome;
use crate::flow::Label;
use crate::tool::Persistence;

use super::decision::Decision;
use super::flag::Flag;
use super::hook_note::HookNote;

/// Receipt of a call. The caller and the audit log get the same figures.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Receipt {
    /// The caller's identifier of the call.
    pub call_id: String,
    /// Unique identifier of the call in every record, assigned by the host.
    pub invocation: String,
    /// Name of the tool, or the name that was called if there is no such tool.
    pub tool: String,
    /// SHA-256 of the program, as `sha256:HEX`, if a program was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Worker that ran the call in place of this process, as it names itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
    /// Outcome of the call.
    pub outcome: Outcome,
    /// Decision about the call, if one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Changes of the arguments, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mutations: Vec<Mutation>,
    /// First 32 hooks with a verdict, in order. A hook that acted replaces one that did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookNote>,
    /// Number of hooks with a verdict that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted_hooks: u64,
    /// Milliseconds of waiting for the turn, for permits and for people's answers.
    pub waited_ms: f64,
    /// Kind of answer from a tool that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    /// Invisible content of the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// Shortening of an answer that was too long for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persisted: Option<Persisted>,
    /// References of the stored answers that were put into the arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub used_results: Vec<String>,
    /// Rule about flows that withheld the answer from the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withheld: Option<String>,
    /// Exit code of a program that ran to its end.
    pub exit: Option<i32>,
    /// Wall-clock milliseconds from the start to the end of the call.
    pub ms: f64,
    /// Milliseconds of processor time that the guest and its host calls used on the calling thread.
    pub cpu_ms: f64,
    /// Units of fuel used, if fuel was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// Peak bytes of all memories and tables together.
    pub peak_memory_bytes: u64,
    /// Bytes of the arguments for the guest.
    pub stdin_bytes: u64,
    /// Bytes that the guest wrote to standard output, up to the cap.
    pub stdout_bytes: u64,
    /// Bytes that the guest wrote to standard error, up to the cap.
    pub stderr_bytes: u64,
    /// Bytes that the guest wrote to its folders, up to the cap.
    #[serde(skip_serializing_if = "is_zero")]
    pub disk_bytes: u64,
    /// Files, folders and links that the guest created there, up to the cap.
    #[serde(skip_serializing_if = "is_zero")]
    pub disk_entries: u64,
    /// Label of its result, as observed by the host; none if the result depends on trusted and public sources alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Name of the stage that held its writes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// End of the changes that it and the calls below it held back, if a rule asks about them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldChanges>,
    /// `true` if output was cut at its cap.
    pub truncated: bool,
    /// Names of the guest's environment variables; never their values.
    pub env_keys: Vec<String>,
    /// Names of the secrets that were inserted into its requests, each once; never their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Granted capabilities, as `read:FOLDER`, `write:FOLDER`, `net:DESTINATION` or `secret:NAME@HOST#PLACE`.
    pub granted: Vec<String>,
    /// Requested or attempted capabilities that were not granted.
    pub denied: Vec<Denial>,
    /// `true` if the tool looked for a granted folder and had none, unless its error is about something else. No record
    /// contains it.
    #[serde(skip)]
    pub missed_folders: bool,
    /// HTTP requests of the call, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUse>,
    /// First 16 programs that its script ran, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executed: Vec<ProgramRun>,
    /// Number of programs that its script ran.
    #[serde(skip_serializing_if = "is_zero")]
    pub executions: u64,
    /// Tools and hooks that its script added to the run, as `tool:NAME` or `hook:NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// Number of tasks that it delegated to other agents.
    #[serde(skip_serializing_if = "is_zero")]
    pub delegated: u64,
    /// Invocation of the call that made this one, if a tool did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Number of its calls to other tools.
    #[serde(skip_serializing_if = "is_zero")]
    pub calls: u64,
    /// Number of its completions by the model.
    #[serde(skip_serializing_if = "is_zero")]
    pub completions: u64,
    /// Tokens of these completions, as far as they are known.
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// Number of parts that were shown while it ran.
    #[serde(skip_serializing_if = "is_zero")]
    pub parts: u64,
    /// Number of parts that were dropped because they were late or too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_parts: u64,
    /// Warnings for the caller: ignored parts of the call, and the deadline at which it was stopped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Receipt {
    /// Creates the receipt of a call that has started.
    pub(crate) fn begun(call_id: String, invocation: String, tool: String) -> Self {
        Self {
            call_id,
            invocation,
            tool,
            digest: None,
            worker: None,
            outcome: Outcome::Cancelled,
            decision: None,
            mutations: Vec::new(),
            hooks: Vec::new(),
            omitted_hooks: 0,
            waited_ms: 0.0,
            written: None,
            flags: Vec::new(),
            persisted: None,
            used_results: Vec::new(),
            withheld: None,
            exit: None,
            ms: 0.0,
            cpu_ms: 0.0,
            fuel: None,
            peak_memory_bytes: 0,
            stdin_bytes: 0,
            stdout_bytes: 0,
            stderr_bytes: 0,
            disk_bytes: 0,
            disk_entries: 0,
            label: None,
            stage: None,
            held: None,
            truncated: false,
            env_keys: Vec::new(),
            secrets: Vec::new(),
            granted: Vec::new(),
            denied: Vec::new(),
            missed_folders: false,
            network: None,
            executed: Vec::new(),
            executions: 0,
            added: Vec::new(),
            delegated: 0,
            parent: None,
            calls: 0,
            completions: 0,
            tokens: 0,
            parts: 0,
            dropped_parts: 0,
            warnings: Vec::new(),
        }
    }
}

/// Returns `true` for a count of zero, which receipts omit.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Changes and requests that a call and the calls below it held back until the end of the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HeldChanges {
    /// Number of changed entries.
    pub changes: u64,
    /// Number of requests that were held back.
    #[serde(skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Rule that held them back.
    pub rule: String,
    /// Their end.
    pub end: HeldEnd,
    /// Requests that were sent after the changes were made, in order, until one failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sent: Vec<Exchange>,
}

impl HeldChanges {
    /// Creates the record of changes and requests, which are dropped unless somebody agrees.
    pub(crate) fn begun((changes, requests): (usize, usize), rule: String) -> Self {
        Self { changes: changes as u64, requests: requests as u64, rule, end: HeldEnd::Dropped, sent: Vec::new() }
    }
}

/// End of changes that were held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum HeldEnd {
    /// A person agreed, and they were made.
    Committed,
    /// A person refused them.
    Refused,
    /// Nobody was available to ask.
    Unanswered,
    /// Others had changed the same entries meanwhile.
    Conflict,
    /// The call failed, or they could not be made.
    Dropped,
    /// They were made in part, and the commit can go on.
    Incomplete,
    /// They were made, but a request that was held back failed, or those after it were not sent.
    Unsent,
}

/// HTTP requests of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NetworkUse {
    /// First 16 requests, in order.
    pub requests: Vec<Exchange>,
    /// Number of all requests, including refused ones.
    pub count: u64,
    /// Bytes of all request bodies together.
    pub sent_bytes: u64,
    /// Bytes of all response bodies together, as received.
    pub received_bytes: u64,
}

/// One HTTP request and its result. Paths, queries and headers are omitted, since they can hold secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Exchange {
    /// Method of the request.
    pub method: String,
    /// Host of the request, as the guest wrote it.
    pub host: String,
    /// Port of the request, if it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Status of the response, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Reason for a missing response or an incomplete body: `denied`, `rejected`, `request-limit`, `output-limit`, `dns`,
    /// `connect`, `tls`, `certificate`, `timeout`, `protocol`, `secret` or `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// Bytes of the response body.
    pub bytes: u64,
    /// `true` if it was not sent: it waits for the answer about its call, and got the status 202.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

/// Run of a program by a script. The arguments are omitted, since they can hold secrets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProgramRun {
    /// Name of the tool with this program.
    pub program: String,
    /// SHA-256 of the program, as `sha256:HEX`.
    pub digest: String,
    /// Exit code of a program that ran to its end.
    pub exit: Option<i32>,
    /// Outcome of a program that was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Outcome>,
    /// Wall-clock milliseconds.
    pub ms: f64,
}

/// Capability that a tool requested or attempted to use without a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Denial {
    /// Capability, as `read:PATH`, `write:PATH`, `env:NAME`, `net:HOST:PORT`, `exec:NAME`, `sockets:FUNCTION`, `cache`,
    /// `delegate` or `meta`, or as the pattern of a rule about flows; a path is the guest's own.
    pub capability: String,
    /// Flag that would have allowed it, if one would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}

/// Kind of answer from a tool that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Written {
    /// A value.
    Value,
    /// An empty value: `{}`, `[]`, `""` or `null`.
    Empty,
    /// No answer at all.
    Missing,
}

/// Change of a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Mutation {
    /// Name of the hook that changed them.
    pub by: String,
    /// Source of the values, if the hook named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation_source: Option<String>,
    /// Names of the first 64 added, changed and removed arguments.
    pub fields: Vec<String>,
    /// Reason of the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Shortening of an answer that was too long for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Persisted {
    /// Strategy of the tool.
    pub strategy: Persistence,
    /// Reference of the stored answer, if it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Bytes of the whole answer.
    pub bytes: u64,
    /// Bytes for the model.
    pub shown_bytes: u64,
}
