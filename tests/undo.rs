//! Changes of tools are taken back, as long as nobody else has changed the files since.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::staging::{History, HistoryLimits, RecordHeader};
use toolcrib::{Audit, Policy, Runtime};

use crate::crib::{Crib, toolbox};

const TOOLS: [&str; 2] = ["--tools=builtin", "--allow-write=work"];

/// Calls a tool, and returns the identifier of the call.
#[track_caller]
fn call(crib: &Crib, name: &str, arguments: &Value) -> String {
    let line = crib.call(name, arguments, &TOOLS);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    line["receipt"]["invocation"].as_str().unwrap().to_owned()
}

/// Runs `undo`, and returns its exit code and what it said.
fn undo(crib: &Crib, args: &[&str]) -> (Option<i32>, String, String) {
    let ran = crib.run(&[&["undo"], args].concat());
    (ran.code, ran.stdout, ran.stderr)
}

fn records(crib: &Crib) -> Vec<Value> {
    serde_json::from_str(&undo(crib, &["--list", "--json"]).1).unwrap()
}

fn text(crib: &Crib, name: &str) -> Option<String> {
    fs::read_to_string(crib.path("work").join(name)).ok()
}

/// A folder with three files.
fn filled() -> Crib {
    let crib = Crib::new();
    for name in ["a", "b", "c"] {
        fs::write(crib.path("work").join(name), format!("{name} before\n")).unwrap();
    }
    crib
}

#[test]
fn the_newest_change_goes_first_and_each_call_has_its_name() {
    let crib = filled();
    let first = call(&crib, "fs_write_file", &json!({"path": "a", "content": "new"}));
    call(&crib, "fs_rm", &json!({"path": "b"}));
    call(&crib, "fs_mkdirp", &json!({"path": "folder/inner"}));
    let (code, shown, _) = undo(&crib, &["--dry-run"]);
    assert!(code == Some(0) && shown.contains("removed work/folder"), "{shown}");
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(0) && said.contains("took back 2 changes") && !crib.path("work/folder").exists(), "{said}");
    assert_eq!(undo(&crib, &["--yes"]).0, Some(0));
    assert_eq!((text(&crib, "b").as_deref(), text(&crib, "a").as_deref()), (Some("b before\n"), Some("new")));
    assert_eq!(undo(&crib, &[&first, "--yes"]).0, Some(0));
    assert_eq!(text(&crib, "a").as_deref(), Some("a before\n"));
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(1) && said.contains("there is nothing to take back in this directory"), "{said}");
    assert_eq!(records(&crib).len(), 6, "each undo has a record of its own");
}

#[test]
fn one_file_of_many_is_taken_back_by_its_path() {
    let crib = filled();
    let staged = [&TOOLS[..], &["--stage=one"]].concat();
    for name in ["a", "b", "c"] {
        crib.call("fs_write_file", &json!({"path": name, "content": "new"}), &staged);
    }
    crib.call("fs_mkdirp", &json!({"path": "made"}), &staged);
    crib.call("fs_write_file", &json!({"path": "made/d", "content": "new"}), &staged);
    assert_eq!(crib.run(&["stage", "commit", "one", "--yes"]).code, Some(0));
    let (code, _, said) = undo(&crib, &["one", "work/b", "work/none", "--yes"]);
    assert!(code == Some(1) && said.contains("no change is at `work/none`, so nothing was done"), "{said}");
    let (code, shown, _) = undo(&crib, &["one", "work/b", "--dry-run"]);
    assert!(code == Some(0) && shown.contains("work/b") && !shown.contains("work/a"), "{shown}");
    let (code, _, said) = undo(&crib, &["one", "work/b", "--yes"]);
    assert!(code == Some(0) && said.contains("took back 1 change: 1 modified (work/b)"), "{said}");
    let texts = || ["a", "b", "c"].map(|name| text(&crib, name).unwrap());
    assert_eq!(texts(), ["new", "b before\n", "new"]);
    let (code, _, said) = undo(&crib, &["one", "work/made", "--dry-run"]);
    assert_eq!(code, Some(0), "a folder with the file in it: {said}");
    // The rest can be taken back later: without an ID, the newest record by a tool is meant.
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(1) && said.contains("`work/b` stays: it has changed since"), "{said}");
    assert_eq!(texts(), ["a before\n", "b before\n", "c before\n"]);
    assert!(!crib.path("work/made").exists());
}

#[test]
fn an_undo_is_taken_back_too() {
    let crib = filled();
    call(&crib, "fs_move", &json!({"from": "a", "to": "moved"}));
    undo(&crib, &["--yes"]);
    assert!(text(&crib, "a").is_some());
    let id = records(&crib).pop().unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(undo(&crib, &[&id, "--yes"]).0, Some(0));
    assert_eq!((text(&crib, "a"), text(&crib, "moved").as_deref()), (None, Some("a before\n")));
    // The move counts again.
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(0) && text(&crib, "a").is_some(), "{said}");
}

