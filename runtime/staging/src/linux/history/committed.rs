//! Notes about the steps of a commit.

use std::collections::{BTreeSet, HashMap};
use std::io;

use super::line::{Action, Kept, KeptContent, Line, Loss};
use super::record::Record;
use crate::linux::entry::About;
use crate::linux::plan::Step;
use crate::linux::state::State;
use crate::types::{Change, EntryKind, StagedCall};

/// Notes about one commit.
pub(crate) struct CommitNotes<'a> {
    record: &'a Record,
    state: &'a State,
    /// Calls by the paths that they changed.
    calls: HashMap<String, Vec<StagedCall>>,
    /// Paths that were touched.
    touched: BTreeSet<String>,
    has_bases: bool,
}

impl<'a> CommitNotes<'a> {
    pub(crate) fn new(record: &'a Record, state: &'a State, changes: Vec<Change>) -> Self {
        let mut calls = HashMap::new();
        for Change { path, from, calls: by, .. } in changes {
            for path in [Some(path), from].into_iter().flatten() {
                calls.entry(path.to_string_lossy().into_owned()).or_insert_with(|| by.clone());
            }
        }
        Self { record, state, calls, touched: BTreeSet::new(), has_bases: false }
    }

    /// Notes a step that is about to be done, and returns the numbers of its changes. One that was noted before a kill is
    /// not noted again.
    pub(crate) fn note(&mut self, number: usize, step: &Step) -> Vec<usize> {
        if let Some(noted) = self.record.with(|open| Ok(open.noted(number).map(<[usize]>::to_vec))).flatten() {
            return noted;
        }
        let actions = self.actions(step);
        let known = |path: &str| self.calls.get(path);
        let calls = match step {
            Step::Move { from, to, .. } => known(to).or_else(|| known(from)),
            step => known(step.path()),
        };
        let calls = calls.cloned().unwrap_or_default();
        self.touched.extend(actions.iter().flat_map(|action| action.paths().map(str::to_owned).collect::<Vec<_>>()));
        let (bases, has_bases) = (&self.state.bases, self.has_bases);
        let noted = self.record.with(|open| {
            if !has_bases {
                let found = |path: &str| Some((path.to_owned(), bases.about(path).ok()??.file()));
                open.add_bases(bases.paths().filter_map(found))?;
            }
            actions.into_iter().map(|action| open.note(&calls, Some(number), action)).collect()
        });
        self.has_bases |= noted.is_some();
        noted.unwrap_or_default()
    }

    /// Notes that changes were not made.
    pub(crate) fn failed(&self, numbers: &[usize]) {
        for number in numbers {
            self.record.with(|open| open.fail(*number));
        }
    }

    /// Notes the state in which the commit leaves what it changed. `earlier` are the steps that were done before a kill.
    pub(crate) fn end(mut self, earlier: &[Step], likes: &HashMap<String, About>) {
        for step in earlier {
            self.touched.insert(step.path().to_owned());
            if let Step::Move { from, .. } = step {
                self.touched.insert(from.clone());
            }
        }
        let about = |path: String| {
            let about = self.state.bases.about(&path).ok().flatten();
            (path, about)
        };
        let paths: Vec<(String, Option<About>)> = self.touched.into_iter().map(about).collect();
        let like = |(path, now): &(String, Option<About>)| Some(Line::Like { now: (*now)?, then: *likes.get(path)? });
        let likes: Vec<Line> = paths.iter().filter_map(like).collect();
        self.record.with(|open| {
            likes.into_iter().try_for_each(|line| open.add_line(line))?;
            open.end_all(paths)
        });
    }

    /// Lists the changes of a step.
    fn actions(&self, step: &Step) -> Vec<Action> {
        let made = |path: &str, over: &Option<About>| {
            let removed = over.map(|over| Action::Removed { path: path.to_owned(), before: self.keep(path, over) });
            removed.into_iter().chain([Action::Made { path: path.to_owned() }]).collect()
        };
        match step {
            Step::Remove { path, about } => {
                vec![Action::Removed { path: path.clone(), before: self.keep(path, *about) }]
            }
            Step::MakeFolder { path, .. } => vec![Action::Made { path: path.clone() }],
            Step::Move { from, to, about, over } => {
                let over = over.map(|over| self.keep(to, over));
                vec![Action::Moved { from: from.clone(), to: to.clone(), about: *about, over }]
            }
            Step::Write { path, over: Some(over), .. } if over.kind == EntryKind::File => {
                let mut before = self.keep(path, *over);
                // Another file takes its place: its other names are not written.
                before.about.names = 1;
                vec![Action::Written { path: path.clone(), before }]
            }
            Step::MakeLink { path, over, .. } | Step::Write { path, over, .. } | Step::Name { path, over, .. } => {
                made(path, over)
            }
            Step::Date { .. } => Vec::new(),
        }
    }

    /// Keeps a real entry. The step itself checks that it is still the one that is meant.
    fn keep(&self, path: &str, about: About) -> Kept {
        let lost = |error: io::Error| KeptContent::Lost(Loss::of(&error));
        let content = match about.kind {
            EntryKind::Folder => KeptContent::Folder,
            EntryKind::Other => KeptContent::Lost(Loss::Special),
            EntryKind::Link => self.state.bases.link(path).map_or_else(lost, KeptContent::Link),
            EntryKind::File => match self.state.bases.read(path) {
                Ok((mut file, now)) => return self.record.keep_file(&mut file, now, None, None),
                Err(error) => lost(error),
            },
        };
        Kept { about, content }
    }
}
