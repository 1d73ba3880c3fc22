//! Notes of a running call: each change is noted before it is made, with what was there.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::line::{Action, Kept, KeptContent, Loss};
use super::record::{Record, state_of};
use crate::linux::entry::About;
use crate::types::{EntryKind, StagedCall};

/// Number of paths whose states are noted at once.
const FEW_PATHS: usize = 64;

/// Notes of one call about the real folders in which it may write. An error is kept as [`Record::problem`], and fails nothing.
#[derive(Debug)]
pub struct CallHistory {
    record: Arc<Record>,
    call: StagedCall,
    withhold: Option<Withhold>,
    state: Mutex<CallState>,
}

/// Check that returns `true` for a content which must not be kept, such as one with a secret.
#[derive(Clone)]
pub struct Withhold(Arc<dyn Fn(&mut File) -> bool + Send + Sync>);

impl Withhold {
    /// Creates a check, which gets a copy of each content.
    pub fn new(check: impl Fn(&mut File) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(super) fn holds_back(&self, content: &mut File) -> bool {
        (self.0)(content)
    }
}

impl std::fmt::Debug for Withhold {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Withhold")
    }
}

#[derive(Debug, Default)]
struct CallState {
    paths: BTreeSet<String>,
    /// Files that the call has made, or that are kept as they were before it.
    files: HashSet<(u64, u64)>,
    /// Folders in which the call may write, as far as they are not noted yet.
    folders: Vec<Arc<File>>,
}

/// Change that was noted and not made yet. It counts as made unless it failed.
#[derive(Debug)]
#[must_use]
pub struct PlannedChange(Option<(Arc<Record>, usize)>);

impl PlannedChange {
    /// Notes that the change was not made.
    pub fn failed(self) {
        if let Some((record, number)) = self.0 {
            record.with(|open| open.fail(number));
        }
    }
}

impl CallHistory {
    pub(super) fn new(record: Arc<Record>, call: StagedCall, withhold: Option<Withhold>) -> Self {
        Self { record, call, withhold, state: Mutex::default() }
    }

    /// Adds a folder in which the call may write.
    pub fn allow(&self, folder: Arc<File>) {
        self.state().folders.push(folder);
    }

    /// Notes that the content of an open file is about to change. No content is copied after `until`.
    pub fn writing(&self, file: &File, until: Option<Instant>) {
        let Some(about) = self.ok(fstat(file)).map(|found| About::of_stat(&found)) else { return };
        // A file without a name cannot be put back.
        if about.names == 0 || self.state().files.contains(&about.file()) {
            return;
        }
        let by_handle = format!("/proc/self/fd/{}", file.as_raw_fd());
        let Some(path) = self.ok(readlinkat(CWD, &by_handle, Vec::new())) else { return };
        let Some(path) = self.text(path.to_str().ok()) else { return };
        if state_of(&path).is_none_or(|now| now.file() != about.file()) {
            return self.record.fail("a file was moved while it was opened");
        }
        // The handle may be for writing alone.
        let before = match openat(CWD, &by_handle, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(readable) => self.record.keep_file(&mut File::from(readable), about, until, self.withhold.as_ref()),
            Err(error) => Kept { about, content: KeptContent::Lost(Loss::of(&error.into())) },
        };
        if self.note(Action::Written { path, before }).0.is_some() {
            self.state().files.insert(about.file());
        }
    }

    /// Notes that an entry is about to be made, or that a file is about to get another name.
    pub fn making(&self, path: &Path) -> PlannedChange {
        self.text(path.to_str()).map_or(PlannedChange(None), |path| self.note(Action::Made { path }))
    }

    /// Notes that the call has made an open file: its content has no state before.
    pub fn made(&self, file: &File) {
        if let Some(found) = self.ok(fstat(file)) {
            self.state().files.insert(About::of_stat(&found).file());
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
                        let (mut file, about, withhold) = (file.into(), About::of_stat(&found), self.withhold.as_ref());
                        return Some(self.record.keep_file(&mut file, about, until, withhold));
                    }
                    Err(error) => KeptContent::Lost(Loss::of(&error.into())),
                }
            }
        };
        Some(Kept { about, content })
    }

    fn note(&self, action: Action) -> PlannedChange {
        let folders = std::mem::take(&mut self.state().folders);
        let paths: Vec<String> = action.paths().map(str::to_owned).collect();
        let number = self.record.with(|open| {
            open.add_bases(folders.iter().filter_map(|folder| base_of(folder)))?;
            open.note(std::slice::from_ref(&self.call), None, action)
        });
        let mut state = self.state();
        match number {
            Some(_) => state.paths.extend(paths),
            None => state.folders.extend(folders),
        }
        PlannedChange(number.map(|number| (self.record.clone(), number)))
    }

    /// Returns `true` if it takes long to note the end of the call.
    pub fn is_large(&self) -> bool {
        self.state().paths.len() > FEW_PATHS
    }

    /// Notes the state in which the call leaves what it changed. Changes after that are noted as such of the call again.
    pub fn end(&self) {
        let paths = std::mem::take(&mut self.state().paths);
        if paths.is_empty() {
            return;
        }
        let state = |path: String| {
            let about = state_of(&path);
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
        found.map_err(|error| self.record.fail(&error.to_string())).ok()
    }

    fn text(&self, path: Option<&str>) -> Option<String> {
        if path.is_none() {
            self.record.fail("a path is not Unicode text");
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
