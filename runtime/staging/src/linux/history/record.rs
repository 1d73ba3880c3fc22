//! A record that is being written: each change is noted before it is made, with what was there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, statat};
use toolcrib_private_files::{FileLock, options};

use super::call::{CallHistory, Withhold};
use super::line::{Action, Kept, KeptContent, Line, Loss, Noted};
use super::store::{CONTENTS, History, close, mark_incomplete};
use crate::linux::entry::About;
use crate::linux::journal::Journal;
use crate::linux::state::copy_in_time;
use crate::types::{EntryKind, RecordHeader, StagedCall};

/// Interval in which no room is searched for after there was none.
const FULL_INTERVAL: Duration = Duration::from_secs(10);

/// Record of a command's changes. It is closed once it is dropped.
#[derive(Debug)]
pub struct Record {
    history: History,
    header: RecordHeader,
    files: Mutex<Files>,
    problem: OnceLock<String>,
}

/// Files of a record, which are made with its first change.
#[derive(Debug)]
enum Files {
    None,
    /// They cannot be made; it is tried once.
    Failed,
    Open(Box<OpenRecord>),
}

/// Files of a record.
#[derive(Debug)]
pub(crate) struct OpenRecord {
    pub(crate) folder: PathBuf,
    journal: Journal<Line>,
    _lock: FileLock,
    calls: HashMap<String, usize>,
    bases: HashSet<String>,
    /// Paths that were touched.
    paths: BTreeSet<String>,
    changes: usize,
    /// Number of changes that were noted without the content before.
    lost: usize,
    /// Last step that a commit has noted, with the numbers of its changes.
    step: Option<(usize, Vec<usize>)>,
    /// Contents that are kept, by device, number, size and time of the last change.
    kept: HashMap<(u64, u64, u64, i128), u64>,
    contents: u64,
    bytes: u64,
    /// Bytes that may still be kept.
    room: u64,
    /// Time until which no room is searched for again.
    full_until: Option<Instant>,
}

