//! The build folder that tools share, and commands that repeat their work after each change.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::crib::{Crib, Ran};

use super::{give_rust, with_rust};

/// Maximum time for one round of `--watch`.
const MAX_ROUND: Duration = Duration::from_secs(600);

#[test]
fn a_second_tool_compiles_nothing_but_itself() {
    let crib = Crib::new();
    for name in ["shared-first", "shared-second"] {
        assert_eq!(crib.run(&["new", "tool", name]).code, Some(0));
    }
    assert_eq!(with_rust(&crib, &["build", "shared-first"]).code, Some(0));
    let ran = with_rust(&crib, &["build", "shared-second"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let compiled: Vec<&str> = ran.stderr.lines().filter(|line| line.trim_start().starts_with("Compiling ")).collect();
    assert!(compiled.len() == 1 && compiled[0].contains("shared-second"), "{compiled:?}");
    // An SDK that its author changed belongs to one tool.
    let source = crib.path("shared-second/sdk/guest-sdk/src/lib.rs");
    let text = fs::read_to_string(&source).unwrap();
    fs::write(&source, text + "\n// changed\n").unwrap();
    let ran = with_rust(&crib, &["build", "shared-second"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("Compiling toolcrib-guest "), "{ran:?}");
}

#[test]
fn two_builds_at_a_time_give_each_its_own_component() {
    let crib = Crib::new();
    let folders = ["left", "right"];
    for folder in folders {
        assert_eq!(crib.run(&["new", "tool", "same-name", "--dir", folder]).code, Some(0));
        let file = crib.path(folder).join("same-name/src/lib.rs");
        let text = fs::read_to_string(&file).unwrap().replace("hello, ", &format!("{folder}, "));
        fs::write(file, text).unwrap();
    }
    let start = |folder: &str| {
        let mut command = give_rust(crib.toolcrib(&["build", &format!("{folder}/same-name")]));
        // In the folder that all tools share.
        command.env_remove("CARGO_TARGET_DIR");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for (folder, child) in folders.map(|folder| (folder, start(folder))) {
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, Some(0), "{folder}: {ran:?}");
    }
    for folder in folders {
        let component = format!("{folder}/same-name/same_name.wasm");
        let arguments = serde_json::json!({ "name": "Ada" });
        assert_eq!(crib.call("same-name", &arguments, &["--tools", &component])["result"], format!("{folder}, Ada"));
    }
}

#[test]
fn a_change_is_tested_again_until_the_watch_ends() {
    let crib = Crib::new();
    assert_eq!(crib.run(&["new", "tool", "count", "--markdown"]).code, Some(0));
    let mut command = crib.toolcrib(&["test", ".harness/tools/count.md", "--watch"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let ended = |failed: &str| loop {
        let line = lines.recv_timeout(MAX_ROUND).expect("a line in time");
        if line.starts_with("2 cases") {
            assert!(line.contains(failed), "{line}");
            break;
        }
    };
    ended("0 failed");
    // The watch begins after the first round.
    thread::sleep(Duration::from_secs(1));
    let file = crib.path(".harness/tools/count.md");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("len(args[\"text\"].split())", "7")).unwrap();
    ended("1 failed");
    // Its cases are in another file.
    let file = crib.path(".harness/tools/count.tests.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("\"words\": 6", "\"words\": 7")).unwrap();
    ended("0 failed");
    child.kill().unwrap();
    child.wait().unwrap();
}
