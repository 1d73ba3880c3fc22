//! Programs with a command line: arguments instead of JSON, any form of output, and exit codes of a success.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

/// Core module that writes each of its arguments on a line, then its standard input. If the last argument is `!` and a digit, that
/// is its exit code, and its output goes to standard error with `!!` and a digit.
const WORDS: &str = r#"(module
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 16)
    (func $put (param $to i32) (param $from i32) (param $length i32)
        (i32.store (i32.const 16) (local.get $from))
        (i32.store (i32.const 20) (local.get $length))
        (if (i32.and (i32.ne (local.get $length) (i32.const 0))
                (call $write (local.get $to) (i32.const 16) (i32.const 1) (i32.const 8))) (then unreachable)))
    (func (export "_start") (local $at i32) (local $end i32) (local $to i32) (local $code i32)
        (local.set $to (i32.const 1))
        (if (call $sizes (i32.const 0) (i32.const 4)) (then unreachable))
        (if (call $args (i32.const 65536) (i32.const 131072)) (then unreachable))
        (local.set $end (i32.add (i32.const 131072) (i32.load (i32.const 4))))
        (local.set $at (i32.const 131072))
        (loop $next
            (if (i32.eqz (i32.load8_u (local.get $at))) (then (i32.store8 (local.get $at) (i32.const 10))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $at) (local.get $end))))
        (if (i32.eq (i32.load8_u (i32.sub (local.get $end) (i32.const 3))) (i32.const 33)) (then
            (local.set $code (i32.sub (i32.load8_u (i32.sub (local.get $end) (i32.const 2))) (i32.const 48)))
            (if (i32.eq (i32.load8_u (i32.sub (local.get $end) (i32.const 4))) (i32.const 33))
                (then (local.set $to (i32.const 2))))))
        (if (i32.gt_u (i32.load (i32.const 0)) (i32.const 1)) (then
            (call $put (local.get $to) (i32.load (i32.const 65540))
                (i32.sub (local.get $end) (i32.load (i32.const 65540))))))
        (loop $more
            (i32.store (i32.const 16) (i32.const 524288))
            (i32.store (i32.const 20) (i32.const 65536))
            (if (call $read (i32.const 0) (i32.const 16) (i32.const 1) (i32.const 8)) (then unreachable))
            (if (i32.load (i32.const 8)) (then
                (call $put (i32.const 1) (i32.const 524288) (i32.load (i32.const 8)))
                (br $more))))
        (call $exit (local.get $code))))"#;

/// Creates a crib with the program as the tool `words`, with these fields in its entry.
fn crib(fields: &Value) -> Crib {
    let crib = Crib::new();
    crib.install_wat("words", WORDS);
    let mut entry = json!({"name": "words", "command": ["./tools/bin/words"]});
    entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    crib.manifest(&json!({ "tools": [entry] }));
    crib
}

/// Result or error of a call.
fn content(called: &Value) -> Value {
    called.get("result").or_else(|| called.get("error")).cloned().unwrap()
}

#[test]
fn the_arguments_of_a_call_become_arguments_of_the_program() {
    let crib = crib(&json!({
        "command": ["./tools/bin/words", "--fixed"],
        "argv": [
            "{{literal}}",
            {"when": "quiet", "argv": ["-q"]},
            {"when": "limit", "argv": ["--limit", "{limit}"]},
            {"each": "globs", "argv": ["-g{globs}"]},
            {"each": "options", "argv": ["{options}"], "options": true},
            "--mode={mode}", "--", "{pattern}", "{paths}",
        ],
        "output": "lines",
        "schema": {
            "type": "object",
            "properties": {
                "pattern": {}, "mode": {}, "quiet": {"type": "boolean"}, "limit": {"type": "integer"},
                "globs": {"type": "array"}, "options": {"type": "array"}, "paths": {},
            },
            "required": ["pattern", "mode"],
        },
    }));
    let words = |arguments: Value| content(&crib.call("words", &arguments, &[]));
    let least = json!({"pattern": "a b", "mode": {"x": [1, null]}});
    assert_eq!(words(least), json!(["--fixed", "{literal}", "--mode={\"x\":[1,null]}", "--", "a b"]));
    let all = json!({
        "pattern": "-x $(id) `id` \"'\u{e9}", "mode": true, "quiet": true, "limit": -3, "globs": ["*.rs", ""],
        "options": ["--pre=cat"], "paths": ["-a", "b"],
    });
    assert_eq!(words(all.clone())["message"], Value::Null);
    let refused = "invalid values: limit: a value that begins with `-` would be an option of the program";
    assert_eq!(words(all.clone()), json!(refused));
    let mut all = all;
    all["limit"] = json!(3);
    let expected = json!([
        "--fixed",
        "{literal}",
        "-q",
        "--limit",
        "3",
        "-g*.rs",
        "-g",
        "--pre=cat",
        "--mode=true",
        "--",
        "-x $(id) `id` \"'\u{e9}",
        "-a",
        "b",
    ]);
    assert_eq!(words(all), expected);
}

