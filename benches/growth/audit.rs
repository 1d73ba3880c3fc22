//! Costs by the number of records in the log, all of one day: a call that appends to it, and the commands that read it.

use std::fs::{self, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use ring::digest::{Context, SHA256};
use tempfile::TempDir;
use toolcrib::{Audit, Runtime, ToolCall};

use super::curve::{Axis, Unit, least};
use super::{cache, guest, tokio, toolcrib};

const SIZES: [usize; 6] = [1_000, 10_000, 100_000, 200_000, 400_000, 1_000_000];
/// Measured rounds of calls, and calls of each: few, because they lengthen the log.
const ROUNDS: u32 = 8;
const CALLS: u32 = 20;
/// Field at the end of a record, with its value and the end of the line.
const CHAIN: &str = ",\"chain\":\"";
const SEQ: &str = ",\"seq\":";

pub(crate) fn axis() -> Axis {
    let [append, command, show, day, verify] = [
        "a call that appends",
        "`toolcrib call`",
        "`audit show --last 20`",
        "`audit show --day today --last 20`",
        "`audit verify`",
    ];
    let names = [append, command, show, day, verify];
    let mut axis = Axis::new("Records in the audit log", "records", Unit::Count, names);
    let (tokio, folder) = (tokio(), TempDir::new_in(super::target()).expect("a folder"));
    let log = folder.path().join("audit");
    let runtime = || {
        let builder = Runtime::builder(Audit::folder(&log)).source(guest("echo"));
        builder.compile_cache(cache()).build().expect("a runtime")
    };
    let call = |runtime: &Runtime| {
        let result = tokio.block_on(runtime.call(ToolCall::new("call", "echo", r#"{"text":"hello"}"#)));
        assert!(!result.is_error(), "{}", result.line());
    };
    for records in SIZES {
        call(&runtime());
        fill(&log, records);
        // The first call finds the end of the log, and the next ones append to it.
        let runtime = runtime();
        call(&runtime);
        let rounds = (0..ROUNDS).map(|_| {
            let start = Instant::now();
            (0..CALLS).for_each(|_| call(&runtime));
            start.elapsed() / CALLS
        });
        axis.add(append, records, rounds.min().expect("a round"));
        drop(runtime);
        let folder = format!("--set=records.audit_dir={}", log.display());
        let (home, echo) = (log.parent().expect("a folder"), guest("echo").display().to_string());
        let program = |words: &[&str]| least(|| toolcrib(home, &[words, &[folder.as_str()][..]].concat()));
        axis.add(command, records, program(&["call", "echo", r#"{"text":"hello"}"#, "--tools", &echo]));
        axis.add(show, records, program(&["audit", "show", "--last", "20"]));
        axis.add(day, records, program(&["audit", "show", "--day", "today", "--last", "20"]));
        axis.add(verify, records, program(&["audit", "verify"]));
    }
    axis
}

/// Appends copies of the last record, each with its place in the chain, until the log has this many.
fn fill(log: &Path, records: usize) {
    let path = newest(log);
    let text = fs::read_to_string(&path).expect("a log");
    let last = text.lines().last().expect("a record").to_owned();
    drop(text);
    let (rest, chain) = last.rsplit_once(CHAIN).expect("a chain");
    let (record, seq) = rest.rsplit_once(SEQ).expect("a number");
    let (mut chain, seq): (_, usize) = (chain.trim_end_matches("\"}").to_owned(), seq.parse().expect("a number"));
    let mut file = BufWriter::with_capacity(1 << 20, OpenOptions::new().append(true).open(path).expect("the file"));
    for seq in seq + 1..=records {
        let line = format!("{record}{SEQ}{seq}");
        let mut context = Context::new(&SHA256);
        context.update(chain.as_bytes());
        context.update(line.as_bytes());
        chain = context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(file, "{line}{CHAIN}{chain}\"}}").expect("a record is written");
    }
    file.flush().expect("the records are written");
}

/// File of the newest day.
fn newest(log: &Path) -> PathBuf {
    let files = fs::read_dir(log).expect("a log").map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.extension().is_some_and(|kind| kind == "log")).max().expect("a file")
}
