//! What a call leaves: the figures, decisions and changes that go to the caller and into the audit log.

use serde::Serialize;

use crate::error::Outcome;
use crate::tool::Persistence;

use super::decision::Decision;
use super::flag::Flag;

/// What a call used, was granted and was denied. The same figures go to the caller and to the audit log.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The identifier of the call.
    pub call_id: String,
    /// The identifier of the call in every record; no other call has it.
    pub invocation: String,
    /// The tool's name; where there is no such tool, the name that was called.
    pub tool: String,
    /// SHA-256 of the program, as `sha256:HEX`, where one was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How the call ended.
    pub outcome: Outcome,
    /// Who decided that the call may run or not, where it came so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The changes of its arguments, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mutations: Vec<Mutation>,
    /// The hooks that had something to say, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookNote>,
    /// Milliseconds that it waited for its turn, its slot and people's answers.
    pub waited_ms: f64,
    /// What the tool wrote, where it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<Written>,
    /// What the tool's answer holds that a person who looks at it would miss.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<Flag>,
    /// What became of the answer, where it was too long to be told whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persisted: Option<Persisted>,
    /// The program's exit code, where it ran to an end.
    pub exit: Option<i32>,
    /// Wall-clock milliseconds, from the door's call to the end.
    pub ms: f64,
    /// Milliseconds of processor time that the guest and its host calls used on the calling thread.
    pub cpu_ms: f64,
    /// Units of fuel used, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// The most bytes that memories and tables held together.
    pub peak_memory_bytes: u64,
    /// Bytes of arguments given to the guest.
    pub stdin_bytes: u64,
    /// Bytes that the guest wrote to standard output, up to the cap.
    pub stdout_bytes: u64,
    /// Bytes that the guest wrote to standard error, up to the cap.
    pub stderr_bytes: u64,
    /// Bytes that the guest wrote to its folders, up to the cap.
    #[serde(skip_serializing_if = "is_none")]
    pub disk_bytes: u64,
    /// Files, folders and links that it made there, up to the cap.
    #[serde(skip_serializing_if = "is_none")]
    pub disk_entries: u64,
    /// Whether output was cut at its cap.
    pub truncated: bool,
    /// Names of the environment variables passed on; never their values.
    pub env_keys: Vec<String>,
    /// Names of the secrets that were put into its requests, each once; never their values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// What was granted, as `read:FOLDER`, `write:FOLDER`, `net:DESTINATION` or `secret:NAME@HOST#PLACE`.
    pub granted: Vec<String>,
    /// What was asked for or tried and not granted.
    pub denied: Vec<Denial>,
    /// The HTTP requests that were made, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUse>,
    /// The first 16 programs that its script ran, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executed: Vec<Execution>,
    /// How many there were.
    #[serde(skip_serializing_if = "is_none")]
    pub executions: u64,
    /// What its script added to the run, as `tool:NAME` or `hook:NAME`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<String>,
    /// How many tasks it handed to other agents.
    #[serde(skip_serializing_if = "is_none")]
    pub delegated: u64,
    /// The invocation of the call that made this one, where a tool did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// How many other tools it called.
    #[serde(skip_serializing_if = "is_none")]
    pub calls: u64,
    /// How often it asked the model, and the tokens that this cost as far as they are known.
    #[serde(skip_serializing_if = "is_none")]
    pub completions: u64,
    /// See `completions`.
    #[serde(skip_serializing_if = "is_none")]
    pub tokens: u64,
    /// How many parts were shown while it ran, and how many were not: they came too late or were too many.
    #[serde(skip_serializing_if = "is_none")]
    pub parts: u64,
    /// See `parts`.
    #[serde(skip_serializing_if = "is_none")]
    pub dropped_parts: u64,
    /// What its caller should know: what was left out of what he said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Receipt {
    /// The receipt of a call that has only begun.
    pub(crate) fn begun(call_id: String, invocation: String, tool: String) -> Self {
        Self {
            call_id,
            invocation,
            tool,
            digest: None,
            outcome: Outcome::Cancelled,
            decision: None,
            mutations: Vec::new(),
            hooks: Vec::new(),
            waited_ms: 0.0,
            written: None,
            flags: Vec::new(),
            persisted: None,
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
            truncated: false,
            env_keys: Vec::new(),
            secrets: Vec::new(),
            granted: Vec::new(),
            denied: Vec::new(),
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

/// Most calls write to no folder, and their receipts say nothing of it.
fn is_none(count: &u64) -> bool {
    *count == 0
}

/// The HTTP requests of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkUse {
    /// The first 16 of them, in order.
    pub requests: Vec<Exchange>,
    /// How many there were, those that were refused included.
    pub count: u64,
    /// Bytes of all request bodies together.
    pub sent_bytes: u64,
    /// Bytes of all response bodies together, as they were received.
    pub received_bytes: u64,
}

/// One HTTP request and what it came to. Paths, queries and headers are not told: they can hold secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    /// The method.
    pub method: String,
    /// The host that the request named, or what stood in its place.
    pub host: String,
    /// The port, where it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The status of the response, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why there was none, or why its body broke off: `denied`, `rejected`, `request-limit`, `output-limit`, `dns`,
    /// `connect`, `tls`, `certificate`, `timeout`, `protocol`, `secret` or `host`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// Bytes of the response's body.
    pub bytes: u64,
}

