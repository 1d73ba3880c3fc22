//! An open stage: folders are put under it, its changes are listed, and it is committed or removed.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError as TryStateError};
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt};
use rustix::io::Errno;
use toolcrib_private_files::{FileLock, options};

use super::base::{Bases, below, join};
use super::begun::{Begun, DONE, MADE, STEPS, conflict_of, end_of};
use super::commit::Performer;
use super::entry::About;
use super::fact::{Content, Fact, Origin, ROOT};
use super::folder::StagedFolder;
use super::history::{CommitNotes, Record};
use super::journal::Journal;
use super::plan::Step;
use super::state::{HeldFolders, State};
use super::tree::Tree;
use crate::types::{Change, CommitError, Committed, Conflict, Limits, Refused};

pub(crate) const CONTENTS: &str = "contents";
/// Empty folder, in place of those that only the stage has.
pub(crate) const NOTHING: &str = "nothing";
/// Interval between two attempts to take the lock of the state.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// Open stage.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
    state: Mutex<State>,
    held: Arc<HeldFolders>,
    /// Bytes that calls have written and the state does not count yet.
    written: AtomicU64,
    /// `true` once the stage is removed: another one can have its name.
    is_removed: AtomicBool,
    /// Held while this process may change the stage.
    lock: Option<FileLock>,
    /// The whole stage, if this one is its part.
    whole: Option<Arc<Self>>,
    /// Paths of real folders that are not there any more.
    lost: Vec<String>,
}

impl Stage {
    pub(crate) fn load(
        folder: PathBuf,
        limits: Limits,
        lock: Option<FileLock>,
        whole: Option<Arc<Self>>,
        open: impl FnOnce(&mut dyn FnMut(Fact)) -> io::Result<Journal<Fact>>,
    ) -> io::Result<Arc<Self>> {
        let contents = Dir::open_ambient_dir(folder.join(CONTENTS), ambient_authority())?;
        let (mut facts, mut bases, mut lost) = (Vec::new(), Bases::default(), Vec::new());
        let journal = open(&mut |fact| match fact {
            Fact::Base { path, device, inode } => match Dir::open_ambient_dir(&path, ambient_authority()) {
                Ok(dir) if dir.dir_metadata().is_ok_and(|found| (found.dev(), found.ino()) == (device, inode)) => {
                    bases.add(&path, dir);
                }
                _ => lost.push(path),
            },
            fact => facts.push(fact),
        })?;
        let (tree, linked, held) = (Tree::new(), HashMap::new(), Arc::<HeldFolders>::default());
        let (call, used, is_estimate, rebased) = (None, 0, false, None);
        let held_folders = held.clone();
        let mut state =
            State { tree, bases, contents, journal, limits, linked, held, call, used, is_estimate, rebased };
        facts.into_iter().for_each(|fact| state.apply(fact, 0));
        state.count_contents()?;
        let (written, is_removed) = (AtomicU64::new(0), AtomicBool::new(false));
        let (state, held) = (Mutex::new(state), held_folders);
        Ok(Arc::new(Self { folder, state, held, written, is_removed, lock, whole, lost }))
    }

