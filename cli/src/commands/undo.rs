//! `toolcrib undo`: takes back what tools have changed in the user's folders.

mod chat;

use std::io::{self, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use toolcrib::staging::{Change, History, RecordHeader, RecordSummary, Recorded, Refused, Stage, Stages, Undo};
use toolcrib_base::render::{self, Advice, counted, from_here, one_line};
use toolcrib_settings::differences::{Differences, counts};
use toolcrib_sources::options::{header, required_history, stages};

use super::stage::{agrees_to, commit_noted, show, take_others, warn_about_names};

pub(crate) use chat::ChatFiles;

const EXAMPLES: &str = "\
Examples:
  toolcrib undo --list
  toolcrib undo
  toolcrib undo 7k3md-x0q9a
  toolcrib undo 7k3md-x0q9a notes.md
  toolcrib undo --dry-run

Without an ID, the newest record for the current directory is reverted. A file gets back its content, permissions and \
modification time from before the call, unless it has changed since; each file that stays is named with the reason, and the \
command exits with 1. An undo is recorded too, so you can revert it.

The settings `history.days`, `history.bytes` and `history.file` limit what is kept: `toolcrib config keys history`.";
/// Name of this command in its records.
const COMMAND: &str = "undo";
const HEADINGS: [&str; 5] = ["ID", "WHEN", "BY", "CHANGED", "STATE"];
/// Paths of a record that a list names.
const MAX_NAMED: usize = 2;
/// Refused paths that are named one by one.
const MAX_REFUSED: usize = 20;

/// Take back what tools have changed in your folders.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// A run or a call (its `invocation` in the audit log), a committed stage, or a record of `--list`
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// Take back only what it changed at these paths or patterns, such as `src/a.rs` or `'src/*.rs'`
    #[arg(value_name = "PATH", conflicts_with = "list")]
    paths: Vec<String>,
    /// List what can be taken back, the newest last
    #[arg(long, conflicts_with_all = ["id", "yes", "dry_run", "unverified"])]
    list: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Also take back calls that were killed: the present state of a file counts as theirs
    #[arg(long)]
    unverified: bool,
    /// Print an array with the records of --list, or an object with the changes and what stays
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !cfg!(target_os = "linux") {
        return Err(Advice::new("changes are not noted on this system", "there is nothing to take back").into());
    }
    let history = required_history()?;
    if args.list {
        return list(&history, args.json);
    }
    let stages = stages()?;
    let _lock = history.lock_undo().map_err(|error| explained(&history, error))?;
    sweep(&history, &stages)?;
    let Chosen { parts, taken, is_incomplete } = choose(&history, args.id.as_deref())?;
    let undo = history.undo(&parts, &stages, args.unverified).map_err(|error| explained(&history, error))?;
    let Undo { stage, mut refused } = undo;
    let planned = Planned(stage.clone());
    let mut changes = stage.changes()?;
    if !args.paths.is_empty() {
        let others = take_others(&args.paths, changes, &mut refused)?;
        check_alone(&stage.withdraw(&others)?)?;
        changes = stage.changes()?;
    }
    let is_whole = refused.is_empty() && !is_incomplete;
    let code = if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    warn_about_refused(&refused);
    if is_incomplete {
        render::warning("not all of these changes were noted: the history could not be written then");
    }
    let mut shown = args.json.then(|| {
        let refused = refused.iter().map(|Refused { path, reason }| json!({ "path": path, "reason": reason }));
        let (changes, refused) = (Differences::all_as_json(&stage, &changes), refused.collect::<Vec<_>>());
        json!({ "changes": changes, "refused": refused, "incomplete": is_incomplete })
    });
    if args.dry_run || changes.is_empty() {
        match &shown {
            Some(shown) => render::print_json(&shown.to_string())?,
            None if changes.is_empty() => {
                render::aside("nothing was taken back");
                render::hint("`toolcrib undo --list` lists the other records; `toolcrib undo ID` takes one back");
            }
            None => changes.iter().try_for_each(|change| {
                render::print(&Differences::of(&stage, change).text(io::stdout().is_terminal()))
            })?,
        }
        return Ok(code);
    }
    if !args.yes && !agrees(&stage, &changes).await? {
        render::aside("nothing was changed");
        return Ok(ExitCode::FAILURE);
    }
    // A record that is taken back in part stays: the rest of it can be taken back too.
    let undoes = if args.paths.is_empty() { taken } else { Vec::new() };
    let id = commit(&history, planned, &changes, undoes)?;
    if let Some(shown) = &mut shown {
        shown["record"] = json!(id);
        render::print_json(&shown.to_string())?;
    }
    Ok(code)
}

/// Removes what earlier undos have left. One that was interrupted goes on first.
fn sweep(history: &History, stages: &Stages) -> anyhow::Result<()> {
    let Some(name) = history.sweep(stages)? else { return Ok(()) };
    let hint =
        format!("`toolcrib stage commit {name}` continues it; `toolcrib stage drop {name}` leaves the rest unchanged");
    Err(Advice::new("an undo was interrupted", hint).into())
}

