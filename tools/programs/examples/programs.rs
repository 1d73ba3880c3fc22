//! Records the built programs of the shipped tools and of the interpreter, or compares them with their sources.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line talks on them")]

use std::env;
use std::path::Path;
use std::process::ExitCode;

use toolcrib_programs::{Group, Repository};

const USAGE: &str = "\
usage: cargo run -p toolcrib-programs --example programs -- COMMAND

  status   check by digests that no source changed since the programs were recorded
  record   compile the programs of changed sources, and keep them with the digests of all sources
  check    compile all programs, and compare every byte with the kept ones
  passed GROUP CHECK…      fail unless this command has passed with the sources of the group and the compiler
  add-passed GROUP CHECK…  add a command that has passed";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let done = match root.canonicalize().map(|root| Repository::at(&root)) {
        Ok(Some(repository)) => match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["status"] => status(&repository),
            ["record"] => repository.record(&repository.root().join("target")),
            ["check"] => check(&repository),
            ["passed", group, ref command @ ..] => passed(&repository, group, command),
            ["add-passed", group, ref command @ ..] => {
                named(group).and_then(|group| repository.add_passed(group, command))
            }
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        },
        _ => Err(format!("`{}` is not the repository", root.display())),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn status(repository: &Repository) -> Result<(), String> {
    let changed: Vec<&str> = repository.changed()?.into_iter().map(Group::name).collect();
    if changed.is_empty() {
        println!("the kept programs are those of their sources");
        return Ok(());
    }
    let changed = changed.join(" and ");
    Err(format!(
        "sources of the {changed} changed: run `cargo run -p toolcrib-programs --example programs -- record`, and commit the programs"
    ))
}

fn named(group: &str) -> Result<Group, String> {
    Group::named(group).ok_or_else(|| format!("no group of programs is called `{group}`"))
}

fn passed(repository: &Repository, group: &str, command: &[&str]) -> Result<(), String> {
    match repository.has_passed(named(group)?, command)? {
        true => Ok(()),
        false => Err("the check has not passed with these sources and this compiler".to_owned()),
    }
}

fn check(repository: &Repository) -> Result<(), String> {
    status(repository)?;
    let different = repository.differences(&repository.root().join("target"))?;
    if different.is_empty() {
        println!("every kept program is equal to the one that its sources give");
        return Ok(());
    }
    Err(format!("other bytes than the kept ones: {}", different.join(", ")))
}
