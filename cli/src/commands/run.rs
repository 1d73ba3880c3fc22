//! `toolcrib run`: runs an agent loop with a model and prints the answer.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value, json};
use toolcrib::policy::Approver;
use toolcrib::{Availability, Builder, Runtime, Tool};

use crate::agent::briefing::briefing;
use crate::agent::conversation::Conversation;
use crate::agent::delegate::Agents;
use crate::agent::event::{Ending, Event};
use crate::agent::model::Model;
use crate::agent::prompt::{PromptOptions, StdinUse};
use crate::agent::questions::ProgramApprover;
use crate::agent::report::{Audience, Detail, Report};
use crate::agent::script::Script;
use crate::agent::settings::{ModelOptions, Settings};
use crate::agent::unsent::unsent_hint;
use crate::agent::{Agent, RequestOptions};
use crate::door::Door;
use crate::instructions::trusted_instructions;
use crate::options::{RecordsFolder, Sources, duration};
use crate::parse::MAX_APPROVAL_WAIT;
use crate::permission::WaitingApprover;
use crate::render::{self, Advice};
use crate::telemetry::{Root, TelemetryOptions};

const EXAMPLES: &str = "\
Examples:
  toolcrib run \"what is in this folder?\" --model gpt-5-mini --allow-read=.
  git diff | toolcrib run \"review this\" --model gpt-5-mini
  toolcrib run \"what is wrong here?\" --attach shot.png --attach log.txt
  toolcrib run \"hello\" --base-url http://localhost:11434/v1 --model llama3.2
  toolcrib run \"tidy up\" --api responses --model gpt-5-mini --allow-write=.
  toolcrib run \"go on\" --load-messages talk.json --save-messages talk.json
  toolcrib run \"sum up\" --json | jq -r 'select(.type == \"tool_call\").name'
  toolcrib run --script demo.json

