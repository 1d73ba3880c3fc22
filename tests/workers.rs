//! Workers over NATS: calls at processes of `toolcrib worker`, at workers that lie, and at workers that are lost. The tests of `seam`
//! need no server, the others say so where there is none.

mod ends;
mod lies;
mod policy;
mod seam;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::crib::{Crib, guest};
use crate::nats::{Nats, PATIENCE, Wire};

/// Process of `toolcrib worker`.
pub(crate) struct WorkerProcess {
    child: Child,
    lines: Receiver<String>,
    /// Name of the worker with its random digits.
    pub(crate) name: String,
}

impl WorkerProcess {
    /// Starts a worker, and returns once it serves its tools.
    pub(crate) fn start(crib: &Crib, url: &str, flags: &[&str]) -> Self {
        let mut command = crib.toolcrib(&[&["worker", "--nats", url], flags].concat());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let errors = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut worker = Self { child, lines, name: String::new() };
        let line = worker.line("serves");
        worker.name = line.split('`').nth(1).unwrap().to_owned();
        worker
    }

    /// Waits for a line with a word.
    pub(crate) fn line(&self, word: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap_or_else(|error| panic!("no line with `{word}`: {error}"));
            if line.contains(word) {
                return line;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the process.
    pub(crate) fn code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// Waits until the statistics of the worker have a value, and returns them.
    pub(crate) fn until(&self, wire: &mut Wire, field: &str, value: impl Into<Value>) -> Value {
        let value = value.into();
        let until = Instant::now() + PATIENCE;
        let inbox = format!("_INBOX.test.{}.{field}.{value}", self.name);
        wire.subscribe(&inbox, "");
        loop {
            wire.publish(&format!("$SRV.STATS.toolcrib-worker.{}", self.name), &inbox, b"");
            let answer = std::iter::repeat_with(|| wire.next()).find(|message| message.subject == inbox);
            let data = answer.unwrap().head()["endpoints"][0]["data"].clone();
            if data[field] == value {
                return data;
            }
            assert!(Instant::now() < until, "`{field}` is not {value}: {data}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates a crib with the same tools, which only read; `file_io` has a folder where its crib grants one.
pub(crate) fn readers() -> Crib {
    let crib = Crib::new();
    let tool = |name: &str, read_only: bool| {
        let program = if name == "change" { "echo" } else { name };
        crib.install(&guest(program), program);
        json!({"name": name, "command": [format!("./tools/bin/{program}")], "interface": {"is_read_only": read_only}})
    };
    let readers = ["echo", "nap", "file_io", "big_result"].map(|name| tool(name, true));
    let tools: Vec<Value> = readers.into_iter().chain([tool("change", false)]).collect();
    crib.manifest(&json!({ "tools": tools }));
    crib
}

/// Starts a server and a worker; `None` where there is no server.
pub(crate) fn served(flags: &[&str]) -> Option<(Nats, Crib, WorkerProcess)> {
    let nats = Nats::start()?;
    let crib = readers();
    let worker = WorkerProcess::start(&crib, &nats.url(), flags);
    Some((nats, crib, worker))
}

/// Returns the receipt of a result, and its error.
pub(crate) fn ended(line: &Value) -> (&str, &str) {
    (line["receipt"]["outcome"].as_str().unwrap_or_default(), line["error"].as_str().unwrap_or_default())
}

#[test]
fn a_call_runs_at_a_worker_with_a_folder_that_only_the_worker_sees() {
    let Some(nats) = Nats::start() else { return };
    let (there, here) = (readers(), readers());
    std::fs::write(there.path("work/plan.txt"), "only here").unwrap();
    let worker = WorkerProcess::start(&there, &nats.url(), &["--allow-read=work"]);
    let mut tap = nats.wire();
    tap.subscribe(">", "");
    let arguments = json!({"op": "read", "path": "plan.txt"}).to_string();
    let mut command =
        here.toolcrib(&["call", "file_io", &arguments, "--json", "--allow-env=CANARY", "--remote", &nats.url()]);
    command.env("CANARY", "canary-of-the-environment").env("OPENAI_API_KEY", "canary-of-the-key");
    let ran = crate::crib::Ran::of(&mut command);
    let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(line["result"]["ok"], "only here", "{ran:?}");
    assert_eq!(line["receipt"]["worker"], worker.name.as_str());
    assert_eq!(line["receipt"]["label"]["integrity"], "untrusted", "{line}");
    let records = (here.records(), there.records());
    assert_eq!((records.0.len(), records.1.len()), (1, 1), "each side has one record");
    assert_eq!(records.0[0]["worker"], worker.name.as_str(), "{}", records.0[0]);
    assert_eq!(records.1[0]["worker"], Value::Null);
    // Everything of the call is before this message.
    let mut last = nats.wire();
    last.publish("the.end", "", b"");
    let wire: Vec<_> =
        std::iter::repeat_with(|| tap.next()).take_while(|message| message.subject != "the.end").collect();
    let bytes: Vec<u8> = wire.iter().flat_map(|message| message.payload.clone()).collect();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("plan.txt") && text.contains("only here"), "{text}");
    assert!(!text.contains("canary"), "{text}");
    let mut offers = wire.iter().filter(|message| message.subject.starts_with("toolcrib.v1.call."));
    let offer = offers.by_ref().map(|offer| String::from_utf8_lossy(&offer.payload).into_owned()).next().unwrap();
    assert!(!offer.contains("plan.txt"), "an offer has no arguments: {offer}");
}

#[test]
fn large_values_travel_in_parts_and_the_caller_stores_a_long_answer() {
    let Some((nats, there, worker)) = served(&[]) else { return };
    let here = readers();
    let text = "x".repeat(400 << 10);
    std::fs::write(here.path("arguments.json"), json!({"text": text}).to_string()).unwrap();
    let remote = ["--json", "--remote", &nats.url()];
    let ran = here.run(&[&["call", "echo", "@arguments.json"], &remote[..]].concat());
    let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert_eq!(line["receipt"]["persisted"]["bytes"], (400 << 10) + 11, "{}", line["receipt"]);
    assert_eq!(line["receipt"]["worker"], worker.name.as_str());
    assert!(here.path("results").exists() && !there.path("results").exists(), "the caller stores it");
    let line = here.call("big_result", &json!({"bytes": 300_000}), &[&remote[1..], &["--max-output=100KiB"]].concat());
    assert_eq!(ended(&line).0, "output-limit", "{line}");
}

#[test]
fn the_fleet_shows_each_worker_with_its_counts() {
    let Some((nats, there, worker)) = served(&["--name=north", "--concurrency=3"]) else { return };
    let other = WorkerProcess::start(&there, &nats.url(), &["--name=south"]);
    let here = readers();
    let line = here.call("echo", &json!({"a": 1}), &["--remote", &nats.url()]);
    assert_eq!(line["result"], json!({"a": 1}), "{line}");
    let mut wire = nats.wire();
    let one = if line["receipt"]["worker"] == worker.name.as_str() { &worker } else { &other };
    one.until(&mut wire, "answered", 1);
    let ran = here.run(&["fleet", "status", "--json", "--wait=3s", "--nats", &nats.url()]);
    let fleet: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let names: Vec<_> = fleet.iter().map(|worker| worker["worker"].as_str().unwrap()).collect();
    assert_eq!(names, [worker.name.as_str(), other.name.as_str()]);
    assert!(worker.name.starts_with("north-") && other.name.starts_with("south-"));
    assert_eq!((&fleet[0]["places"], fleet[0]["tools"].as_array().unwrap().len()), (&json!(3), 4), "{fleet:?}");
    let answered: u64 = fleet.iter().map(|worker| worker["answered"].as_u64().unwrap()).sum();
    assert_eq!(answered, 1);
}

#[test]
fn a_fleet_without_workers_is_a_failure_also_for_a_script() {
    let Some(nats) = Nats::start() else { return };
    let here = readers();
    for (flags, printed) in [(&[][..], ""), (&["--json"], "[]\n")] {
        let ran = here.run(&[&["fleet", "status", "--nats", &nats.url()], flags].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), printed), "{ran:?}");
        assert!(ran.stderr.contains("error: no worker at nats://127.0.0.1"), "{ran:?}");
    }
}