#[test]
fn a_file_that_others_changed_stays_and_the_rest_of_the_run_is_taken_back() {
    let crib = filled();
    let code = "for name in ['a', 'b', 'new']:\n    tools.fs_write_file(path=name, content='by the program')";
    let script = json!({"prompt": "write", "turns": [
        {"tool_calls": [{"name": "run_code", "arguments": {"code": code}}]},
        {"tool_calls": [{"name": "fs_rm", "arguments": {"path": "c"}}]},
        {"content": "done"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(
        &[
            &["run", "--script=script.json", "--code", "--set=sources.direct=[\"fs_rm\"]", "--json", "--ask=never"],
            &TOOLS[..],
        ]
        .concat(),
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let end: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let run = end["run"].as_str().unwrap();
    assert_eq!((text(&crib, "c"), text(&crib, "b").as_deref()), (None, Some("by the program")));
    fs::write(crib.path("work/b"), "by a person").unwrap();
    let (code, _, said) = undo(&crib, &[run, "--yes"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("warning: `work/b` stays: it has changed since"), "{said}");
    assert_eq!(
        ["a", "b", "c", "new"].map(|name| text(&crib, name)),
        [Some("a before\n".to_owned()), Some("by a person".to_owned()), Some("c before\n".to_owned()), None]
    );
}

#[test]
fn calls_of_one_run_are_taken_back_one_by_one() {
    let crib = filled();
    let turn = |name: &str, arguments: Value| json!({"tool_calls": [{"name": name, "arguments": arguments}]});
    let write = |text: &str| turn("fs_write_file", json!({"path": "a", "content": text}));
    let script = json!({"prompt": "write", "turns": [
        write("one"), write("two"), turn("fs_rm", json!({"path": "b"})), {"content": "done"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&[&["run", "--script=script.json", "--json", "--ask=never"], &TOOLS[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let record = records(&crib).pop().unwrap();
    let calls: Vec<String> =
        record["calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(undo(&crib, &[&calls[1], "--yes"]).0, Some(0));
    assert_eq!(text(&crib, "a").as_deref(), Some("one"));
    assert_eq!(undo(&crib, &[&calls[0], "--yes"]).0, Some(0));
    assert_eq!((text(&crib, "a").as_deref(), text(&crib, "b")), (Some("a before\n"), None));
    let (_, listed, _) = undo(&crib, &["--list"]);
    assert!(listed.contains("taken back in part"), "{listed}");
    // The rest of the run is the newest record that is left.
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(0) && text(&crib, "b").is_some(), "{said}");
}

#[test]
fn a_call_that_failed_and_changes_elsewhere_are_not_the_newest() {
    let crib = filled();
    call(&crib, "fs_write_file", &json!({"path": "a", "content": "new"}));
    let failed = crib.call("fs_write_file", &json!({"path": "a/inside", "content": "new"}), &TOOLS);
    assert_ne!(failed["receipt"]["outcome"], "ok");
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(0) && said.contains("work/a"), "{said}");
    call(&crib, "fs_write_file", &json!({"path": "a", "content": "new"}));
    let mut elsewhere = crib.toolcrib(&["undo", "--yes"]);
    fs::create_dir(crib.path("other")).unwrap();
    let ran = crate::crib::Ran::of(elsewhere.current_dir(crib.path("other")));
    assert!(ran.code == Some(1) && ran.stderr.contains("the newest change elsewhere is of"), "{ran:?}");
}

#[test]
fn a_commit_is_taken_back_by_the_name_of_its_stage() {
    let crib = filled();
    for (name, arguments) in [
        ("fs_write_file", json!({"path": "a", "content": "new"})),
        ("fs_rm", json!({"path": "b"})),
        ("fs_move", json!({"from": "c", "to": "moved"})),
    ] {
        crib.call(name, &arguments, &[&TOOLS[..], &["--stage=one"]].concat());
    }
    assert!(records(&crib).is_empty(), "nothing has changed yet");
    let ran = crib.run(&["stage", "commit", "one", "--yes"]);
    assert!(ran.stderr.contains("hint: `toolcrib undo "), "{ran:?}");
    assert_eq!((text(&crib, "a").as_deref(), text(&crib, "b"), text(&crib, "c")), (Some("new"), None, None));
    let (code, _, said) = undo(&crib, &["one", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(["a", "b", "c"].map(|name| text(&crib, name).unwrap()), ["a before\n", "b before\n", "c before\n"]);
    assert!(!crib.path("work/moved").exists());
    // Of two commits under one name, the last one is meant.
    for name in ["a", "b"] {
        let arguments = json!({"path": name, "content": "again"});
        crib.call("fs_write_file", &arguments, &[&TOOLS[..], &["--stage=one"]].concat());
        crib.run(&["stage", "commit", "one", "--yes"]);
    }
    assert_eq!(undo(&crib, &["one", "--yes"]).0, Some(0));
    assert_eq!(["a", "b"].map(|name| text(&crib, name).unwrap()), ["again", "b before\n"]);
}

#[test]
fn without_days_nothing_is_noted_and_only_the_user_decides_that() {
    let crib = filled();
    crib.call("fs_rm", &json!({"path": "a"}), &[&TOOLS[..], &["--set=history.days=0"]].concat());
    assert!(records(&crib).is_empty());
    fs::write(crib.path("toolcrib.toml"), "[history]\ndays = 0\n").unwrap();
    let ran = crib.run(&[&["call", "fs_rm", r#"{"path":"b"}"#], &TOOLS[..]].concat());
    assert!(ran.code != Some(0) && ran.stderr.contains("history.days"), "{ran:?}");
}

#[test]
fn no_tool_is_granted_the_folder_of_the_history() {
    let crib = Crib::new();
    let limits = HistoryLimits { bytes: 1 << 20, file: 1 << 20, age: Duration::from_secs(60) };
    let record = History::new(crib.path("work/history"), limits).begin(RecordHeader::default());
    let policy = Policy::default().allow(Permission::Write(crib.path("work")));
    let builder = Runtime::builder(Audit::off()).trusted_source(toolbox()).policy(policy);
    let refused = builder.record(record).build().map(drop).unwrap_err();
    assert!(refused.to_string().contains("history"), "{refused}");
}

#[test]
fn a_change_that_cannot_be_taken_back_is_named_at_once_and_by_the_undo() {
    let crib = filled();
    let small = [&TOOLS[..], &["--set=history.file=5"]].concat();
    let ran = crib.run(&[&["call", "fs_rm", r#"{"path":"a"}"#], &small[..]].concat());
    assert!(ran.code == Some(0) && ran.stderr.contains("warning: 1 change cannot be taken back"), "{ran:?}");
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(1) && said.contains("`work/a` stays") && said.contains("`history.file`"), "{said}");
    crib.call("fs_rm", &json!({"path": "b"}), &[&small[..], &["--stage=one"]].concat());
    crib.call("fs_write_file", &json!({"path": "new", "content": "x"}), &[&small[..], &["--stage=one"]].concat());
    let ran = crib.run(&["stage", "commit", "one", "--yes", "--json", "--set=history.file=5"]);
    let done: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&done["name"], &done["steps"], &done["lost"], &done["leftOut"]),
        (&json!("one"), &json!(2), &json!(1), &json!([]))
    );
    assert!(ran.stderr.contains("takes the rest back"), "{ran:?}");
    let (code, shown, _) = undo(&crib, &[done["record"].as_str().unwrap(), "--yes", "--json"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((code, shown["refused"].as_array().unwrap().len(), &shown["incomplete"]), (Some(1), 1, &json!(false)));
    assert_eq!((text(&crib, "b"), text(&crib, "new")), (None, None));
}

#[test]
fn many_paths_that_stay_are_counted() {
    let crib = filled();
    let code = "for n in range(25):\n    tools.fs_write_file(path=f'{n:02}.txt', content='x')";
    call(&crib, "run_code", &json!({"code": code}));
    for number in 0..25 {
        fs::write(crib.path(format!("work/{number:02}.txt")), "by a person").unwrap();
    }
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(1) && said.matches(" stays: ").count() == 20, "{said}");
    assert!(said.contains("5 more paths stay"), "{said}");
}

#[test]
fn an_undo_that_runs_and_one_that_was_interrupted_are_named() {
    let crib = filled();
    call(&crib, "fs_rm", &json!({"path": "a"}));
    let lock = fs::File::open(crib.path("home/.local/state/toolcrib/history/lock"));
    assert!(lock.is_err(), "no undo has run");
    assert_eq!(undo(&crib, &["--dry-run"]).0, Some(0));
    let lock = fs::File::open(crib.path("home/.local/state/toolcrib/history/lock")).unwrap();
    lock.lock().unwrap();
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(1) && said.contains("another undo is running"), "{said}");
    drop(lock);
    let name = "undo-0123456789abcdef";
    let stage = crib.path("home/.local/state/toolcrib/stages").join(name);
    fs::create_dir_all(stage.join("contents")).unwrap();
    fs::write(stage.join("journal"), "").unwrap();
    fs::write(stage.join("steps"), r#"{"aside":"a","steps":[]}"#).unwrap();
    let (code, _, said) = undo(&crib, &["--yes"]);
    assert!(code == Some(1) && said.contains("an undo was interrupted") && said.contains(name), "{said}");
    assert_eq!(crib.run(&["stage", "commit", name]).code, Some(0));
    assert_eq!(undo(&crib, &["--yes"]).0, Some(0));
    assert!(text(&crib, "a").is_some());
}

#[test]
fn a_wrong_use_is_explained() {
    let crib = filled();
    for (args, hint) in
        [(&["nothing", "--yes"][..], "no recorded change of `nothing`"), (&["--list", "--yes"], "cannot be used with")]
    {
        let (code, _, said) = undo(&crib, args);
        assert!(code != Some(0) && said.contains(hint), "{args:?}: {said}");
    }
    call(&crib, "fs_rm", &json!({"path": "a"}));
    let (code, _, said) = undo(&crib, &[]);
    assert!(code == Some(1) && said.contains("cannot ask: no terminal is available"), "{said}");
    assert_eq!((text(&crib, "a"), crib.run(&["stage", "list", "--json"]).stdout.as_str()), (None, "[]\n"));
}
