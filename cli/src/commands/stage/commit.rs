//! Commit for a stage or some of its changes: the question with the differences, and the end of a command with a stage.

use std::io::{self, ErrorKind, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib::staging::{Change, ChangeKind, CommitError, Committed, Record, RecordHeader, Stage, Stages};
use toolcrib_base::progress;
use toolcrib_base::render::{self, Advice, counted, from_here, one_line};
use toolcrib_settings::differences::{Differences, counts, explained, line};
use toolcrib_settings::permission::ask;
use toolcrib_sources::options::{ClosedStage, Effects, header, history, refused, warn_about_record};

use super::{Selection, has_conflicts};

/// Changes that a question lists before their differences.
const MAX_LISTED: usize = 60;
/// Lines of differences that a question shows.
const MAX_ASKED_LINES: usize = 200;

/// Options of a commit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Answers {
    pub(super) yes: bool,
    /// `true` to leave out what is in conflict with a commit that goes on.
    pub(super) skip: bool,
    pub(super) json: bool,
}

/// Shows the changes, asks, and commits.
pub(super) async fn commit(
    stages: &Stages,
    name: &str,
    selection: &Selection,
    answers: Answers,
) -> anyhow::Result<ExitCode> {
    if answers.skip && !selection.is_all() {
        let message = "--skip continues an interrupted commit with its changes: it takes no PATH and no --call";
        return Err(Advice::new(message, format!("use `toolcrib stage commit {name} --skip`")).into());
    }
    let stage = stages.take(name).map_err(|error| refused(name, &error))?;
    if stage.is_committing() && !selection.is_all() {
        let hint = format!("finish it with `toolcrib stage commit {name}`, then commit others");
        return Err(Advice::new("a commit has begun: its changes can no longer be chosen", hint).into());
    }
    if stage.is_committing() {
        render::aside(&format!("`{name}`: continuing the interrupted commit"));
        return perform(stage, name, None, answers);
    }
    let changes = stage.changes()?;
    if changes.is_empty() {
        stage.remove()?;
        render::aside(&format!("`{name}` has no changes"));
        return Ok(ExitCode::SUCCESS);
    }
    let all = changes.len();
    let (stage, changes) = take_part(stage, name, selection, changes)?;
    if has_conflicts(name, &changes) {
        return Ok(ExitCode::FAILURE);
    }
    if !answers.yes {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
            let hint = format!("read `toolcrib stage diff {name}`, then pass --yes");
            return Err(Advice::new("cannot ask: no terminal is available", hint).into());
        }
        if !agrees(&stage, name, &changes).await {
            render::aside(&format!("nothing was changed; `{name}` stays"));
            return Ok(ExitCode::FAILURE);
        }
    }
    let made = (changes.len() < all).then_some(changes.len());
    let committed = perform(stage, name, made, Answers { skip: false, ..answers })?;
    warn_about_names(&changes);
    Ok(committed)
}

/// Makes a stage's part with the chosen changes, and names those that go along. All of them are the stage itself.
fn take_part(
    stage: Arc<Stage>,
    name: &str,
    selection: &Selection,
    changes: Vec<Change>,
) -> anyhow::Result<(Arc<Stage>, Vec<Change>)> {
    let all = changes.len();
    let chosen = selection.of(changes)?;
    selection.warn_about_others(&chosen);
    if chosen.len() == all {
        return Ok((stage, chosen));
    }
    let part = stage.part(&chosen).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => {
            let hint = format!("`toolcrib stage commit {name}` makes all changes");
            Advice::new(format!("nothing was changed: {error}"), hint).into()
        }
        _ => anyhow::Error::from(error),
    })?;
    let changes = part.changes()?;
    let is_chosen = |change: &Change| chosen.iter().any(|one| one.is_of_entry(change));
    for change in changes.iter().filter(|change| !is_chosen(change)) {
        let path = one_line(&from_here(&change.path).display().to_string());
        render::warning(&format!("`{path}` goes along: the chosen changes need it"));
    }
    Ok((part, changes))
}

/// Ends the calls of a command with a stage: says what is held back, and with `asks` at a terminal, asks what becomes of it. A
/// stage without changes is removed.
pub(crate) async fn close(effects: Option<Effects>, asks: bool) -> anyhow::Result<()> {
    let Some(ClosedStage { stage, sent }) = effects.and_then(Effects::close) else { return Ok(()) };
    let (name, changes) = (stage.name().to_owned(), stage.changes()?);
    if !sent.is_empty() {
        render::aside(&format!("requests that were sent, and not held back: {}", sent.join(", ")));
    }
    if changes.is_empty() {
        render::aside("nothing was written, so nothing is staged");
        return Ok(stage.remove()?);
    }
    let can_ask = asks && io::stdin().is_terminal() && io::stderr().is_terminal();
    if can_ask && !has_conflicts(&name, &changes) {
        show(&stage, &name, &changes);
        let question = format!("{}. [c]ommit, [d]rop, or [K]eep staged? ", counts(&changes));
        match ask(&question).await.unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "c" | "commit" => {
                perform(stage, &name, None, Answers::default())?;
                warn_about_names(&changes);
                return Ok(());
            }
            "d" | "drop" => {
                stage.remove()?;
                render::aside(&format!("dropped `{name}`"));
                return Ok(());
            }
            _ => {}
        }
    }
    render::aside(&format!("staged in `{name}`: {}", counts(&changes)));
    render::hint(&format!(
        "`toolcrib stage diff {name}` shows the changes, `toolcrib stage commit {name}` makes them, and `toolcrib stage drop \
         {name}` drops them"
    ));
    Ok(())
}

