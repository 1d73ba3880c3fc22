//! Versions of the contract of rich tools: components of older versions keep running.

use serde_json::json;

use crate::crib::guest;

use super::{Shown, call, runtime_of};

#[test]
fn a_component_of_the_first_version_works_under_the_newest_contract() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let version = |path: &str| {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        text.lines().find_map(|line| line.strip_prefix("package toolcrib:tool@")).unwrap().to_owned()
    };
    assert_eq!(version("tests/guests/first/wit/tool.wit"), "1.0.0;");
    assert_ne!(version("wit/tool/tool.wit"), "1.0.0;", "the contract has grown since");
    let crib = super::crib();
    std::fs::copy(guest("first"), crib.path("first.wasm")).unwrap();
    let shown = std::sync::Arc::new(Shown::default());
    let runtime = runtime_of(&crib, "first.wasm", |builder| builder.observer(shown.clone()));
    let result = call(&runtime, "first", json!({"a": 1}));
    assert_eq!(result.content(), r#"{"a":1}"#);
    assert_eq!(shown.all(), ["started", r#"1 given {"a":1}"#, "ended ok"]);
    assert_eq!(result.log, "info: the first version still speaks\n");
}

#[test]
fn nothing_that_the_first_version_has_was_changed_or_taken_away() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let items = |path: &str| {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        let code = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("///"));
        code.filter(|line| !line.starts_with("package")).map(str::to_owned).collect::<Vec<_>>()
    };
    let newest = items("wit/tool/tool.wit");
    let mut rest = newest.iter();
    for line in items("tests/guests/first/wit/tool.wit") {
        assert!(rest.any(|newer| *newer == line), "the newest version no longer has, in its place: {line}");
    }
}

#[test]
fn a_prebuilt_component_previews_and_reports_progress_as_when_it_was_built() {
    let crib = super::crib();
    let prebuilt = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/contracts/tool.wasm");
    std::fs::copy(prebuilt, crib.path("tool.wasm")).unwrap();
    let shown = std::sync::Arc::new(Shown::default());
    let runtime = runtime_of(&crib, "tool.wasm", |builder| builder.observer(shown.clone()));
    let result = call(&runtime, "tool", json!({"a": 1}));
    assert_eq!(result.content(), r#"{"cached": {"a":1}, "secrets": 0}"#);
    let shown = shown.all();
    assert!(shown.iter().any(|line| line == r#"preview about to use {"a":1}"#), "{shown:?}");
    assert!(shown.iter().any(|line| line == "2 working"), "{shown:?}");
    assert_eq!(shown.last().unwrap(), "ended ok");
    assert_eq!(result.log, "info: built for 1.1.0\n");
}
