//! Host computations over untrusted input: they end at the deadline of their call, stop when no caller waits any more,
//! and do not block other calls.

use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::{Outcome, ToolCall};

use crate::crib::{Crib, nesting};

/// Maximum delay of a call on a busy machine before a test reports a hang.
const BOUND: Duration = Duration::from_secs(20);
/// Maximum bytes of arguments.
const MAX_BYTES: usize = 4 << 20;

/// Text of `a` and `b` in an order that no automaton can learn.
fn noise(bytes: usize) -> String {
    let mut state = 1_u64;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if state >> 63 == 0 { 'a' } else { 'b' }
    };
    (0..bytes).map(letter).collect()
}

/// Patterns that enter new states for nearly every byte of noise.
fn patterns(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("[ab]*a[ab]{{{}}}c", 150 + n)).collect()
}

fn any_pattern() -> Value {
    let each: Vec<_> = patterns(40).into_iter().map(|pattern| json!({ "pattern": pattern })).collect();
    json!({ "anyOf": each })
}

/// Schemas that take long, each with arguments that cause it.
fn attacks() -> Vec<(&'static str, Value, Value)> {
    let small = noise(15_900);
    let names: serde_json::Map<_, _> = patterns(40).into_iter().map(|pattern| (pattern, json!({}))).collect();
    let parts: Vec<String> = (0..75).map(|n| small[n * 200..][..200].to_owned()).collect();
    let each_name: serde_json::Map<_, _> = noise(MAX_BYTES - 100_000)
        .as_bytes()
        .chunks(500)
        .map(|name| (String::from_utf8_lossy(name).into(), json!(1)))
        .collect();
    let a = |schema: Value| json!({"type": "object", "properties": {"a": schema}});
    let consts: Vec<_> = (0..10_000).map(|n| json!({ "const": n })).collect();
    let lengths: Vec<_> = (0..20_000).map(|n| json!({ "minLength": n })).collect();
    let contains: Vec<_> = (0..1000).map(|n| json!({"contains": {"const": n + 2}, "minContains": 0})).collect();
    let values: Vec<_> = (0..2000).map(|n| json!(vec![0; 100].into_iter().chain([n]).collect::<Vec<_>>())).collect();
    let row = json!(vec![0; 101]);
    let unique = json!({"properties": {"a": {"$ref": "#/$defs/u"}},
        "$defs": {"u": {"allOf": vec![json!({"uniqueItems": true}); 50], "items": {"$ref": "#/$defs/u"}}}});
    let rows: Vec<_> = (0..60_000).map(|n| json!((n..n + 10).collect::<Vec<_>>())).collect();
    let deep = (0..60).fold(json!(rows), |inner, _| json!([inner]));
    let late = noise(MAX_BYTES - 100);
    let formats =
        ["regex", "email", "idn-email", "hostname", "uri", "iri", "uri-template", "json-pointer", "date-time"];
    let formats: Vec<_> = formats.iter().map(|format| json!({"not": {"not": {"format": format}}})).collect();
    let formats: Vec<_> = std::iter::repeat_n(formats, 100).flatten().collect();
    let old = json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"anyOf": formats}}});
    vec![
        ("formats of one text", old, json!({"a": format!("{} (", "(a@b.c/".repeat(590_000))})),
        ("patterns", a(any_pattern()), json!({ "a": small })),
        ("patterns of items", a(json!({ "items": any_pattern() })), json!({ "a": parts })),
        ("a pattern of a long text", a(any_pattern()), json!({ "a": late })),
        ("a pattern of names", json!({ "propertyNames": any_pattern() }), json!({ (small.as_str()): 1 })),
        ("patterns of properties", json!({ "patternProperties": names }), Value::Object(each_name)),
        ("a choice for each item", a(json!({"items": {"anyOf": consts}})), json!({"a": vec![-1; 800_000]})),
        ("lengths of one text", a(json!({ "allOf": lengths })), json!({ "a": late })),
        ("items that are looked for", a(json!({ "allOf": contains })), json!({"a": vec![1; 1_000_000]})),
        ("values that nearly fit", a(json!({"items": {"enum": values}})), json!({"a": vec![row; 15_000]})),
        ("unique items at each level", unique, json!({ "a": deep })),
    ]
}

/// Creates a crib with a tool `costly` of this interface and one without a schema, `echo`; both answer with their
/// arguments.
fn crib(schema: &Value, interface: &Value, seconds: u64) -> Crib {
    let crib = Crib::new();
    let echo = crib.entry("echo");
    let mut costly = echo.clone();
    costly["name"] = json!("costly");
    costly["schema"] = schema.clone();
    costly["interface"] = interface.clone();
    costly["timeoutSec"] = json!(seconds);
    crib.manifest(&json!({ "tools": [costly, echo] }));
    crib
}

/// Two workers and their blocking threads, with a name of their own: other tests compute in the same process.
struct Workers {
    runtime: tokio::runtime::Runtime,
    name: String,
}

