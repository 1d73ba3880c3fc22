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
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use tempfile::TempDir;

use stores::{Deed, Stores};

/// What fails, how, and where: on the files of the stores, on any file, or wherever it is called.
const FAULTS: [(&str, &str, Where); 29] = [
    ("write", "error=ENOSPC", Where::Stores),
    ("write", "signal=KILL", Where::Stores),
    ("write", "error=ENOSPC", Where::Files),
    ("write", "signal=KILL", Where::Files),
    ("pwrite64", "error=ENOSPC", Where::Stores),
    ("pwrite64", "signal=KILL", Where::Stores),
    ("fallocate", "error=ENOSPC", Where::Files),
    ("ftruncate", "error=EIO", Where::Files),
    ("fsync", "error=EIO", Where::Files),
    ("rename", "error=ENOSPC", Where::Files),
    ("rename", "signal=KILL", Where::Files),
    ("renameat2", "error=ENOSPC", Where::Files),
    ("renameat", "error=ENOSPC", Where::Files),
    ("unlinkat", "error=EIO", Where::Files),
    ("linkat", "error=ENOSPC", Where::Files),
    ("unlink", "error=EIO", Where::Files),
    ("unlink", "signal=KILL", Where::Files),
    ("mkdir", "error=ENOSPC", Where::Files),
    ("flock", "error=ENOLCK", Where::Files),
    ("utimensat", "error=EIO", Where::Files),
    ("openat", "error=ENOSPC", Where::Stores),
    ("read", "error=EIO", Where::Stores),
    ("openat", "error=EMFILE", Where::Anywhere),
    ("read", "error=EIO", Where::Anywhere),
    ("mmap", "error=ENOMEM", Where::Anywhere),
    ("mprotect", "error=ENOMEM", Where::Anywhere),
    ("madvise", "error=ENOMEM", Where::Anywhere),
    ("brk", "error=ENOMEM", Where::Anywhere),
    ("clone3", "error=EAGAIN", Where::Anywhere),
];

/// On what a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    /// On the files that are there before, the stores' own: those are known by their names.
    Stores,
    /// On each file. A call of the same name that goes to another thread and to no file cannot fail so, and does not count.
    Files,
    /// Wherever it is called: these are many, and one in so many is tried.
    Anywhere,
}

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
    println!("{} points", points.len());
    let next = AtomicUsize::new(0);
    let ends = Mutex::new(BTreeMap::<usize, BTreeMap<End, usize>>::new());
    let problems = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(point) = points.get(next.fetch_add(1, Relaxed)) {
                    let (end, found) = suffer(&whole, point);
                    *ends.lock().expect("no panic").entry(point.fault).or_default().entry(end).or_default() += 1;
                    for found in found {
                        let (call, how, place) = FAULTS[point.fault];
                        println!("PROBLEM: {:?}, {call} {how} {place:?} at {}: {found}", point.deed, point.at);
                        problems.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    let (ends, problems) = (ends.into_inner().expect("no panic"), problems.into_inner());
    println!(
        "{:10} {:13} {:9} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}",
        "call", "fault", "where", "points", "done", "told", "lost", "killed", "no file"
    );
    for (fault, ends) in &ends {
        let (call, how, place) = FAULTS[*fault];
        let place = format!("{place:?}");
        let of = |end| ends.get(&end).copied().unwrap_or_default();
        let [done, told, lost, killed, none] = [End::Done, End::Told, End::Lost, End::Killed, End::NoFile].map(of);
        let all = ends.values().sum::<usize>();
        println!("{call:10} {how:13} {place:9} {all:6} {done:6} {told:6} {lost:6} {killed:6} {none:7}");
    }
    println!("{} points, {problems} problems", points.len());
    if problems == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
        for (fault, (call, _, place)) in FAULTS.iter().enumerate() {
            let stores = copy(whole);
            let mut program = stores.under("strace", tracing(&stores, call, *place, None), deed, "traced");
            program.stdout(file(&stores, "stdout")).stderr(file(&stores, "stderr"));
            assert!(program.status().expect("it starts").success(), "{deed:?} under trace");
            let mut counted = HashMap::<String, usize>::new();
            let trace = fs::read_to_string(stores.path("trace")).expect("a trace");
            for line in trace.lines().filter(|line| !line.contains("resumed>")) {
                *counted.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
            }
            let step = if *place == Where::Anywhere { every } else { 1 };
            let most = counted.into_values().max().unwrap_or_default();
            points.extend((1..=most).step_by(step).map(|at| Point { deed, fault, at }));
        }
    }
    points
}

