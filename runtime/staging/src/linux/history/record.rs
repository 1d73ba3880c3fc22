//! A record that is being written: each change is noted before it is made, with what was there.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use toolcrib_private_files::options;

use super::line::{Action, Kept, KeptContent, Line, Loss, Noted};
use super::store::{CONTENTS, History, close};
use crate::linux::entry::About;
use crate::linux::journal::Journal;
use crate::linux::state::copy_in_time;
use crate::types::{EntryKind, RecordHeader, StagedCall};

/// Record of a command's changes.
#[derive(Debug)]
pub struct Record {
    history: History,
    header: RecordHeader,
    open: Mutex<Option<OpenRecord>>,
    problem: OnceLock<String>,
}

/// Files of a record.
#[derive(Debug)]
pub(crate) struct OpenRecord {
    pub(crate) folder: PathBuf,
    journal: Journal<Line>,
    _lock: File,
    calls: HashMap<String, usize>,
    bases: HashSet<String>,
    changes: usize,
    /// Last step that a commit has noted, with the numbers of its changes.
    step: Option<(usize, Vec<usize>)>,
    contents: u64,
    bytes: u64,
    /// Bytes that may still be kept.
    room: u64,
}

impl OpenRecord {
    pub(super) fn new(folder: PathBuf, lock: File, journal: Journal<Line>, room: u64) -> io::Result<Self> {
        Self::continued(folder, lock, journal, room, &[])
    }

    /// Counts on after these lines.
    pub(super) fn continued(
        folder: PathBuf,
        lock: File,
        journal: Journal<Line>,
        room: u64,
        lines: &[Line],
    ) -> io::Result<Self> {
        let (mut calls, mut bases, mut changes) = (HashMap::new(), HashSet::new(), 0);
        let mut step: Option<(usize, Vec<usize>)> = None;
        for line in lines {
            match line {
                Line::Call(call) => drop(calls.insert(call.id.clone(), calls.len())),
                Line::Base { path, .. } => drop(bases.insert(path.clone())),
                Line::Change(noted) => {
                    note_step(&mut step, noted.step, changes);
                    changes += 1;
                }
                _ => {}
            }
        }
        let (mut contents, mut bytes) = (0, 0);
        for entry in std::fs::read_dir(folder.join(CONTENTS))? {
            let entry = entry?;
            let number = entry.file_name().to_str().and_then(|name| name.parse::<u64>().ok());
            contents = contents.max(number.map_or(0, |number| number + 1));
            bytes += entry.metadata()?.len();
        }
        Ok(Self { folder, journal, _lock: lock, calls, bases, changes, step, contents, bytes, room })
    }

    fn add(&mut self, lines: &[Line]) -> io::Result<()> {
        self.journal.add(lines)
    }

    /// Notes a change, and returns its number.
    pub(super) fn note(&mut self, calls: &[StagedCall], step: Option<usize>, action: Action) -> io::Result<usize> {
        let mut lines = Vec::new();
        let mut numbers = Vec::new();
        for call in calls {
            let next = self.calls.len();
            numbers.push(*self.calls.entry(call.id.clone()).or_insert_with(|| {
                lines.push(Line::Call(call.clone()));
                next
            }));
        }
        lines.push(Line::Change(Noted { calls: numbers, step, action }));
        self.add(&lines)?;
        note_step(&mut self.step, step, self.changes);
        self.changes += 1;
        Ok(self.changes - 1)
    }

    /// Notes the folders in which tools may write.
    pub(super) fn add_bases(&mut self, bases: impl Iterator<Item = (String, (u64, u64))>) -> io::Result<()> {
        for (path, (device, inode)) in bases {
            if self.bases.insert(path.clone()) {
                self.add(&[Line::Base { path, device, inode }])?;
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
        self.add(&[Line::End { calls, paths }])
    }

    /// Notes the state of paths after all calls.
    pub(super) fn end_all(&mut self, paths: Vec<(String, Option<About>)>) -> io::Result<()> {
        self.add(&[Line::End { calls: (0..self.calls.len()).collect(), paths }])
    }

    pub(super) fn add_line(&mut self, line: Line) -> io::Result<()> {
        self.add(&[line])
    }
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
        Self { history, header, open: Mutex::new(None), problem: OnceLock::new() }
    }

    pub(super) fn opened(history: History, header: RecordHeader, open: OpenRecord) -> Self {
        Self { history, header, open: Mutex::new(Some(open)), problem: OnceLock::new() }
    }

    /// Identifier of the record; `None` before the first change.
    pub fn id(&self) -> Option<String> {
        let open = self.locked();
        let name = open.as_ref()?.folder.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }

    /// Folder of the history.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the first error because of which changes were not noted.
    pub fn problem(&self) -> Option<&str> {
        self.problem.get().map(String::as_str)
    }

    /// Returns the notes for a call that may write in these real folders.
    pub fn call(self: &Arc<Self>, call: StagedCall, folders: Vec<Arc<File>>) -> Arc<CallHistory> {
        Arc::new(CallHistory { record: self.clone(), call, folders, state: Mutex::default() })
    }

    fn locked(&self) -> MutexGuard<'_, Option<OpenRecord>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works with the files of the record, which are made if there are none. An error is kept as the problem of the record.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut OpenRecord) -> io::Result<T>) -> Option<T> {
        if self.history.limits.bytes == 0 {
            return None;
        }
        let mut open = self.locked();
        let done = match &mut *open {
            Some(open) => work(open),
            None => self.history.create(&self.header).and_then(|created| work(open.insert(created))),
        };
        done.map_err(|error| self.problem.get_or_init(|| error.to_string())).ok()
    }

