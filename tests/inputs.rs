//! Input validation: allowed and forbidden arguments, rules over several values, the tool's own check, and the files
//! that arguments name. All of it happens before the tool starts.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

/// Creates a crib with one tool, `t`, from a guest, with more in its entry.
fn crib(guest: &str, more: Value) -> Crib {
    let crib = Crib::new();
    let mut entry = crib.entry(guest);
    entry["name"] = json!("t");
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    crib.manifest(&json!({"tools": [entry]}));
    crib
}

/// Outcome of a call, and the text for the model.
fn called(crib: &Crib, arguments: Value, flags: &[&str]) -> (String, Value) {
    let line = crib.call("t", &arguments, flags);
    let outcome = line["receipt"]["outcome"].as_str().unwrap().to_owned();
    (outcome, if line["error"].is_null() { line["result"].clone() } else { line["error"].clone() })
}

fn internal() -> Crib {
    let schema = json!({"type": "object", "required": ["user"], "properties": {
        "text": {"type": "string"}, "user": {"type": "string", "visibility": "internal"},
    }});
    crib("echo", json!({ "schema": schema }))
}

#[test]
fn an_internal_field_never_reaches_the_model() {
    let shown: Value = serde_json::from_str(&internal().run(&["schema"]).stdout).unwrap();
    let parameters = &shown[0]["function"]["parameters"];
    assert_eq!(parameters["properties"], json!({"text": {"type": "string"}}));
    assert_eq!(parameters["required"], json!([]));
}

#[test]
fn a_value_that_the_model_sends_for_an_internal_field_is_refused() {
    let (outcome, error) = called(&internal(), json!({"text": "a", "user": "root"}), &[]);
    assert_eq!(outcome, "bad-arguments");
    assert_eq!(error, "invalid arguments: /user: only the host may set this field");
    let (outcome, error) = called(&internal(), json!({"text": "a"}), &[]);
    assert_eq!(outcome, "bad-arguments", "nobody set what the tool needs");
    assert_eq!(error, "invalid arguments: \"user\" is a required property");
}

#[test]
fn a_strict_tool_takes_no_arguments_that_it_does_not_name() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let strict = crib("echo", json!({"schema": schema, "interface": {"strict": true}}));
    assert_eq!(called(&strict, json!({"a": 1}), &[]).0, "ok");
    assert_eq!(called(&strict, json!({"a": 1, "b": 2}), &[]).0, "bad-arguments");
    let open = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": true});
    let strict = crib("echo", json!({"schema": open, "interface": {"strict": true}}));
    assert_eq!(called(&strict, json!({"a": 1, "b": 2}), &[]).0, "bad-arguments", "the schema does not undo it");
    let lenient = crib("echo", json!({ "schema": schema }));
    assert_eq!(called(&lenient, json!({"a": 1, "b": 2}), &[]).0, "ok");
}

#[test]
fn an_internal_field_is_refused_wherever_its_schema_says_so() {
    let internal = json!({"visibility": "internal"});
    let schema = json!({"$defs": {"host": internal}, "properties": {
        "user": {"$ref": "#/$defs/host"}, "list": {"items": internal}, "map": {"additionalProperties": internal},
        "properties": {"type": "object"},
    }});
    let crib = crib("echo", json!({ "schema": schema }));
    for arguments in [json!({"user": 1}), json!({"list": [1]}), json!({"map": {"a": 1}})] {
        assert_eq!(called(&crib, arguments.clone(), &[]).0, "bad-arguments", "{arguments}");
    }
    let named_like_a_keyword = json!({"properties": {"user": {"visibility": "internal"}}});
    assert_eq!(called(&crib, named_like_a_keyword.clone(), &[]), ("ok".to_owned(), named_like_a_keyword));
}

#[test]
fn a_schema_whose_checks_would_never_end_is_refused_before_any_call() {
    let page = Page::new();
    let both = |n: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{n}")}, {"$ref": format!("#/$defs/d{n}")}]});
    let mut defs: serde_json::Map<_, _> = (0..40).map(|n| (format!("d{n}"), both(n + 1))).collect();
    defs.insert("d40".into(), json!({"type": "object"}));
    let crib = crib("echo", json!({"schema": {"$ref": "#/$defs/d0", "$defs": defs}}));
    page.run(&crib, &["call", "t", "{}"]);
    page.matches("schema/endless");
}

