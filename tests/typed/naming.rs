//! Names of a component's functions, and messages about functions that cannot be tools.

use std::fs;

use serde_json::json;

use super::{call, crib, wat};

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
    let crib = crib();
    let checked = crib.run(&["validate", "typed.wasm"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let output = checked.stdout + &checked.stderr;
    assert!(output.contains("4 of its exports are not tools"), "{output}");
    assert!(output.contains("`test:typed/things@0.1.0#[constructor]thing` (a part of a resource"), "{output}");
    assert_eq!(call(&crib, "plain", &json!({}), &[]).1, json!("plain"));
    let taken = crib.run(&["call", "take", "{}", "--tools", "typed.wasm"]);
    assert!(taken.stdout.contains("unknown tool: take"), "{taken:?}");
}

/// The engine loads no component with a stream: the author learns which function to change.
#[test]
fn the_function_with_a_stream_is_named_with_its_type_and_the_way_out() {
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
        let ran = crib.run(arguments);
        let output = ran.stdout.clone() + &ran.stderr;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        for words in [
            "`store` (its parameter `data` is or holds a stream or a future",
            "the other functions of the component only without it",
            "such as a list in place of a stream",
        ] {
            assert!(output.contains(words), "{words}: {output}");
        }
        assert!(!output.contains("`add` ("), "{output}");
    }
}

#[test]
fn a_component_without_a_function_for_json_is_refused_with_the_reason() {
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
    let ran = crib.run(&["list", "--strict", "--tools", "handles.wasm"]);
    assert_eq!(ran.code, Some(1));
    let expected = "none of its exports is a tool: `open` (its result is or holds a handle of a resource";
    assert!(ran.stderr.contains(expected), "{ran:?}");
    fs::write(crib.path("text.wasm"), "no component").unwrap();
    let ran = crib.run(&["list", "--strict", "--tools", "text.wasm"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("not a WebAssembly component or module"), "{ran:?}");
}

#[test]
fn two_functions_that_would_be_one_tool_are_refused_and_both_named() {
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
    let ran = crib.run(&["list", "--strict", "--tools", "twice.wasm"]);
    let expected = "`a:b/c@1.0.0#f` and `a:b/c@1.10.0#f` would both be the tool `b_c_f`";
    assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{ran:?}");
    // Across components a name means one tool, too.
    for name in ["one", "two"] {
        fs::copy(crib.path("typed.wasm"), crib.path(format!("{name}.wasm"))).unwrap();
    }
    let ran = crib.run(&["list", "--strict", "--tools", "one.wasm", "--tools", "two.wasm"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("one.wasm") && ran.stderr.contains("two.wasm"), "{ran:?}");
}

#[test]
fn an_import_that_nobody_serves_is_named_when_the_tool_is_listed_or_called() {
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
    let listed = crib.run(&["list", "--tools", "wants.wasm"]);
    assert!(listed.code == Some(0) && listed.stdout.contains(why), "{listed:?}");
    let output = crib.call("wants", &json!({}), &["--tools", "wants.wasm"]);
    assert_eq!((&output["receipt"]["outcome"], &output["error"]), (&json!("bad-component"), &json!(why)), "{output}");
    let strict = crib.run(&["list", "--strict", "--tools", "wants.wasm"]);
    assert!(strict.code == Some(1) && strict.stderr.contains(why), "{strict:?}");
}

#[test]
fn types_that_are_too_many_or_too_deep_are_no_tool() {
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
    for (name, text, reason) in [
        ("deep.wasm", bomb(&deep, "$t59"), "types nested deeper than 50 levels"),
        ("wide.wasm", bomb(&wide, "$w"), "its types consist of 5002 types, more than the 5000 allowed"),
        ("bomb.wasm", bomb(&types, "$t15"), "its types consist of 131071 types, more than the 5000 allowed"),
    ] {
        wat(&crib, name, &text);
        let ran = crib.run(&["list", "--strict", "--tools", name]);
        assert!(ran.code == Some(0) && ran.stderr.contains(reason), "{name}: {ran:?}");
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
    for (name, text, reason) in [
        ("large.wasm", bomb(&large(2000), "$w"), "its schemas would have about"),
        ("together.wasm", together + ")", "the schemas of all functions together would have more than 2097152 bytes"),
        ("long.wasm", long, "its name is longer than 128 characters"),
    ] {
        wat(&crib, name, &text);
        let ran = crib.run(&["list", "--strict", "--tools", name]);
        assert!(ran.code == Some(0) && ran.stderr.contains(reason), "{name}: {ran:?}");
        assert_eq!(crib.call("g", &json!({}), &["--tools", name])["receipt"]["outcome"], "ok", "{name}");
    }
    let mut many = "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m))".to_owned();
    (0..257).for_each(|n| many += &format!("(func (export \"f{n}\") (canon lift (core func $i \"f\")))"));
    wat(&crib, "many.wasm", &(many + ")"));
    let ran = crib.run(&["list", "--strict", "--tools", "many.wasm"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("more than 256 functions"), "{ran:?}");
}
