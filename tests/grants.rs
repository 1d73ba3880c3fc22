//! Attacks on file grants: no access leaves the granted folder, and none changes a folder that is granted for reading.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::crib::{Crib, nesting};
use crate::screen::Page;

/// Creates a crib with a folder `work` that is surrounded by files that a guest must not reach.
fn crib() -> Crib {
    let crib = Crib::with_guests(&["file_io"]);
    fs::write(crib.path("secret"), "canary").unwrap();
    fs::write(crib.path("work/note"), "text").unwrap();
    fs::create_dir_all(crib.path("work/folder")).unwrap();
    fs::create_dir_all(crib.path("other")).unwrap();
    symlink("../secret", crib.path("work/relative_link")).unwrap();
    symlink(crib.path("secret"), crib.path("work/absolute_link")).unwrap();
    symlink("..", crib.path("work/up")).unwrap();
    symlink("loop", crib.path("work/loop")).unwrap();
    symlink("relative_link", crib.path("work/chain")).unwrap();
    crib
}

fn attack(crib: &Crib, arguments: Value, flags: &[&str]) -> Value {
    let line = crib.call("file_io", &arguments, flags);
    assert_eq!(line["receipt"]["outcome"], "ok", "the guest reports for itself: {line}");
    line
}

#[test]
fn no_path_leaves_the_granted_folder() {
    let crib = crib();
    let escapes = [
        "../secret",
        "folder/../../secret",
        "relative_link",
        "absolute_link",
        "chain",
        "up/secret",
        "loop",
        "./../secret",
        "//../secret",
    ];
    for path in escapes {
        for op in ["read", "open", "write", "truncate", "append"] {
            let line = attack(&crib, json!({"op": op, "path": path, "text": "x"}), &["--allow-write=work"]);
            assert!(line["result"]["error"].is_string(), "{op} {path}: {line}");
        }
    }
    for (op, path, to) in [
        ("symlink", "planted", "../secret"),
        ("hard_link", "../secret", "planted"),
        ("hard_link", "note", "../planted"),
        ("rename", "note", "../planted"),
        ("rename", "../secret", "planted"),
        ("rename", "up/secret/", "planted"),
        ("mkdir", "../planted", ""),
        ("remove", "../secret", ""),
        ("remove_folder", "../other", ""),
        ("list", "..", ""),
        ("list", "up", ""),
    ] {
        let line = attack(&crib, json!({"op": op, "path": path, "to": to}), &["--allow-write=work"]);
        assert!(line["result"]["error"].is_string(), "{op} {path} {to}: {line}");
    }
    // A link of another program is not followed out either.
    symlink("../secret", crib.path("work/planted")).unwrap();
    let line = attack(&crib, json!({"op": "read", "path": "planted"}), &["--allow-write=work"]);
    assert!(line["result"]["error"].is_string(), "{line}");
    assert_eq!(fs::read_to_string(crib.path("secret")).unwrap(), "canary");
    assert!(!crib.path("planted").exists() && crib.path("other").exists());
}

#[test]
fn an_absolute_path_is_inside_the_grant_or_nowhere() {
    let crib = crib();
    let line = attack(&crib, json!({"op": "read", "path": "/etc/passwd"}), &["--allow-read=work"]);
    assert!(line["result"]["error"].is_string(), "{line}");
    assert!(!line.to_string().contains("root:"), "{line}");
}

#[test]
fn a_folder_granted_for_reading_is_never_changed() {
    let crib = crib();
    let before = listing(&crib.path("work"));
    for (op, path, to) in [
        ("write", "note", ""),
        ("write", "fresh", ""),
        ("append", "note", ""),
        ("truncate", "note", ""),
        ("set_size", "note", ""),
        ("open_for_write", "note", ""),
        ("mkdir", "fresh", ""),
        ("remove", "note", ""),
        ("remove_folder", "folder", ""),
        ("rename", "note", "fresh"),
        ("hard_link", "note", "fresh"),
        ("symlink", "fresh", "note"),
    ] {
        let line = attack(&crib, json!({"op": op, "path": path, "to": to, "text": "x"}), &["--allow-read=work"]);
        assert!(line["result"]["error"].is_string(), "{op}: {line}");
    }
    // A guest may open a folder with the intent to change it; it still cannot.
    attack(&crib, json!({"op": "open_for_change", "path": "folder"}), &["--allow-read=work"]);
    assert_eq!(listing(&crib.path("work")), before);
}

