//! `wasi:keyvalue` in the memory of a run: both drafts, the owner of values, and the limits.

use serde_json::{Value, json};

use super::{entry, run};
use crate::crib::Crib;
use crate::screen::Page;

#[test]
fn a_value_lasts_as_long_as_the_run_and_no_longer() {
    let crib = Crib::with_guests(&["kept_first"]);
    let steps = json!({"steps": [{"get": "a"}, {"add": ["n", 2]}, {"set": ["a", "value"]}]});
    let results = run(&crib, &[("kept_first", steps.clone()), ("kept_first", steps.clone())], &[]);
    assert_eq!(results, [json!([null, 2, null]), json!(["value", 4, null])]);
    assert_eq!(run(&crib, &[("kept_first", steps.clone())], &[]), [json!([null, 2, null])]);
    for _ in 0..2 {
        assert_eq!(crib.call("kept_first", &steps, &[])["result"], json!([null, 2, null]), "a call alone is no run");
    }
}

#[test]
fn every_function_of_the_first_draft_does_what_it_says() {
    let crib = Crib::with_guests(&["kept_first"]);
    let steps = json!({"store": "default", "steps": [
        {"exists": "a"}, {"set": ["a", "1"]}, {"exists": "a"}, {"add": ["a", 41]}, {"get": "a"}, {"set-many": 250}, "list",
        {"get-many": ["a", "none", "key7"]}, {"delete-many": ["key7", "key8", "none"]}, {"exists": "key7"}, {"delete": "a"},
        "list", {"set": ["word", "seven"]}, {"add": ["word", 1]}, {"add": ["big", u64::MAX]}, {"add": ["big", 1]},
    ]});
    let line = crib.call("kept_first", &steps, &[]);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    let output = line["result"].as_array().unwrap();
    assert_eq!(output[..5], [json!(false), json!(null), json!(true), json!(42), json!("42")]);
    assert_eq!(output[6], json!({"pages": 3, "keys": 251}));
    assert_eq!(output[7], json!([["a", "42"], null, ["key7", "\u{1}"]]));
    assert_eq!(output[8..11], [json!(null), json!(false), json!(null)]);
    assert_eq!(output[11], json!({"pages": 3, "keys": 248}));
    assert!(output[13]["error"].as_str().unwrap().contains("not a whole number"), "{line}");
    assert_eq!(output[14], json!(u64::MAX));
    assert!(output[15]["error"].as_str().unwrap().contains("outside the range"), "{line}");
}

#[test]
fn the_second_draft_lists_by_key_subtracts_and_swaps_what_it_has_seen() {
    let crib = Crib::with_guests(&["kept_second"]);
    std::fs::write(crib.path("toolcrib.toml"), "[config.kept_second]\nstyle = 'brief'\n").unwrap();
    let line = crib.call("kept_second", &json!({"keys": 250}), &[]);
    let expected = json!({
        "listed": 250, "pages": 3, "sum": -7, "before": false, "seen": "theirs", "swapped": true,
        "many": [["turn", "mine"], ["nothing", null]], "setting": "brief",
    });
    assert_eq!(line["result"], expected, "{line}");
}

#[test]
fn two_tools_of_one_program_keep_apart_and_no_other_store_has_a_name() {
    let crib = Crib::new();
    let tools = ["one", "two"].map(|name| entry(&crib, "kept_first", name, json!({})));
    crib.manifest(&json!({"tools": tools}));
    let steps = json!({"steps": [{"get": "a"}, {"set": ["a", "mine"]}]});
    let results = run(&crib, &[("one", steps.clone()), ("two", steps.clone()), ("one", steps)], &[]);
    assert_eq!(results, [json!([null, null]), json!([null, null]), json!(["mine", null])]);
    for name in ["two", "../two", "Default", "cache"] {
        let line = crib.call("one", &json!({"store": name, "steps": []}), &[]);
        assert_eq!(line["result"], json!({"error": "no-such-store"}), "{line}");
        assert_eq!(line["receipt"]["denied"], json!([]), "{line}");
    }
}

