//! Audit log: one whole line per call, after every outcome and with concurrent writers.

mod arguments;
mod bucket;
mod chain;
mod forwarding;
mod show;

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib::{Audit, Outcome, ToolCall};

use crate::crib::{Crib, guest, nesting};
use crate::screen::Page;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn a_record_has_every_field() {
    let crib = Crib::with_guests(&["exit_code"]);
    let arguments = json!({"code": 1, "stderr": "four"}).to_string();
    crib.run(&["call", "exit_code", &arguments, "--allow-read=work"]);
    let [record] = crib.records().try_into().expect("one call, one record");
    for (field, value) in [
        ("tool", json!("exit_code")),
        ("argv", json!(["./tools/bin/exit_code"])),
        ("cwd", json!(crib.path("work").canonicalize().unwrap())),
        ("exit", json!(1)),
        ("outcome", json!("failed")),
        ("stdinBytes", json!(arguments.len())),
        ("stdoutBytes", json!(0)),
        ("stderrBytes", json!(4)),
        ("truncated", json!(false)),
        ("envKeys", json!([])),
        ("denied", json!([])),
    ] {
        assert_eq!(record[field], value, "{field}: {record}");
    }
    for field in ["ts", "callId", "digest", "ms", "cpuMs", "peakMemoryBytes", "granted"] {
        assert!(!record[field].is_null(), "{field}: {record}");
    }
    assert!(record["digest"].as_str().unwrap().starts_with("sha256:"));
    assert!(record["cpuMs"].as_f64().unwrap() > 0.0 && record["peakMemoryBytes"].as_u64().unwrap() > 0, "{record}");
}

#[test]
fn calls_across_midnight_lie_in_two_files() {
    let crib = Crib::new();
    let seconds = Arc::new(AtomicU64::new(0));
    let clock = {
        let seconds = seconds.clone();
        move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.load(Relaxed))
    };
    let audit = Audit::folder(crib.path("audit")).clock(clock);
    let runtime = nesting::builder(audit).source(guest("empty")).build().unwrap();
    // 2026-03-01T00:00:00Z, a second before it and a second after it.
    for at in [1_772_323_199, 1_772_323_201] {
        seconds.store(at, Relaxed);
        block_on(nesting::call(&runtime, ToolCall::new("", "empty", "{}")));
    }
    for (day, ts) in [("20260228", "2026-02-28T23:59:59.000Z"), ("20260301", "2026-03-01T00:00:01.000Z")] {
        let text = fs::read_to_string(crib.path(format!("audit/{day}.log"))).unwrap();
        let record: Value = serde_json::from_str(text.trim_end()).expect("one line");
        assert_eq!(record["ts"], ts);
    }
}

#[cfg(unix)]
#[test]
fn sixteen_processes_tear_no_line() {
    let crib = Crib::with_guests(&["empty", "echo"]);
    crib.run(&["call", "empty"]);
    let long = "x".repeat(200);
    let writers: Vec<_> = (0..16)
        .map(|n| {
            // An unknown tool is recorded too, and cheaply: each process leaves one record for each of its words.
            let script =
                format!("for i in 1 2 3 4 5; do '{}' call 'unknown-{n}-'$i-{long} '{{}}'; done", crate::crib::TOOLCRIB);
            let mut command = std::process::Command::new("sh");
            command.arg("-c").arg(script).current_dir(crib.path(".")).env_clear();
            command.env("HOME", crib.path("home")).env("TOOLCRIB_AUDIT_DIR", crib.path("audit"));
            command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut writer in writers {
        writer.wait().unwrap();
    }
    let mut names: Vec<_> = crib.records().iter().map(|it| it["tool"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 1 + 16 * 5, "every record is there, whole");
    let verified = crib.run(&["audit", "verify"]);
    assert!(verified.stdout.starts_with("1 file, 81 records, seq 1 to 81, head "), "{verified:?}");
}

#[test]
fn a_torn_tail_is_mended_and_costs_no_record() {
    let crib = Crib::with_guests(&["empty"]);
    crib.run(&["call", "empty"]);
    let file = crib.logs().remove(0);
    let mut log = fs::OpenOptions::new().append(true).open(&file).unwrap();
    log.write_all(b"{\"ts\":\"2026-").unwrap();
    crib.run(&["call", "empty"]);
    let text = fs::read_to_string(&file).unwrap();
    let whole = text.lines().filter(|line| serde_json::from_str::<Value>(line).is_ok()).count();
    assert_eq!((whole, text.lines().count()), (2, 3), "{text}");
}

#[test]
fn a_call_that_cannot_be_logged_is_refused() {
    let page = Page::new();
    let crib = Crib::with_guests(&["file_io"]);
    fs::remove_dir(crib.path("audit")).unwrap();
    fs::write(crib.path("audit"), "a file where the folder should be").unwrap();
    let line = crib.call("file_io", &json!({"op": "write", "path": "made", "text": "x"}), &["--allow-write=work"]);
    assert_eq!(line["receipt"]["outcome"], "unlogged", "{line}");
    assert_eq!(line["error"], "refused: the call cannot be written to the audit log");
    assert!(!crib.path("work/made").exists(), "nothing ran");
    page.note("a person is told");
    page.run(&crib, &["call", "file_io", "{}"]);
    page.matches("audit/not-logged");
}

#[test]
fn a_log_that_somebody_holds_locked_refuses_the_call_in_bound() {
    let crib = Crib::new();
    let runtime = nesting::builder(Audit::folder(crib.path("audit"))).source(guest("empty")).build().unwrap();
    let call = || block_on(nesting::call(&runtime, ToolCall::new("", "empty", "{}"))).receipt.outcome;
    assert_eq!(call(), Outcome::Ok);
    let held = fs::File::open(crib.path("audit/head")).unwrap();
    held.lock().unwrap();
    let started = std::time::Instant::now();
    assert_eq!(call(), Outcome::Unlogged);
    assert!(started.elapsed() < Duration::from_secs(10));
    held.unlock().unwrap();
    assert_eq!(call(), Outcome::Ok);
}

/// Observer that notes the end of each call.
#[derive(Default)]
struct Ends(Mutex<Vec<(String, Outcome)>>);

impl Observer for Ends {
    fn observe(&self, event: &Event<'_>) {
        if let EventKind::Ended(result) = &event.kind {
            self.0.lock().unwrap().push((result.call_id.clone(), result.receipt.outcome));
        }
    }
}

#[test]
fn observers_learn_of_a_call_that_was_dropped_with_its_record_that_it_was_not_written() {
    let crib = Crib::new();
    let ends = Arc::new(Ends::default());
    let builder = nesting::builder(Audit::folder(crib.path("audit"))).source(guest("empty"));
    let runtime = builder.observer(ends.clone()).build().unwrap();
    let call = |id: &'static str| {
        let runtime = runtime.clone();
        async move { nesting::call(&runtime, ToolCall::new(id, "empty", "{}")).await.receipt.outcome }
    };
    assert_eq!(block_on(call("first")), Outcome::Ok);
    let held = fs::File::open(crib.path("audit/head")).unwrap();
    held.lock().unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| block_on(call("writer")));
        std::thread::sleep(Duration::from_millis(300));
        // Its record waits for the writer, which waits for the lock.
        let dropped = block_on(async { tokio::time::timeout(Duration::from_millis(300), call("dropped")).await });
        assert!(dropped.is_err());
        assert_eq!(writer.join().unwrap(), Outcome::Unlogged);
    });
    let ends = ends.0.lock().unwrap();
    let end = |id: &str| ends.iter().filter(|(known, _)| known == id).map(|(_, end)| *end).collect::<Vec<_>>();
    assert_eq!(end("writer"), [Outcome::Unlogged]);
    assert_eq!(end("dropped"), [Outcome::Unlogged]);
}

