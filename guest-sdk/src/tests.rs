//! Descriptors and calls of tools that the macros generate, as the host and a model read them.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;

use crate::{Call, Encoding, FailureKind, Json, Part, Result, Schema, Value, json, testing, tool, tools};

tools!(greet, patch, edit, whole, lax, rich);

/// Greet someone by name.
///
/// With "quotes" and a \ in it.
#[tool(timeout = "2m", read_only, summary = "greet {name}")]
fn greet(
    /// Person to greet.
    name: String,
    /// Number of times, at most 10.
    #[arg(default = 1, minimum = 1, maximum = 10)]
    times: u32,
    loud: Option<bool>,
) -> Result<String> {
    let greeting = format!("hello, {name}").repeat(times as usize);
    Ok(if loud == Some(true) { greeting.to_uppercase() } else { greeting })
}

/// Apply a patch.
#[tool(name = "apply_patch", aliases("patch"), text(field = "patch", regex = "^\\*+$"))]
fn patch(call: &Call, text: String) -> String {
    format!("{} {text}", call.id)
}

/// Edit by text, with options.
#[tool(text(field = "text"))]
fn edit(text: &str, #[arg(default = 2)] times: u8) -> String {
    text.repeat(times.into())
}

/// A field of every kind.
#[derive(Debug, Deserialize, Schema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(dead_code, reason = "the schema alone matters")]
struct Whole {
    /// A path.
    #[arg(min_length = 1, pattern = "^[^\\0]+$")]
    file_path: String,
    #[serde(default)]
    small: u8,
    #[arg(minimum = -1.5)]
    ratio: f32,
    #[serde(rename = "kind")]
    shape: Shape,
    #[arg(max_items = 3, items(min_length = 2))]
    tags: Vec<String>,
    pair: (bool, char),
    three: [i16; 3],
    map: BTreeMap<String, u64>,
    boxed: Option<Box<i64>>,
    any: Value,
    encoding: Encoding,
    #[serde(skip)]
    hidden: Vec<HashMap<String, Encoding>>,
    tagged: Tagged,
}

#[derive(Debug, Deserialize, Schema)]
#[serde(rename_all = "kebab-case")]
enum Shape {
    Circle,
    LongBox,
}

/// One of two.
#[derive(Debug, Deserialize, Schema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "the schema alone matters")]
enum Tagged {
    /// Nothing more.
    Plain,
    Sized {
        width: u8,
        height: Option<u8>,
    },
}

/// Take everything.
#[tool(output)]
fn whole(#[args] args: Whole) -> Result<Json<Vec<u8>>> {
    Ok(Json(vec![args.small]))
}

/// Take more than it names.
#[tool(open)]
fn lax(_count: u8) {}

/// Ask for much.
#[tool(
    files = "read",
    network("api.example.com"),
    env("TZ"),
    tools("fs_*"),
    model,
    cache,
    destructive,
    open_world = false,
    tags("a"),
    required_tags("b"),
    forbidden_tags("c"),
    models("gpt-5*"),
    provider("custom_tools"),
    secret(name = "key", host = "api.example.com", header = "authorization"),
    limits(memory_mb = 16, fuel = 1_000),
    interface(search_hint = "much", should_defer = true)
)]
fn rich() {}

fn package() -> Value {
    json!({ "name": "toolcrib-guest", "version": env!("CARGO_PKG_VERSION"), "license": "Apache-2.0" })
}

#[test]
fn a_descriptor_says_all_that_the_function_does() {
    let expected = json!({
        "name": "greet",
        "description": "Greet someone by name.\n\nWith \"quotes\" and a \\ in it.",
        "schema": {
            "type": "object",
            "properties": {
                "name": { "type": "string", "description": "Person to greet." },
                "times": {
                    "type": "integer", "description": "Number of times, at most 10.",
                    "minimum": 1, "maximum": 10, "default": 1,
                },
                "loud": { "type": "boolean" },
            },
            "required": ["name"],
            "additionalProperties": false,
        },
        "interface": { "is_read_only": true, "rendering": { "ui_summary": "greet {name}" } },
        "timeoutSec": 120,
        "capabilities": {},
        "says": [],
        "package": package(),
    });
    assert_eq!(testing::descriptor::<greet>(), expected);
    let text = std::str::from_utf8(<greet as crate::Tool>::DESCRIPTOR).expect("text");
    assert!(text.find("\"name\":{") < text.find("\"times\":{") && text.find("\"times\":{") < text.find("\"loud\":{"));
}

#[test]
fn a_tool_that_takes_text_has_a_grammar_and_no_schema() {
    let expected = json!({
        "name": "apply_patch",
        "description": "Apply a patch.",
        "text": { "field": "patch", "grammar": { "syntax": "regex", "definition": "^\\*+$" } },
        "aliases": ["patch"],
        "capabilities": {},
        "says": [],
        "package": package(),
    });
    assert_eq!(testing::descriptor::<patch>(), expected);
    let answer = testing::call::<patch>(json!("***")).expect("an answer");
    assert_eq!(answer.content, [Part::text("call_1 ***")]);
    let refused = testing::call::<patch>(json!({})).expect_err("refused").to_string();
    assert_eq!(refused, "`apply_patch` takes text, not an object of arguments");
}

#[test]
fn a_tool_that_takes_text_and_options_has_a_schema_too() {
    let described = testing::descriptor::<edit>();
    assert_eq!(described["text"], json!({ "field": "text" }));
    assert_eq!(described["schema"]["required"], json!(["text"]));
    let answer = testing::call::<edit>(json!({ "text": "a" })).expect("an answer");
    assert_eq!(answer.content, [Part::text("aa")]);
}

