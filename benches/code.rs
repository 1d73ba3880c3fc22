//! Cost of programs that call tools: the start of a fresh one beside the native interpreters of the machine, and a call inside one
//! beside a direct call, with rules and records as a run has them. `CPYTHON=FILE` adds CPython, which `tools/cpython` builds.

#![allow(missing_docs, reason = "criterion's macros make items of their own")]
#![allow(clippy::print_stdout, reason = "the bench names what it cannot compare")]

#[allow(dead_code, reason = "other benches use the rest")]
mod built;

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use tempfile::TempDir;
use toolcrib::call::Behavior;
use toolcrib::policy::Rule;
use toolcrib::{Audit, Policy, Runtime, ToolCall};

use built::{guest, tokio};

/// Programs of native interpreters that print a sum, as commands.
const NATIVE: [&[&str]; 2] = [&["python3", "-I", "-c", "print(1+1)"], &["node", "-e", "console.log(1+1)"]];

/// A runtime with both languages, or with another interpreter, two rules that match no call, and a log.
fn runtime(folder: &Path, interpreter: Option<&Path>) -> Runtime {
    let rule = |pattern: &str| Rule::new(Behavior::Deny, pattern.parse().expect("a pattern"), "bench");
    let rules = ["echo(path=*.key)", "echo(n=-1)"].map(rule);
    let mut builder = Runtime::builder(Audit::folder(folder.join("audit")))
        .source(guest("echo"))
        .policy(rules.into_iter().fold(Policy::default(), Policy::rule))
        .compile_cache(folder.join("cache"));
    for language in toolcrib_embedded::LANGUAGES {
        builder = builder.code_interpreter((language.name, language.guide), language.digest, language.read);
    }
    let builder = match interpreter {
        Some(file) => builder.code_component(file).expect("an interpreter"),
        None => builder,
    };
    builder.build().expect("a runtime")
}

fn programs(criterion: &mut Criterion) {
    let (tokio, folder) = (tokio(), TempDir::new().expect("a folder"));
    let shipped = runtime(folder.path(), None);
    let call_in = |runtime: &Runtime, name: &str, arguments: String| {
        let result = tokio.block_on(runtime.call(ToolCall::new("call", name, arguments)));
        assert!(!result.is_error(), "{}", result.content());
    };
    let call = |name: &str, arguments: String| call_in(&shipped, name, arguments);
    let arguments = |language: &str, code: &str| json!({"language": language, "code": code}).to_string();
    let program = |language: &str, code: &str| call("run_code", arguments(language, code));
    tokio.block_on(shipped.prepare("echo")).expect("a program");
    let mut group = criterion.benchmark_group("code");
    group.measurement_time(Duration::from_secs(6)).sample_size(100);
    for language in toolcrib_embedded::LANGUAGES {
        program(language.name, "1+1");
        group.bench_function(format!("{}: fresh program", language.name), |bencher| {
            bencher.iter(|| program(language.name, "1+1"));
        });
    }
    if let Some(file) = env::var_os("CPYTHON") {
        let cpython = runtime(folder.path(), Some(Path::new(&file)));
        let fresh = || call_in(&cpython, "run_code", arguments("python", "print(1+1)"));
        fresh();
        group.bench_function("CPython: fresh program", |bencher| bencher.iter(fresh));
    }
    for command in NATIVE {
        let spawn = || Command::new(command[0]).args(&command[1..]).stdout(Stdio::null()).status();
        if !spawn().is_ok_and(|status| status.success()) {
            println!("`{}` is not installed here: not compared", command[0]);
            continue;
        }
        group.sample_size(20).bench_function(format!("{} spawned", command[0]), |bencher| {
            bencher.iter(|| spawn().expect("a process"));
        });
    }
    group.sample_size(20).bench_function("direct call", |bencher| {
        bencher.iter(|| call("echo", json!({"n": 1}).to_string()));
    });
    group.bench_function("python: 1,000 calls, one after another", |bencher| {
        bencher.iter(|| program("python", "for n in range(1000):\n    tools.echo(n=n)"));
    });
    let gathered = "import asyncio\nlen(await asyncio.gather(*[tools.echo(n=n) for n in range(100)]))";
    group.bench_function("python: 100 calls at once", |bencher| bencher.iter(|| program("python", gathered)));
    group.finish();
}

criterion_group!(benches, programs);
criterion_main!(benches);
