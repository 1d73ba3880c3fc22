//! Facts about a tool that its program's bytes and its requests prove.

use std::fs;

use serde_json::{Value, json};
use toolcrib::Tool;
use toolcrib::tool::Basis;

use super::{field, load, validate};
use crate::crib::{Crib, toolbox};
use crate::screen::Page;

const FACTS: [&str; 6] =
    ["is_read_only", "is_open_world", "is_destructive", "is_concurrency_safe", "interrupt_behavior", "risk_level"];

/// Tool of a program in text, loaded alone or, with fields, as an entry.
fn tool(text: &str, entry: Option<Value>) -> Tool {
    let crib = Crib::new();
    crib.install_wat("n", text);
    let source = match entry {
        None => "tools/bin/n.wasm",
        Some(more) => {
            let mut entry = json!({"name": "n", "command": ["./tools/bin/n"]});
            entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            crib.manifest(&json!({"tools": [entry]}));
            "tools.json"
        }
    };
    load(&crib, source).remove(0)
}

fn proven(tool: &Tool) -> bool {
    let values: Vec<Value> = FACTS.iter().map(|name| field(tool, name).0).collect();
    let read_only = values == [json!(true), json!(false), json!(false), json!(true), json!("cancel"), json!("low")];
    read_only && FACTS.iter().all(|name| field(tool, name).1 == Basis::Inferred)
}

fn unproven(tool: &Tool) -> bool {
    FACTS.iter().all(|name| field(tool, name).1 == Basis::Default)
}

fn import(interface: &str, functions: &[&str]) -> String {
    let exports: String = functions.iter().map(|name| format!(r#"(export "{name}" (func))"#)).collect();
    format!(r#"(component (import "{interface}" (instance {exports})))"#)
}

fn module(functions: &[&str]) -> String {
    let imports = functions.iter().map(|name| format!(r#"(import "wasi_snapshot_preview1" "{name}" (func))"#));
    format!("(module {})", imports.collect::<String>())
}

#[test]
fn a_program_that_imports_nothing_harmful_is_read_only() {
    assert!(proven(&tool("(component)", None)));
    assert!(proven(&tool("(module)", None)));
    assert!(proven(&tool(&import("wasi:io/streams@0.2.6", &["f"]), None)));
    let looks = ["[method]descriptor.stat", "[method]descriptor.read-directory"];
    // Names of methods need their resource, so the type is one that the text can express.
    let files = format!(
        r#"(component (import "wasi:filesystem/types@0.2.6" (instance
            (export "descriptor" (type (sub resource)))
            (export "{}" (func (param "self" (borrow 0)))) (export "{}" (func (param "self" (borrow 0)))))))"#,
        looks[0], looks[1]
    );
    let tool = tool(&files, None);
    assert!(proven(&tool), "{:?}", tool.imports);
    assert_eq!(tool.imports.unwrap()[0].functions, looks);
}

#[test]
fn a_program_that_can_open_or_change_files_is_not() {
    for function in ["open-at", "set-size", "write", "unlink-file-at", "a-thing-of-tomorrow"] {
        let text = format!(
            r#"(component (import "wasi:filesystem/types@0.2.6" (instance
                (export "descriptor" (type (sub resource)))
                (export "[method]descriptor.{function}" (func (param "self" (borrow 0)))))))"#
        );
        let tool = tool(&text, None);
        assert_eq!(field(&tool, "is_read_only"), (json!(false), Basis::Default), "{function}");
        assert_eq!(field(&tool, "is_open_world"), (json!(false), Basis::Inferred), "{function}");
        assert_eq!(field(&tool, "is_concurrency_safe"), (json!(false), Basis::Default), "{function}");
    }
}

#[test]
fn a_core_module_is_judged_by_its_functions() {
    assert!(proven(&tool(&module(&["fd_write", "fd_read", "proc_exit", "random_get"]), None)));
    for name in ["path_open", "path_create_directory", "path_unlink_file", "fd_pwrite", "fd_filestat_set_size"] {
        let tool = tool(&module(&["fd_write", name]), None);
        assert_eq!(field(&tool, "is_read_only"), (json!(false), Basis::Default), "{name}");
        assert_eq!(field(&tool, "is_open_world"), (json!(false), Basis::Inferred), "{name}");
    }
    for text in [module(&["sock_send"]), module(&["fd_invent"]), r#"(module (import "env" "f" (func)))"#.to_owned()] {
        assert!(unproven(&tool(&text, None)), "{text}");
    }
}