A script replaces the model, without a server or a key:
  {\"prompt\": \"…\", \"turns\": [
    {\"content\": \"…\", \"tool_calls\": [
      {\"name\": \"fs_list_dir\", \"arguments\": {\"path\": \".\"}}]},
    {\"content\": \"the answer\"}]}
A call of a tool that takes text has `\"input\": \"the text\"` instead of `arguments`.

With --json every line of standard output is one event with a `type`: start, text, message, \
tool_call, tool_preview, tool_part, tool_result, usage, retry, warning, and finally `end` or \
`error`.
With --answers a call that needs approval is an event `permission_asked`, and standard input takes \
its answer:
  {\"type\": \"permission_answer\", \"id\": \"q1\", \"answer\": \"once\"}

Exit status: 0 the model answered, 1 it did not, 2 usage error, 130 interrupted, 129 or 143 \
terminated.";

const OUTPUT: &str = "Output";
const APPROVALS: &str = "Approvals";
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
    model: Box<ModelOptions>,

    /// Print text as it arrives (the default on a terminal)
    #[arg(long, overrides_with = "no_stream", help_heading = OUTPUT)]
    stream: bool,
    /// Print text only when it is complete
    #[arg(long, overrides_with = "stream", help_heading = OUTPUT)]
    no_stream: bool,
    /// Print one JSON event per line instead of the answer
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Also show the standard error of tools, and do not truncate
    #[arg(long, short, conflicts_with = "quiet", help_heading = OUTPUT)]
    verbose: bool,
    /// Do not print a trace
    #[arg(long, short, help_heading = OUTPUT)]
    quiet: bool,
    /// Save media that tools show to this directory
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    media: Option<PathBuf>,
    /// Print requests and responses, with the key masked
    #[arg(long, help_heading = OUTPUT)]
    debug: bool,
    /// Print the first messages before they are sent
    #[arg(long, help_heading = OUTPUT)]
    print_messages: bool,

    /// Print the first request without sending it
    #[arg(long, help_heading = INSTEAD)]
    dry_run: bool,
    /// Print the tools that the model may call, sorted
    #[arg(long, help_heading = INSTEAD)]
    capabilities: bool,
    /// Print the settings and the source of each, with the key masked
    #[arg(long, help_heading = INSTEAD)]
    print_config: bool,

    /// With --json, read the answers to `permission_asked` events from standard input, one JSON object a line
    #[arg(long, requires = "json", help_heading = APPROVALS)]
    answers: bool,
    /// Let each call that needs approval wait this long, at most `1h`, for `toolcrib approvals allow` or `deny` in another
    /// terminal
    #[arg(long, value_name = "TIME", value_parser = approval_wait, conflicts_with = "answers", help_heading = APPROVALS)]
    wait_approval: Option<Duration>,

    #[command(flatten)]
    records: RecordsFolder,
    #[command(flatten)]
    telemetry: TelemetryOptions,
    #[command(flatten)]
    sources: Sources,
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
    let settings = args.model.resolve(|name| std::env::var(name).ok())?;
    if args.print_config {
        render::print_json(&serde_json::to_string_pretty(&settings.shown())?)?;
        return Ok(ExitCode::SUCCESS);
    }
    args.sources.fetch().await?;
    if args.capabilities {
        print_capabilities(&runtime(&args.sources, &settings, |builder| builder)?, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let script = args.model.script.as_deref().map(Script::load).transpose()?;
    let stdin = if args.answers { StdinUse::Answers } else { StdinUse::Text };
    let conversation = args.opening.conversation(script.as_ref(), stdin).await?;
    let options = args.options(&settings, script.is_some())?;
    let door = args.door(&settings)?;
    let approver = args.approver()?;
    let agents = Arc::new(Agents::default());
    let (model, abilities) = (options.model.clone(), options.abilities());
    let with = |builder: Builder| {
        let builder = builder.application("run", Map::from_iter([("model".to_owned(), json!(model))]));
        let builder = args.opening.keep_apart(door.attach(builder));
        let builder = args.model.script.iter().fold(builder, Builder::protect);
        let builder = approver.into_iter().fold(builder, Builder::approver);
        builder.delegate(agents.clone()).model(agents.clone()).for_model(model).provider(abilities)
    };
    let runtime = runtime(&args.sources, &settings, with)?;
    let instructions = trusted_instructions(&args.sources.trust.trusted()?);
    let conversation = conversation.with_briefing(briefing(&runtime, &runtime.session(), instructions.as_deref()));
    if args.print_messages {
        render::aside(&serde_json::to_string_pretty(conversation.messages())?);
    }
    let mut report = args.report(&settings).traced(door.span()).saving(door.media().cloned());
    if let Some(warning) = settings.warning {
        report.warn(warning)?;
    }
    if args.dry_run {
        print_request(&options, &conversation, &options.definitions(&runtime.session()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let model = match script {
        Some(script) => Model::Script(script),
        None => Model::Server(Box::new(settings.server()?)),
    };
    args.sources.prepare(&runtime).await?;
    if let (false, false, Some(hint)) = (args.json, args.quiet, unsent_hint(&runtime)) {
        render::hint(&hint);
    }
    *begun = true;
    agents.begin(&runtime, &model, &options, &report);
    let end = Agent::new(runtime.session(), model, options, conversation, report).run().await;
    let written = door.close().await;
    let end = end?;
    written?;
    match end.0 {
        Ending::Answer => Ok(ExitCode::SUCCESS),
        Ending::MaxSteps | Ending::Interrupted => Ok(ExitCode::FAILURE),
    }
}

impl Args {
    fn options(&self, settings: &Settings, scripted: bool) -> anyhow::Result<RequestOptions> {
        let model = if scripted { "script".to_owned() } else { settings.model()? };
        let stream = self.stream || (!self.no_stream && !self.json && io::stdout().is_terminal());
        let (api, custom_tools, sampling) = (settings.api.value, settings.custom_tools, settings.sampling);
        Ok(RequestOptions { api, custom_tools, model, sampling, stream, max_steps: self.model.max_steps })
    }

    /// Returns the approver that takes the place of the terminal, if any. A dry run asks nothing.
    fn approver(&self) -> anyhow::Result<Option<Arc<dyn Approver>>> {
        let approvals = || self.sources.rules.kept.file();
        match (self.answers, self.wait_approval) {
            _ if self.dry_run => Ok(None),
            (true, _) => {
                let approver =
                    ProgramApprover::start(approvals()).context("cannot read answers from standard input")?;
                Ok(Some(Arc::new(approver)))
            }
            (false, Some(max_wait)) => {
                let calls = self.sources.rules.kept.pending().ok_or_else(|| {
                    let message = "no file for the calls that wait: no home directory was found";
                    Advice::new(message, "set one with `--pending FILE`")
                })?;
                Ok(Some(Arc::new(WaitingApprover::new(calls, approvals(), max_wait))))
            }
            (false, None) => Ok(None),
        }
    }

    /// Opens traces, records and media. A dry run opens no folder.
    fn door(&self, settings: &Settings) -> anyhow::Result<Door> {
        let door = Door::open(&self.telemetry, Root::Agent)?;
        match self.dry_run {
            true => Ok(door),
            false => door.with_folders(&self.records, self.media.as_deref(), &self.sources, settings.secrets()),
        }
    }

    fn report(&self, settings: &Settings) -> Report {
        let audience = match (self.json, self.quiet, self.verbose) {
            (true, ..) => Audience::Program,
            (_, true, _) => Audience::Person(Detail::Quiet),
            (_, _, true) => Audience::Person(Detail::Verbose),
            _ => Audience::Person(Detail::Trace),
        };
        Report::new(audience, self.debug, settings.secrets()).naming(self.sources.deny_flags())
    }
}

/// Parses the time for which a call waits for an answer.
fn approval_wait(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        wait if wait <= MAX_APPROVAL_WAIT => Ok(wait),
        _ => Err(format!("`{text}` is too long: a call waits at most `1h`")),
    }
}

/// Builds the runtime with the tools of the sources, or none: a model can run without tools.
fn runtime(sources: &Sources, settings: &Settings, with: impl FnOnce(Builder) -> Builder) -> anyhow::Result<Runtime> {
    if let (true, Err(error)) = (sources.tools.is_empty(), sources.paths()) {
        render::warning(&format!("{}; the model runs without tools", render::message(&error)));
        let builder = Runtime::builder(sources.audit(settings.secrets())?);
        return with(builder).build().context("cannot run without tools");
    }
    let runtime = sources.runtime_with(settings.tool_timeout.value, settings.secrets(), with)?;
    sources.trust.hint(&runtime, None);
    Ok(runtime)
}

fn print_request(options: &RequestOptions, conversation: &Conversation, tools: &[Value]) -> anyhow::Result<()> {
    let request = serde_json::to_string_pretty(&options.request(conversation, tools))?;
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
