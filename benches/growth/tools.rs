//! Costs by the number of tools in one manifest, each with a program of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use toolcrib::{Audit, Runtime, ToolCall};

use super::curve::{Axis, Unit, least};
use super::{cache, guest, tokio, toolcrib};

const SIZES: [usize; 7] = [1, 10, 100, 1_000, 2_000, 4_000, 10_000];
/// Calls of one measured run.
const CALLS: u32 = 20;

pub(crate) fn axis() -> Axis {
    let [load, call, list, schema, loaded] = [
        "read all, decide each grant",
        "`toolcrib call` of one",
        "`toolcrib list`",
        "`toolcrib schema`",
        "a call, all being read",
    ];
    let names = [load, call, list, schema, loaded];
    let mut axis = Axis::new("Number of tools", "tools in the manifest", Unit::Count, names);
    let tokio = tokio();
    for tools in SIZES {
        let folder = TempDir::new_in(super::target()).expect("a folder");
        let manifest = crib(folder.path(), tools);
        let build =
            || Runtime::builder(Audit::off()).source(&manifest).compile_cache(cache()).build().expect("a runtime");
        axis.add(load, tools, least(|| drop(build())));
        let runtime = build();
        let echo = || {
            let result = tokio.block_on(runtime.call(ToolCall::new("call", "tool_0", r#"{"text":"hello"}"#)));
            assert!(!result.is_error(), "{}", result.line());
        };
        echo();
        axis.add(loaded, tools, least(|| (0..CALLS).for_each(|_| echo())) / CALLS);
        drop(runtime);
        let source = format!("--tools={}", manifest.display());
        let program = |words: &[&str]| -> Duration {
            least(|| toolcrib(folder.path(), &[words, &[source.as_str()][..]].concat()))
        };
        axis.add(call, tools, program(&["call", "tool_0", r#"{"text":"hello"}"#]));
        axis.add(list, tools, program(&["list"]));
        axis.add(schema, tools, program(&["schema"]));
    }
    axis
}

/// Creates a manifest with this many tools, whose programs share one file on the disk.
fn crib(folder: &Path, tools: usize) -> PathBuf {
    let programs = folder.join("tools/bin");
    fs::create_dir_all(&programs).expect("a folder");
    let first = programs.join("tool_0.wasm");
    fs::copy(guest("echo"), &first).expect("the guest was built");
    let entries = (0..tools).map(|number| {
        let name = format!("tool_{number}");
        if number > 0 {
            fs::hard_link(&first, programs.join(format!("{name}.wasm"))).expect("a link");
        }
        let schema = json!({
            "type": "object",
            "properties": {"text": {"type": "string", "description": "Text to return"}, "limit": {"type": "integer"}},
            "required": ["text"],
        });
        json!({
            "name": name, "description": format!("Return the arguments, number {number}."),
            "command": [format!("./tools/bin/{name}")], "schema": schema,
        })
    });
    let manifest = folder.join("tools.json");
    fs::write(&manifest, json!({"tools": entries.collect::<Vec<_>>()}).to_string()).expect("a manifest");
    manifest
}