#[test]
fn a_schema_too_large_or_that_leads_outside_is_refused_and_nothing_is_fetched() {
    let page = Page::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let here = listener.local_addr().unwrap();
    let many =
        |count: usize| -> Value { (0..count).map(|n| (format!("p{n:07}"), json!({"type": "string"}))).collect() };
    let file = crib("echo", json!({})).path("tools.json");
    for (schema, expected) in [
        (json!({"properties": many(50_000)}), "more than the 1048576 allowed"),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}), "form a cycle"),
        (json!({"items": {"$ref": format!("http://{here}/schema.json")}}), "leads outside the schema"),
        (json!({"$schema": format!("http://{here}/draft")}), ""),
        (json!({"$dynamicRef": format!("file://{}", file.display())}), "leads outside the schema"),
        (json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}), "leads outside the schema"),
        (json!({"$id": format!("http://{here}/"), "$ref": "other.json"}), "leads outside the schema"),
    ] {
        let crib = crib("echo", json!({ "schema": schema }));
        let started = std::time::Instant::now();
        page.run(&crib, &["call", "t", "{}"]);
        assert!(started.elapsed().as_secs() < 20, "{expected}: {:?}", started.elapsed());
    }
    assert!(listener.accept().is_err(), "nobody came to fetch anything");
    let crib = crib("echo", json!({}));
    let giant = fs::read_to_string(crib.path("tools.json")).unwrap();
    let more = format!("\"schema\":{{\"enum\":[{}0]}},\"name\"", "123456789,".repeat(5 << 20));
    fs::write(crib.path("tools.json"), giant.replacen("\"name\"", &more, 1)).unwrap();
    page.run(&crib, &["call", "t", "{}"]);
    page.matches("schema/too-large");
}

#[test]
fn a_pattern_made_to_run_for_ever_is_refused_or_ends_in_time() {
    let of = |pattern: &str| crib("echo", json!({"schema": {"properties": {"a": {"pattern": pattern}}}}));
    let long = json!({"a": "a".repeat(100_000) + "!"});
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*)*(.*)*(.*)*=$", "^(([a-z])+.)+[A-Z]([a-z])+$"] {
        let (crib, started) = (of(pattern), std::time::Instant::now());
        fs::write(crib.path("arguments.json"), long.to_string()).unwrap();
        let ran = crib.run(&["call", "t", "@arguments.json", "--json"]);
        let line: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(line["receipt"]["outcome"], "bad-arguments", "{pattern}");
        assert!(started.elapsed().as_secs() < 20, "{pattern}: {:?}", started.elapsed());
    }
    // A pattern that would be large when compiled, and patterns that need backtracking.
    for pattern in ["((a{1000}){1000}){1000}", r"^(a)\1$", "^(?=a)a"] {
        let ran = of(pattern).run(&["call", "t", "{}"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("tool \"t\": schema: "), "{pattern}: {ran:?}");
    }
}

#[test]
fn rules_over_values_are_held_after_the_schema() {
    let rules = json!([
        {"field": "/start", "is": "<=", "than": {"field": "/end"}, "message": "`start` is after `end`"},
        {"field": "/count", "is": "<", "than": 10},
    ]);
    let crib = crib("echo", json!({"interface": {"value_validation": rules}}));
    assert_eq!(called(&crib, json!({"start": 1, "end": 2, "count": 9}), &[]).0, "ok");
    for (arguments, expected) in [
        (json!({"start": 3, "end": 2}), "invalid values: `start` is after `end`"),
        (json!({"count": 10}), "invalid values: `/count` must be < 10"),
    ] {
        assert_eq!(called(&crib, arguments, &[]), ("bad-arguments".to_owned(), json!(expected)));
    }
}

