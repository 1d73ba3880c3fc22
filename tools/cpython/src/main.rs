//! Builds an interpreter of programs from a published build of CPython. The package comes from its registry, by the user's own tools;
//! one module is made of it and of the crate `guest`, with one memory, and then a component with a snapshot after its start.

#[path = "../language.rs"]
mod language;
mod merge;
mod package;
mod packages;
mod steps;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use package::Build;

const USAGE: &str = "usage: toolcrib-cpython [--numeric] INTERPRETER [PACKAGES]

Builds an interpreter of programs from CPython, and writes it to a file. With --numeric it has numpy, pandas, scipy and others.
PACKAGES is a folder with packages in Python alone, such as `pip install --target=PACKAGES NAME` makes.";

fn main() -> ExitCode {
    let mut arguments: Vec<_> = env::args_os().skip(1).map(PathBuf::from).collect();
    let is_numeric = arguments.first().is_some_and(|first| first == "--numeric");
    if is_numeric {
        arguments.remove(0);
    }
    let build = if is_numeric { Build::Numeric } else { Build::Plain };
    let (interpreter, packages) = match &arguments[..] {
        [interpreter] => (interpreter, None),
        [interpreter, packages] => (interpreter, Some(&**packages)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match steps::build(build, interpreter, packages) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
