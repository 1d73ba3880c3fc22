//! Compilation ahead of the first call: code in the cache is only looked for, and loaded by the first call.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::tool::Limits;
use toolcrib::{Audit, Error, Outcome, Runtime, ToolCall};

use super::embedded::{LONG, runtime, spoiling};
use super::{SMALL, compiled, crib, outcome};
use crate::crib::{Crib, target};
use crate::screen::Page;

fn compile(runtime: &Runtime, name: &str) -> Result<(), Error> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(runtime.compile(name))
}

/// Program like [`SMALL`] with other data.
fn other() -> Vec<u8> {
    wat::parse_str(SMALL.replace("small", "other")).unwrap()
}

/// Program that is compiled and cannot be linked: the name of its import is known, and the type of the function is another.
fn unlinkable() -> Vec<u8> {
    let import = r#"(component (import "wasi:cli/environment@0.2.0" (instance (export "get-environment" (func (param "a" u32)))))"#;
    wat::parse_str(SMALL.replacen("(component", import, 1)).unwrap()
}

#[test]
fn code_in_the_cache_is_not_loaded_before_the_first_call() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    let asked = || compiler.asked.load(SeqCst);
    compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
    assert_eq!((asked(), compiled(&crib.path("cache")).len()), (1, 1));

    let second = runtime(crib.dir.path(), compiler.clone(), LONG);
    compile(&second, "n").unwrap();
    assert_eq!(asked(), 1, "the code is in the cache");
    fs::remove_file(&compiled(&crib.path("cache"))[0]).unwrap();
    assert_eq!((outcome(&second), asked()), (Outcome::Ok, 2), "it was not loaded, and is gone");
    fs::remove_file(&compiled(&crib.path("cache"))[0]).unwrap();
    compile(&second, "n").unwrap();
    assert_eq!((outcome(&second), asked()), (Outcome::Ok, 2), "a loaded program needs no cache");
    assert!(matches!(compile(&second, "other"), Err(Error::UnknownTool { .. })));
}

#[test]
fn a_program_that_was_replaced_is_compiled() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
    fs::write(crib.path("tools/bin/n.wasm"), other()).unwrap();
    compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
    assert_eq!((compiler.asked.load(SeqCst), compiled(&crib.path("cache")).len()), (2, 2));
}

#[test]
fn another_program_in_place_of_the_one_that_was_found_is_refused() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
    let second = runtime(crib.dir.path(), compiler.clone(), LONG);
    compile(&second, "n").unwrap();
    fs::write(crib.path("tools/bin/n.wasm"), other()).unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = tokio.block_on(second.call(ToolCall::new("", "n", "{}")));
    assert_eq!(result.receipt.outcome, Outcome::BadComponent);
    assert!(result.content().contains("has changed since its source was reviewed or loaded"), "{}", result.content());
    assert_eq!(outcome(&runtime(crib.dir.path(), compiler, LONG)), Outcome::Ok, "the next start has the new program");
}

#[test]
fn code_under_another_key_is_compiled_again() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
    fs::remove_file(crib.path("cache/key")).unwrap();
    for asked in [2, 2] {
        compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
        assert_eq!(compiler.asked.load(SeqCst), asked);
    }
    // Without a key that can be used nothing is found or stored.
    fs::write(crib.path("cache/key"), "short").unwrap();
    for asked in [3, 4] {
        compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
        assert_eq!(compiler.asked.load(SeqCst), asked);
    }
}

#[test]
fn code_that_counts_fuel_is_compiled_apart() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    for (fuel, asked) in [(None, 1), (Some(1 << 30), 2), (None, 2), (Some(1 << 30), 2)] {
        let mut limits = Limits::with_deadline(LONG);
        limits.fuel = fuel;
        let builder = Runtime::builder(Audit::off())
            .trusted_source(crib.path("tools.json"))
            .compile_cache(crib.path("cache"))
            .compiler(compiler.clone());
        compile(&builder.limits(limits).build().unwrap(), "n").unwrap();
        assert_eq!(compiler.asked.load(SeqCst), asked, "{fuel:?}");
    }
}

#[test]
fn another_program_in_place_of_a_reviewed_one_is_refused_although_its_code_is_in_the_cache() {
    let crib = crib(&other());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
    fs::write(crib.path("tools/bin/n.wasm"), wat::parse_str(SMALL).unwrap()).unwrap();
    let path = crib.path("tools.json");
    let digest = toolcrib::policy::review(&path).unwrap().digest;
    let builder = Runtime::builder(Audit::off()).source(&path).trust_at(&path, digest);
    let runtime = builder.compile_cache(crib.path("cache")).compiler(compiler.clone()).build().unwrap();
    fs::write(crib.path("tools/bin/n.wasm"), other()).unwrap();
    let Err(Error::Component { reason, .. }) = compile(&runtime, "n") else { panic!("it was accepted") };
    assert!(reason.contains("has changed since its source was reviewed"), "{reason}");
}

#[test]
fn a_program_that_cannot_be_linked_is_found_by_each_runtime_and_compiled_once() {
    let crib = crib(&unlinkable());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    for _ in 0..2 {
        let runtime = runtime(crib.dir.path(), compiler.clone(), LONG);
        let Err(Error::Component { reason, .. }) = compile(&runtime, "n") else { panic!("it was linked") };
        assert!(reason.contains("get-environment"), "{reason}");
        fs::write(crib.path("tools/bin/n.wasm"), wat::parse_str(SMALL).unwrap()).unwrap();
        assert!(compile(&runtime, "n").is_err(), "the tool stays disabled");
        assert_eq!(outcome(&runtime), Outcome::BadComponent);
        fs::write(crib.path("tools/bin/n.wasm"), unlinkable()).unwrap();
    }
    assert_eq!((compiler.asked.load(SeqCst), compiled(&crib.path("cache")).len()), (1, 1));
}

