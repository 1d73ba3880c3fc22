//! `toolcrib runs show`: the conversation of a run, for people or as JSON.

use std::collections::HashMap;

use serde_json::json;
use toolcrib_agent::message::{Message, Role};
use toolcrib_agent::runs::RunsFolder;
use toolcrib_agent::runs::{CallState, KeptRun, RunFigures, RunState};
use toolcrib_agent::turn::Call;
use toolcrib_base::render::{self, counted, one_line, shortened};

/// Maximum characters shown of a result without `--full`.
const MAX_RESULT: usize = 400;
const SHOW_EXAMPLES: &str = "\
Examples:
  toolcrib runs show last
  toolcrib runs show 7k3md-x0q9a
  toolcrib runs show 7k3md-x0q9a --json | jq -r '.messages[-1].content'";

/// Show the conversation of a run.
#[derive(clap::Args)]
#[command(after_long_help = SHOW_EXAMPLES)]
pub(super) struct Args {
    /// Identifier of the run, or `last` for the last one in this directory
    #[arg(value_name = "ID")]
    id: String,
    /// Show arguments and results in full
    #[arg(long)]
    full: bool,
    /// Print one JSON object: the run with its messages
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    folder: RunsFolder,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    let store = args.folder.store()?;
    let run = store.read(&store.find(&args.id)?)?;
    let KeptRun { header, messages, compaction, pending, open, arriving, changes, figures, .. } = &run;
    let RunFigures { steps, calls, usage, .. } = figures;
    let state = one_line(run.state.as_str());
    if args.json {
        let pending: Vec<&str> = pending.iter().map(|call| call.id.as_str()).collect();
        let changes: Vec<&str> = changes.iter().map(|(_, change)| change.as_str()).collect();
        let in_progress =
            |(call, state): &(Call, CallState)| json!({ "id": call.id, "name": call.name, "state": state.as_str() });
        let mut shown = json!({
            "id": header.id, "created": header.created, "state": state, "door": header.door, "model": header.model,
            "folder": header.folder, "parent": header.parent, "steps": steps, "calls": calls, "usage": usage,
            "pending": pending, "changes": changes, "messages": messages,
        });
        if run.state == RunState::Running {
            shown["inProgress"] = json!({
                "calls": open.iter().map(in_progress).collect::<Vec<_>>(),
                "text": Some(arriving).filter(|text| !text.is_empty()),
            });
        }
        return render::print_json(&serde_json::to_string(&shown)?);
    }
    let tokens =
        usage.map_or(String::new(), |usage| format!(" · {} + {} tokens", usage.prompt_tokens, usage.completion_tokens));
    let (steps, calls) = (counted(*steps, "step"), counted(*calls, "call"));
    render::print_screen(&format!("{}  {:.0}  {state}  {steps} · {calls}{tokens}", header.id, header.created))?;
    render::print_screen(&format!("model {}, directory {}", one_line(&header.model), one_line(&header.folder)))?;
    if let Some(parent) = &header.parent {
        render::print(&format!("forked from {}", one_line(parent)))?;
    }
    // Another step may have a call with the same identifier: the last one before the result made it.
    let mut names = HashMap::new();
    for (at, message) in messages.iter().enumerate() {
        if let Some(compaction) = compaction.as_ref().filter(|compaction| compaction.messages == at) {
            let summary = render::legible(compaction.summary.trim_end()).replace('\n', "\n    ");
            render::print_screen(&format!("\nsummary that replaces the messages above for the model: {summary}"))?;
        }
        show(message, &names, args.full)?;
        names.extend(message.calls().into_iter().map(|call| (call.id, call.name)));
    }
    for call in pending {
        render::print(&format!("\n(not made yet: {})", one_line(&call.name)))?;
    }
    for (call, state) in open {
        render::print(&format!("\n(in progress: {}, {})", one_line(&call.name), state.in_words()))?;
    }
    if !arriving.is_empty() {
        show(&Message::text(Role::Assistant, arriving.as_str()), &names, args.full)?;
        render::print("\n(in progress: the answer)")?;
    }
    Ok(())
}

/// Prints a message with its author, and a result with its tool. Each further line is indented, so that no text can pass for
/// another message.
fn show(message: &Message, names: &HashMap<String, String>, full: bool) -> anyhow::Result<()> {
    let cut = |text: &str| match full {
        true => text.to_owned(),
        false => shortened(text, MAX_RESULT).into_owned(),
    };
    let text = message.shown_text();
    let (author, text) = match message.role {
        Role::System | Role::Developer => ("system", cut(&text)),
        Role::User => ("user", text),
        Role::Assistant => ("model", text),
        Role::Tool => ("  ←", cut(&text)),
    };
    let tool = message.answered_call().and_then(|id| names.get(id));
    let tool = tool.map_or(String::new(), |name| format!(" {}", one_line(name)));
    if !text.is_empty() {
        let text = render::legible(text.trim_end()).replace('\n', "\n    ");
        let line = format!("{}{tool}: {text}", render::spoken(author));
        // Results are data: only the terminal divides their lines.
        if message.role == Role::Tool { render::print(&line)? } else { render::print_screen(&format!("\n{line}"))? }
    }
    for call in message.calls() {
        let arguments = one_line(&cut(&call.arguments));
        render::print(&format!("{} {} {arguments}", render::spoken("  →"), one_line(&call.name)))?;
    }
    Ok(())
}
