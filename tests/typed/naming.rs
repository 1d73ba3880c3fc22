//! Names of a component's functions, and messages about functions that cannot be tools.

use std::fs;

use serde_json::json;

use super::{call, crib, wat};
use crate::screen::Page;

#[test]
fn functions_are_listed_by_their_shortest_name_and_answer_to_the_whole_one() {
    let crib = crib();
    let listed = crib.run(&["list", "--strict", "--tools", "typed.wasm"]);
    for name in ["add", "a_bool", "with_text", "plain"] {
        assert!(listed.stdout.lines().any(|line| line.split(' ').next() == Some(name)), "{name}: {listed:?}");
    }
    assert_eq!(call(&crib, "add", &json!({"a": 1, "b": 2}), &[]).1, json!(3));
    assert_eq!(call(&crib, "typed_ends_long", &json!({"length": 3}), &[]).1, json!("xxx"));
}

#[test]
fn what_holds_a_resource_is_told_and_the_rest_stays_usable() {
    let page = Page::new();
    let crib = crib();
    let checked = page.run(&crib, &["validate", "typed.wasm"]);
    let output = checked.stdout + &checked.stderr;
    assert!(output.contains("4 of its exports are not tools"), "{output}");
    assert!(output.contains("`test:typed/things@0.1.0#[constructor]thing` (a part of a resource"), "{output}");
    assert_eq!(call(&crib, "plain", &json!({}), &[]).1, json!("plain"));
    page.run(&crib, &["call", "take", "{}", "--tools", "typed.wasm"]);
    page.matches("typed/resource");
}

/// The engine loads no component with a stream: the author learns which function to change.
#[test]
fn the_function_with_a_stream_is_named_with_its_type_and_the_way_out() {
    let page = Page::new();
    let crib = crib();
    wat(
        &crib,
        "streams.wasm",
        r#"(component
            (core module $m (func (export "add") (param i32) (result i32) (local.get 0)) (func (export "store") (param i32)))
            (core instance $i (instantiate $m))
            (type $bytes (stream u8))
            (func (export "add") (param "n" u32) (result u32) (canon lift (core func $i "add")))
            (func (export "store") (param "data" $bytes) (canon lift (core func $i "store"))))"#,
    );
    for arguments in [&["validate", "streams.wasm"][..], &["call", "add", "{\"n\":1}", "--tools", "streams.wasm"]] {
        let ran = page.run(&crib, arguments);
        let output = ran.stdout.clone() + &ran.stderr;
        for words in [
            "`store` (its parameter `data` is or holds a stream or a future",
            "the other functions of the component only without it",
            "such as a list in place of a stream",
        ] {
            assert!(output.contains(words), "{words}: {output}");
        }
        assert!(!output.contains("`add` ("), "{output}");
    }
    page.matches("typed/stream");
}

#[test]
fn a_component_without_a_function_for_json_is_refused_with_the_reason() {
    let page = Page::new();
    let crib = crib();
    wat(
        &crib,
        "handles.wasm",
        r#"(component
            (type $file' (resource (rep i32)))
            (export $file "file" (type $file'))
            (core module $m (func (export "open") (result i32) i32.const 0))
            (core instance $i (instantiate $m))
            (func (export "open") (result (own $file)) (canon lift (core func $i "open"))))"#,
    );
    page.run(&crib, &["list", "--strict", "--tools", "handles.wasm"]);
    fs::write(crib.path("text.wasm"), "no component").unwrap();
    page.run(&crib, &["list", "--strict", "--tools", "text.wasm"]);
    page.matches("typed/no-function");
}

#[test]
fn two_functions_that_would_be_one_tool_are_refused_and_both_named() {
    let page = Page::new();
    let crib = crib();
    let function = |interface: &str| {
        format!(
            r#"(component $c_{n} (core module $m (func (export "f"))) (core instance $i (instantiate $m))
                (func (export "f") (canon lift (core func $i "f"))))
            (instance $i_{n} (instantiate $c_{n}))
            (export "{interface}" (instance $i_{n}))"#,
            n = interface.len()
        )
    };
    let text = format!("(component {} {})", function("a:b/c@1.0.0"), function("a:b/c@1.10.0"));
    wat(&crib, "twice.wasm", &text);
    page.run(&crib, &["list", "--strict", "--tools", "twice.wasm"]);
    // Across components a name means one tool, too.
    for name in ["one", "two"] {
        fs::copy(crib.path("typed.wasm"), crib.path(format!("{name}.wasm"))).unwrap();
    }
    page.run(&crib, &["list", "--strict", "--tools", "one.wasm", "--tools", "two.wasm"]);
    page.matches("typed/same-name");
}

#[test]
fn an_import_that_nobody_serves_is_named_when_the_tool_is_listed_or_called() {
    let page = Page::new();
    let crib = crib();
    wat(
        &crib,
        "wants.wasm",
        r#"(component
            (import "acme:rockets/launch@1.0.0" (instance $i (export "go" (func))))
            (core func $go (canon lower (func $i "go")))
            (core module $m (import "a" "go" (func)) (func (export "f") call 0))
            (core instance $c (instantiate $m (with "a" (instance (export "go" (func $go))))))
            (func (export "f") (canon lift (core func $c "f"))))"#,
    );
    let why = "it has imports that cannot be linked: `acme:rockets/launch@1.0.0` (not available to tools)";
    page.run(&crib, &["list", "--tools", "wants.wasm"]);
    let output = crib.call("wants", &json!({}), &["--tools", "wants.wasm"]);
    assert_eq!((&output["receipt"]["outcome"], &output["error"]), (&json!("bad-component"), &json!(why)), "{output}");
    page.run(&crib, &["list", "--strict", "--tools", "wants.wasm"]);
    page.matches("typed/import");
}

