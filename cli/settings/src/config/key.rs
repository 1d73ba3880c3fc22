//! Keys of the settings files: the one table behind the parser, `toolcrib config`, the JSON Schema of the file and the
//! option defaults.

use regex::Regex;
use toolcrib::policy::{Pattern, PatternError};
use toolcrib::tool::{Destination, Glob};
use toolcrib_base::parse::{MAX_COUNT, approval_wait, duration, name_server, not_allowed, size};

use super::layer_kind::LayerKind;
use super::path::PathRule;
use crate::selection::{split as split_selection, split_destination};

/// Name of a key that stands for any name.
pub(super) const ANY: &str = "*";

/// Kind of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Text that a function accepts; its error may be empty.
    Text {
        wanted: &'static str,
        /// Regular expression of the JSON Schema, which accepts everything that `check` accepts.
        pattern: &'static str,
        check: fn(&str) -> Result<(), String>,
    },
    /// Path, relative to the file or to the current directory.
    Path(PathRule),
    /// One of some words.
    Word(&'static [&'static str]),
    /// Whole number from one value to another.
    Count(u64, u64),
    /// Number from 0 to this value.
    Number(f64),
    Bool,
    /// List of values with one kind.
    List(&'static Kind),
    /// Table with keys of the author's own.
    Object,
}

/// Values of several files that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// The value of the strongest file.
    Strongest,
    /// The values of all files.
    All,
}

/// Command options that take the value as their default.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OptionOf {
    /// None: the value is read where it is used.
    None,
    /// An option that takes the value.
    Value(&'static str),
    /// A flag for each value, by the value.
    Flags(&'static [(&'static str, &'static str)]),
}

/// Key of a settings file.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Name of the section.
    pub section: &'static str,
    /// Name in its section, or `ANY`.
    pub name: &'static str,
    pub(crate) kind: Kind,
    /// Combination of values from several layers.
    pub merge: Merge,
    pub(crate) option: OptionOf,
    /// Other options that take the place of this one.
    pub(crate) unless: &'static [&'static str],
    /// Environment variables that override the value, the strongest first.
    pub variables: &'static [&'static str],
    /// `true` for a host key: a place outside the project, a credential, or the approvals. The file of a project cannot
    /// have it, even if it is trusted.
    pub is_of_host: bool,
    pub(crate) about: &'static str,
}

impl Key {
    /// All keys, in the order of the documentation.
    pub fn all_keys() -> impl Iterator<Item = &'static Self> {
        KEYS.iter()
    }

    /// Returns the layers with files that may have the key, the strongest first.
    pub fn layers(&self) -> &'static [LayerKind] {
        const ALL: &[LayerKind] = &[LayerKind::Project, LayerKind::Profile, LayerKind::User, LayerKind::System];
        if self.is_of_host { &ALL[1..] } else { ALL }
    }

    /// Names of the options that take the value as their default.
    pub fn options(&self) -> Vec<&'static str> {
        match self.option {
            OptionOf::None => Vec::new(),
            OptionOf::Value(name) => vec![name],
            OptionOf::Flags(flags) => flags.iter().map(|(_, flag)| *flag).collect(),
        }
    }

    const fn new(section: &'static str, name: &'static str, kind: Kind, about: &'static str) -> Self {
        let (merge, option) = (Merge::Strongest, OptionOf::None);
        Self { section, name, kind, merge, option, unless: &[], variables: &[], is_of_host: false, about }
    }

    const fn all(self) -> Self {
        Self { merge: Merge::All, ..self }
    }

    const fn option(self, name: &'static str) -> Self {
        Self { option: OptionOf::Value(name), ..self }
    }

    const fn flags(self, flags: &'static [(&'static str, &'static str)]) -> Self {
        Self { option: OptionOf::Flags(flags), ..self }
    }

    const fn unless(self, unless: &'static [&'static str]) -> Self {
        Self { unless, ..self }
    }

    const fn variables(self, variables: &'static [&'static str]) -> Self {
        Self { variables, ..self }
    }

    const fn of_host(self) -> Self {
        Self { is_of_host: true, ..self }
    }

    /// Returns `true` if the value can only restrict, so that it counts in a file that nobody trusts.
    pub(crate) fn restricts(&self) -> bool {
        self.section == "deny" || self.section == "permissions" && self.name != "allow"
    }

    /// Returns `true` for a list of paths that tools are granted.
    pub(super) fn grants_paths(&self) -> bool {
        self.section == "allow" && matches!(self.kind, Kind::List(Kind::Path(_)))
    }

    /// Returns `true` if the key has this dotted name.
    pub fn is_named(&self, dotted: &str) -> bool {
        let Some((section, name)) = dotted.split_once('.') else { return false };
        section == self.section && (name == self.name || self.name == ANY && !name.is_empty())
    }
}

