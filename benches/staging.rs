//! Cost of a call whose writes are held back or noted, beside the same call without either, by the number of files in the folder.

#![allow(missing_docs, reason = "criterion's macros make items of their own")]

#[allow(dead_code, reason = "other benches use the rest")]
mod built;

use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib::policy::Permission;
use toolcrib::staging::{History, HistoryLimits, Limits, RecordHeader, Stages};
use toolcrib::{Audit, Builder, Policy, Runtime, ToolCall};

use built::{TOOLCRIB, tokio};

/// Numbers of files in the folder.
const SIZES: [usize; 3] = [10, 1_000, 100_000];

/// Builds a runtime with the shipped tools over a folder.
fn runtime(folder: &Path, with: impl FnOnce(Builder) -> Builder) -> Runtime {
    let target = Path::new(TOOLCRIB).parent().and_then(Path::parent).expect("the target folder");
    let policy = Policy::default().allow(Permission::Write(folder.to_path_buf()));
    let builder = Runtime::builder(Audit::off()).trusted_source(target.join("crib")).policy(policy);
    with(builder).build().expect("a runtime")
}

fn staging(criterion: &mut Criterion) {
    let tokio = tokio();
    let call = |runtime: &Runtime, name: &str, arguments: &Value| {
        let result = tokio.block_on(runtime.call(ToolCall::new("call", name, arguments.to_string())));
        assert!(!result.is_error(), "{}", result.content());
    };
    let mut group = criterion.benchmark_group("staging");
    group.sample_size(50);
    for size in SIZES {
        let (folder, stages) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
        for number in 0..size {
            let inner = folder.path().join((number / 1_000).to_string());
            std::fs::create_dir_all(&inner)
                .and_then(|()| std::fs::write(inner.join(number.to_string()), "x"))
                .expect("a file");
        }
        let limits = Limits { bytes: u64::MAX, ..Limits::default() };
        let stage = Stages::new(stages.path()).open("bench", limits).expect("a stage");
        let limits = HistoryLimits { bytes: u64::MAX, file: u64::MAX, age: Duration::MAX };
        let record = History::new(stages.path().join("history"), limits).begin(RecordHeader::default());
        let plain = runtime(folder.path(), |builder| builder);
        let staged = runtime(folder.path(), |builder| builder.stage(stage));
        let noted = runtime(folder.path(), |builder| builder.record(record));
        for (kind, runtime) in [("without", &plain), ("staged", &staged), ("noted", &noted)] {
            let (read, write) = (json!({"path": "0/0"}), json!({"path": "0/1", "content": "y"}));
            group.bench_function(format!("read, {kind}, {size} files"), |bencher| {
                bencher.iter(|| call(runtime, "fs_read_file", &read));
            });
            group.bench_function(format!("write, {kind}, {size} files"), |bencher| {
                bencher.iter(|| call(runtime, "fs_write_file", &write));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, staging);
criterion_main!(benches);
