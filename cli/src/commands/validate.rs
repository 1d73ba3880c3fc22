//! `toolcrib validate`: every problem of tool sources. No tool is executed: the interpreter parses scripts in the sandbox,
//! with nothing granted.

use std::collections::HashSet;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toolcrib::source::{self, Diagnostic, Severity};
use toolcrib::{Audit, Runtime, Tool};

use crate::options::{Compiling, SourceRegistries, default_source};
use crate::unrequested::UnrequestedVariables;
use crate::{progress, registries, render};

const EXAMPLES: &str = "\
Examples:
  toolcrib validate ./tools.json
  toolcrib validate .harness
  toolcrib validate ./components --strict
  toolcrib validate --json | jq -r '.[] | \"\\(.path):\\(.line // 1)\"'

Each problem is one line on standard output: its file, with line and column if they are known, and \
the fix. Scripts are parsed by their interpreter, in the sandbox and with nothing granted; no tool \
is executed.
Exit status: 0 without errors, 1 with errors, or with warnings under --strict.";

/// Check tool sources and report every problem.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// A `tools.json`, a Markdown file, an Agent Tool definition, a component, a folder with any of them, a bundle, or an
    /// `oci://` reference [default:
    /// ./tools.json, else ./.harness]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The same as PATH, in the form of the other commands; repeatable
    #[arg(long, value_name = "PATH")]
    tools: Vec<PathBuf>,
    /// Fail on warnings too
    #[arg(long)]
    strict: bool,
    /// Print a JSON array, one object per problem
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compiling: Compiling,
    #[command(flatten)]
    registries: SourceRegistries,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let mut problems = Vec::new();
    let mut paths = [args.paths, args.tools].concat();
    if paths.is_empty() {
        paths.push(default_source()?);
    }
    let _held = registries::localize(&mut paths, &args.registries, args.compiling.cache()).await?;
    for path in &paths {
        problems.extend(progress::during("looking at the tools", self::problems(path, &args.compiling)).await);
    }
    for problem in &mut problems {
        problem.path = render::from_here(&problem.path).to_path_buf();
    }
    if args.json {
        render::print_json(&serde_json::to_string(&problems)?)?;
    } else if !problems.is_empty() {
        let lines: Vec<String> = problems.iter().map(line).collect();
        render::print(&lines.join("\n"))?;
    }
    let count = |severity| problems.iter().filter(|problem| problem.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let found = match errors + warnings {
        0 => "no problems found".to_owned(),
        _ => format!("{}, {}", render::counted(errors, "error"), render::counted(warnings, "warning")),
    };
    render::aside(&format!("{}, {found}", render::counted(paths.len(), "source")));
    Ok(if errors > 0 || (args.strict && warnings > 0) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Collects every problem of a source: of its files, and of loading it.
pub(crate) async fn problems(path: &Path, compiling: &Compiling) -> Vec<Diagnostic> {
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
    let builder = compiling.settle(Runtime::builder(Audit::off()).source(path));
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

/// Formats a problem as one line.
fn line(problem: &Diagnostic) -> String {
    let (severity, tone) = match problem.severity {
        Severity::Error => ("error:", render::Tone::Bad),
        Severity::Warning => ("warning:", render::Tone::Doubtful),
    };
    format!("{} {}", render::paint(tone, severity, io::stdout().is_terminal()), placed(problem))
}

/// Formats the place and the message of a problem.
fn placed(problem: &Diagnostic) -> String {
    let place = problem.place.map(|place| format!(":{}:{}", place.line, place.column)).unwrap_or_default();
    render::one_line(&format!("{}{place}: {problem}", render::from_here(&problem.path).display()))
}

/// Fails with the first error among problems.
///
/// # Errors
///
/// The error with its place, and a hint to list every problem of the source.
pub(crate) fn refuse(problems: &[Diagnostic], source: &Path) -> anyhow::Result<()> {
    match problems.iter().find(|problem| problem.severity == Severity::Error) {
        None => Ok(()),
        Some(problem) => {
            let hint = format!("`toolcrib validate {}` reports every problem", source.display());
            Err(render::Advice::new(placed(problem), hint).into())
        }
    }
}
