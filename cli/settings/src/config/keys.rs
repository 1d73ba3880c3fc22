//! Table of all keys: the one table behind the parser, `--set`, `toolcrib config`, the JSON Schema of the file, the option
//! defaults and the deprecated options.

use toolcrib::flow::Meaning;

use super::key::{ANY, Key};
use super::kind::{
    ADDRESS, DELAY, DIR, FOLDERS, GLOBS, GRANTED, HOSTS, Kind, LISTEN, MASK, NAME, NAMED_RULE, NAMES, NUMBER,
    PAGE_ORIGIN, PATHS, PLACES, POSITIVE, PRICE, RULE, SECURE_URL, SERVED_HOST, SIZE, STAGED_RULE, STORE, TAG, TIME,
    TOOL, TOOL_QUOTAS, URL, WAIT, WINDOW,
};
use super::path::PathRule;

/// Creates a key of a server over HTTP: the owner of the machine decides about it, and no project.
const fn server(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key::new("server", name, kind, about).of(&["mcp"]).of_host()
}

/// All keys, in the order of the documentation.
pub(crate) static KEYS: &[Key] = &[
    Key::new("model", "name", NAME, "Name of the model").option("model").variables(&["OAI_MODEL", "OPENAI_MODEL"]),
    Key::new("model", "base_url", URL, "Base URL of the server")
        .sensitive()
        .option("base-url")
        .variables(&["OAI_BASE_URL", "OPENAI_BASE_URL"]),
    Key::new("model", "api", Kind::Word(&["chat", "responses"]), "Model API").option("api").variables(&["OAI_API"]),
    Key::new("model", "api_key_env", NAME, "Environment variable that holds the API key of the server")
        .option("api-key-env")
        .replaces()
        .of_host(),
    Key::new("model", "custom_tools", Kind::Bool, "Offer tools that take text as custom tools, with the Responses API")
        .flags(&[("false", "no-custom-tools")])
        .default("true")
        .replaces()
        .variables(&["OAI_NO_CUSTOM_TOOLS"]),
    Key::new("model", "temperature", Kind::Number(2.0), "Sampling temperature")
        .option("temp")
        .replaces()
        .unless(&["top-p"]),
    Key::new("model", "top_p", Kind::Number(1.0), "Nucleus sampling").option("top-p").replaces().unless(&["temp"]),
    Key::new("model", "max_steps", NUMBER, "Maximum number of requests to the model of each agent of a run")
        .option("max-steps"),
    Key::new("model", "context_window", POSITIVE, "Tokens that the context of the model holds").of(&["run", "chat"]),
    Key::new(
        "model",
        "compact_at",
        Kind::Count(0, 100),
        "Percentage of the context window at which a conversation is compacted; 0 for never",
    )
    .default("90")
    .of(&["run", "chat"]),
    Key::new("model", "http_timeout", TIME, "Time limit of the server")
        .option("http-timeout")
        .replaces()
        .unless(&["timeout"])
        .variables(&["OAI_HTTP_TIMEOUT"]),
    Key::new("model", "http_retries", Kind::Count(0, 100), "Maximum retries of a request")
        .option("http-retries")
        .replaces(),
    Key::new("model", "http_retry_backoff", DELAY, "Delay before the first retry")
        .option("http-retry-backoff")
        .replaces(),
    Key::new("budgets", "tokens", POSITIVE, "Maximum tokens of a run").option("max-tokens"),
    Key::new("budgets", "calls", Kind::Count(0, u64::MAX), "Maximum calls of a run").option("max-calls").replaces(),
    Key::new("budgets", "cpu", TIME, "Maximum processor time of all calls of a run").option("max-cpu").replaces(),
    Key::new("budgets", "bytes", SIZE, "Maximum bytes that all calls of a run print, write, send and receive")
        .option("max-bytes")
        .replaces(),
    Key::new("budgets", "cost", Kind::Number(1e9), "Maximum cost of a run, in the currency of the price")
        .option("max-cost"),
    Key::new("budgets", "price", PRICE, "Price of a million prompt tokens and of a million tokens of answers")
        .option("price")
        .variables(&["TOOLCRIB_PRICE"])
        .replaces(),
    Key::new("sources", "tools", Kind::List(&Kind::Path(PathRule::Source)), "Sources of tools").option("tools"),
    Key::new(
        "sources",
        "code",
        Kind::Bool,
        "Offer `run_code`, which runs programs that call the tools, in place of them",
    )
    .flags(&[("true", "code")])
    .default("false")
    .of(&["run", "chat", "mcp"]),
    Key::new("sources", "direct", GLOBS, "Tools that a model also calls directly with `sources.code`")
        .of(&["run", "chat", "mcp"]),
    Key::new("sources", "interpreters", PATHS, "Interpreters of programs; one of a language replaces the shipped one")
        .of_host()
        .of(&["run", "chat", "mcp", "call"]),
    Key::new("sources", "python", DIR, "Program for WASI that runs the Python scripts of skills")
        .of_host()
        .of(&["run", "chat", "mcp", "call"]),
    Key::new("sources", "javascript", DIR, "Program for WASI that runs the JavaScript scripts of skills")
        .of_host()
        .of(&["run", "chat", "mcp", "call"]),
    Key::new("allow", "read", GRANTED, "Folders that tools may read").option("allow-read"),
    Key::new("allow", "write", GRANTED, "Folders that tools may read and write").option("allow-write"),
    Key::new("allow", "env", NAMES, "Environment variables that tools may read").option("allow-env"),
    Key::new("allow", "net", HOSTS, "Destinations that tools may reach").option("allow-net"),
    Key::new("allow", "secret", NAMES, "Secrets that tools may use, as NAME@HOST#PLACE").option("allow-secret"),
    Key::new("allow", "exec", GLOBS, "Programs of the crib that scripts may run").option("allow-exec"),
    Key::new("allow", "call", GLOBS, "Tools that other tools may call").option("allow-call"),
    Key::new("allow", "delegate", Kind::Bool, "Tools may hand tasks to other agents")
        .flags(&[("true", "allow-delegate")])
        .default("false"),
    Key::new("allow", "meta", Kind::Bool, "Scripts may register tools and hooks")
        .flags(&[("true", "allow-meta")])
        .default("false"),
    Key::new("allow", "model", Kind::Bool, "Tools may ask the model of the run")
        .flags(&[("true", "allow-model")])
        .default("false"),
    Key::new("allow", "hooks", FOLDERS, "Sources with hooks that handle the tools of other sources")
        .option("allow-hooks"),
    Key::new("deny", "read", GRANTED, "Folders that no tool may read; \"*\" for all").with("deny-read").replaces(),
    Key::new("deny", "write", GRANTED, "Folders that no tool may write; \"*\" for all").with("deny-write").replaces(),
    Key::new("deny", "env", NAMES, "Environment variables that no tool may read; \"*\" for all")
        .with("deny-env")
        .replaces(),
    Key::new("deny", "net", HOSTS, "Destinations that no tool may reach; \"*\" for all").with("deny-net").replaces(),
    Key::new("deny", "secret", NAMES, "Secrets that no tool may use; \"*\" for all").with("deny-secret").replaces(),
    Key::new("deny", "exec", GLOBS, "Programs of the crib that no script may run; \"*\" for all")
        .with("deny-exec")
        .replaces(),
    Key::new("deny", "call", GLOBS, "Tools that no other tool may call; \"*\" for all").with("deny-call").replaces(),
    Key::new("deny", "delegate", Kind::Bool, "No tool may hand tasks to other agents")
        .with("deny-delegate")
        .replaces()
        .default("false"),
    Key::new("deny", "meta", Kind::Bool, "No script may register tools and hooks")
        .with("deny-meta")
        .replaces()
        .default("false"),
    Key::new("deny", "model", Kind::Bool, "No tool may ask the model of the run")
        .with("deny-model")
        .replaces()
        .default("false"),
    Key::new("deny", "hooks", FOLDERS, "Sources with hooks that handle only their own tools; \"*\" for all")
        .with("deny-hooks")
        .replaces(),
    Key::new("permissions", "allow", Kind::List(&NAMED_RULE), "Calls that are allowed without a question")
        .with("allow-tool"),
    Key::new("permissions", "ask", Kind::List(&RULE), "Calls that need approval").with("ask-tool"),
    Key::new(
        "permissions",
        "stage",
        Kind::List(&STAGED_RULE),
        "Calls that write into a stage, and are asked about at their end",
    )
    .with("stage-tool"),
    Key::new("permissions", "hold", Kind::List(&STAGED_RULE), "The same, with requests that are held back too"),
    Key::new("permissions", "deny", Kind::List(&RULE), "Calls that are denied").with("deny-tool"),
    Key::new(
        "approvals",
        "ask",
        Kind::Word(&["destructive", "writes", "never"]),
        "Calls that need approval without a rule, where somebody can answer",
    )
    .option("ask"),
    Key::new(
        "approvals",
        "flows",
        Kind::Word(&["ask", "never"]),
        "Calls that could send private data over the network after untrusted text was read",
    )
    .default("ask")
    .of_host(),
    Key::new("approvals", "file", DIR, "File of permanent approvals")
        .option("approvals")
        .replaces()
        .variables(&["TOOLCRIB_APPROVALS"])
        .of_host(),
    Key::new("approvals", "pending", DIR, "File of the calls that wait for approval in another terminal")
        .option("pending")
        .replaces()
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
        .replaces()
        .unless(&["timeout"]),
    Key::new("limits", "max_timeout", TIME, "Maximum time per call").option("max-timeout").replaces(),
    Key::new("limits", "max_memory", SIZE, "Maximum memory per call").option("max-memory").default("128MiB"),
    Key::new("limits", "max_output", SIZE, "Maximum output per call").option("max-output").default("1MiB").replaces(),
    Key::new("limits", "max_disk", SIZE, "Maximum bytes written to disk per call")
        .option("max-disk")
        .replaces()
        .default("256MiB"),
    Key::new("limits", "max_disk_entries", POSITIVE, "Maximum files, folders and links created per call")
        .option("max-disk-entries")
        .replaces()
        .default("10000"),
    Key::new("limits", "fuel", Kind::Count(0, u64::MAX), "Maximum fuel per call").option("fuel").replaces(),
    Key::new("limits", "concurrency", Kind::Count(1, 1000), "Maximum concurrent calls")
        .option("concurrency")
        .replaces(),
    Key::new("limits", "max_requests", NUMBER, "Maximum requests per call")
        .option("max-requests")
        .replaces()
        .default("64"),
    Key::new("limits", "max_received", SIZE, "Maximum response bytes per call")
        .option("max-received")
        .replaces()
        .default("16MiB"),
    Key::new("limits", "compile_timeout", TIME, "Maximum processor time to compile a tool")
        .option("compile-timeout")
        .replaces(),
    Key::new("limits", "compile_memory", SIZE, "Maximum memory to compile a tool").option("compile-memory").replaces(),
    Key::new(
        "scheduler",
        "sibling_failure",
        Kind::Word(&["ignore", "cancel_siblings", "cancel_dependent"]),
        "Effect of a failed call on the other calls of its step",
    )
    .default("ignore"),
    Key::new("scheduler", "step_time", TIME, "Time of all calls of one step together"),
    Key::new("scheduler", "step_output", SIZE, "Output of all calls of one step together"),
    Key::new("scheduler", "queue", POSITIVE, "Maximum number of calls that wait").default("256"),
    Key::new("scheduler", "defer_above", POSITIVE, "Number of tools above which a model gets `tool_search`"),
    Key::new("results", "max_inline", NUMBER, "Characters of a result that a model gets whole")
        .option("max-inline")
        .replaces(),
    Key::new("masks", ANY, MASK, "Regular expressions for tools with `redaction_policy_refs`"),
    server("address", LISTEN, "Address of `mcp --http`").option("address"),
    server("hosts", Kind::List(&SERVED_HOST), "Hosts that requests to the server may name, besides the loopback names")
        .option("host"),
    server("origins", Kind::List(&PAGE_ORIGIN), "Origins of web pages that may send requests to the server")
        .option("origin"),
    server("tls_cert", DIR, "PEM file with the certificate of the server, read again when it changes")
        .option("tls-cert"),
    server("tls_key", DIR, "PEM file with the private key of the certificate").option("tls-key"),
    server("tokens", DIR, "File that declares tokens, read again when it changes").option("tokens"),
    server(
        "sign_in",
        DIR,
        "File with the issuers at which people sign in and their rights, read again when it changes",
    )
    .option("sign-in"),
    server("public_url", SECURE_URL, "Address of the server for its clients").option("public-url"),
    server("stateless", Kind::Bool, "Keep no conversation between requests")
        .flags(&[("true", "stateless")])
        .default("false"),
    server("state_dir", DIR, "Directory of the states that several servers share").option("state-dir"),
    server("store", STORE, "PostgreSQL database of the state that many servers share"),
    server("store_name", NAME, "Name of the servers that share state with one another").default("default"),
    server("store_password_env", NAME, "Environment variable that holds the password of the database"),
    server("store_password_file", DIR, "File that holds the password of the database"),
    server("max_connections", Kind::Count(1, 65_536), "Maximum connections at once").option("max-connections"),
    server("max_running", Kind::Count(1, 65_536), "Maximum requests at once").option("max-running"),
    server("max_sessions", Kind::Count(1, 65_536), "Maximum conversations of the earlier revision")
        .option("max-sessions"),
    server("max_body", SIZE, "Maximum size of a request").option("max-body"),
    server("max_rate", Kind::Count(1, 1_000_000), "Maximum requests of a token in one second").option("max-rate"),
    server("arrival_timeout", TIME, "Time limit for the parts of a request").option("arrival-timeout"),
    server("drain_timeout", TIME, "Time for running requests to finish when the server shuts down")
        .option("drain-timeout"),
    server("drain_delay", DELAY, "Time that `/readyz` fails before the server stops accepting requests")
        .option("drain-delay"),
    server("task_after", DELAY, "Time after which a call becomes a task, for clients that know tasks")
        .option("task-after")
        .default("10s"),
    server("quota_window", WINDOW, "Length of the window that the quotas are for").option("quota-window"),
    server("quota_calls", POSITIVE, "Maximum calls of a token in a window").option("quota-calls"),
    server("quota_cpu", TIME, "Maximum processor time of the calls of a token in a window").option("quota-cpu"),
    server(
        "quota_bytes",
        SIZE,
        "Maximum bytes that the calls of a token take, print, write, send and receive in a window",
    )
    .option("quota-bytes"),
    server("quota_running", Kind::Count(1, 65_536), "Maximum calls of a token at once").option("quota-running"),
    server("quota_tools", TOOL_QUOTAS, "Maximum calls of a token to these tools in a window").option("quota-tools"),
    server("metrics_by_token", Kind::Bool, "Count the calls of each token in `/metrics`")
        .flags(&[("true", "metrics-by-token")])
        .default("false"),
    Key::new("network", "nameservers", Kind::List(&ADDRESS), "Name servers to use instead of the system's")
        .option("dns")
        .replaces(),
    Key::new("network", "ca", PATHS, "PEM files with root certificates to trust in addition to the system's")
        .option("net-ca")
        .replaces()
        .of_host(),
    Key::new("registries", "timeout", TIME, "Maximum time without data from a registry")
        .option("registry-timeout")
        .replaces(),
    Key::new("run", "tags", Kind::List(&TAG), "Tags of the run").with("tag").replaces(),
    Key::new("run", "stage", Kind::Bool, "Hold back what tools write, as with `--stage`")
        .default("false")
        .of(&["run", "chat", "call", "mcp"]),
    Key::new(
        "run",
        "repeats",
        Kind::Count(0, 1000),
        "Number of identical calls after which the model is warned; the run stops after twice as many; 0 for no limit",
    )
    .default("5")
    .of(&["run", "chat"]),
    Key::new(
        "labels",
        ANY,
        PLACES,
        "Places that are `trusted`, `untrusted`, `public`, `private`, or confidential by this name",
    )
    .check_name(|name| Meaning::parse(name).map(drop).map_err(|error| error.to_string()))
    .merged()
    .of_host(),
    Key::new("routes", ANY, TOOL, "Tool that answers to a name, before claims and names"),
    Key::new("config", ANY, Kind::Object, "Settings of one tool"),
    Key::new("records", "audit_dir", DIR, "Directory of the audit log")
        .option("audit-dir")
        .replaces()
        .variables(&["TOOLCRIB_AUDIT_DIR"])
        .of_host(),
    Key::new("records", "results_dir", DIR, "Directory of results that are too large for a model")
        .option("results-dir")
        .replaces()
        .variables(&["TOOLCRIB_RESULTS_DIR"])
        .of_host(),
    Key::new("records", "keyvalue_dir", DIR, "Directory of values that tools store")
        .option("keyvalue-dir")
        .replaces()
        .variables(&["TOOLCRIB_KEYVALUE_DIR"])
        .of_host(),
    Key::new("records", "runs_dir", DIR, "Directory of kept runs")
        .option("runs-dir")
        .variables(&["TOOLCRIB_RUNS_DIR"])
        .of_host()
        .replaces(),
    Key::new("records", "media_dir", DIR, "Directory of media that tools show").option("media").of_host().replaces(),
    Key::new("records", "otlp", URL, "OpenTelemetry collector that gets traces")
        .option("otlp")
        .sensitive()
        .variables(&["OTEL_EXPORTER_OTLP_ENDPOINT"])
        .of_host()
        .replaces(),
    Key::new(
        "records",
        "redact",
        NAME,
        "Masks of records: regular expressions or plain texts, separated by `;` or `,`",
    )
    .option("redact")
    .sensitive()
    .variables(&["TOOLCRIB_REDACT"])
    .of_host()
    .replaces(),
    Key::new("records", "log_arguments", Kind::Bool, "Log the arguments of calls, not only their size and digest")
        .flags(&[("false", "no-log-arguments")])
        .default("true")
        .replaces()
        .variables(&["TOOLCRIB_NO_LOG_ARGUMENTS"]),
    Key::new("history", "bytes", SIZE, "Maximum size of all that is kept to take back changes")
        .default("1GiB")
        .also_of(&["commit", "undo"])
        .of_host(),
    Key::new("history", "file", SIZE, "Maximum size of one file that is kept as it was before a change")
        .default("64MiB")
        .also_of(&["commit", "undo"])
        .of_host(),
    Key::new("history", "days", Kind::Count(0, 3650), "Days for which changes can be taken back; none with 0")
        .default("14")
        .also_of(&["commit", "undo"])
        .of_host(),
    Key::new("cache", "dir", DIR, "Directory of compiled tools and pulled bundles")
        .option("cache-dir")
        .replaces()
        .variables(&["TOOLCRIB_CACHE_DIR"])
        .of_host(),
    Key::new("cache", "max", SIZE, "Maximum size of the cache")
        .option("max-cache")
        .replaces()
        .variables(&["TOOLCRIB_MAX_CACHE"])
        .of_host(),
    Key::new("secrets", "store", Kind::Word(&["auto", "keyring", "file"]), "Store of secrets")
        .option("secrets-store")
        .replaces()
        .variables(&["TOOLCRIB_SECRETS_STORE"])
        .of_host(),
    Key::new("secrets", "file", DIR, "Encrypted file of secrets")
        .option("secrets-file")
        .replaces()
        .variables(&["TOOLCRIB_SECRETS_FILE"])
        .of_host(),
    Key::new("display", "color", Kind::Word(&["auto", "always", "never"]), "Use of colors").option("color"),
    Key::new("display", "plain", Kind::Bool, "Plain lines for screen readers: no progress bars and no symbols")
        .option("plain")
        .default("false")
        .variables(&["TOOLCRIB_PLAIN"]),
    Key::new("display", "stream", Kind::Bool, "Print the text of a model as it arrives")
        .flags(&[("true", "stream"), ("false", "no-stream")])
        .default("true on a terminal")
        .of(&["run", "chat"])
        .replaces(),
    Key::new("display", "debug", Kind::Bool, "Print the requests to a model and its responses, with the key masked")
        .flags(&[("true", "debug")])
        .default("false")
        .of(&["run", "chat"])
        .replaces(),
    Key::new("display", "detail", Kind::Word(&["quiet", "trace", "verbose"]), "Trace of the calls of a run")
        .flags(&[("quiet", "quiet"), ("verbose", "verbose")])
        .default("trace"),
];
