//! Chain of the audit log: the built program detects every change, and names its place.

use std::fs;
use std::path::PathBuf;
#[cfg(unix)]
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolcrib::{Audit, ToolCall};

use crate::crib::{Crib, Ran, guest, nesting};
use crate::screen::Page;

use super::block_on;

/// Creates a crib with a log of calls of unknown tools with these names, all of one day.
fn logged(names: &[&str]) -> Crib {
    let crib = Crib::new();
    sign(&crib, names);
    crib
}

/// Records calls as one process does.
fn sign(crib: &Crib, names: &[&str]) {
    let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_366_400);
    let audit = Audit::folder(crib.path("audit")).clock(move || noon);
    let runtime = nesting::builder(audit).source(guest("empty")).build().unwrap();
    for name in names {
        block_on(nesting::call(&runtime, ToolCall::new("", *name, "{}")));
    }
}

fn verify(crib: &Crib) -> Ran {
    crib.run(&["audit", "verify"])
}

fn file(crib: &Crib) -> PathBuf {
    crib.path("audit/20260301.log")
}

/// Rewrites the lines of the log.
fn tamper(crib: &Crib, act: impl FnOnce(&mut Vec<String>)) {
    let text = fs::read_to_string(file(crib)).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    act(&mut lines);
    fs::write(file(crib), lines.join("\n") + "\n").unwrap();
}

/// Asserts that the log is not sound, with exactly these problems.
fn finds(crib: &Crib, problems: &[&str]) {
    let ran = verify(crib);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let said: Vec<_> =
        ran.stdout.lines().filter(|line| line.starts_with("error: ") || line.starts_with("warning: ")).collect();
    assert_eq!(said, problems);
}

#[test]
fn a_log_that_nobody_touched_is_sound() {
    let crib = logged(&["a", "b", "c"]);
    let ran = verify(&crib);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let records = crib.records();
    let head = records[2]["chain"].as_str().unwrap();
    assert_eq!(ran.stdout, format!("1 file, 3 records, seq 1 to 3, head {head}\n"));
    let sidecar = fs::read_to_string(crib.path("audit/head")).unwrap();
    let length = file(&crib).metadata().unwrap().len();
    assert_eq!(sidecar, format!("{:020} {head} 20260301 {length:020}\n", 3));
    let report: Value = serde_json::from_str(&crib.run(&["audit", "verify", "--json"]).stdout).unwrap();
    assert_eq!(
        report,
        json!({"sound": true, "files": 1, "records": 3, "first": 1, "last": 3, "head": head, "problems": []})
    );
}

#[cfg(unix)]
#[test]
fn the_chain_can_be_checked_with_a_shell_alone() {
    let crib = logged(&["a", "b \"quoted\" \\ ü", "c"]);
    let text = fs::read_to_string(crate::cli::repository().join("runtime/src/audit/mod.rs")).unwrap();
    let script: String = text
        .lines()
        .skip_while(|line| *line != "//! ```sh")
        .skip(1)
        .take_while(|line| *line != "//! ```")
        .map(|line| line.trim_start_matches("//! ").to_owned() + "\n")
        .collect();
    let wrong = || {
        let output = Command::new("sh").args(["-c", &script]).current_dir(crib.path("audit")).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().lines().count()
    };
    assert_eq!(wrong(), 0);
    tamper(&crib, |lines| lines[1] = lines[1].replace("quoted", "Quoted"));
    assert_eq!(wrong(), 1);
}

#[test]
fn one_changed_byte_is_found() {
    let crib = logged(&["a", "b", "c", "d"]);
    tamper(&crib, |lines| lines[1] = lines[1].replace("\"tool\":\"b\"", "\"tool\":\"x\""));
    finds(
        &crib,
        &[
            "error: audit/20260301.log:2: record 2 does not match its chain value: it or the end of the previous record was changed",
        ],
    );
    let report: Value = serde_json::from_str(&crib.run(&["audit", "verify", "--json"]).stdout).unwrap();
    let problem = &report["problems"][0];
    assert_eq!((&report["sound"], &problem["found"], &problem["seq"]), (&json!(false), &json!("changed"), &json!(2)));
    assert_eq!((&problem["severity"], &problem["line"]), (&json!("error"), &json!(2)));
}

#[test]
fn a_line_removed_in_the_middle_is_found() {
    let crib = logged(&["a", "b", "c", "d"]);
    tamper(&crib, |lines| drop(lines.drain(1..3)));
    finds(&crib, &["error: audit/20260301.log:2: records 2 to 3 are missing before this line: removed from the log"]);
}

