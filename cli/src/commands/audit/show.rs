//! `toolcrib audit show`: prints logged calls as a table or as the lines of the log.

use std::process::ExitCode;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use toolcrib::Outcome;
use toolcrib::audit::{self, Day, LogEntry, LogRecords};
use toolcrib::policy::Pattern;
use toolcrib_agent::runs::RunStore;
use toolcrib_base::parse::count;
use toolcrib_base::render::{self, Advice, one_line};
use toolcrib_settings::audit_facts::{CallSelection, arguments, day};
use toolcrib_sources::options::AuditLog;

use super::note_beginning;

const EXAMPLES: &str = "\
Examples:
  toolcrib audit show --last 20
  toolcrib audit show --day yesterday --tool 'fs_*'
  toolcrib audit show --outcome denied
  toolcrib audit show --run 7k3md-x0q9a
  toolcrib audit show --day 2026-03-01 --json | jq -s 'map(.cpuMs) | add'

Days are in UTC. With --json, each line is a record as written in the log. Lines that are not records are left out: \
this command does not check the log, `toolcrib audit verify` does.

A tool after ↳ was called by a program, a script or a hook; the call that made it follows.

ARGUMENTS shows the start of a call's arguments, masked; --json prints up to 4 KiB. For unknown tools, and with \
`records.log_arguments` set to false, only the size is logged.";
const HEADINGS: [&str; 7] = ["TIME (UTC)", "TOOL", "OUTCOME", "MS", "GRANTED", "DENIED", "ARGUMENTS"];
/// Sign of a call that another one made.
const NESTED: &str = "↳ ";
/// Maximum characters of the arguments in a row.
const MAX_ARGUMENTS: usize = 60;

/// Show logged calls, oldest first.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Only calls of matching tools: `*` matches any characters, `?` matches one
    #[arg(long, value_name = "GLOB")]
    tool: Option<Pattern>,
    /// Only calls with this outcome
    #[arg(long, value_name = "NAME", value_parser = outcome())]
    outcome: Option<Outcome>,
    /// Only calls of this run: its identifier, as `toolcrib runs list` shows it, or as it is in a record
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Only calls on this UTC day: `YYYY-MM-DD`, `today` or `yesterday`
    #[arg(long, value_name = "DAY", value_parser = day)]
    day: Option<Day>,
    /// Only the latest N calls
    #[arg(long, value_name = "N", value_parser = count::<usize, 0, { u64::MAX }>)]
    last: Option<usize>,
    /// Print the records, one line of JSON per call
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    log: AuditLog,
}

pub(super) fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Some(folder) = args.log.begun()? else {
        note_beginning();
        return Ok(ExitCode::SUCCESS);
    };
    let records = audit::records(folder)?;
    let records = args.day.into_iter().fold(records, audit::LogRecords::of);
    let selection = CallSelection {
        tool: args.tool.clone(),
        outcome: args.outcome,
        run: args.run.as_deref().map(run_id),
        text: None,
    };
    let is_selected = |entry: &Result<LogEntry, _>| entry.as_ref().map_or(true, |entry| selection.includes(entry));
    if args.json && args.last.is_none() {
        let mut has_any = false;
        for entry in records.filter(is_selected) {
            render::print_json(&entry?.text)?;
            has_any = true;
        }
        return reported(has_any, args.run.as_deref());
    }
    let has_any = if args.json {
        let texts = selected(records, args.last, is_selected, |entry| entry.text)?;
        texts.iter().try_for_each(|text| render::print_json(text))?;
        !texts.is_empty()
    } else {
        let rows = selected(records, args.last, is_selected, |entry| row(&entry))?;
        let has_any = !rows.is_empty();
        render::print(&render::table(HEADINGS, rows.into_iter()))?;
        has_any
    };
    reported(has_any, args.run.as_deref())
}

/// Returns the identifier of a run as records have it, however a person typed it.
fn run_id(typed: &str) -> String {
    RunStore::parse(typed).unwrap_or_else(|_| typed.to_owned())
}

/// Returns all selected records or the last ones, oldest first, each as the part that is printed.
fn selected<T>(
    records: LogRecords,
    last: Option<usize>,
    is_selected: impl FnMut(&Result<LogEntry, toolcrib::Error>) -> bool,
    mut part: impl FnMut(LogEntry) -> T,
) -> Result<Vec<T>, toolcrib::Error> {
    let Some(last) = last else { return records.filter(is_selected).map(|entry| entry.map(&mut part)).collect() };
    let newest = records.newest_first().filter(is_selected).take(last);
    let mut parts = newest.map(|entry| entry.map(&mut part)).collect::<Result<Vec<_>, _>>()?;
    parts.reverse();
    Ok(parts)
}

/// Reports on standard error that no record was printed.
///
/// # Errors
///
/// No record has the run that the user named.
fn reported(has_any: bool, run: Option<&str>) -> anyhow::Result<ExitCode> {
    match run {
        _ if has_any => {}
        Some(run) => {
            let message = format!("no matching record has the run `{}`", one_line(run));
            let hint = "`toolcrib runs list` lists the kept runs; each record has the identifier of its run as `run`";
            return Err(Advice::new(message, hint).into());
        }
        None => render::aside("no matching records"),
    }
    Ok(ExitCode::SUCCESS)
}

fn row(entry: &LogEntry) -> [String; 7] {
    let time = entry.ts.get(..19).unwrap_or(&entry.ts).replacen('T', " ", 1);
    let short = |list: &[String]| if list.is_empty() { "-".to_owned() } else { list.join(", ") };
    let cells = [
        time,
        if entry.is_nested { format!("{NESTED}{}", entry.tool) } else { entry.tool.clone() },
        entry.outcome.clone(),
        format!("{:.1}", entry.ms),
        short(&entry.granted),
        short(&entry.denied),
        render::shortened(&render::one_line(&arguments(&entry.arguments)), MAX_ARGUMENTS).into_owned(),
    ];
    cells.map(|cell| render::one_line(&cell))
}

fn outcome() -> impl TypedValueParser<Value = Outcome> {
    PossibleValuesParser::new(Outcome::ALL.map(Outcome::as_str)).map(|name| {
        let named = Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == name);
        named.expect("use the names of outcomes")
    })
}
