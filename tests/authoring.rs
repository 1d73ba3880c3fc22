//! Commands for authors of tools: creating a tool, and building, describing and testing a component, with the messages
//! on failures.

mod building;
mod languages;
mod sharing;
mod staleness;
mod testing;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran, target, toolbox};
use crate::screen::Page;

/// Runs the program with the machine's Rust.
fn with_rust(crib: &Crib, arguments: &[&str]) -> Ran {
    Ran::from(give_rust(crib.toolcrib(arguments)).output().expect("the program starts"))
}

/// Gives a command the machine's Rust, and a target folder that is reused.
fn give_rust(mut command: Command) -> Command {
    let home = env::home_dir().expect("a home");
    let kept = |name: &str, default: &str| env::var_os(name).map_or_else(|| home.join(default), PathBuf::from);
    command
        .env("PATH", env::var_os("PATH").expect("a PATH"))
        .env("CARGO_HOME", kept("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", kept("RUSTUP_HOME", ".rustup"))
        .env("CARGO_TARGET_DIR", target().join("authoring"));
    command
}

/// Copies a shipped tool into the crib's folder.
fn shipped(crib: &Crib, name: &str) {
    let file = format!("{name}.wasm");
    fs::copy(toolbox().join("tools/bin").join(&file), crib.path(file)).expect("the crib was laid out");
}

fn write(crib: &Crib, name: &str, content: &str) {
    fs::create_dir_all(crib.path(name).parent().expect("a folder")).expect("a folder");
    fs::write(crib.path(name), content).expect("a file");
}

fn described(crib: &Crib, component: &str) -> Value {
    let ran = crib.run(&["describe", component, "--json"]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn a_component_of_any_language_is_described_and_described_anew() {
    let page = Page::new();
    let crib = Crib::new();
    shipped(&crib, "get_time");
    let before = fs::read(crib.path("get_time.wasm")).expect("a component");
    page.run(&crib, &["describe", "get_time.wasm"]);

    write(&crib, "one.json", r#"{"name": "get_time", "description": "Tell the time"}"#);
    page.run(&crib, &["describe", "get_time.wasm", "--write", "one.json"]);
    assert_eq!(described(&crib, "get_time.wasm"), json!([{ "name": "get_time", "description": "Tell the time" }]));

    write(&crib, "other.json", r#"[{"name": "get_time", "timeoutSec": 5}]"#);
    page.run(&crib, &["describe", "get_time.wasm", "--write", "other.json", "--out", "new.wasm"]);
    assert_eq!(described(&crib, "new.wasm"), json!([{ "name": "get_time", "timeoutSec": 5 }]));
    assert_eq!(described(&crib, "get_time.wasm")[0]["description"], "Tell the time");
    let now = fs::read(crib.path("new.wasm")).expect("a component");
    assert!(now.starts_with(&before) && now.len() < before.len() + 100, "one section is there, at the end");
    let answer = crib.call("get_time", &json!({ "timezone": "UTC" }), &["--tools", "get_time.wasm"]);
    assert_eq!(answer["result"]["timezone"], "UTC", "{answer}");
    page.matches("describe/described");
}

#[test]
fn what_is_printed_can_be_written_into_another() {
    let crib = Crib::new();
    shipped(&crib, "get_time");
    write(&crib, "a.json", "{\"name\":\"get_time\",\"tags\":[\"\u{202e}\"]}");
    assert_eq!(crib.run(&["describe", "get_time.wasm", "--write", "a.json", "--out", "a.wasm"]).code, Some(0));
    let printed = crib.run(&["describe", "a.wasm"]).stdout;
    assert!(printed.contains("\n  \"name\": \"get_time\""), "{printed}");
    write(&crib, "b.json", &printed);
    assert_eq!(crib.run(&["describe", "get_time.wasm", "--write", "b.json"]).code, Some(0));
    assert_eq!(described(&crib, "get_time.wasm"), described(&crib, "a.wasm"));
}

#[test]
fn what_is_no_descriptor_changes_nothing() {
    let page = Page::new();
    let crib = Crib::new();
    shipped(&crib, "get_time");
    let before = fs::read(crib.path("get_time.wasm")).expect("a component");
    for text in [
        "",
        "[1]",
        "{\"name\":\"get_time\",\"name\":\"x\"}",
        "{\"name\":\"get_time\"} nonsense",
        "{\"description\":\"no name\"}",
        "{\"name\":\"get_time\",\"schema\":3}",
    ] {
        write(&crib, "d.json", text);
        page.text("d.json", text);
        page.run(&crib, &["describe", "get_time.wasm", "--write", "d.json"]);
        assert_eq!(fs::read(crib.path("get_time.wasm")).expect("a component"), before, "{text}");
    }
    write(&crib, "no.wasm", "not WebAssembly");
    page.run(&crib, &["describe", "no.wasm"]);
    write(&crib, "d.json", "{\"name\":\"get_time\"}");
    page.run(&crib, &["describe", "no.wasm", "--write", "d.json"]);
    assert_eq!(fs::read_to_string(crib.path("no.wasm")).expect("the file"), "not WebAssembly");
    page.run(&crib, &["describe", "get_time.wasm", "--out", "x.wasm"]);
    let left = fs::read_dir(crib.dir.path()).expect("the folder");
    let left = left.filter(|entry| entry.as_ref().expect("an entry").file_name().to_string_lossy().starts_with(".unf"));
    assert_eq!(left.count(), 0, "nothing unfinished is left");
    page.matches("describe/no-descriptor");
}
