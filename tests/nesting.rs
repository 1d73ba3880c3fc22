//! Calls of tests that are made from programs. In a process with the variable [`SWITCH`], each call of a tool that a test makes,
//! by the command line or by the library, becomes a call of `run_code` whose program makes this call. The test sees what
//! it would have seen of a direct call: the answer that the program got, and the receipt of the call in the program.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex};

use futures::future::{BoxFuture, FutureExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolcrib::call::Payload;
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::{Audit, Builder, Outcome, Runtime, Session, ToolCall, ToolResult};

use super::{Ran, target};

/// Variable of a process whose tests make their calls from programs: a file with the test of each such call, a name a line.
pub(crate) const SWITCH: &str = "TOOLCRIB_TESTS_NESTED";

/// Tool that runs programs.
const RUN_CODE: &str = "run_code";

/// Start of a program that makes the call of a test; the arguments of the direct command follow.
const MARK: &str = "# instead of ";

/// Maximum characters of a program.
const MAX_PROGRAM: usize = 100_000;

/// Keys of a record that no receipt has.
const OF_RECORDS: [&str; 13] =
    ["ts", "run", "session", "door", "caller", "source", "argv", "cwd", "arguments", "seq", "chain", "trace", "parent"];

static MADE: LazyLock<Option<std::ffi::OsString>> = LazyLock::new(|| std::env::var_os(SWITCH));

/// Returns `true` if the tests of this process make their calls from programs.
pub(crate) fn is_on() -> bool {
    MADE.is_some()
}

/// Notes that the test of this thread made a call from a program.
fn note() {
    let file = MADE.as_deref().expect("the switch is on");
    let thread = std::thread::current();
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("the file of the switch");
    // One write is whole, whatever other threads write.
    file.write_all(format!("{}\n", thread.name().unwrap_or_default()).as_bytes()).expect("a line");
}

/// Returns the program that makes a call, or `None` if no program can: the arguments are no object, or the program would be too
/// long.
fn program(name: &str, arguments: &str, instead_of: &[&str]) -> Option<String> {
    let arguments = if arguments.is_empty() { "{}" } else { arguments };
    let object = serde_json::from_str::<Value>(arguments).ok().filter(Value::is_object);
    let identifier = name.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "_");
    if object.is_none() || name.is_empty() || name == RUN_CODE {
        return None;
    }
    // A text of JSON is one of the language.
    let (instead_of, text) = (json!(instead_of), Value::from(arguments));
    let code = format!(
        "{MARK}{instead_of}\nimport json\narguments = json.loads({text})\ntry:\n    answer = {{'result': tools.{identifier}(**arguments)}}\n\
         except ToolError as error:\n    answer = {{'error': str(error), 'kind': type(error).__name__}}\nanswer"
    );
    (code.chars().count() <= MAX_PROGRAM).then_some(code)
}

/// Answer of a call to its program.
#[derive(Deserialize)]
struct Answer {
    result: Option<Box<RawValue>>,
    error: Option<String>,
    kind: Option<String>,
}

/// Arguments of a command that makes a call from a program instead, if the switch is on and the command makes a call.
pub(crate) fn command(arguments: &[&str]) -> Option<Vec<String>> {
    let ["call", name, rest @ ..] = arguments else { return None };
    let (given, flags) = match rest {
        [given, flags @ ..] if !given.starts_with("--") => (*given, flags),
        flags => ("{}", flags),
    };
    let is_text = flags.iter().any(|flag| flag.starts_with("--text"));
    if !is_on() || is_text || name.starts_with("--") {
        return None;
    }
    let code = program(name, given, arguments)?;
    note();
    // A rule about all tools is not about the program.
    let fixed = ["call", RUN_CODE, &json!({ "code": code }).to_string(), "--allow-tool=run_code"].map(str::to_owned);
    Some(fixed.into_iter().chain(flags.iter().map(|flag| (*flag).to_owned())).collect())
}

/// A direct command, to be made as a call of a program.
pub(crate) struct Direct {
    /// Its command line.
    line: String,
    is_json: bool,
    audit: PathBuf,
}

