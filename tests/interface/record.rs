//! Agent Tool record in its own file.

use std::fs;

use serde_json::{Value, json};
use toolcrib::tool::{Access, Basis, FileRequest, Format};

use super::{field, load, validate};
use crate::crib::{Crib, guest};
use crate::screen::Page;

/// The smallest Agent Tool record of the guest `echo`, with these further fields.
fn record(more: Value) -> Value {
    let mut record = json!({
        "schema_version": "0.2.0", "interface_id": "test.echo.interface", "tool_id": "test.echo",
        "component": "tools/bin/echo.wasm"
    });
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

/// Creates a crib with the guest `echo` and this Agent Tool record of it.
fn crib(record: &Value) -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    fs::remove_file(crib.path("tools.json")).unwrap();
    fs::write(crib.path("echo.tool.json"), record.to_string()).unwrap();
    crib
}

#[test]
fn a_record_is_a_tool() {
    let crib = crib(&record(json!({
        "name": "say", "description": "say it again", "args": ["--again"], "is_read_only": true,
        "runtime_input_schema": {"type": "object", "required": ["a"]}, "timeout_ms": 1500,
        "rendering": {"ui_summary": "say {a}"}, "external_mappings": [{"mcp": "say"}],
        "capabilities": {"files": "read", "env": ["tz"]}, "limits": {"memoryMb": 32}
    })));
    assert_eq!(validate(&crib, "echo.tool.json"), (Some(0), "1 source, no problems found\n".to_owned()));
    let [tool] = load(&crib, "echo.tool.json").try_into().unwrap();
    assert_eq!((tool.name.as_str(), tool.description.as_deref()), ("say", Some("say it again")));
    assert_eq!(tool.origin.format, Format::AgentTool);
    assert_eq!(tool.requested.files, FileRequest::Workspace(Access::Read));
    assert_eq!(tool.requested.env, ["TZ"]);
    assert_eq!((tool.limits.memory, tool.limits.deadline.unwrap().as_millis()), (Some(32 << 20), 1500));
    assert_eq!(field(&tool, "tool_id"), (json!("test.echo"), Basis::Declared));
    assert_eq!(field(&tool, "ui_summary"), (json!("say {a}"), Basis::Declared));
    assert_eq!(tool.origin.unknown["interface_id"], "test.echo.interface");
    assert_eq!(tool.origin.unknown["external_mappings"], json!([{"mcp": "say"}]));
    let ran = crib.run(&["call", "say", "{\"a\":1}", "--tools", "echo.tool.json"]);
    assert_eq!(ran.stdout, "{\"a\":1}\n", "{ran:?}");
    let ran = crib.run(&["call", "say", "{}", "--tools", "echo.tool.json"]);
    assert!(ran.code == Some(1) && ran.stdout.contains("invalid arguments"), "{ran:?}");
}

#[test]
fn a_record_finds_its_component_beside_it_wherever_the_caller_stands() {
    let crib = crib(&record(json!({"component": "tools/bin/echo"})));
    let mut command = crib.toolcrib(&["call", "echo", "{\"a\":1}", "--tools", "../echo.tool.json"]);
    let output = command.current_dir(crib.path("work")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\"a\":1}\n");
}

#[test]
fn a_name_that_is_not_stated_ends_the_id() {
    assert_eq!(load(&crib(&record(json!({"tool_id": "a.b.c"}))), "echo.tool.json")[0].name, "c");
    assert_eq!(load(&crib(&record(json!({"tool_id": "plain"}))), "echo.tool.json")[0].name, "plain");
}

#[test]
fn a_json_file_is_a_record_where_it_says_which_tool_it_is() {
    let page = Page::new();
    let crib = crib(&record(json!({})));
    fs::write(crib.path("any.json"), record(json!({})).to_string()).unwrap();
    assert_eq!(load(&crib, "any.json")[0].origin.format, Format::AgentTool);
    fs::write(crib.path("any.json"), json!({"tool_id": "t", "tools": []}).to_string()).unwrap();
    let (code, output) = validate(&crib, "any.json");
    assert_eq!(code, Some(0), "{output}");
    page.text("a manifest", &output);
    page.matches("record/json-file");
}

