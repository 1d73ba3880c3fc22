//! Listings of a folder that is larger than a host should hold in memory.

use std::fs::File;
use std::time::Duration;

use serde_json::json;

use super::{crib, ends};
use crate::crib::{Crib, peak_memory};

const ENTRIES: u64 = 100_000;

/// Peak memory of the program, in KiB, while it listed `work` with sixteen open listings.
fn peak(crib: &Crib, times: usize, seen: u64) -> u64 {
    let arguments = json!({"at_once": 15, "times": times}).to_string();
    let mut command =
        crib.toolcrib(&["call", "list_often", &arguments, "--allow-read=work", "--set=limits.tool_timeout=120s"]);
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_memory(child.id()).unwrap_or(0) >> 10);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(peak > 0, "the memory of the program was seen");
    let ran = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), format!("{{\"seen\":{seen}}}\n"));
    peak
}

#[test]
fn a_huge_folder_is_listed_a_part_at_a_time() {
    let crib = crib(&["list_often"]);
    // `note` and `folder` are the only entries.
    let small = peak(&crib, 5, 5 * 2);
    for entry in 0..ENTRIES {
        File::create(crib.path(format!("work/an-entry-with-a-name-of-some-length-{entry}"))).unwrap();
    }
    let large = peak(&crib, 5, 5 * (ENTRIES + 2));
    assert!(small > 0 && large < small + 16 * 1024, "{small} KiB for two entries, {large} KiB for {ENTRIES}");
}

#[test]
fn a_listing_tells_every_entry_once_with_its_kind() {
    let crib = crib(&["list_often", "file_io"]);
    for entry in 0..1000 {
        File::create(crib.path(format!("work/{entry:04}"))).unwrap();
    }
    let line = ends(&crib, "file_io", json!({"op": "list", "path": "."}), &["--allow-read=work"], "ok");
    let mut expected: Vec<_> = (0..1000).map(|entry| format!("{entry:04}")).collect();
    expected.extend(["folder".into(), "note".into()]);
    let output = &line["result"]["ok"];
    assert!(*output == json!(expected), "{} entries told", output.as_array().map_or(0, Vec::len));
    let kinds = ends(&crib, "file_io", json!({"op": "kinds", "path": "."}), &["--allow-read=work"], "ok");
    let kinds = kinds["result"]["ok"].as_object().unwrap();
    assert_eq!((&kinds["folder"], &kinds["note"]), (&json!("directory"), &json!("regular-file")));
    let line = ends(&crib, "list_often", json!({"at_once": 17, "times": 0}), &["--allow-read=work"], "failed");
    assert_eq!(line["error"], "insufficient-memory", "more at once than there may be");
}
