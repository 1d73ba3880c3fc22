//! `toolcrib runs`: lists, shows, exports and removes kept runs, and their sessions of programs.

mod list;
mod sessions;
mod show;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use toolcrib_agent::runs::RunsFolder;
use toolcrib_agent::runs::{KeptRun, RunStore};
use toolcrib_base::parse::duration;
use toolcrib_base::render::{self, Advice, counted};
use toolcrib_base::whole_file::{self, Readers};

const EXAMPLES: &str = "\
Examples:
  toolcrib runs list                      the kept runs, last changed first
  toolcrib runs list --search invoice     runs that contain a word
  toolcrib runs show 7k3md-x0q9a          the conversation
  toolcrib runs show last                 that of the last run in this directory
  toolcrib runs export 7k3md-x0q9a -o talk.json
  toolcrib runs remove 7k3md-x0q9a
  toolcrib runs remove --older-than 7d

`toolcrib run --continue` and `--resume ID` resume a run, `--fork ID` a copy of it. At most 500 runs, together 512 \
MiB, are kept, each for 90 days after its last change; the oldest are removed first.";

/// List, show, export and remove kept runs.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the kept runs, last changed first
    List(list::Args),
    /// Show the conversation of a run
    Show(show::Args),
    /// Write the messages of a run as JSON, for `run --load-messages` and other programs
    Export {
        /// Identifier of the run, or `last` for the last one in this directory
        #[arg(value_name = "ID")]
        id: String,
        /// File to write instead of standard output, readable by you alone; it must not exist
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Replace the file if it exists
        #[arg(long, requires = "output")]
        force: bool,
        #[command(flatten)]
        folder: RunsFolder,
    },
    /// List the sessions of programs in a run, or end one
    Sessions(sessions::Args),
    /// Remove runs permanently
    Remove {
        /// Identifiers of the runs
        #[arg(value_name = "ID", required_unless_present_any = ["all", "older_than"])]
        ids: Vec<String>,
        /// Remove all runs that have not changed for this time, such as `12h` or `30d`
        #[arg(long, value_name = "TIME", value_parser = age, conflicts_with_all = ["ids", "all"])]
        older_than: Option<Duration>,
        /// Remove every run
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        #[command(flatten)]
        folder: RunsFolder,
    },
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::List(args) => list::run(args)?,
        Action::Show(args) => show::run(args)?,
        Action::Sessions(args) => return sessions::run(args),
        Action::Export { id, output, force, folder } => export(&read(folder, id)?, output.as_deref(), *force)?,
        Action::Remove { ids, older_than, folder, .. } => return remove(&folder.store()?, ids, *older_than),
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the run of an identifier that a person typed.
fn read(folder: &RunsFolder, id: &str) -> anyhow::Result<KeptRun> {
    let store = folder.store()?;
    store.read(&store.find(id)?)
}

fn export(run: &KeptRun, output: Option<&Path>, force: bool) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(&run.exported()).context("cannot write the messages as JSON")?;
    let Some(path) = output else { return text.lines().try_for_each(render::print_json) };
    let write = if force { whole_file::replace } else { whole_file::create };
    match write(path, format!("{text}\n").as_bytes(), Readers::Owner) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && !force => {
            Err(Advice::new(format!("`{}` exists", path.display()), "`--force` replaces it").into())
        }
        written => written.with_context(|| format!("cannot write `{}`", path.display())),
    }
}

/// Removes runs: those named, those that have not changed for a time, or all. Reports those that cannot be removed.
fn remove(store: &RunStore, ids: &[String], older_than: Option<Duration>) -> anyhow::Result<ExitCode> {
    let now = SystemTime::now();
    let is_old = |modified: SystemTime| now.duration_since(modified).is_ok_and(|age| Some(age) >= older_than);
    let ids: Vec<String> = match ids {
        [] => store.files()?.into_iter().filter(|stored| is_old(stored.modified)).map(|stored| stored.id).collect(),
        ids => ids.iter().map(|id| RunStore::parse(id)).collect::<anyhow::Result<_>>()?,
    };
    let (mut removed, mut code) = (0_usize, ExitCode::SUCCESS);
    for id in ids {
        let failure = match store.remove(&id) {
            Ok(true) => {
                removed += 1;
                continue;
            }
            Ok(false) => Advice::new(format!("no run `{id}`"), "`toolcrib runs list` lists the kept runs").into(),
            Err(error) => error,
        };
        code = ExitCode::FAILURE;
        render::explain(&failure);
    }
    render::aside(&format!("removed {}", counted(removed, "run")));
    Ok(code)
}

/// Parses an age, also in days. It needs its unit: who types a number alone may mean days, and would lose almost every run.
fn age(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time with its unit, such as `12h` or `30d`");
    match text.trim().strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => Ok(Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
        _ if text.trim().ends_with(char::is_alphabetic) => duration(text).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}
