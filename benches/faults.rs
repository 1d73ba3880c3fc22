//! What becomes of the program when the system fails it: each system call that touches a file, asks for memory or starts
//! a thread fails in turn, at each place, and once the whole program is killed there. Afterwards no store holds half of
//! anything, nothing has panicked, and the next run works.
//!
//! ```sh
//! cargo bench --bench faults                    # every place where a store is written, some of the others
//! cargo bench --bench faults -- --every 1       # all of them
//! ```
//!
//! It needs `strace` on Linux, and skips where that is not there or may not trace.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

mod stores;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use stores::{Deed, Stores};

/// What fails and how. Those by which stores are written fail at each place; of the others one in so many is tried.
const FAULTS: [(&str, &str, bool); 23] = [
    ("write", "error=ENOSPC", true),
    ("pwrite64", "error=ENOSPC", true),
    ("write", "signal=KILL", true),
    ("pwrite64", "signal=KILL", true),
    ("fallocate", "error=ENOSPC", true),
    ("ftruncate", "error=EIO", true),
    ("fsync", "error=EIO", true),
    ("rename", "error=ENOSPC", true),
    ("rename", "signal=KILL", true),
    ("renameat2", "error=ENOSPC", true),
    ("linkat", "error=ENOSPC", true),
    ("unlink", "error=EIO", true),
    ("unlink", "signal=KILL", true),
    ("mkdir", "error=ENOSPC", true),
    ("flock", "error=ENOLCK", true),
    ("utimensat", "error=EIO", true),
    ("openat", "error=ENOSPC", false),
    ("read", "error=EIO", false),
    ("mmap", "error=ENOMEM", false),
    ("mprotect", "error=ENOMEM", false),
    ("madvise", "error=ENOMEM", false),
    ("brk", "error=ENOMEM", false),
    ("clone3", "error=EAGAIN", false),
];
/// Of the calls that are many and write nothing, one in so many is tried where nobody says.
const SOME: usize = 7;

/// One fault: in which deed, of which kind, at which place.
struct Point {
    deed: Deed,
    fault: usize,
    at: usize,
}

/// How the deed ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// As if nothing had been.
    Done,
    /// With an error of its own.
    Told,
    /// The system could not start it, or it had no memory to say why it ends.
    Lost,
    Killed,
    /// The fault met something that is no file, such as an event between threads, which cannot fail so.
    NoFile,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let every = match (arguments.next().as_deref(), arguments.next().map(|number| number.parse())) {
        (None, _) => SOME,
        (Some("--every"), Some(Ok(every @ 1..))) => every,
        _ => {
            println!("usage: cargo bench --bench faults -- [--every N]");
            return ExitCode::from(2);
        }
    };
    if let Err(why) = can_trace() {
        println!("skipped: {why}");
        return ExitCode::SUCCESS;
    }
    let whole = Stores::new();
    let points = points(&whole, every);
    let next = AtomicUsize::new(0);
    let ends = Mutex::new(BTreeMap::<usize, BTreeMap<End, usize>>::new());
    let problems = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(point) = points.get(next.fetch_add(1, Relaxed)) {
                    let (end, found) = suffer(&whole, point);
                    *ends.lock().expect("no panic").entry(point.fault).or_default().entry(end).or_default() += 1;
                    problems.lock().expect("no panic").extend(found.into_iter().map(|found| {
                        let (call, how, _) = FAULTS[point.fault];
                        format!("{:?}, {call} {how} at {}: {found}", point.deed, point.at)
                    }));
                }
            });
        }
    });
    let (ends, problems) = (ends.into_inner().expect("no panic"), problems.into_inner().expect("no panic"));
    println!("{:10} {:13} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}", "call", "fault", "points", "done", "told", "lost", "killed", "no file");
    for (fault, ends) in &ends {
        let (call, how, _) = FAULTS[*fault];
        let of = |end| ends.get(&end).copied().unwrap_or_default();
        let [done, told, lost, killed, none] = [End::Done, End::Told, End::Lost, End::Killed, End::NoFile].map(of);
        let all = ends.values().sum::<usize>();
        println!("{call:10} {how:13} {all:6} {done:6} {told:6} {lost:6} {killed:6} {none:7}");
    }
    problems.iter().for_each(|problem| println!("PROBLEM: {problem}"));
    println!("{} points, {} problems", points.len(), problems.len());
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn can_trace() -> Result<(), &'static str> {
    let tried = Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    match tried {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("`strace` may not trace here"),
        Err(_) => Err("`strace` is not there; on Debian: apt-get install strace"),
    }
}