#[test]
fn who_states_what_it_asks_for_and_asks_for_no_cache_is_refused_and_the_record_says_so() {
    let crib = Crib::new();
    let stated = entry(&crib, "kept_first", "stated", json!({"capabilities": {}}));
    let asked = entry(&crib, "kept_first", "asked", json!({"capabilities": {"cache": true}}));
    crib.manifest(&json!({"tools": [stated, asked]}));
    let denied = json!([{"capability": "cache"}]);
    let line = crib.call("stated", &json!({"steps": [{"get": "a"}]}), &[]);
    assert_eq!((&line["result"], &line["receipt"]["denied"]), (&json!({"error": "access-denied"}), &denied), "{line}");
    let line = crib.call("stated", &json!({"steps": [], "fail": true}), &[]);
    // The guest formatted its own error; the refusal decides about the outcome.
    assert_eq!((&line["receipt"]["outcome"], &line["receipt"]["denied"]), (&json!("denied"), &denied), "{line}");
    assert_eq!(crib.records()[1]["denied"], denied);
    assert_eq!(crib.call("asked", &json!({"steps": [{"get": "a"}]}), &[])["result"], json!([null]));
}

#[test]
fn each_bound_is_an_error_that_names_it() {
    let crib = Crib::with_guests(&["kept_first"]);
    let output = |steps: Value| -> Vec<Value> {
        let line = crib.call("kept_first", &json!({"steps": steps}), &[]);
        assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
        line["result"].as_array().unwrap().clone()
    };
    let refused = |output: &Value, bound: &str| {
        assert!(output["error"].as_str().is_some_and(|why| why.contains(bound)), "{bound}: {output}");
    };
    let mib = 1 << 20;
    let one = output(json!([
        {"set-long-key": 1024}, {"set-long-key": 1025}, {"set-large": ["a", mib]}, {"set-large": ["a", mib + 1]},
    ]));
    assert_eq!((&one[0], &one[2]), (&json!(null), &json!(null)));
    refused(&one[1], "1025 bytes, more than the 1024 allowed");
    refused(&one[3], "1048577 bytes, more than the 1048576 allowed");
    let keys = output(json!([{"set-many": 1000}, {"set": ["key0", "x"]}, {"set": ["more", "x"]}, {"set-many": 1001}]));
    assert_eq!(keys[..2], [json!(null), json!(null)]);
    refused(&keys[2], "at most 1000 are allowed");
    refused(&keys[3], "1001 keys at once, more than the 1000 allowed");
    let large: Vec<Value> = (0..16).map(|n| json!({"set-large": [format!("k{n}"), mib]})).collect();
    let large = output(json!(large));
    assert!(large[..15].iter().all(Value::is_null), "{large:?}");
    refused(&large[15], "more than the 16777216 allowed");
    let again = output(json!([{"set-large": ["a", mib]}, {"get-many": vec!["a"; 17]}, {"get-many": vec!["a"; 1001]}]));
    refused(&again[1], "16777216 bytes that are given at once");
    refused(&again[2], "1001 keys at once");
    assert_eq!(crib.outcome("kept_first", &json!({"steps": [{"open": 500}]}), &[]), "handles");
    assert_eq!(output(json!([{"open": 50}])), [json!(50)]);
}

#[test]
fn a_rich_tool_finds_the_same_and_its_check_nothing() {
    let page = Page::new();
    let crib = Crib::new();
    std::fs::copy(crate::crib::guest("foreign"), crib.path("foreign.wasm")).unwrap();
    std::fs::write(crib.path("toolcrib.toml"), "[config.count]\nstyle = 'brief'\n").unwrap();
    let flags = ["--tools", "foreign.wasm"];
    let results = run(&crib, &[("count", json!({})), ("count", json!({}))], &flags);
    assert_eq!(results, [json!({"calls": 1, "style": "brief"}), json!({"calls": 2, "style": "brief"})]);
    page.run(&crib, &[&["call", "count", "{}", "--verbose"], &flags[..]].concat());
    page.matches("rich/kept");
}
