//! Options for kept runs: their folder, and the run to go on with.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;
use toolcrib::audit::Redactions;
use toolcrib::programs::ProgramStore;
use toolcrib::tool::Access;
use toolcrib::{Builder, Runtime};
use toolcrib_base::folders::state_folder;
use toolcrib_base::headings::RECORDS;
use toolcrib_base::render::{self, Advice, usage_error};
use toolcrib_sources::options::Sources;

use crate::keeper::Keeper;

use super::continued::continued_run;
use super::{KeptRun, MAX_SPELLING, RunFile, RunMasks, RunStore};

const RUNS: &str = "Kept runs";
/// Characters with a meaning in a pattern. A pattern without them matches its own text alone.
const META: [char; 14] = ['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$'];

/// Folder of kept runs.
#[derive(Debug, Clone, clap::Args)]
pub struct RunsFolder {
    /// Directory for kept runs [default: `toolcrib/runs` in your state directory]
    #[arg(long, value_name = "DIR", env = "TOOLCRIB_RUNS_DIR", hide_env_values = true, help_heading = RECORDS)]
    runs_dir: Option<PathBuf>,
}

/// The run to go on with, and whether this one is kept.
#[derive(Debug, Clone, clap::Args)]
pub struct KeepOptions {
    /// Resume the latest run in this directory, with its model and permissions, which are shown; typed options win
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["resume", "fork", "load_messages", "system", "system_file", "developer"], help_heading = RUNS)]
    latest: bool,
    /// Resume a run, such as `7k3md-x0q9a`; without a prompt, from where it was interrupted
    #[arg(long, value_name = "ID", conflicts_with_all = ["fork", "load_messages", "system", "system_file", "developer"], help_heading = RUNS)]
    resume: Option<String>,
    /// Begin a new run with a copy of the conversation of another
    #[arg(long, value_name = "ID", conflicts_with_all = ["load_messages", "system", "system_file", "developer"], help_heading = RUNS)]
    fork: Option<String>,
    /// Do not keep the run
    #[arg(long, env = "TOOLCRIB_NO_KEEP", hide_env_values = true, value_parser = FalseyValueParser::new(), help_heading = RUNS)]
    no_keep: bool,
    #[command(flatten)]
    folder: RunsFolder,
}

/// An earlier run to go on with; a copy has no file.
#[derive(Debug)]
pub struct EarlierRun {
    /// The run as its file has it.
    pub run: KeptRun,
    file: Option<RunFile>,
}

impl RunsFolder {
    /// Returns the store in the named or default folder.
    pub fn store(&self) -> anyhow::Result<RunStore> {
        let folder = self.runs_dir.clone().or_else(|| state_folder("runs"));
        folder.map(RunStore::new).ok_or_else(|| {
            Advice::new(
                "no directory for kept runs: no home directory was found",
                "set one with `--set records.runs_dir=DIR`",
            )
            .into()
        })
    }
}

impl KeepOptions {
    /// Opens the earlier run to go on with, if one is named. From then on no other process writes it.
    pub fn earlier(&self, sources: &Sources) -> anyhow::Result<Option<EarlierRun>> {
        let named = self.resume.as_deref().or(self.fork.as_deref()).map(RunStore::parse).transpose()?;
        if named.is_none() && !self.latest {
            return Ok(None);
        }
        let store = self.folder.store()?;
        if self.fork.is_some() {
            let run = store.read(&named.unwrap_or_default())?.copied();
            return Ok(Some(EarlierRun { run, file: None }));
        }
        // The parser takes a variable for a given option, whatever its value.
        if self.no_keep {
            let option = if self.latest { "--continue" } else { "--resume <ID>" };
            return Err(usage_error(format!(
                "the argument '{option}' cannot be used with '--no-keep' (`TOOLCRIB_NO_KEEP`)"
            )));
        }
        if sources.no_log_arguments {
            return Err(usage_error(
                "no run is saved while `records.log_arguments` is `false`, so none can be resumed: use --fork, which copies the conversation",
            ));
        }
        let open = || store.open(&named.map_or_else(|| store.latest_here(), Ok)?);
        let (file, run) = if self.latest { open().map_err(latest_is_damaged) } else { open() }?;
        if self.latest && continued_run().is_some_and(|id| id != run.header.id) {
            let hint = "repeat the command, or name the run with `--resume ID`";
            return Err(Advice::new("another run of this directory was written meanwhile", hint).into());
        }
        Ok(Some(EarlierRun { run, file: Some(file) }))
    }

