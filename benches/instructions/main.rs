//! Check of the cost of a call in processor instructions, which hardly differ between the runs of one build: calls through
//! the whole pipeline, and one `toolcrib call` with a manifest of few and of many tools. Each is counted by `valgrind` and
//! compared with its figure in `recorded.txt`, or in `recorded-dev.txt` for code that is not optimised. The check fails if one
//! takes 7 % more: the counts of one build differ by 0.3 % at most.
//!
//! `.ci/instructions` runs it, and `.ci/instructions --dev` without optimisation, where every change is checked; with `--record`
//! the figures are replaced after a wanted change.
//! `cargo bench --bench instructions -- --times` measures the times of a start in its place, and `-- --profile`, which
//! `.ci/profile` runs, draws where the time of a call goes.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[path = "../built.rs"]
#[allow(dead_code, reason = "other benches use the rest")]
mod built;
mod counted;
mod figures;
mod profile;
mod times;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use tempfile::TempDir;

use counted::Workload;
use figures::Figures;

/// Calls of the two counts. Their difference leaves out what happens once.
const CALLS: [u64; 2] = [100, 300];
/// Numbers of tools in the manifest of the command.
const TOOLS: [usize; 2] = [1, 101];
/// Maximum increase, in percent: the check fails beyond it.
const MAX_INCREASE: u64 = 7;
/// Program that counts.
const COUNTER: &str = "valgrind";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == counted::FLAG) {
        counted::run(&arguments[at + 1..]);
        return ExitCode::SUCCESS;
    }
    if let Some(at) = arguments.iter().position(|argument| argument == times::FLAG) {
        times::measure(&arguments[at + 1..]);
        return ExitCode::SUCCESS;
    }
    let Some(counter) = Counter::find() else {
        println!("`{COUNTER}` counts the instructions and is missing; `.ci/instructions` installs it");
        return ExitCode::FAILURE;
    };
    if arguments.iter().any(|argument| argument == profile::FLAG) {
        profile::run(&counter);
        return ExitCode::SUCCESS;
    }
    let starts = TOOLS.map(|tools| (format!("start with {tools} tools"), counter.of_command(tools)));
    let measured = Figures::from_iter([("call".to_owned(), counter.of_call())].into_iter().chain(starts));
    if arguments.iter().any(|argument| argument == "--record") {
        measured.record();
    }
    match measured.compare(&Figures::recorded(), MAX_INCREASE) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Counts instructions of programs.
struct Counter {
    folder: TempDir,
}

impl Counter {
    /// Finds the program that counts.
    fn find() -> Option<Self> {
        let found = Command::new(COUNTER).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok_and(|status| status.success()).then(|| Self { folder: TempDir::new().expect("a folder") })
    }

    /// Returns the instructions of one call in a program that makes many.
    fn of_call(&self) -> u64 {
        let workload = self.workload("calls", 1);
        count("none", &this_program(), &workload.arguments(1), &workload);
        let [few, many] = CALLS.map(|calls| count("callgrind", &this_program(), &workload.arguments(calls), &workload));
        let more = many.checked_sub(few).filter(|more| *more > 0);
        more.expect("more calls take more instructions") / (CALLS[1] - CALLS[0])
    }

    /// Returns the instructions of one command, from its start to its end, with a warm cache.
    fn of_command(&self, tools: usize) -> u64 {
        let workload = self.workload(&format!("start-{tools}"), tools);
        count("none", &this_program(), &workload.arguments_alone(), &workload);
        count("callgrind", Path::new(built::TOOLCRIB), &workload.command(), &workload)
    }

    /// Creates a workload. Its cache is warmed under the counter, because the processor that it shows to programs lacks some
    /// features of the real one.
    fn workload(&self, name: &str, tools: usize) -> Workload {
        Workload::in_folder(&self.folder.path().join(name), tools)
    }
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

/// Runs a program under a tool of the counter, and returns the number of its instructions; 0 if the tool is `none`.
fn count(tool: &str, program: &Path, arguments: &[String], workload: &Workload) -> u64 {
    let mut command = Command::new(COUNTER);
    command.arg(format!("--tool={tool}")).current_dir(workload.home());
    if tool == "callgrind" {
        command.arg("--callgrind-out-file=/dev/null");
    }
    command.arg(program).args(arguments);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", workload.home());
    let output = command.output().expect("the counter starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", program.display());
    if tool == "none" {
        return 0;
    }
    let collected = errors.lines().find_map(|line| line.split_once("Collected : "));
    let counted = collected.and_then(|(_, number)| number.trim().parse().ok()).filter(|counted| *counted > 0);
    counted.unwrap_or_else(|| panic!("{}: the counter reports no instructions: {errors}", program.display()))
}
