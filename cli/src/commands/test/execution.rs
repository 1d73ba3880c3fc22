//! One test case: its call in its own sandbox and session, and its result beside the expected one.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use serde_json::{Map, json};
use toolcrib::tool::Limits;
use toolcrib::{Builder, ToolResult};
use toolcrib_base::render::{self, Tone, paint};
use toolcrib_base::{input, progress};
use toolcrib_settings::permission::{DenyFlags, denial_hints};
use toolcrib_sources::calls::Calls;
use toolcrib_sources::options::Sources;

use super::cases::Case;

/// Result of a case.
pub(super) struct CaseResult {
    name: String,
    pub(super) ms: f64,
    /// Expected and actual values, if the case failed.
    failures: Vec<(String, String)>,
    /// Denied capabilities and standard error of the tool, if the case failed.
    notes: Vec<String>,
}

/// Runs one case in its own runtime and folder. The records of all cases name one run.
pub(super) async fn run_case(case: &Case, tool: &str, sources: &Sources, run: &str) -> anyhow::Result<CaseResult> {
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
    /// `true` if the result is the expected one.
    pub(super) fn is_ok(&self) -> bool {
        self.failures.is_empty()
    }

    pub(super) fn sheet(&self) -> String {
        let (word, tone) = if self.is_ok() { ("ok    ", Tone::Good) } else { ("FAILED", Tone::Bad) };
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

    pub(super) fn record(&self) -> serde_json::Value {
        let failure = |(wanted, found): &(String, String)| json!({ "expected": wanted, "found": found });
        json!({
            "name": self.name,
            "ok": self.is_ok(),
            "ms": self.ms,
            "failures": self.failures.iter().map(failure).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}
