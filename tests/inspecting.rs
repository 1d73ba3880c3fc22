//! `inspect` on any component: everything that it could request, read from its bytes; nothing of it is compiled, run or
//! trusted.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::crib::{Crib, guest, toolbox};
use crate::screen::Page;

/// Component with only these imports.
fn importing(imports: &str) -> String {
    format!("(component {imports})")
}

/// Import of an interface with one function.
fn interface(name: &str, function: &str) -> String {
    format!(r#"(import "{name}" (instance (export "{function}" (func))))"#)
}

fn inspect(crib: &Crib, args: &[&str]) -> Value {
    let ran = crib.run(&[&["inspect", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Output of `inspect` for a component in text.
fn shown(crib: &Crib, text: &str) -> (Value, String) {
    crib.install_wat("n", text);
    let file = "tools/bin/n.wasm";
    let sheet = crib.run(&["inspect", file]);
    assert_eq!(sheet.code, Some(0), "{sheet:?}");
    (inspect(crib, &[file])["component"].clone(), sheet.stdout)
}

/// Possible requests of a component, each with its grant.
fn asks(component: &Value) -> Vec<(String, Value)> {
    let asks = component["asks"].as_array().unwrap_or_else(|| panic!("{component}"));
    let grants = |asked: &Value| if asked["flags"] == json!([]) { &asked["granted"] } else { &asked["flags"] }.clone();
    asks.iter().map(|asked| (asked["capability"].as_str().unwrap().to_owned(), grants(asked))).collect()
}

#[test]
fn a_shipped_tool_shows_what_it_could_ask_for_and_who_grants_it() {
    let crib = Crib::new();
    let of = |name: &str| {
        let file = toolbox().join(format!("tools/bin/{name}.wasm"));
        inspect(&crib, &[file.to_str().unwrap()])["component"].clone()
    };
    let page = asks(&of("fetch_page"));
    assert!(page.contains(&("http".to_owned(), json!(["--allow-net"]))), "{page:?}");
    let files = asks(&of("fs_read_file"));
    assert!(files.contains(&("files".to_owned(), json!(["--allow-read", "--allow-write"]))), "{files:?}");
    let time = of("get_time");
    let found = asks(&time);
    assert!(found.contains(&("clock".to_owned(), json!("always"))), "{time}");
    assert!(!found.iter().any(|(capability, _)| ["http", "unknown"].contains(&capability.as_str())), "{time}");
    assert_eq!((&time["tools"], &time["problem"], &time["pure"]), (&json!(["get_time"]), &Value::Null, &Value::Null));
    assert!(
        time["coreModules"].as_u64() > Some(0) && time["digest"].as_str().unwrap().starts_with("sha256:"),
        "{time}"
    );
}

#[test]
fn the_tool_of_a_manifest_shows_its_component_too() {
    let page = Page::of_programs();
    let crib = Crib::with_guests(&["echo"]);
    let output = inspect(&crib, &["echo"]);
    let component = &output["component"];
    assert_eq!((&component["kind"], &component["tools"]), (&json!("command"), &json!(["echo"])));
    assert_eq!(component["digest"], output["program"]["digest"]);
    page.run(&crib, &["inspect", "echo"]);
    page.matches("inspect/manifest");
}

#[test]
fn what_imports_nothing_is_proven_pure() {
    let page = Page::new();
    let crib = Crib::new();
    let (component, sheet) = shown(&crib, "(component (component (core module)) (core module))");
    assert_eq!((&component["pure"], &component["asks"]), (&json!("it imports nothing"), &json!([])));
    assert_eq!((&component["kind"], &component["coreModules"]), (&json!("component"), &json!(2)));
    page.text("no import", &sheet);
    let types = r#"(import "a:b/types" (instance (type (record (field "x" u8))) (export "t" (type (eq 0)))))"#;
    let (component, sheet) = shown(&crib, &importing(types));
    assert_eq!(component["pure"], json!("it imports only type definitions, without functions"));
    page.text("types alone", &sheet);
    let one = interface("a:b/c", "f");
    let (component, sheet) = shown(&crib, &importing(&[types, &one].concat()));
    assert!(component["pure"].is_null(), "{sheet}");
    page.text("a function", &sheet);
    page.matches("inspect/pure");
}

#[test]
fn every_kind_of_import_has_its_words() {
    let page = Page::new();
    let crib = Crib::new();
    let imports = [
        ("wasi:sockets/tcp@0.2.0", "connect"),
        ("wasi:http/outgoing-handler@0.2.3", "handle"),
        ("acme:secret/door@7.0.0", "open"),
        ("wasi:filesystem/types@0.3.0", "stat"),
        ("wasi:random/random@0.2.0", "get-random-u64"),
        ("toolcrib:tool/model@1.1.0", "complete"),
    ];
    let text = importing(&imports.map(|(name, function)| interface(name, function)).concat());
    let (output, sheet) = shown(&crib, &text);
    let expected = [
        ("unknown", json!("never")),
        ("sockets", json!("never")),
        ("http", json!(["--allow-net"])),
        ("model", json!(["--allow-model"])),
        ("random", json!("always")),
    ];
    assert_eq!(asks(&output), expected.map(|(capability, granted)| (capability.to_owned(), granted)));
    let unknown = &output["asks"][0]["interfaces"];
    assert_eq!(unknown[0]["name"], "acme:secret/door");
    assert_eq!((&unknown[0]["version"], &unknown[0]["functions"]), (&json!("7.0.0"), &json!(["open"])));
    assert_eq!(unknown[0]["cannotLink"], "not available to tools");
    assert_eq!(unknown[1]["cannotLink"], "it has another version, and `0.2` is linked");
    assert_eq!(output["asks"][1]["interfaces"][0].get("cannotLink"), None);
    page.text("inspect", &sheet);
    assert!(!sheet.contains('\u{1b}'), "{sheet}");
    page.run(&crib, &["inspect", "tools/bin/n.wasm", "--color=always"]);
    assert!(crib.logs().is_empty(), "nothing ran");
    page.matches("inspect/imports");
}

#[test]
fn a_core_module_is_told_by_its_functions() {
    let page = Page::new();
    let crib = Crib::new();
    let text = r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "path_open" (func))
        (import "env" "system" (func)))"#;
    let (output, sheet) = shown(&crib, text);
    assert_eq!((&output["kind"], &output["exports"]), (&json!("module"), &Value::Null));
    let found: Vec<_> = asks(&output).into_iter().map(|(capability, _)| capability).collect();
    assert_eq!(found, ["unknown", "files", "streams"]);
    page.text("inspect", &sheet);
    page.matches("inspect/core-module");
}

#[test]
fn what_a_component_says_of_itself_is_shown_and_has_no_power() {
    let page = Page::new();
    let crib = Crib::new();
    let text = r#"(component $shiny
        (@custom "version" "1.2.3") (@custom "licenses" "MIT") (@custom "homepage" "https://example.com/")
        (@custom "description" "a\1b[2Jb\e2\80\ae\nc") (@custom "authors" "\ff\fe") (@custom "unrelated" "\ff")
        (@custom "producers" "\01\08language\01\04Rust\041.95"))"#;
    let (output, sheet) = shown(&crib, text);
    let metadata = &output["metadata"];
    assert_eq!((&metadata["name"], &metadata["version"]), (&json!("shiny"), &json!("1.2.3")));
    assert_eq!(metadata["description"], "a\u{1b}[2Jb\u{202e}\nc");
    assert_eq!(metadata["producers"], json!([{"field": "language", "name": "Rust", "version": "1.95"}]));
    assert_eq!((&metadata["authors"], &output["notes"]), (&Value::Null, &json!(["`authors`: it is not UTF-8"])));
    page.text("inspect", &sheet);
    assert!(!sheet.contains(['\u{1b}', '\u{202e}']), "{sheet:?}");
    let (_, sheet) = shown(&crib, &importing(r#"(import "a-b" (func)) (@custom "name\1b[2J" "")"#));
    page.text("a hostile name", &sheet);
    page.matches("inspect/metadata");
}

#[test]
fn a_component_of_several_tools_lists_them() {
    // The linker decides on the order.
    let page = Page::of_programs().hide(r"(?m)^(  (?:exports|tools) +).*", "$1[names]");
    let crib = Crib::new();
    let file = guest("rich");
    let output = inspect(&crib, &[file.to_str().unwrap()]);
    let tools = output["component"]["tools"].as_array().unwrap().clone();
    assert!(tools.len() > 1 && output["component"]["kind"] == "rich" && output.get("name").is_none(), "{output}");
    page.run(&crib, &["inspect", file.to_str().unwrap()]);
    let first = tools[0].as_str().unwrap();
    let one = inspect(&crib, &[first, "--tools", file.to_str().unwrap()]);
    assert_eq!((&one["name"], &one["component"]["tools"]), (&json!(first), &json!(tools)));
    page.matches("inspect/several");
}

#[test]
fn a_component_that_is_no_tool_is_shown_with_why() {
    let page = Page::new();
    let crib = Crib::new();
    let (output, sheet) = shown(&crib, r#"(component (@custom "toolcrib:tool" "{\"description\": \"x\"}"))"#);
    assert_eq!((&output["tools"], &output["pure"]), (&json!([]), &json!("it imports nothing")));
    assert!(output["problem"].as_str().unwrap().contains("name is required"), "{output}");
    page.text("inspect", &sheet);
    fs::copy(guest("echo"), crib.path("echo.bin")).unwrap();
    let output = inspect(&crib, &["./echo.bin"]);
    assert!(output["component"]["problem"].as_str().unwrap().contains("end in `.wasm`"), "{output}");
    page.matches("inspect/no-tool");
}

#[test]
fn what_is_no_webassembly_is_refused() {
    let page = Page::new();
    let crib = Crib::new();
    fs::write(crib.path("n.wasm"), "hello").unwrap();
    fs::write(crib.path("n.txt"), "hello").unwrap();
    fs::write(crib.path("m.wasm"), b"\0asm\x02\0\0\0").unwrap();
    for file in ["n.wasm", "./n.txt", "m.wasm"] {
        page.run(&crib, &["inspect", file]);
    }
    let huge = fs::File::create(crib.path("huge.wasm")).unwrap();
    huge.set_len(1 << 30).unwrap();
    page.run(&crib, &["inspect", "huge.wasm"]);
    page.matches("inspect/no-webassembly");
}

#[test]
fn a_file_that_does_not_exist_is_named_with_a_hint() {
    let page = Page::new();
    let crib = Crib::new();
    for file in ["absent.wasm", "absent.md", "absent.tool.json", "./absent", "absent"] {
        page.run(&crib, &["inspect", file]);
    }
    page.note("a folder with a project and without tools");
    fs::create_dir(crib.path("tools.json")).unwrap();
    page.run(&crib, &["inspect", "absent"]);
    fs::remove_dir(crib.path("tools.json")).unwrap();
    page.note("a folder with tools");
    crib.manifest(&json!({"tools": [crib.entry("echo")]}));
    page.run(&crib, &["inspect", "absent"]);
    fs::write(crib.path("present"), "").unwrap();
    page.run(&crib, &["inspect", "present"]);
    page.matches("inspect/absent");
}

/// Encodes a section: its number, its size as LEB128, its content.
fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id][..], &number(content.len()), content].concat()
}

fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[test]
fn a_hostile_component_is_told_within_bounds() {
    const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
    let crib = Crib::new();
    let begun = Instant::now();
    let shown = |bytes: &[u8]| {
        fs::write(crib.path("n.wasm"), bytes).unwrap();
        let sheet = crib.run(&["inspect", "n.wasm"]);
        assert_eq!(sheet.code, Some(0), "{sheet:?}");
        (inspect(&crib, &["n.wasm"])["component"].clone(), sheet.stdout)
    };
    let one = [&[0, 5][..], b"a:b/c", &[5, 0]].concat();
    let imports = section(10, &[number(100_000), one.repeat(100_000)].concat());
    let (output, sheet) = shown(&[HEADER, &section(7, &[1, 0x42, 0]), &imports].concat());
    assert!(output["asks"].is_null() && output["pure"].is_null(), "{}", output["notes"]);
    assert!(sheet.contains("note      its imports are too many or cannot be read"), "{sheet}");

    let long = [&[11][..], b"description", &[b'x'; 9 << 20]].concat();
    let (output, sheet) = shown(&[HEADER, &section(0, &long)].concat());
    assert_eq!(output["metadata"]["description"].as_str().map(|text| text.chars().count()), Some(2000));
    assert!(sheet.len() < 10_000 && sheet.contains("it has 9437184 bytes and is cut to 2000 characters"), "{sheet}");

    // Ten times deeper than the counted depth.
    let nested = (0..1000).fold(HEADER.to_vec(), |inner, _| [HEADER, &section(4, &inner)].concat());
    let (output, _) = shown(&nested);
    assert!(output["notes"][0].as_str().unwrap().contains("nested deeper than 100 levels"), "{output}");

    // As many modules as a loadable file can hold.
    let modules = section(1, b"\0asm\x01\0\0\0").repeat(6_000_000);
    assert_eq!(shown(&[HEADER, &modules].concat()).0["coreModules"], 6_000_000);

    // A truncated component reports the truncation, at any place.
    let whole = fs::read(guest("echo")).unwrap();
    for length in [9, 100, whole.len() / 2, whole.len() - 1] {
        let (output, _) = shown(&whole[..length]);
        assert!(output["notes"][0].as_str().unwrap().contains("was read only in part"), "{length}: {output}");
        assert!(output["pure"].is_null(), "{length}: {output}");
    }
    assert!(begun.elapsed() < Duration::from_mins(4), "{:?}", begun.elapsed());
}