#[test]
fn arguments_that_a_program_cannot_get_are_refused_before_it_runs() {
    let crib = crib(&json!({"argv": ["{text}", "{more}"], "output": "text", "schema": {
        "type": "object", "properties": {"text": {}, "more": {}}, "required": ["text"],
    }}));
    for (arguments, reason) in [
        (json!({"text": "-v"}), "text: a value that begins with `-` would be an option of the program"),
        (json!({"text": "a", "more": ["b", "--c"]}), "more: a value that begins with `-`"),
        (json!({"text": "a\u{0}b"}), "text: an argument of a program cannot have the character NUL"),
        (json!({"text": "a", "more": vec!["x"; 1000]}), "the program would get more than 1000 arguments"),
        (json!({"text": "x".repeat(200_000)}), "the program would get more than 1000 arguments or 131072 bytes"),
    ] {
        fs::write(crib.path("arguments.json"), arguments.to_string()).unwrap();
        let ran = crib.run(&["call", "words", "@arguments.json", "--json"]);
        let called: Value = serde_json::from_str(&ran.stdout).unwrap();
        let receipt = &called["receipt"];
        assert_eq!((&receipt["outcome"], &receipt["exit"]), (&json!("bad-arguments"), &Value::Null), "{called}");
        assert!(called["error"].as_str().unwrap().starts_with(&format!("invalid values: {reason}")), "{called}");
    }
    assert_eq!(
        content(&crib.call("words", &json!({"text": "-", "more": vec!["x"; 900]}), &[])).as_str().unwrap().len(),
        1802
    );
}

#[test]
fn standard_input_is_the_text_that_the_entry_names() {
    let schema = json!({"type": "object", "properties": {"text": {}}, "required": ["text"]});
    let read = |fields: Value| content(&crib(&fields).call("words", &json!({"text": "é\n\"x\""}), &[]));
    assert_eq!(read(json!({"stdin": "{text}", "output": "text", "schema": schema})), json!("é\n\"x\""));
    assert_eq!(
        read(json!({"stdin": "<{text}>{text}", "output": "lines", "schema": schema})),
        json!(["<é", "\"x\">é", "\"x\""])
    );
    assert_eq!(read(json!({"argv": ["{text}"], "output": "text", "schema": schema})), json!("é\n\"x\"\n"));
    // Without `argv` and `stdin`, a program reads the arguments as JSON.
    assert_eq!(read(json!({"output": "json"})), json!({"text": "é\n\"x\""}));
}

#[test]
fn each_form_of_output_is_a_result_of_its_type() {
    let of = |form: &str, text: &str| {
        let crib = crib(&json!({"stdin": "{text}", "output": form}));
        let called = crib.call("words", &json!({ "text": text }), &[]);
        (called["receipt"]["outcome"].as_str().unwrap().to_owned(), content(&called))
    };
    let ok = |value: Value| ("ok".to_owned(), value);
    assert_eq!(of("json", "{\n  \"a\": [1,\r\n 2]\n}\n"), ok(json!({"a": [1, 2]})));
    assert_eq!(of("json-lines", "{\"a\":1}\n\n2\n"), ok(json!([{"a": 1}, 2])));
    assert_eq!(of("text", "a\r\n{\"b\"}\n"), ok(json!("a\r\n{\"b\"}\n")));
    assert_eq!(of("text", ""), ok(json!("")));
    assert_eq!(of("lines", "a\r\n\nb"), ok(json!(["a", "", "b"])));
    assert_eq!(of("bytes", "a\u{0}\n"), ok(json!("YQAK")));
    for (form, text) in [("json", "{}\n{}"), ("json", "hello"), ("json-lines", "1\nx")] {
        let (outcome, message) = of(form, text);
        assert_eq!(outcome, "bad-result", "{message}");
    }
}

#[test]
fn the_form_of_the_output_is_the_type_of_the_result() {
    let crib = crib(&json!({"argv": ["{text}"], "output": "lines"}));
    let ran = crib.run(&["schema", "--for", "python", "--tools", "tools.json"]);
    assert!(ran.stdout.contains("def words(self, *, text: str) -> list[str]"), "{ran:?}");
}

