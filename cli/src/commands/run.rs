//! `toolcrib run`: runs an agent loop with a model and prints the answer.

mod shared;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use toolcrib::policy::Approver;
use toolcrib::{Availability, Builder, Runtime, Tool};
use toolcrib_agent::approval::KeptApprover;
use toolcrib_agent::briefing::briefing;
use toolcrib_agent::conversation::Conversation;
use toolcrib_agent::event::{Ending, Event, Totals};
use toolcrib_agent::prompt::{PromptOptions, StdinUse};
use toolcrib_agent::questions::ProgramApprover;
use toolcrib_agent::report::{Audience, Report};
use toolcrib_agent::runs::KeepOptions;
use toolcrib_agent::runs::{KeptRun, RunState};
use toolcrib_agent::{Agent, RequestOptions};
use toolcrib_base::parse::approval_wait;
use toolcrib_base::render::{self, Advice, usage_error};
use toolcrib_settings::instructions::trusted_instructions;
use toolcrib_settings::permission::{FolderHints, TerminalApprover, WaitingApprover};
use toolcrib_sources::options::RULES;

use super::stage;

pub(crate) use shared::{AgentOptions, OpenedAgent};

const EXAMPLES: &str = "\
Examples:
  toolcrib run \"what is in this folder?\" --model gpt-5-mini --allow-read=.
  git diff | toolcrib run \"review this\" --model gpt-5-mini
  toolcrib run \"what is wrong here?\" --attach shot.png --attach log.txt
  toolcrib run \"hello\" --base-url http://localhost:11434/v1 --model llama3.2
  toolcrib run \"go on\" --load-messages talk.json --save-messages talk.json
  toolcrib run \"sum up\" --json | jq -r 'select(.type == \"tool_call\").name'
  toolcrib run --script demo.json