/// A program that a script ran. Its arguments are not told: they can hold secrets.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// The name of the tool whose program it is.
    pub program: String,
    /// SHA-256 of the program, as `sha256:HEX`.
    pub digest: String,
    /// Its exit code, where it ran to an end.
    pub exit: Option<i32>,
    /// How it was stopped, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Outcome>,
    /// Wall-clock milliseconds.
    pub ms: f64,
}

/// Something that a tool asked for or tried and did not get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    /// The capability, as `read:PATH`, `write:PATH`, `env:NAME`, `net:HOST:PORT`, `exec:NAME`, `sockets:FUNCTION`, `cache`,
    /// `delegate` or `meta`; a path is the guest's own.
    pub capability: String,
    /// The flag that would have allowed it, where one would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}

/// A flag with its value as a person can paste it into a shell; none where quotes would not hold the value, which may be
/// a guest's own text.
pub(crate) fn pasted(flag: &str, value: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./@:+,-".contains(c);
    let held = |c: char| c != '\'' && !c.is_control();
    match value {
        value if value.chars().all(plain) => Some(format!("{flag}={value}")),
        value if value.chars().all(held) => Some(format!("{flag}='{value}'")),
        _ => None,
    }
}

/// What a tool that succeeded wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Written {
    /// A value.
    Value,
    /// A value that holds nothing: `{}`, `[]`, `""` or `null`. It did its work and there is nothing to say.
    Empty,
    /// Nothing: it did not answer at all.
    Missing,
}

/// A change of a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Mutation {
    /// Who changed them: a hook, by its name.
    pub by: String,
    /// Where the values are from, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation_source: Option<String>,
    /// The arguments that are new, other or gone, by name.
    pub fields: Vec<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What became of an answer that was too long to be told whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Persisted {
    /// The rule that was followed.
    pub strategy: Persistence,
    /// The reference under which the whole is kept, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// Bytes of the whole.
    pub bytes: u64,
    /// Bytes that the model was told.
    pub shown_bytes: u64,
}

/// A hook that had something to say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookNote {
    /// Its name.
    pub hook: String,
    /// `allow`, `block`, `modify`, `delegate`, `replace` or `failed`; of a script also `pass`, for it has run.
    pub said: &'static str,
    /// SHA-256 of its script, as `sha256:HEX`, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::pasted;

    #[test]
    fn nothing_that_a_guest_names_leaves_the_quotes_of_a_flag() {
        assert_eq!(pasted("--allow-read", "/data/a-b_c.d").as_deref(), Some("--allow-read=/data/a-b_c.d"));
        assert_eq!(pasted("--allow-read", "/a b/$(x)`y`;").as_deref(), Some("--allow-read='/a b/$(x)`y`;'"));
        for value in ["/a'b", "/a\nb", "/a\u{1b}[31m", "/'`x`'"] {
            assert_eq!(pasted("--allow-read", value), None, "{value:?}");
        }
    }
}
