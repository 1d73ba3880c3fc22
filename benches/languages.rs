//! Cost of a typed component in each language: its preparation anew and from the cache, and a call of the same
//! function, in one run. The floor is the same function in a component in Rust. Two plain programs that read and print
//! JSON are measured with them: one of a few instructions and one in Go, both core modules. Components that
//! `guest-sdk/examples/build` has not built are left out.

#![allow(missing_docs, reason = "criterion's macros make items of their own")]
#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[allow(dead_code, reason = "other benches use the rest")]
mod built;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use tempfile::TempDir;
use toolcrib::{Audit, Runtime, ToolCall};

use built::{guest, target, tokio};

const LANGUAGES: [&str; 4] = ["c", "javascript", "go", "python"];
/// Text of forty words.
const TEXT: &str = "the quick brown fox jumps over the lazy dog and the dog does not mind at all for it is a lazy dog and \
                    the fox is quick and brown and will be gone before the dog wakes up to see it";

fn runtime(component: &Path, cache: &Path) -> Runtime {
    let builder = Runtime::builder(Audit::off()).source(component);
    builder.compile_cache(cache).build().expect("a runtime")
}

/// Program that reads its arguments into memory and prints them.
const ECHO: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 2)
    (data (i32.const 0) "\40\00\00\00\00\f0\00\00")
    (func (export "_start")
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 4)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Components, each with the measured tool and its arguments; `folder` is for programs that are generated here.
fn components(folder: &Path) -> Vec<(&'static str, PathBuf, &'static str, String)> {
    let rust = guest("typed");
    let text = serde_json::json!(TEXT);
    let mut all = vec![("rust, floor: gives the text back", rust, "a_string", format!("{{\"value\":{text}}}"))];
    for language in LANGUAGES {
        let path = target().join(format!("examples/words_{language}.wasm"));
        match path.exists() {
            true => all.push((language, path, "most_frequent", format!("{{\"text\":{text},\"limit\":5}}"))),
            false => println!("left out: {language}, which `guest-sdk/examples/build` has not built"),
        }
    }
    let echo = folder.join("echo.wasm");
    std::fs::write(&echo, wat::parse_str(ECHO).expect("a module")).expect("a file");
    all.push(("core module, floor: gives its arguments back", echo, "echo", format!("{{\"text\":{text}}}")));
    let go = target().join("examples/count_go.wasm");
    if go.exists() {
        all.push(("core module in Go", go, "count_go", format!("{{\"text\":{text},\"lower\":true}}")));
    }
    all
}

fn languages(criterion: &mut Criterion) {
    let (tokio, cache, programs) = (tokio(), TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    for (language, path, tool, arguments) in components(programs.path()) {
        // Compiling takes long: once is enough.
        let since = Instant::now();
        let ready = runtime(&path, cache.path());
        tokio.block_on(ready.prepare(tool)).expect("a program");
        println!("{language}: compiled anew in {:.0?}", since.elapsed());
        let mut group = criterion.benchmark_group(language);
        group.sample_size(10).bench_function("load, cached", |bencher| {
            bencher.iter(|| tokio.block_on(runtime(&path, cache.path()).prepare(tool)).expect("a program"));
        });
        group.measurement_time(Duration::from_secs(3)).sample_size(100).bench_function("call", |bencher| {
            bencher.iter(|| {
                let result = tokio.block_on(ready.call(ToolCall::new("call", tool, arguments.as_str())));
                assert!(!result.is_error(), "{}", result.content());
            });
        });
        group.finish();
    }
}

criterion_group!(benches, languages);
criterion_main!(benches);