    /// Returns the run ID for the run file, the audit log and traces: the ID of the run that goes on, or a new one.
    pub fn run_id(earlier: Option<&EarlierRun>) -> anyhow::Result<String> {
        match earlier {
            Some(EarlierRun { run, file: Some(_) }) => Ok(run.header.id.clone()),
            _ => RunStore::new_id(),
        }
    }

    /// Returns the keeper of a run by the command `door`; `None` if the run is not kept. Creates the file of a new run, with the
    /// identifier `id`.
    pub fn keeper(
        &self,
        earlier: Option<EarlierRun>,
        id: String,
        sources: &Sources,
        secrets: impl IntoIterator<Item = String>,
        runtime: &Runtime,
        (door, model): (&str, &str),
    ) -> anyhow::Result<Option<Keeper>> {
        if self.no_keep || sources.no_log_arguments {
            return Ok(None);
        }
        let mut masks = run_masks(sources, secrets);
        runtime.tools().for_each(|tool| masks.add_tool(&tool.name, tool.sensitive_names()));
        match earlier {
            Some(EarlierRun { run, file: Some(file) }) => Keeper::resume(file, &run, masks, model).map(Some),
            earlier => {
                let parent = earlier.map(|earlier| earlier.run.header.id);
                let (file, header) = self.folder.store()?.create(id, door, model, parent)?;
                Keeper::begin(file, header, masks).map(Some)
            }
        }
    }

    /// Returns the folder of kept runs.
    pub fn folder(&self) -> anyhow::Result<PathBuf> {
        Ok(self.folder.store()?.folder().to_path_buf())
    }

    /// Returns the folder for program sessions in a run.
    pub fn programs(&self, id: &str) -> anyhow::Result<ProgramStore> {
        Ok(self.folder.store()?.programs(id))
    }

    /// Reserves the folder of kept runs, so that no grant covers it.
    pub fn keep_apart(&self, builder: Builder) -> Builder {
        let store = self.folder.store().ok();
        store.iter().fold(builder, |builder, store| builder.reserve("kept runs", store.folder(), Access::Read))
    }
}

/// Explains that the latest run is not continued, and that no other takes its place.
fn latest_is_damaged(error: anyhow::Error) -> anyhow::Error {
    if error.is::<Advice>() {
        return error;
    }
    let message = format!("the latest run cannot be continued: {}", render::message(&error));
    Advice::new(
        message,
        "resume another with `--resume ID`, or remove this one: `toolcrib runs list` lists the kept runs",
    )
    .into()
}

/// Returns the masks of the audit log for a kept run.
fn run_masks(sources: &Sources, secrets: impl IntoIterator<Item = String>) -> RunMasks {
    let (patterns, texts) = sources.masks(secrets);
    // How much a pattern matches is not known here, unless it matches its own text alone.
    let is_known = patterns.iter().all(|pattern| !pattern.contains(META));
    let longest = patterns.iter().chain(&texts).map(String::len).max().unwrap_or_default() * MAX_SPELLING;
    let mut redactions = Redactions::default();
    redactions.add(patterns);
    redactions.add_literal(texts);
    let masks = RunMasks::new(redactions, is_known.then_some(longest));
    sources.secrets.secrets().into_iter().fold(masks, RunMasks::with_stored)
}
