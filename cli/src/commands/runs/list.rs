//! `toolcrib runs list`: the kept runs, last changed first, with a search in their texts.

use serde_json::{Value, json};

use crate::options::RunsFolder;
use crate::parse::count;
use crate::render::{self, one_line, shortened};
use crate::runs::{KeptRun, RunState, RunStore};

const HEADINGS: [&str; 6] = ["ID", "CREATED", "STATE", "STEPS", "MODEL", "PROMPT"];
/// Maximum characters of a prompt or a name in the list.
const MAX_TEXT: usize = 200;
const LIST_EXAMPLES: &str = "\
Examples:
  toolcrib runs list --here --last 5
  toolcrib runs list --search invoice
  toolcrib runs list --json | jq -r '.[] | select(.state == \"killed\").id'

STATE is `answer`, `max_steps`, `budget`, `interrupted` or `failed`, as the run ended; `running` while \
a process writes it; `killed` if its process ended without a word.";

/// List the kept runs.
#[derive(clap::Args)]
#[command(after_long_help = LIST_EXAMPLES)]
pub(super) struct Args {
    /// Only runs in which this text occurs: in prompts, answers, results, or names and arguments of calls
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only runs of the current folder
    #[arg(long)]
    here: bool,
    /// Only this many
    #[arg(long, value_name = "N", value_parser = count::<usize, 1, { u64::MAX }>)]
    last: Option<usize>,
    /// Print a JSON array, one object per run
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: RunsFolder,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let store = args.folder.store()?;
    let here = std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
    let mut found = Vec::new();
    for stored in store.files()? {
        if args.last.is_some_and(|last| found.len() == last) {
            break;
        }
        let run = match store.read(&stored.id) {
            Ok(run) => run,
            Err(error) => {
                render::warning(&render::message(&error));
                continue;
            }
        };
        let is_meant =
            (!args.here || run.header.folder == here) && args.search.as_deref().is_none_or(|text| run.contains(text));
        if is_meant {
            found.push(Row { state: state(&store, &run), bytes: stored.bytes, run });
        }
    }
    if args.json {
        let all: Vec<Value> = found.iter().map(Row::json).collect();
        return render::print_json(&serde_json::to_string(&all)?);
    }
    render::print(&render::table(HEADINGS, found.iter().map(Row::cells)))
}

/// Returns the state of a run in a word.
pub(super) fn state(store: &RunStore, run: &KeptRun) -> String {
    match &run.state {
        // A process that was ended by a run may go on with it now.
        _ if store.is_running(&run.header.id) => "running".to_owned(),
        RunState::Ended(reason) => one_line(reason),
        RunState::Open => "killed".to_owned(),
    }
}

struct Row {
    run: KeptRun,
    state: String,
    bytes: u64,
}

impl Row {
    fn cells(&self) -> [String; 6] {
        let KeptRun { header, steps, .. } = &self.run;
        let text = |text: &str| one_line(&shortened(text, MAX_TEXT));
        [
            header.id.clone(),
            format!("{:.0}", header.created),
            self.state.clone(),
            steps.to_string(),
            text(&header.model),
            text(&self.run.title()),
        ]
    }

    fn json(&self) -> Value {
        let KeptRun { header, steps, calls, usage, .. } = &self.run;
        json!({
            "id": header.id,
            "created": header.created,
            "state": self.state,
            "door": header.door,
            "model": header.model,
            "folder": header.folder,
            "parent": header.parent,
            "prompt": shortened(&self.run.title(), MAX_TEXT),
            "steps": steps,
            "calls": calls,
            "usage": usage,
            "bytes": self.bytes,
        })
    }
}
