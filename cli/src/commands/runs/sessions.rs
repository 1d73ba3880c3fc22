//! `toolcrib runs sessions`: the sessions of programs in a kept run.

use std::process::ExitCode;
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::{Value, json};
use toolcrib::programs::StoredSession;
use toolcrib_agent::runs::{RunStore, RunsFolder};
use toolcrib_base::render::{self, Advice, one_line};

const HEADINGS: [&str; 4] = ["SESSION", "LANGUAGE", "BYTES", "USED"];
const SESSIONS_EXAMPLES: &str = "\
Examples:
  toolcrib runs sessions 7k3md-x0q9a
  toolcrib runs sessions 7k3md-x0q9a --end sales

A program of `run_code` with a session sees the variables of the programs before it in that session. A run has at most 8 \
sessions of at most 8 MiB, each for 7 days after its last program.";

/// List the sessions of programs in a run, or end one.
#[derive(clap::Args)]
#[command(after_long_help = SESSIONS_EXAMPLES)]
pub(super) struct Args {
    /// Identifier of the run
    #[arg(value_name = "ID")]
    id: String,
    /// End this session: the next program of this name begins a new one
    #[arg(long, value_name = "NAME")]
    end: Option<String>,
    /// Print a JSON array, one object per session
    #[arg(long, conflicts_with = "end")]
    json: bool,
    #[command(flatten)]
    folder: RunsFolder,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (store, id) = (args.folder.store()?, RunStore::parse(&args.id)?);
    if !store.files()?.iter().any(|stored| stored.id == id) {
        return Err(Advice::new(format!("no run `{id}`"), "`toolcrib runs list` lists the kept runs").into());
    }
    let programs = store.programs(&id);
    if let Some(name) = &args.end {
        if !programs.end(name)? {
            let message = format!("run `{id}` has no session `{}`", one_line(name));
            let hint = format!("`toolcrib runs sessions {id}` lists its sessions");
            return Err(Advice::new(message, hint).into());
        }
        render::aside(&format!("ended the session `{}`", one_line(name)));
        return Ok(ExitCode::SUCCESS);
    }
    let sessions = programs.list()?;
    if args.json {
        let all: Vec<Value> = sessions.iter().map(fields).collect();
        render::print_json(&serde_json::to_string(&all)?)?;
    } else {
        render::print(&render::table(HEADINGS, sessions.iter().map(cells)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn time(used: SystemTime) -> Timestamp {
    Timestamp::try_from(used).unwrap_or_default()
}

fn fields(session: &StoredSession) -> Value {
    json!({
        "name": session.name,
        "language": session.language,
        "bytes": session.bytes,
        "used": time(session.used).to_string(),
    })
}

fn cells(session: &StoredSession) -> [String; 4] {
    let used = format!("{:.0}", time(session.used));
    [one_line(&session.name), one_line(&session.language), session.bytes.to_string(), used]
}
