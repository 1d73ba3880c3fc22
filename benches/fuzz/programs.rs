//! Fuzzing of the readers of programs. It links `toolcrib-component` alone, without an engine, and so tries far more inputs a
//! second than the target `component`, which compiles each program.
//!
//! ```sh
//! cargo bench --bench fuzz_programs -- all -max_total_time=600
//! ```

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

mod driver;
mod program;
mod target;

use std::process::ExitCode;

fn main() -> ExitCode {
    driver::main(&program::ALL)
}
