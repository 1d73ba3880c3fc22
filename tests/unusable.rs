//! Unusable tools: the others stay usable, each unusable tool is named with the reason, and every command refuses only
//! that tool.

mod called;
mod loading;
mod many;
mod places;

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

/// Advice for every program of WASI 0.3.
const WASI_0_3: &str = "built for WASI 0.3, which is not supported; build it for WASI 0.2 (wasm32-wasip2)";
/// Component with one function that is lifted asynchronously.
const ASYNCHRONOUS: &str = r#"(component
    (core module $m (func (export "f") (result i32) i32.const 0) (func (export "c") (param i32 i32 i32) (result i32) i32.const 0))
    (core instance $i (instantiate $m))
    (func (export "run") async (canon lift (core func $i "f") async (callback (core func $i "c")))))"#;
/// Core module that a host starts by `_initialize`, and then calls.
const REACTOR: &str = r#"(module (func (export "_initialize")) (func (export "add") (result i32) i32.const 1))"#;

fn entry(name: &str) -> Value {
    json!({"name": name, "command": [format!("./tools/bin/{name}")]})
}

/// Creates a crib with one usable tool and four unusable ones, each for another reason.
fn mixed() -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    fs::write(crib.path("tools/bin/garbage.wasm"), "these bytes are no program").unwrap();
    crib.install_wat("asynchronous", ASYNCHRONOUS);
    crib.install_wat("reactor", REACTOR);
    let names = ["missing", "garbage", "asynchronous", "reactor", "echo"];
    crib.manifest(&json!({"tools": names.map(entry)}));
    crib
}

/// Unusable tools of [`mixed`], each with words of its reason.
const BAD: [(&str, &str); 4] = [
    ("missing", "program not found"),
    ("garbage", "not a WebAssembly component or module"),
    ("asynchronous", WASI_0_3),
    ("reactor", "a core module that is not a command: as a reactor, it exports `_initialize`, `add` and no `_start`"),
];

#[test]
fn each_bad_tool_is_named_in_a_warning_and_the_others_are_listed() {
    let page = Page::new();
    let crib = mixed();
    page.run(&crib, &["list"]);
    let listed: Value = serde_json::from_str(&crib.run(&["list", "--json"]).stdout).unwrap();
    let of = |name: &str| listed.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone();
    assert_eq!(of("echo")["disabled"], Value::Null);
    for (name, why) in BAD {
        let output = of(name);
        assert!(output["disabled"].as_str().is_some_and(|output| output.contains(why)), "{output}");
        assert_eq!(output["granted"], json!([]), "{output}");
    }
    assert!(crib.logs().is_empty(), "nothing ran");
    page.matches("unusable/list");
}

#[test]
fn an_extension_of_webassembly_is_named_alike_by_every_command() {
    let extensions = [
        ("continued", "(module (type $f (func)) (type (cont $f)))", "`stack-switching`"),
        ("within", "(component (component (core module (memory i64 1))))", "`memory64`"),
        ("second", "(component (core module) (core module (type (struct))))", "`gc`"),
        ("shared", "(module (memory 1 2 shared))", "`threads`"),
    ];
    for (name, text, extension) in extensions {
        let crib = Crib::with_guests(&["echo"]);
        crib.install_wat(name, text);
        crib.manifest(&json!({"tools": [entry(name), entry("echo")]}));
        let is_named = |output: &str, command: &str| assert!(output.contains(extension), "{command} {name}: {output}");
        is_named(&crib.run(&["validate", "tools.json"]).stdout, "validate");
        let listed: Value = serde_json::from_str(&crib.run(&["list", "--json"]).stdout).unwrap();
        let tool = listed.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        is_named(tool["disabled"].as_str().unwrap_or_default(), "list");
        let inspected: Value = serde_json::from_str(&crib.run(&["inspect", name, "--json"]).stdout).unwrap();
        is_named(inspected["reason"].as_str().unwrap_or_default(), "inspect");
        assert!(!crib.run(&["schema"]).stdout.contains(name), "the schema names {name}");
        is_named(&crib.run(&["call", name, "{}"]).stdout, "call");
    }
}

#[test]
fn a_schema_leaves_a_bad_tool_out_and_an_inspection_shows_its_reason() {
    let page = Page::new();
    let crib = mixed();
    let schema: Value = serde_json::from_str(&page.run(&crib, &["schema"]).stdout).unwrap();
    let names: Vec<_> = schema.as_array().unwrap().iter().map(|one| &one["function"]["name"]).collect();
    assert_eq!(names, ["echo"]);
    for (name, why) in BAD {
        page.run(&crib, &["schema", name]);
        page.run(&crib, &["inspect", name]);
        let output: Value = serde_json::from_str(&crib.run(&["inspect", name, "--json"]).stdout).unwrap();
        assert_eq!(output["callable"], false, "{output}");
        assert!(output["reason"].as_str().is_some_and(|output| output.contains(why)), "{output}");
    }
    page.matches("unusable/inspect");
}

#[test]
fn a_call_of_a_bad_tool_fails_with_its_reason_and_leaves_one_record() {
    let page = Page::new();
    let crib = mixed();
    assert_eq!(crib.outcome("echo", &json!({"a": 1}), &[]), "ok");
    for (count, (name, why)) in BAD.into_iter().enumerate() {
        let line = crib.call(name, &json!({}), &[]);
        assert_eq!(line["receipt"]["outcome"], "bad-component", "{line}");
        let output = line["error"].as_str().unwrap();
        assert!(output.contains(why) && !output.contains(crib.dir.path().to_str().unwrap()), "{output}");
        let records = crib.records();
        assert_eq!(records.len(), count + 2, "one record a call");
        let record = records.last().unwrap();
        assert_eq!((&record["tool"], &record["outcome"]), (&json!(name), &json!("bad-component")), "{record}");
    }
    page.run(&crib, &["call", "missing"]);
    // Text input, rules and wrong arguments do not hide the reason.
    for args in
        [&["call", "reactor", "--text", "x"][..], &["call", "reactor", "{"], &["call", "reactor", "--deny-tool=*"]]
    {
        page.run(&crib, args);
    }
    page.matches("unusable/call");
}

