//! Kills the program repeatedly at random moments, two processes at a time over the same stores. Afterwards every store
//! is sound, each killed run goes on to its answer, the next run works, and no call was executed twice.
//!
//! ```sh
//! cargo bench --bench kill                      # sixty times
//! cargo bench --bench kill -- --times 10000
//! ```

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

mod stores;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use stores::{Action, Stores};

/// Kills between two checks of the stores.
const BETWEEN: usize = 50;
/// Processes at once.
const AT_ONCE: usize = 2;

/// Results of the processes.
#[derive(Default)]
struct Count {
    killed: usize,
    /// Processes that ended before they could be killed.
    ended: usize,
    /// Marks of their calls.
    done: Vec<String>,
    failed: Vec<String>,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let times = match (arguments.next().as_deref(), arguments.next().map(|number| number.parse())) {
        (None, _) => 60,
        (Some("--times"), Some(Ok(times @ 1..))) => times,
        _ => {
            println!("usage: cargo bench --bench kill -- [--times N]");
            return ExitCode::from(2);
        }
    };
    let stores = Stores::new();
    let long = Action::ALL.map(|action| (0..5).map(|at| length(&stores, action, at)).max().unwrap_or_default());
    let (next, count) = (AtomicUsize::new(0), Mutex::new(Count::default()));
    let (mut problems, mut resumed) = (Vec::new(), 0);
    let started = Instant::now();
    for from in (0..times).step_by(BETWEEN) {
        let to = times.min(from + BETWEEN);
        next.store(from, Relaxed);
        thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Relaxed);
                        if at >= to {
                            break;
                        }
                        kill_one(&stores, at, &long, &count);
                    }
                });
            }
        });
        problems.extend(stores.problems().into_iter().map(|found| format!("after {to}: {found}")));
        let (runs, found) = resume_runs(&stores);
        resumed += runs;
        problems.extend(found.into_iter().map(|found| format!("after {to}: {found}")));
        stores.approve(stores::REVOKED);
        for action in Action::ALL {
            let ran = stores.program(action, &format!("clean{to}")).output().expect("it starts");
            if !ran.status.success() {
                let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
                problems.push(format!("after {to}: the next {action:?} fails: {}", stderr.trim()));
            }
        }
        if !problems.is_empty() {
            break;
        }
    }
    let Count { killed, ended, done, failed } = count.into_inner().expect("no panic");
    problems.extend(failed);
    problems.extend(wrong_counts(&stores, &done));
    println!(
        "{killed} killed, {ended} ended before that, {resumed} runs resumed; {:.0} s; {} calls recorded, {} results stored, {} incomplete lines of Agent Tool records, {} \
         temporary files left",
        started.elapsed().as_secs_f64(),
        stores.recorded(),
        stores.kept(),
        stores.torn(),
        temporary_files(&stores)
    );
    problems.iter().for_each(|problem| println!("PROBLEM: {problem}"));
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Duration of an action.
fn length(stores: &Stores, action: Action, at: usize) -> Duration {
    stores.approve(stores::REVOKED);
    stores.remove_compiled();
    let started = Instant::now();
    let ran = stores.program(action, &format!("timed{at}")).output().expect("it starts");
    assert!(ran.status.success(), "{action:?}: {}", String::from_utf8_lossy(&ran.stderr));
    started.elapsed()
}

/// Starts one action and kills it at some moment of its life.
fn kill_one(stores: &Stores, at: usize, long: &[Duration; 4], count: &Mutex<Count>) {
    let dice = u64::try_from(at).unwrap_or_default().wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    // Half of the actions are calls.
    let which = [0, 0, 0, 0, 1, 1, 2, 3][(dice >> 61) as usize];
    let action = Action::ALL[which];
    let moment = long[which].mul_f64(1.1 * f64::from((dice >> 32 & 0xffff) as u16) / 65536.0);
    match action {
        Action::Approvals => stores.approve(stores::REVOKED),
        Action::Compile => stores.remove_compiled(),
        Action::Call | Action::Run => {}
    }
    let mark = format!("n{at}");
    let program = stores.program(action, &mark).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut program = program.expect("it starts");
    thread::sleep(moment);
    // The process may have ended already.
    let _ = program.kill();
    let ended = program.wait_with_output().expect("it ends");
    let mut count = count.lock().expect("no panic");
    count.ended += usize::from(ended.status.code().is_some());
    match ended.status.code() {
        None => count.killed += 1,
        Some(0) => count.done.extend((action == Action::Call).then_some(mark)),
        Some(code) => {
            let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
            // Another process may have revoked the approval first.
            if action != Action::Approvals {
                count.failed.push(format!("{action:?} {at} ended with {code}: {}", stderr.trim()));
            }
        }
    }
}

