//! `toolcrib init`: a project with the bytes of the shipped tools, trusted as it is written, and no file overwritten.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::crib::{Crib, Ran, toolbox};
use crate::screen::Page;

use super::{CALL, calculated, listed, names, shipped};

/// Crib without trust in any of its files.
fn crib() -> Crib {
    let mut crib = Crib::new();
    crib.trusts = false;
    crib
}

/// Files of the shipped tools, relative to their folder.
fn files() -> Vec<PathBuf> {
    let programs = fs::read_dir(toolbox().join("tools/bin")).unwrap();
    let programs = programs.map(|entry| Path::new("tools/bin").join(entry.unwrap().file_name()));
    [PathBuf::from("tools.json")].into_iter().chain(programs).collect()
}

#[test]
fn a_new_project_has_the_bytes_of_the_shipped_tools_and_their_trust() {
    let page = Page::new();
    let crib = crib();
    page.run(&crib, &["init"]);
    page.note("the suggested command");
    page.run(&crib, &["call", "fs_list_dir", r#"{"path":"."}"#, "--allow-read=tools"]);
    for file in files() {
        assert!(fs::read(crib.path(&file)).unwrap() == fs::read(toolbox().join(&file)).unwrap(), "{file:?}");
    }
    let ran = crib.run(&["list", "--json"]);
    let tools = listed(&ran);
    assert_eq!((names(&tools), ran.stderr.as_str()), (shipped().iter().map(String::as_str).collect(), ""));
    let builtin = listed(&crib.run(&["list", "--json", "--tools", "builtin"]));
    for (tool, builtin) in tools.iter().zip(&builtin) {
        assert_eq!((&tool["granted"], tool["source"]["builtin"].as_bool()), (&builtin["granted"], Some(false)));
    }
    let ran = page.run(&crib, &CALL);
    calculated(&ran);
    let manifest = fs::read_to_string(crib.path("tools.json")).unwrap();
    let changed = manifest.replace("\"timeoutSec\": 120", "\"timeoutSec\": 119");
    assert_ne!(changed, manifest);
    fs::write(crib.path("tools.json"), changed).unwrap();
    let tools = listed(&crib.run(&["list", "--json"]));
    assert!(tools.iter().all(|tool| tool["granted"] == Value::Array(Vec::new())), "a change ends the trust");
    page.matches("init/new");
}

#[test]
fn a_file_where_a_folder_is_needed_is_named_with_the_next_step() {
    let page = Page::new();
    let crib = crib();
    fs::write(crib.path("notes.md"), "mine").unwrap();
    fs::create_dir(crib.path("other")).unwrap();
    fs::write(crib.path("other/tools"), "mine").unwrap();
    for folder in ["notes.md", "notes.md/deep", "other"] {
        page.run(&crib, &["init", folder]);
    }
    assert_eq!(fs::read_dir(crib.path("other")).unwrap().count(), 1);
    page.matches("init/file-in-place");
}

#[test]
fn another_folder_is_created_and_the_next_command_enters_it() {
    let crib = crib();
    let ran = crib.run(&["init", "new/place", "--json"]);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!((told["next"][0].as_str(), told["folder"].as_str()), (Some("cd new/place"), Some("new/place")));
    assert_eq!(told["tools"].as_array().unwrap().len(), shipped().len());
    assert_eq!(told["files"].as_array().unwrap().len(), files().len());
    calculated(&Ran::from(crib.toolcrib(&CALL).current_dir(crib.path("new/place")).output().unwrap()));
    assert!(!crib.path("tools.json").exists());
}

#[test]
fn a_folder_with_a_project_stays_as_it_is() {
    let page = Page::new();
    for (file, text) in
        [("tools.json", "{}"), (".harness/x", ""), ("harness.md", "x"), ("toolcrib.lock", "version = 1\n")]
    {
        let crib = crib();
        fs::create_dir_all(crib.path(file).parent().unwrap()).unwrap();
        fs::write(crib.path(file), text).unwrap();
        page.run(&crib, &["init"]);
        assert_eq!(fs::read_to_string(crib.path(file)).unwrap(), text);
        assert_eq!(fs::read_dir(crib.path("tools/bin")).unwrap().count(), 0, "{file}");
    }
    let crib = crib();
    page.run(&crib, &["init"]);
    page.run(&crib, &["init"]);
    page.matches("init/project");
}

#[test]
fn a_file_with_other_content_is_not_overwritten() {
    let page = Page::new();
    let crib = crib();
    let program = crib.path("tools/bin/calculate.wasm");
    fs::write(&program, "mine").unwrap();
    page.run(&crib, &["init"]);
    assert_eq!(fs::read_to_string(&program).unwrap(), "mine");
    assert_eq!(fs::read_dir(crib.path("tools/bin")).unwrap().count(), 1);
    assert!(!crib.path("tools.json").exists());
    // An interrupted attempt is completed.
    fs::copy(toolbox().join("tools/bin/calculate.wasm"), &program).unwrap();
    page.run(&crib, &["init"]);
    calculated(&page.run(&crib, &CALL));
    page.matches("init/other-content");
}
