//! Links that a guest plants for others to follow: no link that leads out of its folder is created or moved there, and
//! no later grant and no write of the host follows one.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::{Policy, ToolCall};

use super::{crib, denied, ends};
use crate::crib::{Crib, nesting};
use crate::screen::Page;

/// Returns a function that calls `file_io` with the folder `work` granted for writing.
fn writing(crib: &Crib) -> impl Fn(&str, &str, &str) -> Value {
    let policy = Policy::default().allow(Permission::Write(crib.path("work")));
    let runtime = nesting::builder(toolcrib::Audit::off())
        .trusted_source(crib.path("tools.json"))
        .policy(policy)
        .build()
        .unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    move |op, path, to| {
        let call = ToolCall::new("", "file_io", json!({"op": op, "path": path, "to": to, "text": "x"}).to_string());
        serde_json::from_str(&tokio.block_on(nesting::call(&runtime, call)).content()).unwrap()
    }
}

#[test]
fn a_guest_makes_no_link_that_leads_out() {
    let crib = crib(&["file_io"]);
    let line =
        ends(&crib, "file_io", json!({"op": "symlink", "path": "l", "to": "../.ssh"}), &["--allow-write=work"], "ok");
    assert_eq!((&line["result"]["error"], denied(&line)), (&json!("not-permitted"), vec!["write:l"]), "{line}");
    fs::create_dir_all(crib.path("work/folder/deep")).unwrap();
    symlink("..", crib.path("work/operators")).unwrap();
    let act = writing(&crib);
    for (path, target) in [
        ("l", "/etc"),
        ("l", ".."),
        ("l", "./../secret"),
        ("l", "folder/../../secret"),
        ("folder/l", "../../secret"),
        ("folder/./l", "../.././secret"),
        ("folder/deep/l", "../../../secret"),
        ("folder/../l", "../secret"),
        ("l", "operators/secret"),
        ("folder/l", "../operators"),
    ] {
        assert_eq!(act("symlink", path, target), json!({"error": "not-permitted"}), "{path} {target}");
    }
    for (path, target) in [("a", "note"), ("folder/b", "../note"), ("folder/deep/c", "../../note"), ("d", "absent/x")] {
        assert_eq!(act("symlink", path, target), json!({"ok": null}), "{path} {target}");
    }
    assert_eq!(act("read", "folder/deep/c", ""), json!({"ok": "text"}));
}

#[test]
fn a_link_is_not_moved_to_where_it_leads_out() {
    let crib = crib(&["file_io"]);
    fs::create_dir_all(crib.path("work/folder/deep")).unwrap();
    symlink(crib.path("secret"), crib.path("work/operators")).unwrap();
    let act = writing(&crib);
    assert_eq!(act("symlink", "folder/deep/l", "../../note"), json!({"ok": null}));
    for (op, from, to) in [
        ("rename", "folder/deep/l", "l"),
        ("rename", "folder/deep/l", "folder/l"),
        ("rename", "folder/deep", "deep"),
        ("hard_link", "folder/deep/l", "l"),
        ("hard_link", "folder/deep/l", "folder/l"),
        ("rename", "operators", "work"),
        ("hard_link", "operators", "other"),
    ] {
        assert_eq!(act(op, from, to), json!({"error": "not-permitted"}), "{op} {from} {to}");
    }
    for (from, to) in [("folder/deep/l", "folder/deep/m"), ("folder", "moved"), ("note", "moved/deep/note")] {
        assert_eq!(act("rename", from, to), json!({"ok": null}), "{from} {to}");
    }
}

#[test]
fn a_folder_that_is_too_large_to_be_looked_through_is_not_moved() {
    let crib = crib(&["file_io"]);
    for number in 0..=20_000 {
        fs::write(crib.path(format!("work/folder/{number}")), "").unwrap();
    }
    let act = writing(&crib);
    assert_eq!(act("rename", "folder", "moved"), json!({"error": "not-permitted"}));
    fs::remove_file(crib.path("work/folder/0")).unwrap();
    assert_eq!(act("rename", "folder", "moved"), json!({"ok": null}));
}