#[test]
fn a_run_goes_on_without_bad_tools_and_tells_the_model_why() {
    let crib = mixed();
    let calls: Vec<_> = BAD.iter().map(|(name, _)| json!({"name": name, "arguments": {}})).collect();
    let script = json!({"prompt": "go", "turns": [
        {"content": "a", "tool_calls": [{"name": "echo", "arguments": {"n": 1}}]},
        {"content": "b", "tool_calls": calls},
        {"content": "the end"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json", "--save-messages", "talk.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "the end\n"), "{ran:?}");
    let talk: Value = serde_json::from_str(&fs::read_to_string(crib.path("talk.json")).unwrap()).unwrap();
    let output = |name: &str| {
        let of = |message: &&Value| message["role"] == "tool" && message["name"] == name;
        talk.as_array().unwrap().iter().find(of).unwrap()["content"].as_str().unwrap().to_owned()
    };
    assert_eq!(output("echo"), r#"{"n":1}"#);
    for (name, why) in BAD {
        assert!(output(name).contains(why), "{name}: {}", output(name));
    }
    let outcomes: Vec<_> = crib.records().iter().map(|record| record["outcome"].clone()).collect();
    assert_eq!(outcomes, ["ok", "bad-component", "bad-component", "bad-component", "bad-component"]);
    let asked = crib.run(&["run", "--script", "script.json", "--dry-run"]);
    let offered: Vec<_> = ["echo", "missing", "garbage", "asynchronous", "reactor"]
        .into_iter()
        .filter(|name| asked.stdout.contains(&format!("\"name\": \"{name}\"")))
        .collect();
    assert_eq!(offered, ["echo"], "{asked:?}");
    let capabilities = crib.run(&["run", "--capabilities"]);
    assert_eq!(capabilities.stdout.lines().count(), 1, "{capabilities:?}");
}

#[test]
fn a_program_that_only_its_compilation_refuses_leaves_the_others_to_the_run() {
    let crib = Crib::with_guests(&["echo"]);
    // A body with a type error, which no section reveals.
    let mut module = wat::parse_str(r#"(module (func (export "_start") i32.const 7 drop))"#).unwrap();
    let at = module.windows(2).position(|pair| pair == [0x41, 7]).unwrap();
    module[at] = 0x01;
    module[at + 1] = 0x01;
    fs::write(crib.path("tools/bin/untyped.wasm"), module).unwrap();
    crib.manifest(&json!({"tools": [entry("untyped"), entry("echo")]}));
    let script = json!({"prompt": "go", "turns": [
        {"content": "a", "tool_calls": [{"name": "untyped", "arguments": {}}, {"name": "echo", "arguments": {"n": 1}}]},
        {"content": "the end"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "the end\n"), "{ran:?}");
    assert!(
        ran.stderr.contains("warning: tool \"untyped\": ") && ran.stderr.contains("; the tool is disabled"),
        "{ran:?}"
    );
    // The calls of one step run concurrently and are logged as they end.
    let records = crib.records();
    let mut outcomes: Vec<_> =
        records.iter().map(|it| (it["tool"].as_str().unwrap(), it["outcome"].as_str().unwrap())).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [("echo", "ok"), ("untyped", "bad-component")]);
    assert_eq!(crib.run(&["run", "--script", "script.json", "--strict"]).code, Some(1));
    assert_eq!(crib.run(&["validate", "tools.json"]).code, Some(1));
}

#[test]
fn strict_makes_any_bad_tool_an_error_of_every_door() {
    let page = Page::new();
    for (name, _) in BAD {
        let crib = mixed();
        crib.manifest(&json!({"tools": [entry("echo"), entry(name)]}));
        fs::write(crib.path("script.json"), r#"{"prompt": "go", "turns": [{"content": "the end"}]}"#).unwrap();
        for args in [
            &["list", "--strict"][..],
            &["list", "--json", "--strict"],
            &["schema", "--strict"],
            &["inspect", "echo", "--strict"],
            &["call", "echo", "--strict"],
            &["run", "--script", "script.json", "--strict"],
        ] {
            page.run(&crib, args);
        }
        assert!(crib.logs().is_empty(), "nothing was called");
    }
    page.matches("unusable/strict");
}

#[test]
fn an_embedder_gets_the_disabled_tools_as_data() {
    let crib = mixed();
    let source = || toolcrib::Runtime::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json"));
    let runtime = source().build().unwrap();
    let disabled: Vec<_> = runtime.disabled().map(|(tool, why)| (tool.name.as_str(), why)).collect();
    assert_eq!(disabled.len(), BAD.len(), "{disabled:?}");
    for (name, why) in BAD {
        assert!(disabled.iter().any(|(found, output)| *found == name && output.contains(why)), "{name}: {disabled:?}");
        assert!(matches!(runtime.availability(name), Some(toolcrib::Availability::Unusable { .. })), "{name}");
    }
    assert_eq!(runtime.warnings().len(), BAD.len());
    let offered: Vec<_> = runtime.session().tools().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(offered, ["echo"]);
    let Err(error) = source().strict(true).build() else { panic!("a strict runtime has no bad tool") };
    assert!(error.to_string().contains("\"missing\" is unavailable: program not found"), "{error}");
}
