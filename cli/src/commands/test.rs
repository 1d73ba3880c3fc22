//! `toolcrib test`: runs the test cases of a tool, each in its own sandbox and session, and compares the results.

mod cases;
mod subject;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Map, json};
use toolcrib::tool::Limits;
use toolcrib::{Builder, ToolResult};

use crate::calls::Calls;
use crate::changes::Changes;
use crate::options::Sources;
use crate::permission::{DenyFlags, denial_hints};
use crate::render::{self, Advice, Tone, paint};
use crate::{input, interrupt, progress};

use super::validate;
use cases::Case;
use subject::Subject;

const EXAMPLES: &str = "\
Examples:
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
    /// A component, a Markdown tool, or the folder that contains them
    #[arg(value_name = "PATH", default_value = ".")]
    path: PathBuf,
    /// File with the test cases [default: `NAME.tests.json` beside NAME.md or NAME.wasm, else `tests.json`]
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Test again after each change, until interrupted
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    sources: Sources,
}

/// Result of a case.
struct CaseResult {
    name: String,
    ms: f64,
    /// Expected and actual values, if the case failed.
    failures: Vec<(String, String)>,
    /// Denied capabilities and standard error of the tool, if the case failed.
    notes: Vec<String>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.watch {
        return test(&args).await;
    }
    let mut changes = Changes::below(&args.path, true);
    loop {
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

async fn test(args: &Args) -> anyhow::Result<ExitCode> {
    let subject = Subject::find(&args.path)?;
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
    let mut ended = Vec::new();
    let run = format!("run_{:016x}", rand::random::<u64>());
    for (case, tool) in cases.iter().zip(chosen) {
        let end = run_case(case, tool, &sources, &run).await?;
        if !args.json {
            render::print(&end.sheet())?;
        }
        ended.push(end);
        if interrupt::is_requested() {
            return Ok(interrupt::INTERRUPTED.into());
        }
    }
    let failed = ended.iter().filter(|end| !end.failures.is_empty()).count();
    if args.json {
        let all: Vec<_> = ended.iter().map(CaseResult::record).collect();
        let total = json!({ "cases": all, "passed": ended.len() - failed, "failed": failed });
        render::print_json(&total.to_string())?;
    } else {
        let ms: f64 = ended.iter().map(|end| end.ms).sum();
        let noun = if ended.len() == 1 { "case" } else { "cases" };
        render::print(&format!("{} {noun}, {failed} failed, {ms:.0} ms", ended.len()))?;
    }
    Ok(if failed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs one case in its own runtime and folder. The records of all cases name one run.
async fn run_case(case: &Case, tool: &str, sources: &Sources, run: &str) -> anyhow::Result<CaseResult> {
    let folder = case.files.as_ref().map(fresh_folder).transpose().context("cannot write `files`")?;
    let granted = folder.as_ref().map(|folder| sources.also_writing(folder.path().to_path_buf()));
    let named = |builder: Builder| builder.application("test", Map::new()).run_id(run);
    let runtime = granted.as_ref().unwrap_or(sources).runtime_with(Limits::default().deadline, [], named)?;
    progress::during(format!("compiling {}", render::one_line(tool)), runtime.prepare(tool)).await?;
    runtime.prepare_hooks().await?;
    let id = format!("case_{:016x}", rand::random::<u64>());
    let began = Instant::now();
    let session = runtime.open_session();
    let result = Calls::start(&session, vec![case.call(id, tool)]).next().await.context("the call was cancelled")?;
    let ms = began.elapsed().as_secs_f64() * 1000.0;
    session.end().await;
    let mut failures: Vec<_> = case.difference(&result).into_iter().collect();
    if let Some(folder) = &folder {
        failures
            .extend(case.after.iter().filter_map(|(path, content)| changed(folder.path(), path, content.as_deref())));
    }
    let notes = if failures.is_empty() { Vec::new() } else { notes(&result, &sources.deny_flags()) };
    Ok(CaseResult { name: case.name.clone(), ms, failures, notes })
}

fn fresh_folder(files: &BTreeMap<String, String>) -> io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for (path, content) in files {
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap_or(folder.path()))?;
        fs::write(file, content)?;
    }
    Ok(folder)
}

/// Reads a file that a tool may have left in its folder. Links that lead out of the folder are not followed.
fn left(folder: &Path, path: &str) -> io::Result<String> {
    let file = folder.join(path).canonicalize()?;
    if file.starts_with(folder.canonicalize()?) && file.is_file() {
        input::file(file)
    } else {
        Err(io::Error::other("not a regular file in the case's folder"))
    }
}

/// Returns the expected and actual contents of a file if they differ.
fn changed(folder: &Path, path: &str, wanted: Option<&str>) -> Option<(String, String)> {
    let word = |content: Option<&str>| match content {
        Some(content) => format!("`{path}` with {content:?}"),
        None => format!("no `{path}`"),
    };
    let found = match left(folder, path) {
        Ok(content) => Some(content),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Some((word(wanted), format!("`{path}` cannot be read: {error}"))),
    };
    (found.as_deref() != wanted).then(|| (word(wanted), word(found.as_deref())))
}

/// Collects details that explain a failed case.
fn notes(result: &ToolResult, deny_flags: &DenyFlags) -> Vec<String> {
    let fault = result.fault.iter().map(ToString::to_string);
    let log = Some(result.log.trim()).filter(|log| !log.is_empty());
    denial_hints(&result.receipt, true, deny_flags)
        .into_iter()
        .chain(fault)
        .chain(log.map(|log| format!("standard error: {log}")))
        .collect()
}

impl CaseResult {
    fn sheet(&self) -> String {
        let (word, tone) = if self.failures.is_empty() { ("ok    ", Tone::Good) } else { ("FAILED", Tone::Bad) };
        let word = paint(tone, word, io::stdout().is_terminal());
        let mut text = format!("{word}  {}  {:.0} ms", render::one_line(&self.name), self.ms);
        for (wanted, found) in &self.failures {
            text += &format!("\n        expected {}", render::one_line(wanted));
            text += &format!("\n        found    {}", render::one_line(found));
        }
        for note in &self.notes {
            text += &format!("\n        {}", render::one_line(note));
        }
        text
    }

    fn record(&self) -> serde_json::Value {
        let failure = |(wanted, found): &(String, String)| json!({ "expected": wanted, "found": found });
        json!({
            "name": self.name,
            "ok": self.failures.is_empty(),
            "ms": self.ms,
            "failures": self.failures.iter().map(failure).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

/// Adds the file to an error.
fn in_file(file: &Path, error: anyhow::Error) -> anyhow::Error {
    let message = format!("{}: {error}", file.display());
    match error.downcast_ref::<Advice>() {
        Some(advice) => Advice::new(message, advice.hint()).into(),
        None => anyhow::anyhow!(message),
    }
}