    /// Locks the state, for what no call is noted with.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.call = None;
        state
    }

    /// Returns `true` if this process may change the stage.
    pub(crate) fn is_writable(&self) -> bool {
        self.lock.is_some()
    }

    pub(crate) fn held(&self) -> &HeldFolders {
        &self.held
    }

    /// Forgets the folders that were only passed, unless the state is in use: the next one that needs room does it then.
    pub(crate) fn forget_passed(&self) {
        if let Ok(mut state) = self.state.try_lock() {
            let held = state.held.folders();
            state.tree.forget_passed(held.into_iter());
        }
    }

    /// Waits for the state until a time.
    ///
    /// # Errors
    ///
    /// `EBUSY` at that time.
    pub(crate) fn state_until(&self, until: Option<Instant>) -> io::Result<MutexGuard<'_, State>> {
        let mut state = loop {
            match self.state.try_lock() {
                Ok(state) => break state,
                Err(TryStateError::Poisoned(state)) => break state.into_inner(),
                Err(TryStateError::WouldBlock) if until.is_some_and(|until| Instant::now() >= until) => {
                    return Err(Errno::BUSY.into());
                }
                Err(TryStateError::WouldBlock) => std::thread::sleep(LOCK_RETRY_INTERVAL),
            }
        };
        let written = self.written.swap(0, Relaxed);
        state.used = state.used.saturating_add(written);
        // A file that was written twice counts twice.
        state.is_estimate |= written > 0;
        Ok(state)
    }

    /// Folder in which the stage is kept.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Name of the stage.
    pub fn name(&self) -> &str {
        let folder = self.whole.as_ref().map_or(&self.folder, |whole| &whole.folder);
        folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Real folders under the stage.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.state().bases.paths().map(PathBuf::from).collect()
    }

    /// Real folders under the stage that are gone or replaced, by their paths. Their changes cannot be
    /// committed.
    pub fn lost(&self) -> &[String] {
        &self.lost
    }

    /// Counts bytes that a call has written to files of the stage. Counting too many is harmless: before a write is refused, the
    /// files themselves are counted.
    pub fn count_written(&self, bytes: u64) {
        self.written.fetch_add(bytes, Relaxed);
    }

    /// Puts a real folder under the stage, and opens it. `path` is its real path.
    ///
    /// # Errors
    ///
    /// The folder was removed in the stage, its path is not Unicode text, the stage is in use until that time, or the error of the
    /// system.
    pub fn attach(self: &Arc<Self>, path: &Path, folder: File, until: Option<Instant>) -> io::Result<StagedFolder> {
        let path = path.to_str().filter(|path| path.starts_with('/')).ok_or(Errno::ILSEQ)?;
        if self.lost.iter().any(|lost| below(lost, path).is_some()) {
            return Err(io::Error::other("it is no longer the folder over which the stage was begun; drop the stage"));
        }
        let dir = Dir::from_std_file(folder);
        let about = About::of(&dir.dir_metadata()?);
        let mut state = self.state_until(until)?;
        state.call = None;
        if state.bases.add(path, dir) {
            state.record(vec![Fact::Base { path: path.to_owned(), device: about.device, inode: about.inode }])?;
        }
        let (mut at, mut reached) = (ROOT, "/".to_owned());
        let mut names = path.split('/').filter(|name| !name.is_empty()).peekable();
        while let Some(name) = names.next() {
            reached = join(&reached, name);
            let about = names.peek().is_none().then_some(about);
            let is_carried = |id: &u64| state.tree.origin(*id) == Some(reached.as_str());
            at = match state.tree.child(at, name).filter(is_carried) {
                Some(child) => child,
                None if state.tree.hidden(&reached).is_some() => {
                    let removed = || io::Error::other("it was removed in the stage");
                    state.tree.carrier(&reached).ok_or_else(removed)?
                }
                None if state.tree.child(at, name).is_some() => {
                    return Err(io::Error::other("the stage has another entry at its path: commit or drop it first"));
                }
                None => state.tree.pass(at, name, Origin { path: reached.clone(), about }),
            };
        }
        state.tree.describe(at, about);
        Ok(StagedFolder::new(self.clone(), at))
    }

    /// Opens an empty folder, for callers that need a handle for a folder of the stage.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn nothing(&self) -> io::Result<File> {
        File::open(self.folder.join(NOTHING))
    }

    /// Lists the changes, by path.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn changes(&self) -> io::Result<Vec<Change>> {
        let mut state = self.state();
        // Only the one that may change a stage gives other names of a file their content.
        if self.lock.is_some() {
            state.find_names()?;
        }
        state.changes()
    }

    /// Opens the real file of a change; `None` if it has none, or it is gone.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn before(&self, change: &Change) -> io::Result<Option<File>> {
        change.real.as_ref().filter(|_| change.before.is_some()).map_or(Ok(None), |path| read_real(&self.state(), path))
    }

    /// Opens the file that a change leaves; `None` if it leaves none.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn after(&self, change: &Change) -> io::Result<Option<File>> {
        let state = self.state();
        let Some(id) = change.node.filter(|_| change.after.is_some()) else { return Ok(None) };
        match state.tree.get(id).map(|node| &node.content) {
            Some(Content::Written(_)) => state.open_content(id, true, false).map(Some),
            // It was moved as it is.
            Some(_) => change.real.as_ref().map_or(Ok(None), |path| read_real(&state, path)),
            None => Ok(None),
        }
    }

    /// Returns the target of the link that a change leaves.
    pub fn link(&self, change: &Change) -> Option<String> {
        match &self.state().tree.get(change.node?)?.content {
            Content::Link(target) => Some(target.clone()),
            _ => None,
        }
    }

    /// Takes changes back, so that the stage shows the real entries again.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn withdraw(&self, changes: &[Change]) -> io::Result<Vec<Refused>> {
        self.state().withdraw(changes)
    }

    /// Returns how many steps a commit has done, and how many it has; `None` if none has begun.
    ///
    /// # Errors
    ///
    /// The steps cannot be read.
    pub fn progress(&self) -> io::Result<Option<(usize, usize)>> {
        let done = || fs::metadata(self.commit_folder().join(DONE)).map_or(0, |found| found.len() as usize);
        Ok(self.begun()?.map(|begun| (done().min(begun.steps.len()), begun.steps.len())))
    }

    /// Removes what an interrupted commit has not put at its place, and returns the paths of entries that it moved aside.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn clean(&self) -> io::Result<Vec<PathBuf>> {
        let Some(Begun { aside, steps }) = self.begun()? else { return Ok(Vec::new()) };
        let (done, _) = self.progress()?.unwrap_or_default();
        let state = self.state();
        if let (Some(step), Ok(made)) = (steps.get(done), options().read(true).open(self.commit_folder().join(MADE))) {
            let (bases, contents) = (&state.bases, &state.contents);
            let performer = Performer { bases, contents, aside: &aside, is_repeated: true, made: &made };
            // Its folder may be gone, with what was in it.
            let _ = performer.clean(step);
        }
        let moved = steps.iter().filter(|step| matches!(step, Step::Move { .. }) && step.path().contains(&aside));
        let is_there = |path: &&str| state.bases.about(path).is_ok_and(|found| found.is_some());
        Ok(moved.map(Step::path).filter(is_there).map(PathBuf::from).collect())
    }

    /// Returns `true` if a commit has begun.
    pub fn is_committing(&self) -> bool {
        self.commit_folder().join(STEPS).exists()
    }

    /// Commits all changes and removes the stage. The commit of a part leaves the whole stage, if that has other changes. A commit that
    /// was interrupted goes on, also one of a part, and with `skips` leaves out what is in conflict from there on. `record` notes
    /// what was there before. `progress` gets the number of steps that are done, and of all.
    ///
    /// # Errors
    ///
    /// The first conflict, before anything has changed or, if others change the folders meanwhile, at one step; or an error
    /// of the system. The steps before are done, and the next commit goes on after them.
    pub fn commit(
        self: Arc<Self>,
        skips: bool,
        record: Option<&Arc<Record>>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Committed, CommitError> {
        let system = |error| CommitError::System(self.folder.clone(), error);
        if self.lock.is_none() {
            return Err(system(ErrorKind::PermissionDenied.into()));
        }
        if let Some(part) = self.begun_part().map_err(system)? {
            return part.commit(skips, record, progress);
        }
        let begun = self.begun().map_err(system)?;
        let is_continued = begun.is_some();
        let Begun { aside, steps } = match begun {
            Some(begun) => begun,
            None => {
                self.check_conflicts().map_err(system)??;
                self.begin().map_err(system)?
            }
        };
        let record = record.map(|record| self.record_of(record));
        let changes = if record.is_some() { self.changes().map_err(system)? } else { Vec::new() };
        let mut done = options().read(true).append(true).create(true).open(self.folder.join(DONE)).map_err(system)?;
        let made = options().read(true).write(true).create(true).truncate(false).open(self.folder.join(MADE));
        let made = made.map_err(system)?;
        let mut ends = Vec::new();
        done.read_to_end(&mut ends).map_err(system)?;
        let first = ends.len();
        let earlier = steps.iter().zip(ends).filter_map(|(step, end)| Some((step.path().into(), conflict_of(end)?)));
        let (state, mut skipped) = (self.state(), earlier.collect::<Vec<_>>());
        let mut notes = record.as_ref().map(|record| CommitNotes::new(record, &state, changes));
        let mut is_named = false;
        for (number, step) in steps.iter().enumerate().skip(first) {
            progress(number, steps.len());
            let is_repeated = is_continued && number == first;
            let (bases, contents) = (&state.bases, &state.contents);
            let noted = notes.as_mut().map(|notes| notes.note(number, step)).unwrap_or_default();
            if let Some(record) = record.as_deref().filter(|_| !is_named) {
                is_named = self.keep_record_name(record).map_err(system)?;
            }
            let performer = Performer { bases, contents, aside: &aside, is_repeated, made: &made };
            let end = match performer.perform(step) {
                Err(CommitError::Conflict(path, conflict)) if is_continued && skips => {
                    notes.iter().for_each(|notes| notes.failed(&noted));
                    skipped.push((path, conflict));
                    end_of(conflict)
                }
                Err(conflict @ CommitError::Conflict(..)) => {
                    notes.iter().for_each(|notes| notes.failed(&noted));
                    return Err(conflict);
                }
                performed => performed.map(|()| b'.')?,
            };
            done.write_all(&[end]).map_err(system)?;
        }
        progress(steps.len(), steps.len());
        if let Some(notes) = notes {
            notes.end(&steps[..first], &self.likes());
        }
        drop(state);
        let left = self.end().map_err(system)?;
        let steps = steps.len().saturating_sub(skipped.len());
        Ok(Committed { steps, skipped, left, record })
    }

    /// Removes a stage whose changes are made, and returns how many stay in the whole stage.
    fn end(&self) -> io::Result<usize> {
        let Some(whole) = &self.whole else { return self.remove().map(|()| 0) };
        whole.rebase(self)?;
        self.remove()?;
        let left = whole.changes()?.len();
        if left == 0 {
            whole.remove()?;
        }
        Ok(left)
    }

    fn check_conflicts(&self) -> io::Result<Result<(), CommitError>> {
        let changes = self.changes()?;
        let is_meant =
            |lost: &&String| self.whole.is_none() || changes.iter().any(|change| change.path.starts_with(lost));
        if let Some(lost) = self.lost.iter().find(is_meant) {
            return Ok(Err(CommitError::Conflict(lost.into(), Conflict::Gone)));
        }
        let conflict =
            changes.into_iter().find_map(|change| Some(CommitError::Conflict(change.path, change.conflict?)));
        Ok(conflict.map_or(Ok(()), Err))
    }

    /// Removes the stage with all that it holds.
    ///
    /// # Errors
    ///
    /// The error of the system; [`ErrorKind::PermissionDenied`] if the stage was opened to be read.
    pub fn remove(&self) -> io::Result<()> {
        if self.lock.is_none() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        self.is_removed.store(true, Relaxed);
        remove_folder(&self.folder)
    }
}

impl Drop for Stage {
    /// Removes a stage in which nothing was changed, and a part that is not committed.
    fn drop(&mut self) {
        let has_changes = self.whole.is_none() && self.state().tree.kept() > 0;
        let is_used = self.is_removed.load(Relaxed) || has_changes || self.is_committing();
        if self.lock.is_some() && !is_used {
            let _ = remove_folder(&self.folder);
        }
    }
}

/// Opens a real file; `None` if it is gone.
fn read_real(state: &State, path: &str) -> io::Result<Option<File>> {
    match state.bases.read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(|(file, _)| Some(file)),
    }
}

/// Removes a stage's folder, under a name that is no stage's.
pub(crate) fn remove_folder(folder: &Path) -> io::Result<()> {
    let gone = folder.with_file_name(format!(".gone-{}", random()?));
    fs::rename(folder, &gone)?;
    fs::remove_dir_all(gone)
}

/// Returns a random name.
pub(crate) fn random() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
