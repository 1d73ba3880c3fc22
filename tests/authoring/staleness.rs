//! Components that are older than their sources: a refusal with a way out for their authors, and a warning for everybody else.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use crate::crib::Crib;

use super::{shipped, write};

/// Time of the built components.
const BUILT: u64 = 1_000_000;
const CASES: &str =
    r#"{"cases": [{"name": "knows UTC", "arguments": {"timezone": "UTC"}, "expect": {"contains": "UTC"}}]}"#;

/// Writes a file that was changed at a time, in seconds.
fn changed(crib: &Crib, name: &str, content: &str, seconds: u64) {
    write(crib, name, content);
    dated(crib, name, seconds);
}

fn dated(crib: &Crib, name: &str, seconds: u64) {
    let file = File::options().write(true).open(crib.path(name)).expect("the file");
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).expect("a time");
}

/// Puts the package of `get_time.wasm` beside it, as old as it is.
fn package(crib: &Crib) {
    shipped(crib, "get_time");
    dated(crib, "get_time.wasm", BUILT);
    changed(crib, "Cargo.toml", "[package]\nname = \"get_time\"\n", BUILT);
    changed(crib, "src/lib.rs", "", BUILT);
}

#[test]
fn an_older_component_is_used_with_a_warning_that_names_no_command() {
    let crib = Crib::new();
    package(&crib);
    let warned = |arguments: &[&str]| {
        let ran = crib.run(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stderr.contains("build"), "{ran:?}");
        ran.stderr.contains("warning: `src/lib.rs` is newer than `get_time.wasm`, which is used as it is\n")
    };
    write(&crib, "script.json", r#"{"prompt": "go", "turns": [{"content": "the end"}]}"#);
    let commands = [
        &["call", "get_time", r#"{"timezone":"UTC"}"#, "--tools", "get_time.wasm"][..],
        &["run", "--script", "script.json", "--tools", "get_time.wasm"],
        &["inspect", "get_time", "--tools", "get_time.wasm"],
        &["inspect", "./get_time.wasm"],
    ];
    for command in commands {
        assert!(!warned(command), "{command:?}");
    }
    dated(&crib, "src/lib.rs", BUILT + 60);
    for command in commands {
        assert!(warned(command), "{command:?}");
    }
    assert!(!warned(&["list", "--tools", "get_time.wasm"]), "nothing is called");
}

#[test]
fn an_older_component_is_tested_only_on_request() {
    let crib = Crib::new();
    package(&crib);
    write(&crib, "tests.json", CASES);
    // A clone writes one file after the other.
    dated(&crib, "src/lib.rs", BUILT + 1);
    assert_eq!(crib.run(&["test"]).code, Some(0));
    dated(&crib, "src/lib.rs", BUILT + 60);
    write(&crib, "clock.md", "---\ncomponent: get_time.wasm\n---\nTell the time.\n");
    let expected = "error: `src/lib.rs` is newer than `get_time.wasm`\n\
                    hint: run `toolcrib build .` first, or test the component as it is with `--allow-stale`\n";
    for arguments in [&["test"][..], &["test", "get_time.wasm"], &["test", "clock.md"]] {
        let ran = crib.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.ends_with(expected), "{arguments:?}: {ran:?}");
    }
    assert!(crib.records().len() == 1, "no other call was made");
    let ran = crib.run(&["test", "get_time.wasm", "--allow-stale"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("1 case, 0 failed, "), "{ran:?}");
    assert!(ran.stderr.contains("warning: `src/lib.rs` is newer than `get_time.wasm`"), "{ran:?}");
}

#[test]
fn a_project_of_every_language_is_built_by_its_script() {
    let crib = Crib::new();
    for (language, component) in
        [("python", "clock.wasm"), ("javascript", "clock.wasm"), ("c", "clock.wasm"), ("go", "tools/bin/clock.wasm")]
    {
        let (folder, project) = (format!("in {language}"), format!("in {language}/clock"));
        assert_eq!(crib.run(&["new", "tool", "clock", "--lang", language, "--dir", &folder]).code, Some(0));
        let component = format!("{project}/{component}");
        shipped(&crib, "get_time");
        write(&crib, &component, "");
        fs::rename(crib.path("get_time.wasm"), crib.path(&component)).expect("a component");
        dated(&crib, &component, BUILT);
        let ran = crib.run(&["test", &project]);
        let expected = format!(
            "` is newer than `{component}`\nhint: run `'{project}/build'` first, or test the component as it is with \
             `--allow-stale`\n"
        );
        assert!(ran.code == Some(1) && ran.stderr.ends_with(&expected), "{expected}: {ran:?}");
    }
}

#[test]
fn files_of_another_project_make_no_component_stale() {
    let crib = Crib::new();
    package(&crib);
    write(&crib, "tests.json", CASES);
    fs::create_dir_all(crib.path("tools/bin")).expect("a folder");
    fs::rename(crib.path("get_time.wasm"), crib.path("tools/bin/clock.wasm")).expect("a component");
    let tool = r#"{"name": "get_time", "description": "Tell the time", "command": ["./tools/bin/clock"]}"#;
    write(&crib, "tools.json", &format!("{{\"tools\": [{tool}]}}"));
    write(&crib, "build", "#!/bin/sh\nmake tools/bin/clock.wasm\n");
    for source in ["setup.py", "Makefile", "src/lib.rs", "wit/tool.wit"] {
        write(&crib, source, "");
    }
    let ran = crib.run(&["test"]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("newer"), "{ran:?}");
    let ran = crib.run(&["bundle", "pack", "tools.json", "-o", "x.tar"]);
    assert!(ran.code == Some(0) && !ran.stderr.contains("newer"), "{ran:?}");
}
