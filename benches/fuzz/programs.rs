//! Fuzzing of the readers of programs. It links `toolcrib-component` without an engine, and so tries far more inputs a
//! second than the target `component`, which compiles each program.
//!
//! ```sh
//! cargo bench --bench fuzz_programs -- all -max_total_time=600
//! ```

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[cfg(unix)]
mod driver;
#[cfg(unix)]
mod program;
#[cfg(unix)]
mod target;

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    driver::main(&program::ALL)
}

/// Reports that libFuzzer is not built on this system.
#[cfg(not(unix))]
fn main() -> ExitCode {
    println!("fuzzing needs a Unix system");
    ExitCode::FAILURE
}
