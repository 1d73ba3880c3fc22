//! Cost of a script compared with a component: a call of each in the same run, the share of the script's length and of its
//! reading, and the preparation of the interpreter.

#![allow(missing_docs, reason = "criterion's macros make items of their own")]

#[allow(dead_code, reason = "other benches use the rest")]
mod built;

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use tempfile::TempDir;
use toolcrib::{Audit, Runtime, ToolCall};

use built::{guest, tokio};

/// Ten lines with the work of typical small scripts: read arguments, iterate over a list, build a text.
const TEN_LINES: &str = r#"---
parameters:
  names: { type: array, required: true }
  greeting: { type: string }
script: |
  def greet(greeting, name):
      return "%s, %s" % (greeting, name.strip().title())

  def run(args):
      if not args["names"]:
          return {"error": "names is empty"}
      lines = [greet(args.get("greeting", "hello"), name) for name in args["names"]]
      longest = max([len(line) for line in lines])
      text = "\n".join(lines)
      return {"text": text, "lines": len(lines), "longest": longest}
---
Greets.
"#;

/// The same ten lines; a call runs only the first line of the last function.
const PARSED: &str = "if args.get(\"greeting\") == \"parsed\":\n          return 1\n      if";

/// A line before the ten that calls the host: the script is read anew in each call.
const ANEW: &str = "NOW = time.now_ms()\n  def greet";

const ONE_LINE: &str = "---\nscript: |\n  def run(args): return 1\n---\nOne.\n";

fn runtime(folder: &Path) -> Runtime {
    std::fs::write(folder.join("ten_lines.md"), TEN_LINES).expect("it is written");
    let parsed = TEN_LINES.replacen("if", PARSED, 1).replacen("type: array, required: true", "type: array", 1);
    std::fs::write(folder.join("parsed.md"), parsed).expect("it is written");
    std::fs::write(folder.join("anew.md"), TEN_LINES.replacen("def greet", ANEW, 1)).expect("it is written");
    std::fs::write(folder.join("one_line.md"), ONE_LINE).expect("it is written");
    let builder = Runtime::builder(Audit::off()).source(folder).source(guest("echo"));
    builder
        .interpreter(toolcrib_embedded::interpreter().expect("an interpreter"))
        .compile_cache(folder.join("cache"))
        .build()
        .expect("a runtime")
}

fn call(criterion: &mut Criterion) {
    let (tokio, folder) = (tokio(), TempDir::new().expect("a folder"));
    let runtime = runtime(folder.path());
    for name in ["echo", "one_line"] {
        tokio.block_on(runtime.prepare(name)).expect("a program");
    }
    let pipeline = |name: &str, arguments: &str| {
        let result = tokio.block_on(runtime.call(ToolCall::new("call", name, arguments)));
        assert!(!result.is_error(), "{}", result.content());
    };
    let mut group = criterion.benchmark_group("script");
    group.measurement_time(Duration::from_secs(6)).sample_size(200);
    let names = r#"{"names":["ada","grace ","barbara"],"greeting":"good day"}"#;
    group.bench_function("floor: a component's call", |bencher| bencher.iter(|| pipeline("echo", names)));
    group.bench_function("one line", |bencher| bencher.iter(|| pipeline("one_line", "{}")));
    group.bench_function("ten lines, not run", |bencher| {
        bencher.iter(|| pipeline("parsed", r#"{"greeting":"parsed"}"#));
    });
    group.bench_function("ten lines", |bencher| bencher.iter(|| pipeline("ten_lines", names)));
    group.bench_function("ten lines, read in each call", |bencher| bencher.iter(|| pipeline("anew", names)));
    group.finish();
}

fn load(criterion: &mut Criterion) {
    let (tokio, folder) = (tokio(), TempDir::new().expect("a folder"));
    let prepare = || tokio.block_on(runtime(folder.path()).prepare("one_line")).expect("an interpreter");
    let mut group = criterion.benchmark_group("interpreter");
    group.sample_size(10).bench_function("compiled", |bencher| {
        bencher.iter(|| {
            let _ = std::fs::remove_dir_all(folder.path().join("cache"));
            prepare();
        });
    });
    group.bench_function("cached", |bencher| bencher.iter(prepare));
    group.finish();
}

criterion_group!(benches, call, load);
criterion_main!(benches);
