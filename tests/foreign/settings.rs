//! `wasi:config` and `wasi:logging`: the settings of the called tool, and lines for people.

use std::fs;

use serde_json::{Value, json};

use super::entry;
use crate::crib::Crib;

fn told(crib: &Crib, name: &str) -> Value {
    let line = crib.call(name, &json!({"key": "style"}), &[]);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    line["result"].clone()
}

#[test]
fn a_tool_finds_its_own_settings_as_texts() {
    let crib = Crib::new();
    let tools = ["one", "two"].map(|name| entry(&crib, "settings", name, json!({})));
    crib.manifest(&json!({ "tools": tools }));
    let settings = "[config.one]\nstyle = 'brief'\nmost = 3\ndeep = { list = [true, 1.5] }\n";
    fs::write(crib.path("toolcrib.toml"), settings).unwrap();
    let all = json!([["deep", r#"{"list":[true,1.5]}"#], ["most", "3"], ["style", "brief"]]);
    assert_eq!(told(&crib, "one"), json!({"one": {"Ok": "brief"}, "all": {"Ok": all}}));
    assert_eq!(told(&crib, "two"), json!({"one": {"Ok": null}, "all": {"Ok": []}}));
}

#[test]
fn too_many_or_too_long_settings_are_an_error_and_never_cut() {
    let crib = Crib::with_guests(&["settings"]);
    let many: String = (0..1001).map(|n| format!("k{n} = 1\n")).collect();
    for (settings, why) in [
        (many, "1001 settings, more than the 1000"),
        (format!("a = '{}'", "x".repeat(65_537)), "65537 bytes, more than"),
    ] {
        fs::write(crib.path("toolcrib.toml"), format!("[config.settings]\n{settings}\n")).unwrap();
        let told = told(&crib, "settings");
        for part in ["one", "all"] {
            let error = told[part]["Err"].as_str().unwrap();
            assert!(error.contains("Upstream") && error.contains(why), "{told}");
        }
    }
}

#[test]
fn lines_go_to_standard_error_within_its_cap() {
    let crib = Crib::with_guests(&["settings", "kept_second"]);
    let ran = crib.run(&["call", "settings", "{}", "--verbose"]);
    let lines = ran.stderr.lines().map(|line| line.trim_start_matches(['|', ' ']));
    let told = ["trace", "debug", "info", "warn", "error", "critical"].map(|level| format!("{level}: told"));
    assert!(lines.eq(told.iter().map(String::as_str).chain(["info: settings: asked"])), "{ran:?}");
    let ran = crib.run(&["call", "kept_second", "{}", "--verbose"]);
    assert!(ran.stderr.contains("warn: second\n"), "{ran:?}");
    let line = crib.call("settings", &json!({"flood": 1000}), &[]);
    assert_eq!(line["receipt"]["outcome"], "output-limit", "{line}");
}
