//! Writes that are held back: seen by all calls of the stage and by nobody else, until they are committed or dropped.

use std::fs;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::staging::{Limits, Stages};
use toolcrib::{Audit, Policy, Runtime};

use crate::crib::{Crib, toolbox};
use crate::gate::servers::Server;

mod again;
mod doors;
mod full_disk;
mod held;
mod hostile;
mod native;
mod part;
mod waiting;

/// Tool flags: the shipped tools over the folder `work`.
const TOOLS: [&str; 3] = ["--tools=builtin", "--allow-write=work", "--stage=one"];

/// Calls a tool in the stage.
#[track_caller]
fn call(crib: &Crib, name: &str, arguments: &Value) -> Value {
    let line = crib.call(name, arguments, &TOOLS);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    let writes = line["receipt"]["granted"].to_string().contains("write:");
    assert_eq!(line["receipt"]["stage"] == "one", writes, "{line}");
    line["result"].clone()
}

/// Runs a command of the stage `one`, which succeeds, and returns its standard output.
#[track_caller]
fn stage(crib: &Crib, args: &[&str]) -> String {
    let ran = crib.run(&[&["stage"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stdout
}

fn written(crib: &Crib, name: &str) -> Option<String> {
    fs::read_to_string(crib.path("work").join(name)).ok()
}

#[test]
fn later_calls_see_what_earlier_ones_wrote_and_the_folder_stays_until_the_commit() {
    let crib = Crib::new();
    fs::write(crib.path("work/list.md"), "Milk\n").unwrap();
    call(&crib, "fs_write_file", &json!({"path": "list.md", "content": "Milk\nEggs\n"}));
    call(&crib, "fs_mkdirp", &json!({"path": "kept"}));
    call(&crib, "fs_move", &json!({"from": "list.md", "to": "kept/list.md"}));
    call(&crib, "fs_write_file", &json!({"path": "new.md", "content": "x"}));
    assert_eq!(call(&crib, "fs_read_file", &json!({"path": "kept/list.md"}))["content"], "Milk\nEggs\n");
    let listed = call(&crib, "fs_list_dir", &json!({"path": "."}));
    let names: Vec<&str> = listed["entries"].as_array().unwrap().iter().filter_map(|it| it["path"].as_str()).collect();
    assert!(names.contains(&"new.md") && !names.contains(&"list.md"), "{names:?}");
    assert_eq!((written(&crib, "list.md").as_deref(), written(&crib, "new.md")), (Some("Milk\n"), None));
    let outside = crib.call("fs_read_file", &json!({"path": "list.md"}), &["--tools=builtin", "--allow-read=work"]);
    assert_eq!(outside["result"]["content"], "Milk\n", "a call without the stage");
    let changes: Value = serde_json::from_str(&stage(&crib, &["diff", "--json"])).unwrap();
    let kinds: Vec<&str> = changes.as_array().unwrap().iter().filter_map(|change| change["kind"].as_str()).collect();
    assert_eq!(kinds, ["added", "moved", "added"], "{changes}");
    let moved = &changes[1];
    assert_eq!(
        moved["calls"].as_array().unwrap().iter().map(|call| &call["tool"]).collect::<Vec<_>>(),
        ["fs_write_file", "fs_move"]
    );
    assert!(moved["diff"].as_str().unwrap().contains("+Eggs"), "{moved}");
    stage(&crib, &["commit", "one", "--yes"]);
    assert_eq!((written(&crib, "list.md"), written(&crib, "kept/list.md").as_deref()), (None, Some("Milk\nEggs\n")));
    assert_eq!(stage(&crib, &["list", "--json"]), "[]\n");
}

#[test]
fn a_removed_folder_comes_back_with_all_that_was_in_it() {
    let crib = Crib::new();
    fs::create_dir_all(crib.path("work/x/inner")).unwrap();
    for name in ["x/f", "x/inner/g"] {
        fs::write(crib.path("work").join(name), "old").unwrap();
    }
    call(&crib, "fs_rm", &json!({"path": "x", "recursive": true}));
    let dropped = crib.run(&["stage", "drop", "one", "work/x"]);
    assert!(dropped.code == Some(0) && !dropped.stderr.contains("stays"), "{dropped:?}");
    assert_eq!(stage(&crib, &["list", "--json"]), "[]\n", "nothing is left to be committed");
    assert_eq!(written(&crib, "x/inner/g").as_deref(), Some("old"));
}

#[test]
fn requests_are_listed_at_the_end_because_they_are_not_held_back() {
    let (crib, page) = (Crib::new(), Server::plain("a page"));
    let host = format!("http://{}", page.authority());
    let fetch = |path: &str| json!({"name": "fetch_page", "arguments": {"url": format!("{host}/{path}")}});
    let write = json!({"name": "fs_write_file", "arguments": {"path": "a.md", "content": "x"}});
    let script = json!({"prompt": "go", "turns": [
        {"tool_calls": [fetch("a"), fetch("b"), write]}, {"content": "done"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let allow = format!("--allow-net={host}");
    let ran = crib.run(&[&["run", "--script=script.json", &allow, "--set=approvals.flows=never"], &TOOLS[..]].concat());
    let listed = format!("requests that were sent, and not held back: GET {} (2)", page.authority());
    assert!(ran.stderr.contains(&listed) && ran.stderr.contains("staged in `one`: 1 added"), "{ran:?}");
    let quiet = crib.run(&[&["call", "fs_mkdirp", r#"{"path":"b"}"#], &TOOLS[..]].concat());
    assert!(!quiet.stderr.contains("requests that were sent"), "{quiet:?}");
}

#[test]
fn a_call_that_writes_nothing_leaves_no_stage() {
    let crib = Crib::new();
    call(&crib, "fs_list_dir", &json!({"path": "."}));
    assert_eq!(stage(&crib, &["list", "--json"]), "[]\n");
}

#[test]
fn the_setting_gives_every_command_a_stage() {
    let crib = Crib::new();
    let tools = ["--tools=builtin", "--allow-write=work"];
    let arguments = json!({"path": "a", "content": "x"});
    let line = crib.call("fs_write_file", &arguments, &[&tools[..], &["--set=run.stage=true"]].concat());
    let name = line["receipt"]["stage"].as_str().unwrap();
    assert_eq!(written(&crib, "a"), None);
    stage(&crib, &["commit", name, "--yes"]);
    assert_eq!(written(&crib, "a").as_deref(), Some("x"));
    let line = crib.call("fs_write_file", &arguments, &tools);
    assert_eq!(line["receipt"].get("stage"), None, "{line}");
}

#[test]
fn a_dropped_change_is_as_it_was_and_the_others_stay() {
    let crib = Crib::new();
    for name in ["a", "b", "c"] {
        fs::write(crib.path("work").join(name), "old").unwrap();
        call(&crib, "fs_write_file", &json!({"path": name, "content": "new"}));
    }
    call(&crib, "fs_rm", &json!({"path": "c"}));
    assert!(crib.run(&["stage", "drop", "one", "work/none"]).stderr.contains("no change is at `work/none`"));
    stage(&crib, &["drop", "one", "work/b"]);
    stage(&crib, &["drop", "one", "--call=fs_rm"]);
    assert_eq!(call(&crib, "fs_read_file", &json!({"path": "c"}))["content"], "old");
    stage(&crib, &["commit", "--yes"]);
    assert_eq!(["a", "b", "c"].map(|name| written(&crib, name).unwrap()), ["new", "old", "old"]);
}

#[test]
fn a_run_with_a_program_writes_into_the_stage_of_its_name() {
    let crib = Crib::new();
    let code = "for n in range(5):\n    tools.fs_write_file(path=f'{n}.txt', content=str(n))\ntools.fs_read_file(path='3.txt')['content']";
    let script = json!({"prompt": "write", "turns": [
        {"tool_calls": [{"name": "run_code", "arguments": {"code": code}}]},
        {"content": "done"},
    ]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&[
        "run",
        "--script=script.json",
        "--code",
        "--tools=builtin",
        "--allow-write=work",
        "--stage",
        "--json",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("\\\"value\\\":\\\"3\\\""), "{}", ran.stdout);
    let end: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let name = end["run"].as_str().unwrap();
    assert!(ran.stderr.contains(&format!("staged in `{name}`: 5 added")), "{}", ran.stderr);
    assert_eq!(written(&crib, "3.txt"), None);
    stage(&crib, &["commit", name, "--yes"]);
    assert_eq!(written(&crib, "3.txt").as_deref(), Some("3"));
}

#[test]
fn a_conflict_stops_the_commit_and_is_named() {
    let crib = Crib::new();
    fs::write(crib.path("work/a"), "old").unwrap();
    for name in ["a", "b"] {
        call(&crib, "fs_write_file", &json!({"path": name, "content": "new"}));
    }
    fs::write(crib.path("work/a"), "others").unwrap();
    let ran = crib.run(&["stage", "commit", "one", "--yes"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("refused: `work/a`: others have changed it since"), "{}", ran.stderr);
    assert_eq!((written(&crib, "a").as_deref(), written(&crib, "b")), (Some("others"), None));
    stage(&crib, &["drop", "one", "work/a"]);
    stage(&crib, &["commit", "one", "--yes"]);
    assert_eq!((written(&crib, "a").as_deref(), written(&crib, "b").as_deref()), (Some("others"), Some("new")));
}

#[test]
fn names_and_stages_that_are_none_are_refused() {
    let crib = Crib::new();
    for (args, message) in [
        (vec!["stage", "diff"], "no stages exist"),
        (vec!["stage", "commit", "none", "--yes"], "no stage `none`"),
        (
            vec!["call", "fs_list_dir", "--tools=builtin", "--allow-read=work", "--stage=../x"],
            "is not a valid stage name",
        ),
        (vec!["list", "--tools=builtin", "--stage"], "--stage"),
    ] {
        let ran = crib.run(&args);
        assert!(ran.code != Some(0) && ran.stderr.contains(message), "{args:?}: {ran:?}");
    }
    call(&crib, "fs_write_file", &json!({"path": "a", "content": ""}));
    let ran = crib.run(&["stage", "diff", "onn"]);
    assert!(ran.stderr.contains("did you mean `one`?"), "{ran:?}");
    let ran = crib.run(&["stage", "commit", "one"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot ask: no terminal is available"), "{ran:?}");
}

#[test]
fn a_resumed_run_goes_on_in_its_stage() {
    let crib = Crib::new();
    let write =
        |name: &str| json!({"tool_calls": [{"name": "fs_write_file", "arguments": {"path": name, "content": name}}]});
    let script = json!({"prompt": "write", "turns": [write("a"), write("b"), {"content": "done"}]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let flags = ["--script=script.json", "--tools=builtin", "--allow-write=work", "--json"];
    let ran = crib.run(&[&["run", "--stage", "--max-steps=1"], &flags[..]].concat());
    let end: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let name = end["run"].as_str().unwrap();
    let ran = crib.run(&[&["run", "--resume", name], &flags[..]].concat());
    assert!(ran.stderr.contains(&format!("the run continues in its stage `{name}`")), "{ran:?}");
    assert!(ran.stderr.contains("2 added"), "{}", ran.stderr);
    assert_eq!((written(&crib, "a"), written(&crib, "b")), (None, None));
}

#[test]
fn what_a_move_replaces_is_listed_and_a_file_in_place_of_a_link_has_no_rights_of_it() {
    let crib = Crib::new();
    fs::write(crib.path("work/precious"), "precious\n").unwrap();
    fs::write(crib.path("work/scratch"), "scratch\n").unwrap();
    crate::crib::link("precious", &crib.path("work/link"));
    call(&crib, "fs_move", &json!({"from": "scratch", "to": "precious", "overwrite": true}));
    call(&crib, "fs_rm", &json!({"path": "link"}));
    call(&crib, "fs_write_file", &json!({"path": "link", "content": "file"}));
    let diff = stage(&crib, &["diff"]);
    assert!(diff.contains("removed work/precious") && diff.contains("-precious"), "{diff}");
    assert!(diff.contains("modified work/link, which was a link"), "{diff}");
    stage(&crib, &["commit", "--yes"]);
    assert_eq!(written(&crib, "precious").as_deref(), Some("scratch\n"));
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::symlink_metadata(crib.path("work/link")).unwrap());
    assert_eq!(mode & 0o111, 0, "{mode:o}");
}

#[test]
fn patterns_stay_below_the_current_folder() {
    let crib = Crib::new();
    fs::create_dir_all(crib.path("work/src/deep")).unwrap();
    for name in ["top.rs", "src/a.rs", "src/deep/b.rs"] {
        call(&crib, "fs_write_file", &json!({"path": name, "content": ""}));
    }
    let count = |pattern: &str| stage(&crib, &["diff", "one", pattern, "--stat"]).lines().count();
    assert_eq!(
        (count("work/**/*.rs"), count("work/src/*.rs"), count("work/../work/top.rs"), count("work/src")),
        (3, 2, 1, 2)
    );
    let inside = |pattern: &str| {
        let mut command = crib.toolcrib(&["stage", "diff", "one", pattern, "--stat"]);
        crate::crib::Ran::of(command.current_dir(crib.path("work/src")))
    };
    assert_eq!(inside("**/*.rs").stdout.lines().count(), 2);
    assert!(inside("*/top.rs").stderr.contains("no change is at"), "a folder above is not meant");
}

#[test]
fn a_damaged_stage_and_one_whose_commit_has_begun_are_listed_and_dropped() {
    let crib = Crib::new();
    call(&crib, "fs_write_file", &json!({"path": "a", "content": "a"}));
    let folder = crib.path("home/.local/state/toolcrib/stages/one");
    fs::write(folder.join("steps"), r#"{"aside":".toolcrib-stage-0-","steps":[]}"#).unwrap();
    assert!(stage(&crib, &["list"]).contains("commit: 0 of 0 steps done"));
    let ran = crib.run(&["stage", "drop", "one", "work/a"]);
    assert!(ran.stderr.contains("the commit has begun"), "{ran:?}");
    fs::write(folder.join("journal"), "damaged\n").unwrap();
    assert!(stage(&crib, &["list"]).contains("damaged"));
    stage(&crib, &["drop", "one"]);
    assert_eq!(stage(&crib, &["list", "--json"]), "[]\n");
}

#[test]
fn a_file_too_large_to_compare_is_named_with_its_sizes() {
    let crib = Crib::new();
    fs::write(crib.path("work/large"), vec![b'x'; (1 << 20) + 1]).unwrap();
    fs::write(crib.path("work/binary"), [0, 1, 2]).unwrap();
    call(&crib, "fs_write_file", &json!({"path": "large", "content": "small"}));
    call(&crib, "fs_write_file", &json!({"path": "binary", "content": "text"}));
    let diff = stage(&crib, &["diff"]);
    assert!(diff.contains("modified work/large (1.0 MiB → 5 bytes)\n  larger than 1.0 MiB: not compared"), "{diff}");
    assert!(diff.contains("modified work/binary (3 bytes → 4 bytes)\n  binary"), "{diff}");
}

#[test]
fn no_tool_is_granted_the_folder_of_the_stage() {
    let crib = Crib::new();
    let stages = Stages::new(crib.path("work/stages"));
    let stage = stages.open("one", Limits::default()).unwrap();
    let policy = Policy::default().allow(Permission::Write(crib.path("work")));
    let builder = Runtime::builder(Audit::off()).trusted_source(toolbox()).policy(policy);
    let refused = builder.stage(stage).build().map(drop).unwrap_err();
    assert!(refused.to_string().contains("stage"), "{refused}");
}
