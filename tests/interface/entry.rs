//! Object `interface` in an entry of a `tools.json`.

use std::fs;

use serde_json::{Value, json};
use toolcrib::tool::Basis;

use super::{field, load, validate};
use crate::crib::Crib;
use crate::screen::Page;

/// Creates a crib with one tool `n` of this interface and these further fields.
fn crib(interface: Value, more: Value) -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    let mut entry = json!({"name": "n", "command": ["./tools/bin/echo"], "interface": interface});
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    crib.manifest(&json!({"tools": [entry]}));
    crib
}

#[test]
fn a_stated_field_is_declared_in_every_partition() {
    let stated = json!({
        "tool_id": "vendor.n", "search_hint": "words", "strict": true, "required_credentials": ["TOKEN"],
        "deny_before_io": false, "is_open_world": "false", "risk_level": "high", "interrupt_behavior": "cancel",
        "max_inline_chars": 100, "rendering": {"ui_summary": "do {a}"}, "error_render_hint": "no {a}",
        "value_validation": [{"field": "/start", "is": "<=", "than": {"field": "/end"}}],
        "io_preflight_validation": [{"field": "/path", "use": "read"}]
    });
    let crib = crib(stated, json!({}));
    assert_eq!(validate(&crib, "tools.json"), (Some(0), "1 source, no problems found\n".to_owned()));
    let tool = &load(&crib, "tools.json")[0];
    for (name, value) in [
        ("tool_id", json!("vendor.n")),
        ("search_hint", json!("words")),
        ("strict", json!(true)),
        ("required_credentials", json!(["TOKEN"])),
        ("deny_before_io", json!(false)),
        ("is_open_world", json!(false)),
        ("risk_level", json!("high")),
        ("interrupt_behavior", json!("cancel")),
        ("max_inline_chars", json!(100)),
        ("ui_summary", json!("do {a}")),
        ("error_render_hint", json!("no {a}")),
    ] {
        assert_eq!(field(tool, name), (value, Basis::Declared), "{name}");
    }
    assert_eq!(field(tool, "aliases"), (json!([]), Basis::Default));
}

#[test]
fn a_wrong_value_of_each_kind_is_an_error_with_its_place() {
    let page = Page::new();
    for stated in [
        json!({"is_read_only": "when it rains"}),
        json!({"is_enabled": null}),
        json!({"search_hint": 1}),
        json!({"aliases": "a"}),
        json!({"aliases": ["a", 1]}),
        json!({"native_ids": []}),
        json!({"output_schema": true}),
        json!({"max_inline_chars": 0}),
        json!({"timeout_ms": 1.5}),
        json!({"risk_level": "huge"}),
        json!({"rendering": "plain"}),
        json!({"rendering": {"ui_summary": 1}}),
        json!({"rendering": {"ui_summary": "a"}, "ui_summary": "b"}),
        json!({"value_validation": [{"field": "start"}]}),
        json!({"io_preflight_validation": [{"field": "/p", "use": "look"}]}),
        json!([]),
    ] {
        page.note(stated.to_string());
        let (code, output) = validate(&crib(stated, json!({})), "tools.json");
        assert_eq!(code, Some(1), "{output}");
        page.text("validate", &output);
    }
    page.matches("record/wrong-field");
}

#[test]
fn every_wrong_field_is_told_at_once() {
    let page = Page::new();
    let crib = crib(json!({"strict": 1, "aliases": 2, "rendering": {"ui_summary": 3}}), json!({}));
    let (_, output) = validate(&crib, "tools.json");
    page.text("validate", &output);
    page.matches("record/every-field");
}

