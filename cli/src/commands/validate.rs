//! `toolcrib validate`: every problem of tool sources. No tool is executed: the interpreter parses scripts in the sandbox,
//! with nothing granted.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use toolcrib::source::{Diagnostic, Severity};
use toolcrib_authoring::check;
use toolcrib_base::{progress, render};
use toolcrib_packages::registries::{self, SourceRegistries};
use toolcrib_sources::options::{Compiling, default_source};

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
        problems.extend(progress::during("looking at the tools", check::problems(path, &args.compiling)).await);
    }
    for problem in &mut problems {
        problem.path = render::from_here(&problem.path).to_path_buf();
    }
    if args.json {
        render::print_json(&serde_json::to_string(&problems)?)?;
    } else if !problems.is_empty() {
        let lines: Vec<String> = problems.iter().map(line).collect();
        render::print_screen(&lines.join("\n"))?;
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
