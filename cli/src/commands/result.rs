//! `toolcrib result`: shows, lists and removes stored results, which were too large for a model.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use serde::Serialize;
use toolcrib::results::StoredResult;
use toolcrib::{Error, Results};
use toolcrib_base::parse::size;
use toolcrib_base::render::{self, Advice};
use toolcrib_sources::options::ResultsFolder;

const EXAMPLES: &str = "\
Examples:
  toolcrib result list                   all stored results, newest first
  toolcrib result show REF > whole.json  byte for byte
  toolcrib result show REF --offset 4096 --limit 4KiB
  toolcrib result remove --all

A result that is too large for a model is stored whole under a reference, such as \
res_0123456789abcdef0123456789abcdef, for at most 7 days. At most 1,000 results and 256 MiB are \
stored; the oldest are removed first.";

const SHOW_EXAMPLES: &str = "\
Examples:
  toolcrib result show REF | jq .
  toolcrib result show REF --limit 64KiB  the beginning; a hint continues
  toolcrib result show REF --json | jq -r .text

A part never splits a UTF-8 character. With --json, `text` is the part, with bytes that are not \
UTF-8 replaced, and `next` is the offset of the next part.";

const LIST_EXAMPLES: &str = "\
Examples:
  toolcrib result list
  toolcrib result list --json | jq -r '.[0].reference'";

const REMOVE_EXAMPLES: &str = "\
Examples:
  toolcrib result remove REF REF
  toolcrib result remove --all";

const HEADINGS: [&str; 5] = ["REFERENCE", "BYTES", "CREATED", "TOOL", "INVOCATION"];

/// Show results that were too large for a model.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    Show(Show),
    List(List),
    Remove(Remove),
}

/// Print a result, or a part of it.
#[derive(clap::Args)]
#[command(after_long_help = SHOW_EXAMPLES)]
struct Show {
    /// The result's reference
    #[arg(value_name = "REF")]
    reference: String,
    /// Start at this byte
    #[arg(long, value_name = "BYTES", default_value_t)]
    offset: u64,
    /// Print at most this size, such as `64KiB` [default: all]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    limit: Option<usize>,
    /// Print one JSON object: the part as `text`, and the details of the result
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: ResultsFolder,
}

/// List the results, newest first.
#[derive(clap::Args)]
#[command(after_long_help = LIST_EXAMPLES)]
struct List {
    /// Print a JSON array, one object per result
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: ResultsFolder,
}

/// Remove results.
#[derive(clap::Args)]
#[command(after_long_help = REMOVE_EXAMPLES)]
struct Remove {
    /// The references of the results
    #[arg(value_name = "REF", required_unless_present = "all", conflicts_with = "all")]
    references: Vec<String>,
    /// Remove every result
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    folder: ResultsFolder,
}

pub(crate) fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.action {
        Action::Show(args) => show(&args.folder.results()?, &args),
        Action::List(args) => list(&args.folder.results()?, args.json),
        Action::Remove(args) => remove(&args.folder.results()?, &args),
    }
}

fn show(results: &Results, args: &Show) -> anyhow::Result<ExitCode> {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(flatten)]
        stored: &'a StoredResult,
        offset: u64,
        next: Option<u64>,
        text: &'a str,
    }
    let end = args.limit.map_or(u64::MAX, |limit| args.offset.saturating_add(limit as u64));
    let part = results.open(&args.reference, args.offset..end).map_err(explained)?;
    if args.offset > 0 && args.offset >= part.stored.bytes {
        let bytes = render::counted(part.stored.bytes, "byte");
        render::warning(&format!("offset {} is past the end: the result has {bytes}", args.offset));
    }
    if args.json {
        let line = Line { stored: &part.stored, offset: part.offset, next: part.next, text: &part.text() };
        render::print_json(&serde_json::to_string(&line)?)?;
    } else {
        render::print_content(&part.content)?;
        if let Some(next) = part.next {
            if !part.content.ends_with(b"\n") && !io::stdout().is_terminal() {
                // Standard output and standard error may go to one place.
                render::aside("");
            }
            render::hint(&format!(
                "the result has {}; continue with `--offset {next}`",
                render::counted(part.stored.bytes, "byte")
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(results: &Results, json: bool) -> anyhow::Result<ExitCode> {
    let stored = results.list()?;
    if json {
        render::print_json(&serde_json::to_string(&stored)?)?;
    } else {
        render::print(&render::table(HEADINGS, stored.iter().map(row)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn row(result: &StoredResult) -> [String; 5] {
    [
        result.reference.clone(),
        result.bytes.to_string(),
        format!("{:.0}", result.created),
        render::one_line(&result.tool),
        render::one_line(&result.invocation),
    ]
}

/// Removes the results that can be removed and reports the others.
fn remove(results: &Results, args: &Remove) -> anyhow::Result<ExitCode> {
    if args.all {
        let removed = results.clear()?;
        render::aside(&format!("removed {}", render::counted(removed, "result")));
        return Ok(ExitCode::SUCCESS);
    }
    let failed: Vec<_> = args.references.iter().filter_map(|reference| results.remove(reference).err()).collect();
    let code = if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    failed.into_iter().for_each(|error| render::explain(&explained(error)));
    Ok(code)
}

/// Adds the command that lists the references to an error about an unknown one.
fn explained(error: Error) -> anyhow::Error {
    match error {
        Error::NoResult { .. } => {
            Advice::new(error.to_string(), "`toolcrib result list` shows the stored results; each lasts at most 7 days")
                .into()
        }
        error => error.into(),
    }
}