#[test]
fn an_exit_code_is_a_failure_unless_the_entry_names_it() {
    let schema = json!({"type": "object", "properties": {"code": {}}, "required": ["code"]});
    let plain = json!({"argv": ["{code}"], "output": "lines", "schema": schema});
    let mut named = plain.clone();
    named["successCodes"] = json!([0, 1]);
    let exit = |fields: &Value, code: &str| {
        let called = crib(fields).call("words", &json!({ "code": code }), &[]);
        (called["receipt"]["outcome"].as_str().unwrap().to_owned(), called["receipt"]["exit"].clone(), content(&called))
    };
    let failed = |code: i32, message: &str| ("failed".to_owned(), json!(code), json!(message));
    assert_eq!(exit(&plain, "!1"), failed(1, "!1"), "without text on standard error, the output says why");
    assert_eq!(exit(&named, "!1"), ("ok".to_owned(), json!(1), json!(["!1"])));
    assert_eq!(exit(&named, "!0"), ("ok".to_owned(), json!(0), json!(["!0"])));
    assert_eq!(exit(&named, "x!!2"), failed(2, "x!!2"));
}

#[test]
fn rules_see_the_arguments_of_the_program() {
    let crib = crib(&json!({"argv": ["--all", "{text}"], "output": "lines"}));
    let outcome = |flag: &str| crib.outcome("words", &json!({"text": "a/../secret"}), &[flag]);
    assert_eq!(outcome("--deny-tool=words(argv=--all)"), "denied");
    assert_eq!(outcome("--deny-tool=words(argv=--all a/*)"), "denied");
    assert_eq!(outcome("--deny-tool=words(text=*secret)"), "denied");
    assert_eq!(outcome("--ask-tool=words(argv=*secret)"), "denied");
    assert_eq!(outcome("--deny-tool=words(argv=--none)"), "ok");
    let fixed = self::crib(&json!({"command": ["./tools/bin/words", "--fixed"], "argv": ["{text}"]}));
    assert_eq!(fixed.outcome("words", &json!({"text": "a"}), &["--deny-tool=words(argv=--fixed)"]), "denied");
}

#[test]
fn a_placeholder_without_a_schema_defines_one() {
    let crib = crib(&json!({
        "argv": [{"when": "quiet", "argv": ["-q"]}, {"each": "globs", "argv": ["-g", "{globs}"]}, "{pattern}"],
        "output": "lines",
    }));
    assert_eq!(
        content(&crib.call("words", &json!({"pattern": "x", "quiet": true, "globs": ["y"]}), &[])),
        json!(["-q", "-g", "y", "x"])
    );
    for arguments in
        [json!({}), json!({"pattern": 1}), json!({"pattern": "x", "other": 1}), json!({"pattern": "x", "quiet": "-v"})]
    {
        assert_eq!(crib.outcome("words", &arguments, &[]), "bad-arguments", "{arguments}");
    }
}

#[test]
fn mistakes_in_a_command_line_are_all_reported_with_their_places() {
    let page = Page::new();
    let crib = Crib::new();
    crib.install_wat("words", WORDS);
    let entry = |name: &str, fields: Value| {
        let mut entry = json!({"name": name, "command": ["./tools/bin/words"]});
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        entry
    };
    let tools = [
        entry(
            "texts",
            json!({"argv": ["{", "{}", "a\u{0}b", 7, "{x}".repeat(65)], "stdin": [], "output": "xml", "successCodes": []}),
        ),
        entry(
            "groups",
            json!({"argv": [
                {"argv": ["x"]}, {"when": "a", "argv": []}, {"when": "a", "each": "b", "argv": ["x"]}, {"when": 1, "argv": []}, {"when": "a"},
                {"each": "a", "argv": "x"}, {"each": "a", "argv": [1], "options": "yes", "unless": "b"},
            ]}),
        ),
        entry(
            "option",
            json!({"argv": ["--file", "{file}", "--", "{files}"], "schema": {
                "type": "object", "properties": {"file": {"type": "array"}, "files": {}}, "required": ["file"],
            }}),
        ),
        entry(
            "elsewhere",
            json!({"argv": ["{x}"], "schema": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}}),
        ),
        entry("codes", json!({"output": 1, "successCodes": [0, 256]})),
        entry("many", json!({"argv": vec!["x"; 1001]})),
        entry(
            "names",
            json!({"argv": ["--a={x}", "{y}", {"when": "x", "argv": ["{x}{z}"]}], "schema": {
                "type": "object", "properties": {"x": {}, "z": {}, "unused": {}},
            }}),
        ),
    ];
    crib.manifest(&json!({ "tools": tools }));
    page.run(&crib, &["validate", "tools.json"]);
    page.matches("argv/mistakes");
}