impl Direct {
    /// Returns the direct command instead of which a command makes a call from a program.
    pub(crate) fn of(command: &Command) -> Option<Self> {
        let arguments: Vec<&str> = command.get_args().filter_map(|argument| argument.to_str()).collect();
        let ["call", RUN_CODE, code, ..] = &arguments[..] else { return None };
        let code: Value = serde_json::from_str(code).ok().filter(|_| is_on())?;
        let direct: Vec<String> =
            serde_json::from_str(code["code"].as_str()?.strip_prefix(MARK)?.lines().next()?).ok()?;
        let mut plain = Command::new(command.get_program());
        plain.args(&direct).envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let audit = command.get_envs().find(|(name, _)| *name == "TOOLCRIB_AUDIT_DIR")?.1?;
        let is_json = direct.iter().any(|argument| argument == "--json");
        Some(Self { line: super::line(&plain), is_json, audit: audit.into() })
    }

    /// Returns what the direct command would have printed, and its exit code.
    pub(crate) fn translated(&self, ran: Ran) -> Ran {
        let line = self.line.clone();
        let (parts, printed) = match ran.stdout.trim_end().rsplit_once('\n') {
            Some((parts, printed)) => (format!("{parts}\n"), printed),
            None => (String::new(), ran.stdout.trim_end()),
        };
        match answered(printed, self.is_json, &self.audit) {
            Some((code, printed)) => Ran { line, code: Some(code), stdout: format!("{parts}{printed}\n"), ..ran },
            None => Ran { line, ..ran },
        }
    }
}

/// Exit code and line of a direct call, from the line of the call of its program. `None` if the program did not end with an
/// answer.
fn answered(printed: &str, is_json: bool, audit: &Path) -> Option<(i32, String)> {
    #[derive(Deserialize)]
    struct Completed {
        value: Box<RawValue>,
    }
    #[derive(Deserialize)]
    struct Line {
        result: Completed,
        receipt: Map<String, Value>,
    }
    let (completed, invocation) = match is_json {
        false => (serde_json::from_str::<Completed>(printed).ok()?, None),
        true => {
            let line: Line = serde_json::from_str(printed).ok()?;
            (line.result, Some(line.receipt["invocation"].clone()))
        }
    };
    let Ok(answer) = serde_json::from_str::<Answer>(completed.value.get()) else {
        panic!("the value of the program is shown as text: {printed}");
    };
    let records: Vec<Value> = records(audit);
    let invocation = invocation.or_else(|| {
        let last = records.iter().rfind(|record| record["tool"] == RUN_CODE);
        last.map(|record| record["invocation"].clone())
    });
    let nested = records
        .into_iter()
        .find(|record| record["parent"].is_string() && Some(&record["parent"]) == invocation.as_ref());
    let (content, code) = match (&answer.result, &answer.error) {
        (Some(result), None) => (result.get().to_owned(), 0),
        (None, Some(error)) => (json!(error).to_string(), 1),
        _ => panic!("no answer: {printed}"),
    };
    let Some(Value::Object(mut nested)) = nested else { panic!("no record of the call in the program: {printed}") };
    check(nested["outcome"].as_str().unwrap_or_default(), answer.kind.as_deref());
    if !is_json {
        return Some((code, if code == 0 { content } else { format!("{{\"error\":{content}}}") }));
    }
    nested.retain(|key, _| !OF_RECORDS.contains(&key.as_str()));
    let nested = of_direct(Value::Object(nested));
    Some((code, format!("{{\"{}\":{content},\"receipt\":{nested}}}", ["result", "error"][usize::from(code == 1)])))
}

/// Checks the exception of a call in a program.
fn check(outcome: &str, kind: Option<&str>) {
    let raised = match outcome {
        "ok" => None,
        "denied" => Some("PermissionError"),
        "deadline" => Some("TimeoutError"),
        // What a program catches as a `ToolError`.
        _ => Some("OSError"),
    };
    assert_eq!(kind, raised, "the exception for the outcome `{outcome}`");
}

/// Records of the logs in a folder.
fn records(folder: &Path) -> Vec<Value> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "log")).collect();
    files.sort();
    let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Returns `true` for the tool that makes a call of a test from a program: a hook of a test about all tools is not about it.
