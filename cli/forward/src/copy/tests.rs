//! Copies in every form, whole and damaged: what differs is named with its number.

use std::fs;

use serde_json::json;
use sha2::{Digest, Sha256};
use toolcrib::audit::Chain;
use toolcrib_foundation::hex;

use super::*;
use crate::copy_window::MAX_VERSIONS;
use crate::cursor::{Cursor, beside};
use crate::sample_log;

/// A log of two days with ten records, and its lines.
fn sample() -> (tempfile::TempDir, Vec<String>) {
    let log = tempfile::tempdir().unwrap();
    let end = sample_log::log(log.path(), 6);
    sample_log::append(log.path(), "20260302", end, 4);
    let text = ["20260301", "20260302"].map(|day| fs::read_to_string(log.path().join(format!("{day}.log"))).unwrap());
    let lines = text.concat().lines().map(str::to_owned).collect();
    (log, lines)
}

/// Compares a text with a log, also in windows of every size.
fn compared(log: &Path, copy: &str) -> CopyReport {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), copy).unwrap();
    let copies = [file.path().to_path_buf()];
    let mut report = compare(log, &copies, &[]).unwrap();
    for size in 1..5 {
        let windowed = compare_in_windows(log, &copies, &[], size).unwrap();
        assert_eq!(json!(windowed), json!(report), "windows of {size}");
    }
    for found in &mut report.found {
        if let CopyDifference::Changed { file, .. } = found {
            *file = PathBuf::new();
        }
    }
    report
}

#[test]
fn a_whole_copy_agrees_in_every_form_and_order() {
    let (log, lines) = sample();
    let request = |lines: &[String]| {
        let records: Vec<_> = lines.iter().map(|line| json!({"body": {"stringValue": line}})).collect();
        json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string() + "\n"
    };
    let reversed: Vec<_> = lines.iter().rev().cloned().collect();
    for copy in [
        lines.join("\n"),
        reversed.join("\n"),
        lines.iter().map(|line| format!("Mar  1 12:30:45 host toolcrib - audit - {line}\r\n")).collect(),
        request(&lines[..4]) + &request(&lines[4..]),
    ] {
        let report = compared(log.path(), &copy);
        assert_eq!((report.records, report.differences, report.first, report.last), (10, 0, Some(1), Some(10)));
        assert_eq!((report.other_lines, report.repeated, report.not_sent), (0, 0, 0));
    }
    let twice = format!("{}\nnoise\n{{\"other\":1}}\n{}\n", lines.join("\n"), lines[7..].join("\n"));
    let report = compared(log.path(), &twice);
    assert_eq!((report.records, report.repeated, report.other_lines, report.differences), (10, 3, 2, 0));
    let control = "{\"ts\":\"\",\"tool\":\"a\u{7f}\u{9b}b\",\"seq\":1,\"chain\":";
    let chain = hex(&Sha256::digest(format!("{}{}", Chain::START, &control[..control.len() - 9])));
    let other = tempfile::tempdir().unwrap();
    let line = format!("{control}\"{chain}\"}}");
    fs::write(other.path().join("20260301.log"), format!("{line}\n")).unwrap();
    assert_eq!(compared(other.path(), &plain(&line)).differences, 0, "as syslog sends it");
    let report = compared(log.path(), &lines[2..8].join("\n"));
    assert_eq!((report.first, report.not_sent, report.differences), (Some(3), 2, 0), "the later ones are not sent yet");
    let short: Vec<_> =
        lines.iter().map(|line| line.replacen(",\"arguments\":{\"json\":", ",\"x\":{\"y\":", 1)).collect();
    assert_eq!(compared(log.path(), &short.join("\n")).differences, 10);
    let without = |line: &String| {
        let start = line.find(",\"arguments\"").unwrap();
        let end = line.find(",\"seq\"").unwrap();
        format!("{}{}", &line[..start], &line[end..])
    };
    let report = compared(log.path(), &lines.iter().map(without).collect::<Vec<_>>().join("\n"));
    assert_eq!((report.without_arguments, report.differences), (10, 0));
}

#[test]
fn each_difference_has_its_name_and_number() {
    let (log, lines) = sample();
    let changed = |seq, line| CopyDifference::Changed { seq, file: PathBuf::new(), line };
    let missing = |first, last| CopyDifference::Missing { first, last };
    let with = |act: &dyn Fn(&mut Vec<String>)| {
        let mut lines = lines.clone();
        act(&mut lines);
        compared(log.path(), &lines.join("\n")).found
    };
    assert_eq!(with(&|lines| drop(lines.drain(3..6))), [missing(4, 6)]);
    assert_eq!(with(&|lines| lines[4] = lines[4].replace("echo", "ecco")), [changed(5, 5)]);
    assert_eq!(with(&|lines| lines[4] = lines[4][..lines[4].len() - 9].to_owned()), [missing(5, 5)], "cut off");
    let both = lines[4].replace("echo", "ecco");
    assert_eq!(with(&|lines| lines.push(both.clone())), [changed(5, 11)], "beside the right one");
    // The log loses what the copy has.
    fs::write(log.path().join("20260302.log"), lines[6..8].join("\n")).unwrap();
    assert_eq!(compared(log.path(), &lines.join("\n")).found, [CopyDifference::Unknown { first: 9, last: 10 }]);
    fs::write(log.path().join("20260302.log"), lines[6..].join("\n").replace("echo", "ecco")).unwrap();
    assert_eq!(compared(log.path(), &lines.join("\n")).differences, 4);
}