/// The words by which `strace` is told what to watch, and what to do to it.
fn tracing(stores: &Stores, call: &str, place: Where, inject: Option<&str>) -> Vec<String> {
    let mut words = ["-f", "-y", "-qq", "-e", "signal=none", "-e"].map(str::to_owned).to_vec();
    words.push(format!("trace={call}"));
    words.extend(inject.into_iter().flat_map(|inject| ["-e".to_owned(), inject.to_owned()]));
    if place == Where::Stores {
        let files = ["audit", "records", "results", "cache", "work", ""].map(|folder| stores.in_folder(folder));
        let ours = |path: &PathBuf| path.is_file() && !path.ends_with("trace");
        let files = files.into_iter().flatten().filter(ours);
        words.extend(files.flat_map(|path| ["-P".to_owned(), path.display().to_string()]));
    }
    words.extend(["-o".to_owned(), stores.path("trace").display().to_string()]);
    words
}

/// Does the deed with a fault in it, then looks at the stores, and then does it without.
fn suffer(whole: &Stores, point: &Point) -> (End, Vec<String>) {
    let Point { deed, fault, at } = *point;
    let (call, how, place) = FAULTS[fault];
    let stores = copy(whole);
    let before = stores.signed();
    let (stdout, stderr) = (file(&stores, "stdout"), file(&stores, "stderr"));
    let inject = format!("inject={call}:{how}:when={at}");
    let bounded = ["-s", "KILL", "20", "strace"].map(str::to_owned).into_iter();
    let with = bounded.chain(tracing(&stores, call, place, Some(&inject)));
    let mut program = stores.under("timeout", with, deed, "faulty");
    let status = program.stdout(stdout).stderr(stderr).status().expect("it starts");
    let said = String::from_utf8_lossy(&fs::read(stores.path("stderr")).expect("what it said")).into_owned();
    let end = end(status, how, &stores.path("trace"));
    let mut problems = Vec::new();
    if end == End::NoFile {
        return (end, problems);
    }
    if ["panicked at", "internal error"].iter().any(|words| said.contains(words)) {
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
    // A run goes on where a call is not signed for, and says so.
    let signed = stores.signed() - before;
    let told = said.matches("unlogged").count() as u64;
    if end == End::Done && signed + told < calls(deed) {
        problems.push(format!("it says that all is well, and {signed} calls were signed for"));
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
    // Of a call on something that is no file, the trace tells what it was on: where the call was interrupted by another
    // thread's, in the line before.
    let others = ["<anon_inode:", "<pipe:", "<socket:", "<UNIX", "</proc/", "</sys/", "</dev/"];
    let mut begun = HashMap::new();
    for line in fs::read_to_string(trace).unwrap_or_default().lines() {
        let (thread, rest) = line.split_once(' ').unwrap_or_default();
        let before = begun.insert(thread.to_owned(), rest.to_owned()).filter(|_| rest.contains("resumed>"));
        let whole = before.unwrap_or_default() + rest;
        if line.contains("(INJECTED)") && others.iter().any(|other| whole.contains(other)) {
            return End::NoFile;
        }
    }
    match status.code() {
        Some(0) => End::Done,
        Some(1 | 2) => End::Told,
        _ if how == "signal=KILL" => End::Killed,
        _ => End::Lost,
    }
}

/// How many calls a deed makes.
fn calls(deed: Deed) -> u64 {
    match deed {
        Deed::Call | Deed::Compile => 1,
        Deed::Run => 4,
        Deed::Approvals => 0,
    }
}

/// The same crib again, elsewhere. Programs and compiled code are shared, for nobody writes into them.
fn copy(whole: &Stores) -> Stores {
    let copy = Stores::at(TempDir::new().expect("a folder"));
    copy_all(&whole.path(""), &copy.path(""));
    copy
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            fs::create_dir(&to).expect("a folder");
            copy_all(&path, &to);
        } else if path.extension().is_some_and(|it| it == "wasm" || it == "cwasm") {
            fs::hard_link(&path, &to).expect("a link");
        } else {
            fs::copy(&path, &to).expect("a copy");
        }
    }
    fs::set_permissions(to, from.metadata().expect("a folder").permissions()).expect("its rights");
}

/// A file for what a program says, which a full disk can cut like any other.
fn file(stores: &Stores, name: &str) -> Stdio {
    File::create(stores.path(name)).expect("a file").into()
}

/// Whether its failure leaves no room to say anything.
fn is_memory(call: &str) -> bool {
    matches!(call, "mmap" | "mprotect" | "madvise" | "brk" | "clone3")
}