impl Workers {
    fn start() -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let name = format!("computing-{}", STARTED.fetch_add(1, Relaxed));
        let builder = &mut tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).thread_name(&name).enable_all().build().unwrap();
        Self { runtime, name }
    }

    /// Runs a future.
    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Fails if a thread keeps computing.
    fn end(self) {
        self.runtime.shutdown_background();
        let start = Instant::now();
        loop {
            let before = used(&self.name);
            std::thread::sleep(Duration::from_millis(400));
            if used(&self.name).saturating_sub(before) < Duration::from_millis(150) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(5), "a thread computes for nobody");
        }
    }
}

/// Processor time of the threads of this name that still run.
#[cfg(target_os = "linux")]
fn used(name: &str) -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().filter_map(|task| Some(task.ok()?.path()));
    // A thread can end meanwhile.
    let stats = tasks.filter_map(|task| std::fs::read_to_string(task.join("stat")).ok());
    let ticks = stats.filter_map(|stat| {
        let (thread, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        thread.ends_with(&format!("({name}")).then_some(ticks)
    });
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

#[cfg(not(target_os = "linux"))]
fn used(_: &str) -> Duration {
    Duration::ZERO
}

#[test]
fn costly_schemas_stop_at_the_deadline() {
    for (name, schema, arguments) in attacks() {
        let crib = crib(&schema, &json!({}), 1);
        // A refused schema could not be stopped.
        let runtime = nesting::builder(toolcrib::Audit::off())
            .trusted_source(crib.path("tools.json"))
            .strict(true)
            .build()
            .unwrap();
        let call = ToolCall::new("", "costly", arguments.to_string());
        let workers = Workers::start();
        let (took, result) = workers.block_on(async {
            let started = Instant::now();
            let result = nesting::call(&runtime, call).await;
            (started.elapsed(), result)
        });
        eprintln!("{name}: {} after {took:?}", result.receipt.outcome.as_str());
        assert!(took < BOUND, "{name} came back after {took:?}");
        // A computation that was not stopped was short.
        let outcome = result.receipt.outcome;
        assert!(outcome == Outcome::Deadline || took < Duration::from_secs(5), "{name} took {took:?}: {outcome:?}");
        workers.end();
    }
}

#[test]
fn a_costly_schema_freezes_no_other_call() {
    let crib = crib(&json!({"properties": {"a": any_pattern()}}), &json!({}), 1);
    let runtime = nesting::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json")).build().unwrap();
    let texts = [noise(15_900), noise(MAX_BYTES - 100)];
    let workers = Workers::start();
    workers.block_on(async {
        runtime.prepare("echo").await.unwrap();
        let costly = (0..8).map(|n| {
            let (runtime, arguments) = (runtime.clone(), json!({ "a": texts[n % 2] }).to_string());
            tokio::spawn(async move { nesting::call(&runtime, ToolCall::new("", "costly", arguments)).await })
        });
        let costly: Vec<_> = costly.collect();
        let started = Instant::now();
        let mut longest = Duration::ZERO;
        while started.elapsed() < Duration::from_millis(800) {
            let since = Instant::now();
            assert!(!nesting::call(&runtime, ToolCall::new("", "echo", "{}")).await.is_error());
            tokio::time::sleep(Duration::from_millis(5)).await;
            longest = longest.max(since.elapsed());
        }
        assert!(longest < Duration::from_millis(700), "another call waited for {longest:?}");
        for call in costly {
            assert_eq!(call.await.unwrap().receipt.outcome, Outcome::Deadline);
        }
        eprintln!("eight ended after {:?}; another call took {longest:?} at most", started.elapsed());
        assert!(started.elapsed() < BOUND);
    });
    workers.end();
}

#[test]
fn a_check_for_which_nobody_waits_stops() {
    let crib = crib(&json!({"properties": {"a": any_pattern()}}), &json!({}), 3600);
    let runtime = nesting::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json")).build().unwrap();
    let arguments = json!({ "a": noise(MAX_BYTES - 100) }).to_string();
    let workers = Workers::start();
    workers.block_on(async {
        let call = tokio::spawn(async move { nesting::call(&runtime, ToolCall::new("", "costly", arguments)).await });
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(!call.is_finished());
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
    });
    workers.end();
}

#[test]
fn an_answer_is_checked_within_the_deadline_of_its_call() {
    let interface = json!({"output_schema": {"properties": {"a": any_pattern()}}});
    let crib = crib(&json!({}), &interface, 1);
    let runtime = nesting::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json")).build().unwrap();
    for bytes in [15_900, (1 << 20) - 100] {
        let call = ToolCall::new("", "costly", json!({ "a": noise(bytes) }).to_string());
        let started = Instant::now();
        let workers = Workers::start();
        let result = workers.block_on(nesting::call(&runtime, call));
        eprintln!("an answer of {bytes} bytes: {} after {:?}", result.receipt.outcome.as_str(), started.elapsed());
        assert_eq!(result.receipt.outcome, Outcome::Deadline);
        assert!(started.elapsed() < BOUND);
        workers.end();
    }
}

#[test]
fn rules_over_many_paths_end_with_the_call() {
    let crib = crib(&json!({}), &json!({}), 1);
    let arguments = json!({"a": vec!["x/../y"; 400_000]}).to_string();
    let mut args = vec!["call", "costly", "-", "--json"];
    let rules: Vec<String> = (0..40).map(|n| format!("costly(a=/never{n}/*)")).collect();
    args.extend(rules.iter().flat_map(|rule| ["--deny-tool", rule.as_str()]));
    let mut child = crib.toolcrib(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(arguments.as_bytes()).unwrap();
    let started = Instant::now();
    let output: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    eprintln!("40 rules over 400,000 paths: {} after {:?}", output["receipt"]["outcome"], started.elapsed());
    assert_eq!(output["receipt"]["outcome"], "deadline");
    assert!(started.elapsed() < BOUND);
}

#[cfg(unix)]
#[test]
fn an_interruption_ends_a_check() {
    use rustix::process::{Pid, Signal, kill_process};

    let crib = crib(&json!({"properties": {"a": any_pattern()}}), &json!({}), 3600);
    let arguments = json!({ "a": noise(MAX_BYTES - 100) }).to_string();
    let mut call = crib.toolcrib(&["call", "costly", "-"]);
    let mut child = call.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(arguments.as_bytes()).unwrap();
    #[cfg(target_os = "linux")]
    crate::crib::until_it_listens(child.id());
    std::thread::sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none(), "it is still checked");
    let started = Instant::now();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    eprintln!("interrupted: gone after {:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn bounds_of_a_source_name_the_file_the_field_and_the_limit() {
    let a = |schema: Value| json!({"properties": {"a": schema}});
    for (schema, interface, expected) in [
        (a(json!({"pattern": "a".repeat(4097)})), json!({}), "has 4097 bytes, more than the 4096 allowed"),
        (a(json!({"anyOf": vec![json!({"pattern": "a"}); 257]})), json!({}), "schema: more than 256 patterns"),
        (a(json!({"pattern": r"(\p{L}{100}){100}"})), json!({}), "takes more than 2097152 bytes when it is compiled"),
        (json!({"patternProperties": {"x".repeat(5000): {}}}), json!({}), "`patternProperties`"),
        (json!({}), json!({"ui_summary": "{a}".repeat(300_000)}), "ui_summary: a template of 900000 characters"),
        (json!({}), json!({"ui_summary": "{a}".repeat(65)}), "ui_summary: 65 placeholders, more than the 64 allowed"),
        (json!({}), json!({"search_hint": "x".repeat(1 << 20)}), "search_hint: a text of 1048576 characters"),
        (json!({}), json!({"aliases": vec!["x"; 257]}), "aliases: 257 entries, more than the 256 allowed"),
        (json!({}), json!({"output_schema": {"pattern": "a{100000}{100}"}}), "output_schema"),
    ] {
        let ran = crib(&schema, &interface, 1).run(&["validate", "tools.json"]);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert!(ran.code == Some(1) && said.contains(expected) && said.contains("tools.json"), "{expected}: {said}");
    }
}

#[test]
fn an_expression_or_a_list_of_capabilities_that_is_too_long_is_refused() {
    let crib = Crib::with_guests(&["echo"]);
    let echo = crib.entry("echo");
    for (entries, is_refused) in [(1024, false), (1025, true)] {
        let mut tool = echo.clone();
        let hosts: Vec<_> = (0..entries).map(|n| format!("h{n}.example")).collect();
        tool["capabilities"] = json!({ "network": hosts });
        crib.manifest(&json!({ "tools": [tool] }));
        let ran = crib.run(&["validate", "tools.json"]);
        let output = ran.stdout.contains("1025 entries, more than the 1024 allowed");
        assert_eq!((ran.code, output), (Some(is_refused.into()), is_refused), "{ran:?}");
    }
    std::fs::create_dir_all(crib.path(".harness/hooks")).unwrap();
    for (chars, is_refused) in [(4096, false), (4097, true)] {
        let when = format!("event == \"{}\"", "x".repeat(chars - 11));
        let hook = format!(
            "---\nevent: tool.pre\nwhen: '{when}'\nscript: |\n  def handle(event, payload):\n    return None\n---\nOne.\n"
        );
        std::fs::write(crib.path(".harness/hooks/h.md"), hook).unwrap();
        let ran = crib.run(&["validate", "."]);
        let output = ran.stdout.contains("an expression of 4097 characters, more than the 4096 allowed");
        assert_eq!(output, is_refused, "{ran:?}");
    }
}

#[test]
fn a_large_argument_is_shown_no_further_than_its_line() {
    let interface = json!({"ui_summary": "{a} ".repeat(64)});
    let crib = crib(&json!({}), &interface, 20);
    let runtime = nesting::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json")).build().unwrap();
    let call = ToolCall::new("", "costly", json!({"a": vec![json!([]); 200_000]}).to_string());
    let display = Workers::start().block_on(nesting::call(&runtime, call)).display.unwrap();
    assert_eq!(display.chars().count(), 2000);
}