#[test]
fn a_full_disk_refuses_the_call_before_it_runs() {
    let crib = Crib::new();
    let full = crib.path("full");
    fs::create_dir(&full).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&full)
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may not mount a small file system");
        return;
    }
    let runtime = nesting::builder(Audit::folder(full.join("audit"))).source(guest("empty")).build().unwrap();
    let result = block_on(nesting::call(&runtime, ToolCall::new("", "empty", "{}")));
    let unmounted = std::process::Command::new("umount").arg(&full).status().unwrap();
    assert_eq!(result.receipt.outcome, Outcome::Unlogged);
    assert_eq!(result.receipt.cpu_ms, 0.0, "the guest was not started");
    assert!(unmounted.success());
}

#[test]
fn a_log_deleted_or_moved_between_calls_costs_no_record() {
    let crib = Crib::new();
    let runtime = nesting::builder(Audit::folder(crib.path("audit"))).source(guest("empty")).build().unwrap();
    let call = || block_on(nesting::call(&runtime, ToolCall::new("", "empty", "{}"))).receipt.outcome;
    let file = || crib.logs().remove(0);
    assert_eq!(call(), Outcome::Ok);
    fs::remove_file(file()).unwrap();
    assert_eq!(call(), Outcome::Ok);
    assert_eq!(crib.records().len(), 1, "the record after the deletion is in a new file");
    fs::rename(file(), crib.path("moved.log")).unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(call(), Outcome::Ok);
    assert_eq!(crib.records().len(), 1, "after a second at the latest the log is begun anew");
    assert_eq!(fs::read_to_string(crib.path("moved.log")).unwrap().lines().count(), 1);
}

#[test]
fn a_name_with_newlines_is_one_line_and_a_long_one_is_cut() {
    let crib = Crib::with_guests(&["empty"]);
    let name = format!("a\n{{\"tool\":\"forged\"}}\u{1b}[2J{}", "é".repeat(1000));
    crib.run(&["call", &name, "{}"]);
    let [record] = crib.records().try_into().expect("one line");
    assert_eq!(record["outcome"], "bad-arguments");
    assert_eq!(record["tool"].as_str().unwrap().chars().count(), 256);
}

#[test]
fn what_is_to_be_redacted_is_masked_in_the_record() {
    let crib = Crib::with_guests(&["empty"]);
    crib.manifest(&json!({"tools": [
        {"name": "n", "command": ["./tools/bin/empty", "--key=sk-abc", "plain.text", "plainxtext"]}
    ]}));
    let mut command = crib.toolcrib(&["call", "n", "{}", "--set", "records.redact=sk-[a-z]+;(plain"]);
    command.env("OAI_API_KEY", "plain.text").output().unwrap();
    let [record] = crib.records().try_into().unwrap();
    assert_eq!(record["argv"], json!(["./tools/bin/empty", "--key=***REDACTED***", "***REDACTED***", "plainxtext"]));
}

#[cfg(unix)]
#[test]
fn the_log_is_its_owners_alone() {
    use std::os::unix::fs::MetadataExt;
    let crib = Crib::with_guests(&["empty"]);
    let audit = crib.path("fresh/audit");
    crib.run(&["call", "empty", "{}", "--audit-dir", audit.to_str().unwrap()]);
    assert_eq!(audit.metadata().unwrap().mode() & 0o777, 0o700);
    for file in fs::read_dir(&audit).unwrap() {
        assert_eq!(file.unwrap().metadata().unwrap().mode() & 0o777, 0o600);
    }
}
