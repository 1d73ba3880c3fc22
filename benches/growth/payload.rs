//! Costs by the size of arguments, and by the size of results.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib::results::Results;
use toolcrib::tool::Limits;
use toolcrib::{Audit, Runtime, ToolCall};

use super::curve::{Axis, Unit, least};
use super::{cache, guest, tokio};

/// Sizes of arguments: 4 MiB is the maximum.
const ARGUMENTS: [usize; 6] = [1_000, 10_000, 100_000, 400_000, 1_300_000, 4_000_000];
const RESULTS: [usize; 7] = [1_000, 10_000, 100_000, 1_000_000, 10_000_000, 32_000_000, 100_000_000];
const LINE: &str = "The quick brown fox jumps over the lazy dog. ";
/// Results that are stored at once: storing another one looks at all of them.
const STORED: usize = 2;
/// Pattern that the log masks.
const REDACTED: &str = "token-[0-9]+";

/// Limits for the largest results.
fn limits() -> Limits {
    let mut limits = Limits::with_deadline(Duration::from_secs(120));
    (limits.memory, limits.stdout, limits.host_call) = (1 << 30, 256 << 20, 256 << 20);
    limits
}

fn runtime(audit: Audit, tool: &str) -> toolcrib::Builder {
    Runtime::builder(audit).source(guest(tool)).limits(limits()).compile_cache(cache())
}

/// Measures a call, which must succeed.
fn call(tokio: &tokio::runtime::Runtime, runtime: &Runtime, tool: &str, arguments: &str) -> Duration {
    least(|| {
        let result = tokio.block_on(runtime.call(ToolCall::new("call", tool, arguments)));
        assert!(!result.is_error(), "{}", result.line());
    })
}

/// One long text of this many bytes.
fn text(bytes: usize) -> Value {
    json!({"text": LINE.repeat(bytes / LINE.len() + 1)[..bytes]})
}

/// Many short texts of this many bytes together.
fn list(bytes: usize) -> Value {
    // Each has quotes and a comma.
    json!({"lines": vec![LINE; bytes / (LINE.len() + 3)]})
}

pub(crate) fn arguments() -> Axis {
    let [plain, logged, masked, many] = [
        "one text, no log",
        "one text, with its record",
        "the same, masked by a pattern",
        "many short texts, with their record",
    ];
    let mut axis =
        Axis::new("Size of the arguments, which are returned", "arguments", Unit::Bytes, [plain, logged, masked, many]);
    let (tokio, folder) = (tokio(), TempDir::new().expect("a folder"));
    let log = |name: &str| Audit::folder(folder.path().join(name));
    let build = |audit| runtime(audit, "echo").build().expect("a runtime");
    let (without, with) = (build(Audit::off()), build(log("plain")));
    let masks = build(log("masked").redact([REDACTED.to_owned()]));
    for bytes in ARGUMENTS {
        let (text, list) = (text(bytes).to_string(), list(bytes).to_string());
        axis.add(plain, bytes, call(&tokio, &without, "echo", &text));
        axis.add(logged, bytes, call(&tokio, &with, "echo", &text));
        axis.add(masked, bytes, call(&tokio, &masks, "echo", &text));
        axis.add(many, bytes, call(&tokio, &with, "echo", &list));
    }
    axis
}

pub(crate) fn results() -> Axis {
    let [whole, stored] = ["whole", "stored, with a preview"];
    let mut axis = Axis::new("Size of the result", "result", Unit::Bytes, [whole, stored]);
    let (tokio, folder) = (tokio(), TempDir::new_in(super::target()).expect("a folder"));
    let log = |name: &str| Audit::folder(folder.path().join(name));
    let all = runtime(log("whole"), "big_result").build().expect("a runtime");
    let results = Results::folder(folder.path().join("results")).max_bytes(1 << 30).max_results(STORED);
    let previews = runtime(log("stored"), "big_result").results(results).max_inline(500).build().expect("a runtime");
    for bytes in RESULTS {
        let arguments = json!({"bytes": bytes}).to_string();
        axis.add(whole, bytes, call(&tokio, &all, "big_result", &arguments));
        axis.add(stored, bytes, call(&tokio, &previews, "big_result", &arguments));
    }
    axis
}
