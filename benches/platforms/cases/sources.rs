//! Each source format: a call, its list, and what `validate` and `inspect` show of it.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::crib::{guest, target, toolbox};

use super::{CRIB, Case, case, copy_crib, install, install_wat, manifest, nothing, write};

/// Component with one function, as in the book.
const AREA: &str = r#"(component
    (core module $code (func (export "area") (param i32 i32) (result i32) (i32.mul (local.get 0) (local.get 1))))
    (core instance $instance (instantiate $code))
    (func (export "area") (param "width" u8) (param "length" u8) (result u32)
        (canon lift (core func $instance "area"))))"#;

/// Core module for preview 1 that prints a line.
const MODULE: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\10\00\00\00\0b\00\00\00")
    (data (i32.const 16) "{\"a\":\"\\n\"}\n")
    (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

/// Functions of the component `typed`, with their argument.
const TYPED: &[(&str, &str)] = &[
    ("a_u64", "18446744073709551615"),
    ("a_s64", "-9223372036854775808"),
    ("a_f32", "0.1"),
    ("a_f64", "-1.5e300"),
    ("a_f64", r#""NaN""#),
    ("a_char", r#""🦀""#),
    ("a_string", r#""a \"b\"\né""#),
    ("some_bytes", r#""AAEC/w==""#),
    ("a_record", r#"{"size":3,"label":null}"#),
    ("a_variant", r#"{"circle":2.5}"#),
    ("some_flags", r#"["read","run"]"#),
    ("a_nested_option", r#"{"some":null}"#),
    ("a_u8", "256"),
];

const SCRIPT: &str = r#"---
parameters:
  folder: {type: string, description: Folder to search., required: true}
capabilities: {files: read}
script: |
  def run(args):
      found = []
      for entry in fs.list(args["folder"]):
          if entry["type"] == "file" and entry["name"].endswith(".md"):
              found += re.findall("TODO: .*", fs.read(args["folder"] + "/" + entry["name"]))
      return {"found": sorted(found), "digest": hash.sha256("x"), "third": 1 / 3, "power": math.pow(2, 0.5)}
---
List the open tasks.
"#;

pub(super) fn cases() -> Vec<Case> {
    let groups = [tools_json(), records(), markdown(), components(), modules(), bundles()];
    groups.into_iter().flatten().collect()
}

fn tools_json() -> Vec<Case> {
    let broken = r#"{ "tools": [
        { "name": "clock", "command": ["./tools/bin/clock"], "timeoutSecs": 5 },
        { "name": "wall", "command": ["../wall"] } ] }"#;
    let tools = "--tools=crib";
    let mut cases = vec![
        case(
            "tools.json",
            "a broken manifest",
            move |folder| write(folder, "tools.json", broken),
            &[&["validate"], &["list"]],
        ),
        case(
            "tools.json",
            "no manifest",
            nothing,
            &[&["list", "--tools=no/such/tools.json"], &["list"], &["validate"]],
        ),
        case(
            "tools.json",
            "a program that is missing",
            |folder| manifest(folder, &one_tool("gone")),
            &[&["call", "gone"]],
        ),
        case(
            "tools.json",
            "a program that is none",
            |folder| {
                manifest(folder, &one_tool("text"));
                write(folder, "tools/bin/text.wasm", "text");
            },
            &[&["validate"], &["call", "text"]],
        ),
        case(
            "tools.json",
            "the shipped tools",
            copy_crib,
            &[&["validate", "crib"], &["list", tools], &["list", "--json", tools], &["schema", tools]],
        ),
        case(
            "tools.json",
            "the built-in tools",
            nothing,
            &[&["call", "calculate", r#"{"expression":"6*7"}"#, "--tools=builtin"], &["list"]],
        ),
    ];
    for tool in ["fs_edit_range", "fetch_page", "chart", "apply_patch"] {
        cases.push(case("tools.json", format!("inspection of {tool}"), copy_crib, &[&["inspect", tool, tools]]));
    }
    cases
}

fn one_tool(name: &str) -> serde_json::Value {
    json!([{"name": name, "command": [format!("./tools/bin/{name}")]}])
}

fn records() -> Vec<Case> {
    let record = json!({
        "schema_version": "0.2.0", "interface_id": "example.sums.interface", "tool_id": "example.sums",
        "description": "Calculate", "component": "tools/bin/sums.wasm",
        "runtime_input_schema": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
        "capabilities": {}, "rendering": {"ui_summary": "sum {expression}"},
    });
    let prepare = move |folder: &Path| {
        fs::copy(toolbox().join("tools/bin/calculate.wasm"), folder.join("tools/bin/sums.wasm")).expect("a tool");
        write(folder, "sums.tool.json", record.to_string());
        write(folder, "broken.tool.json", r#"{"tool_id": 7}"#);
    };
    let source = "--tools=sums.tool.json";
    let runs: &[&[&str]] = &[
        &["validate", "sums.tool.json"],
        &["call", "sums", r#"{"expression":"2^0.5"}"#, source],
        &["call", "sums", "{}", source],
        &["export", "--tools=sums.tool.json"],
        &["validate", "broken.tool.json"],
    ];
    vec![case("agent tool", "a record, and a broken one", prepare, runs)]
}

fn markdown() -> Vec<Case> {
    let project = |folder: &Path| {
        write(folder, ".harness/tools/todos.md", SCRIPT);
        write(folder, "notes/friday.md", "TODO: oil the lathe\nrest\n");
        write(folder, "notes/monday.md", "TODO: sweep\r\n");
    };
    let alone = |folder: &Path| {
        write(folder, "todos.md", SCRIPT);
        write(folder, "crlf.md", SCRIPT.replace('\n', "\r\n"));
        write(folder, "broken.md", SCRIPT.replace("found = []", "found = ["));
        write(folder, "deep/loop.md", SCRIPT.replace("found = []", "found = [x for x in range(1000000000)]"));
    };
    // The emulator compiles the interpreter for up to two minutes.
    let patient = "--set=limits.compile_timeout=10m";
    let call = ["call", "todos", r#"{"folder":"."}"#, patient];
    let with = |flags: &[&'static str]| [&call, flags].concat();
    vec![
        case(
            "markdown",
            "a project",
            project,
            &[&["validate", patient], &["list"], &with(&["--allow-read=notes"]), &with(&[])],
        ),
        case(
            "markdown",
            "one file",
            alone,
            &[&["validate", "todos.md", patient], &with(&["--tools=todos.md", "--allow-read=work"])],
        ),
        case(
            "markdown",
            "a broken script",
            alone,
            &[
                &["validate", "broken.md", patient],
                &["call", "broken", r#"{"folder":"."}"#, "--tools=broken.md", patient],
            ],
        ),
        case(
            "markdown",
            "lines that end as on Windows",
            alone,
            &[
                &["validate", "crlf.md", patient],
                &["call", "crlf", r#"{"folder":"."}"#, "--tools=crlf.md", "--allow-read=work", patient],
            ],
        ),
        case(
            "markdown",
            "a script without end",
            alone,
            &[&["call", "loop", r#"{"folder":"."}"#, "--tools=deep/loop.md", "--set=limits.fuel=50000000", patient]],
        ),
    ]
}

fn components() -> Vec<Case> {
    let area = |folder: &Path| install_wat(folder, "area.wasm", AREA);
    let typed = |folder: &Path| copy_guest(folder, "typed");
    let rich = |folder: &Path| copy_guest(folder, "rich");
    let source = "--tools=area.wasm";
    let mut cases = vec![
        case(
            "component",
            "a plain component",
            area,
            &[
                &["list", source],
                &["inspect", "area", source],
                &["call", "area", r#"{"width":6,"length":7}"#, source],
                &["call", "area", r#"{"width":6,"length":300}"#, source],
                &["call", "area", r#"{"width":6}"#, source],
            ],
        ),
        case("component", "rich tools", rich, &[&["list", "--tools=rich.wasm"], &["describe", "rich.wasm"]]),
    ];
    for (function, value) in TYPED {
        let arguments = format!(r#"{{"value":{value}}}"#);
        cases.push(case(
            "component",
            format!("{function} {value}"),
            typed,
            &[&["call", function, &arguments, "--tools=typed.wasm"]],
        ));
    }
    cases
}

fn copy_guest(folder: &Path, name: &str) {
    fs::copy(guest(name), folder.join(format!("{name}.wasm"))).expect("the guests were built");
}

fn modules() -> Vec<Case> {
    let module = |folder: &Path| {
        install_wat(folder, "tools/bin/line.wasm", MODULE);
        install(folder, "echo", "echo");
        manifest(folder, &json!([one_tool("line")[0], one_tool("echo")[0]]));
    };
    vec![case(
        "core module",
        "a module for preview 1",
        module,
        &[
            &["validate"],
            &["inspect", "line"],
            &["call", "line"],
            &["call", "line", "--json"],
            &["call", "echo", r#"{"ä":[1.5,1e21,-0.0,"\u0000"]}"#],
        ],
    )]
}

fn bundles() -> Vec<Case> {
    // Packed by each platform: the digest is printed, and the file is compared.
    let pack: &[&str] = &["bundle", "pack", CRIB, "-o", "work/tools.tar", "--name", "acme/tools", "--version", "1.0.0"];
    // Packed once, by the first platform.
    let packed = "packed.tar";
    let copy = |folder: &Path| {
        let packed = fs::read(target().join("platforms/packed.tar")).expect("it was packed before");
        write(folder, "packed.tar", packed);
    };
    let source = format!("--tools={packed}");
    vec![
        case(
            "bundle",
            "packed here",
            nothing,
            &[pack, &["call", "calculate", r#"{"expression":"6*7"}"#, "--tools=work/tools.tar"]],
        ),
        case(
            "bundle",
            "packed by the first platform",
            copy,
            &[
                &["bundle", "inspect", packed],
                &["validate", packed],
                &["list", &source],
                &["call", "calculate", r#"{"expression":"1/3"}"#, &source],
                &["call", "fs_list_dir", r#"{"path":"."}"#, &source, "--allow-read=work"],
            ],
        ),
    ]
}