A script replaces the model, without a server or a key:
  {\"prompt\": \"…\", \"turns\": [
    {\"content\": \"…\", \"tool_calls\": [
      {\"name\": \"fs_list_dir\", \"arguments\": {\"path\": \".\"}}]},
    {\"content\": \"the answer\"}]}

With --json every line of standard output is one event with a `type`: start, text, message, \
tool_call, tool_preview, tool_part, tool_result, usage, retry, compacted, warning, and finally `end` or \
`error`.
With --answers a call that needs approval is an event `permission_asked`, and standard input takes \
its answer:
  {\"type\": \"permission_answer\", \"id\": \"q1\", \"answer\": \"once\"}

Exit status: 0 the model answered, 1 it did not, 2 usage error, 4 stopped at --max-steps or another \
budget, 130 interrupted, 129 or 143 terminated. After 1, 4 and a signal, `--resume ID` continues the run.";

const OUTPUT: &str = "Output";
const INSTEAD: &str = "Print instead of running";

/// Run an agent: a model that calls the tools until it answers.
///
/// The answer is printed to standard output, a trace of every call to standard error. The model is accessed through the
/// Chat Completions API, which most servers support, or with `--api responses` through the Responses API.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    opening: Box<PromptOptions>,
    #[command(flatten)]
    shared: Box<AgentOptions>,

    /// Print one JSON event per line instead of the answer
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Print the first messages before they are sent
    #[arg(long, hide = true, help_heading = OUTPUT)]
    print_messages: bool,

    /// Print the first request without sending it
    #[arg(long, help_heading = INSTEAD)]
    dry_run: bool,
    /// Print the tools that the model may call, sorted
    #[arg(long, help_heading = INSTEAD)]
    capabilities: bool,
    /// Print the settings and the source of each, with the key masked
    #[arg(long, hide = true, help_heading = INSTEAD)]
    print_config: bool,

    /// With --json, read the answers to `permission_asked` events from standard input, one JSON object a line
    #[arg(long, requires = "json", help_heading = RULES)]
    answers: bool,
    /// Let each call that needs approval wait this long, at most `1h`, for `toolcrib approvals allow` or `deny` in another
    /// terminal
    #[arg(long, value_name = "TIME", value_parser = approval_wait, conflicts_with = "answers", help_heading = RULES)]
    wait_approval: Option<Duration>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let (json, mut begun) = (args.json, false);
    let end = perform(args, &mut begun).await;
    if let (Err(error), true, false) = (&end, json, begun) {
        emit_error(error);
    }
    end
}

/// Reports an error that prevents the run from starting, as an event if the output is JSON.
pub(super) fn refuse(args: &Args, error: &anyhow::Error) {
    if args.json {
        emit_error(error);
    }
}

fn emit_error(error: &anyhow::Error) {
    let exit_code = if error.is::<clap::Error>() { 2 } else { 1 };
    // Standard output may be closed; the error is printed to standard error in any case.
    let event = Event::Error { message: &render::message(error), exit_code };
    let _ = Report::new(Audience::Program, false, Vec::new()).emit(&event);
}

/// Performs the run; sets `begun` once the run reports its own end.
async fn perform(mut args: Args, begun: &mut bool) -> anyhow::Result<ExitCode> {
    let settings = args.shared.settings()?;
    if args.print_config {
        render::print_json(&serde_json::to_string_pretty(&args.shared.shown(&settings))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    args.shared.sources.fetch().await?;
    args.shared.remote.open(&args.shared.stage).await?;
    if args.capabilities {
        let terminal = args.shared.terminal_approver()?;
        print_capabilities(&args.shared.runtime(&settings, terminal, |builder| builder)?, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let script = args.shared.script()?;
    let earlier = args.shared.keep.earlier(&args.shared.sources)?;
    let stdin = if args.answers { StdinUse::Answers } else { StdinUse::Text };
    let id = KeepOptions::run_id(earlier.as_ref())?;
    let earlier_run = earlier.as_ref().map(|earlier| &earlier.run);
    // Only a new conversation gets the hints about the tools.
    let is_new = earlier_run.is_none();
    let label = earlier_run.map(|run| run.label.clone()).unwrap_or_default();
    let conversation = args.opening.conversation(script.as_ref(), stdin, earlier_run).await?;
    if let Some(run) = earlier_run.filter(|_| !conversation.awaits_model()) {
        return args.repeat_answer(run);
    }
    // A script goes on where it was, unless a prompt begins anew.
    let is_same = earlier_run.is_some_and(|run| conversation.messages().len() == run.messages.len());
    let script = script.map(|script| script.after(if is_same { conversation.answers() } else { 0 }));
    args.shared.set_mode(args.answers || args.wait_approval.is_some());
    let terminal = args.shared.terminal_approver()?;
    let approver = KeptApprover::new(args.approver(&terminal, &id)?);
    let with = |builder: Builder| args.opening.keep_apart(builder).approver(approver.clone());
    let opened =
        args.shared.open(("run", &id), &settings, terminal, (script.is_some(), args.json), !args.dry_run, with)?;
    let OpenedAgent { runtime, door, options, agents, effects } = opened;
    let instructions = trusted_instructions(&args.shared.sources.trust.trusted()?);
    let conversation = conversation.with_briefing(briefing(&runtime, &runtime.session(), instructions.as_deref()));
    if args.print_messages {
        render::aside(&serde_json::to_string_pretty(conversation.messages())?);
    }
    let folders = FolderHints::of(&runtime);
    let mut report = args
        .shared
        .report(&settings, args.json)
        .placing(folders)
        .traced(door.span().map(|span| span.of_run(&id)))
        .saving(door.media().cloned());
    settings.warnings.iter().try_for_each(|warning| report.warn(warning))?;
    if args.dry_run {
        print_request(&options, &conversation, &options.definitions(&runtime.session()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let model = args.shared.model(&settings, script)?;
    let keeper = args.shared.keeper((earlier, id), &settings, &runtime, ("run", &options.model))?;
    let report = report.kept(keeper.clone(), "run");
    *begun = true;
    agents.begin(&runtime, &model, &options, &report);
    let resume = report.resume_command().filter(|_| !args.json);
    let mut session = runtime.session();
    session.continue_label(&label);
    session.add_label(&args.opening.label(&runtime));
    if let Some(keeper) = &keeper {
        session = session.keeping_programs(args.shared.keep.programs(&keeper.id())?);
    }
    let mut agent = Agent::new(session, model, options, conversation.kept_by(keeper.clone()), report);
    approver.begin(keeper, agent.shown_events());
    // The run is kept before its tools are compiled: that can take long.
    let kept = agent.keep();
    let resume = resume.filter(|_| kept.is_ok());
    let prepared = match kept {
        Ok(()) => args.shared.sources.prepare(&runtime, !args.shared.quiet).await,
        failed => failed,
    };
    let end = match prepared {
        Ok(()) => {
            if is_new && !args.json && !args.shared.quiet {
                args.shared.hint_tools(&runtime);
            }
            agent.run().await
        }
        Err(error) => agent.close(Err(error)).await,
    };
    let written = door.close().await;
    let staged = stage::close(effects, !args.json).await;
    if let (Err(_), Err(error)) = (&end, &staged) {
        render::warning(&render::message(error));
    }
    let end = match end {
        Ok(end) => end,
        Err(error) => return Ok(shared::explain_failure(&error, resume.as_deref())),
    };
    written?;
    staged?;
    Ok(shared::exit_code(end.0))
}

impl Args {
    /// Prints the kept answer of a run that was killed after it; any other run with an answer needs a prompt.
    fn repeat_answer(&self, run: &KeptRun) -> anyhow::Result<ExitCode> {
        let Some(answer) = run.answer().filter(|_| run.state == RunState::Killed) else {
            return Err(usage_error("the run has ended with an answer: pass a PROMPT to continue it"));
        };
        match self.json {
            true => {
                let mut report = Report::new(Audience::Program, false, Vec::new());
                report.emit(&Event::Message { step: run.figures.steps, content: &answer, r#final: true })?;
                let (reason, id, totals) = (Ending::Answer, run.header.id.as_str(), Totals::default());
                let (answer, run) = (Some(answer.as_str()), Some(id));
                report.emit(&Event::End { reason, answer, budget: None, stopped: None, run, totals, exit_code: 0 })?;
            }
            false => render::print_answer(&answer)?,
        }
        render::hint("the run has already ended with this answer; pass a PROMPT to continue it");
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the approver: the terminal, or what takes its place. A dry run asks nothing.
    fn approver(&self, terminal: &Arc<TerminalApprover>, id: &str) -> anyhow::Result<Arc<dyn Approver>> {
        let approvals = || self.shared.sources.rules.kept.file();
        match (self.answers, self.wait_approval) {
            (true, _) if !self.dry_run => {
                let approver =
                    ProgramApprover::start(approvals()).context("cannot read answers from standard input")?;
                Ok(Arc::new(approver))
            }
            (_, Some(max_wait)) if !self.dry_run => {
                let calls = self.shared.sources.rules.kept.pending().ok_or_else(|| {
                    let message = "no file for the calls that wait: no home directory was found";
                    Advice::new(message, "set one with `--set approvals.pending=FILE`")
                })?;
                Ok(Arc::new(WaitingApprover::new(calls, approvals(), max_wait, id)))
            }
            _ => Ok(terminal.clone()),
        }
    }
}

fn print_request(options: &RequestOptions, conversation: &Conversation, tools: &[Value]) -> anyhow::Result<()> {
    let request = serde_json::to_string_pretty(&options.request(&conversation.sent(), tools))?;
    request.lines().try_for_each(render::print_json)
}

fn print_capabilities(runtime: &Runtime, json: bool) -> anyhow::Result<()> {
    let is_open = |tool: &&Tool| {
        !matches!(runtime.availability(&tool.name), Some(Availability::Disabled { .. } | Availability::Unusable { .. }))
    };
    let mut tools: Vec<_> = runtime.tools().filter(is_open).collect();
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let granted = |name: &str| runtime.grant(name).map(|grant| grant.granted()).unwrap_or_default();
    if json {
        let record =
            |name: &str, description| json!({ "name": name, "description": description, "granted": granted(name) });
        let records: Vec<Value> = tools.iter().map(|tool| record(&tool.name, &tool.description)).collect();
        return render::print_json(&serde_json::to_string(&records)?);
    }
    let widest = tools.iter().map(|tool| tool.name.chars().count()).max().unwrap_or_default();
    for tool in tools {
        let description = render::one_line(tool.description.as_deref().unwrap_or_default());
        let may = match granted(&tool.name) {
            granted if granted.is_empty() => String::new(),
            granted => format!(" [{}]", render::one_line(&granted.join(", "))),
        };
        render::print(format!("{:widest$}  {description}{may}", render::one_line(&tool.name)).trim_end())?;
    }
    Ok(())
}
