//! Table of hostile cases: every case of `tests/hostile/cases.rs`, tried many times with both cores busy, and its
//! traces. `cargo bench --bench hostile -- [--json] [--runs N] [--spinning N] [WORDS OF A CASE]`.

#![allow(clippy::unwrap_used, reason = "code shared with the tests may panic")]

#[path = "../tests/hostile/cases.rs"]
mod cases;
#[path = "../tests/crib.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod crib;
#[path = "../tests/hostile/measure.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod measure;
#[path = "../tests/hostile/modules.rs"]
mod modules;
#[path = "../tests/hostile/programs.rs"]
mod programs;
#[path = "../tests/hostile/throwing.rs"]
mod throwing;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::{Command, ExitCode};

use serde::Serialize;

use cases::{CASES, Case};
use measure::{Plan, Run};

/// Results of a case.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    rows: &'static [u8],
    case: &'static str,
    expected: &'static [&'static str],
    outcomes: BTreeSet<String>,
    calls: usize,
    /// Milliseconds after the deadline if the call must end there, otherwise after its start.
    lateness: Figures,
    hangs: bool,
    host_kib: u64,
    guest_kib: u64,
    descriptors: i64,
    threads: i64,
    records: i64,
    /// Milliseconds of another tool's calls while these ran, and of the next call.
    beside: Option<Figures>,
    next: Figures,
    /// `true` if everything except the times is as expected.
    holds: bool,
}

#[derive(Serialize)]
struct Figures {
    p50: f64,
    p99: f64,
    max: f64,
}

impl Figures {
    fn of(mut all: Vec<f64>) -> Option<Self> {
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all.get(((all.len() as f64 * share).ceil() as usize).max(1) - 1).copied();
        Some(Self { p50: at(0.5)?, p99: at(0.99)?, max: *all.last()? })
    }
}

fn main() -> ExitCode {
    if measure::obey() {
        return ExitCode::SUCCESS;
    }
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let json = taken(&mut arguments, "--json", 0).is_some();
    let mut number = |name: &str, default: usize| {
        taken(&mut arguments, name, 1).map_or(default, |value| value.parse().expect("a whole number"))
    };
    let plan =
        Plan { runs: number("--runs", 20), spinning: number("--spinning", 2), at_length: true, is_staged: false };
    let words = arguments.join(" ");
    let chosen = CASES.iter().filter(|case| case.name.contains(&words));
    let mut all_hold = true;
    if !json {
        say(&format!(
            "{} runs a case, beside {} guests that compute without end; times in ms",
            plan.runs, plan.spinning
        ));
        say(&head());
    }
    for case in chosen {
        let plan = Plan { runs: if case.rounds[0] > 1 { 1 } else { plan.runs }, ..plan };
        let program = Command::new(std::env::current_exe().expect("this program"));
        let row = Row::of(case, &measure::tried(case, plan, program));
        all_hold &= row.holds;
        say(&if json { serde_json::to_string(&row).expect("JSON") } else { row.line() });
    }
    if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Removes a flag and its value from the arguments; returns the value, or the flag itself if it has none.
fn taken(arguments: &mut Vec<String>, name: &str, values: usize) -> Option<String> {
    let at = arguments.iter().position(|word| word == name)?;
    arguments.drain(at..=at + values).next_back()
}

fn say(line: &str) {
    writeln!(io::stdout(), "{line}").expect("standard output can be written");
}

fn head() -> String {
    format!(
        "{:>5}  {:<47} {:<12} {:>6} {:>9} {:>8} {:>8} {:>9} {:>3} {:>3} {:>4} {:>14} {:>8}  holds",
        "row",
        "case",
        "outcome",
        "calls",
        "late p50",
        "p99",
        "max",
        "host KiB",
        "fd",
        "thr",
        "rec",
        "beside p50/max",
        "next p50"
    )
}

impl Row {
    fn of(case: &Case, runs: &[Run]) -> Self {
        let outcomes: BTreeSet<_> = runs.iter().flat_map(|run| run.outcomes.keys().cloned()).collect();
        let hangs = case.hangs();
        let over = if hangs { case.deadline as f64 } else { 0.0 };
        let most = |of: fn(&Run) -> i64| runs.iter().map(of).max().unwrap_or_default();
        let max_bytes = |of: fn(&Run) -> u64| runs.iter().map(of).max().unwrap_or_default();
        let (descriptors, threads) = (most(|run| run.descriptors), most(|run| run.threads));
        let records = most(|run| run.records.abs());
        let right = outcomes.iter().all(|outcome| case.ends.contains(&outcome.as_str()));
        let said = runs.iter().all(|run| run.said.contains(case.says) && run.in_order && run.next == "ok");
        Self {
            rows: case.rows,
            case: case.name,
            expected: case.ends,
            calls: runs.iter().map(|run| run.took.len()).sum(),
            lateness: Figures::of(runs.iter().flat_map(|run| &run.took).map(|took| took - over).collect())
                .expect("a call"),
            hangs,
            host_kib: max_bytes(|run| run.host_bytes) >> 10,
            guest_kib: max_bytes(|run| run.guest_bytes) >> 10,
            descriptors,
            threads,
            records,
            beside: Figures::of(runs.iter().flat_map(|run| run.beside.clone()).collect()),
            next: Figures::of(runs.iter().map(|run| run.next_took).collect()).expect("a run"),
            holds: right && said && descriptors <= 0 && threads <= 0 && records == 0,
            outcomes,
        }
    }

    fn line(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(ToString::to_string).collect();
        let outcomes: Vec<_> = self.outcomes.iter().map(String::as_str).collect();
        let Figures { p50, p99, max } = self.lateness;
        // A call that must not hang has a duration instead of a lateness.
        let mark = if self.hangs { '+' } else { ' ' };
        let beside = self.beside.as_ref().map_or("-".to_owned(), |it| format!("{:.1}/{:.1}", it.p50, it.max));
        format!(
            "{:>5}  {:<47} {:<12} {:>6} {mark}{p50:>8.1} {p99:>8.1} {max:>8.1} {:>9} {:>3} {:>3} {:>4} {beside:>14} {:>8.1}  {}",
            rows.join(","),
            self.case,
            outcomes.join(","),
            self.calls,
            self.host_kib,
            self.descriptors,
            self.threads,
            self.records,
            self.next.p50,
            if self.holds { "yes" } else { "NO" },
        )
    }
}