#[test]
fn types_that_are_too_many_or_too_deep_are_no_tool() {
    let page = Page::new();
    let crib = crib();
    // Each tuple holds the one before twice: sixteen types, and 2^16 values.
    let mut types = "(type $t0 (tuple u8 u8))".to_owned();
    (1..16).for_each(|n| types += &format!("(type $t{n} (tuple $t{p} $t{p}))", p = n - 1));
    let bomb = |types: &str, last: &str| {
        format!(
            r#"(component {types}
            (core module $m (memory (export "m") 1) (func (export "f") (result i32) i32.const 0)
                (func (export "g") (result i32) i32.const 7))
            (core instance $i (instantiate $m))
            (func (export "g") (result u32) (canon lift (core func $i "g")))
            (func (export "f") (result {last}) (canon lift (core func $i "f") (memory $i "m"))))"#
        )
    };
    let mut deep = "(type $t0 (option u8))".to_owned();
    (1..60).for_each(|n| deep += &format!("(type $t{n} (option $t{p}))", p = n - 1));
    let mut wide = "(type $t0 (record".to_owned();
    (0..5_001).for_each(|n| wide += &format!(" (field \"f{n}\" bool)"));
    wide += "))(export $w \"w\" (type $t0))";
    for (name, text) in
        [("deep.wasm", bomb(&deep, "$t59")), ("wide.wasm", bomb(&wide, "$w")), ("bomb.wasm", bomb(&types, "$t15"))]
    {
        wat(&crib, name, &text);
        page.run(&crib, &["list", "--strict", "--tools", name]);
        assert_eq!(crib.call("g", &json!({}), &["--tools", name])["receipt"]["outcome"], "ok", "{name}");
    }
    // Long descriptions of few types, of several functions, and in a name.
    let cases = |count: usize| (0..count).map(|n| format!(" \"c{}{n}\"", "x".repeat(90))).collect::<String>();
    let large = |count: usize| format!("(type $t0 (enum{}))(export $w \"w\" (type $t0))", cases(count));
    let mut together = bomb(&large(800), "$w");
    together.pop();
    (0..12).for_each(|n| {
        together +=
            &format!("(func (export \"h{n}\") (result $w) (canon lift (core func $i \"f\") (memory $i \"m\")))");
    });
    let long = bomb("", "u32").replace(
        "(func (export \"f\") (result u32) (canon",
        &format!("(func (export \"f{}\") (result u32) (canon", "x".repeat(128)),
    );
    for (name, text) in
        [("large.wasm", bomb(&large(2000), "$w")), ("together.wasm", together + ")"), ("long.wasm", long)]
    {
        wat(&crib, name, &text);
        page.run(&crib, &["list", "--strict", "--tools", name]);
        assert_eq!(crib.call("g", &json!({}), &["--tools", name])["receipt"]["outcome"], "ok", "{name}");
    }
    let mut many = "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m))".to_owned();
    (0..257).for_each(|n| many += &format!("(func (export \"f{n}\") (canon lift (core func $i \"f\")))"));
    wat(&crib, "many.wasm", &(many + ")"));
    page.run(&crib, &["list", "--strict", "--tools", "many.wasm"]);
    page.matches("typed/too-deep");
}