#[test]
fn files_that_were_moved_away_are_proven_by_the_chain_and_sent_records_must_be_there() {
    let (log, lines) = sample();
    fs::remove_file(log.path().join("20260301.log")).unwrap();
    let report = compared(log.path(), &lines.join("\n"));
    assert_eq!((report.only_in_copy, report.differences), (6, 0));
    let mut forged = lines.clone();
    forged[2] = forged[2].replace("echo", "ecco");
    let report = compared(log.path(), &forged.join("\n"));
    assert_eq!((report.found, report.only_in_copy), (vec![CopyDifference::Unproven { first: 1, last: 3 }], 3));
    let reversed: Vec<_> = lines.iter().rev().cloned().collect();
    let report = compared(log.path(), &reversed.join("\n"));
    assert_eq!((report.only_in_copy, report.differences), (6, 0), "in any order");
    let unproven = |first, last| CopyDifference::Unproven { first, last };
    for (kept, found) in [(2..10, vec![unproven(3, 3)]), (0..5, vec![unproven(1, 5)]), (0..0, vec![])] {
        let part = [&lines[kept], &lines[6..]].concat();
        assert_eq!(compared(log.path(), &part.join("\n")).found, found);
    }
}

#[test]
fn a_chain_that_was_computed_anew_proves_nothing() {
    let (log, lines) = sample();
    fs::remove_file(log.path().join("20260301.log")).unwrap();
    // Each record continues the one before, and the last one does not lead to the log.
    let mut chain = Chain::START.to_string();
    let mut forged = Vec::new();
    for line in &lines[..6] {
        let covered = line.split(",\"chain\":").next().unwrap().replace("echo", "ecco");
        chain = hex(&Sha256::digest(format!("{chain}{covered}")));
        forged.push(format!("{covered},\"chain\":\"{chain}\"}}"));
    }
    assert!(audit::continues(Chain::START, forged[0].as_bytes()), "a chain");
    let unproven = vec![CopyDifference::Unproven { first: 1, last: 6 }];
    let report = compared(log.path(), &[&forged, &lines[6..]].concat().join("\n"));
    assert_eq!((report.found, report.only_in_copy), (unproven.clone(), 0));
    let report = compared(log.path(), &forged.join("\n"));
    assert_eq!((report.found, report.only_in_copy), (unproven.clone(), 0), "a copy of those alone");
    // The true records are beside them.
    let report = compared(log.path(), &[&forged, &lines[..]].concat().join("\n"));
    assert_eq!((report.found, report.only_in_copy, report.records), (unproven, 6, 16));
}

#[test]
fn records_that_were_sent_to_the_copy_or_to_every_target_must_be_in_it() {
    let (log, lines) = sample();
    let note = |target: &str, sent: usize| {
        let cursor = Cursor::lock(&beside(log.path(), target), target).unwrap().unwrap();
        let Some((seq, chain)) = sent.checked_sub(1).and_then(|last| audit::sealed(lines[last].as_bytes())) else {
            return;
        };
        cursor.write(audit::LogPlace { seq, chain, day: "2026-03-02".parse().unwrap(), offset: 0 }).unwrap();
    };
    note("x", 9);
    let missing = |last| vec![CopyDifference::Missing { first: 8, last }];
    let report = compared(log.path(), &lines[..7].join("\n"));
    assert_eq!((report.found, report.not_sent), (missing(9), 1));
    note("slow", 8);
    let report = compared(log.path(), &lines[..7].join("\n"));
    assert_eq!((report.found, report.not_sent), (missing(8), 2), "the one that is furthest behind");
    note("new", 0);
    let report = compared(log.path(), &lines[..7].join("\n"));
    assert_eq!((report.differences, report.not_sent), (0, 3));
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    note(folder.to_str().unwrap(), 10);
    fs::write(folder.join("part"), lines[..7].join("\n")).unwrap();
    assert_eq!(compare(log.path(), &[folder], &[]).unwrap().found, missing(10), "the target of the copy");
}

#[test]
fn numbers_and_versions_without_end_cost_no_more_than_their_lines() {
    let (log, lines) = sample();
    let far = u64::MAX / 2;
    let line = lines[9].replace("\"seq\":10", &format!("\"seq\":{far}"));
    let report = compared(log.path(), &format!("{}\n{line}", lines.join("\n")));
    assert_eq!(report.found, [CopyDifference::Unknown { first: far, last: far }]);
    let many: Vec<_> = (0..MAX_VERSIONS + 3).map(|n| lines[4].replace("echo", &format!("echo{n}"))).collect();
    for removed in [false, true] {
        if removed {
            fs::remove_file(log.path().join("20260301.log")).unwrap();
        }
        let report = compared(log.path(), &[&lines[..], &many].concat().join("\n"));
        assert_eq!((report.further_versions, report.records), (4, 10 + MAX_VERSIONS as u64 - 1));
        assert_eq!(report.differences, 4 + if removed { 1 } else { MAX_VERSIONS as u64 - 1 });
    }
}

#[test]
fn a_copy_that_cannot_be_read_is_an_error() {
    let (log, _) = sample();
    assert!(compare(log.path(), &[PathBuf::from("none")], &[]).is_err());
    let empty = tempfile::tempdir().unwrap();
    assert!(compare(log.path(), &[empty.path().to_path_buf()], &[]).is_err(), "no file");
    let long = empty.path().join("long");
    fs::File::create(&long).unwrap().set_len(copy_lines::MAX_LINE + 1).unwrap();
    assert!(compare(log.path(), &[long], &[]).unwrap_err().to_string().contains("line 1: more than 64 MiB"));
}
