//! Fuzzing of the library: sources, inputs, paths, networks, the log and stored data. The programs of tools have targets of
//! their own, in `programs.rs`.
//!
//! ```sh
//! cargo bench --bench fuzz                                              # the saved inputs, once
//! export RUSTC_WORKSPACE_WRAPPER=$PWD/benches/fuzz/rustc.sh
//! cargo bench --bench fuzz -- all -max_total_time=600                   # ten minutes a target
//! cargo bench --bench fuzz -- audit target/fuzz/findings/audit/crash-…  # one input again
//! ```

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[cfg(unix)]
mod driver;
#[cfg(unix)]
mod target;
#[cfg(unix)]
mod targets;

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    driver::main(&targets::ALL)
}

/// Reports that libFuzzer is not built on this system.
#[cfg(not(unix))]
fn main() -> ExitCode {
    println!("fuzzing needs a Unix system");
    ExitCode::FAILURE
}
