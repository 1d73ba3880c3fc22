//! `toolcrib new`: its output works unchanged, and existing files are never overwritten.

use std::fs;

use serde_json::json;

use super::*;

#[test]
fn a_new_tool_is_sound_and_works_at_once() {
    let crib = Crib::new();
    let ran = crib.run(&["new", "tool", "count", "--markdown"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ".harness/tools/count.md\n"), "{ran:?}");
    // The suggested next commands are run.
    let next: Vec<&str> = ran.stderr.lines().filter_map(|line| line.strip_prefix("  toolcrib ")).collect();
    assert_eq!(next.len(), 3, "{}", ran.stderr);
    let words = |line: &str| line.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect::<Vec<_>>();
    let validate = words(next[0]);
    let sound = crib.run(&validate.iter().map(String::as_str).chain(["--strict"]).collect::<Vec<_>>());
    assert_eq!((sound.code, sound.stdout.as_str()), (Some(0), ""), "{sound:?}");
    let tested = crib.run(&words(next[1]).iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(tested.code, Some(0), "{tested:?}");
    let (before, after) = next[2].split_once('\'').expect("arguments");
    let (arguments, after) = after.split_once('\'').expect("arguments");
    let call: Vec<&str> = before.split_whitespace().chain([arguments]).chain(after.split_whitespace()).collect();
    let called = crib.run(&call);
    assert_eq!(called.code, Some(0), "{called:?}");
    assert_eq!(
        called.stdout,
        "{\"words\":6,\"most_frequent\":[{\"word\":\"be\",\"count\":2},{\"word\":\"to\",\"count\":2},{\"word\":\"not\",\"count\":1}]}\n"
    );
    let wrong = crib.call("count", &json!({ "text": "a", "most": 0 }), &[]);
    assert_eq!(wrong["error"], "most must be a whole number from 1", "{wrong}");
    let missing = crib.call("count", &json!({ "most": 1 }), &[]);
    assert_eq!(missing["receipt"]["outcome"], "bad-arguments", "{missing}");
}

#[test]
fn a_new_hook_keeps_calls_away_from_files_of_secrets_and_lets_others_pass() {
    let crib = project(&[(
        ".harness/tools/open.md",
        "---\nparameters: {path: {type: string}}\nscript: |\n  def run(args):\n      return args[\"path\"]\n---\n",
    )]);
    let ran = crib.run(&["new", "hook", "guard"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ".harness/hooks/guard.md\n"), "{ran:?}");
    assert_eq!(crib.run(&["validate", ".", "--strict"]).code, Some(0));
    for path in [".env", "a/.env.local"] {
        let line = crib.call("open", &json!({ "path": path }), &[]);
        assert_eq!(
            line["error"], "tool blocked: blocked by hook \"guard\": `path` leads to a file of secrets",
            "{line}"
        );
        assert_eq!(line["receipt"]["outcome"], "denied");
    }
    for path in ["notes.md", "env", ""] {
        assert_eq!(crib.call("open", &json!({ "path": path }), &[])["result"], path);
    }
}

#[test]
fn what_is_there_stays() {
    let crib = project(&[("own/count.md", "mine")]);
    let ran = crib.run(&["new", "tool", "count", "--markdown", "--dir", "own"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: `own/count.md` already exists\nhint: "), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(crib.path("own/count.md")).expect("the file"), "mine");
    assert_eq!(crib.run(&["new", "tool", "other", "--markdown", "--dir", "own"]).stdout, "own/other.md\n");
    assert_eq!(crib.call("other", &json!({ "text": "a b" }), &["--tools", "own/other.md"])["result"]["words"], 2);
}

#[test]
fn a_wrong_name_or_nothing_to_begin_is_wrong_use() {
    let crib = Crib::new();
    let longer = "x".repeat(65);
    for arguments in [
        &["new", "tool", "../x", "--markdown"][..],
        &["new", "tool", "a b", "--markdown"],
        &["new", "tool", "README", "--markdown"],
        &["new", "tool", &longer, "--markdown"],
        &["new", "hook", "a/b"],
        &["new"],
    ] {
        let ran = crib.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
    }
    assert!(!crib.path(".harness").exists());
}