/// Writes the dotted name.
impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.section, if self.name == ANY { "NAME" } else { self.name })
    }
}

const ANY_TEXT: &str = "^.";
const TIME: Kind = Kind::Text {
    wanted: "a time as text, such as \"60s\"",
    pattern: r"^\s*[0-9.]+\s*(ms|s|m|min|h)?\s*$",
    check: |text| duration(text).map(drop),
};
const WAIT: Kind = Kind::Text {
    wanted: "a time as text, such as \"10m\"",
    pattern: r"^\s*[0-9.]+\s*(ms|s|m|min|h)?\s*$",
    check: |text| approval_wait(text).map(drop),
};
const SIZE: Kind = Kind::Text {
    wanted: "a size as text, such as \"4MiB\"",
    pattern: r"^\s*[0-9.]+\s*([kKmMgG]?[iI]*[bB]*)\s*$",
    check: |text| size(text).map(drop),
};
const POSITIVE: Kind = Kind::Count(1, u64::MAX);
/// Positive number that an option of 32 bits takes.
const NUMBER: Kind = Kind::Count(1, MAX_COUNT);
const NAME: Kind = Kind::Text { wanted: "a name as text", pattern: ANY_TEXT, check: filled };
const LISTED: Kind = Kind::Text { wanted: "a name as text, without `,`", pattern: "^[^,]+$", check: single };
const TAG: Kind = Kind::Text { wanted: "a tag as text", pattern: ANY_TEXT, check: filled };
const TOOL: Kind = Kind::Text { wanted: "the name of a tool", pattern: ANY_TEXT, check: filled };
const URL: Kind = Kind::Text {
    wanted: "a URL as text, such as \"http://localhost:11434/v1\"",
    pattern: "^[hH][tT][tT][pP][sS]?:",
    check: |text| match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(()),
        _ => Err(String::new()),
    },
};
const GLOB: Kind = Kind::Text {
    wanted: "the name of a tool or a pattern such as \"fs_*\"",
    pattern: "^[^,]+$",
    check: |text| match split_selection(text).1.parse::<Glob>() {
        Ok(_) => single(text),
        Err(error) => Err(error.to_string()),
    },
};
const HOST: Kind = Kind::Text {
    wanted: "a destination as text, such as \"api.example.com\", or \"*\"",
    pattern: ANY_TEXT,
    check: |text| Destination::parse_list(split_destination(text).1).map(drop).map_err(|error| error.to_string()),
};
const ADDRESS: Kind = Kind::Text {
    wanted: "an address as text, such as \"192.0.2.53\"",
    pattern: r"^[0-9a-fA-F:.\[\]%]+$",
    check: |text| name_server(text).map(drop),
};
const MASK: Kind = Kind::Text {
    wanted: "a regular expression as text",
    pattern: "",
    // The last line is the message; those above show the position.
    check: |text| match Regex::new(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string().lines().last().unwrap_or_default().replace("error: ", "")),
    },
};
const RULE: Kind = Kind::Text {
    wanted: "a text such as \"fs_*\" or \"fs_rm(path=out/*)\"",
    pattern: ANY_TEXT,
    check: |text| pattern(text).map(drop),
};
const NAMED_RULE: Kind = Kind::Text {
    wanted: "a text such as \"fs_*\" or \"fs_rm(path=out/*)\"",
    pattern: ANY_TEXT,
    check: |text| match pattern(text)? {
        class if class.is_class() => Err(not_allowed(&class)),
        _ => Ok(()),
    },
};
const FOLDERS: Kind = Kind::List(&Kind::Path(PathRule::Folder));
const GRANTED: Kind = Kind::List(&Kind::Path(PathRule::Granted));
const PATHS: Kind = Kind::List(&Kind::Path(PathRule::Any));
const NAMES: Kind = Kind::List(&LISTED);
const GLOBS: Kind = Kind::List(&GLOB);
const HOSTS: Kind = Kind::List(&HOST);
const DIR: Kind = Kind::Path(PathRule::Any);