/// Where each call of each deed can fail: a thread counts its own calls, so these are the places of the busiest.
fn points(whole: &Stores, every: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for deed in Deed::ALL {
        let stores = whole.copy();
        let trace = stores.path("trace");
        let calls: Vec<_> = FAULTS.iter().map(|(call, ..)| *call).collect();
        let with = ["-f", "-qq", "-e", "signal=none", "-e", &format!("trace={}", calls.join(",")), "-o"].map(str::to_owned);
        let with = with.into_iter().chain([trace.display().to_string()]);
        let ran = stores.under("strace", with, deed, "traced").output().expect("it starts");
        assert!(ran.status.success(), "{deed:?}: {}", String::from_utf8_lossy(&ran.stderr));
        let mut counted = HashMap::<(String, String), usize>::new();
        for line in fs::read_to_string(trace).expect("a trace").lines().filter(|line| !line.contains("resumed>")) {
            let mut words = line.split_whitespace();
            let (thread, rest) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            if let Some((call, _)) = rest.split_once('(') {
                *counted.entry((call.to_owned(), thread.to_owned())).or_default() += 1;
            }
        }
        for (fault, (call, _, all)) in FAULTS.iter().enumerate() {
            let most = counted.iter().filter(|((name, _), _)| name == call).map(|(_, count)| *count).max();
            let step = if *all { 1 } else { every };
            points.extend((1..=most.unwrap_or_default()).step_by(step).map(|at| Point { deed, fault, at }));
        }
    }
    points
}

/// Does the deed with a fault in it, then looks at the stores, and then does it without.
fn suffer(whole: &Stores, point: &Point) -> (End, Vec<String>) {
    let Point { deed, fault, at } = *point;
    let (call, how, _) = FAULTS[fault];
    let stores = whole.copy();
    let [trace, stdout, stderr] = ["trace", "stdout", "stderr"].map(|name| stores.path(name));
    let before = stores.signed();
    let inject = format!("inject={call}:{how}:when={at}");
    let with = ["-f", "-y", "-qq", "-e", "signal=none", "-e", &format!("trace={call}"), "-e", &inject, "-o"];
    let with = with.map(str::to_owned).into_iter().chain([trace.display().to_string()]);
    let mut program = stores.under("timeout", ["-s", "KILL", "60", "strace"].map(str::to_owned).into_iter().chain(with), deed, "faulty");
    let status = program.stdout(stores::file(&stdout)).stderr(stores::file(&stderr)).status().expect("it starts");
    let said = String::from_utf8_lossy(&fs::read(&stderr).expect("what it said")).into_owned();
    let end = end(status, how, &trace);
    let mut problems = Vec::new();
    if end == End::NoFile {
        return (end, problems);
    }
    if ["panicked at", "toolcrib itself has failed"].iter().any(|words| said.contains(words)) {
        problems.push(format!("it panicked: {}", said.trim()));
    }
    if status.code() == Some(124) || status.code() == Some(137) && end != End::Killed {
        problems.push("it hung".to_owned());
    } else if end == End::Lost && !is_memory(call) && !said.contains("loading shared libraries") {
        problems.push(format!("it ended with {status}: {}", said.trim()));
    }
    problems.extend(stores.problems().into_iter().map(|found| format!("afterwards ({end:?}): {found}")));
    if end != End::Killed && stores.torn() > 0 {
        problems.push("a record was written half".to_owned());
    }
    if end == End::Done && stores.signed() != before + deed.calls() {
        problems.push(format!("it says that all is well, and {} calls were signed for", stores.signed() - before));
    }
    if deed == Deed::Approvals {
        stores.approve(stores::GOES);
    }
    let again = stores.program(deed, "again").output().expect("it starts");
    if !again.status.success() {
        problems.push(format!("the next run fails: {}", String::from_utf8_lossy(&again.stderr).trim()));
    }
    problems.extend(stores.problems().into_iter().map(|found| format!("after the next run: {found}")));
    (end, problems)
}

fn end(status: ExitStatus, how: &str, trace: &Path) -> End {
    let trace = fs::read_to_string(trace).unwrap_or_default();
    let injected = || trace.lines().filter(|line| line.contains("(INJECTED)"));
    // Of a call on something that is no file, the trace tells what it was on.
    let others = ["<anon_inode:", "<pipe:", "<socket:", "<UNIX", "</proc/", "</sys/", "</dev/"];
    if injected().count() > 0 && injected().all(|line| others.iter().any(|other| line.contains(other))) {
        return End::NoFile;
    }
    match status.code() {
        Some(0) => End::Done,
        Some(1 | 2) => End::Told,
        _ if how == "signal=KILL" => End::Killed,
        _ => End::Lost,
    }
}

/// Whether its failure leaves no room to say anything.
fn is_memory(call: &str) -> bool {
    matches!(call, "mmap" | "mprotect" | "madvise" | "brk" | "clone3")
}
