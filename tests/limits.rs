//! Limits: each is exceeded by a guest; the typed outcome comes within its bound, is recorded once, and the next call
//! works.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolcrib::{Outcome, ToolCall};

use crate::crib::{Crib, guest, nesting};
use crate::screen::Page;

/// Maximum delay of a call on a busy machine before a test reports a hang.
const BOUND: Duration = Duration::from_secs(20);

/// Calls a guest; asserts its outcome, its single record, and that the guest beside it still answers.
fn ends(name: &str, arguments: Value, flags: &[&str], outcome: &str) -> Value {
    let crib = Crib::with_guests(&[name, "echo"]);
    let started = Instant::now();
    let ended = crib.call(name, &arguments, flags);
    assert!(started.elapsed() < BOUND, "{name} came back after {:?}", started.elapsed());
    assert_eq!(ended["receipt"]["outcome"], outcome, "{ended}");
    assert!(ended["error"].is_string(), "{ended}");
    assert_eq!(crib.outcome("echo", &json!({"a": 1}), &[]), "ok");
    let records = crib.records();
    let outcomes: Vec<_> = records.iter().map(|record| record["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, [outcome, "ok"]);
    ended
}

#[test]
fn a_guest_that_computes_is_stopped_at_its_deadline() {
    let ended = ends("spin", json!({}), &["--set", "limits.tool_timeout=300ms"], "deadline");
    assert_eq!(ended["error"], "tool timed out");
}

#[test]
fn a_guest_asleep_in_the_host_is_stopped_at_its_deadline() {
    ends("sleep", json!({}), &["--set", "limits.tool_timeout=300ms"], "deadline");
}

#[test]
fn a_guest_that_polls_forever_is_stopped_at_its_deadline() {
    ends("poll", json!({}), &["--set", "limits.tool_timeout=300ms"], "deadline");
    ends("poll_ready", json!({}), &["--set", "limits.tool_timeout=300ms"], "deadline");
}

#[test]
fn a_start_function_that_loops_is_stopped_at_the_deadline() {
    let crib = Crib::new();
    crib.install_wat(
        "start",
        r#"(module
            (import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))
            (memory (export "memory") 1)
            (func $forever (loop br 0))
            (start $forever)
            (func (export "_start")))"#,
    );
    crib.manifest(&json!({"tools": [{"name": "start", "command": ["./tools/bin/start"], "timeoutSec": 1}]}));
    assert_eq!(crib.outcome("start", &json!({}), &[]), "deadline");
}

#[test]
fn fuel_is_counted_when_it_is_limited() {
    ends("spin", json!({}), &["--set", "limits.fuel=1000000"], "fuel");
    let crib = Crib::with_guests(&["echo"]);
    let counted =
        |_| crib.call("echo", &json!({}), &["--set", "limits.fuel=50000000"])["receipt"]["fuel"].as_u64().unwrap();
    let [first, second] = [0, 1].map(counted);
    assert!(first > 1000 && first == second, "fuel is deterministic: {first} and {second}");
}

#[test]
fn a_guest_that_asks_for_4_gib_is_refused_memory() {
    let ended = ends("grow", json!({}), &[], "memory");
    assert_eq!(ended["error"], "tool ran out of memory (limit 128 MiB)");
    assert!(ended["receipt"]["peakMemoryBytes"].as_u64().unwrap() <= 128 << 20);
}

#[test]
fn memories_and_tables_count_together() {
    let crib = Crib::new();
    // Each grows its own memory or table and fails if it may not.
    let component = |modules: &str, instances: usize| {
        let instances: String = (0..instances).map(|n| format!("(core instance $i{n} (instantiate $m))")).collect();
        format!(
            r#"(component (core module $m {modules}) {instances}
                (func $run (result (result)) (canon lift (core func $i0 "run")))
                (instance $exports (export "run" (func $run)))
                (export "wasi:cli/run@0.2.0" (instance $exports)))"#
        )
    };
    let memory = r#"(memory 0) (func $grow
            (if (i32.eq (memory.grow (i32.const 9)) (i32.const -1)) (then unreachable)))
        (start $grow) (func (export "run") (result i32) i32.const 0)"#;
    crib.install_wat("one", &component(memory, 1));
    crib.install_wat("two", &component(memory, 2));
    let table = r#"(table 1 funcref) (func (export "run") (result i32)
        (i32.eq (table.grow (ref.null func) (i32.const 60000)) (i32.const -1)))"#;
    crib.install_wat("table", &component(table, 1));
    let both = r#"(memory 0) (table 1 funcref) (func (export "run") (result i32)
        (if (i32.eq (memory.grow (i32.const 9)) (i32.const -1)) (then unreachable))
        (i32.eq (table.grow (ref.null func) (i32.const 60000)) (i32.const -1)))"#;
    crib.install_wat("both", &component(both, 1));
    let entry = |name: &str| json!({"name": name, "command": [format!("./tools/bin/{name}")]});
    crib.manifest(&json!({"tools": [entry("one"), entry("two"), entry("table"), entry("both")]}));
    // Nine pages are 576 KiB: one memory fits into a MiB, two do not; 60,000 elements of 8 bytes are 469 KiB.
    assert_eq!(crib.outcome("one", &json!({}), &["--max-memory", "1MiB"]), "ok");
    assert_eq!(crib.outcome("two", &json!({}), &["--max-memory", "1MiB"]), "memory");
    assert_eq!(crib.outcome("two", &json!({}), &["--max-memory", "2MiB"]), "ok");
    assert_eq!(crib.call("both", &json!({}), &["--max-memory", "1MiB"])["receipt"]["exit"], 1, "the table is refused");
    assert_eq!(crib.call("both", &json!({}), &["--max-memory", "2MiB"])["receipt"]["exit"], 0);
    assert_eq!(crib.call("table", &json!({}), &[])["receipt"]["exit"], 0);
    assert_eq!(crib.call("table", &json!({}), &["--max-memory", "256KiB"])["receipt"]["exit"], 1);
}

