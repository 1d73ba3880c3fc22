//! `toolcrib chat`: a conversation with a model at the terminal, with the tools and permissions of `run`.

mod folder;

use std::process::ExitCode;
use std::sync::Arc;

use toolcrib::Builder;
use toolcrib_agent::Agent;
use toolcrib_agent::approval::KeptApprover;
use toolcrib_agent::briefing::briefing;
use toolcrib_agent::chat::{AllowedAhead, Chat, ChatApprover, FileChanges};
use toolcrib_agent::prompt::{PromptOptions, StdinUse};
use toolcrib_agent::runs::KeepOptions;
use toolcrib_agent::unsent::unsent_count;
use toolcrib_base::render::counted;
use toolcrib_base::{interrupt, render};
use toolcrib_settings::instructions::trusted_instructions;
use toolcrib_settings::permission::FolderHints;

use super::run::{AgentOptions, OpenedAgent};
use super::stage;
use super::undo::ChatFiles;
use folder::Offer;

const EXAMPLES: &str = "\
Examples:
  toolcrib chat --model gpt-5-mini --allow-read=.
  toolcrib chat \"what is in this folder?\" --model gpt-5-mini --allow-read=.
  toolcrib chat --continue --model gpt-5-mini
  toolcrib chat --resume 7k3md-x0q9a --model gpt-5-mini

Type a message and press Enter. `/help` lists the commands: /tools, /allow, /undo, /model, /cost, \
/compact, /go, /quit. \
Ctrl-C stops an answer, and its text stays.

Exit status: 0 the chat was ended, 1 failure, 2 usage error, 129 or 143 terminated.";

/// Chat with a model that calls the tools, at the terminal.
///
/// Every message is answered by the same loop as in `run`, with the same permissions. The chat is kept: `--continue` and
/// `--resume` continue it, also in `run`.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    opening: Box<PromptOptions>,
    #[command(flatten)]
    shared: Box<AgentOptions>,
}

pub(crate) async fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    let shared = &mut args.shared;
    let settings = shared.settings()?;
    // Nobody is asked about the folder of a chat that cannot begin.
    if !shared.is_scripted() {
        settings.model()?;
    }
    shared.sources.fetch().await?;
    shared.remote.open(&shared.stage).await?;
    if !shared.quiet && !shared.remote.is_named() && folder::offer(&mut shared.sources).await? == Offer::Interrupted {
        return Ok(ExitCode::from(interrupt::INTERRUPTED));
    }
    // The built-in tools alone cannot compute over a file.
    shared.sources.offers_programs = shared.sources.are_builtin();
    shared.set_mode(false);
    let script = shared.script()?;
    let earlier = shared.keep.earlier(&shared.sources)?;
    let id = KeepOptions::run_id(earlier.as_ref())?;
    let earlier_run = earlier.as_ref().map(|earlier| &earlier.run);
    // Only a new conversation gets the hint about the tools.
    let is_new = earlier_run.is_none();
    let label = earlier_run.map(|run| run.label.clone()).unwrap_or_default();
    let conversation = args.opening.conversation(script.as_ref(), StdinUse::Messages, earlier_run).await?;
    let allowed = AllowedAhead::default();
    let terminal = shared.terminal_approver()?;
    let approver = KeptApprover::new(Arc::new(ChatApprover::new(allowed.clone(), terminal.clone())));
    let with = |builder: Builder| args.opening.keep_apart(builder).approver(approver.clone());
    let opened = shared.open(("chat", &id), &settings, terminal, (script.is_some(), false), true, with)?;
    let OpenedAgent { runtime, door, options, agents, effects } = opened;
    let instructions = trusted_instructions(&shared.sources.trust.trusted()?);
    let conversation = conversation.with_briefing(briefing(&runtime, &runtime.session(), instructions.as_deref()));
    let folders = FolderHints::of(&runtime);
    let mut report = shared
        .report(&settings, false)
        .placing(folders)
        .traced(door.span().map(|span| span.of_run(&id)))
        .saving(door.media().cloned());
    settings.warnings.iter().try_for_each(|warning| report.warn(warning))?;
    let model = shared.model(&settings, script)?;
    let keeper = shared.keeper((earlier, id), &settings, &runtime, ("chat", &options.model))?;
    let report = report.kept(keeper.clone(), "chat");
    agents.begin(&runtime, &model, &options, &report);
    let begun = keeper.as_ref().map(|keeper| (keeper.id(), options.model.clone()));
    let folder = keeper.is_some().then(|| shared.keep.folder()).transpose()?;
    let mut session = runtime.session();
    session.continue_label(&label);
    session.add_label(&args.opening.label(&runtime));
    if let Some(keeper) = &keeper {
        session = session.keeping_programs(shared.keep.programs(&keeper.id())?);
    }
    let mut agent = Agent::new(session, model, options, conversation.kept_by(keeper.clone()), report);
    approver.begin(keeper.clone(), agent.shown_events());
    // The chat is kept before its tools are compiled: that can take long.
    let prepared = match agent.keep() {
        Ok(()) => shared.sources.prepare(&runtime, !shared.quiet).await,
        failed => failed,
    };
    if let Err(error) = prepared {
        let end = agent.close(Err(error)).await;
        let written = door.close().await;
        end?;
        written?;
        return Ok(ExitCode::FAILURE);
    }
    if let (false, Some((id, model))) = (shared.quiet, begun) {
        let hidden = if is_new { unsent_count(&runtime) } else { 0 };
        let hidden = if hidden == 0 { String::new() } else { format!("; {} (`/tools`)", lacking(hidden)) };
        render::aside(&format!("chat {id} with {model}{hidden}; `/help` lists the commands"));
    }
    let files = keeper.as_ref().map(|keeper| ChatFiles::of(&keeper.id())).transpose()?.flatten();
    let files = files.map(|files| Box::new(files) as Box<dyn FileChanges>);
    let chat = Chat::new(agent, runtime, allowed, keeper.clone(), folder.as_deref()).with_files(files);
    let end = chat.run().await;
    let written = door.close().await;
    let staged = stage::close(effects, true).await;
    end?;
    written?;
    staged?;
    if let (false, Some(keeper)) = (shared.quiet, keeper.filter(|keeper| !keeper.is_empty())) {
        let id = keeper.id();
        render::hint(&format!("chat saved; continue: `toolcrib chat --resume {id}` (repeat your options)"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the number of tools without permissions, in words.
fn lacking(count: usize) -> String {
    let verb = if count == 1 { "lacks" } else { "lack" };
    format!("{} {verb} permissions", counted(count, "tool"))
}