#[test]
fn a_folder_holds_records_and_the_components_that_none_names() {
    let crib = Crib::with_guests(&["echo", "empty"]);
    for (file, component) in [("a.tool.json", "echo.wasm"), ("b.tool.json", "echo")] {
        let record = record(json!({"name": &file[..1], "component": component}));
        fs::write(crib.path("tools/bin").join(file), record.to_string()).unwrap();
    }
    fs::write(crib.path("tools/bin/.hidden.tool.json"), "{").unwrap();
    fs::write(crib.path("tools/bin/other.json"), "{").unwrap();
    let names: Vec<_> = load(&crib, "tools/bin").into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["a", "b", "empty"]);
}

#[test]
fn a_wrong_record_is_told_exactly_and_whole() {
    let page = Page::new();
    for more in [
        json!({"tool_id": 1}),
        json!({"tool_id": ""}),
        json!({"name": " "}),
        json!({"name": "x".repeat(129)}),
        json!({"name": 7}),
        json!({"component": 1}),
        json!({"component": "absent.wasm"}),
        json!({"args": "x"}),
        json!({"args": ["x", 1]}),
        json!({"description": []}),
        json!({"capabilities": {"files": "all"}}),
        json!({"limits": {"fuel": -1}}),
        json!({"schema_version": 2}),
        json!({"external_mappings": {}}),
        json!({"lifecycle": "sleepy"}),
        json!({"is_destructive": 1}),
        json!({"rendering": {"ui_summary": {}}}),
        json!({"strict": "x", "args": 1, "limits": []}),
    ] {
        page.note(more.to_string());
        let crib = crib(&record(more));
        let (code, output) = validate(&crib, "echo.tool.json");
        assert_eq!(code, Some(1), "{output}");
        page.text("validate", &output);
        assert_eq!(crib.run(&["list", "--strict", "--tools", "echo.tool.json"]).code, Some(1));
    }
    let crib = crib(&json!({"interface_id": "i"}));
    let (_, output) = validate(&crib, "echo.tool.json");
    page.note("one error per mistake");
    page.text("validate", &output);
    page.matches("record/wrong-record");
}

#[test]
fn each_problem_of_a_record_has_its_line_and_column() {
    let page = Page::new();
    let text = r#"{
  "schema_version": "0.3.0",
  "tool_id": "test.echo",
  "component": "tools/bin/echo.wasm",
  "args": 1,
  "limits": {"fuel": -1},
  "lifecycle": "sleepy",
  "rendering": {"ui_summary": {}},
  "colour": "red"
}
"#;
    let crib = Crib::with_guests(&["echo"]);
    let output = |text: &str| {
        fs::write(crib.path("echo.tool.json"), text).unwrap();
        validate(&crib, "echo.tool.json").1
    };
    page.text("echo.tool.json", text);
    page.text("validate", output(text));
    let sound = "{\n\"schema_version\": \"0.2.9\",\n\"tool_id\": \"e\",\n\"component\": \"tools/bin/echo.wasm\"\n}";
    assert_eq!(output(sound), "1 source, no problems found\n", "a patch of the standard");
    for (from, to, place) in [
        ("echo.wasm", "absent.wasm", "4:14: configured tool"),
        ("0.2.9", "1", "2:19: schema_version"),
        ("\n}", "\n", "5:1: parse record: EOF"),
        ("\n}", ",\n\"model_input_schema\": {\n\"type\": \"strin\"}}", "6:9: tool \"e\": schema: at"),
        (sound, "[]", "1:1: a record must be an object"),
    ] {
        let output = output(&sound.replace(from, to));
        page.note(place);
        page.text("validate", &output);
        assert_eq!(output.matches("error: ").count(), 1, "one error per mistake: {output}");
    }
    page.matches("record/places");
}

