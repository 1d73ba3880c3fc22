//! Quota of a call for its folders, exceeded in every way.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::{crib, ends};

const MIB: u64 = 1 << 20;

/// Total size of all files in a folder.
fn size(folder: &Path) -> u64 {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap())
        .filter(|it| it.is_file())
        .map(|it| it.len())
        .sum()
}

#[test]
fn a_call_that_fills_the_disk_ends_in_a_quota_error() {
    for way in ["append", "files", "rewrite", "cut", "size"] {
        let crib = crib(&["fill_disk"]);
        let arguments = json!({"way": way, "most": 64 * MIB});
        let line = ends(&crib, "fill_disk", arguments, &["--allow-write=work", "--set=limits.max_disk=1MiB"], "quota");
        assert_eq!(line["error"], "tool wrote more than 1 MiB to its folders", "{way}: {line}");
        assert_eq!(line["receipt"]["diskBytes"], MIB, "{way}: {line}");
        assert!(size(&crib.path("work")) <= MIB + 4, "{way}: {} bytes", size(&crib.path("work")));
        // The next call has its own quota.
        let arguments = json!({"way": way, "most": MIB / 2});
        ends(&crib, "fill_disk", arguments, &["--allow-write=work", "--set=limits.max_disk=1MiB"], "ok");
    }
}

#[test]
fn a_tool_that_copes_with_the_refusal_succeeds() {
    let crib = crib(&["fill_disk"]);
    let arguments = json!({"way": "append", "most": 64 * MIB, "copes": true});
    let line = ends(&crib, "fill_disk", arguments, &["--allow-write=work", "--set=limits.max_disk=1MiB"], "ok");
    assert_eq!(line["result"]["written"], MIB, "{line}");
    assert!(line["result"]["error"].is_string(), "{line}");
}

#[test]
fn a_file_is_not_stretched_beyond_the_quota() {
    let crib = crib(&["file_io"]);
    for op in ["set_size", "write_far", "stream_far"] {
        let arguments = json!({"op": op, "path": "note", "text": "x"});
        let line = ends(&crib, "file_io", arguments, &["--allow-write=work"], "ok");
        assert_eq!(line["result"]["error"], "quota", "{op}: {line}");
        assert_eq!(fs::metadata(crib.path("work/note")).unwrap().len(), 4, "{op}");
        assert!(line["receipt"].get("diskBytes").is_none(), "what was refused was not written: {line}");
    }
}

#[test]
fn a_call_makes_only_so_many_entries() {
    let flags = ["--allow-write=work", "--set=limits.max_disk_entries=50"];
    for kind in ["file", "folder", "link", "hard_link"] {
        for removes in [false, true] {
            let crib = crib(&["many_entries"]);
            let arguments = json!({"kind": kind, "most": 1000, "removes": removes, "fails": true});
            let line = ends(&crib, "many_entries", arguments, &flags, "quota");
            assert_eq!(line["error"], "tool made more than 50 files, folders and links", "{kind}: {line}");
            assert_eq!(line["receipt"]["diskEntries"], 50, "{kind}: {line}");
            let left = fs::read_dir(crib.path("work")).unwrap().count();
            assert_eq!(left, if removes { 2 } else { 52 }, "{kind}");
        }
    }
}

#[test]
fn what_could_not_be_made_is_not_counted_and_what_is_there_is_no_new_entry() {
    let crib = crib(&["file_io"]);
    for (op, path, to) in
        [("mkdir", "folder", ""), ("open_new", "note", ""), ("write", "absent/x", ""), ("hard_link", "note", "folder")]
    {
        let arguments = json!({"op": op, "path": path, "to": to, "text": ""});
        let line = ends(&crib, "file_io", arguments, &["--allow-write=work"], "ok");
        assert!(line["result"]["error"].is_string() && line["receipt"].get("diskEntries").is_none(), "{op}: {line}");
    }
    let arguments = json!({"op": "write", "path": "note", "text": "other"});
    let line = ends(&crib, "file_io", arguments, &["--allow-write=work"], "ok");
    assert_eq!((&line["receipt"]["diskBytes"], line["receipt"].get("diskEntries")), (&json!(5), None), "{line}");
}

#[test]
fn a_million_small_files_end_at_the_default() {
    let crib = crib(&["many_entries"]);
    let arguments = json!({"kind": "file", "most": 1_000_000, "fails": true});
    let line = ends(&crib, "many_entries", arguments, &["--allow-write=work", "--timeout=600s"], "quota");
    assert_eq!(line["error"], "tool made more than 10000 files, folders and links");
    assert_eq!(fs::read_dir(crib.path("work")).unwrap().count(), 10_002);
}

#[test]
fn a_manifest_sets_the_quota_and_a_flag_only_lowers_it() {
    let crib = crib(&["fill_disk"]);
    let mut entry = crib.entry("fill_disk");
    entry["limits"] = json!({"diskMb": 2, "diskEntries": 3});
    crib.manifest(&json!({"tools": [entry, crib.entry("echo")]}));
    let fill = |flags: &[&str]| {
        let arguments = json!({"way": "append", "most": 8 * MIB, "copes": true});
        let line = ends(&crib, "fill_disk", arguments, &[&["--allow-write=work"], flags].concat(), "ok");
        line["result"]["written"].as_u64().unwrap()
    };
    assert_eq!(
        [fill(&[]), fill(&["--set=limits.max_disk=1MiB"]), fill(&["--set=limits.max_disk=1GiB"])],
        [2 * MIB, MIB, 2 * MIB]
    );
    let ran = crib.run(&["inspect", "fill_disk", "--json"]);
    assert!(ran.stdout.contains(r#""diskBytes":2097152"#) && ran.stdout.contains(r#""diskEntries":3"#), "{ran:?}");
}
