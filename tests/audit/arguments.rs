//! Arguments of calls in the audit log, and the origin of a call: masked, bounded, and left out on request.

use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt, ready};
use serde_json::{Value, json};
use toolcrib::call::Behavior;
use toolcrib::hook::{Hook, HookPhase, Modification, ProposedCall, Verdict};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Policy, Rule};
use toolcrib::source::digest;
use toolcrib::{Audit, HandlerError, Outcome, Tool, ToolCall};

use crate::crib::{Crib, guest, nesting};
use crate::screen::Page;

use super::block_on;

/// Maximum bytes of a record in these tests: the arguments with the other fields.
const MAX_RECORD: usize = 8 << 10;

/// Creates a crib with a tool `echo` that takes a sensitive `token`, and a tool `open` without a schema.
fn crib() -> Crib {
    let crib = Crib::new();
    let mut echo = crib.entry("echo");
    let mut open = echo.clone();
    open["name"] = json!("open");
    echo["schema"] = json!({"properties": {"token": {"type": "string", "format": "password"}}});
    crib.manifest(&json!({ "tools": [echo, open] }));
    crib
}

/// The `arguments` of the last record.
fn last(crib: &Crib) -> Value {
    crib.records().last().expect("a record")["arguments"].clone()
}

fn audit(crib: &Crib) -> Audit {
    Audit::folder(crib.path("audit"))
}

fn hash(text: &str) -> Value {
    json!(digest(text.as_bytes()))
}