/// Takes the changes back with a record of its own; returns its identifier.
fn commit(
    history: &History,
    planned: Planned,
    changes: &[Change],
    undoes: Vec<Recorded>,
) -> anyhow::Result<Option<String>> {
    let name = planned.0.name().to_owned();
    let record = history.begin(RecordHeader { undoes, ..header(COMMAND) });
    let done = commit_noted(planned.0.clone(), &name, false, Some(&record))?;
    drop(planned);
    warn_about_names(changes);
    let named = first_paths(changes.iter().map(|change| change.path.as_path()), changes.len());
    render::aside(&format!("took back {}: {} ({named})", counted(changes.len(), "change"), counts(changes)));
    let id = done.record.and_then(|record| record.id());
    if let Some(id) = &id {
        render::hint(&format!("`toolcrib undo {id}` makes the changes again"));
    }
    Ok(id)
}

/// Refuses to take back changes that others depend on.
fn check_alone(refused: &[Refused]) -> anyhow::Result<()> {
    let Some(Refused { path, reason }) = refused.first() else { return Ok(()) };
    let message = format!("nothing was taken back: `{}` cannot stay as it is: {reason}", shown(path));
    Err(Advice::new(message, "add its path, or take back the whole record").into())
}

/// Stage of an undo, which is removed unless its commit has begun.
struct Planned(Arc<Stage>);

impl Drop for Planned {
    fn drop(&mut self) {
        if self.0.path().exists() && !self.0.is_committing() {
            // Another undo removes what stays.
            let _ = self.0.remove();
        }
    }
}

/// Shows the differences, and asks at the terminal.
async fn agrees(stage: &Arc<Stage>, changes: &[Change]) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Advice::new(
            "cannot ask: no terminal is available",
            "read `toolcrib undo --dry-run`, then pass --yes",
        )
        .into());
    }
    show(stage, stage.name(), changes);
    Ok(agrees_to(&format!("{}. Take the changes back? [y/N] ", counts(changes))).await)
}

/// Records and calls to take back.
struct Chosen {
    parts: Vec<Recorded>,
    /// The same by their calls, as far as a record has any: later calls of an open record are not among them.
    taken: Vec<Recorded>,
    is_incomplete: bool,
}

impl Chosen {
    fn of(records: &[RecordSummary], found: &[Recorded]) -> Self {
        let mut chosen = Self { parts: Vec::new(), taken: Vec::new(), is_incomplete: false };
        for one in found {
            let Some(record) = records.iter().find(|record| record.id == one.record) else { continue };
            chosen.is_incomplete |= record.is_incomplete;
            let call = |id: &String| Recorded { record: record.id.clone(), call: Some(id.clone()) };
            let left: Vec<Recorded> = match &one.call {
                Some(id) => vec![call(id)],
                None => left_calls(record).map(call).collect(),
            };
            let is_whole = one.call.is_none() && record.undone_calls.is_empty();
            chosen.parts.extend(if is_whole { vec![one.clone()] } else { left.clone() });
            chosen.taken.extend(if left.is_empty() { vec![one.clone()] } else { left });
        }
        chosen
    }
}

/// Calls of a record that were not taken back.
fn left_calls(record: &RecordSummary) -> impl Iterator<Item = &String> {
    record.calls.iter().map(|call| &call.id).filter(|id| !record.undone_calls.contains(id))
}

/// Returns `true` if something of a record can be taken back.
fn is_left(record: &RecordSummary) -> bool {
    let is_changed = !record.paths.is_empty() && record.undone_by.is_none();
    is_changed && (record.calls.is_empty() || left_calls(record).next().is_some())
}

/// Chooses the records and calls with an identifier, or the newest record about the current directory.
fn choose(history: &History, id: Option<&str>) -> anyhow::Result<Chosen> {
    let records = history.records().map_err(|error| explained(history, error))?;
    let Some(id) = id else {
        let here = std::env::current_dir().unwrap_or_default();
        let is_here = |record: &RecordSummary| record.paths.iter().any(|path| path.starts_with(&here));
        let is_undo = |record: &RecordSummary| record.header.command == COMMAND;
        let of_calls = |record: &&RecordSummary| is_left(record) && !is_undo(record);
        let Some(newest) = records.iter().rev().filter(of_calls).find(|record| is_here(record)) else {
            let hint = match records.iter().rev().find(of_calls) {
                Some(other) => {
                    let path = other.paths.first().map(|path| shown(path)).unwrap_or_default();
                    format!("the newest change elsewhere is of `{path}`: `toolcrib undo {}`", other.id)
                }
                None => "`toolcrib undo --list` lists the changes of the last days; `history.days` is their number"
                    .to_owned(),
            };
            return Err(Advice::new("there is nothing to take back in this directory", hint).into());
        };
        return Ok(Chosen::of(&records, &[Recorded { record: newest.id.clone(), call: None }]));
    };
    let found = find(&records, id);
    if found.is_empty() {
        let message = format!("no recorded change of `{}`", render::excerpt(id));
        let hint = "`toolcrib undo --list` lists what can be taken back";
        return Err(Advice::new(message, hint).into());
    }
    let record = |one: &Recorded| records.iter().find(|record| record.id == one.record);
    let undone = |one: &Recorded| match &one.call {
        Some(id) => record(one).is_some_and(|record| record.undone_calls.contains(id)),
        None => record(one).is_some_and(|record| !is_left(record)),
    };
    if found.iter().all(undone) {
        render::hint("it was taken back before; `toolcrib undo --list` names the record of that");
    }
    Ok(Chosen::of(&records, &found))
}