#[test]
fn an_unknown_field_is_kept_and_warned_of_with_the_nearest() {
    let page = Page::new();
    let stated = json!({"is_readonly": true, "x_vendor": 1, "rendering": {"colour": "red"}, "name": "m"});
    let crib = crib(stated, json!({}));
    let (code, output) = validate(&crib, "tools.json");
    assert_eq!(code, Some(0), "{output}");
    page.text("validate", &output);
    let unknown = &load(&crib, "tools.json")[0].origin.unknown["interface"];
    assert_eq!(*unknown, json!({"rendering": {"colour": "red"}, "name": "m", "is_readonly": true, "x_vendor": 1}));
    page.matches("record/unknown-field");
}

#[test]
fn a_field_of_rendering_is_stated_by_rendering_alone() {
    let page = Page::new();
    let crib = crib(json!({"rendering": {"requires_user_interaction": true}}), json!({}));
    let (_, output) = validate(&crib, "tools.json");
    page.text("validate", &output);
    assert_eq!(field(&load(&crib, "tools.json")[0], "requires_user_interaction"), (json!(false), Basis::Default));
    page.matches("record/rendering");
}

#[test]
fn a_deadline_may_stand_in_either_place_and_not_differ() {
    let page = Page::new();
    let deadline = |interface: Value, more: Value| load(&crib(interface, more), "tools.json")[0].limits.deadline;
    let millis = |count| Some(std::time::Duration::from_millis(count));
    assert_eq!(deadline(json!({"timeout_ms": 1500}), json!({})), millis(1500));
    assert_eq!(deadline(json!({"timeout_ms": 1500}), json!({"timeoutSec": 0})), millis(1500));
    assert_eq!(deadline(json!({"timeout_ms": 2000}), json!({"timeoutSec": 2})), millis(2000));
    assert_eq!(deadline(json!({}), json!({"timeoutSec": 2})), millis(2000));
    let (code, output) = validate(&crib(json!({"timeout_ms": 1500}), json!({"timeoutSec": 2})), "tools.json");
    assert_eq!(code, Some(1));
    page.text("validate", &output);
    page.matches("record/deadlines");
}

#[test]
fn a_deadline_of_the_interface_holds() {
    let crib = Crib::with_guests(&["busy"]);
    crib.manifest(&json!({"tools": [
        {"name": "n", "command": ["./tools/bin/busy"], "interface": {"timeout_ms": 100}}
    ]}));
    assert_eq!(crib.outcome("n", &json!({"ms": 700}), &[]), "deadline");
}

#[test]
fn a_schema_may_stand_in_either_place_and_not_differ() {
    let page = Page::new();
    let schema = json!({"type": "object", "required": ["a"]});
    let wrong = |interface: Value, more: Value| crib(interface, more).outcome("n", &json!({}), &[]);
    assert_eq!(wrong(json!({"runtime_input_schema": schema}), json!({})), "bad-arguments");
    assert_eq!(wrong(json!({"runtime_input_schema": schema}), json!({"schema": schema})), "bad-arguments");
    assert_eq!(wrong(json!({"model_input_schema": schema}), json!({})), "bad-arguments");
    let differs = crib(json!({"runtime_input_schema": schema}), json!({"schema": {"type": "object"}}));
    let (code, output) = validate(&differs, "tools.json");
    assert_eq!(code, Some(1));
    page.text("validate", &output);
    let (code, output) = validate(&crib(json!({"runtime_input_schema": {"type": "strin"}}), json!({})), "tools.json");
    assert_eq!(code, Some(1), "{output}");
    page.text("validate", &output);
    page.matches("record/schemas");
}

#[test]
fn a_field_stated_twice_is_an_error_and_never_the_last_word() {
    let page = Page::new();
    for object in ["interface", "capabilities", "limits"] {
        let crib = Crib::with_guests(&["echo"]);
        let text = format!(
            r#"{{"tools":[{{"name":"n","command":["./tools/bin/echo"],"{object}":{{"is_read_only":false,"is_read_only":true}}}}]}}"#
        );
        fs::write(crib.path("tools.json"), text).unwrap();
        let (code, output) = validate(&crib, "tools.json");
        assert_eq!(code, Some(1));
        page.text(object, &output);
    }
    page.matches("record/twice");
}