#[test]
fn endless_recursion_ends_in_a_stack_error() {
    let ended = ends("recurse", json!({}), &[], "stack");
    assert_eq!(ended["error"], "tool recursed too deeply");
    let crib = Crib::new();
    crib.install_wat(
        "pure",
        r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func (param i32)))
            (memory (export "memory") 1)
            (func $again (call $again) (call $again))
            (func (export "_start") (call $again)))"#,
    );
    crib.manifest(&json!({"tools": [{"name": "pure", "command": ["./tools/bin/pure"]}]}));
    assert_eq!(crib.outcome("pure", &json!({}), &[]), "stack");
}

#[test]
fn endless_output_is_cut_at_its_cap() {
    for guest in ["flood_stdout", "flood_byte"] {
        let ended = ends(guest, json!({}), &["--set", "limits.max_output=64KiB"], "output-limit");
        assert_eq!(ended["receipt"]["stdoutBytes"], 65536);
        assert_eq!(ended["receipt"]["truncated"], true);
        assert_eq!(ended["error"], "tool wrote more than 64 KiB to standard output");
    }
    let ended = ends("flood_stderr", json!({}), &[], "output-limit");
    assert_eq!(ended["receipt"]["stderrBytes"], 65536);
}

#[test]
fn a_result_over_the_cap_is_refused_and_one_at_the_cap_is_not() {
    let crib = Crib::with_guests(&["big_result"]);
    // Two quotation marks and a newline are part of the line.
    let of = |bytes: u64| crib.outcome("big_result", &json!({"bytes": bytes}), &["--set", "limits.max_output=10KiB"]);
    assert_eq!((of(10 * 1024 - 3), of(10 * 1024)), ("ok".into(), "output-limit".into()));
}

#[test]
fn a_flood_of_handles_is_refused() {
    ends("many_pollables", json!({}), &[], "handles");
    let crib = Crib::with_guests(&["open_many"]);
    fs::write(crib.path("work/f"), "x").unwrap();
    assert_eq!(crib.outcome("open_many", &json!({"path": "f"}), &["--allow-read=work"]), "handles");
}

#[test]
fn handles_of_the_guests_own_resources_count_too() {
    let crib = Crib::new();
    crib.install_wat(
        "own",
        r#"(component
            (type $r (resource (rep i32)))
            (core func $new (canon resource.new $r))
            (core module $m
                (import "host" "new" (func $new (param i32) (result i32)))
                (func (export "run") (result i32) (loop $more (drop (call $new (i32.const 1))) (br $more)) i32.const 0))
            (core instance $i (instantiate $m (with "host" (instance (export "new" (func $new))))))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $exports (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $exports)))"#,
    );
    crib.manifest(&json!({"tools": [{"name": "own", "command": ["./tools/bin/own"]}]}));
    let line = crib.call("own", &json!({}), &[]);
    assert_eq!(line["receipt"]["outcome"], "handles", "{line}");
}

#[test]
fn open_listings_are_bounded() {
    let crib = Crib::with_guests(&["many_listings"]);
    let line = crib.call("many_listings", &json!({}), &["--allow-read=work"]);
    assert_eq!(line["result"], json!({"listings": 16}), "{line}");
}

#[test]
fn what_one_host_call_copies_is_bounded() {
    let call = |host_call: usize| {
        let mut limits = toolcrib::tool::Limits::default();
        limits.host_call = host_call;
        let runtime = nesting::builder(toolcrib::Audit::off()).source(guest("echo")).limits(limits).build().unwrap();
        let arguments = json!({"text": "x".repeat(3000)}).to_string();
        block_on(nesting::call(&runtime, ToolCall::new("", "echo", arguments))).receipt.outcome
    };
    assert_eq!((call(16 << 20), call(1000)), (Outcome::Ok, Outcome::OutputLimit));
}

