//! Options and opening that `run` and `chat` share: the same loop with the same permissions.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use serde_json::{Map, Value, json};
use toolcrib::{Builder, Runtime};
use toolcrib_agent::RequestOptions;
use toolcrib_agent::budget::BudgetOptions;
use toolcrib_agent::delegate::Agents;
use toolcrib_agent::door::Door;
use toolcrib_agent::event::Ending;
use toolcrib_agent::keeper::Keeper;
use toolcrib_agent::model::Model;
use toolcrib_agent::report::{Audience, Detail, Report};
use toolcrib_agent::runs::{EarlierRun, KeepOptions};
use toolcrib_agent::script::Script;
use toolcrib_agent::settings::{ModelOptions, Settings};
use toolcrib_agent::telemetry::{Root, TelemetryOptions};
use toolcrib_agent::unsent::unsent_hint;
use toolcrib_base::headings::TOOLS;
use toolcrib_base::render;
use toolcrib_settings::config;
use toolcrib_settings::permission::TerminalApprover;
use toolcrib_sources::options::{AskOptions, Effects, RecordsFolder, Sources, StageOption};

use super::OUTPUT;
use crate::commands::remote::RemoteOptions;

/// Options of an agent: its model, its budgets, its output, its tools, and the run to go on with.
#[derive(clap::Args)]
pub(crate) struct AgentOptions {
    #[command(flatten)]
    pub(crate) keep: Box<KeepOptions>,
    #[command(flatten)]
    model: Box<ModelOptions>,
    #[command(flatten)]
    budgets: Box<BudgetOptions>,
    #[command(flatten)]
    ask: AskOptions,
    /// Offer `run_code`, which runs programs that call the tools, and a search, in place of the tools
    #[arg(long, help_heading = TOOLS)]
    code: bool,

    /// Print text as it arrives (the default on a terminal)
    #[arg(long, overrides_with = "no_stream", help_heading = OUTPUT)]
    stream: bool,
    /// Print text only when it is complete
    #[arg(long, overrides_with = "stream", help_heading = OUTPUT)]
    no_stream: bool,
    /// Also show the standard error of tools, and do not truncate
    #[arg(long, short, conflicts_with = "quiet", help_heading = OUTPUT)]
    verbose: bool,
    /// Do not print a trace
    #[arg(long, short, help_heading = OUTPUT)]
    pub(crate) quiet: bool,
    /// Save media that tools show to this directory
    #[arg(long, value_name = "DIR", help_heading = OUTPUT)]
    media: Option<PathBuf>,
    /// Print requests and responses, with the key masked
    #[arg(long, help_heading = OUTPUT)]
    debug: bool,

    #[command(flatten)]
    pub(crate) stage: StageOption,
    #[command(flatten)]
    records: RecordsFolder,
    #[command(flatten)]
    telemetry: TelemetryOptions,
    #[command(flatten)]
    pub(crate) remote: RemoteOptions,
    #[command(flatten)]
    pub(crate) sources: Sources,
}

/// An agent's tools, model options and outputs, opened for a run.
pub(crate) struct OpenedAgent {
    pub(crate) runtime: Runtime,
    pub(crate) door: Door,
    pub(crate) options: RequestOptions,
    pub(crate) agents: Arc<Agents>,
    /// Stage and record of what the tools write, if they may write.
    pub(crate) effects: Option<Effects>,
}

