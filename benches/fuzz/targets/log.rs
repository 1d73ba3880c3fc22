//! Target for the audit log: any bytes as a log, and any edits of a valid log. Every edit is detected, also after further
//! records.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use toolcrib::audit::{LogProblemKind, Severity, records, verify};
use toolcrib::{Audit, Outcome, Runtime, ToolCall};

use super::{Act, parts};

/// Name of the day's file; the clock is fixed.
const DAY: &str = "20260301.log";
const RECORDS: usize = 6;

/// Target for the audit log. Input: `=`, the bytes of a `head`, a NUL and the bytes of a log, or else edits of a valid log.
pub(super) fn audit(folder: &Path) -> Act {
    let folder = folder.join("audit");
    let threads = super::threads();
    let sign = move |folder: &Path, calls: usize| {
        let clock = || SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_323_200);
        let audit = Audit::folder(folder).clock(clock);
        let runtime = Runtime::builder(audit).concurrency(1).build().expect("a runtime");
        let call = |at| threads.block_on(runtime.call(ToolCall::new(format!("c{at}"), "nothing", "{}")));
        (0..calls).all(|at| call(at).receipt.outcome != Outcome::Unlogged)
    };
    assert!(sign(&folder, RECORDS), "a log can be written");
    let [head, log] = ["head", DAY].map(|name| fs::read(folder.join(name)).expect("a file of the log"));
    Box::new(move |input| {
        let (head_now, log_now) = match input.split_first() {
            Some((b'=', raw)) => parts(raw),
            _ => (head.as_slice(), &*edited(&log, input)),
        };
        let (head_now, log_now) = (head_now.to_vec(), log_now.to_vec());
        for entry in fs::read_dir(&folder).expect("a folder") {
            fs::remove_file(entry.expect("a file").path()).expect("it can be removed");
        }
        fs::write(folder.join("head"), &head_now).expect("a head");
        fs::write(folder.join(DAY), &log_now).expect("a log");
        let (before, left) = found(&folder);
        if head_now == head && before.is_empty() {
            assert!(is_end_of(&log, &log_now), "an edit is not detected:\n{}", String::from_utf8_lossy(&log_now));
        }
        if sign(&folder, 1) {
            let (after, _) = found(&folder);
            // In a log without a record, the next record is the first. Missing records then show only in its number, as
            // after older days were moved away.
            assert!(before.is_empty() || !after.is_empty() || left == 0, "{before:?} was covered by a record");
            let last = records(&folder).expect("a log").last().expect("a record").expect("it can be read");
            assert_eq!(last.tool, "nothing");
        }
    })
}

/// Returns the problems that prove a change of the log, and the number of its records. A missing head is no proof: the next
/// record creates it, and the log reports this itself.
fn found(folder: &Path) -> (Vec<LogProblemKind>, u64) {
    let mut walk = verify(folder).expect("a log");
    let problems: Vec<_> = walk.by_ref().map(|problem| problem.expect("it can be read")).collect();
    assert!(records(folder).expect("a log").all(|record| record.is_ok()));
    let errors = problems.into_iter().filter(|problem| problem.severity == Severity::Error);
    let found = errors.map(|problem| problem.kind);
    let tampered = found.filter(|found| !matches!(found, LogProblemKind::HeadMissing | LogProblemKind::HeadUnreadable));
    (tampered.collect(), walk.summary().records)
}

/// Applies edits of four bytes each to a log: the operation, the line, the position in the line, and the operand.
fn edited(log: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = log.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    for edit in edits.chunks_exact(4).take(16) {
        let [act, line, at, with] = [0, 1, 2, 3].map(|index| usize::from(edit[index]));
        let count = lines.len();
        if count == 0 {
            break;
        }
        let line = line % count;
        let byte = at * lines[line].len() / 256;
        match act % 8 {
            0 => drop(lines.remove(line)),
            1 => lines.swap(line, with % count),
            2 => lines.insert(line, lines[with % count].clone()),
            3 => lines[line].truncate(byte),
            4 => lines[line].insert(byte, edit[3]),
            5 => lines.insert(line, b"{\"ts\":\"\",\"tool\":\"old\"}\n".to_vec()),
            6 => lines.truncate(line),
            _ => {
                if let Some(there) = lines[line].get_mut(byte) {
                    *there = edit[3];
                }
            }
        }
    }
    lines.concat()
}

/// Returns `true` if the records of a log are the last ones of the valid log, with only torn lines between them. If older
/// records are missing, the first record cannot be verified, since the chain value before it is unknown.
fn is_end_of(whole: &[u8], log: &[u8]) -> bool {
    let sealed = |text: &[u8]| -> Vec<Vec<u8>> {
        let lines = text.split(|byte| *byte == b'\n').filter(|line| is_sealed(line));
        lines.map(<[u8]>::to_vec).collect()
    };
    let (whole, log) = (sealed(whole), sealed(log));
    let Some((_, rest)) = log.split_first() else { return false };
    whole == log || log.len() < whole.len() && whole.ends_with(rest)
}

/// Returns `true` if a line ends in a sequence number and a chain value.
fn is_sealed(line: &[u8]) -> bool {
    let parts = line.strip_suffix(b"\"}").and_then(<[u8]>::split_last_chunk::<64>);
    parts.is_some_and(|(before, digits)| {
        let numbered = before.strip_suffix(b",\"chain\":\"");
        let unnumbered =
            numbered.map(|text| &text[..text.iter().rposition(|it| !it.is_ascii_digit()).map_or(0, |at| at + 1)]);
        let hexadecimal = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        hexadecimal && unnumbered.is_some_and(|text| text.ends_with(b",\"seq\":"))
    })
}
