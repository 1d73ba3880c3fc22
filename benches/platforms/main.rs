//! Compares the answers of the program on several platforms: the same tools, calls and files, byte by byte.
//!
//! ```sh
//! cargo bench --bench platforms -- [--long] [--only GROUP] NAME=COMMAND NAME=COMMAND…
//! ```
//!
//! COMMAND is a runner, if the platform needs one, and the whole path of the program, such as `wine /…/toolcrib.exe`. The
//! answers of the other platforms are compared with the answers of the first; `.ci/platforms` passes the commands.
//! A difference fails unless `differences.rs` names it; a case during which Wine itself failed is run again. Programs
//! lie in the target folder: the crib, the guests of the tests, and, if `guest-sdk/examples/build` has built them, the
//! examples in other languages.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]
#![allow(clippy::unwrap_used, reason = "code shared with the tests may panic")]

mod answer;
#[path = "../../tests/hostile/cases.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod attacks;
mod cases;
#[path = "../../tests/crib.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod crib;
mod differences;
#[path = "../../tests/toolbox/layout.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod layout;
#[path = "../../tests/hostile/modules.rs"]
mod modules;
mod platform;
#[path = "../../tests/hostile/programs.rs"]
mod programs;
mod report;
#[path = "../../tests/hostile/throwing.rs"]
mod throwing;
mod toolbox;

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use answer::{Answer, add_records};
use cases::Case;
use platform::Platform;
use toolbox::Grant;

const USAGE: &str = "usage: cargo bench --bench platforms -- [--long] [--only GROUP] NAME=COMMAND NAME=COMMAND...";
/// Concurrent cases.
const WORKERS: usize = 2;
/// Group of the cases of the shipped tools.
const TOOLBOX: &str = "shipped tools";

/// Answers by platform, group and case.
type Answers = BTreeMap<(usize, &'static str, String), Answer>;

/// Unit of work: the platform, the number of the folder, and the cases in it.
type Job<'a> = (usize, usize, Work<'a>);

enum Work<'a> {
    Case(&'a Case),
    Grant(&'a Grant),
}

fn main() -> ExitCode {
    match compare() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            println!("FAILED: {why}");
            ExitCode::from(2)
        }
    }
}

fn compare() -> Result<bool, String> {
    let folder = crib::target().join("platforms");
    let (mut is_long, mut only, mut platforms) = (false, None, Vec::new());
    let mut given = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--long" => is_long = true,
            "--only" => only = given.next(),
            text if text.starts_with('-') => return Err(USAGE.to_owned()),
            text => platforms.push(Platform::parse(text, &folder)?),
        }
    }
    if platforms.is_empty() {
        return Err(USAGE.to_owned());
    }
    let is_wanted = |group: &str| only.as_ref().is_none_or(|only| group.contains(only.as_str()));
    let cases: Vec<_> =
        cases::all().into_iter().filter(|case| is_wanted(case.group) && (is_long || !case.is_long)).collect();
    let grants = if is_wanted(TOOLBOX) { toolbox::grants() } else { Vec::new() };
    pack(&platforms[0], &folder)?;
    let started = Instant::now();
    let answers = run(&platforms, &cases, &grants)?;
    let count = cases.len() + grants.iter().map(Grant::len).sum::<usize>();
    println!("{count} cases on {} platforms in {:.0} s", platforms.len(), started.elapsed().as_secs_f64());
    report::doctor(&platforms).map_err(|error| error.to_string())?;
    Ok(report::table(&platforms, &answers, only.is_none() && is_long))
}

/// Packs the bundle that every platform gets, by the first of them.
fn pack(first: &Platform, folder: &Path) -> Result<(), String> {
    let crib = crib::toolbox().display().to_string();
    let tar = folder.join("packed.tar").display().to_string();
    let _ = fs::remove_file(&tar);
    let words = ["bundle", "pack", &crib, "-o", &tar, "--name", "acme/tools", "--version", "1.0.0"].map(str::to_owned);
    let place = first.folder_of(usize::MAX).map_err(|error| error.to_string())?;
    let mut answer = Answer::default();
    first.run(&place, &words, &mut answer).map_err(|error| error.to_string())?;
    if Path::new(&tar).is_file() { Ok(()) } else { Err(format!("the bundle was not packed: {answer:?}")) }
}

/// Runs all cases on all platforms; a long job of each platform begins first.
fn run(platforms: &[Platform], cases: &[Case], grants: &[Grant]) -> Result<Answers, String> {
    let works = || grants.iter().map(Work::Grant).chain(cases.iter().map(Work::Case)).enumerate();
    let jobs = (0..platforms.len()).flat_map(|at| works().map(move |(number, work)| (at, number, work)));
    let jobs: Mutex<VecDeque<Job<'_>>> = Mutex::new(jobs.collect());
    let (answers, failed) = (Mutex::new(Answers::new()), Mutex::new(None));
    let next = || jobs.lock().expect("no worker panicked").pop_front();
    let work = || {
        while let Some((at, number, work)) = next() {
            let (platform, started) = (&platforms[at], Instant::now());
            let (group, made) = match work {
                Work::Case(case) => {
                    let made = platform.repeat(number, |folder| answered(platform, folder, case));
                    (case.group, made.map(|made| vec![(case.name.clone(), made)]))
                }
                Work::Grant(grant) => (TOOLBOX, platform.repeat(number, |folder| grant.run(platform, folder))),
            };
            *platform.took.lock().expect("no worker panicked") += started.elapsed();
            match made {
                Ok(made) => {
                    let mut answers = answers.lock().expect("no worker panicked");
                    answers.extend(made.into_iter().map(|(name, answer)| ((at, group, name), answer)));
                }
                Err(error) => {
                    *failed.lock().expect("no worker panicked") = Some(format!("{}: {group}: {error}", platform.name))
                }
            }
        }
    };
    thread::scope(|scope| (0..WORKERS).for_each(|_| drop(scope.spawn(work))));
    match failed.into_inner().expect("no worker panicked") {
        Some(error) => Err(error),
        None => Ok(answers.into_inner().expect("no worker panicked")),
    }
}

fn answered(platform: &Platform, folder: &Path, case: &Case) -> io::Result<Answer> {
    (case.prepare)(folder);
    let mut answer = Answer::default();
    for arguments in &case.runs {
        platform.run(folder, arguments, &mut answer)?;
    }
    add_records(&mut answer, folder, &platform.masks(folder));
    answer.add_files("files", &folder.join("work"));
    if case.is_unordered {
        answer.sort();
    }
    Ok(answer)
}