#[test]
fn a_tool_checks_its_arguments_itself_without_any_grant() {
    let crib = crib("checked", json!({"timeoutSec": 1, "envPassthrough": ["PEEKED"]}));
    fs::write(crib.path("work/notes.md"), "text").unwrap();
    assert_eq!(called(&crib, json!({"span": 1, "most": 2}), &[]), ("ok".to_owned(), json!({"span": 1, "most": 2})));
    let (outcome, told) = called(&crib, json!({"span": 3, "most": 2}), &[]);
    assert_eq!((outcome.as_str(), told), ("bad-arguments", json!("invalid values: a span of 3 is more than 2")));
    let output = crib
        .toolcrib(&["call", "t", "{\"peek\":true}", "--allow-read=work"])
        .env("PEEKED", "yes")
        .output()
        .expect("the program starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "{\"error\":\"invalid values: file false, variable false\"}\n");
    assert_eq!(called(&crib, json!({"spin": true}), &[]).0, "deadline", "its check has the call's deadline");
}

fn files() -> Crib {
    let preflight = json!([{"field": "/path", "use": "read"}, {"field": "/out", "use": "write"}, {"field": "/url", "use": "connect"}]);
    crib("echo", json!({"interface": {"io_preflight_validation": preflight}}))
}

#[test]
fn a_file_outside_the_grant_is_refused_before_the_tool_starts() {
    let crib = files();
    let denied = |arguments: Value, flags: &[&str]| {
        let line = crib.call("t", &arguments, flags);
        assert_eq!(line["receipt"]["outcome"], "denied", "{arguments}: {line}");
        assert_eq!(line["receipt"]["decision"]["reason"], "grant", "{line}");
        assert_eq!(line["receipt"]["peakMemoryBytes"], 0, "it was not started: {line}");
        (line["error"].as_str().unwrap().to_owned(), line["receipt"]["denied"].clone())
    };
    for path in ["../x", "a/../../x", "/../x"] {
        let (output, _) = denied(json!({ "path": path }), &["--allow-read=work"]);
        assert_eq!(
            output,
            format!("read `{path}`: permission denied by the grant: the path leads out of the granted folder")
        );
    }
    let (output, denials) = denied(json!({"out": "a"}), &["--allow-read=work"]);
    assert_eq!(output, "write `a`: permission denied by the grant (see --allow-write)");
    let folder = crib.path("work").canonicalize().unwrap();
    assert_eq!(denials[0]["flag"], format!("--allow-write={}", folder.display()));
    let (output, denials) = denied(json!({"path": "a"}), &[]);
    assert_eq!((output.as_str(), &denials[0]["flag"]), ("read `a`: no folder is granted", &json!("--allow-read=DIR")));
    let (output, _) = denied(json!({"url": "http://example.com/"}), &["--allow-write=work"]);
    assert_eq!(output, "no network is granted");
    for arguments in [json!({"path": "a/../b"}), json!({"path": ["x", "/y"]}), json!({})] {
        assert_eq!(called(&crib, arguments, &["--allow-read=work"]).0, "ok");
    }
}

#[test]
fn a_file_argument_that_is_left_out_is_checked_by_the_default_of_its_schema() {
    let preflight = json!([{"field": "/path", "use": "read"}]);
    let schema = json!({"properties": {"path": {"type": "string", "default": "."}}});
    let crib = crib("echo", json!({"schema": schema, "interface": {"io_preflight_validation": preflight}}));
    let line = crib.call("t", &json!({}), &[]);
    assert_eq!(line["receipt"]["outcome"], "denied", "{line}");
    assert_eq!(
        (&line["error"], &line["receipt"]["decision"]["reason"]),
        (&json!("read `.`: no folder is granted"), &json!("grant"))
    );
    assert_eq!(crib.records()[0]["outcome"], "denied");
    assert_eq!(called(&crib, json!({}), &["--allow-read=work"]), ("ok".to_owned(), json!({})), "it is not added");
}

#[test]
fn what_is_sensitive_is_in_no_record() {
    let schema = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "token": {"type": "string", "format": "password"},
        "tokens": {"type": "array", "items": {"writeOnly": true}}, "referred": {"$ref": "#/$defs/secret"},
    }, "$defs": {"secret": {"sensitive": true}}});
    let interface = json!({"ui_summary": "greet {name} with {token} {tokens} {referred}", "transcript_search_text": "{name} {token}"});
    let crib = crib("echo", json!({"schema": schema, "interface": interface}));
    let script = json!({"prompt": "go", "turns": [
        {"tool_calls": [{"name": "t", "arguments": {
            "name": "Ada", "token": "hunter2", "tokens": ["hunter2a"], "referred": "hunter2b"
        }}]}, {"content": "done"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json", "--json"]);
    let result = ran.stdout.lines().find(|line| line.contains("\"tool_result\"")).expect("a result");
    let result: Value = serde_json::from_str(result).unwrap();
    assert_eq!(result["display"], "greet Ada with *** *** ***");
    let log: String = crib.records().iter().map(Value::to_string).collect();
    assert!(!log.contains("hunter2"), "{log}");
}
