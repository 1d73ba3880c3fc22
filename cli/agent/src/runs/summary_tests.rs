//! Tests of summaries: what they hold, and how much is read for them.

use std::io::Cursor;

use serde_json::json;

use super::*;
use crate::event::Totals;
use crate::keeper::Keeper;
use crate::runs::{RunFile, RunMasks};
use crate::turn::{Call, Turn, Usage};

/// Turns of a long run.
const TURNS: usize = 1_000;

/// File that counts the bytes that are read of it.
struct Counted {
    file: Cursor<Vec<u8>>,
    bytes: usize,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes += count;
        Ok(count)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Reads a summary, and returns it with the number of bytes that were read.
fn summary(bytes: &[u8]) -> (RunSummary, usize) {
    let mut file = Counted { file: Cursor::new(bytes.to_vec()), bytes: 0 };
    let summary = RunSummary::read(&mut file, "a").unwrap();
    (summary, file.bytes)
}

/// File of a run that `act` keeps.
fn kept(act: impl FnOnce(&Keeper)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs/a.ndjson");
    let header = json!({ "version": 1, "id": "7k3md-x0q9a", "created": "2026-01-31T12:00:00Z", "door": "run",
        "model": "m", "folder": "/work" });
    let file = RunFile::create(path.clone()).unwrap();
    let keeper = Keeper::begin(file, serde_json::from_value(header).unwrap(), RunMasks::default()).unwrap();
    act(&keeper);
    std::fs::read(path).unwrap()
}

/// Keeps one turn: a prompt, a call with its result, and an answer.
fn turn(keeper: &Keeper, number: usize, result: &str) {
    let call = Call { id: format!("call_{number}"), name: "t".into(), arguments: "{}".into(), ..Call::default() };
    let calls = Message::assistant(&Turn { calls: vec![call.clone()], ..Turn::default() });
    let usage = Usage { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    keeper.message(&Message::text(Role::User, format!("prompt {number}")), None).unwrap();
    keeper.message(&calls, None).unwrap();
    keeper.usage(usage).unwrap();
    keeper.message(&Message::result(&call, result.to_owned().into()), None).unwrap();
    keeper.message(&Message::text(Role::Assistant, format!("answer {number}")), None).unwrap();
    keeper.usage(usage).unwrap();
}

fn long(keeper: &Keeper) {
    (0..TURNS).for_each(|number| turn(keeper, number, "a result of some length, as tools give it"));
}

/// Asserts that a summary matches the whole run.
fn assert_whole(bytes: &[u8]) -> usize {
    let (summary, read) = summary(bytes);
    let run = KeptRun::read(&bytes[..complete(bytes)], "a", false).unwrap();
    assert_eq!(summary.figures.as_ref(), Some(&run.figures));
    assert_eq!((summary.header.folder.as_str(), &summary.state), ("/work", &run.state));
    assert_eq!(summary.title, run.figures.title.unwrap_or_default());
    read
}

#[test]
fn a_thousand_runs_of_a_thousand_turns_are_summed_up_by_few_bytes_of_each() {
    let parts = usize::try_from(2 * PARTS[0]).unwrap();
    let open = kept(long);
    assert!(open.len() > 20 * parts, "{}", open.len());
    let ended = kept(|keeper| {
        long(keeper);
        keeper.end("answer", &Totals::default()).unwrap();
    });
    let undone = kept(|keeper| {
        keeper.message(&Message::text(Role::User, "not so"), None).unwrap();
        keeper.undo(0).unwrap();
        long(keeper);
    });
    for (run, state) in [(&open, "killed"), (&ended, "answer"), (&undone, "killed")] {
        let (found, _) = summary(run);
        let figures = found.figures.unwrap();
        assert_eq!((figures.steps, figures.calls, found.title.as_str()), (2_000, 1_000, "prompt 0"));
        assert_eq!((figures.usage.unwrap().total_tokens, found.state.as_str()), (6_000, state));
        let read: usize = (0..1_000).map(|_| summary(run).1).sum();
        assert!(read <= 1_000 * parts, "{state}: {read} bytes");
    }
    // However the run was cut off.
    let last: Vec<usize> = (0..open.len()).rev().filter(|at| open[*at] == b'\n').take(12).collect();
    for at in last {
        assert!(assert_whole(&open[..=at]) <= parts);
        assert!(assert_whole(&open[..at]) <= parts, "within a line");
    }
}

#[test]
fn a_short_run_and_one_with_long_lines_are_summed_up_too() {
    let most: usize = PARTS.iter().map(|part| 2 * usize::try_from(*part).unwrap()).sum();
    assert_whole(&kept(|keeper| turn(keeper, 1, "short")));
    assert_whole(&kept(|keeper| {
        turn(keeper, 1, "one");
        keeper.undo(0).unwrap();
        turn(keeper, 2, "two");
    }));
    for length in [30_000, 500_000] {
        let result = "x".repeat(length);
        let bytes = kept(|keeper| (0..4).for_each(|number| turn(keeper, number, &result)));
        for at in (0..bytes.len()).rev().filter(|at| bytes[*at] == b'\n').take(8) {
            assert!(assert_whole(&bytes[..=at]) <= most);
        }
    }
    // Nothing but the beginning of the run is known where a single line exceeds what is read.
    let prompt = "x".repeat(3 << 20);
    let bytes = kept(|keeper| keeper.message(&Message::text(Role::User, prompt), None).unwrap());
    let (found, read) = summary(&bytes);
    assert!(found.figures.is_none() && found.title.is_empty() && read <= most, "{read}");
    assert_eq!((found.header.model.as_str(), found.state), ("m", RunState::Killed));
}

#[test]
fn figures_without_a_title_leave_it_to_the_first_prompt_if_nothing_was_taken_back() {
    let mut whole = json!({ "steps": 7, "calls": 3, "undone": false });
    let bytes = kept(long);
    let title = |whole: &serde_json::Value| {
        let end = json!({ "type": "end", "at": "2026-01-31T12:00:00Z", "reason": "answer", "steps": 1, "calls": 0,
            "whole": whole });
        summary(&[&bytes[..], format!("{end}\n").as_bytes()].concat()).0.title
    };
    assert_eq!(title(&whole), "prompt 0");
    whole["undone"] = json!(true);
    assert_eq!(title(&whole), "");
    whole.as_object_mut().unwrap().remove("undone");
    assert_eq!(title(&whole), "", "nothing states that it was not");
}

#[test]
fn no_later_prompt_is_the_first_one_after_an_undo_without_figures() {
    let bytes = kept(|keeper| {
        long(keeper);
        keeper.end("answer", &Totals::default()).unwrap();
    });
    let undo = json!({ "type": "undo", "messages": 4 });
    let later = json!({ "type": "message", "message": { "role": "user", "content": "later" } });
    let (found, _) = summary(&[&bytes[..], format!("{undo}\n{later}\n").as_bytes()].concat());
    assert_eq!((found.title.as_str(), found.figures.unwrap().undone), ("", Some(true)));
}

#[test]
fn damage_is_reported_if_it_is_in_what_is_read() {
    let read = |text: &str| {
        let mut file = Cursor::new(text.as_bytes().to_vec());
        RunSummary::read(&mut file, "a").unwrap_err().to_string()
    };
    assert!(read(&"x".repeat(100_000)).contains("line 1"));
    assert!(read("{\"type\":\"later\"}\n").contains("line 1"));
    let text = String::from_utf8(kept(long)).unwrap();
    assert!(read(&format!("{text}{{\"type\":\"later\"}}\n")).contains("damaged near its end"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, "{\"type\":").unwrap();
    assert!(header_at(&path).unwrap().is_none(), "never begun");
    std::fs::write(&path, &text).unwrap();
    assert_eq!(header_at(&path).unwrap().unwrap().folder, "/work");
}
