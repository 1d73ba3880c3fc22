//! Traces for a collector: sent only if a collector is configured, with the names of the conventions, without the
//! content of calls; and no faulty collector changes the result of the work.

use std::net::TcpListener;
#[cfg(unix)]
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::answering::{Answer, Request, Server};
use crate::crib::{Crib, Ran};
use crate::screen::Page;

const SECRET: &str = "hunter2-and-more";
/// Maximum cost of a collector, plus the duration of a run on a busy machine.
const BOUNDED: Duration = Duration::from_secs(30);

/// Collector with this response.
fn collector(answer: Answer) -> Server {
    Server::start().answers("/v1/traces", [answer])
}

/// Collector that accepts every span.
pub(crate) fn accepting_collector() -> Server {
    collector(Answer::new(200).json(json!({ "partialSuccess": {} })))
}

fn payloads(server: &Server) -> Vec<Value> {
    let mut requests = server.received();
    requests.retain(|request| request.path == "/v1/traces");
    let is_sent =
        |request: &Request| request.method == "POST" && request.header("content-type") == Some("application/json");
    assert!(requests.iter().all(is_sent), "{requests:?}");
    requests.iter().map(Request::json).collect()
}

/// Spans that a collector received, in the order in which they ended.
pub(crate) fn spans(server: &Server) -> Vec<Value> {
    let mut spans = Vec::new();
    for payload in payloads(server) {
        let [resource] = &payload["resourceSpans"].as_array().expect("resources")[..] else { panic!("{payload}") };
        assert_eq!(said(&resource["resource"], "service.name"), "toolcrib");
        let [scope] = &resource["scopeSpans"].as_array().expect("scopes")[..] else { panic!("{payload}") };
        spans.extend(scope["spans"].as_array().expect("spans").iter().cloned());
    }
    spans
}

