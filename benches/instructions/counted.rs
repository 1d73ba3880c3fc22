//! The work that is counted: calls of a tool that returns its arguments, with a schema, rules and the audit log.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use toolcrib::call::Behavior;
use toolcrib::policy::{Policy, Rule};
use toolcrib::{Audit, Runtime, ToolCall};

use super::built::{self, guest};

/// First argument of the process that makes the calls; their number and the folder follow.
pub(crate) const FLAG: &str = "--counted-calls";
/// Argument behind the folder for a runtime of the tool alone, as the program has it for one call. Its code differs
/// from the code of a runtime of many calls where the system has no addresses for these.
const ALONE: &str = "alone";
/// Name of the tool.
const TOOL: &str = "echo";

/// A folder with a manifest, a home, a cache and a log.
pub(crate) struct Workload {
    folder: PathBuf,
}

impl Workload {
    /// Creates a folder with a manifest of this many tools.
    pub(crate) fn in_folder(folder: &Path, tools: usize) -> Self {
        let workload = Self { folder: folder.to_path_buf() };
        let programs = folder.join("tools/bin");
        for folder in [&programs, &workload.home()] {
            fs::create_dir_all(folder).expect("a folder");
        }
        let echo = guest("echo");
        let names: Vec<String> =
            (0..tools).map(|n| if n == 0 { TOOL.to_owned() } else { format!("{TOOL}_{n}") }).collect();
        let text = json!({"type": "string", "minLength": 1});
        let schema = json!({
            "type": "object",
            "properties": {
                "path": text, "lines": {"type": "array", "items": text}, "limit": {"type": "integer"},
                "exact": {"type": "boolean"},
            },
            "required": ["path", "lines"],
            "additionalProperties": false,
        });
        let entries = names.iter().map(|name| {
            fs::copy(&echo, programs.join(format!("{name}.wasm"))).expect("a program");
            json!({
                "name": name, "description": "Return the arguments.", "command": [format!("./tools/bin/{name}")],
                "schema": schema, "timeoutSec": 1200,
            })
        });
        let manifest = json!({"tools": entries.collect::<Vec<_>>()});
        fs::write(workload.manifest(), manifest.to_string()).expect("a manifest");
        workload
    }

    fn manifest(&self) -> PathBuf {
        self.folder.join("tools.json")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    /// Arguments of the process that makes this many calls.
    pub(crate) fn arguments(&self, calls: u64) -> Vec<String> {
        vec![FLAG.to_owned(), calls.to_string(), self.folder.display().to_string()]
    }

    /// Arguments of the process that makes one call with the code of the program, which it compiles itself: the program has a
    /// compiler process, which is not counted and sees the features of the real processor.
    pub(crate) fn arguments_alone(&self) -> Vec<String> {
        [self.arguments(1), vec![ALONE.to_owned()]].concat()
    }

    /// Arguments of the program for one call.
    pub(crate) fn command(&self) -> Vec<String> {
        let option = |name: &str, path: PathBuf| format!("--{name}={}", path.display());
        vec![
            "call".to_owned(),
            TOOL.to_owned(),
            built::arguments(),
            option("tools", self.manifest()),
            option("cache-dir", self.folder.join("cache")),
            option("audit-dir", self.folder.join("audit")),
        ]
    }
}

/// Makes the calls, on one thread so that every run does the same.
pub(crate) fn run(arguments: &[String]) {
    let [calls, folder, alone @ ..] = arguments else { panic!("a number of calls and a folder") };
    let workload = Workload { folder: folder.into() };
    let is_alone = alone.iter().any(|argument| argument == ALONE);
    let rule = |behavior, pattern: &str| Rule::new(behavior, pattern.parse().expect("a pattern"), "benchmark");
    let policy = Policy::default()
        .rule(rule(Behavior::Deny, "echo(path=secrets/*)"))
        .rule(rule(Behavior::Allow, "echo(path=notes/*)"));
    let runtime = Runtime::builder(Audit::folder(workload.folder.join("audit")))
        .source(workload.manifest())
        .compile_cache(workload.folder.join("cache"));
    let runtime = if is_alone { runtime.only(TOOL) } else { runtime.policy(policy) };
    let runtime = runtime.build().expect("a runtime");
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a thread");
    let arguments = built::arguments();
    tokio.block_on(async {
        for _ in 0..calls.parse::<u64>().expect("a number") {
            let result = runtime.call(ToolCall::new("call", TOOL, arguments.as_str())).await;
            assert!(!result.is_error(), "{}", result.line());
        }
    });
}