#[test]
fn removed_last_lines_are_found_and_later_records_do_not_cover_it() {
    let crib = logged(&["a", "b", "c"]);
    tamper(&crib, |lines| drop(lines.pop()));
    finds(
        &crib,
        &["error: audit/20260301.log:2: record 3 is missing at the end, according to `head`: removed from the log"],
    );
    sign(&crib, &["later", "and later"]);
    assert_eq!(crib.records()[2]["seq"], 4);
    finds(&crib, &["error: audit/20260301.log:3: record 3 is missing before this line: removed from the log"]);
    fs::remove_file(file(&crib)).unwrap();
    finds(
        &crib,
        &["error: audit/head: records 1 to 5 are missing at the end, according to `head`: removed from the log"],
    );
}

#[test]
fn two_swapped_lines_are_found() {
    let crib = logged(&["a", "b", "c", "d"]);
    tamper(&crib, |lines| lines.swap(1, 2));
    finds(&crib, &["error: audit/20260301.log:3: record 2 follows record 3: the line was moved or copied here"]);
}

#[test]
fn a_torn_tail_is_a_warning_and_the_chain_goes_on_from_the_last_whole_record() {
    let crib = logged(&["a"]);
    let text = fs::read_to_string(file(&crib)).unwrap();
    fs::write(file(&crib), text.clone() + &text[..40]).unwrap();
    sign(&crib, &["b", "c"]);
    let ran = verify(&crib);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let torn = "warning: audit/20260301.log:2: this line is not a complete record: a writer was killed\n";
    assert!(ran.stdout.starts_with(&format!("{torn}1 file, 3 records, seq 1 to 3, head ")), "{ran:?}");
    assert_eq!(crib.run(&["audit", "verify", "--strict"]).code, Some(1));
}

#[test]
fn a_writer_that_died_before_it_moved_the_head_is_caught_up_with() {
    let crib = logged(&["a"]);
    let behind = fs::read(crib.path("audit/head")).unwrap();
    sign(&crib, &["b"]);
    fs::write(crib.path("audit/head"), &behind).unwrap();
    assert_eq!(verify(&crib).code, Some(0));
    sign(&crib, &["c"]);
    let ran = verify(&crib);
    assert!(ran.stdout.starts_with("1 file, 3 records, seq 1 to 3, "), "{ran:?}");
    // Only the line break of its line may be missing.
    let text = fs::read_to_string(file(&crib)).unwrap();
    fs::write(file(&crib), text.trim_end()).unwrap();
    fs::write(crib.path("audit/head"), &behind).unwrap();
    sign(&crib, &["d"]);
    let ran = verify(&crib);
    assert!(ran.stdout.starts_with("1 file, 4 records, seq 1 to 4, "), "{ran:?}");
}

#[test]
fn without_a_head_the_chain_goes_on_and_its_absence_is_told() {
    let crib = logged(&["a", "b"]);
    fs::remove_file(crib.path("audit/head")).unwrap();
    finds(&crib, &["error: audit/head: is missing: removed records at the end of the log cannot be detected"]);
    fs::write(crib.path("audit/head"), "3\n").unwrap();
    finds(
        &crib,
        &["error: audit/head: has an unknown format: removed records at the end of the log cannot be detected"],
    );
    sign(&crib, &["c"]);
    let ran = verify(&crib);
    assert!(ran.stdout.starts_with("1 file, 3 records, seq 1 to 3, "), "{ran:?}");
}

#[test]
fn the_chain_crosses_midnight_and_a_clock_that_is_behind_does_not_break_it() {
    let crib = Crib::new();
    let seconds = Arc::new(AtomicU64::new(0));
    let process = || {
        let seconds = seconds.clone();
        let clock = move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.load(Relaxed));
        let audit = Audit::folder(crib.path("audit")).clock(clock);
        nesting::builder(audit).source(guest("empty")).build().unwrap()
    };
    let (one, other) = (process(), process());
    // 2026-03-01T00:00:00Z, a second before it and a second after it: one process has passed midnight, the other not
    // yet.
    for (runtime, at) in [
        (&one, 1_772_323_199),
        (&other, 1_772_323_199),
        (&one, 1_772_323_201),
        (&other, 1_772_323_199),
        (&one, 1_772_323_202),
    ] {
        seconds.store(at, Relaxed);
        block_on(nesting::call(runtime, ToolCall::new("", "empty", "{}")));
    }
    let lines = |path: &PathBuf| fs::read_to_string(path).unwrap().lines().count();
    assert_eq!(crib.logs().iter().map(lines).collect::<Vec<_>>(), [2, 3]);
    let ran = verify(&crib);
    assert!(ran.stdout.starts_with("2 files, 5 records, seq 1 to 5, "), "{ran:?}");
    fs::remove_file(crib.path("audit/20260228.log")).unwrap();
    let ran = verify(&crib);
    assert_eq!(ran.code, Some(0), "a day that was moved away is no problem: {ran:?}");
    assert!(ran.stdout.starts_with("1 file, 3 records, seq 3 to 5, "), "{ran:?}");
    assert!(
        ran.stdout.ends_with("\nthe log starts with record 3; earlier records are not in this folder\n"),
        "{ran:?}"
    );
}

