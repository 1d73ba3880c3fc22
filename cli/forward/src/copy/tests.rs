//! Copies in every form, whole and damaged: what differs is named with its number.

use std::fs;

use serde_json::json;

use super::*;
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

fn compared(log: &Path, copy: &str) -> CopyReport {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), copy).unwrap();
    let mut report = compare(log, &[file.path().to_path_buf()]).unwrap();
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
    assert_eq!(compared(log.path(), &forged.join("\n")).found, [CopyDifference::Unproven { first: 3, last: 3 }]);

    let (seq, chain) = audit::sealed(lines[8].as_bytes()).unwrap();
    let cursor = crate::cursor::Cursor::lock(&crate::cursor::beside(log.path(), "x"), "x").unwrap().unwrap();
    cursor.write(audit::LogPlace { seq, chain, day: "2026-03-02".parse().unwrap(), offset: 0 }).unwrap();
    let report = compared(log.path(), &lines[..7].join("\n"));
    assert_eq!((report.found, report.not_sent), (vec![CopyDifference::Missing { first: 8, last: 9 }], 1));
}

#[test]
fn windows_of_a_long_log_are_compared_one_by_one() {
    let (log, lines) = sample();
    let far = |seq: u64| {
        let line = lines[9].replace("\"seq\":10", &format!("\"seq\":{seq}"));
        format!("{}\n{line}", lines.join("\n"))
    };
    let report = compared(log.path(), &far(2 * WINDOW));
    assert_eq!(report.found, [CopyDifference::Unknown { first: 2 * WINDOW, last: 2 * WINDOW }]);
    assert!(compare(log.path(), &[PathBuf::from("none")]).is_err());
    let empty = tempfile::tempdir().unwrap();
    assert!(compare(log.path(), &[empty.path().to_path_buf()]).is_err(), "no file");
    let long = empty.path().join("long");
    fs::File::create(&long).unwrap().set_len(copy_lines::MAX_LINE + 1).unwrap();
    assert!(compare(log.path(), &[long]).unwrap_err().to_string().contains("line 1: more than 64 MiB"));
}
