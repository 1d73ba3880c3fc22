//! Attacks on the disk of a stage and on the folder of its commit. `again` has those that a folder without a stage meets, too.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib::policy::Permission;
use toolcrib::staging::{Limits, Stage, Stages};
use toolcrib::{Audit, Policy, Runtime, ToolCall};

use super::stage;
use crate::crib::{Crib, target};

/// Bytes of a sparse file.
const TEBIBYTE: u64 = 1 << 40;

/// Bytes that the files below a folder take up on the disk.
fn occupied(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let size = |entry: fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => occupied(&entry.path()),
        false => entry.metadata().unwrap().blocks() * 512,
    };
    entries.map(size).sum()
}

#[test]
fn a_sparse_file_of_a_tebibyte_is_copied_into_no_stage() {
    let crib = Crib::with_guests(&["file_io"]);
    let large = crib.path("work/large");
    if let Err(error) = File::create(&large).unwrap().set_len(TEBIBYTE) {
        eprintln!("skipped: no file of a tebibyte here: {error}");
        return;
    }
    let before = fs::metadata(&large).unwrap();
    fs::hard_link(&large, crib.path("work/name")).unwrap();
    let call = |op: &str, path: &str| {
        let arguments = json!({"op": op, "path": path, "text": "x", "to": "new"});
        crib.call("file_io", &arguments, &["--allow-write=work", "--stage=one"])["result"].clone()
    };
    for (op, path) in [
        ("append", "large"),
        ("open_for_write", "large"),
        ("set_times", "large"),
        ("hard_link", "large"),
        ("grow", "name"),
    ] {
        assert_eq!(call(op, path)["error"], "quota", "{op}");
    }
    // It can be moved and removed, as nothing of it is copied.
    assert_eq!(call("rename", "large"), json!({"ok": null}));
    assert_eq!(call("remove", "name"), json!({"ok": null}));
    assert!(occupied(&crib.path("home/.local/state/toolcrib/stages")) < 1 << 20);
    let now = fs::metadata(&large).unwrap();
    assert_eq!((now.len(), now.ino(), now.mtime()), (before.len(), before.ino(), before.mtime()));
    stage(&crib, &["commit", "one", "--yes"]);
    assert_eq!(fs::metadata(crib.path("work/new")).unwrap().ino(), before.ino());
}

/// Calls a guest of a crib in a stage with these limits, and returns the receipt's outcome and the answer.
fn call(crib: &Crib, limits: Limits, guest: &str, arguments: &Value) -> (String, String, Arc<Stage>) {
    let stage = Stages::new(crib.path("stages")).open("one", limits).unwrap();
    let runtime = Runtime::builder(Audit::off())
        .trusted_source(crib.path("tools.json"))
        .compile_cache(target().join("test-cache"))
        .policy(Policy::default().allow(Permission::Write(crib.path("work"))))
        .stage(stage.clone());
    let runtime = runtime.build().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = tokio.block_on(runtime.call(ToolCall::new("", guest, arguments.to_string())));
    (result.receipt.outcome.to_string(), result.content().into_owned(), stage)
}

#[test]
fn a_flood_of_entries_ends_at_the_limit_of_the_stage() {
    for kind in ["file", "folder", "link", "hard_link"] {
        let crib = Crib::with_guests(&["many_entries"]);
        fs::write(crib.path("work/note"), "text").unwrap();
        let limits = Limits { entries: 200, ..Limits::default() };
        let arguments = json!({"kind": kind, "most": 5_000});
        let (outcome, said, stage) = call(&crib, limits, "many_entries", &arguments);
        let made = serde_json::from_str::<Value>(&said).unwrap()["made"].as_u64().unwrap();
        assert!(outcome == "ok" && (150..=200).contains(&made), "{kind}: {outcome}: {said}");
        // A guest's library has a number for it.
        assert!(said.contains(if kind == "link" { "quota" } else { "os error 19" }), "{kind}: {said}");
        // What was made before is there, and nothing of it in the folder.
        let changes = stage.changes().unwrap().len() as u64;
        assert!((made..=made + 1).contains(&changes), "{kind}: {changes} of {made}");
        assert_eq!(fs::read_dir(crib.path("work")).unwrap().count(), 1, "{kind}");
        assert!(occupied(stage.path()) < 4 << 20, "{kind}");
    }
}

#[test]
fn a_flood_of_bytes_ends_at_the_quota_of_the_call_and_the_limit_of_the_stage() {
    const LIMIT: u64 = 1 << 20;
    // Bytes of a call count in the stage once it ends; what was rewritten or cut off does not count.
    for (first, is_full) in [("files", true), ("rewrite", false), ("cut", false)] {
        let crib = Crib::with_guests(&["fill_disk"]);
        let limits = Limits { bytes: LIMIT, ..Limits::default() };
        for (way, expected) in [(first, 4 * LIMIT), ("append", if is_full { 0 } else { 4 * LIMIT })] {
            let arguments = json!({"way": way, "most": 4 * LIMIT, "copes": true});
            let (outcome, said, stage) = call(&crib, limits, "fill_disk", &arguments);
            let written = serde_json::from_str::<Value>(&said).unwrap()["written"].as_u64();
            assert_eq!((outcome.as_str(), written), ("ok", Some(expected)), "{first}, {way}: {said}");
            assert_eq!(said.contains("os error 19"), expected == 0, "{first}, {way}: {said}");
            assert!(occupied(stage.path()) <= 5 * LIMIT, "{first}, {way}");
            assert_eq!(fs::read_dir(crib.path("work")).unwrap().count(), 0, "{first}, {way}");
        }
    }
}

#[test]
fn a_commit_writes_through_no_link_in_the_place_of_the_granted_folder() {
    let crib = Crib::new();
    fs::create_dir(crib.path("outside")).unwrap();
    for folder in ["work", "outside"] {
        fs::write(crib.path(folder).join("list.md"), "Milk\n").unwrap();
    }
    // Of an existing file, another one in its place is a conflict in any case.
    super::call(&crib, "fs_write_file", &json!({"path": "new.md", "content": "new"}));
    fs::rename(crib.path("work"), crib.path("away")).unwrap();
    symlink("outside", crib.path("work")).unwrap();
    let ran = crib.run(&["stage", "commit", "one", "--yes"]);
    let names = ["outside", "away"].map(|folder| fs::read_dir(crib.path(folder)).unwrap().count());
    assert_eq!((ran.code, names), (Some(1), [1, 1]), "{ran:?}");
    assert!(ran.stderr.contains("work"), "{ran:?}");
    assert!(stage(&crib, &["list"]).contains("one"));
    for folder in ["outside", "away"] {
        assert_eq!(fs::read_to_string(crib.path(folder).join("list.md")).unwrap(), "Milk\n", "{folder}");
    }
    fs::remove_file(crib.path("work")).unwrap();
    fs::rename(crib.path("away"), crib.path("work")).unwrap();
    stage(&crib, &["commit", "one", "--yes"]);
    assert_eq!(fs::read_to_string(crib.path("work/new.md")).unwrap(), "new");
}