    /// Keeps the content of an open file.
    pub(super) fn keep_file(&self, file: &mut File, about: About, until: Option<Instant>) -> Kept {
        let content = match self.copy(file, &about, until) {
            Ok(number) => KeptContent::File(number),
            Err(loss) => KeptContent::Lost(loss),
        };
        Kept { about, content }
    }

    fn copy(&self, file: &mut File, about: &About, until: Option<Instant>) -> Result<u64, Loss> {
        if about.size > self.history.limits.file {
            return Err(Loss::TooLarge);
        }
        let reserved = self.with(|open| {
            if open.room < about.size {
                open.room = self.history.prune(about.size, Some((&open.folder, open.bytes)))?;
            }
            if open.room < about.size {
                return Ok(None);
            }
            open.room -= about.size;
            open.bytes += about.size;
            open.contents += 1;
            Ok(Some((open.contents - 1, open.folder.join(CONTENTS))))
        });
        let (number, folder) = reserved.flatten().ok_or(Loss::Full)?;
        let path = folder.join(number.to_string());
        let copied = options().write(true).create_new(true).open(&path).and_then(|mut to| {
            // What was added meanwhile has no room.
            copy_in_time(file, &mut to, about.size, until)
        });
        copied.map(|_| number).map_err(|error| {
            let _ = std::fs::remove_file(&path);
            Loss::of(&error)
        })
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if let Some(open) = &*self.locked() {
            close(&open.folder, open.bytes);
        }
    }
}

/// Notes of one call about the real folders in which it may write.
#[derive(Debug)]
pub struct CallHistory {
    record: Arc<Record>,
    call: StagedCall,
    folders: Vec<Arc<File>>,
    state: Mutex<CallState>,
}

#[derive(Debug, Default)]
struct CallState {
    paths: BTreeSet<String>,
    /// Files that the call has made, or that are kept as they were before it.
    files: HashSet<(u64, u64)>,
    has_bases: bool,
}

/// Change that was noted and not made yet.
#[derive(Debug)]
#[must_use]
pub struct PlannedChange(Option<(Arc<Record>, usize)>);

impl PlannedChange {
    /// Notes that the change was not made.
    pub fn failed(self) {
        if let Some((record, number)) = self.0 {
            record.with(|open| open.add_line(Line::Failed(number)));
        }
    }
}

impl CallHistory {
    /// Notes that the content of an open file is about to change. No content is copied after `until`.
    pub fn writing(&self, file: &File, until: Option<Instant>) {
        let Some(about) = self.ok(fstat(file)).map(|found| About::of_stat(&found)) else { return };
        if !self.state().files.insert(about.file()) {
            return;
        }
        let by_handle = format!("/proc/self/fd/{}", file.as_raw_fd());
        let Some(path) = self.ok(readlinkat(CWD, &by_handle, Vec::new())) else { return };
        let Some(path) = self.text(path.to_str().ok()) else { return };
        // The handle may be for writing alone.
        let before = match openat(CWD, &by_handle, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(readable) => self.record.keep_file(&mut File::from(readable), about, until),
            Err(error) => Kept { about, content: KeptContent::Lost(Loss::of(&error.into())) },
        };
        let _ = self.note(Action::Written { path, before });
    }

