//! Growth of costs: times by the number of tools, the size of arguments and results, the calls at once, the records of the
//! log, and the turns of a conversation. No curve may grow faster than linearly: over the last decade of its sizes, the
//! slope of the time over the size, both logarithmic, is at most 1.3, else the program fails.
//!
//! ```sh
//! cargo bench --bench growth                  # all axes: a few minutes
//! cargo bench --bench growth -- audit tools   # some of them
//! ```
//!
//! A processor has to be idle: other work slows long runs more than short ones, which have a free moment.
//!
//! Each axis replaces its plot in `cli/docs/src/growth` and its table in `cli/docs/src/growth.md`, a page of the book.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

mod audit;
#[path = "../built.rs"]
#[allow(dead_code, reason = "other benches use the rest")]
mod built;
mod calls;
mod conversations;
mod curve;
mod payload;
mod plot;
mod report;
mod tools;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use built::{TOOLCRIB, guest, target, tokio};
use curve::{Axis, Curve, MAX_SLOPE};

/// Times that an axis is measured until no curve is steep: other work of the machine slows long runs more than short ones.
const MAX_ATTEMPTS: usize = 3;
/// Measures an axis.
type Measure = fn() -> Axis;
/// Axes by name.
const AXES: [(&str, Measure); 6] = [
    ("tools", tools::axis),
    ("arguments", payload::arguments),
    ("results", payload::results),
    ("calls", calls::axis),
    ("audit", audit::axis),
    ("conversations", conversations::axis),
];

fn main() -> ExitCode {
    let chosen: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let names = AXES.map(|(name, _)| name);
    if let Some(unknown) = chosen.iter().find(|name| !names.contains(&name.as_str())) {
        println!("`{unknown}` is not an axis: these are {}", names.join(", "));
        return ExitCode::from(2);
    }
    let mut steep = Vec::new();
    for (name, measure) in AXES {
        if !chosen.is_empty() && !chosen.iter().any(|chosen| chosen == name) {
            continue;
        }
        let started = Instant::now();
        let mut axis = measure();
        for _ in 1..MAX_ATTEMPTS {
            if axis.curves.iter().all(Curve::grows_linearly) {
                break;
            }
            println!("{name}: a curve is steep, as the load of the machine may make it; measuring again");
            axis.lower(measure());
        }
        println!("\n{name}: {} ({:.0} s)\n\n{}", axis.title, started.elapsed().as_secs_f64(), report::table(&axis));
        report::write(name, &axis);
        let curves = axis.curves.iter().filter(|curve| !curve.grows_linearly());
        steep.extend(curves.map(|curve| format!("{name}, {}: slope {:.2}", curve.name, curve.slope())));
    }
    if steep.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("FAILED: more than linear (slope above {MAX_SLOPE}):\n  {}", steep.join("\n  "));
    ExitCode::FAILURE
}

/// Folder of compiled code, which outlasts a run.
fn cache() -> PathBuf {
    target().join("test-cache")
}

/// Runs toolcrib with its state in a folder and nothing of this process's environment. Its output is dropped.
fn toolcrib(home: &Path, words: &[&str]) {
    let mut command = Command::new(TOOLCRIB);
    command.args(words).current_dir(home).env_clear().env("HOME", home).env("TOOLCRIB_CACHE_DIR", cache());
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output().expect("it starts");
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}