#[test]
fn masks_hold_for_every_form_of_output() {
    let of = |form: &str, text: &str| {
        let interface = json!({"redaction_policy_refs": ["keys"]});
        let crib = crib(&json!({"stdin": "{text}", "output": form, "interface": interface}));
        let called = crib.call("words", &json!({ "text": text }), &["--set=masks.keys=sk-[a-z]+"]);
        (called["receipt"]["outcome"].as_str().unwrap().to_owned(), content(&called).to_string())
    };
    for (form, text) in [
        ("text", "a sk-secret b"),
        ("lines", "a\nsk-secret"),
        ("json", "{\"a\":\n\"sk-secret\"}"),
        ("json-lines", "{\"a\":\"sk-secret\"}"),
        ("json-lines", &format!("{}\"sk-secret\"{}", "[".repeat(127), "]".repeat(127))),
        ("json", "{\"a\":1,\"a\":\"sk-secret\"}"),
        ("bytes", "x sk-secret"),
    ] {
        let (outcome, content) = of(form, text);
        assert!(
            !content.contains("sk-secret") && !content.contains("c2stc2Vj") && !content.contains("eCBzay1z"),
            "{content}"
        );
        let is_withheld = outcome == "bad-result";
        assert!(is_withheld || content.contains("REDACTED"), "{form} {text}: {outcome} {content}");
    }
    assert_eq!(of("bytes", "nothing").0, "ok");
}

#[test]
fn hooks_see_the_arguments_of_the_program_and_no_hidden_argument_evades_one() {
    let crib = crib(&json!({"argv": ["--all", "{text}"], "output": "lines"}));
    let hook = |condition: &str| {
        format!(
            "---\nevent: tool.pre\nwhen: {{tool: \"*\", args: {{{condition}}}}}\nscript: |\n  def handle(event, payload):\n      \
             return block(\"guarded\")\n---\n"
        )
    };
    let outcome = |condition: &str, source: &str, call: &[&str]| {
        fs::create_dir_all(crib.path(".harness/hooks")).unwrap();
        fs::write(crib.path(".harness/hooks/guard.md"), hook(condition)).unwrap();
        let tools = format!("--tools={source}");
        // The built-in tools have arguments of these names.
        let sources = ["call", "words", &tools, "--tools=.harness", "--tools=builtin", "--allow-hooks", "--json"];
        let flags = [&sources[..], call].concat();
        let ran = crib.run(&flags);
        let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        line["receipt"]["outcome"].as_str().unwrap_or_else(|| panic!("{line}")).to_owned()
    };
    let text = r#"{"text":"a secret"}"#;
    assert_eq!(outcome("argv: \"*--all*\"", "tools.json", &[text]), "denied");
    assert_eq!(outcome("argv: \"*--none*\"", "tools.json", &[text]), "ok");
    assert_eq!(outcome("text: \"*secret\"", "tools.json", &[text]), "denied");
    let program = "tools/bin/words.wasm";
    assert_eq!(outcome("path: \"*secret*\"", program, &["--", "a/secret"]), "denied", "its path is hidden");
    assert_eq!(outcome("argv: \"*secret*\"", program, &["--", "a/secret"]), "denied");
    assert_eq!(outcome("argv: \"*secret*\"", program, &["--", "a"]), "ok");
}

#[test]
fn a_function_has_no_command_line() {
    let crib = Crib::new();
    fs::copy(crate::crib::guest("typed"), crib.path("tools/bin/typed.wasm")).unwrap();
    crib.manifest(&json!({"tools": [{"name": "echo", "command": ["./tools/bin/typed", "add"], "argv": ["x"]}]}));
    let ran = crib.run(&["validate", "tools.json"]);
    assert!(ran.stdout.contains("argv, stdin, output and successCodes are for commands"), "{ran:?}");
}

#[test]
fn a_program_without_a_definition_takes_arguments_from_the_command_line() {
    let page = Page::new();
    let crib = Crib::new();
    crib.install_wat("words", WORDS);
    let call = |flags: &[&str], argv: &[&str]| {
        page.run(&crib, &[&["call", "words", "--tools=tools/bin/words.wasm"], flags, &["--"], argv].concat())
    };
    call(&[], &["-n", "{x}", "--", "a b"]);
    call(&["--text=typed"], &["x"]);
    call(&[], &["!3"]);
    call(&["--deny-tool=words(argv=-n)"], &["-n"]);
    call(&["--deny-tool=w*(path=x)"], &["x"]);
    call(&["--ask-tool=words"], &["-x"]);
    page.run(&crib, &["call", "word", "--tools=tools/bin/words.wasm", "--", "x"]);
    page.run(&crib, &["call", "words", "{}", "--tools=tools/bin/words.wasm", "--", "x"]);
    page.run(&crib, &["call", "get_time", "--tools=builtin", "--", "x"]);
    page.matches("argv/call");
}

#[test]
fn a_bundle_keeps_a_command_line() {
    let crib = crib(&json!({"argv": ["--all", "{text}"], "output": "lines"}));
    let packed = crib.run(&["bundle", "pack", "tools.json", "-o", "words.tar"]);
    assert_eq!(packed.code, Some(0), "{packed:?}");
    assert_eq!(content(&crib.call("words", &json!({"text": "x"}), &["--tools=words.tar"])), json!(["--all", "x"]));
}
