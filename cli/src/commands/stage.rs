//! `toolcrib stage`: lists, shows, commits and drops what tools have written with `--stage`.

mod commit;
mod select;

use std::io::{self, ErrorKind, IsTerminal};
use std::process::ExitCode;

use serde_json::{Value, json};
use toolcrib::staging::{Change, Stage, Stages};
use toolcrib_base::render::{self, Advice, counted, from_here, one_line};
use toolcrib_base::suggestion;
use toolcrib_settings::differences::{Differences, counts, explained, line};
use toolcrib_sources::options::{refused, stages};

use commit::{Answers, commit};
pub(crate) use commit::{agrees_to, close, commit_noted, show, warn_about_names};
use select::Selection;
pub(crate) use select::take_others;

const EXAMPLES: &str = "\
Examples:
  toolcrib call fs_write_file '{\"path\":\"a.txt\",\"content\":\"x\"}' --allow-write=. --stage=work
  toolcrib stage list
  toolcrib stage diff work
  toolcrib stage drop work 'src/*' --call=fs_move
  toolcrib stage commit work src/a.rs 'docs/*'
  toolcrib stage commit work

With --stage, `run`, `chat`, `call` and `mcp` write into a stage over the granted folders: the tools see their own \
changes, and the folders do not change. A commit replaces each file in one step, and can be continued after a kill. \
A file that was changed outside the stage is a conflict: nothing is committed until you drop it. A commit with a PATH or \
--call makes only these changes; the others stay in the stage.";
const HEADINGS: [&str; 4] = ["NAME", "CHANGES", "STATE", "FOLDER"];

/// List, show, commit or drop what tools have written with --stage.
#[derive(clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the stages
    List {
        /// Print a JSON array, one object per stage
        #[arg(long)]
        json: bool,
    },
    /// Show the changes in a stage, line by line
    Diff {
        #[command(flatten)]
        named: Named,
        #[command(flatten)]
        selection: Selection,
        /// Print one line per change
        #[arg(long)]
        stat: bool,
        /// Print a JSON array, one object per change
        #[arg(long, conflicts_with = "stat")]
        json: bool,
    },
    /// Make the changes of a stage in the folders, all or some, after a question at a terminal
    Commit {
        #[command(flatten)]
        named: Named,
        #[command(flatten)]
        selection: Selection,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        /// In a commit that has begun, leave out what others have changed meanwhile; it is lost with the stage,
        /// or stays in it if that was a commit of some changes
        #[arg(long)]
        skip: bool,
        /// Print an object with the numbers of steps and changes that stay, what was left out, and the record for `toolcrib undo`
        #[arg(long)]
        json: bool,
    },
    /// Drop a stage, or some of its changes; what is dropped is gone
    Drop {
        /// Name of the stage
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        selection: Selection,
    },
}

