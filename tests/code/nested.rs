//! Tests of direct calls that run a second time, each call made from a program: such a call is judged, limited, masked and
//! recorded as a direct call is, but for its parent. [`nesting`](crate::crib::nesting) makes the calls.
//!
//! The other tests of these areas are not here for one of these reasons:
//! - they make no call, or let a model or a client make it, in a `run`, a `chat` or over MCP;
//! - they are about what people see of a call: hints on standard error, displays and shown parts, which a program's call has not;
//! - they read the bytes of the log, count its records or damage it: the program has a record too;
//! - their limit, fault of the log or time of the step meets the program or its interpreter first;
//! - they are about background tasks, steps, calls that are dropped, texts, names that a tool claims, or names that are unknown
//!   or hidden from a model, which no program can call;
//! - they start the program by a command of their own, or read the names that every program of theirs has;
//! - a hook of theirs is about all tools, and meets the program first;
//! - they give wrong arguments, which the interpreter refuses as a `TypeError` before there is a call;
//! - they look at other keys of an error than `error`, or at bytes that the interpreter writes anew;
//! - no line of a program passes on an answer that is longer than its own limit.

mod rows;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::crib::nesting::SWITCH;

use rows::{GRANTS, HOOKS, LIMITS, RECORDS, RULES};

/// Runs tests again, each call made from a program.
#[track_caller]
fn again(rows: &[&str]) {
    again_with(SWITCH, rows);
}

/// Runs tests again with the variable that changes their calls.
#[track_caller]
pub(crate) fn again_with(switch: &str, rows: &[&str]) {
    assert!(!rows.is_empty(), "without a name, all tests would run");
    let tests = std::env::current_exe().unwrap();
    let list = Command::new(&tests).args(["--list", "--format=terse"]).output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let known: BTreeSet<&str> = list.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    // Some tests are about one system.
    let rows: Vec<&str> = rows.iter().copied().filter(|row| cfg!(target_os = "linux") || known.contains(row)).collect();
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let mut program = Command::new(&tests);
    program.args(["--exact", "--test-threads=2"]).args(&rows).env(switch, &made);
    let output = program.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let made = fs::read_to_string(made).unwrap_or_default();
    let calling: BTreeSet<&str> = made.lines().collect();
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| match printed.lines().any(|line| line == format!("test {row} ... ok")) {
            false => Some(format!("{row}: such a call differs from a direct one, or there is no such test")),
            true if !calling.contains(row) => Some(format!("{row}: makes no such call")),
            true => None,
        })
        .collect();
    assert!(wrong.is_empty(), "{} of {} tests:\n{}\n\n{printed}", wrong.len(), rows.len(), wrong.join("\n"));
}

#[test]
fn tests_of_rules_and_questions_hold_for_calls_of_programs() {
    again(RULES);
}

#[test]
fn tests_of_hooks_hold_for_calls_of_programs() {
    again(HOOKS);
}

#[test]
fn tests_of_grants_hold_for_calls_of_programs() {
    again(GRANTS);
}

#[test]
fn tests_of_limits_hold_for_calls_of_programs() {
    again(LIMITS);
}

#[test]
fn tests_of_masks_and_records_hold_for_calls_of_programs() {
    again(RECORDS);
}