impl OpenRecord {
    /// Counts on after these lines.
    pub(super) fn continued(
        folder: PathBuf,
        lock: FileLock,
        journal: Journal<Line>,
        room: u64,
        lines: &[Line],
    ) -> io::Result<Self> {
        let (mut calls, mut bases, mut paths, mut changes) = (HashMap::new(), HashSet::new(), BTreeSet::new(), 0);
        let (mut step, mut lost) = (None::<(usize, Vec<usize>)>, 0);
        for line in lines {
            match line {
                Line::Call(call) => drop(calls.insert(call.id.clone(), calls.len())),
                Line::Base { path, .. } => drop(bases.insert(path.clone())),
                Line::Change(noted) => {
                    paths.extend(noted.action.paths().map(str::to_owned));
                    note_step(&mut step, noted.step, changes);
                    changes += 1;
                    lost += usize::from(noted.action.has_lost());
                }
                // It is noted again when it is done again.
                Line::Failed(number) if step.as_ref().is_some_and(|(_, of)| of.contains(number)) => step = None,
                _ => {}
            }
        }
        let (mut contents, mut bytes) = (0, 0);
        for entry in fs::read_dir(folder.join(CONTENTS))? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            contents = contents.max(number.map_or(0, |number| number + 1));
            bytes += entry.metadata()?.len();
        }
        let (kept, full_until) = (HashMap::new(), None);
        let (room, _lock) = (room.saturating_sub(bytes), lock);
        Ok(Self {
            folder,
            journal,
            _lock,
            calls,
            bases,
            paths,
            changes,
            lost,
            step,
            kept,
            contents,
            bytes,
            room,
            full_until,
        })
    }

    /// Notes a change, and returns its number.
    pub(super) fn note(&mut self, calls: &[StagedCall], step: Option<usize>, action: Action) -> io::Result<usize> {
        let mut lines = Vec::new();
        let (mut numbers, mut new) = (Vec::new(), Vec::new());
        for call in calls {
            numbers.push(self.calls.get(&call.id).copied().unwrap_or_else(|| {
                new.push(call.id.clone());
                lines.push(Line::Call(call.clone()));
                self.calls.len() + new.len() - 1
            }));
        }
        if let Action::Moved { from, about, .. } = &action
            && about.kind == EntryKind::Folder
        {
            // What others change in it later is seen under its former path.
            lines.extend(self.states_below(from));
        }
        let (paths, has_lost) = (action.paths().map(str::to_owned).collect::<Vec<_>>(), action.has_lost());
        lines.push(Line::Change(Noted { calls: numbers, step, action }));
        self.journal.add(&lines)?;
        for id in new {
            let number = self.calls.len();
            self.calls.insert(id, number);
        }
        self.paths.extend(paths);
        self.lost += usize::from(has_lost);
        note_step(&mut self.step, step, self.changes);
        self.changes += 1;
        Ok(self.changes - 1)
    }

    /// Returns a line with the present states of the touched paths below a folder; `None` if there are none.
    fn states_below(&self, folder: &str) -> Option<Line> {
        let first = format!("{folder}/");
        let inside = self.paths.range(first.clone()..).take_while(|path| path.starts_with(&first));
        let paths: Vec<_> = inside.map(|path| (path.clone(), state_of(path))).collect();
        (!paths.is_empty()).then_some(Line::Seen { paths })
    }

    /// Notes that a change was not made.
    pub(super) fn fail(&mut self, number: usize) -> io::Result<()> {
        if self.step.as_ref().is_some_and(|(_, changes)| changes.contains(&number)) {
            self.step = None;
        }
        self.journal.add_last(&[Line::Failed(number)])
    }

    /// Notes the folders in which tools may write.
    pub(super) fn add_bases(&mut self, bases: impl Iterator<Item = (String, (u64, u64))>) -> io::Result<()> {
        for (path, (device, inode)) in bases {
            if !self.bases.contains(&path) {
                self.journal.add(&[Line::Base { path: path.clone(), device, inode }])?;
                self.bases.insert(path);
            }
        }
        Ok(())
    }

    /// Returns the numbers of the changes by a step that was noted before a kill.
    pub(super) fn noted(&self, step: usize) -> Option<&[usize]> {
        self.step.as_ref().filter(|(noted, _)| *noted == step).map(|(_, changes)| changes.as_slice())
    }

    /// Notes the state of paths after calls.
    pub(super) fn end(&mut self, calls: &[StagedCall], paths: Vec<(String, Option<About>)>) -> io::Result<()> {
        let calls = calls.iter().filter_map(|call| self.calls.get(&call.id).copied()).collect();
        self.journal.add_last(&[Line::End { calls, paths }])
    }

    /// Notes the state of paths after all calls.
    pub(super) fn end_all(&mut self, paths: Vec<(String, Option<About>)>) -> io::Result<()> {
        self.journal.add_last(&[Line::End { calls: (0..self.calls.len()).collect(), paths }])
    }

    pub(super) fn add_line(&mut self, line: Line) -> io::Result<()> {
        self.journal.add_last(&[line])
    }

    /// Reserves room for a content, and returns its number; `None` if there is none.
    fn reserve(&mut self, history: &History, size: u64) -> io::Result<Option<u64>> {
        let share = history.limits.bytes / 2;
        if self.bytes.saturating_add(size) > share {
            // No record takes the room of all others.
            return Ok(None);
        }
        if self.room < size && self.full_until.is_none_or(|until| Instant::now() >= until) {
            self.room = history.prune(size, Some((&self.folder, self.bytes)))?;
            self.full_until = (self.room < size).then(|| Instant::now() + FULL_INTERVAL);
        }
        if self.room < size {
            return Ok(None);
        }
        self.room -= size;
        self.bytes += size;
        self.contents += 1;
        Ok(Some(self.contents - 1))
    }
}

/// Returns the present state of a path; `None` if there is nothing.
pub(super) fn state_of(path: &str) -> Option<About> {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|found| About::of_stat(&found))
}

/// Adds a change to the last step of a commit.
fn note_step(last: &mut Option<(usize, Vec<usize>)>, step: Option<usize>, change: usize) {
    match (last, step) {
        (Some((last, changes)), Some(step)) if *last == step => changes.push(change),
        (last, step) => *last = step.map(|step| (step, vec![change])),
    }
}

impl Record {
    pub(super) fn new(history: History, header: RecordHeader) -> Self {
        Self { history, header, files: Mutex::new(Files::None), problem: OnceLock::new() }
    }

    pub(super) fn opened(history: History, header: RecordHeader, open: OpenRecord) -> Self {
        Self { history, header, files: Mutex::new(Files::Open(Box::new(open))), problem: OnceLock::new() }
    }

    /// Begins a record with the same origin for the commit of a stage.
    #[must_use]
    pub fn of_commit(&self, stage: &str) -> Arc<Self> {
        self.history.begin(RecordHeader { stage: Some(stage.to_owned()), ..self.header.clone() })
    }