#[test]
fn a_folder_that_is_too_deep_to_be_looked_through_is_not_moved() {
    let crib = crib(&["file_io"]);
    fs::create_dir_all(crib.path("work/folder").join("d/".repeat(257))).unwrap();
    let act = writing(&crib);
    assert_eq!(act("rename", "folder", "moved"), json!({"error": "not-permitted"}));
    assert_eq!(act("rename", "folder/d", "moved"), json!({"ok": null}));
}

#[test]
fn a_folder_is_not_moved_that_holds_what_settles_something_however_deep() {
    let crib = crib(&["file_io"]);
    for (number, inner) in [".git/hooks", "a/.config/mise", "a/b/tools.json", "a/b/c/.git/config"].iter().enumerate() {
        fs::create_dir_all(crib.path(format!("work/{number}")).join(inner)).unwrap();
    }
    fs::create_dir_all(crib.path("work/4/a/b/c/d")).unwrap();
    symlink("../../../../../note", crib.path("work/4/a/b/c/d/l")).unwrap();
    let act = writing(&crib);
    for number in 0..4 {
        assert_eq!(act("rename", &number.to_string(), "moved"), json!({"error": "not-permitted"}), "{number}");
    }
    assert_eq!(act("rename", "4/a", "a"), json!({"error": "not-permitted"}), "its link would lead out");
    assert_eq!(act("rename", "4", "moved"), json!({"ok": null}));
}

#[test]
fn a_file_that_has_to_be_new_is_not_made_where_a_link_leads_to_nothing() {
    let crib = crib(&["file_io"]);
    symlink("absent", crib.path("work/dangling")).unwrap();
    let act = writing(&crib);
    assert_eq!(act("open_new", "dangling", ""), json!({"error": "exist"}));
    assert!(!crib.path("work/absent").exists());
    assert!(act("write", "dangling", "").get("ok").is_some());
    assert!(crib.path("work/absent").exists());
}

