//! Check of a program before anything runs: syntax, features that the interpreter lacks, results that would differ from those
//! of Python, and every call `tools.NAME(...)` against the schema of the tool. All problems are reported at once, each with
//! what to write instead. A program that can run correctly has no problem: whatever the source alone does not decide is left
//! to the run.

mod absent;
mod calls;
mod catalog;
mod classes;
mod findings;
mod generators;
mod library;
mod names;
mod syntax;
mod walk;

use monty::MontyRun;
use monty_types::CompileOptions;
use ruff_python_parser::parse_module;

use crate::failure;
use crate::nesting;
use code_guest::tools::Tools;

pub(crate) use catalog::{builtin_replacement, name_replacement};
use findings::Subject;
pub(crate) use library::is_whole_date;

/// Problem in a program. Lines and columns count from 1; 0 if unknown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Line.
    pub(crate) line: u32,
    /// Column, in characters.
    pub(crate) column: u32,
    /// Message.
    pub(crate) message: String,
}

/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 50;

/// Lists the problems of a program. `earlier` are the functions that the programs before it in its session defined; none if
/// there were no programs.
pub(crate) fn check(source: &str, tools: &Tools, earlier: Option<&[&str]>) -> Vec<Problem> {
    if let Some(message) = nesting::problem(source) {
        return vec![Problem { line: 0, column: 0, message }];
    }
    let found = match parse_module(source) {
        Ok(parsed) => walk::problems(source, parsed.suite(), tools, earlier),
        Err(_) => Vec::new(),
    };
    // The compiler reports one problem: invalid syntax, or a feature that it lacks.
    let compiled = MontyRun::new(source.to_owned(), "main.py", Vec::new(), CompileOptions::default());
    let refused = compiled.err().map(|error| {
        let place = error.traceback().last().map(|frame| frame.start).unwrap_or_default();
        let message = failure::plain(error.message().unwrap_or("the program is not valid")).into_owned();
        Problem { line: place.line, column: place.column, message }
    });
    // A message of this check says more than the compiler's.
    let explained = |problem: &Problem| {
        found.iter().any(|(other, subject)| *subject == Subject::Syntax && other.line == problem.line)
    };
    let mut problems: Vec<Problem> = refused.into_iter().filter(|problem| !explained(problem)).collect();
    problems.extend(found.into_iter().map(|(problem, _)| problem));
    problems.sort_by_key(|problem| (problem.line, problem.column));
    problems.truncate(MAX_PROBLEMS);
    problems
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
