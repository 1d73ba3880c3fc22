//! Checks of tool sources: every problem of their files, and of loading them.

use std::collections::HashSet;
use std::path::Path;

use toolcrib::source::{self, Diagnostic, Severity};
use toolcrib::{Audit, Runtime, Tool};
use toolcrib_settings::unrequested::UnrequestedVariables;
use toolcrib_sources::options::{Compiling, ProgramUse};

/// Collects every problem of a source: of its files, and of loading it.
pub async fn problems(path: &Path, compiling: &Compiling) -> Vec<Diagnostic> {
    let mut problems = source::check(path);
    let is_error = |problem: &Diagnostic| problem.severity == Severity::Error;
    let errors: HashSet<String> =
        problems.iter().filter(|problem| is_error(problem)).map(|problem| problem.message.clone()).collect();
    let loaded = load_problems(path, compiling).await.into_iter();
    // A load reports several errors of one source in one message.
    let is_known = |problem: &Diagnostic| match problem.message.strip_prefix("invalid config: ") {
        Some(joined) => errors.iter().any(|error| joined.contains(error.as_str())),
        None => errors.contains(&problem.message),
    };
    problems.extend(loaded.filter(|problem| !is_known(problem)));
    problems
}

/// Converts an error into a diagnostic.
fn diagnostic(path: &Path, error: toolcrib::Error) -> Diagnostic {
    let (path, message) = match error {
        toolcrib::Error::Source { path, message } => (path, message),
        error => (path.to_path_buf(), error.to_string()),
    };
    Diagnostic { severity: Severity::Error, path, place: None, message }
}

/// Collects the problems of loading the tools together, compiling their programs and parsing their scripts.
async fn load_problems(path: &Path, compiling: &Compiling) -> Vec<Diagnostic> {
    let builder = compiling.settle(Runtime::builder(Audit::off()).source(path), ProgramUse::None);
    let runtime = match builder.build() {
        Ok(runtime) => runtime,
        Err(error) => return vec![diagnostic(path, error)],
    };
    let mut problems = Vec::new();
    let mut programs = HashSet::new();
    for tool in runtime.tools() {
        if let Some(unusable) = &tool.unusable {
            problems.push(diagnostic(&tool.origin.path, unusable.fault.clone()));
        } else if tool.body.program().is_some_and(|program| programs.insert(program)) {
            problems.extend(runtime.prepare(&tool.name).await.err().map(|error| diagnostic(&tool.origin.path, error)));
        }
    }
    problems.extend(runtime.tools().filter_map(unrequested_variables));
    match runtime.check_scripts().await {
        Ok(scripts) => problems.extend(scripts),
        Err(error) => problems.push(diagnostic(path, error)),
    }
    problems
}

/// Warns of a script that reads variables that it does not request.
fn unrequested_variables(tool: &Tool) -> Option<Diagnostic> {
    let missing = UnrequestedVariables::of(tool)?;
    let message = format!("tool {:?} reads {}: {}", tool.name, missing.message(), missing.advice());
    Some(Diagnostic { severity: Severity::Warning, path: tool.origin.path.to_path_buf(), place: None, message })
}