#[test]
fn a_component_stays_beside_its_record() {
    let page = Page::new();
    for path in ["../echo.wasm", "tools/../../echo.wasm", "/bin/echo.wasm", "C:/echo.wasm", r"tools\echo.wasm", ""] {
        let (code, output) = validate(&crib(&record(json!({"component": path}))), "echo.tool.json");
        assert_eq!(code, Some(1));
        page.text("validate", &output);
    }
    page.matches("record/beside");
}

#[test]
fn what_no_rule_knows_is_kept_and_only_that_is_warned_of() {
    let page = Page::new();
    let carried = json!({
        "$schema": "x", "interface_ref": "x", "tool_kind": "x", "input_contract": {}, "output_contract": {},
        "annotations": {}, "classifier_input": {"path": "{path}"}
    });
    let crib = crib(&record(carried));
    assert_eq!(validate(&crib, "echo.tool.json").1, "1 source, no problems found\n");
    assert_eq!(field(&load(&crib, "echo.tool.json")[0], "classifier_input").0, json!(r#"{"path":"{path}"}"#));
    let crib = self::crib(&record(json!({"descriptoin": "x", "x_vendor": {"a": 1}, "rendering": {"icon": "x"}})));
    let (code, output) = validate(&crib, "echo.tool.json");
    assert_eq!(code, Some(0), "{output}");
    page.text("validate", &output);
    let unknown = &load(&crib, "echo.tool.json")[0].origin.unknown;
    assert_eq!((&unknown["x_vendor"], &unknown["rendering"]), (&json!({"a": 1}), &json!({"icon": "x"})));
    page.matches("record/unknown");
}

#[test]
fn a_declaration_names_and_may_disable_its_tool() {
    let page = Page::new();
    let declared = |more: Value| load(&crib(&record(more)), "echo.tool.json").remove(0);
    let titled = declared(json!({"title": "Echo", "lifecycle": "available"}));
    assert_eq!(field(&titled, "user_facing_name"), (json!("Echo"), Basis::Declared));
    assert_eq!(field(&titled, "is_enabled"), (json!(true), Basis::Default));
    let both = declared(json!({"title": "Echo", "user_facing_name": "Parrot"}));
    assert_eq!(field(&both, "user_facing_name").0, json!("Parrot"));
    for lifecycle in ["disabled", "requires_setup", "deferred", "deprecated", "retired"] {
        let tool = declared(json!({"lifecycle": lifecycle, "is_enabled": true}));
        assert_eq!(field(&tool, "is_enabled"), (json!(false), Basis::Declared), "{lifecycle}");
        let reason = format!("its record says that it is `{lifecycle}`");
        assert_eq!(field(&tool, "requires_setup"), (json!(reason), Basis::Declared));
        let (code, output) = validate(&crib(&record(json!({"lifecycle": lifecycle}))), "echo.tool.json");
        assert_eq!(code, Some(0), "{output}");
        page.text(lifecycle, &output);
    }
    page.matches("record/lifecycle");
}

#[test]
fn a_record_gets_no_folder_or_variable_by_naming_it() {
    let crib = crib(&record(json!({})));
    for name in ["file_io", "env_dump"] {
        crib.install(&guest(name), name);
        let asks = json!({"files": {"read": ["work/in"], "write": ["work/out", "absent"]}, "env": ["SECRET"]});
        let more = json!({"tool_id": name, "component": format!("tools/bin/{name}"), "capabilities": asks});
        fs::write(crib.path(format!("{name}.tool.json")), record(more).to_string()).unwrap();
    }
    fs::create_dir_all(crib.path("work/in")).unwrap();
    fs::create_dir_all(crib.path("work/out")).unwrap();
    let root = crib.path(".").canonicalize().unwrap();
    let call = |name: &str, flags: &[&str]| -> Value {
        let mut command = crib.toolcrib(&["call", name, r#"{"op":"roots"}"#, "--json", "--tools", "."]);
        let output = command.args(flags).env("SECRET", "canary").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    };
    let needs = |access: &str, path: &str| {
        let path = root.join(path);
        json!({"capability": format!("{access}:{}", path.display()), "flag": format!("--allow-{access}={}", path.display())})
    };
    let env = json!({"capability": "env:SECRET", "flag": "--allow-env=SECRET"});
    let absent = needs("write", "absent");
    let asked = [needs("read", "work/in"), needs("write", "work/out"), absent.clone(), env.clone()];

    let nothing = call("file_io", &[]);
    assert_eq!((&nothing["result"], &nothing["receipt"]["denied"]), (&json!({"ok": []}), &json!(asked)));
    assert!(!call("env_dump", &[]).to_string().contains("canary"));

    let some = call("file_io", &["--allow-read=work"]);
    assert_eq!(some["result"], json!({"ok": ["/", "/in", "/out"]}), "what it names, and not what is around it");
    assert_eq!(some["receipt"]["denied"], json!([needs("write", "work/out"), absent, env]));
    let granted = |path: &str| json!(format!("read:{}", root.join(path).display()));
    assert_eq!(some["receipt"]["granted"], json!([granted("work/in"), granted("work/out")]));

    let all = call("file_io", &["--allow-write=work", "--allow-env=SECRET"]);
    assert_eq!(all["receipt"]["denied"], json!([absent]));
    assert!(call("env_dump", &["--allow-env=SECRET"]).to_string().contains("canary"));
    let denied = call("file_io", &["--deny-write=work/out"]);
    assert_eq!(denied["receipt"]["denied"][1]["flag"], Value::Null, "no flag undoes a denial");
}

#[test]
fn a_record_is_not_believed_that_its_calls_may_run_together() {
    let page = Page::new();
    let claims = json!({"is_concurrency_safe": true, "is_read_only": false});
    let crib = crib(&record(claims));
    let expected = "is_concurrency_safe is declared true, but it is not read-only: parallel calls can conflict, so each runs alone";
    assert_eq!(field(&load(&crib, "echo.tool.json")[0], "is_concurrency_safe"), (json!(false), Basis::Default));
    let (code, validated) = validate(&crib, "echo.tool.json");
    assert!(code == Some(0) && validated.matches(expected).count() == 1, "{validated}");
    page.run(&crib, &["list", "--tools", "echo.tool.json"]);
    let proven = self::crib(&record(json!({"is_concurrency_safe": true, "is_read_only": true})));
    assert_eq!(field(&load(&proven, "echo.tool.json")[0], "is_concurrency_safe"), (json!(true), Basis::Declared));
    page.matches("record/together");
}

#[test]
fn a_schema_of_a_record_that_makes_no_sense_is_an_error_of_the_record() {
    let page = Page::new();
    for model in [
        json!({"properties": []}),
        json!({"properties": {"a": {"$ref": "#"}}, "$ref": "#"}),
        json!({"$ref": "#/$defs/a"}),
    ] {
        let runtime = json!({"properties": {"a": {}}});
        let crib = crib(&record(json!({"model_input_schema": model, "runtime_input_schema": runtime})));
        for command in [["validate", "echo.tool.json"].as_slice(), &["list", "--strict", "--tools", "echo.tool.json"]] {
            page.run(&crib, command);
        }
    }
    page.matches("record/schema");
}

#[test]
fn a_record_asks_for_less_than_the_defaults_and_never_for_more() {
    let more = json!({"memoryMb": 100_000, "outputKb": 1_000_000, "diskMb": 5000, "diskEntries": 1_000_000});
    let limits = |mut record: Value, flags: &[&str]| {
        record["name"] = json!("say");
        let crib = crib(&record);
        let ran = crib.run(&[&["inspect", "say", "--json", "--tools", "echo.tool.json"], flags].concat());
        let limits: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        limits["limits"].clone()
    };
    let plain = limits(record(json!({})), &[]);
    assert_eq!(limits(record(json!({"limits": more, "timeout_ms": 86_400_000})), &[]), plain);
    assert_eq!(limits(record(json!({"limits": {"memoryMb": 2}})), &[])["memoryBytes"], 2 << 20);
    // The operator's value replaces the default, for tools that request as much.
    assert_eq!(limits(record(json!({"limits": more})), &["--max-memory=1GiB"])["memoryBytes"], 1 << 30);
}
