//! `toolcrib test`: runs the test cases of a tool, or of all tools at and below a folder, and prints the results.

mod cases;
mod execution;
mod subject;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use toolcrib::tool::Limits;
use toolcrib_authoring::changes::Changes;
use toolcrib_base::render::{self, Advice, counted};
use toolcrib_base::{input, interrupt, progress};
use toolcrib_sources::options::Sources;

use super::validate;
use execution::{CaseResult, run_case};
use subject::Subject;

const EXAMPLES: &str = "\
Examples:
  toolcrib test                                all cases here and below
  toolcrib build greet && toolcrib test greet  the cases in greet/tests.json
  toolcrib test .harness/tools/count.md        the cases in count.tests.json
  toolcrib test greet --watch                  again after each change
  toolcrib test target/crib/tools/bin/get_time.wasm --cases time.json
  toolcrib test greet --json | jq -r '.cases[] | select(.ok | not) | .name'

  {\"cases\": [
    {\"name\": \"greets\", \"arguments\": {\"name\": \"Ada\"},
     \"expect\": {\"answer\": \"hello, Ada\"}},
    {\"name\": \"needs a name\", \"expect\": {\"error\": \"name\"}},
    {\"name\": \"tidies up\", \"tool\": \"tidy\", \"arguments\": {\"path\": \"notes.md\"},
     \"expect\": {\"contains\": \"1 line\"},
     \"files\": {\"notes.md\": \"a \\n\"}, \"after\": {\"notes.md\": \"a\\n\"}}
  ]}

A case expects one of `answer` (the exact value), `contains`, `error` (both a part of the text \
that the model sees) or `outcome`. It may have `text` instead of `arguments`. With `files` the \
tool gets a fresh folder that it may read and write; `after` gives the expected contents, or \
`null` for a deleted file. Exit status: 1 if a case fails.";

/// Run a tool's test cases.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// A component, a Markdown tool, or a folder: every tool with cases in it and below
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,
    /// File with the test cases [default: `NAME.tests.json` next to NAME.md or NAME.wasm, else `tests.json`]
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Test components that are older than their sources
    #[arg(long)]
    allow_stale: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Test again after each change, until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    sources: Sources,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.watch {
        return test(&args).await;
    }
    let mut changes = Changes::below(&args.path, true);
    loop {
        // Before they are read: a change while the tests run counts.
        changes.also(args.files());
        match test(&args).await {
            Ok(_) if interrupt::is_requested() => return Ok(interrupt::INTERRUPTED.into()),
            Ok(_) => {}
            Err(error) => render::explain(&error),
        }
        render::aside(&format!("watching {}; Ctrl-C ends", render::one_line(&args.path.to_string_lossy())));
        let changed = changes.next().await;
        render::aside(&format!("{} changed", render::one_line(&changed.to_string_lossy())));
    }
}

impl Args {
    /// Returns the subjects whose tests run, each once, with the paths that lead to them.
    fn subjects(&self) -> Vec<(PathBuf, anyhow::Result<Subject>)> {
        let paths = if self.cases.is_some() { vec![self.path.clone()] } else { subject::below(&self.path) };
        let mut seen = HashSet::new();
        let found = paths.into_iter().map(|path| {
            let subject = Subject::find(&path, self.allow_stale);
            (path, subject)
        });
        // A folder and the component in it can have the same cases.
        found.filter(|(_, subject)| subject.as_ref().map_or(true, |subject| seen.insert(subject.cases()))).collect()
    }

    /// Returns the files that the tests read, wherever they are.
    fn files(&self) -> Vec<PathBuf> {
        let subjects = self.subjects().into_iter().filter_map(|(_, subject)| subject.ok());
        let named = self.cases.iter().chain(&self.sources.tools).cloned();
        subjects.flat_map(Subject::files).chain(named).collect()
    }
}

/// Results of the subjects that were tested.
#[derive(Default)]
struct Total {
    /// Results, each with the path of its subject.
    cases: Vec<(PathBuf, CaseResult)>,
    /// Errors of subjects whose tests did not run, each with its path.
    errors: Vec<(PathBuf, String)>,
}

async fn test(args: &Args) -> anyhow::Result<ExitCode> {
    let subjects = args.subjects();
    let count = subjects.len();
    let is_only = count == 1;
    let mut total = Total::default();
    for (path, subject) in subjects {
        if !is_only && !args.json {
            render::print(&shown(&path))?;
        }
        let tested = match subject {
            Ok(subject) => test_one(args, &subject, &mut total).await,
            Err(error) => Err(error),
        };
        match tested {
            Err(error) if is_only => return Err(error),
            Err(error) => {
                render::explain(&error);
                total.errors.push((path, render::message(&error)));
            }
            Ok(()) => {}
        }
        if interrupt::is_requested() {
            return Ok(interrupt::INTERRUPTED.into());
        }
    }
    match args.json {
        true => render::print_json(&total.record(is_only).to_string())?,
        false => render::print(&total.line(count))?,
    }
    Ok(if total.failed() > 0 || !total.errors.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs the cases of one subject.
async fn test_one(args: &Args, subject: &Subject, total: &mut Total) -> anyhow::Result<()> {
    subject.require_fresh(args.allow_stale)?;
    let file = args.cases.clone().unwrap_or_else(|| subject.cases());
    let text = input::file(&file).map_err(|error| {
        let hint = "write cases as shown in `toolcrib test --help`, or pass a file with `--cases FILE`";
        Advice::new(format!("cannot read the cases in `{}`: {error}", file.display()), hint)
    })?;
    let cases = cases::parse(&text).map_err(|error| in_file(&file, error))?;
    let chosen: Vec<&str> =
        cases.iter().map(|case| subject.tool(case)).collect::<Result<_, _>>().map_err(|error| in_file(&file, error))?;
    let mut sources = args.sources.clone();
    sources.tools.insert(0, subject.path.clone());
    sources.fetch().await?;
    let _guard = interrupt::guard();
    let runtime = sources.runtime_with(Limits::default().deadline, [], |builder| builder)?;
    // A script that does not parse fails every case, also one that expects an error.
    let problems = progress::during("looking at the scripts", runtime.check_scripts()).await?;
    validate::refuse(&problems, &subject.path)?;
    let run = format!("run_{:016x}", rand::random::<u64>());
    for (case, tool) in cases.iter().zip(chosen) {
        let end = run_case(case, tool, &sources, &run).await?;
        if !args.json {
            render::print(&end.sheet())?;
        }
        total.cases.push((subject.path.clone(), end));
        if interrupt::is_requested() {
            break;
        }
    }
    Ok(())
}

impl Total {
    fn failed(&self) -> usize {
        self.cases.iter().filter(|(_, end)| !end.is_ok()).count()
    }

    /// Summary in one line; of several subjects, with their number.
    fn line(&self, subjects: usize) -> String {
        let ms: f64 = self.cases.iter().map(|(_, end)| end.ms).sum();
        let cases = counted(self.cases.len(), "case");
        let of = if subjects == 1 { String::new() } else { format!(" of {}", counted(subjects, "source")) };
        let untested = match self.errors.len() {
            0 => String::new(),
            count => format!("{} not tested, ", counted(count, "source")),
        };
        format!("{cases}{of}, {} failed, {untested}{ms:.0} ms", self.failed())
    }

    /// Summary in JSON; for several subjects, with each case's source and with errors.
    fn record(&self, is_only: bool) -> serde_json::Value {
        let case = |(path, end): &(PathBuf, CaseResult)| {
            let mut record = end.record();
            if !is_only {
                record["source"] = shown(path).into();
            }
            record
        };
        let cases: Vec<_> = self.cases.iter().map(case).collect();
        let mut total = json!({ "cases": cases, "passed": cases.len() - self.failed(), "failed": self.failed() });
        if !is_only {
            let error = |(path, error): &(PathBuf, String)| json!({ "source": shown(path), "error": error });
            total["errors"] = self.errors.iter().map(error).collect();
        }
        total
    }
}

/// Path of a subject, for people and programs.
fn shown(path: &Path) -> String {
    render::one_line(&render::from_here(path).to_string_lossy())
}

/// Adds the file to an error.
fn in_file(file: &Path, error: anyhow::Error) -> anyhow::Error {
    let message = format!("{}: {error}", file.display());
    match error.downcast_ref::<Advice>() {
        Some(advice) => Advice::new(message, advice.hint()).into(),
        None => anyhow::anyhow!(message),
    }
}
