//! Returns its arguments.

use std::process::ExitCode;

use toolcrib_guest::Value;

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Value| Ok(args))
}