/// All keys, in the order of the documentation.
pub(crate) static KEYS: &[Key] = &[
    Key::new("model", "name", NAME, "Name of the model").option("model").variables(&["OAI_MODEL", "OPENAI_MODEL"]),
    Key::new("model", "base_url", URL, "Base URL of the server")
        .option("base-url")
        .variables(&["OAI_BASE_URL", "OPENAI_BASE_URL"]),
    Key::new("model", "api", Kind::Word(&["chat", "responses"]), "Model API").option("api").variables(&["OAI_API"]),
    Key::new("model", "api_key_env", NAME, "Environment variable that holds the API key of the server")
        .option("api-key-env")
        .of_host(),
    Key::new("model", "custom_tools", Kind::Bool, "Offer tools that take text as custom tools, with the Responses API")
        .flags(&[("false", "no-custom-tools")])
        .variables(&["OAI_NO_CUSTOM_TOOLS"]),
    Key::new("model", "temperature", Kind::Number(2.0), "Sampling temperature").option("temp").unless(&["top-p"]),
    Key::new("model", "top_p", Kind::Number(1.0), "Nucleus sampling").option("top-p").unless(&["temp"]),
    Key::new("model", "max_steps", NUMBER, "Maximum number of requests to the model of each agent of a run")
        .option("max-steps"),
    Key::new("model", "http_timeout", TIME, "Time limit of the server")
        .option("http-timeout")
        .unless(&["timeout"])
        .variables(&["OAI_HTTP_TIMEOUT"]),
    Key::new("model", "http_retries", Kind::Count(0, 100), "Maximum retries of a request").option("http-retries"),
    Key::new("model", "http_retry_backoff", TIME, "Delay before the first retry").option("http-retry-backoff"),
    Key::new("sources", "tools", Kind::List(&Kind::Path(PathRule::Source)), "Sources of tools").option("tools"),
    Key::new("allow", "read", GRANTED, "Folders that tools may read").option("allow-read"),
    Key::new("allow", "write", GRANTED, "Folders that tools may read and write").option("allow-write"),
    Key::new("allow", "env", NAMES, "Environment variables that tools may read").option("allow-env"),
    Key::new("allow", "net", HOSTS, "Destinations that tools may reach").option("allow-net"),
    Key::new("allow", "secret", NAMES, "Secrets that tools may use, as NAME@HOST#PLACE").option("allow-secret"),
    Key::new("allow", "exec", GLOBS, "Programs of the crib that scripts may run").option("allow-exec"),
    Key::new("allow", "call", GLOBS, "Tools that other tools may call").option("allow-call"),
    Key::new("allow", "delegate", Kind::Bool, "Tools may hand tasks to other agents")
        .flags(&[("true", "allow-delegate")]),
    Key::new("allow", "meta", Kind::Bool, "Scripts may register tools and hooks").flags(&[("true", "allow-meta")]),
    Key::new("allow", "model", Kind::Bool, "Tools may ask the model of the run").flags(&[("true", "allow-model")]),
    Key::new("allow", "hooks", FOLDERS, "Sources with hooks that handle the tools of other sources")
        .option("allow-hooks"),
    Key::new("deny", "read", GRANTED, "Folders that no tool may read; \"*\" for all").all(),
    Key::new("deny", "write", GRANTED, "Folders that no tool may write; \"*\" for all").all(),
    Key::new("deny", "env", NAMES, "Environment variables that no tool may read; \"*\" for all").all(),
    Key::new("deny", "net", HOSTS, "Destinations that no tool may reach; \"*\" for all").all(),
    Key::new("deny", "secret", NAMES, "Secrets that no tool may use; \"*\" for all").all(),
    Key::new("deny", "exec", GLOBS, "Programs of the crib that no script may run; \"*\" for all").all(),
    Key::new("deny", "call", GLOBS, "Tools that no other tool may call; \"*\" for all").all(),
    Key::new("deny", "delegate", Kind::Bool, "No tool may hand tasks to other agents").all(),
    Key::new("deny", "meta", Kind::Bool, "No script may register tools and hooks").all(),
    Key::new("deny", "model", Kind::Bool, "No tool may ask the model of the run").all(),
    Key::new("deny", "hooks", FOLDERS, "Sources with hooks that handle only their own tools; \"*\" for all").all(),
    Key::new("permissions", "allow", Kind::List(&NAMED_RULE), "Calls that are allowed without a question").all(),
    Key::new("permissions", "ask", Kind::List(&RULE), "Calls that need approval").all(),
    Key::new("permissions", "deny", Kind::List(&RULE), "Calls that are denied").all(),
    Key::new(
        "approvals",
        "ask",
        Kind::Word(&["destructive", "writes", "never"]),
        "Calls that need approval without a rule, where somebody can answer",
    )
    .option("ask"),
    Key::new("approvals", "file", DIR, "File of permanent approvals")
        .option("approvals")
        .variables(&["TOOLCRIB_APPROVALS"])
        .of_host(),
    Key::new("approvals", "pending", DIR, "File of the calls that wait for approval in another terminal")
        .option("pending")
        .variables(&["TOOLCRIB_PENDING"])
        .of_host(),
    Key::new(
        "approvals",
        "wait",
        WAIT,
        "Time for which calls of `run` and `mcp` wait for approval in another terminal or in the console",
    )
    .option("wait-approval")
    .unless(&["answers"]),
    Key::new("limits", "tool_timeout", TIME, "Time limit of calls of tools that set none")
        .option("tool-timeout")
        .unless(&["timeout"]),
    Key::new("limits", "max_timeout", TIME, "Maximum time per call").option("max-timeout"),
    Key::new("limits", "max_memory", SIZE, "Maximum memory per call").option("max-memory"),
    Key::new("limits", "max_output", SIZE, "Maximum output per call").option("max-output"),
    Key::new("limits", "max_disk", SIZE, "Maximum bytes written to disk per call").option("max-disk"),
    Key::new("limits", "max_disk_entries", POSITIVE, "Maximum files, folders and links created per call")
        .option("max-disk-entries"),
    Key::new("limits", "fuel", Kind::Count(0, u64::MAX), "Maximum fuel per call").option("fuel"),
    Key::new("limits", "concurrency", Kind::Count(1, 1000), "Maximum concurrent calls").option("concurrency"),
    Key::new("limits", "max_requests", NUMBER, "Maximum requests per call").option("max-requests"),
    Key::new("limits", "max_received", SIZE, "Maximum response bytes per call").option("max-received"),
    Key::new("limits", "compile_timeout", TIME, "Maximum processor time to compile a tool").option("compile-timeout"),
    Key::new("limits", "compile_memory", SIZE, "Maximum memory to compile a tool").option("compile-memory"),
    Key::new(
        "scheduler",
        "sibling_failure",
        Kind::Word(&["ignore", "cancel_siblings", "cancel_dependent"]),
        "Effect of a failed call on the other calls of its step",
    ),
    Key::new("scheduler", "step_time", TIME, "Time of all calls of one step together"),
    Key::new("scheduler", "step_output", SIZE, "Output of all calls of one step together"),
    Key::new("scheduler", "queue", POSITIVE, "Maximum number of calls that wait"),
    Key::new("scheduler", "defer_above", POSITIVE, "Number of tools above which a model gets `tool_search`"),
    Key::new("results", "max_inline", NUMBER, "Characters of a result that a model gets whole").option("max-inline"),
    Key::new("masks", ANY, MASK, "Regular expressions for tools with `redaction_policy_refs`"),
    Key::new("network", "nameservers", Kind::List(&ADDRESS), "Name servers instead of those of the system")
        .option("dns"),
    Key::new("network", "ca", PATHS, "PEM files with root certificates to trust besides those of the system")
        .option("net-ca")
        .of_host(),
    Key::new("run", "tags", Kind::List(&TAG), "Tags of the run").all(),
    Key::new("routes", ANY, TOOL, "Tool that answers to a name, before claims and names"),
    Key::new("config", ANY, Kind::Object, "Settings of one tool"),
    Key::new("records", "audit_dir", DIR, "Directory of the audit log")
        .option("audit-dir")
        .variables(&["TOOLCRIB_AUDIT_DIR"])
        .of_host(),
    Key::new("records", "results_dir", DIR, "Directory of results that are too large for a model")
        .option("results-dir")
        .variables(&["TOOLCRIB_RESULTS_DIR"])
        .of_host(),
    Key::new("records", "keyvalue_dir", DIR, "Directory of values that tools store")
        .option("keyvalue-dir")
        .variables(&["TOOLCRIB_KEYVALUE_DIR"])
        .of_host(),
    Key::new("records", "log_arguments", Kind::Bool, "Log the arguments of calls, not only their size and digest")
        .flags(&[("false", "no-log-arguments")])
        .variables(&["TOOLCRIB_NO_LOG_ARGUMENTS"]),
    Key::new("cache", "dir", DIR, "Directory of compiled tools and pulled bundles")
        .option("cache-dir")
        .variables(&["TOOLCRIB_CACHE_DIR"])
        .of_host(),
    Key::new("cache", "max", SIZE, "Maximum size of the cache")
        .option("max-cache")
        .variables(&["TOOLCRIB_MAX_CACHE"])
        .of_host(),
    Key::new("secrets", "store", Kind::Word(&["auto", "keyring", "file"]), "Store of secrets")
        .option("secrets-store")
        .variables(&["TOOLCRIB_SECRETS_STORE"])
        .of_host(),
    Key::new("secrets", "file", DIR, "Encrypted file of secrets")
        .option("secrets-file")
        .variables(&["TOOLCRIB_SECRETS_FILE"])
        .of_host(),
    Key::new("display", "color", Kind::Word(&["auto", "always", "never"]), "Use of colors").option("color"),
    Key::new("display", "plain", Kind::Bool, "Plain lines for screen readers: no progress bars and no symbols")
        .option("plain")
        .variables(&["TOOLCRIB_PLAIN"]),
    Key::new("display", "stream", Kind::Bool, "Print the text of a model as it arrives")
        .flags(&[("true", "stream"), ("false", "no-stream")]),
    Key::new("display", "detail", Kind::Word(&["quiet", "trace", "verbose"]), "Trace of the calls of a run")
        .flags(&[("quiet", "quiet"), ("verbose", "verbose")]),
];

/// Finds the key of a dotted name.
pub fn find(dotted: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.is_named(dotted))
}

/// Sections in the order of [`KEYS`].
pub(crate) fn sections() -> Vec<&'static str> {
    let mut sections: Vec<&'static str> = KEYS.iter().map(|key| key.section).collect();
    let mut seen = Vec::new();
    sections.retain(|section| {
        !seen.contains(section) && {
            seen.push(*section);
            true
        }
    });
    sections
}

fn filled(text: &str) -> Result<(), String> {
    if text.is_empty() { Err(String::new()) } else { Ok(()) }
}

/// Accepts one value of an option that takes several, separated by commas.
fn single(text: &str) -> Result<(), String> {
    if text.contains(',') { Err(String::new()) } else { filled(text) }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    text.parse().map_err(|error: PatternError| error.to_string())
}
