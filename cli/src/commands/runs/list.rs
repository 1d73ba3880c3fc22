//! `toolcrib runs list`: the kept runs, last changed first, with a search in their texts.

use serde_json::{Value, json};
use toolcrib_agent::runs::RunsFolder;
use toolcrib_agent::runs::{RunSelection, RunSummary};
use toolcrib_base::parse::count;
use toolcrib_base::render::{self, one_line, shortened};

const HEADINGS: [&str; 6] = ["ID", "CREATED", "STATE", "STEPS", "MODEL", "PROMPT"];
/// Maximum characters of a prompt or a name in the list.
const MAX_TEXT: usize = 200;
const LIST_EXAMPLES: &str = "\
Examples:
  toolcrib runs list --here --last 5
  toolcrib runs list --search invoice
  toolcrib runs list --json | jq -r '.[] | select(.state == \"killed\").id'

STATE is `answer`, `max_steps`, `budget`, `interrupted` or `failed`, depending on how the run or the last exchange \
in a chat ended; `ended` if a chat has no answer; `running` while a process writes it; `killed` if its process ended \
without recording an end.";

/// List the kept runs.
#[derive(clap::Args)]
#[command(after_long_help = LIST_EXAMPLES)]
pub(super) struct Args {
    /// Only runs that contain this text: in prompts, answers, results, or call names and arguments
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Only runs of the current directory
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
    let folder = args.here.then_some(here.as_str());
    let selection = RunSelection { text: args.search.as_deref(), folder, state: None };
    let mut found = Vec::new();
    for stored in store.files()? {
        if args.last.is_some_and(|last| found.len() == last) {
            break;
        }
        match selection.summary(&store, &stored) {
            Ok(Some(run)) => found.push(Row { bytes: stored.bytes, run }),
            Ok(None) => {}
            Err(error) => render::warning(&render::message(&error)),
        }
    }
    if args.json {
        let all: Vec<Value> = found.iter().map(Row::json).collect();
        return render::print_json(&serde_json::to_string(&all)?);
    }
    render::print(&render::table(HEADINGS, found.iter().map(Row::cells)))
}

struct Row {
    run: RunSummary,
    bytes: u64,
}

impl Row {
    fn cells(&self) -> [String; 6] {
        let RunSummary { header, title, figures, state } = &self.run;
        let text = |text: &str| one_line(&shortened(text, MAX_TEXT));
        [
            header.id.clone(),
            format!("{:.0}", header.created),
            one_line(state.as_str()),
            figures.as_ref().map_or_else(|| "?".to_owned(), |figures| figures.steps.to_string()),
            text(&header.model),
            text(title),
        ]
    }

    fn json(&self) -> Value {
        let RunSummary { header, title, figures, state } = &self.run;
        let figures = figures.as_ref();
        json!({
            "id": header.id,
            "created": header.created,
            "state": one_line(state.as_str()),
            "door": header.door,
            "model": header.model,
            "folder": header.folder,
            "parent": header.parent,
            "prompt": shortened(title, MAX_TEXT),
            "steps": figures.map(|figures| figures.steps),
            "calls": figures.map(|figures| figures.calls),
            "usage": figures.and_then(|figures| figures.usage),
            "ms": figures.and_then(|figures| figures.ms),
            "cost": figures.and_then(|figures| figures.cost),
            "bytes": self.bytes,
        })
    }
}