pub(crate) fn is_of_program(tool: &str) -> bool {
    is_on() && tool == RUN_CODE
}

/// Returns the record of a direct call: that of a call in a program without its parent. `None` for the record of the
/// program.
pub(crate) fn without_program(record: Value) -> Option<Value> {
    (!is_on() || record["tool"] != RUN_CODE).then(|| if is_on() { of_direct(record) } else { record })
}

fn of_direct(mut record: Value) -> Value {
    if let Some(fields) = record.as_object_mut() {
        fields.remove("parent");
        if let Some(id) = fields["callId"].as_str().and_then(|id| id.strip_suffix("/1")) {
            fields["callId"] = json!(id);
        }
    }
    record
}

/// Creates a builder whose runtime can make the calls of a test from programs, if the switch is on. Programs are compiled once for all
/// tests, so that no call spends its time on it.
pub(crate) fn builder(audit: Audit) -> Builder {
    let builder = Runtime::builder(audit).compile_cache(target().join("test-cache"));
    if !is_on() {
        return builder;
    }
    builder.code_interpreter(
        (toolcrib_embedded::LANGUAGES[0].name, ""),
        toolcrib_embedded::LANGUAGES[0].digest,
        toolcrib_embedded::LANGUAGES[0].read,
    )
}

/// A runtime or session that makes calls.
pub(crate) trait Calls {
    fn call_directly(&self, call: ToolCall) -> BoxFuture<'static, ToolResult>;
    fn its_session(&self) -> Session;
}

impl Calls for Runtime {
    fn call_directly(&self, call: ToolCall) -> BoxFuture<'static, ToolResult> {
        let runtime = self.clone();
        async move { runtime.call(call).await }.boxed()
    }

    fn its_session(&self) -> Session {
        self.open_session()
    }
}

impl Calls for Session {
    fn call_directly(&self, call: ToolCall) -> BoxFuture<'static, ToolResult> {
        self.call(call).boxed()
    }

    fn its_session(&self) -> Session {
        self.clone()
    }
}

/// Results of calls in programs, by the invocation of the program.
#[derive(Default)]
struct Ended(Mutex<HashMap<String, ToolResult>>);

impl Observer for Ended {
    fn observe(&self, event: &Event<'_>) {
        if let EventKind::Ended(result) = event.kind
            && let Some(program) = &result.receipt.parent
        {
            self.0.lock().expect("no panic").insert(program.clone(), result.clone());
        }
    }
}

/// The first watcher of a conversation is kept, so that all have the same.
static ENDED: LazyLock<Arc<Ended>> = LazyLock::new(Arc::default);

/// Calls a tool: from a program, if the switch is on.
pub(crate) async fn call(caller: &impl Calls, call: ToolCall) -> ToolResult {
    let code = program(&call.name, &call.arguments, &[]).filter(|_| is_on() && call.payload == Payload::Object);
    let Some(code) = code else { return caller.call_directly(call).await };
    note();
    let session = caller.its_session();
    session.watched_by(ENDED.clone());
    let mut from_program = call.clone();
    from_program.name = RUN_CODE.to_owned();
    from_program.arguments = json!({ "code": code }).to_string();
    let outer = session.call(from_program).await;
    let ended = ENDED.0.lock().expect("no panic").remove(&outer.receipt.invocation);
    let Some(mut nested) = ended else { panic!("no call in the program: {outer:?}") };
    let Ok(line) = &outer.outcome else { panic!("the program failed: {outer:?}") };
    let completed: Value = serde_json::from_str(line).expect("JSON");
    let answer = &completed["value"];
    check(nested.receipt.outcome.as_str(), answer["kind"].as_str());
    match &nested.outcome {
        Ok(line) => assert_eq!(answer["result"], serde_json::from_str::<Value>(line).expect("JSON"), "{completed}"),
        Err(error) => assert_eq!(answer["error"], error.message.as_str(), "{completed}"),
    }
    assert_ne!(nested.receipt.outcome, Outcome::Cancelled, "{nested:?}");
    (nested.receipt.parent, nested.call_id) = (None, call.id.clone());
    nested.receipt.call_id = call.id;
    nested
}