/// Finds records, and calls in them, by the identifier of a record, a run, a stage or a call; the oldest one first. Of the commits of
/// stages with one name, the last one is meant.
fn find(records: &[RecordSummary], id: &str) -> Vec<Recorded> {
    let whole = |record: &RecordSummary| Recorded { record: record.id.clone(), call: None };
    let part = |record: &RecordSummary| match record {
        record if record.id == id || record.header.run.as_deref() == Some(id) => Some(whole(record)),
        record if record.calls.iter().any(|call| call.id == id) => {
            Some(Recorded { record: record.id.clone(), call: Some(id.to_owned()) })
        }
        _ => None,
    };
    let found: Vec<Recorded> = records.iter().filter_map(part).collect();
    let committed = records.iter().rev().find(|record| record.header.stage.as_deref() == Some(id));
    if found.is_empty() { committed.map(whole).into_iter().collect() } else { found }
}

fn explained(history: &History, error: io::Error) -> anyhow::Error {
    let folder = one_line(&history.path().display().to_string());
    match error.kind() {
        ErrorKind::WouldBlock => Advice::new("another undo is running", "wait for its end").into(),
        _ => Advice::new(
            format!("the history in `{folder}` cannot be used: {error}"),
            "check the rights of the folder; without it, earlier changes cannot be taken back",
        )
        .into(),
    }
}

fn warn_about_refused(refused: &[Refused]) {
    for Refused { path, reason } in refused.iter().take(MAX_REFUSED) {
        render::warning(&format!("`{}` stays: {reason}", shown(path)));
    }
    if refused.len() > MAX_REFUSED {
        let more = counted(refused.len() - MAX_REFUSED, "more path");
        render::warning(&format!("{more} stay: `--dry-run --json` lists all"));
    }
    if refused.iter().any(|one| one.reason.starts_with("its call was killed")) {
        render::hint("`--unverified` takes back calls that were killed: the present state of a file counts as theirs");
    }
}

fn shown(path: &Path) -> String {
    one_line(&from_here(path).display().to_string())
}

/// Names the first of many paths.
fn first_paths<'a>(paths: impl Iterator<Item = &'a Path>, all: usize) -> String {
    let named: Vec<String> = paths.take(MAX_NAMED).map(shown).collect();
    let more = match all.saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

fn list(history: &History, json: bool) -> anyhow::Result<ExitCode> {
    let records = history.records().map_err(|error| explained(history, error))?;
    if json {
        render::print_json(&serde_json::to_string(&records)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |record: &RecordSummary| {
        let header = &record.header;
        let by = match (&header.run, &header.stage) {
            (Some(run), _) => format!("{} {run}", header.command),
            (None, Some(stage)) => format!("{} of {stage}", header.command),
            (None, None) => header.command.clone(),
        };
        let state = match record {
            RecordSummary { error: Some(error), .. } => format!("unreadable: {}", one_line(error)),
            RecordSummary { undone_by: Some(by), .. } => format!("taken back by {by}"),
            _ if !is_left(record) => "taken back".to_owned(),
            RecordSummary { undone_calls, .. } if !undone_calls.is_empty() => "taken back in part".to_owned(),
            RecordSummary { is_open: true, .. } => "in use".to_owned(),
            RecordSummary { is_cut_off: true, .. } => "cut off".to_owned(),
            RecordSummary { is_incomplete: true, .. } => "incomplete".to_owned(),
            _ => "done".to_owned(),
        };
        let begun = i64::try_from(header.begun).ok().filter(|_| record.error.is_none());
        let when = begun.and_then(|begun| Timestamp::from_second(begun).ok()).map(|begun| format!("{begun:.0}"));
        let changed = first_paths(record.paths.iter().map(PathBuf::as_path), record.paths.len());
        [record.id.clone(), when.unwrap_or_default(), one_line(&by), changed, state]
    };
    // A call that failed can have noted a change that it did not make.
    let changed = records.iter().filter(|record| !record.paths.is_empty() || record.error.is_some());
    render::print(&render::table(HEADINGS, changed.map(row)))?;
    Ok(ExitCode::SUCCESS)
}