    /// Returns `true` if changes are noted at all.
    pub fn is_on(&self) -> bool {
        self.history.limits.bytes > 0
    }

    /// Identifier of the record; `None` before the first change.
    pub fn id(&self) -> Option<String> {
        match &*self.locked() {
            Files::Open(open) => Some(open.folder.file_name()?.to_string_lossy().into_owned()),
            Files::None | Files::Failed => None,
        }
    }

    /// Folder of the history.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Keeps an error, after which a change is not noted, and marks the record.
    pub(super) fn fail(&self, error: &str) {
        self.problem.get_or_init(|| error.to_owned());
        if let Files::Open(open) = &*self.locked() {
            mark_incomplete(&open.folder);
        }
    }

    /// Returns the first error after which a change was not noted.
    pub fn problem(&self) -> Option<&str> {
        self.problem.get().map(String::as_str)
    }

    /// Returns the number of changes that were noted without the content before: they cannot be taken back.
    pub fn lost(&self) -> usize {
        match &*self.locked() {
            Files::Open(open) => open.lost,
            Files::None | Files::Failed => 0,
        }
    }

    /// Returns the notes for a call. What `withhold` holds back is not kept.
    pub fn call(self: &Arc<Self>, call: StagedCall, withhold: Option<Withhold>) -> Arc<CallHistory> {
        Arc::new(CallHistory::new(self.clone(), call, withhold))
    }

    fn locked(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works with the files of the record, which are made if there are none. An error is kept as the problem of the record.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut OpenRecord) -> io::Result<T>) -> Option<T> {
        if self.history.limits.bytes == 0 {
            return None;
        }
        let done = self.with_files(work);
        done.map_err(|error| self.fail(&error.to_string())).ok().flatten()
    }

    fn with_files<T>(&self, work: impl FnOnce(&mut OpenRecord) -> io::Result<T>) -> io::Result<Option<T>> {
        let mut files = self.locked();
        if let Files::None = *files {
            *files = Files::Failed;
            let created = self.history.create(&self.header)?;
            if self.problem.get().is_some() {
                mark_incomplete(&created.folder);
            }
            *files = Files::Open(Box::new(created));
        }
        match &mut *files {
            Files::Open(open) => work(open).map(Some),
            Files::None | Files::Failed => Ok(None),
        }
    }

    /// Keeps the content of an open file, unless it is withheld.
    pub(super) fn keep_file(
        &self,
        file: &mut File,
        about: About,
        until: Option<Instant>,
        withhold: Option<&Withhold>,
    ) -> Kept {
        let content = match self.copy(file, &about, until, withhold) {
            Ok(number) => KeptContent::File(number),
            Err(loss) => KeptContent::Lost(loss),
        };
        Kept { about, content }
    }

    fn copy(
        &self,
        file: &mut File,
        about: &About,
        until: Option<Instant>,
        withhold: Option<&Withhold>,
    ) -> Result<u64, Loss> {
        if about.size > self.history.limits.file {
            return Err(Loss::TooLarge);
        }
        let key = (about.device, about.inode, about.size, about.modified);
        let reserved = self.with(|open| match open.kept.get(&key) {
            Some(number) => Ok(Err(*number)),
            None => Ok(Ok(open.reserve(&self.history, about.size)?.map(|number| (number, open.folder.join(CONTENTS))))),
        });
        let (number, folder) = match reserved.ok_or(Loss::Full)? {
            // The same content was kept before.
            Err(number) => return Ok(number),
            Ok(reserved) => reserved.ok_or(Loss::Full)?,
        };
        let path = folder.join(number.to_string());
        let copied = options().read(true).write(true).create_new(true).open(&path).and_then(|mut to| {
            // What was added meanwhile has no room.
            copy_in_time(file, &mut to, about.size, until)?;
            to.rewind()?;
            Ok(to)
        });
        let kept = match copied {
            Err(error) => Err(Loss::of(&error)),
            Ok(mut copy) => match withhold {
                Some(withhold) if withhold.holds_back(&mut copy) => Err(Loss::Secret),
                _ => Ok(number),
            },
        };
        if kept.is_err() {
            let _ = fs::remove_file(&path);
        }
        self.with(|open| {
            match kept {
                Ok(number) => drop(open.kept.insert(key, number)),
                Err(_) => (open.room, open.bytes) = (open.room + about.size, open.bytes - about.size),
            }
            Ok(())
        });
        kept
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Files::Open(open) = &*self.locked() {
            close(&open.folder, open.bytes);
        }
    }
}