/// Resumes the killed runs, and removes all runs. Returns the number of those that went on, and what is wrong with them.
fn resume_runs(stores: &Stores) -> (usize, Vec<String>) {
    let run = |args: &[&str]| {
        let mut command = Command::new(stores::TOOLCRIB);
        stores.enter(command.args(args));
        command.output().expect("it starts")
    };
    let json = |args: &[&str]| serde_json::from_slice::<Value>(&run(args).stdout).unwrap_or_default();
    let (mut resumed, mut problems) = (0, Vec::new());
    let listed = json(&["runs", "list", "--json"]);
    let killed = listed.as_array().into_iter().flatten().filter(|run| run["state"] == "killed");
    for (id, mark) in killed.filter_map(|run| run["id"].as_str().zip(run["prompt"].as_str())) {
        // A run that was killed before its prompt was written has nothing to go on with.
        if mark.is_empty() {
            continue;
        }
        resumed += 1;
        let script = stores::script_name(mark);
        let ran = run(&["run", "--resume", id, "--script", &script, "--allow-write=work"]);
        if !ran.status.success() || ran.stdout != b"done\n" {
            problems.push(format!("the run {mark} does not go on: {}", String::from_utf8_lossy(&ran.stderr).trim()));
            continue;
        }
        let messages = json(&["runs", "export", id]);
        let results = messages.as_array().into_iter().flatten().filter(|message| message["role"] == "tool");
        let results: Vec<&str> = results.filter_map(|message| message["content"].as_str()).collect();
        if results.len() != 4 {
            problems.push(format!("the run {mark} has {} results of its 4 calls", results.len()));
        }
        let lines = fs::read_to_string(stores.path("work/lines")).expect("the file of the marks");
        for (at, result) in results.iter().enumerate().filter(|(_, result)| !result.contains("may or may not have")) {
            if !lines.lines().any(|line| line == format!("{mark}/{}", at + 1)) {
                problems.push(format!("call {} of the run {mark} was not done: {result}", at + 1));
            }
        }
    }
    let removed = run(&["runs", "remove", "--all"]);
    problems.extend((!removed.status.success()).then(|| "the runs cannot be removed".to_owned()));
    (resumed, problems)
}

/// Number of temporary files that were not removed.
fn temporary_files(stores: &Stores) -> usize {
    let is_temporary = |path: &&PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with(".unfinished-") || name.ends_with(".new")
    };
    let places = ["", "cache", "fresh", "results", "audit", "records"];
    places.iter().map(|place| stores.in_folder(place).iter().filter(is_temporary).count()).sum()
}

/// Calls that were executed twice, and calls that succeeded and were not executed.
fn wrong_counts(stores: &Stores, done: &[String]) -> Vec<String> {
    let mut found = HashMap::<String, usize>::new();
    let lines = fs::read_to_string(stores.path("work/lines")).expect("the file of the marks");
    for mark in lines.lines() {
        *found.entry(mark.to_owned()).or_default() += 1;
    }
    let once = |mark: &&String| mark.starts_with('n');
    let twice = found.iter().filter(|(mark, times)| once(mark) && **times > 1);
    let twice = twice.map(|(mark, times)| format!("the call {mark} was done {times} times"));
    let lost =
        done.iter().filter(|mark| !found.contains_key(*mark)).map(|mark| format!("the call {mark} was not done"));
    twice.chain(lost).collect()
}
