//! Cost of a call, with its floor in the same run: the same component on bare wasmtime, and an equal native program
//! that is spawned once per call.

#![allow(missing_docs, reason = "criterion's macros make items of their own")]

#[path = "../tests/answering.rs"]
#[allow(dead_code, reason = "the tests use the rest")]
mod answering;
#[allow(dead_code, reason = "other benches use the rest")]
mod built;
mod floor;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::json;
use tempfile::TempDir;
use toolcrib::{Audit, Runtime, ToolCall};
use wasmtime::component::Component;

use answering::{Answer, Request, Server};
use built::{TOOLCRIB, arguments, guest, tokio};
use floor::Floor;

fn runtime(cache: Option<&Path>, audit: Audit) -> Runtime {
    let builder = Runtime::builder(audit).source(guest("echo"));
    cache.into_iter().fold(builder, |builder, cache| builder.compile_cache(cache)).build().expect("a runtime")
}

/// Measures the preparation: from bytes to a program that can be called.
fn load(criterion: &mut Criterion) {
    let tokio = tokio();
    let cache = TempDir::new().expect("a folder");
    let prepare = |cache: Option<&Path>| {
        let runtime = runtime(cache, Audit::off());
        tokio.block_on(runtime.prepare("echo")).expect("a program");
    };
    prepare(Some(cache.path()));
    let mut group = criterion.benchmark_group("load");
    group.sample_size(10).bench_function("cold", |bencher| bencher.iter(|| prepare(None)));
    group.bench_function("cold, floor: compile on bare wasmtime", |bencher| {
        let engine = floor::engine();
        bencher.iter(|| Component::from_file(&engine, guest("echo")).expect("a component"));
    });
    group.sample_size(50).bench_function("cached", |bencher| bencher.iter(|| prepare(Some(cache.path()))));
    group.finish();
}

/// Measures one call through the whole pipeline.
fn call(criterion: &mut Criterion) {
    let tokio = tokio();
    let folder = TempDir::new().expect("a folder");
    let (signed, unsigned) = (runtime(None, Audit::folder(folder.path())), runtime(None, Audit::off()));
    for runtime in [&signed, &unsigned] {
        tokio.block_on(runtime.prepare("echo")).expect("a program");
    }
    let floor = Floor::new(&guest("echo"));
    let native = native(folder.path());
    let arguments = arguments();
    let pipeline = |runtime: &Runtime| {
        let result = tokio.block_on(runtime.call(ToolCall::new("call", "echo", arguments.as_str())));
        assert!(!result.is_error());
    };
    let mut group = criterion.benchmark_group("call");
    group.measurement_time(Duration::from_secs(6)).sample_size(200);
    group.bench_function("floor: instantiate on bare wasmtime", |bencher| {
        bencher.iter(|| tokio.block_on(floor.instantiate()));
    });
    group.bench_function("floor: call on bare wasmtime", |bencher| {
        bencher.iter(|| assert!(tokio.block_on(floor.call(&arguments)) > 0));
    });
    group.bench_function("pipeline, no log", |bencher| bencher.iter(|| pipeline(&unsigned)));
    group.bench_function("pipeline, logged", |bencher| bencher.iter(|| pipeline(&signed)));
    group.bench_function("floor: native program spawned", |bencher| bencher.iter(|| spawn(&native, &arguments)));
    group.finish();
}

/// Compiles a native program that echoes, optimised.
fn native(folder: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/native_echo.rs");
    let program = folder.join("native_echo");
    let built = Command::new("rustc").args(["-O", "--edition=2024", "-o"]).arg(&program).arg(source).status();
    assert!(built.expect("rustc runs").success());
    program
}

fn spawn(program: &Path, arguments: &str) {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_clear()
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(arguments.as_bytes()).expect("it reads");
    assert!(!child.wait_with_output().expect("it ends").stdout.is_empty());
}

/// Measures the whole program against a local server: the difference between many model turns and one is the cost of a
/// turn.
fn turns(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("run");
    group.sample_size(10);
    let folder = TempDir::new().expect("a folder");
    for turns in [1, 21] {
        let server = Server::start().replies("/chat/completions", move |request| answer(request, turns));
        let run = || {
            let status = Command::new(TOOLCRIB)
                .args(["run", "go", "--quiet", "--model", "m", "--api-key", "k", "--max-steps", "100", "--base-url"])
                .arg(server.uri())
                .arg("--tools")
                .arg(guest("echo"))
                .current_dir(folder.path())
                .env_clear()
                .env("HOME", folder.path())
                .stdout(Stdio::null())
                .status();
            assert!(status.expect("it starts").success());
        };
        run();
        group.bench_function(format!("{turns} tool turns"), |bencher| {
            bencher.iter_batched(|| (), |()| run(), BatchSize::PerIteration);
        });
    }
    group.finish();
}

/// Answers as a model that calls the tool until the conversation has this many results.
fn answer(request: &Request, turns: usize) -> Answer {
    let body = request.json();
    let messages = body["messages"].as_array().expect("messages");
    let results = messages.iter().filter(|message| message["role"] == "tool").count();
    let message = if results < turns {
        let function = json!({"name": "echo", "arguments": arguments()});
        json!({"role": "assistant", "tool_calls": [{"id": format!("c{results}"), "type": "function", "function": function}]})
    } else {
        json!({"role": "assistant", "content": "done"})
    };
    Answer::new(200).json(json!({"choices": [{"index": 0, "message": message}]}))
}

criterion_group!(benches, load, call, turns);
criterion_main!(benches);