    /// Notes that an entry was made.
    pub fn made(&self, path: &Path) {
        if let Ok(found) = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
            self.state().files.insert(About::of_stat(&found).file());
        }
        self.named(path);
    }

    /// Notes that an existing file got another name.
    pub fn named(&self, path: &Path) {
        if let Some(path) = self.text(path.to_str()) {
            let _ = self.note(Action::Made { path });
        }
    }

    /// Notes that an entry of a folder is about to be removed.
    pub fn removing(&self, folder: impl AsFd, name: &str, path: &Path, until: Option<Instant>) -> PlannedChange {
        match (self.keep(folder.as_fd(), name, until), self.text(path.to_str())) {
            (Some(before), Some(path)) => {
                self.state().files.remove(&before.about.file());
                self.note(Action::Removed { path, before })
            }
            _ => PlannedChange(None),
        }
    }

    /// Notes that an entry of a folder is about to be moved, over what is at its new place.
    pub fn moving(
        &self,
        from: (impl AsFd, &str, &Path),
        to: (impl AsFd, &str, &Path),
        until: Option<Instant>,
    ) -> PlannedChange {
        let Ok(found) = statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW) else { return PlannedChange(None) };
        let about = About::of_stat(&found);
        // A file that is moved to another name of its own stays where it is.
        let is_same = |found: Stat| About::of_stat(&found).file() == about.file();
        if statat(&to.0, to.1, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(is_same) {
            return PlannedChange(None);
        }
        let over = self.keep(to.0.as_fd(), to.1, until);
        if let Some(over) = &over {
            self.state().files.remove(&over.about.file());
        }
        match (self.text(from.2.to_str()), self.text(to.2.to_str())) {
            (Some(from), Some(to)) => self.note(Action::Moved { from, to, about, over }),
            _ => PlannedChange(None),
        }
    }

    /// Keeps an entry of a folder; `None` if there is none.
    fn keep(&self, folder: impl AsFd, name: &str, until: Option<Instant>) -> Option<Kept> {
        let about = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return None,
            found => About::of_stat(&self.ok(found)?),
        };
        let content = match about.kind {
            EntryKind::Folder => KeptContent::Folder,
            EntryKind::Other => KeptContent::Lost(Loss::Special),
            EntryKind::Link => match readlinkat(&folder, name, Vec::new()).map(|target| target.into_string()) {
                Ok(Ok(target)) => KeptContent::Link(target),
                _ => KeptContent::Lost(Loss::Unreadable),
            },
            EntryKind::File => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                match openat(&folder, name, flags, Mode::empty()).and_then(|file| Ok((fstat(&file)?, file))) {
                    Ok((found, file)) => {
                        return Some(self.record.keep_file(&mut file.into(), About::of_stat(&found), until));
                    }
                    Err(error) => KeptContent::Lost(Loss::of(&error.into())),
                }
            }
        };
        Some(Kept { about, content })
    }

    fn note(&self, action: Action) -> PlannedChange {
        let (paths, is_first) = {
            let mut state = self.state();
            (action.paths().map(str::to_owned).collect::<Vec<_>>(), !std::mem::replace(&mut state.has_bases, true))
        };
        let number = self.record.with(|open| {
            if is_first {
                open.add_bases(self.folders.iter().filter_map(|folder| base_of(folder)))?;
            }
            open.note(std::slice::from_ref(&self.call), None, action)
        });
        self.state().paths.extend(paths);
        PlannedChange(number.map(|number| (self.record.clone(), number)))
    }

    /// Notes the state in which the call leaves what it changed. Changes after that are noted as such of the call again.
    pub fn end(&self) {
        let paths = std::mem::take(&mut self.state().paths);
        if paths.is_empty() {
            return;
        }
        let state = |path: String| {
            let about = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).ok().map(|found| About::of_stat(&found));
            (path, about)
        };
        let paths = paths.into_iter().map(state).collect();
        self.record.with(|open| open.end(std::slice::from_ref(&self.call), paths));
    }

    fn state(&self) -> MutexGuard<'_, CallState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a value of the system, and keeps an error as the record's problem.
    fn ok<T>(&self, found: Result<T, Errno>) -> Option<T> {
        found.map_err(|error| self.record.problem.get_or_init(|| error.to_string())).ok()
    }

    fn text(&self, path: Option<&str>) -> Option<String> {
        if path.is_none() {
            self.record.problem.get_or_init(|| "a path is not Unicode text".to_owned());
        }
        path.map(str::to_owned)
    }
}

impl Drop for CallHistory {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the present path of an open folder, with its device and number.
fn base_of(folder: &File) -> Option<(String, (u64, u64))> {
    let about = About::of_stat(&fstat(folder).ok()?);
    let path = readlinkat(CWD, format!("/proc/self/fd/{}", folder.as_raw_fd()), Vec::new()).ok()?;
    Some((path.into_string().ok()?, about.file()))
}
