//! Grants of one file: nothing else of its folder is there, and the folder stays as it is.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::{Audit, Policy, ToolCall};

use super::{crib, denied};
use crate::crib::{Crib, nesting, toolbox};

/// Crib with files in a folder; some of them are granted.
fn files() -> Crib {
    let crib = crib(&["file_io"]);
    for name in ["one", "two", "other"] {
        fs::write(crib.path("work").join(name), name).unwrap();
    }
    fs::create_dir_all(crib.path("work/sub")).unwrap();
    fs::write(crib.path("work/sub/one"), "below").unwrap();
    symlink("one", crib.path("work/link")).unwrap();
    crib
}

/// Result of an operation of the guest.
fn act(crib: &Crib, flags: &[&str], op: &str, path: &str, to: &str) -> Value {
    crib.call("file_io", &json!({"op": op, "path": path, "to": to, "text": "x"}), flags)["result"].clone()
}

#[test]
fn a_guest_finds_the_granted_file_and_no_other() {
    let crib = files();
    for (flags, readable) in [
        (&["--allow-read=work/one"][..], &["one"][..]),
        (&["--allow-read=work/one,work/two"], &["one", "two"]),
        (&["--allow-write=file_io:work/one", "--allow-write=work/two"], &["one", "two"]),
    ] {
        for name in ["one", "two"] {
            let read = act(&crib, flags, "read", name, "");
            assert_eq!(read["ok"] == name, readable.contains(&name), "{flags:?} {name}: {read}");
        }
        for spelling in ["./one", ".//one", "one"] {
            assert_eq!(act(&crib, flags, "read", spelling, "")["ok"], "one", "{spelling}");
        }
        for path in ["other", "link", "sub/one", "sub", "../work/other", "sub/../other", "./other", "none"] {
            for op in ["read", "open", "stat", "write", "append", "truncate", "open_new"] {
                let done = act(&crib, flags, op, path, "");
                assert!(done["error"].is_string(), "{flags:?} {op} {path}: {done}");
            }
        }
        assert_eq!(fs::read_to_string(crib.path("work/other")).unwrap(), "other");
    }
    let line = crib.call("file_io", &json!({"op": "read", "path": "other"}), &["--allow-read=work/one"]);
    assert_eq!(denied(&line), ["read:other"]);
    assert_eq!(line["receipt"]["granted"], json!([format!("read:{}", canonical(&crib, "work/one"))]));
}

fn canonical(crib: &Crib, path: &str) -> String {
    crib.path(path).canonicalize().unwrap().display().to_string()
}

#[test]
fn a_written_file_stays_in_its_folder_and_the_folder_as_it_is() {
    let crib = files();
    let flags = ["--allow-write=work/one"];
    for (op, path, to) in [
        ("remove", "one", ""),
        ("rename", "one", "moved"),
        ("rename", "other", "one"),
        ("hard_link", "one", "linked"),
        ("hard_link", "other", "linked"),
        ("symlink", "planted", "one"),
        ("mkdir", "made", ""),
        ("open_new", "made", ""),
        ("write", "made", ""),
    ] {
        assert!(act(&crib, &flags, op, path, to)["error"].is_string(), "{op} {path} {to}");
    }
    let mut names: Vec<_> = fs::read_dir(crib.path("work")).unwrap().map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["folder", "link", "note", "one", "other", "sub", "two"]);
    assert_eq!(fs::read_to_string(crib.path("work/one")).unwrap(), "one");
    for (op, wanted) in [("write", "x"), ("append", "xx"), ("truncate", "")] {
        assert!(act(&crib, &flags, op, "one", "").get("ok").is_some(), "{op}");
        assert_eq!(fs::read_to_string(crib.path("work/one")).unwrap(), wanted, "{op}");
    }
    assert!(act(&crib, &["--allow-read=work/one"], "write", "one", "")["error"].is_string());
}