#[test]
fn a_log_written_anew_is_found_by_a_chain_value_noted_earlier() {
    let page = Page::new();
    let crib = logged(&["a", "b"]);
    let noted = crib.records()[1]["chain"].as_str().unwrap().to_owned();
    sign(&crib, &["c"]);
    page.run(&crib, &["audit", "verify", "--head", &noted]);
    for left in fs::read_dir(crib.path("audit")).unwrap() {
        fs::remove_file(left.unwrap().path()).unwrap();
    }
    sign(&crib, &["x", "b", "c"]);
    assert_eq!(verify(&crib).code, Some(0), "the new log is sound in itself");
    page.run(&crib, &["audit", "verify", "--head", &noted]);
    page.run(&crib, &["audit", "verify", "--head", "3f1c"]);
    page.matches("audit/written-anew");
}

#[test]
fn a_log_from_before_the_chain_is_a_warning_and_a_record_slipped_in_later_an_error() {
    let crib = Crib::new();
    let old = "{\"ts\":\"2026-03-01T11:00:00.000Z\",\"tool\":\"old\"}\n";
    fs::write(file(&crib), old.repeat(2)).unwrap();
    let ran = verify(&crib);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let warning =
        "warning: audit/20260301.log:1: 2 lines from here have no chain value: changes to them cannot be detected\n";
    assert_eq!(ran.stdout, format!("{warning}1 file, 0 records\n"));
    sign(&crib, &["a", "b"]);
    let ran = verify(&crib);
    assert!(ran.stdout.starts_with(&format!("{warning}1 file, 2 records, seq 1 to 2, ")), "{ran:?}");
    tamper(&crib, |lines| lines.insert(3, old.trim_end().to_owned()));
    let ran = verify(&crib);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout
            .contains("error: audit/20260301.log:4: this line has no chain value: changes to it cannot be detected\n"),
        "{ran:?}"
    );
}

#[test]
fn a_log_full_of_anything_is_read_to_its_end() {
    let crib = logged(&["a"]);
    let mut bytes = fs::read(file(&crib)).unwrap();
    bytes.extend((0..200_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()));
    bytes.extend("[".repeat(100_000).bytes());
    bytes.extend(
        format!(
            "\n{{\"seq\":{0},\"chain\":\"{1}\"}}\n{{\"a\":1,\"seq\":{0},\"chain\":\"{1}\"}}",
            u64::MAX,
            "f".repeat(64)
        )
        .bytes(),
    );
    fs::write(file(&crib), bytes).unwrap();
    for command in ["verify", "show"] {
        let ran = crib.run(&["audit", command]);
        assert!(ran.code.is_some_and(|code| code < 2) && ran.stderr.is_empty(), "{:?} {}", ran.code, ran.stderr);
    }
    sign(&crib, &["b"]);
    assert_eq!(crib.run(&["audit", "show", "--tool", "b", "--json"]).stdout.matches("\"seq\":2,").count(), 1);
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    let page = Page::new();
    page.run(&Crib::new(), &["audit", "verify", "--set", "records.audit_dir=nowhere"]);
    page.matches("audit/no-folder");
}

#[test]
fn before_the_first_call_the_log_is_empty_and_not_wrong() {
    let crib = Crib::new();
    let run = |arguments: &[&str]| {
        Ran::from(crib.toolcrib(arguments).env_remove("TOOLCRIB_AUDIT_DIR").output().expect("the program starts"))
    };
    for arguments in [&["audit", "show"][..], &["audit", "verify"], &["audit", "show", "--json"]] {
        let ran = run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
        assert!(ran.stderr.starts_with("no call has been logged yet"), "{ran:?}");
    }
    let ran = run(&["audit", "verify", "--json"]);
    assert!(ran.stdout.starts_with(r#"{"sound":true,"files":0,"records":0,"#), "{ran:?}");
    for expectation in [&["--head", &*"f".repeat(64)][..], &["--strict"]] {
        let ran = run(&[&["audit", "verify"], expectation].concat());
        assert_eq!(ran.code, Some(1), "a removed log is noticed: {ran:?}");
    }
}
