//! Attack catalogue: attacks by a tool, a model or the environment on the host, each in a separate process, with its
//! traces measured. `cargo bench --bench hostile` repeats the same cases and prints the table.

pub(crate) mod cases;
mod life;
pub(crate) mod measure;
pub(crate) mod modules;
mod probes;
pub(crate) mod programs;
mod rows;
mod text;
mod throwing;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cases::{CASES, Case, Program};
use measure::{Plan, Run, obey, tried};
use rows::{LAST, NOT_BUILT, PROBES, ROWS};

/// Maximum delay of a call on a busy machine before a test reports a hang, in milliseconds.
const BOUND: f64 = 20_000.0;
/// Maximum bytes that the host may hold for a call beside its guest's memories.
const BESIDE: u64 = 8 << 20;
/// The same in a stage, which keeps up to 10,000 changed entries of the call.
const BESIDE_STAGED: u64 = 24 << 20;

/// Entry of the separate process of a case; without orders it does nothing.
#[test]
#[ignore = "it is started by the tests of the cases, in a process of its own"]
fn a_process_of_its_own() {
    obey();
}

/// Runs every case of these rows, and asserts that it left no traces.
fn hold(rows: std::ops::RangeInclusive<u8>) {
    let of = |case: &&Case| case.rows.first().map_or(*rows.start() == 0, |row| rows.contains(row));
    CASES.iter().filter(of).for_each(|case| hold_one(case, false));
}

fn hold_one(case: &Case, is_staged: bool) {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "hostile::a_process_of_its_own", "--ignored", "--nocapture"]);
    for run in tried(case, Plan { runs: 1, spinning: 0, at_length: false, is_staged }, program) {
        judge(case, &run, if is_staged { BESIDE_STAGED } else { BESIDE });
    }
}

fn judge(case: &Case, run: &Run, beside: u64) {
    let name = case.name;
    assert!(run.outcomes.keys().all(|outcome| case.ends.contains(&outcome.as_str())), "{name}: {run:?}");
    assert!(run.said.contains(case.says), "{name}: {run:?}");
    let (due, late) = (case.deadline as f64, case.deadline as f64 + BOUND);
    assert!(run.took.iter().all(|took| *took < late && (!case.hangs() || *took >= due)), "{name}: {run:?}");
    assert!(run.in_order, "{name}: a result has another call's identifier");
    assert_eq!((run.next.as_str(), run.records), ("ok", 0), "{name}: {run:?}");
    if cfg!(target_os = "linux") {
        assert!(run.descriptors <= 0 && run.threads <= 0, "{name}: {run:?}");
        assert!(run.host_bytes <= beside, "{name}: {run:?}");
    }
}

#[test]
fn bombs_end_as_they_should_and_leave_nothing() {
    hold(0..=13);
}

#[test]
fn hung_calls_end_as_they_should_and_leave_nothing() {
    hold(14..=19);
}

#[test]
fn floods_and_broken_answers_end_as_they_should_and_leave_nothing() {
    hold(20..=LAST);
}

#[test]
#[cfg(target_os = "linux")]
fn attacks_on_a_folder_end_as_they_should_in_a_stage_and_leave_nothing() {
    CASES.iter().filter(|case| case.folder.is_some()).for_each(|case| hold_one(case, true));
}

/// Tests of this repository, as `module::name`, with the modules below the folder of each.
fn tests() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    let of_cli = ["base", "settings", "packages", "sources", "authoring", "agent", "mcp", "console"];
    let of_cli = of_cli.map(|name| format!("cli/{name}/src"));
    for folder in ["tests", "runtime/src", "cli/src"].into_iter().chain(of_cli.iter().map(String::as_str)) {
        for path in sources(&root.join(folder)) {
            let module = path.strip_prefix(root.join(folder)).unwrap().with_extension("");
            let module = module.to_string_lossy().replace('/', "::");
            let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
            let text = fs::read_to_string(&path).unwrap();
            for test in text.split("#[test]").skip(1).chain(text.split("#[tokio::test").skip(1)) {
                let name = test.split("fn ").nth(1).and_then(|rest| rest.split('(').next());
                found.extend(name.map(|name| format!("{module}::{name}")));
            }
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let deeper = |path: PathBuf| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    };
    entries.flat_map(deeper).filter(|path| path.extension().is_some_and(|found| found == "rs")).collect()
}

#[test]
fn every_kind_of_attack_has_a_case_or_a_test() {
    let tests = tests();
    assert!(tests.len() > 300, "the test still finds tests: {}", tests.len());
    let named = ROWS.iter().flat_map(|(_, names)| *names).chain(PROBES.iter().flat_map(|(_, names)| *names));
    let absent: Vec<_> = named.filter(|name| !tests.contains(**name)).collect();
    assert_eq!(absent, Vec::<&&str>::new(), "no such tests");
    let tried = CASES.iter().flat_map(|case| case.rows).chain(ROWS.iter().map(|(row, _)| row));
    let known: BTreeSet<u8> = tried.chain(&NOT_BUILT).copied().collect();
    assert_eq!(known, (1..=LAST).collect());
}

#[test]
fn every_case_has_a_name_of_its_own() {
    let names: BTreeSet<_> = CASES.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), CASES.len());
    assert!(CASES.iter().all(|case| Case::named(case.name).rows == case.rows));
}

/// A hostile program that is not called proves nothing.
#[test]
fn every_test_guest_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    let guests = sources(&root.join("guests/src/bin"));
    let guests = guests.iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned());
    let tests = sources(&root).into_iter().filter(|path| !path.starts_with(root.join("guests")));
    let tests: String = tests.map(|path| fs::read_to_string(path).unwrap()).collect();
    let in_case = |name: &str| CASES.iter().any(|case| matches!(case.program, Program::Guest(guest) if guest == name));
    let untested: Vec<_> = guests.filter(|name| !in_case(name) && !tests.contains(&format!("\"{name}\""))).collect();
    assert_eq!(untested, Vec::<String>::new());
}
