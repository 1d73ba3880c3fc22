//! Each type of WIT through a component that returns its input, and the error for a value of another type.

use serde_json::{Value, json};
use toolcrib::{Audit, Runtime, ToolCall};

use crate::crib::{nesting, target};
use crate::records::watched::on_threads;

use super::{crib, of, shown, wat};

/// Runtime with the component's tools, so that one process makes many calls.
fn runtime(crib: &crate::crib::Crib, component: &str) -> Runtime {
    nesting::builder(Audit::folder(crib.path("audit")))
        .source(crib.path(component))
        .compile_cache(target().join("test-cache"))
        .build()
        .unwrap()
}

fn called(runtime: &Runtime, name: &str, arguments: &Value) -> String {
    on_threads(nesting::call(runtime, ToolCall::new("c", name, arguments.to_string()))).content().into_owned()
}

#[test]
fn a_value_of_each_type_comes_back_as_it_was() {
    let crib = crib();
    let runtime = runtime(&crib, "typed.wasm");
    let table = [
        ("a_bool", json!(true)),
        ("a_u8", json!(255)),
        ("a_u16", json!(65_535)),
        ("a_u32", json!(4_294_967_295_u64)),
        ("a_u64", json!(u64::MAX)),
        ("a_s8", json!(-128)),
        ("a_s16", json!(-32_768)),
        ("a_s32", json!(i32::MIN)),
        ("a_s64", json!(i64::MIN)),
        ("a_f32", json!(0.1)),
        ("a_f32", json!("-Infinity")),
        ("a_f64", json!(-1.5e300)),
        ("a_f64", json!("NaN")),
        ("a_char", json!("🦀")),
        ("a_string", json!("a \"b\"\n\u{0}é")),
        ("a_list", json!([1, 2, 65_535])),
        ("a_list", json!([])),
        ("some_bytes", json!("AAEC/w==")),
        ("a_tuple", json!([true, "x", 7])),
        ("a_record", json!({"size": 3, "label": "three"})),
        ("a_record", json!({"size": 3, "label": null})),
        ("a_variant", json!({"circle": 2.5})),
        ("a_variant", json!({"square": {"size": 1, "label": null}})),
        ("a_variant", json!("nothing")),
        ("an_enum", json!("high")),
        ("some_flags", json!(["read", "run"])),
        ("some_flags", json!([])),
        ("an_option", json!(null)),
        ("an_option", json!(7)),
        ("a_nested_option", json!(null)),
        ("a_nested_option", json!({"some": null})),
        ("a_nested_option", json!({"some": 7})),
        ("a_result", json!([{"ok": 7}])),
        ("a_result", json!([{"error": "why"}])),
        ("a_bare_result", json!(["ok"])),
        ("a_bare_result", json!(["error"])),
    ];
    for (name, value) in table {
        let answer = called(&runtime, name, &of(value.clone()));
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), value, "{name}");
    }
    // An omitted option is none.
    let items = json!({"items": [{"size": 1}]});
    assert_eq!(called(&runtime, "items", &items), r#"[{"size":1,"label":null}]"#);
    // An integer may be written with a point.
    assert_eq!(called(&runtime, "a_u8", &of(json!(7.0))), "7");
    let many = json!({"second-one": "two", "first": 1});
    assert_eq!(called(&runtime, "many", &many), r#""1 two None""#);
}

/// A map of the component model, which few compilers support yet: a hand-written component that returns its map.
#[test]
fn a_map_comes_back_as_it_was() {
    let crib = crib();
    let map = |key: &str| {
        format!(
            r#"(component
            (core module $m
                (memory (export "memory") 1)
                (global $next (mut i32) (i32.const 1024))
                (func (export "realloc") (param i32 i32 i32 i32) (result i32)
                    (local $at i32)
                    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
                    (global.set $next (i32.add (local.get $at) (local.get 3)))
                    (local.get $at))
                (func (export "same") (param i32 i32) (result i32)
                    (i32.store (i32.const 16) (local.get 0))
                    (i32.store (i32.const 20) (local.get 1))
                    (i32.const 16)))
            (core instance $i (instantiate $m))
            (type $map (map {key} bool))
            (func (export "same") (param "value" $map) (result $map)
                (canon lift (core func $i "same") (memory $i "memory") (realloc (func $i "realloc")))))"#
        )
    };
    wat(&crib, "texts.wasm", &map("string"));
    wat(&crib, "numbers.wasm", &map("u8"));
    let texts = runtime(&crib, "texts.wasm");
    assert_eq!(called(&texts, "same", &of(json!({"a": true, "b": false}))), r#"{"a":true,"b":false}"#);
    let numbers = runtime(&crib, "numbers.wasm");
    assert_eq!(called(&numbers, "same", &of(json!([[1, true], [2, false]]))), "[[1,true],[2,false]]");
    let wrong = called(&numbers, "same", &of(json!([[1, true], [256, false]])));
    assert_eq!(wrong, r#"{"error":"invalid arguments: $.value[1][0]: 256 does not fit u8"}"#);
    let schema = shown(&crib, "same", "texts.wasm");
    assert_eq!(
        schema["parameters"]["properties"]["value"],
        json!({"type": "object", "additionalProperties": {"type": "boolean"}})
    );
}

#[test]
fn an_argument_that_does_not_fit_is_told_with_its_place_and_the_function_is_not_called() {
    let crib = crib();
    let runtime = runtime(&crib, "typed.wasm");
    for (name, arguments, expected) in [
        (
            "items",
            json!({"items": [{"size": 1}, {"size": 2}, {"size": 3}, {"size": 70_000}]}),
            "$.items[3].size: 70000 does not fit u16",
        ),
        ("a_s8", of(json!(128)), "$.value: 128 does not fit s8"),
        ("a_u64", of(json!(-1)), "$.value: -1 does not fit u64"),
        ("a_char", of(json!("ab")), "$.value: a string of one character is expected, found \\\"ab\\\""),
        ("an_enum", of(json!("mid")), "$.value: unknown name \\\"mid\\\", one of `low`, `high` is expected"),
        ("a_variant", of(json!("circle")), "$.value: the case `circle` carries f64 (a number)"),
        ("a_variant", of(json!({"nothing": 1})), "$.value: the case `nothing` carries nothing"),
        ("some_flags", of(json!(["read", "read"])), "$.value[1]: \\\"read\\\" occurs twice"),
        ("a_tuple", of(json!([true, "x"])), "$.value: a tuple of 3 is expected, found 2 items"),
        ("some_bytes", of(json!("###")), "$.value: not base64 with padding"),
        ("many", json!({"first": 1}), "$.second-one: missing, a string is expected"),
        ("many", json!({"first": 1, "second-one": "x", "fourth": 1}), "$.fourth: unknown argument, one of"),
    ] {
        let answer = called(&runtime, name, &arguments);
        assert!(
            answer.starts_with(r#"{"error":"invalid arguments: "#) && answer.contains(expected),
            "{name}: {answer}"
        );
    }
    let records = crib.records();
    assert!(records.iter().all(|record| record["outcome"] == "bad-arguments"), "{records:?}");
}

#[test]
fn a_model_is_shown_the_schema_that_the_types_mean() {
    let crib = crib();
    let items = shown(&crib, "items", "typed.wasm");
    let item = json!({
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 65_535},
            "label": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["size"],
    });
    let parameters = json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": item}},
        "required": ["items"],
    });
    assert_eq!(items["parameters"], parameters);
    // The answer is described too: for a `result`, its success value.
    let inspected = crib.run(&["inspect", "with_variant", "--tools", "typed.wasm", "--json"]);
    assert!(inspected.stdout.contains(r#""output_schema""#), "{inspected:?}");
    let wide = shown(&crib, "a_u64", "typed.wasm");
    assert_eq!(wide["parameters"]["properties"]["value"]["maximum"], json!(u64::MAX));
}