/// Name of a stage.
#[derive(Debug, clap::Args)]
struct Named {
    /// Name of the stage; not needed if there is one
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let stages = stages()?;
    match args.action {
        Action::List { json } => list(&stages, json)?,
        Action::Diff { named, selection, stat, json } => {
            let name = named.resolve(&stages)?;
            let stage = stages.read(&name).map_err(|error| refused(&name, &error))?;
            let mut changes = selection.of(stage.changes()?)?;
            if let Some((done, all)) = stage.progress()? {
                // What the commit has done differs from what it was.
                changes.iter_mut().for_each(|change| change.conflict = None);
                render::hint(&format!(
                    "its commit was interrupted after {done} of {all} steps: `toolcrib stage commit {name}` continues it"
                ));
            }
            match (json, stat) {
                (true, _) => render::print_json(&Value::from(Differences::all_as_json(&stage, &changes)).to_string())?,
                (_, true) => changes.iter().try_for_each(|change| render::print_screen(&line(change, false)))?,
                _ => changes.iter().try_for_each(|change| {
                    let text = Differences::of(&stage, change).text(io::stdout().is_terminal());
                    // Only the heading is prose: the lines of files stay as they are.
                    let (heading, lines) = text.split_once('\n').map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
                    render::print_screen(heading)?;
                    lines.map_or(Ok(()), render::print)
                })?,
            }
            hint_conflicts(&name, &changes);
        }
        Action::Commit { named, selection, yes, skip, json } => {
            return commit(&stages, &named.resolve(&stages)?, &selection, Answers { yes, skip, json }).await;
        }
        Action::Drop { name, selection } => {
            return drop_changes(&stages, &Named { name: Some(name) }.resolve(&stages)?, &selection).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Named {
    /// Returns the name, or that of the only stage.
    fn resolve(self, stages: &Stages) -> anyhow::Result<String> {
        let names = stages.names()?;
        let hint = |first: &str| match names.is_empty() {
            true => format!("{first}create one with `--stage` of `run`, `chat`, `call` or `mcp`"),
            false => format!("{first}there are `{}`", names.join("`, `")),
        };
        match self.name {
            Some(name) if names.contains(&name) => Ok(name),
            Some(name) => {
                let near = suggestion::nearest(&name, names.iter().map(String::as_str));
                let first = near.map(|near| format!("did you mean `{}`? ", one_line(near))).unwrap_or_default();
                Err(Advice::new(format!("no stage `{}`", render::excerpt(&name)), hint(&first)).into())
            }
            None => match <[String; 1]>::try_from(names.clone()) {
                Ok([name]) => Ok(name),
                Err(_) if names.is_empty() => Err(Advice::new("no stages exist", hint("")).into()),
                Err(_) => Err(Advice::new("there are several stages", hint("name one: ")).into()),
            },
        }
    }
}

fn list(stages: &Stages, json: bool) -> anyhow::Result<()> {
    let rows: Vec<(String, Listed)> =
        stages.names()?.into_iter().map(|name| (name.clone(), Listed::read(stages, &name))).collect();
    if json {
        let row = |(name, listed): &(String, Listed)| {
            let Listed { changes, state, folders, lost } = listed;
            let (changes, error) = match changes {
                Ok(changes) => (json!(changes), Value::Null),
                Err(error) => (Value::Null, json!(error)),
            };
            json!({ "name": name, "state": state, "folders": folders, "lostFolders": lost, "changes": changes, "error": error })
        };
        return render::print_json(&Value::from(rows.iter().map(row).collect::<Vec<_>>()).to_string());
    }
    let rows = rows.into_iter().map(|(name, Listed { changes, state, folders, lost })| {
        let changes = match changes {
            Ok(changes) if changes.is_empty() => "none".to_owned(),
            Ok(changes) => counts(&changes),
            Err(error) => format!("unreadable: {}", one_line(&error)),
        };
        let lost = lost.iter().map(|folder| format!("{folder} (gone)"));
        let folders: Vec<String> = folders.into_iter().chain(lost).collect();
        [name, changes, state, one_line(&folders.join(", "))]
    });
    render::print(&render::table(HEADINGS, rows))
}

/// Stage in a list.
struct Listed {
    changes: Result<Vec<Change>, String>,
    state: String,
    folders: Vec<String>,
    /// Folders that are not there any more.
    lost: Vec<String>,
}

impl Listed {
    fn read(stages: &Stages, name: &str) -> Self {
        match stages.read(name) {
            Ok(stage) => Self {
                changes: stage.changes().map_err(|error| error.to_string()).map(|mut changes| {
                    if stage.is_committing() {
                        changes.iter_mut().for_each(|change| change.conflict = None);
                    }
                    changes
                }),
                state: match stage.progress() {
                    Ok(None) => "open".to_owned(),
                    Ok(Some((done, all))) => format!("commit: {done} of {all} steps done"),
                    Err(_) => "commit begun".to_owned(),
                },
                folders: stage.folders().iter().map(|folder| folder.display().to_string()).collect(),
                lost: stage.lost().to_vec(),
            },
            Err(error) => Self {
                changes: Err(error.to_string()),
                state: "damaged".to_owned(),
                folders: Vec::new(),
                lost: Vec::new(),
            },
        }
    }
}

async fn drop_changes(stages: &Stages, name: &str, selection: &Selection) -> anyhow::Result<ExitCode> {
    let stage = match stages.take(name) {
        Err(error) if selection.is_all() && !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Unsupported) => {
            let held = format!("its changes cannot be read: {error}");
            if !is_dropped(&held).await {
                render::aside(&format!("nothing was dropped; `{name}` stays"));
                return Ok(ExitCode::FAILURE);
            }
            stages.discard(name).map_err(|error| refused(name, &error))?;
            render::aside(&format!("dropped `{name}`: {held}"));
            return Ok(ExitCode::SUCCESS);
        }
        stage => stage.map_err(|error| refused(name, &error))?,
    };
    if selection.is_all() {
        return drop_all(&stage, name).await;
    }
    if stage.is_committing() {
        let hint = format!(
            "finish it with `toolcrib stage commit {name}`, or drop all the rest with `toolcrib stage drop {name}`"
        );
        return Err(Advice::new("the commit has begun: single changes can no longer be dropped", hint).into());
    }
    let chosen = selection.of(stage.changes()?)?;
    selection.warn_about_others(&chosen);
    let left = stage.withdraw(&chosen)?;
    for one in &left {
        render::warning(&format!("`{}` stays: {}", one_line(&from_here(&one.path).display().to_string()), one.reason));
    }
    render::aside(&format!("dropped {} of `{name}`", counted(chosen.len() - left.len(), "change")));
    let rest = stage.changes()?;
    if rest.is_empty() {
        stage.remove()?;
    }
    Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Asks at a terminal whether a stage is dropped; elsewhere, the command is the answer.
async fn is_dropped(held: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return true;
    }
    agrees_to(&format!("{held}. Drop the stage for good? [y/N] ")).await
}

/// Drops a stage, after a question at a terminal.
async fn drop_all(stage: &Stage, name: &str) -> anyhow::Result<ExitCode> {
    let changes = stage.changes();
    let held = match &changes {
        Ok(changes) if changes.is_empty() => "it had no changes".to_owned(),
        Ok(changes) => counts(changes),
        Err(error) => format!("its changes could not be read: {error}"),
    };
    let is_empty = changes.is_ok_and(|changes| changes.is_empty());
    if !is_empty && !is_dropped(&held).await {
        render::aside(&format!("nothing was dropped; `{name}` stays"));
        return Ok(ExitCode::FAILURE);
    }
    let progress = stage.progress()?;
    let aside = stage.clean()?;
    stage.remove()?;
    render::aside(&format!("dropped `{name}`: {held}"));
    if let Some((done, all)) = progress {
        render::warning(&format!("its commit had begun: {done} of {all} steps stay done"));
    }
    for path in aside {
        let path = one_line(&from_here(&path).display().to_string());
        render::warning(&format!("`{path}` is your entry, which the commit had moved aside"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports all conflicts; `false` if there are none.
fn has_conflicts(name: &str, changes: &[Change]) -> bool {
    for change in changes {
        if let Some(conflict) = change.conflict {
            render::refusal(&format!(
                "`{}`: {}",
                one_line(&from_here(&change.path).display().to_string()),
                explained(conflict)
            ));
        }
    }
    hint_conflicts(name, changes);
    changes.iter().any(|change| change.conflict.is_some())
}

fn hint_conflicts(name: &str, changes: &[Change]) {
    if changes.iter().any(|change| change.conflict.is_some()) {
        render::hint(&format!(
            "nothing is committed while there are conflicts; drop the change: `toolcrib stage drop {name} PATH`"
        ));
    }
}