impl AgentOptions {
    /// Resolves the settings of the model.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        self.model.resolve(config::variable)
    }

    /// Creates the approver that asks at the terminal. The runtime takes the stored approvals from it, which are read once.
    pub(crate) fn terminal_approver(&self) -> anyhow::Result<Arc<TerminalApprover>> {
        self.sources.rules.kept.terminal_approver()
    }

    /// Returns the settings with their sources, for people and programs.
    pub(super) fn shown(&self, settings: &Settings) -> Value {
        let (mut shown, (mode, source)) = (settings.shown(), self.ask.shown());
        shown["ask"] = mode.into();
        shown["from"]["ask"] = source.into();
        shown
    }

    /// Sets the rule of the question mode, if somebody can answer: another program or terminal (`is_answered`), or a person here.
    pub(crate) fn set_mode(&mut self, is_answered: bool) {
        self.sources.rules.mode = self.ask.rule(is_answered, self.quiet);
        self.sources.rules.asks_about_flows = true;
    }

    /// Returns `true` if a script replaces the model.
    pub(crate) fn is_scripted(&self) -> bool {
        self.model.script.is_some()
    }

    /// Loads the script that replaces the model, if one is named.
    pub(crate) fn script(&self) -> anyhow::Result<Option<Script>> {
        self.model.script.as_deref().map(Script::load).transpose()
    }

    /// Creates the model.
    pub(crate) fn model(&self, settings: &Settings, script: Option<Script>) -> anyhow::Result<Model> {
        match script {
            Some(script) => Ok(Model::Script(script)),
            None => Ok(Model::Server(Box::new(settings.server()?))),
        }
    }

    /// Opens the tools for the run `id` of the command `name`, and with `has_folders` record folders and media. The
    /// stored approvals come from `terminal`.
    pub(crate) fn open(
        &self,
        (name, id): (&str, &str),
        settings: &Settings,
        terminal: Arc<TerminalApprover>,
        (is_scripted, is_json): (bool, bool),
        has_folders: bool,
        with: impl FnOnce(Builder) -> Builder,
    ) -> anyhow::Result<OpenedAgent> {
        let options = self.request_options(settings, is_scripted, is_json)?;
        let door = Door::open(&self.telemetry, Root::Agent)?;
        let door = match has_folders {
            false => door,
            true => door.with_folders(&self.records, self.media.as_deref(), &self.sources, settings.secrets())?,
        };
        let agents = Arc::new(Agents::default());
        let effects = || Effects::open(&self.stage, name, Some(id), self.sources.rules.config_file());
        let effects = has_folders.then(effects).transpose()?;
        let (model, abilities) = (options.model.clone(), options.abilities());
        let budget = options.budget.clone();
        let all = |builder: Builder| {
            let builder = builder.run_id(id).application(name, Map::from_iter([("model".to_owned(), json!(model))]));
            let builder = with(self.keep.keep_apart(door.attach(self.remote.attach(builder))));
            let builder = effects.iter().fold(builder, |builder, effects| effects.attach(builder));
            let builder = self.model.script.iter().fold(builder, Builder::protect).observer(budget);
            builder.delegate(agents.clone()).model(agents.clone()).for_model(model).provider(abilities)
        };
        let runtime = self.runtime(settings, terminal, all)?;
        Ok(OpenedAgent { runtime, door, options, agents, effects })
    }

    /// Builds the runtime with the tools of the sources, or none: a model can run without tools.
    pub(super) fn runtime(
        &self,
        settings: &Settings,
        terminal: Arc<TerminalApprover>,
        with: impl FnOnce(Builder) -> Builder,
    ) -> anyhow::Result<Runtime> {
        let sources = &self.sources.offering_code(self.code);
        if let (true, Err(error)) = (sources.tools.is_empty(), sources.paths()) {
            render::warning(&format!("{}; the model runs without tools", render::message(&error)));
            let builder = Runtime::builder(sources.audit(settings.secrets())?);
            return with(builder).build().context("cannot run without tools");
        }
        let runtime = sources.runtime_asking(terminal, settings.tool_timeout.value, settings.secrets(), with)?;
        sources.hint_untrusted(&runtime, None);
        Ok(runtime)
    }

    /// Prints the hints about the tools of a new conversation. A chat names the built-in ones in its first line.
    pub(crate) fn hint_tools(&self, runtime: &Runtime) {
        self.sources.hint_builtin();
        if let Some(hint) = unsent_hint(runtime) {
            render::hint(&hint);
        }
    }

    /// Creates the keeper of the run with this identifier, if it is kept.
    pub(crate) fn keeper(
        &self,
        (earlier, id): (Option<EarlierRun>, String),
        settings: &Settings,
        runtime: &Runtime,
        names: (&str, &str),
    ) -> anyhow::Result<Option<Keeper>> {
        self.keep.keeper(earlier, id, &self.sources, settings.secrets(), runtime, names)
    }

    fn request_options(&self, settings: &Settings, is_scripted: bool, is_json: bool) -> anyhow::Result<RequestOptions> {
        let model = if is_scripted { "script".to_owned() } else { settings.model()? };
        let stream = self.stream || (!self.no_stream && !is_json && io::stdout().is_terminal());
        let (api, custom_tools, sampling) = (settings.api.value, settings.custom_tools.value, settings.sampling());
        let budget = Arc::new(self.budgets.budget(config::variable)?);
        let max_steps = settings.max_steps.value;
        let rules = &self.sources.rules;
        let limits = rules.config(&self.sources.trust.trusted()?, false)?.conversation;
        Ok(RequestOptions { api, custom_tools, model, sampling, stream, max_steps, budget, limits })
    }

    /// Creates the report for a person, or with `is_json` for a program.
    pub(crate) fn report(&self, settings: &Settings, is_json: bool) -> Report {
        let audience = match (is_json, self.quiet, self.verbose) {
            (true, ..) => Audience::Program,
            (_, true, _) => Audience::Person(Detail::Quiet),
            (_, _, true) => Audience::Person(Detail::Verbose),
            _ => Audience::Person(Detail::Trace),
        };
        Report::new(audience, self.debug, settings.secrets()).naming(self.sources.deny_flags())
    }
}

/// Explains the error that ended a run, and then how to go on with the run, once; returns the exit code.
pub(super) fn explain_failure(error: &anyhow::Error, resume: Option<&str>) -> ExitCode {
    let code = render::failure(error);
    let is_told = |command: &str| render::hint_of(error).is_some_and(|hint| hint.contains(command));
    if let Some(command) = resume.filter(|command| !render::is_output_closed(error) && !is_told(command)) {
        render::hint(&format!("run saved; continue: `{command}` (repeat your options)"));
    }
    code
}

/// Returns the exit code of a run. A signal that interrupted it decides about the code of the program.
pub(super) fn exit_code(ending: Ending) -> ExitCode {
    match ending {
        Ending::Interrupted => ExitCode::FAILURE,
        ending => ending.exit_code().into(),
    }
}