/// Attribute of a span; null if missing.
pub(crate) fn said(span: &Value, name: &str) -> Value {
    let found = span["attributes"].as_array().expect("attributes").iter().find(|said| said["key"] == name);
    let Some((kind, value)) = found.and_then(|said| said["value"].as_object()?.iter().next()) else {
        return Value::Null;
    };
    match kind.as_str() {
        "intValue" => json!(value.as_str().expect("text").parse::<i64>().expect("a number")),
        "arrayValue" => value["values"].as_array().expect("values").iter().map(|v| v["stringValue"].clone()).collect(),
        _ => value.clone(),
    }
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no span `{name}`: {spans:#?}"))
}

/// Time of a span or an event.
fn time(of: &Value, name: &str) -> u128 {
    of[name].as_str().expect("text").parse().expect("nanoseconds")
}

/// Creates a crib with a model that calls three tools: one answers, one fails, one is disabled.
fn crib() -> Crib {
    let crib = Crib::new();
    let (mut echo, mut off) = (crib.entry("echo"), crib.entry("file_io"));
    echo["description"] = json!("says it again");
    off["interface"] = json!({ "is_enabled": false });
    crib.manifest(&json!({ "tools": [echo, crib.entry("exit_code"), off] }));
    let turns = json!([
        { "content": format!("I know {SECRET}"), "tool_calls": [
            { "id": "one", "name": "echo", "arguments": { "password": SECRET } },
            { "id": "two", "name": "exit_code", "arguments": { "code": 1, "stderr": SECRET } },
            { "id": "three", "name": "file_io", "arguments": { "op": "read", "path": SECRET } },
        ] },
        { "content": "done" },
    ]);
    let script = json!({ "prompt": SECRET, "turns": turns });
    std::fs::write(crib.path("script.json"), script.to_string()).unwrap();
    crib
}

/// Scripted run with these flags, and its duration.
fn run(crib: &Crib, flags: &[&str]) -> (Ran, Duration) {
    let began = Instant::now();
    let ran = crib.run(&[&["run", "--script", "script.json", "--quiet"], flags].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    (ran, began.elapsed())
}

#[test]
fn a_run_is_traced_with_its_requests_and_calls() {
    let (server, crib) = (accepting_collector(), crib());
    let (ran, _) = run(&crib, &[&format!("--set=records.otlp={}", server.uri())]);
    assert_eq!(ran.stderr, "");
    let spans = spans(&server);
    assert_eq!(spans.len(), 6, "{spans:#?}");

    let agent = named(&spans, "invoke_agent");
    assert_eq!((&agent["kind"], agent.get("parentSpanId")), (&json!(1), None));
    assert_eq!(said(agent, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!((said(agent, "toolcrib.ending"), said(agent, "toolcrib.calls")), (json!("answer"), json!(3)));
    assert_eq!((agent.get("status"), said(agent, "error.type")), (None, Value::Null));

    let mut ids = Vec::new();
    for span in &spans {
        let (trace, id) = (span["traceId"].as_str().unwrap(), span["spanId"].as_str().unwrap());
        let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        assert!(trace.len() == 32 && is_hex(trace) && id.len() == 16 && is_hex(id), "{span}");
        assert_eq!(span["traceId"], agent["traceId"]);
        ids.push(id);
        let (start, end) = (time(span, "startTimeUnixNano"), time(span, "endTimeUnixNano"));
        assert!(time(agent, "startTimeUnixNano") <= start && start <= end, "{span}");
        assert!(end <= time(agent, "endTimeUnixNano"), "{span}");
        if span != agent {
            assert_eq!(span["parentSpanId"], agent["spanId"], "{span}");
        }
        for moment in span["events"].as_array().unwrap() {
            assert!((start..=end).contains(&time(moment, "timeUnixNano")), "{span}");
        }
    }
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 6);

    let chats: Vec<_> = spans.iter().filter(|span| span["name"] == "chat script").collect();
    assert_eq!(chats.iter().map(|chat| said(chat, "toolcrib.step")).collect::<Vec<_>>(), [1, 2]);
    assert!(chats.iter().all(|chat| said(chat, "gen_ai.operation.name") == "chat"));
}

#[test]
fn a_call_is_told_with_how_it_ended_and_never_with_what_was_said() {
    let (server, crib) = (accepting_collector(), crib());
    run(&crib, &[&format!("--set=records.otlp={}", server.uri())]);
    let spans = spans(&server);
    let records = crib.records();
    for (name, id, outcome) in [("echo", "one", "ok"), ("exit_code", "two", "failed"), ("file_io", "three", "denied")] {
        let span = named(&spans, &format!("execute_tool {name}"));
        for (attribute, wanted) in [
            ("gen_ai.operation.name", "execute_tool"),
            ("gen_ai.tool.name", name),
            ("gen_ai.tool.call.id", id),
            ("gen_ai.tool.type", "function"),
            ("toolcrib.outcome", outcome),
        ] {
            assert_eq!(said(span, attribute), wanted, "{name} {attribute}");
        }
        let failed = outcome != "ok";
        assert_eq!(said(span, "error.type"), if failed { json!(outcome) } else { Value::Null });
        assert_eq!(span.get("status"), failed.then(|| json!({ "code": 2 })).as_ref());
        let record = records.iter().find(|record| record["callId"] == id).expect("a record");
        assert_eq!(said(span, "toolcrib.invocation"), record["invocation"]);
        assert_eq!(said(span, "toolcrib.digest"), record.get("digest").cloned().unwrap_or_default());
        let happened: Vec<_> = span["events"].as_array().unwrap().iter().map(|moment| &moment["name"]).collect();
        let wanted =
            if name == "file_io" { &["toolcrib.decided"][..] } else { &["toolcrib.decided", "toolcrib.started"] };
        assert_eq!(happened, wanted, "{name}");
    }
    let echo = named(&spans, "execute_tool echo");
    assert_eq!(said(echo, "gen_ai.tool.description"), "says it again");
    assert!(said(echo, "toolcrib.cpu_ms").as_f64() > Some(0.0) && said(echo, "toolcrib.waited_ms").is_number());
    assert!(said(echo, "toolcrib.peak_memory_bytes").as_i64() > Some(0));
    let denied = named(&spans, "execute_tool file_io");
    assert_eq!((said(denied, "toolcrib.decision"), said(denied, "toolcrib.reason")), (json!("deny"), json!("record")));
    assert!(!json!(payloads(&server)).to_string().contains(SECRET));
}

#[test]
fn a_request_to_a_model_is_told_with_its_cost_and_a_failed_one_with_its_kind() {
    let answer = json!({
        "choices": [{ "message": { "content": "hello" }, "finish_reason": "length" }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 2 },
    });
    let answers = [Answer::new(503), Answer::new(200).json(answer)];
    let (server, crib) = (accepting_collector().answers("/api/chat/completions", answers), crib());
    let base = format!("{}/api", server.uri());
    let model = ["run", "go", "--model", "m", "--base-url", &base, "--set", "model.http_retry_backoff=1ms"];
    let ran = crib.run(&[&model[..], &[&format!("--set=records.otlp={}", server.uri())]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let spans = spans(&server);
    let [failed, answered, agent] = &spans[..] else { panic!("{spans:#?}") };
    for chat in [failed, answered] {
        assert_eq!((&chat["name"], &chat["kind"]), (&json!("chat m"), &json!(3)));
        assert_eq!(said(chat, "gen_ai.request.model"), "m");
        assert_eq!(said(chat, "server.address"), server.address.ip().to_string());
        assert_eq!(said(chat, "server.port"), server.address.port());
    }
    assert_eq!((said(failed, "error.type"), &failed["status"]["code"]), (json!("503"), &json!(2)));
    assert_eq!(said(answered, "error.type"), Value::Null);
    assert_eq!(said(answered, "gen_ai.response.finish_reasons"), json!(["length"]));
    for span in [answered, agent] {
        assert_eq!(said(span, "gen_ai.usage.input_tokens"), 5);
        assert_eq!(said(span, "gen_ai.usage.output_tokens"), 2);
    }
    let base = format!("http://{}", nobody());
    let gone = [
        "run",
        "go",
        "--model",
        "m",
        "--base-url",
        &base,
        "--set",
        "model.http_retries=0",
        &format!("--set=records.otlp={}", server.uri()),
    ];
    assert_eq!(crib.run(&gone).code, Some(1));
    let spans = self::spans(&server);
    for span in &spans[3..] {
        assert_eq!(said(span, "error.type"), "transport", "{span}");
    }
}

#[test]
fn a_single_call_is_a_trace_of_its_own() {
    let (server, crib) = (accepting_collector(), crib());
    let ran = crib.run(&["call", "echo", "{}", &format!("--set=records.otlp={}/", server.uri())]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let spans = spans(&server);
    let [only] = &spans[..] else { panic!("{spans:#?}") };
    assert_eq!((&only["name"], only.get("parentSpanId")), (&json!("execute_tool echo"), None));
}

#[test]
fn a_question_and_an_answer_that_is_kept_are_moments_of_a_call() {
    let (server, crib) = (accepting_collector(), Crib::new());
    let mut asked = crib.entry("echo");
    asked["interface"] = json!({ "approval_reason": SECRET });
    crib.manifest(&json!({ "tools": [asked, crib.entry("big_result")] }));
    crib.call("echo", &json!({}), &[&format!("--set=records.otlp={}", server.uri())]);
    crib.call(
        "big_result",
        &json!({ "bytes": 50_000 }),
        &["--set", "results.max_inline=1000", &format!("--set=records.otlp={}", server.uri())],
    );
    let spans = spans(&server);
    let [asked, kept] = &spans[..] else { panic!("{spans:#?}") };
    let moment = |span: &Value, name: &str| named(span["events"].as_array().unwrap(), name).clone();
    assert_eq!(said(&moment(asked, "toolcrib.asked"), "toolcrib.decision"), "ask");
    assert_eq!(said(&moment(asked, "toolcrib.decided"), "toolcrib.reason"), "nobody");
    let kept = moment(kept, "toolcrib.persisted");
    assert_eq!(said(&kept, "toolcrib.bytes"), 50_002);
    assert!(said(&kept, "toolcrib.shown_bytes").as_i64() < Some(2000) && said(&kept, "toolcrib.strategy").is_string());
    assert_ne!(asked["traceId"], spans[1]["traceId"]);
}

#[test]
fn nothing_is_sent_unless_a_collector_is_named() {
    let (server, crib) = (accepting_collector(), crib());
    run(&crib, &[]);
    let script = ["run", "--script", "script.json", "--quiet"];
    for (address, sent) in [("", 0), (server.uri().as_str(), 6)] {
        let ran = crib.toolcrib(&script).env("OTEL_EXPORTER_OTLP_ENDPOINT", address).output().unwrap();
        assert!(ran.status.success());
        assert_eq!(spans(&server).len(), sent);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_is_traced_to_its_end() {
    let crib = crib();
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let slow = Answer::new(200).late(Duration::from_secs(60));
        let server = accepting_collector().answers("/chat/completions", [slow]);
        let model =
            ["run", "go", "--model", "m", "--base-url", &server.uri(), &format!("--set=records.otlp={}", server.uri())];
        let mut child = crib.toolcrib(&model).stderr(Stdio::null()).spawn().unwrap();
        while server.received().is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        let spans = spans(&server);
        let [chat, agent] = &spans[..] else { panic!("{signal}: {spans:#?}") };
        assert_eq!((&chat["name"], &agent["name"]), (&json!("chat m"), &json!("invoke_agent")));
        for span in [chat, agent] {
            assert_eq!(said(span, "error.type"), "interrupted", "{signal}");
        }
    }
}

/// Address without a listener.
fn nobody() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

#[test]
fn a_collector_that_is_not_there_costs_a_warning() {
    let (ran, took) = run(&crib(), &[&format!("--set=records.otlp=http://user:{SECRET}@{}", nobody())]);
    assert!(
        ran.stderr.starts_with("warning: 6 of 6 spans were not delivered to `http://user:***@127.0.0.1:"),
        "{ran:?}"
    );
    assert!(took < BOUNDED && !ran.stderr.contains(SECRET), "{took:?} {ran:?}");
}

#[test]
fn a_collector_that_hangs_is_waited_for_a_little_while() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (ran, took) = run(&crib(), &[&format!("--set=records.otlp=http://{}", silent.local_addr().unwrap())]);
    assert!(ran.stderr.starts_with("warning: 6 of 6 spans were not delivered to"), "{ran:?}");
    assert!(ran.stderr.ends_with(": no answer in time\n") && took < BOUNDED, "{took:?} {ran:?}");
}

#[test]
fn what_a_collector_refuses_is_told() {
    let some = json!({ "partialSuccess": { "rejectedSpans": "1", "errorMessage": "too\nold" } });
    for (answer, wanted) in [
        (Answer::new(403).text("no key"), "403 Forbidden: no key\n"),
        (Answer::new(307).header("location", "/elsewhere"), "307 Temporary Redirect\n"),
        (Answer::new(200).json(some), "rejected: too old\n"),
    ] {
        let server = collector(answer);
        let (ran, _) = run(&crib(), &[&format!("--set=records.otlp={}", server.uri())]);
        assert!(ran.stderr.ends_with(wanted) && ran.stderr.lines().count() == 1, "{ran:?}");
    }
}

#[test]
fn an_address_that_is_none_is_wrong_use_and_not_repeated() {
    let page = Page::new();
    for address in ["localhost:4318", "ftp://user:hunter2-and-more@host", "hunter2-and-more"] {
        let ran = page.run(&crib(), &["call", "echo", "{}", "--otlp", address]);
        assert!(ran.code == Some(2) && ran.stderr.contains("example: `http://localhost:4318`"), "{ran:?}");
        let set = crib().run(&["call", "echo", "{}", "--set", &format!("records.otlp={address}")]);
        assert!(set.code == Some(2) && set.stderr.contains("`records.otlp` must be another value: URL"), "{set:?}");
        assert!(!ran.stderr.contains(SECRET) && !set.stderr.contains(SECRET), "{ran:?} {set:?}");
    }
    page.matches("telemetry/address");
}