#[test]
fn arguments_over_the_cap_are_refused() {
    let runtime = nesting::builder(toolcrib::Audit::off()).source(guest("echo")).build().unwrap();
    let call = |bytes: usize| {
        let arguments = format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8));
        block_on(nesting::call(&runtime, ToolCall::new("", "echo", arguments))).receipt.outcome
    };
    assert_eq!(call((4 << 20) + 1), Outcome::BadArguments);
    assert_eq!(call(4 << 20), Outcome::OutputLimit, "taken, and too large an answer");
}

#[test]
fn a_schema_that_multiplies_itself_is_refused_at_load() {
    let page = Page::new();
    let crib = Crib::with_guests(&["empty"]);
    let mut definitions = json!({"d0": {"type": "object"}});
    for level in 1..40 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        definitions[format!("d{level}")] = json!({"allOf": [below.clone(), below]});
    }
    crib.manifest(&json!({"tools": [{
        "name": "n", "command": ["./tools/bin/empty"], "schema": {"$ref": "#/$defs/d39", "$defs": definitions}
    }]}));
    page.run(&crib, &["call", "n", "{}"]);
    page.matches("schema/multiplied");
}

#[test]
fn a_schema_that_multiplies_with_its_value_ends_in_time() {
    let crib = Crib::with_guests(&["empty"]);
    let twice = json!({"allOf": [{"$ref": "#/$defs/t"}, {"$ref": "#/$defs/t"}]});
    let schema = json!({"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"a": twice}}}});
    crib.manifest(&json!({"tools": [{
        "name": "n", "command": ["./tools/bin/empty"], "timeoutSec": 1, "schema": schema
    }]}));
    let value = (0..60).fold(json!({}), |value, _| json!({ "a": value }));
    let started = Instant::now();
    let outcome = crib.outcome("n", &value, &[]);
    assert!(["ok", "deadline"].contains(&outcome.as_str()), "{outcome}");
    assert!(started.elapsed() < BOUND);
}

#[test]
fn a_component_with_more_parts_than_a_slot_has_is_refused_at_load() {
    let crib = Crib::new();
    let component = |module: &str, instances: usize| {
        let instances: String = (0..instances).map(|n| format!("(core instance $i{n} (instantiate $m))")).collect();
        format!(
            r#"(component (core module $m {module} (func (export "run") (result i32) i32.const 0)) {instances}
                (func $run (result (result)) (canon lift (core func $i0 "run")))
                (instance $exports (export "run" (func $run)))
                (export "wasi:cli/run@0.2.0" (instance $exports)))"#
        )
    };
    crib.install_wat("memories", &component("(memory 1)", 5));
    crib.install_wat("instances", &component("", 65));
    crib.install_wat("within", &component("(memory 1) (table 1 funcref)", 4));
    let entry = |name: &str| json!({"name": name, "command": [format!("./tools/bin/{name}")]});
    crib.manifest(&json!({"tools": [entry("memories"), entry("instances"), entry("within")]}));
    let outcome = |name: &str| crib.outcome(name, &json!({}), &[]);
    assert_eq!(
        [outcome("memories"), outcome("instances"), outcome("within")],
        ["bad-component", "bad-component", "ok"]
    );
}

#[test]
fn hung_calls_of_one_tool_leave_room_for_the_others() {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let limits = toolcrib::tool::Limits::with_deadline(Duration::from_secs(5));
    let builder = nesting::builder(toolcrib::Audit::off())
        .source(guest("sleep"))
        .source(guest("echo"))
        .concurrency(4)
        .limits(limits);
    let runtime = builder.build().unwrap();
    tokio.block_on(async {
        runtime.prepare("echo").await.unwrap();
        let hung = (0..20).map(|_| {
            let runtime = runtime.clone();
            tokio::spawn(async move { nesting::call(&runtime, ToolCall::new("", "sleep", "{}")).await })
        });
        let hung: Vec<_> = hung.collect();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let started = Instant::now();
        assert!(!nesting::call(&runtime, ToolCall::new("", "echo", "{}")).await.is_error());
        assert!(started.elapsed() < Duration::from_secs(4), "it waited for {:?}", started.elapsed());
        for call in hung {
            assert_eq!(call.await.unwrap().receipt.outcome, Outcome::Deadline, "waiting for a turn ends there too");
        }
    });
}

#[test]
fn a_program_that_could_not_be_read_once_is_read_again() {
    let crib = Crib::with_guests(&["echo"]);
    let runtime = nesting::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json")).build().unwrap();
    let program = crib.path("tools/bin/echo.wasm");
    fs::rename(&program, crib.path("away")).unwrap();
    let outcome = || block_on(nesting::call(&runtime, ToolCall::new("", "echo", "{}"))).receipt.outcome;
    assert_eq!(outcome(), Outcome::BadComponent);
    fs::rename(crib.path("away"), &program).unwrap();
    assert_eq!(outcome(), Outcome::Ok);
}

#[test]
fn an_absurd_request_to_the_host_is_a_trap() {
    ends("random_bytes", json!({}), &[], "trap");
}

#[test]
fn a_panic_is_a_trap_with_its_text_for_people_alone() {
    let ended = ends("panic", json!({}), &[], "trap");
    assert!(ended["error"].as_str().unwrap().starts_with("tool crashed"), "{ended}");
}

#[test]
fn what_is_not_one_line_of_json_is_a_bad_result() {
    for guest in ["two_lines", "not_json", "deep_json"] {
        ends(guest, json!({}), &[], "bad-result");
    }
    let crib = Crib::with_guests(&["empty"]);
    assert_eq!(crib.run(&["call", "empty"]).stdout, "{}\n");
}

#[test]
fn more_calls_than_slots_wait_their_turn() {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let runtime = nesting::builder(toolcrib::Audit::off()).source(guest("echo")).concurrency(2).build().unwrap();
    tokio.block_on(async {
        let calls = (0..64).map(|n| {
            let runtime = runtime.clone();
            tokio::spawn(async move {
                nesting::call(&runtime, ToolCall::new(n.to_string(), "echo", format!("{{\"n\":{n}}}"))).await
            })
        });
        for (n, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
            let result = call.await.unwrap();
            assert_eq!(result.outcome.unwrap(), format!("{{\"n\":{n}}}"));
        }
    });
}

#[test]
fn a_dropped_call_stops_and_frees_its_slot() {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let crib = Crib::new();
    let audit = toolcrib::Audit::folder(crib.path("audit"));
    let runtime = nesting::builder(audit).source(guest("spin")).source(guest("sleep")).concurrency(1).build();
    let runtime = runtime.unwrap();
    tokio.block_on(async {
        for name in ["spin", "sleep", "spin", "sleep"] {
            let known = crib.records().len();
            // On a busy machine a call may not have begun, and leaves no record then.
            for wait in [200, 2_000, 10_000] {
                let call = nesting::call(&runtime, ToolCall::new("dropped", name, "{}"));
                let dropped = tokio::time::timeout(Duration::from_millis(wait), call).await;
                assert!(dropped.is_err(), "{name} ended by itself");
                if crib.records().len() > known {
                    break;
                }
            }
        }
    });
    let outcomes: Vec<_> = crib.records().iter().map(|record| record["outcome"].clone()).collect();
    assert!(outcomes.len() >= 4 && outcomes.iter().all(|outcome| outcome == "cancelled"), "{outcomes:?}");
}

#[test]
fn a_thousand_timeouts_leave_nothing_behind() {
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let limits = toolcrib::tool::Limits::with_deadline(Duration::from_millis(1));
    let runtime = nesting::builder(toolcrib::Audit::off())
        .source(guest("sleep"))
        .source(guest("echo"))
        .limits(limits)
        .build()
        .unwrap();
    tokio.block_on(async {
        let round = async || {
            let calls = (0..250).map(|_| nesting::call(&runtime, ToolCall::new("", "sleep", "{}")));
            for result in futures::future::join_all(calls).await {
                assert_eq!(result.outcome.unwrap_err().outcome, Outcome::Deadline);
            }
        };
        round().await;
        let before = descriptors();
        for _ in 0..3 {
            round().await;
        }
        // Other tests of this process open descriptors for a moment; a leak stays.
        let begun = std::time::Instant::now();
        while descriptors() > before + 4 {
            let found = descriptors();
            assert!(begun.elapsed() < Duration::from_secs(60), "descriptors grew from {before} to {found}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[test]
fn a_core_module_has_several_memories_up_to_its_bound() {
    let crib = Crib::new();
    let module = |memories: usize| {
        let more = "(memory 1)".repeat(memories - 1);
        format!(r#"(module (memory (export "memory") 1) {more} (func (export "_start")))"#)
    };
    for (name, memories) in [("two", 2), ("four", 4), ("five", 5)] {
        crib.install_wat(name, &module(memories));
    }
    let entry = |name: &str| json!({"name": name, "command": [format!("./tools/bin/{name}")]});
    crib.manifest(&json!({"tools": [entry("two"), entry("four"), entry("five")]}));
    for (name, outcome) in [("two", "ok"), ("four", "ok"), ("five", "bad-component")] {
        let line = crib.call(name, &json!({}), &[]);
        assert_eq!(line["receipt"]["outcome"], outcome, "{line}");
        assert!(!line.to_string().contains("right now"), "no fault of the host: {line}");
    }
}