#[test]
fn nothing_moves_from_a_read_grant_into_a_writable_one() {
    let crib = crib();
    let flags = ["--allow-read=work", "--allow-write=other"];
    for op in ["hard_link", "rename"] {
        let arguments = json!({"op": op, "path": "note", "to": "note", "root": "/work", "to_root": "/other"});
        let line = attack(&crib, arguments, &flags);
        assert!(line["result"]["error"].is_string(), "{op}: {line}");
    }
    assert!(!crib.path("other/note").exists());
}

#[test]
fn a_fifo_in_a_granted_folder_is_refused_and_blocks_nothing() {
    let crib = crib();
    let made = std::process::Command::new("mkfifo").arg(crib.path("work/fifo")).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mkfifo here");
        return;
    }
    for op in ["open", "read", "write"] {
        let line = attack(
            &crib,
            json!({"op": op, "path": "fifo", "text": "x"}),
            &["--allow-write=work", "--set=limits.tool_timeout=5s"],
        );
        assert_eq!(line["result"]["error"], "not-permitted", "{line}");
    }
}

#[test]
fn a_window_into_the_host_is_never_granted() {
    let page = Page::new();
    let crib = Crib::with_guests(&["file_io"]);
    for folder in ["/", "/proc", "/proc/self", "/sys", "/dev", "/dev/shm"] {
        page.run(&crib, &["call", "file_io", "{}", &format!("--allow-read={folder}")]);
    }
    page.matches("files/host");
}