#[test]
fn a_type_has_the_schema_of_what_serde_reads() {
    let described = testing::descriptor::<whole>();
    let expected = json!({
        "type": "object",
        "description": "A field of every kind.",
        "properties": {
            "filePath": { "type": "string", "description": "A path.", "minLength": 1, "pattern": "^[^\\0]+$" },
            "small": { "type": "integer", "minimum": 0, "maximum": 255 },
            "ratio": { "type": "number", "minimum": -1.5 },
            "kind": { "type": "string", "enum": ["circle", "long-box"] },
            "tags": { "type": "array", "items": { "type": "string", "minLength": 2 }, "maxItems": 3 },
            "pair": {
                "type": "array", "minItems": 2, "maxItems": 2,
                "prefixItems": [{ "type": "boolean" }, { "type": "string", "minLength": 1, "maxLength": 1 }],
            },
            "three": {
                "type": "array", "minItems": 3, "maxItems": 3,
                "items": { "type": "integer", "minimum": -32768, "maximum": 32767 },
            },
            "map": { "type": "object", "additionalProperties": { "type": "integer", "minimum": 0 } },
            "boxed": { "type": "integer" },
            "any": {},
            "encoding": { "type": "string", "enum": ["utf-8", "base64"] },
            "tagged": {
                "description": "One of two.",
                "oneOf": [
                    {
                        "description": "Nothing more.",
                        "type": "object", "properties": { "type": { "const": "plain" } }, "required": ["type"],
                    },
                    {
                        "type": "object",
                        "properties": {
                            "type": { "const": "sized" },
                            "width": { "type": "integer", "minimum": 0, "maximum": 255 },
                            "height": { "type": "integer", "minimum": 0, "maximum": 255 },
                        },
                        "required": ["type", "width"],
                    },
                ],
            },
        },
        "required": ["filePath", "ratio", "kind", "tags", "pair", "three", "map", "any", "encoding", "tagged"],
        "additionalProperties": false,
    });
    assert_eq!(described["schema"], expected);
    let numbers = json!({ "type": "array", "items": { "type": "integer", "minimum": 0, "maximum": 255 } });
    assert_eq!(described["output"], numbers);
}

#[test]
fn what_that_schema_takes_is_read() {
    let arguments = json!({
        "filePath": "a", "ratio": 1, "kind": "long-box", "tags": ["ab"], "pair": [true, "x"], "three": [1, 2, 3],
        "map": { "a": 1 }, "any": null, "encoding": "base64", "tagged": { "type": "sized", "width": 1 },
    });
    let answer = testing::call::<whole>(arguments.clone()).expect("an answer");
    assert_eq!(answer.content, [Part::Json("[0]".into())]);
    let mut more = arguments;
    more["hidden"] = json!([]);
    let refused = testing::call::<whole>(more).expect_err("refused").to_string();
    assert!(refused.starts_with("arguments: unknown field `hidden`"), "{refused}");
}

#[test]
fn what_a_tool_asks_for_stands_in_its_descriptor() {
    let described = testing::descriptor::<rich>();
    let secret = json!({ "name": "key", "host": "api.example.com", "header": "authorization" });
    let capabilities = json!({
        "files": "read", "network": ["api.example.com"], "env": ["TZ"], "tools": ["fs_*"], "model": true, "cache": true,
        "secrets": [secret],
    });
    assert_eq!(described["capabilities"], capabilities);
    assert_eq!(described["limits"], json!({ "memoryMb": 16, "fuel": 1000 }));
    let interface = json!({
        "is_destructive": true, "is_open_world": false, "search_hint": "much", "should_defer": true,
    });
    assert_eq!(described["interface"], interface);
    assert_eq!(described["requiredTags"], json!(["b"]));
    assert_eq!(described["provider"], json!(["custom_tools"]));
}

#[test]
fn defaults_fill_in_what_is_missing() {
    assert_eq!(greet("Ada".into(), 1, None).expect("a greeting"), "hello, Ada");
    let answer = testing::call::<greet>(json!({ "name": "Ada" })).expect("an answer");
    assert_eq!(answer.content, [Part::text("hello, Ada")]);
    let answer = testing::call::<greet>(json!({ "name": "A", "times": 2.0, "loud": true })).expect("an answer");
    assert_eq!(answer.content, [Part::text("HELLO, AHELLO, A")]);
}

#[test]
fn what_is_wrong_with_an_argument_is_told_by_its_name() {
    let refused = |arguments| {
        let error = testing::call::<greet>(arguments).expect_err("refused");
        assert_eq!(error.kind(), FailureKind::Invalid);
        error.to_string()
    };
    let known = "expected `name`, `times`, `loud`";
    assert_eq!(refused(json!({ "nmae": "Ada" })), format!("arguments: unknown argument `nmae`, {known}"));
    assert_eq!(refused(json!({})), "arguments: `name` is missing");
    assert_eq!(refused(json!({ "name": 1 })), "arguments: `name`: found an integer, expected a string");
    assert_eq!(refused(json!([1])), "arguments: found a list, expected an object of arguments");
    assert_eq!(refused(json!("text")), "`greet` takes an object of arguments, not text");
    assert!(testing::call::<lax>(json!({ "count": 1, "more": 2 })).is_ok());
    let mut twice = testing::invocation::<greet>(&json!({}));
    twice.payload = crate::Payload::Object(r#"{"name":"a","name":"b"}"#.into());
    let twice = <greet as crate::Tool>::run(&twice).expect_err("refused").to_string();
    assert_eq!(twice, "arguments: `name` occurs twice");
}
