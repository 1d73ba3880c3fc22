//! `toolcrib undo`: takes back what tools have changed in the user's folders.

use std::io::{self, ErrorKind, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use toolcrib::staging::{Change, History, RecordHeader, RecordSummary, Recorded, Refused, Stage, Undo};
use toolcrib_base::render::{self, Advice, counted, from_here, one_line};
use toolcrib_sources::options::{counts, header, required_history, stages};

use super::stage::diff::Differences;
use super::stage::{agrees_to, commit_noted, show, warn_about_names};

const EXAMPLES: &str = "\
Examples:
  toolcrib undo --list
  toolcrib undo
  toolcrib undo 7k3md-x0q9a
  toolcrib undo --dry-run

Without an ID, the newest record that was not taken back is. A file goes back to its content, permissions and time of change \
before the call, as long as nobody has changed it since; each one that stays is named with the reason, and the command ends \
with 1. An undo has a record of its own, so that it can be taken back too.

The settings `history.days`, `history.bytes` and `history.file` limit what is kept: `toolcrib config keys history`.";
const HEADINGS: [&str; 5] = ["ID", "WHEN", "BY", "CHANGED", "STATE"];
/// Paths of a record that a list names.
const MAX_NAMED: usize = 2;

/// Take back what tools have changed in your folders.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// A run or a call (its `invocation` in the audit log), a committed stage, or a record of `--list`
    #[arg(value_name = "ID")]
    id: Option<String>,
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
    let history = required_history()?;
    if args.list {
        return list(&history, args.json);
    }
    let chosen = choose(&history, args.id.as_deref())?;
    let Undo { stage, refused } = history.undo(&chosen, &stages()?, args.unverified).map_err(explained)?;
    let changes = stage.changes()?;
    let code = if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    warn_about_refused(&refused);
    let mut shown = args.json.then(|| {
        let refused = refused.iter().map(|Refused { path, reason }| json!({ "path": path, "reason": reason }));
        json!({ "changes": Differences::all_as_json(&stage, &changes), "refused": refused.collect::<Vec<_>>() })
    });
    if args.dry_run || changes.is_empty() {
        match &shown {
            Some(shown) => render::print_json(&shown.to_string())?,
            None if changes.is_empty() && refused.is_empty() => render::aside("there is nothing to take back"),
            None if changes.is_empty() => render::aside("nothing was taken back"),
            None => changes.iter().try_for_each(|change| {
                render::print(&Differences::of(&stage, change).text(io::stdout().is_terminal()))
            })?,
        }
        stage.remove()?;
        return Ok(code);
    }
    if !args.yes && !agrees(&stage, &changes).await? {
        stage.remove()?;
        render::aside("nothing was changed");
        return Ok(ExitCode::FAILURE);
    }
    let name = stage.name().to_owned();
    let record = history.begin(RecordHeader { undoes: chosen, ..header("undo") });
    commit_noted(stage, &name, false, Some(&record))?;
    warn_about_names(&changes);
    render::aside(&format!("took back {}: {}", counted(changes.len(), "change"), counts(&changes)));
    let id = record.id();
    if let Some(id) = &id {
        render::hint(&format!("`toolcrib undo {id}` makes the changes again"));
    }
    if let Some(shown) = &mut shown {
        shown["record"] = json!(id);
        render::print_json(&shown.to_string())?;
    }
    Ok(code)
}

/// Shows the differences, and asks at the terminal.
async fn agrees(stage: &Arc<Stage>, changes: &[Change]) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        stage.remove()?;
        return Err(Advice::new("no one can answer here", "read `toolcrib undo --dry-run`, then pass --yes").into());
    }
    show(stage, stage.name(), changes);
    Ok(agrees_to(&format!("{}. Take the changes back? [y/N] ", counts(changes))).await)
}

/// Chooses the records and calls with an identifier, or the newest record that was not taken back.
fn choose(history: &History, id: Option<&str>) -> anyhow::Result<Vec<Recorded>> {
    let records = history.records()?;
    let Some(id) = id else {
        let mut newest = records.iter().rev();
        let newest = newest.find(|record| record.undone_by.is_none() && record.header.undoes.is_empty());
        return newest.map(|record| vec![Recorded { record: record.id.clone(), call: None }]).ok_or_else(|| {
            let hint = "`toolcrib undo --list` lists the changes of the last days; `history.days` is their number";
            Advice::new("there is nothing to take back", hint).into()
        });
    };
    let found = history.find(id)?;
    if found.is_empty() {
        let message = format!("no change is kept of `{}`", render::excerpt(id));
        let hint = "`toolcrib undo --list` lists what can be taken back";
        return Err(Advice::new(message, hint).into());
    }
    let undone = |one: &Recorded| records.iter().find(|record| record.id == one.record)?.undone_by.clone();
    if let Some(by) = found.iter().find_map(undone) {
        render::hint(&format!("it was taken back before; `toolcrib undo {by}` makes those changes again"));
    }
    Ok(found)
}

fn explained(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Unsupported => Advice::new("changes are not kept on this system", "there is nothing to do").into(),
        _ => anyhow::Error::new(error).context("cannot plan the undo"),
    }
}

fn warn_about_refused(refused: &[Refused]) {
    for Refused { path, reason } in refused {
        render::warning(&format!("`{}` stays: {reason}", shown(path)));
    }
}

fn shown(path: &Path) -> String {
    one_line(&from_here(path).display().to_string())
}

fn list(history: &History, json: bool) -> anyhow::Result<ExitCode> {
    let records = history.records()?;
    if json {
        render::print_json(&serde_json::to_string(&records)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |RecordSummary { id, header, paths, is_open, is_cut_off, undone_by, .. }: &RecordSummary| {
        let by = match (&header.run, &header.stage) {
            (Some(run), _) => format!("{} {run}", header.command),
            (None, Some(stage)) => format!("{} of {stage}", header.command),
            (None, None) => header.command.clone(),
        };
        let named: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| shown(path)).collect();
        let more = match paths.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let state = match (undone_by, is_open, is_cut_off) {
            (Some(by), ..) => format!("taken back by {by}"),
            (None, true, _) => "in use".to_owned(),
            (None, _, true) => "killed".to_owned(),
            (None, ..) => "done".to_owned(),
        };
        let begun = i64::try_from(header.begun).ok().and_then(|begun| Timestamp::from_second(begun).ok());
        let when = begun.map(|begun| format!("{begun:.0}")).unwrap_or_default();
        [id.clone(), when, one_line(&by), format!("{}{more}", named.join(", ")), state]
    };
    render::print(&render::table(HEADINGS, records.iter().map(row)))?;
    Ok(ExitCode::SUCCESS)
}
