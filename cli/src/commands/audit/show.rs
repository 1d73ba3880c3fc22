//! `toolcrib audit show`: prints logged calls as a table or as the lines of the log.

use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::SystemTime;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use toolcrib::Outcome;
use toolcrib::audit::{self, Day, InvalidDay, LogEntry};
use toolcrib::policy::Pattern;

use crate::options::{AuditLog, count};
use crate::render;

const EXAMPLES: &str = "\
Examples:
  toolcrib audit show --last 20
  toolcrib audit show --day yesterday --tool 'fs_*'
  toolcrib audit show --outcome denied
  toolcrib audit show --day 2026-03-01 --json | jq -s 'map(.cpuMs) | add'

Days are in UTC. With --json, each line is a record as written in the log. This command does not \
check the log for changes; `toolcrib audit verify` does.

The log has the command lines of programs, but not the JSON arguments of calls. To record \
those too, pass --records DIR to `call` or `run`.";
const HEADINGS: [&str; 6] = ["TIME (UTC)", "TOOL", "OUTCOME", "MS", "GRANTED", "DENIED"];

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
    let records = audit::records(args.log.folder()?)?;
    let records = args.day.into_iter().fold(records, audit::LogRecords::of);
    let selected = records.filter(|entry| entry.as_ref().map_or(true, |entry| args.selects(entry)));
    if args.json && args.last.is_none() {
        let mut has_any = false;
        for entry in selected {
            render::print_json(&entry?.text)?;
            has_any = true;
        }
        note_absence(has_any);
        return Ok(ExitCode::SUCCESS);
    }
    let mut latest = VecDeque::new();
    for entry in selected {
        latest.push_back(entry?);
        if args.last.is_some_and(|limit| latest.len() > limit) {
            latest.pop_front();
        }
    }
    note_absence(!latest.is_empty());
    if args.json {
        latest.iter().try_for_each(|entry| render::print_json(&entry.text))?;
    } else {
        render::print(&render::table(HEADINGS, latest.iter().map(row)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports on standard error that no record was printed.
fn note_absence(has_any: bool) {
    if !has_any {
        render::aside("no matching records");
    }
}

impl Args {
    fn selects(&self, entry: &LogEntry) -> bool {
        self.tool.as_ref().is_none_or(|pattern| pattern.matches_tool(&entry.tool))
            && self.outcome.is_none_or(|outcome| entry.outcome == outcome.as_str())
    }
}

fn row(entry: &LogEntry) -> [String; 6] {
    let time = entry.ts.get(..19).unwrap_or(&entry.ts).replacen('T', " ", 1);
    let short = |list: &[String]| if list.is_empty() { "-".to_owned() } else { list.join(", ") };
    let cells = [
        time,
        entry.tool.clone(),
        entry.outcome.clone(),
        format!("{:.1}", entry.ms),
        short(&entry.granted),
        short(&entry.denied),
    ];
    cells.map(|cell| render::one_line(&cell))
}

fn outcome() -> impl TypedValueParser<Value = Outcome> {
    PossibleValuesParser::new(Outcome::ALL.map(Outcome::as_str)).map(|name| {
        let named = Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == name);
        named.expect("the names are those of the outcomes")
    })
}

fn day(text: &str) -> Result<Day, String> {
    let today = Day::of(SystemTime::now());
    match text {
        "today" => Ok(today),
        "yesterday" => Ok(today.before().unwrap_or(today)),
        _ => text.parse().map_err(|error: InvalidDay| format!("{error}, nor `today` or `yesterday`")),
    }
}