#[test]
fn a_folder_put_in_the_place_of_a_granted_one_is_not_granted() {
    let crib = crib();
    fs::write(crib.path("work/folder/inside"), "granted").unwrap();
    let policy = toolcrib::Policy::default()
        .allow(toolcrib::policy::Permission::Write(crib.path("work")))
        .allow(toolcrib::policy::Permission::Read(crib.path("work/folder")));
    let runtime = nesting::builder(toolcrib::Audit::off())
        .trusted_source(crib.path("tools.json"))
        .policy(policy)
        .build()
        .unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = |arguments: Value| {
        let call = toolcrib::ToolCall::new("", "file_io", arguments.to_string());
        tokio.block_on(nesting::call(&runtime, call)).content().into_owned()
    };
    assert!(
        call(json!({"op": "rename", "path": "folder", "to": "moved", "root": "/work", "to_root": "/work"}))
            .contains("ok")
    );
    call(json!({"op": "symlink", "path": "folder", "to": "../other", "root": "/work"}));
    if fs::symlink_metadata(crib.path("work/folder")).is_err() {
        // The engine refuses such a link from a guest; one of another program is equivalent.
        symlink("../other", crib.path("work/folder")).unwrap();
    }
    fs::write(crib.path("other/inside"), "canary").unwrap();
    let read = call(json!({"op": "read", "path": "inside", "root": "/folder"}));
    assert_eq!(read, r#"{"ok":"granted"}"#, "the folder that was granted, wherever it lies now");
}

#[test]
fn no_grant_reaches_the_audit_log_or_the_compile_cache() {
    let page = Page::new();
    let crib = crib();
    for (folder, flag) in [
        ("work", "--set=records.audit_dir=work/log"),
        ("work", "--set=cache.dir=work"),
        (".", "--set=records.audit_dir=audit"),
        ("audit/x", "--set=records.audit_dir=audit"),
    ] {
        fs::create_dir_all(crib.path(folder)).unwrap();
        page.run(&crib, &["call", "file_io", "{}", &format!("--allow-read={folder}"), flag]);
    }
    page.matches("files/own-folders");
}

#[test]
fn a_denial_of_what_is_not_there_yet_holds_through_a_link() {
    let page = Page::new();
    let crib = crib();
    symlink("work", crib.path("link")).unwrap();
    for denied in ["link/fresh", "work/fresh", "link/a/../fresh", "link/a/b"] {
        page.run(&crib, &["call", "file_io", "{}", "--allow-write=link", &format!("--deny-write={denied}")]);
    }
    page.matches("files/denied-inside");
}

#[test]
fn a_variable_that_has_no_name_is_refused() {
    let page = Page::new();
    let crib = crib();
    for name in ["A=B", "F*", "*", "1A", ""] {
        page.run(&crib, &["call", "file_io", "{}", &format!("--allow-env={name}")]);
    }
    page.matches("permissions/variable-name");
}

#[test]
fn without_a_grant_there_is_no_folder() {
    let crib = crib();
    let line = attack(&crib, json!({"op": "roots"}), &[]);
    assert_eq!(line["result"], json!({"ok": []}));
}

#[test]
fn the_first_folder_is_the_root_and_each_of_several_has_its_name() {
    let crib = crib();
    let one = attack(&crib, json!({"op": "roots"}), &["--allow-read=work"]);
    assert_eq!(one["result"], json!({"ok": ["/"]}));
    let two = attack(&crib, json!({"op": "roots"}), &["--allow-read=work,other"]);
    assert_eq!(two["result"], json!({"ok": ["/", "/work", "/other"]}));
}

#[test]
fn deny_wins_and_a_denial_inside_a_grant_is_refused_before_anything_runs() {
    let page = Page::new();
    let crib = crib();
    let roots = |flags: &[&str]| attack(&crib, json!({"op": "roots"}), flags)["result"]["ok"].clone();
    assert_eq!(roots(&["--allow-read=work", "--deny-read=work"]), json!([]));
    assert_eq!(roots(&["--allow-write=work", "--deny-read"]), json!([]));
    let line = attack(&crib, json!({"op": "write", "path": "fresh"}), &["--allow-write=work", "--deny-write"]);
    assert!(line["result"]["error"].is_string() && !crib.path("work/fresh").exists(), "{line}");
    page.run(&crib, &["call", "file_io", "{}", "--allow-read=work", "--deny-read=work/folder"]);
    let ran = page.run(&crib, &["call", "file_io", "{}", "--allow-read=absent"]);
    let told = "error: --allow-read=absent: the folder does not exist; create it, or name another folder\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), told));
    page.matches("files/denied-folder");
}

#[test]
fn a_manifest_of_ones_own_grants_the_folders_it_names_beside_itself() {
    let crib = crib();
    let entry = |files: Value| json!({"tools": [{"name": "file_io", "command": ["./tools/bin/file_io"], "capabilities": {"files": files}}]});
    let read = json!({"op": "read", "path": "note"});
    crib.manifest(&entry(json!({"read": ["./work"]})));
    assert_eq!(attack(&crib, read.clone(), &[])["result"], json!({"ok": "text"}));
    assert_eq!(attack(&crib, json!({"op": "roots"}), &["--deny-read"])["result"], json!({"ok": []}));
    crib.manifest(&entry(json!("read")));
    assert_eq!(attack(&crib, json!({"op": "roots"}), &[])["result"], json!({"ok": []}), "asking is not getting");
    let line = attack(&crib, json!({"op": "write", "path": "note"}), &["--allow-write=work"]);
    assert!(line["result"]["error"].is_string(), "no more than it asks for: {line}");
}

#[test]
fn a_denial_is_in_the_receipt_with_the_flag_that_would_have_allowed_it() {
    let crib = crib();
    let line = attack(&crib, json!({"op": "read", "path": "../secret"}), &["--allow-read=work"]);
    let denied = json!([{"capability": "read:../secret"}]);
    assert_eq!(line["receipt"]["denied"], denied, "no argument leads a person to grant the folder above");
    let line = attack(&crib, json!({"op": "write", "path": "note", "text": "x"}), &["--allow-read=work"]);
    let work = crib.path("work").canonicalize().unwrap();
    let flag = format!("--allow-write={}", work.display());
    assert_eq!(line["receipt"]["denied"], json!([{"capability": "write:note", "flag": flag}]));
    assert_eq!(crib.records()[1]["denied"], line["receipt"]["denied"]);
    let denied = attack(&crib, json!({"op": "write", "path": "note"}), &["--allow-write=work", "--deny-write"]);
    let lost = format!("write:{}", work.display());
    assert_eq!(
        denied["receipt"]["denied"],
        json!([{"capability": lost}, {"capability": "write:note"}]),
        "no flag undoes a denial"
    );
    let granted = format!("read:{}", work.display());
    assert_eq!(line["receipt"]["granted"], json!([granted]));
}

fn listing(folder: &Path) -> Vec<(String, Option<String>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut listing: Vec<_> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), fs::read_to_string(entry.path()).ok()))
        .collect();
    listing.sort();
    listing
}