#[test]
fn a_record_states_the_arguments_and_the_origin_of_its_call() {
    let crib = crib();
    let line = crib.call("open", &json!({"path": "a b", "n": [1, 2]}), &[]);
    crib.run(&["call", "open", "{\n  \"n\": 1e2\n}"]);
    let records = crib.records();
    assert_eq!(records[0]["arguments"], json!({"json": {"path": "a b", "n": [1, 2]}}));
    assert!(fs::read_to_string(&crib.logs()[0]).unwrap().contains(r#""arguments":{"json":{"n":1e2}},"seq":2,"#));
    for record in &records {
        assert_eq!(record["door"], "call");
        assert!(record["run"].as_str().unwrap().starts_with("run_"), "{record}");
        assert!(record["session"].as_str().unwrap().starts_with("ses_"), "{record}");
        assert!(record["source"].as_str().unwrap().starts_with("sha256:"), "{record}");
    }
    assert_ne!(records[0]["run"], records[1]["run"], "each run of the program has its own");
    assert_eq!(records[0]["source"], records[1]["source"]);
    for field in ["arguments", "run", "session", "door", "source"] {
        assert!(line["receipt"].get(field).is_none(), "a receipt has no `{field}`: {line}");
    }
}

#[test]
fn arguments_are_masked_by_schema_and_redactions_and_withheld_where_nobody_knows() {
    let crib = crib();
    let call = |name: &str, arguments: &str| {
        let mut command = crib.toolcrib(&["call", name, arguments, "--set", "records.redact=hush-[0-9]+"]);
        command.env("OAI_API_KEY", "sk-very\"secret").output().unwrap();
        last(&crib)
    };
    let token = r#"{"token":"hunter22","log":"hunter22 hush-12","hush-1":"sk-very\"secret"}"#;
    let masked = json!({"token": "***", "log": "*** ***REDACTED***", "***REDACTED***": "***REDACTED***"});
    assert_eq!(call("echo", token), json!({ "json": masked }));
    assert_eq!(call("open", "hush-7 is no JSON"), json!({"text": "***REDACTED*** is no JSON"}));
    let wrong = r#"{"token":1,"tokn":"hunter22"}"#;
    assert_eq!(call("echo", wrong), json!({"bytes": wrong.len()}), "wrong arguments may misspell a sensitive one");
    let without = r#"{"token":"***REDACTED***","pin":1}"#;
    let withheld = call("absent", r#"{"token":"hush-12","pin":1}"#);
    assert_eq!(withheld, json!({"bytes": without.len(), "digest": hash(without)}), "the digest is that of the mask");
    let log = fs::read_to_string(&crib.logs()[0]).unwrap();
    for secret in ["hunter22", "hush-1", "sk-very"] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

#[test]
fn without_arguments_a_record_has_their_size_and_digest() {
    let crib = crib();
    let plain = r#"{"a":"private"}"#;
    let withheld = json!({"bytes": plain.len(), "digest": hash(plain)});
    crib.run(&["call", "open", plain, "--set=records.log_arguments=false"]);
    assert_eq!(last(&crib), withheld);
    for (value, expected) in
        [("1", withheld.clone()), ("true", withheld.clone()), ("0", json!({"json": {"a": "private"}}))]
    {
        crib.toolcrib(&["call", "open", plain]).env("TOOLCRIB_NO_LOG_ARGUMENTS", value).output().unwrap();
        assert_eq!(last(&crib), expected, "{value}");
    }
    let runtime = nesting::builder(audit(&crib).without_arguments()).source(guest("empty")).build().unwrap();
    block_on(nesting::call(&runtime, ToolCall::new("", "empty", plain)));
    assert_eq!(last(&crib), withheld);
}

#[test]
fn hostile_arguments_give_one_bounded_line_each() {
    let crib = crib();
    let controls: String = (0..1_u32 << 20).filter_map(|n| char::from_u32(n % 0xa0)).collect();
    let deep = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    let long = json!({ "a": "x".repeat(1 << 20) }).to_string();
    let all = [
        long.clone(),
        controls.clone(),
        json!({ "a": controls }).to_string(),
        deep(120),
        deep(100_000),
        "{\"a\": \"\u{1b}]0;x\u{7}\u{202e}\"".to_owned(),
        "x".repeat((4 << 20) + 1),
    ];
    for text in &all {
        fs::write(crib.path("arguments"), text).unwrap();
        for name in ["open", "echo", "no\n{\"such\":\u{1b}[2J tool"] {
            crib.run(&["call", name, "@arguments"]);
        }
    }
    let log = fs::read_to_string(&crib.logs()[0]).unwrap();
    assert_eq!(log.lines().count(), 3 * all.len());
    for line in log.lines() {
        assert!(line.len() < MAX_RECORD, "{} bytes: {}", line.len(), &line[..1000]);
        let record: Value = serde_json::from_str(line).unwrap();
        assert!(record["arguments"]["bytes"].is_u64() || record["arguments"]["text"].is_string(), "{line}");
    }
    let first = &crib.records()[0]["arguments"];
    assert_eq!((&first["bytes"], &first["digest"]), (&json!(long.len()), &hash(&long)));
    assert!(long.starts_with(first["cut"].as_str().unwrap()), "{first}");
    let shown = crib.run(&["audit", "show"]).stdout;
    assert_eq!(shown.lines().count(), 1 + 3 * all.len());
    assert!(!shown.contains(|c: char| (c.is_control() && c != '\n') || c == '\u{202e}'), "{shown}");
    assert_eq!(crib.run(&["audit", "verify"]).code, Some(0));
}

#[test]
fn masks_that_take_too_long_leave_the_size_alone() {
    let crib = Crib::with_guests(&["empty"]);
    // Each of many matches scans the rest of the text.
    let audit = audit(&crib).redact(["[ab]*c|a".to_owned()]);
    let runtime = nesting::builder(audit).source(crib.path("tools.json")).build().unwrap();
    let arguments = json!({ "a": "ab".repeat(1 << 20) }).to_string();
    let started = Instant::now();
    let result = block_on(nesting::call(&runtime, ToolCall::new("", "empty", arguments.as_str())));
    assert_eq!(result.receipt.outcome, Outcome::Ok);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(last(&crib), json!({"bytes": arguments.len()}));
}

#[test]
fn a_dropped_call_states_its_arguments() {
    let crib = Crib::with_guests(&["sleep"]);
    let runtime = nesting::builder(audit(&crib)).source(crib.path("tools.json")).build().unwrap();
    let dropped = |arguments: &str| {
        let call = nesting::call(&runtime, ToolCall::new("", "sleep", arguments));
        block_on(async { tokio::time::timeout(Duration::from_millis(500), call).await }).unwrap_err();
        last(&crib)
    };
    assert_eq!(dropped(r#"{"ms":60000}"#), json!({"json": {"ms": 60000}}));
    let long = json!({"ms": 60000, "a": "x".repeat(100_000)}).to_string();
    assert_eq!(dropped(&long), json!({"bytes": long.len()}), "nobody waits for a long text to be masked");
}

#[test]
fn a_call_that_is_dropped_before_it_is_polled_leaves_its_record() {
    let crib = Crib::with_guests(&["echo"]);
    let runtime = nesting::builder(audit(&crib)).source(crib.path("tools.json")).build().unwrap();
    let call = |id: &str| ToolCall::new(id, "echo", "{}");
    drop(runtime.call(call("alone")));
    drop(runtime.session().call(call("in a conversation")));
    block_on(async { tokio::spawn(runtime.session().call(call("in a task"))).abort() });
    let records = crib.records();
    let ends: Vec<_> = records.iter().map(|record| (&record["callId"], &record["outcome"])).collect();
    let cancelled = json!("cancelled");
    let ids = ["alone", "in a conversation", "in a task"].map(|id| json!(id));
    assert_eq!(ends, ids.iter().map(|id| (id, &cancelled)).collect::<Vec<_>>());
}

#[test]
fn a_call_that_never_started_states_no_sensitive_argument() {
    let crib = crib();
    let runtime = nesting::builder(audit(&crib)).source(crib.path("tools.json")).build().unwrap();
    let arguments = r#"{"token":"hunter22"}"#;
    let dropped = |name: &str| {
        // No task of the step runs before it is dropped.
        block_on(async { drop(runtime.session().step(vec![ToolCall::new("", name, arguments)])) });
        crib.records().pop().expect("a record")
    };
    let record = dropped("echo");
    assert_eq!((&record["outcome"], &record["arguments"]), (&json!("cancelled"), &json!({"bytes": arguments.len()})));
    assert_eq!(dropped("open")["arguments"], json!({"json": {"token": "hunter22"}}));
    assert_eq!(dropped("absent")["arguments"], json!({"bytes": arguments.len(), "digest": hash(arguments)}));
}

/// Hook that replaces the arguments of every call.
struct Replaces(Value);

impl Hook for Replaces {
    fn name(&self) -> &str {
        "replaces"
    }

    fn applies(&self, tool: &Tool, _: HookPhase) -> bool {
        !nesting::is_of_program(&tool.name)
    }

    fn before<'a>(&'a self, _: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        ready(Ok(Verdict::Modify(Modification::new(self.0.clone())))).boxed()
    }
}

#[test]
fn arguments_that_a_hook_changed_are_those_that_the_tool_got() {
    let crib = crib();
    let hook = Arc::new(Replaces(json!({"token": "changed-1", "log": "hunter22 changed-1"})));
    let runtime = nesting::builder(audit(&crib)).source(crib.path("tools.json")).hook(hook).build().unwrap();
    block_on(nesting::call(&runtime, ToolCall::new("", "echo", r#"{"token":"hunter22"}"#)));
    let record = &crib.records()[0];
    assert_eq!(record["arguments"], json!({"json": {"token": "***", "log": "*** ***"}}));
    assert_eq!(record["mutations"][0]["fields"], json!(["token", "log"]));
}

#[test]
fn a_route_and_each_session_are_stated() {
    let crib = crib();
    let builder = nesting::builder(audit(&crib)).source(crib.path("tools.json")).route("shown", "open");
    let runtime = builder.run_id("job-7").build().unwrap();
    let sessions = [runtime.session(), runtime.session(), runtime.open_session()];
    for session in &sessions {
        block_on(nesting::call(session, ToolCall::new("", "shown", r#"{"a":1}"#)));
    }
    block_on(nesting::call(&runtime, ToolCall::new("", "shown", r#"{"a":1}"#)));
    let records = crib.records();
    for (record, session) in records.iter().zip(sessions.iter().chain([&sessions[2]])) {
        assert_eq!(record["session"], session.id());
        assert_eq!((&record["tool"], &record["arguments"]), (&json!("open"), &json!({"json": {"a": 1}})));
        assert_eq!((&record["run"], &record["door"]), (&json!("job-7"), &json!("library")));
    }
    assert_eq!(records.len(), 4);
    assert!(sessions[0].id() != sessions[1].id() && sessions[1].id() != sessions[2].id());
}

/// Approver that notes the definition of each request.
#[derive(Default)]
struct Notes(Mutex<Option<String>>);

impl Approver for Notes {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        *self.0.lock().unwrap() = request.approval.and_then(|approval| approval.definition.clone());
        ready(ApprovalAnswer::Once).boxed()
    }
}

#[test]
fn the_source_of_a_record_is_the_definition_that_approvals_name() {
    let crib = crib();
    let notes = Arc::new(Notes::default());
    let policy = Policy::default().rule(Rule::new(Behavior::Ask, "*".parse().unwrap(), "test"));
    let builder = nesting::builder(audit(&crib)).source(crib.path("tools.json"));
    let runtime = builder.policy(policy).approver(notes.clone()).build().unwrap();
    block_on(nesting::call(&runtime, ToolCall::new("", "open", "{}")));
    let definition = notes.0.lock().unwrap().clone();
    assert!(definition.is_some());
    assert_eq!(crib.records()[0]["source"], json!(definition));
    block_on(nesting::call(&runtime, ToolCall::new("", "absent", "{}")));
    assert!(crib.records()[1].get("source").is_none(), "no tool, no definition");
}

#[test]
fn a_log_of_an_earlier_version_verifies_is_shown_and_goes_on() {
    let page = Page::new();
    let crib = crib();
    let old = crate::cli::repository().join("tests/fixtures/audit");
    for file in ["20261123.log", "head"] {
        fs::copy(old.join(file), crib.path("audit").join(file)).unwrap();
    }
    let verified = page.run(&crib, &["audit", "verify"]);
    assert!(verified.stdout.starts_with("1 file, 3 records, seq 1 to 3, head d7cfa9c6"), "{verified:?}");
    let shown = page.run(&crib, &["audit", "show"]).stdout;
    assert!(shown.lines().all(|line| line == line.trim_end()), "{shown}");
    assert!(shown.lines().nth(2).unwrap().ends_with("  write"), "the column is empty: {shown}");
    let text = fs::read_to_string(old.join("20261123.log")).unwrap();
    assert_eq!(crib.run(&["audit", "show", "--json"]).stdout, text);
    page.run(&crib, &["call", "open", r#"{"a":1}"#]);
    page.run(&crib, &["audit", "verify"]);
    page.matches("audit/earlier-version");
}