#[test]
fn the_interpreter_of_scripts_is_only_looked_for_in_the_cache() {
    let crib = Crib::new();
    fs::write(crib.path("s.md"), "---\nscript: |\n  def run(args):\n      return 1\n---\nA tool.\n").unwrap();
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    let reads = Arc::new(AtomicUsize::new(0));
    let runtime = |cache: &Path| {
        let reads = reads.clone();
        let read = move || {
            reads.fetch_add(1, SeqCst);
            toolcrib_embedded::interpreter()
        };
        let builder = Runtime::builder(Audit::off()).trusted_source(crib.path("s.md"));
        let builder = builder.stored_interpreter(toolcrib_embedded::INTERPRETER_DIGEST, read);
        builder.compile_cache(cache).compiler(compiler.clone()).build().unwrap()
    };
    // Another test may have compiled it for the cache that all tests share.
    let shared = target().join("test-cache");
    compile(&runtime(&shared), "s").unwrap();
    let before = (compiler.asked.load(SeqCst), reads.load(SeqCst));

    // Entries of the same names under the same key, which would be compiled again if they were loaded.
    let cache = crib.path("cache");
    fs::create_dir(&cache).unwrap();
    // Nobody else may write it, whatever the mask of this process.
    #[cfg(unix)]
    fs::set_permissions(&cache, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    fs::copy(shared.join("key"), cache.join("key")).unwrap();
    let hex = toolcrib_embedded::INTERPRETER_DIGEST.trim_start_matches("sha256:");
    for entry in compiled(&shared) {
        let name = entry.file_name().unwrap().to_str().unwrap();
        if name.starts_with(hex) {
            // A copy has the rights of the entry.
            fs::copy(&entry, cache.join(name)).unwrap();
            fs::write(cache.join(name), [0; 64]).unwrap();
        }
    }
    let entries = compiled(&cache);
    assert!(!entries.is_empty());
    compile(&runtime(&cache), "s").unwrap();
    assert_eq!((compiler.asked.load(SeqCst), reads.load(SeqCst)), before, "it was loaded");
    assert!(entries.iter().all(|entry| fs::read(entry).unwrap() == [0; 64]));
}

#[test]
fn an_interpreter_with_other_bytes_than_its_digest_states_runs_no_script() {
    let crib = Crib::new();
    fs::write(crib.path("s.md"), "---\nscript: |\n  def run(args):\n      return 1\n---\nA tool.\n").unwrap();
    let stated = toolcrib::source::digest(b"another");
    let builder = Runtime::builder(Audit::off()).trusted_source(crib.path("s.md"));
    let runtime = builder.stored_interpreter(stated.clone(), toolcrib_embedded::interpreter).build().unwrap();
    let error = compile(&runtime, "s").unwrap_err().to_string();
    assert!(error.contains(&stated) && error.contains(toolcrib_embedded::INTERPRETER_DIGEST), "{error}");
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = tokio.block_on(runtime.call(ToolCall::new("", "s", "{}")));
    assert_eq!(result.receipt.outcome, Outcome::BadComponent, "{}", result.content());
}

/// Runs a scripted model that calls the tool `n` or nothing, with a cache of its own.
fn run(crib: &Crib, calls: &Value, flags: &[&str]) -> crate::crib::Ran {
    let turns = json!([{ "content": "c", "tool_calls": calls }, { "content": "done" }]);
    fs::write(crib.path("script.json"), json!({ "prompt": "go", "turns": turns }).to_string()).unwrap();
    let cache = crib.path("cache");
    let args = ["run", "--script", "script.json", "--no-keep", "--cache-dir", cache.to_str().unwrap()];
    crib.run(&[&args[..], flags].concat())
}

#[test]
fn a_run_loads_the_code_of_the_tools_that_it_calls_or_of_all_with_strict_and_replaces_what_is_damaged() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let call = json!([{ "name": "n", "arguments": {} }]);
    let first = run(&crib, &json!([]), &[]);
    assert_eq!(first.code, Some(0), "{first:?}");
    let [file] = compiled(&crib.path("cache")).try_into().expect("the code of one program");
    let whole = fs::read(&file).unwrap();
    let damaged = vec![0; whole.len()];
    fs::write(&file, &damaged).unwrap();
    let uncalled = run(&crib, &json!([]), &[]);
    assert_eq!((uncalled.code, fs::read(&file).unwrap() == damaged), (Some(0), true), "it was loaded: {uncalled:?}");
    let strict = run(&crib, &json!([]), &["--strict"]);
    assert_eq!((strict.code, fs::read(&file).unwrap() == damaged), (Some(0), false), "{strict:?}");
    fs::write(&file, &damaged).unwrap();
    let called = run(&crib, &call, &["--json"]);
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.stdout.contains(r#""outcome":"ok""#), "{called:?}");
    assert_eq!(fs::read(&file).unwrap().len(), whole.len());
    assert_ne!(fs::read(&file).unwrap(), damaged, "it was compiled again");
}

#[test]
fn a_run_reports_a_program_that_cannot_be_linked_at_each_start() {
    let page = Page::new();
    let crib = crib(&unlinkable());
    for _ in 0..2 {
        let ran = run(&crib, &json!([]), &[]);
        page.show(&ran);
        let strict = run(&crib, &json!([]), &["--strict"]);
        page.show(&strict);
    }
    page.matches("run/not-linked");
}