#[test]
fn a_network_or_an_unknown_import_proves_nothing() {
    for from in [
        "wasi:sockets/tcp@0.3.0",
        "wasi:http/outgoing-handler@0.2.6",
        "own:thing/x",
        "wasi:io/streams@0.3.0",
        "wasi:io/streams",
        "wasi:keyvalue/tomorrow@0.2.0-draft",
        "wasi:config/tomorrow@0.2.0-draft",
    ] {
        assert!(unproven(&tool(&import(from, &["f"]), None)), "{from}");
        assert!(unproven(&tool(&import(from, &["f"]), Some(json!({"capabilities": {}})))), "{from}");
    }
    assert!(unproven(&tool(r#"(component (import "f" (func)))"#, None)));
    // An inner import cannot hide behind an earlier import.
    let late = r#"(component (import "wasi:io/streams@0.2.6" (instance)) (core module) (component)
        (import "wasi:http/outgoing-handler@0.2.6" (instance (export "f" (func)))))"#;
    assert!(unproven(&tool(late, None)));
}

#[test]
fn sockets_that_are_never_granted_settings_and_a_log_change_nothing() {
    for from in ["wasi:sockets/tcp@0.2.6", "wasi:config/store@0.2.0-rc.1", "wasi:logging/logging"] {
        assert!(proven(&tool(&import(from, &["f"]), None)), "{from}");
    }
}

#[test]
fn a_program_that_may_keep_values_is_not_read_only() {
    for from in ["wasi:keyvalue/store@0.2.0-draft", "wasi:keyvalue/atomics@0.2.0-draft2"] {
        let output = |capabilities: Option<Value>| {
            tool(&import(from, &["f"]), capabilities.map(|capabilities| json!({"capabilities": capabilities})))
        };
        for keeps in [None, Some(json!({"cache": true}))] {
            let tool = output(keeps);
            assert_eq!(field(&tool, "is_read_only"), (json!(false), Basis::Default), "{from}");
            assert_eq!(field(&tool, "is_open_world"), (json!(false), Basis::Inferred), "{from}");
        }
        assert!(proven(&output(Some(json!({})))), "{from}");
    }
    // A grant without anything to write does not change that.
    let crib = Crib::with_guests(&["kept_first"]);
    let ran = crib.run(&["inspect", "kept_first", "--json"]);
    let known: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(known["interface"]["safety"]["is_read_only"]["value"], false, "{ran:?}");
}

#[test]
fn the_number_of_a_type_is_found_past_every_other_type() {
    let text = r#"(component
        (type (instance (export "harmless" (func))))
        (import "wasi:io/error@0.2.6" (instance $error (export "error" (type (sub resource)))))
        (alias export $error "error" (type $e))
        (type (list u8))
        (export "bytes" (type 2))
        (type $files (instance (export "get-directories" (func))))
        (import "wasi:filesystem/preopens@0.2.6" (instance (type $files))))"#;
    let tool = tool(text, None);
    assert_eq!(tool.imports.as_ref().unwrap()[1].functions, ["get-directories"]);
    assert!(proven(&tool));
}

#[test]
fn a_tool_that_asks_for_no_writing_is_read_only() {
    let opens = module(&["path_open"]);
    let asks = |capabilities: Value| tool(&opens, Some(json!({"capabilities": capabilities})));
    assert!(proven(&asks(json!({}))));
    assert!(proven(&asks(json!({"files": "read"}))));
    for capabilities in [json!({"files": "write"}), json!({"files": {"write": ["tools"]}})] {
        assert_eq!(field(&asks(capabilities), "is_read_only"), (json!(false), Basis::Default));
    }
    assert!(!proven(&tool(&opens, Some(json!({})))), "what it may do is the flags' to say");
}

#[test]
fn what_is_declared_stands_against_what_is_proven() {
    let declared = |interface: Value| tool("(component)", Some(json!({"interface": interface})));
    let writes = declared(json!({"is_read_only": false}));
    assert_eq!(field(&writes, "is_read_only"), (json!(false), Basis::Declared));
    assert_eq!(field(&writes, "is_concurrency_safe"), (json!(false), Basis::Default));
    let careful = declared(json!({"risk_level": "high", "interrupt_behavior": "block"}));
    assert_eq!(field(&careful, "risk_level"), (json!("high"), Basis::Declared));
    assert_eq!(field(&careful, "interrupt_behavior"), (json!("block"), Basis::Declared));
    assert_eq!(field(&careful, "is_concurrency_safe"), (json!(true), Basis::Inferred));
}

#[test]
fn validate_warns_where_what_is_declared_cannot_be() {
    let page = Page::new();
    let guests = ["http", "echo"];
    let crib = Crib::with_guests(&guests);
    let warned = |guest: &str, interface: Value, more: Value| {
        let mut entry = json!({"name": "n", "command": [format!("./tools/bin/{guest}")], "interface": interface});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        crib.manifest(&json!({"tools": [entry]}));
        validate(&crib, "tools.json").1
    };
    let closed = warned("http", json!({"is_open_world": false}), json!({}));
    page.text("an open world", &closed);
    let write = json!({"capabilities": {"files": "write"}});
    let safe = warned("echo", json!({"is_concurrency_safe": true, "is_read_only": false}), write.clone());
    page.text("parallel calls", &safe);
    let both = warned("echo", json!({"is_read_only": true, "is_destructive": true}), write);
    page.text("read-only and destructive", &both);
    page.matches("record/declared");
}

#[test]
fn the_shipped_tools_are_known_for_what_they_are() {
    let tools = toolcrib::source::load(&toolbox()).unwrap().tools;
    let read_only: Vec<_> =
        tools.iter().filter(|tool| field(tool, "is_read_only").0 == true).map(|tool| &tool.name).collect();
    let expected = ["get_time", "fs_read_file", "fs_read_lines", "fs_list_dir", "fs_stat", "fs_search", "calculate"];
    assert!(expected.iter().all(|name| read_only.iter().any(|known| *known == name)), "{read_only:?}");
    // These reach beyond the sandbox: the network, the model, other tools.
    let open: Vec<_> =
        tools.iter().filter(|tool| field(tool, "is_open_world").0 == true).map(|tool| &tool.name).collect();
    assert_eq!(open, ["fetch_page", "run_checks", "summarize"]);
    let closed = tools.iter().filter(|tool| field(tool, "is_open_world").0 == false);
    for tool in closed {
        assert_eq!(field(tool, "is_concurrency_safe").0, field(tool, "is_read_only").0, "{}", tool.name);
    }
    assert!(fs::metadata(tools[0].body.program().unwrap()).is_ok());
}