#[test]
fn a_manifest_names_no_folder_by_a_link() {
    let page = Page::new();
    let crib = crib(&["file_io"]);
    fs::create_dir(crib.path("outside")).unwrap();
    fs::write(crib.path("outside/key"), "canary").unwrap();
    symlink("../outside", crib.path("work/planted")).unwrap();
    symlink("work", crib.path("inside")).unwrap();
    symlink(crib.path("outside"), crib.path("work/absolute")).unwrap();
    symlink("planted", crib.path("work/chain")).unwrap();
    fs::create_dir_all(crib.path("outside/below")).unwrap();
    let program = json!(["./tools/bin/file_io"]);
    for (access, path) in [
        ("read", "work/planted"),
        ("write", "work/planted"),
        ("write", "./work/absolute"),
        ("read", "work/chain"),
        ("read", "work/planted/below"),
        ("read", "inside/folder"),
    ] {
        let entry = json!({"name": "file_io", "command": program, "capabilities": {"files": {access: [path]}}});
        crib.manifest(&json!({ "tools": [entry] }));
        page.run(&crib, &["call", "file_io", &json!({"op": "read", "path": "key"}).to_string()]);
    }
    // The folder of the manifest itself may be a link of the operator's.
    let entry = json!({"name": "file_io", "command": program, "capabilities": {"files": {"read": ["work"]}}});
    crib.manifest(&json!({ "tools": [entry] }));
    symlink(".", crib.path("here")).unwrap();
    page.run(&crib, &["call", "file_io", r#"{"op":"read","path":"note"}"#, "--tools=here/tools.json"]);
    page.matches("files/manifest-link");
}

#[test]
fn a_flag_goes_through_no_link_inside_a_folder_that_tools_may_write() {
    let page = Page::new();
    let crib = crib(&["file_io"]);
    fs::create_dir_all(crib.path("outside/below")).unwrap();
    symlink("../outside", crib.path("work/planted")).unwrap();
    symlink("folder", crib.path("work/within")).unwrap();
    symlink("work/within", crib.path("operators")).unwrap();
    for flag in ["work/planted", "work/within", "work/planted/below", "operators", "./work/../work/planted"] {
        for kind in ["--allow-read", "--allow-write"] {
            page.run(&crib, &["call", "file_io", "{}", "--allow-write=work", &format!("{kind}={flag}")]);
        }
    }
    // A link in a place that no tool can write is the operator's.
    page.run(&crib, &["call", "file_io", r#"{"op":"roots"}"#, "--allow-read=work,operators"]);
    page.matches("files/flag-link");
}

#[test]
fn nothing_that_the_host_writes_lies_where_a_tool_may_write() {
    let page = Page::new();
    let crib = crib(&["file_io"]);
    fs::write(crib.path("script.json"), r#"{"prompt":"go","turns":[{"content":"done"}]}"#).unwrap();
    fs::create_dir_all(crib.path("work/inner")).unwrap();
    symlink("work", crib.path("alias")).unwrap();
    let run = ["run", "--script=script.json", "--allow-write=work/inner"];
    for flag in [
        "--media=work/inner",
        "--media=work",
        "--media=work/inner/new",
        "--media=alias/inner/new",
        "--save-messages=work/inner/talk.json",
        "--save-messages=alias/inner/talk.json",
        "--records=work/inner/records",
        "--records=work",
        "--audit-dir=alias/inner/audit",
        "--results-dir=alias",
        "--keyvalue-dir=alias/inner",
    ] {
        page.run(&crib, &[&run[..], &[flag]].concat());
    }
    page.run(&crib, &[&run[..], &["--media=shots", "--save-messages=talk.json"]].concat());
    page.matches("files/host-writes");
}

#[test]
fn a_link_in_the_place_of_a_folder_that_the_host_writes_is_refused() {
    let page = Page::new();
    let crib = crib(&["file_io"]);
    fs::create_dir(crib.path("outside")).unwrap();
    symlink("../outside", crib.path("work/planted")).unwrap();
    for flag in ["--set=records.media_dir", "--records", "--set=records.audit_dir"] {
        for path in ["work/planted", "work/planted/", "work/planted/.", "work/planted//./"] {
            let flag = format!("{flag}={path}");
            page.run(&crib, &["call", "file_io", r#"{"op":"roots"}"#, &flag]);
        }
    }
    assert_eq!(fs::read_dir(crib.path("outside")).unwrap().count(), 0);
    page.matches("files/host-link");
}

#[test]
fn a_record_and_a_markdown_tool_name_no_folder_by_a_link() {
    let page = Page::new();
    let crib = crib(&["file_io"]);
    fs::create_dir(crib.path("outside")).unwrap();
    symlink("outside", crib.path("planted")).unwrap();
    let text = "---\ncapabilities:\n  files: { read: [planted] }\nscript: |\n  def run(args):\n    return 'seen'\n---\nLooks.\n";
    fs::write(crib.path("look.md"), text).unwrap();
    let outside = crib.path("outside").canonicalize().unwrap();
    let ran =
        page.run(&crib, &["call", "look", "{}", "--tools=look.md", &format!("--allow-read={}", outside.display())]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    page.matches("files/record-link");
}

#[test]
fn a_link_that_is_made_while_its_folder_is_moved_up_does_not_lead_out() {
    let crib = crib(&["file_io"]);
    let policy = Policy::default().allow(Permission::Write(crib.path("work")));
    let runtime = nesting::builder(toolcrib::Audit::off())
        .trusted_source(crib.path("tools.json"))
        .policy(policy)
        .build()
        .unwrap();
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let call = |arguments: Value| nesting::call(&runtime, ToolCall::new("", "file_io", arguments.to_string()));
    for _ in 0..100 {
        fs::create_dir_all(crib.path("work/folder/deep")).unwrap();
        let link = call(json!({"op": "symlink", "path": "folder/deep/l", "to": "../../note"}));
        let moved = call(json!({"op": "rename", "path": "folder/deep", "to": "deep"}));
        let (link, moved) = tokio.block_on(async { tokio::join!(link, moved) });
        let (link, moved) = (link.content().contains("ok"), moved.content().contains("ok"));
        assert!(!(link && moved), "one of the two came first, and the other was refused");
        assert!(!crib.path("work/deep/l").is_symlink());
        let _ = fs::remove_dir_all(crib.path("work/deep"));
        let _ = fs::remove_dir_all(crib.path("work/folder/deep"));
    }
}