/// Shows the differences, and asks whether they are made.
async fn agrees(stage: &Stage, name: &str, changes: &[Change]) -> bool {
    show(stage, name, changes);
    agrees_to(&format!("{}. Commit them? [y/N] ", counts(changes))).await
}

/// Asks a question at the terminal; `true` for yes.
pub(crate) async fn agrees_to(question: &str) -> bool {
    let answer = ask(question).await.unwrap_or_default();
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Warns about written files with other names that keep the old content.
pub(crate) fn warn_about_names(changes: &[Change]) {
    for change in changes.iter().filter(|change| change.other_names > 0) {
        let path = one_line(&from_here(&change.path).display().to_string());
        let names = counted(change.other_names, "other name");
        render::warning(&format!(
            "`{path}`: {names} of the file outside of the folders, or beyond the search, keep the old content"
        ));
    }
}

/// Shows the begin of the differences on standard error.
pub(crate) fn show(stage: &Stage, name: &str, changes: &[Change]) {
    let mut shown = 0;
    if changes.len() > 1 {
        // What is lost comes first.
        let mut sorted: Vec<&Change> = changes.iter().collect();
        sorted.sort_by_key(|change| change.kind != ChangeKind::Removed);
        for change in sorted.iter().take(MAX_LISTED) {
            render::ours(&line(change, io::stderr().is_terminal()));
        }
        if sorted.len() > MAX_LISTED {
            render::ours(&format!("… {}", counted(sorted.len() - MAX_LISTED, "more change")));
        }
        render::ours("");
    }
    for (number, change) in changes.iter().enumerate() {
        if shown >= MAX_ASKED_LINES {
            let more = counted(changes.len() - number, "more change");
            return render::ours(&format!("… {more}: `toolcrib stage diff {name}`"));
        }
        let text = Differences::of(stage, change).text(io::stderr().is_terminal());
        let lines: Vec<&str> = text.lines().collect();
        let most = lines.len().min(MAX_ASKED_LINES - shown);
        shown += most;
        render::ours(&lines[..most].join("\n"));
        if most < lines.len() {
            render::ours(&format!("… {} of this change", counted(lines.len() - most, "more line")));
        }
    }
}

/// Commits a stage, or its part with so many changes, with a record of its own.
fn perform(
    stage: Arc<Stage>,
    name: &str,
    made: Option<usize>,
    Answers { skip, json, .. }: Answers,
) -> anyhow::Result<ExitCode> {
    let of_stage = RecordHeader { stage: Some(name.to_owned()), ..header("commit") };
    let record = history()?.map(|history| history.begin(of_stage));
    let Committed { steps, skipped, left, record } = commit_noted(stage, name, skip, record.as_ref())?;
    let code = if skipped.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let (lost, record) = record.map_or((0, None), |record| (record.lost(), record.id()));
    let what = match made {
        _ if left == 0 => format!("`{name}`"),
        Some(made) => format!("{} of `{name}`", counted(made, "change")),
        None => format!("a part of `{name}`"),
    };
    let rest = match left {
        0 => String::new(),
        1 => "; 1 change stays in it".to_owned(),
        _ => format!("; {left} changes stay in it"),
    };
    render::aside(&format!("committed {what}: {}{rest}", counted(steps, "step")));
    if let Some(record) = &record {
        let rest = if lost > 0 { "the rest" } else { "it" };
        render::hint(&format!("`toolcrib undo {record}` takes {rest} back"));
    }
    if json {
        let left_out = skipped.iter().map(|(path, conflict)| json!({ "path": path, "conflict": conflict }));
        let left_out: Vec<Value> = left_out.collect();
        render::print_json(
            &json!({ "name": name, "steps": steps, "staged": left, "leftOut": left_out, "record": record, "lost": lost }).to_string(),
        )?;
    }
    Ok(code)
}

/// Commits a stage, and notes in a record what was there before.
pub(crate) fn commit_noted(
    stage: Arc<Stage>,
    name: &str,
    skips: bool,
    record: Option<&Arc<Record>>,
) -> anyhow::Result<Committed> {
    let (mut bar, again) = (None, stage.clone());
    let done = stage.commit(skips, record, &mut |done, all| {
        let bar = bar.get_or_insert_with(|| progress::counted("committing", all));
        bar.set_position(done as u64);
        if done == all {
            bar.finish_and_clear();
        }
    });
    match done {
        Ok(committed) => {
            committed.record.iter().for_each(|record| warn_about_record(record));
            for (path, conflict) in &committed.skipped {
                let path = one_line(&from_here(path).display().to_string());
                render::warning(&format!("left out `{path}`: {}", explained(*conflict)));
            }
            Ok(committed)
        }
        Err(CommitError::Conflict(path, conflict)) if !again.is_committing() => {
            let path = from_here(&path).display().to_string();
            let message = format!("nothing was changed: `{}`: {}", one_line(&path), explained(conflict));
            Err(Advice::new(message, "others were faster: look at the differences again").into())
        }
        Err(CommitError::Conflict(path, conflict)) => {
            let path = from_here(&path).display().to_string();
            let message = format!("the commit stopped at `{}`: {}", one_line(&path), explained(conflict));
            let hint = format!("`toolcrib stage commit {name} --skip` leaves it out, and does the rest");
            Err(Advice::new(message, hint).into())
        }
        Err(CommitError::System(path, error)) => {
            let path = from_here(&path).display().to_string();
            let message = format!("cannot commit `{}`: {error}", one_line(&path));
            Err(Advice::new(message, format!("fix the cause, then repeat `toolcrib stage commit {name}` to continue"))
                .into())
        }
    }
}