#[test]
fn the_shipped_tools_work_on_one_file() {
    let crib = files();
    let tools = toolbox();
    let call = |tool: &str, arguments: Value| {
        crib.call(tool, &arguments, &["--tools", tools.to_str().unwrap(), "--allow-write=work/one"])
    };
    let written = call("fs_write_file", json!({"path": "one", "content": "a\nb\n", "overwrite": true}));
    assert_eq!(written["receipt"]["outcome"], "ok", "{written}");
    let edited = call("fs_edit_range", json!({"path": "one", "start": 2, "end": 2, "content": "c"}));
    assert_eq!(edited["receipt"]["outcome"], "ok", "{edited}");
    assert_eq!(fs::read_to_string(crib.path("work/one")).unwrap(), "a\nc\n");
    let listed = call("fs_list_dir", json!({}));
    let names: Vec<&Value> = listed["result"]["entries"].as_array().unwrap().iter().map(|it| &it["path"]).collect();
    assert_eq!(names, ["one"], "{listed}");
    let found = call("fs_search", json!({"pattern": "."}));
    assert!(!found.to_string().contains("other"), "{found}");
    for (tool, arguments) in [
        ("fs_rm", json!({"path": "one"})),
        ("fs_move", json!({"from": "one", "to": "two"})),
        ("fs_mkdirp", json!({"path": "made"})),
        ("fs_read_file", json!({"path": "other"})),
    ] {
        let line = call(tool, arguments);
        assert_ne!(line["receipt"]["outcome"], "ok", "{tool}: {line}");
    }
    assert!(crib.path("work/one").exists() && !crib.path("work/made").exists());
}

#[test]
fn a_folder_covers_its_files_a_link_is_refused_and_denials_count() {
    let crib = files();
    let granted = |flags: &[&str]| {
        let line = crib.call("file_io", &json!({"op": "read", "path": "one"}), flags);
        line["receipt"]["granted"].clone()
    };
    let folder = json!([format!("read:{}", canonical(&crib, "work"))]);
    assert_eq!(granted(&["--allow-read=work", "--allow-read=work/one"]), folder);
    assert_eq!(
        granted(&["--allow-write=work/one", "--deny-write=work"]),
        json!([format!("read:{}", canonical(&crib, "work/one"))])
    );
    assert_eq!(granted(&["--allow-read=work/one", "--deny-read=work/one"]), json!([]));
    assert_eq!(granted(&["--allow-read=work/one", "--deny-read=work/two"]).as_array().unwrap().len(), 1);
    for refused in ["--allow-read=work/link", "--allow-read=work/none"] {
        let ran = crib.run(&["call", "file_io", "{}", refused]);
        assert!(ran.code == Some(1) && ran.stderr.contains(refused), "{ran:?}");
    }
    // Beside the state of the program, which no grant of a folder may hold.
    fs::create_dir_all(crib.path("home/.local/state/toolcrib")).unwrap();
    fs::write(crib.path("home/one"), "home").unwrap();
    assert_eq!(act(&crib, &["--allow-read=home/one"], "read", "one", "")["ok"], "home");
    assert!(crib.run(&["call", "file_io", "{}", "--allow-read=home"]).stderr.contains("would let a tool reach"));
    let own = "--allow-read=home/.local/state/toolcrib/trusted.json";
    assert!(crib.run(&["call", "file_io", "{}", own]).stderr.contains("would let a tool reach"));
}

#[test]
fn an_entry_that_took_the_place_of_the_file_opens_nothing() {
    for swap in ["link", "folder"] {
        let crib = files();
        let policy = Policy::default().allow(Permission::Read(crib.path("work/one")));
        let builder = nesting::builder(Audit::off()).policy(policy).source(crib.path("tools.json"));
        let runtime = builder.build().unwrap();
        fs::remove_file(crib.path("work/one")).unwrap();
        match swap {
            "link" => symlink("sub", crib.path("work/one")).unwrap(),
            _ => fs::rename(crib.path("work/sub"), crib.path("work/one")).unwrap(),
        }
        let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (op, path) in [
            ("list", "one"),
            ("list", "one/"),
            ("list", "one/."),
            ("read", "one/one"),
            ("read", "one/./one"),
            ("open", "one"),
        ] {
            let arguments = json!({"op": op, "path": path}).to_string();
            let result = tokio.block_on(nesting::call(&runtime, ToolCall::new("", "file_io", arguments)));
            let content = result.content();
            assert!(content.contains("error") && !content.contains("below"), "{swap} {op} {path}: {content}");
        }
    }
}
