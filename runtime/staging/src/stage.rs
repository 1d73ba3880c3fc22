//! Stages on the disk: created, opened, read by others meanwhile, committed and removed.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::AcqRel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt};
use rustix::io::Errno;
use toolcrib_private_files::{create_folder, options};

use crate::base::{Bases, join};
use crate::commit::Performer;
use crate::entry::About;
use crate::folder::StagedFolder;
use crate::journal::Journal;
use crate::plan::{Step, plan};
use crate::state::State;
use crate::tree::{Content, Fact, Origin, ROOT, Tree};
use crate::types::{Change, CommitError, Conflict, Limits, Refused, StagedCall};

const JOURNAL: &str = "journal";
const CONTENTS: &str = "contents";
const LOCK: &str = "lock";
/// Empty folder, in place of those that only the stage has.
const NOTHING: &str = "nothing";
/// Steps of a commit that has begun.
const STEPS: &str = "steps";
/// One byte for each step that is done.
const DONE: &str = "done";
/// Begin of the names of entries that are not at their place yet.
const ASIDE: &str = ".toolcrib-stage-";
/// Maximum length of a stage's name.
const MAX_NAME: usize = 64;

/// Stages of one user, in a folder of their own.
#[derive(Debug, Clone)]
pub struct Stages(PathBuf);

impl Stages {
    /// Names the folder, without opening it.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Lists the names of all stages.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().into_string().unwrap_or_default();
            if check_name(&name).is_ok() && self.0.join(&name).join(JOURNAL).is_file() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a stage for changes, and creates it if it is missing. One process at a time has it open.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a name that is not one, [`ErrorKind::WouldBlock`] if another process has it open,
    /// [`ErrorKind::ResourceBusy`] if its commit has begun, or the error of the system.
    pub fn open(&self, name: &str, limits: Limits) -> io::Result<Arc<Stage>> {
        let stage = self.open_any(name, limits)?;
        match stage.is_committing() {
            true => Err(io::Error::new(ErrorKind::ResourceBusy, "its commit has begun")),
            false => Ok(stage),
        }
    }

    /// Opens an existing stage to commit or remove it.
    ///
    /// # Errors
    ///
    /// As for [`Stages::open`], and [`ErrorKind::NotFound`] if there is none.
    pub fn take(&self, name: &str) -> io::Result<Arc<Stage>> {
        check_name(name)?;
        if !self.0.join(name).join(JOURNAL).is_file() {
            return Err(ErrorKind::NotFound.into());
        }
        self.open_any(name, Limits::default())
    }

    fn open_any(&self, name: &str, limits: Limits) -> io::Result<Arc<Stage>> {
        // Elsewhere, two names that differ in case can be one.
        if !cfg!(target_os = "linux") {
            return Err(ErrorKind::Unsupported.into());
        }
        check_name(name)?;
        let folder = self.0.join(name);
        create_folder(&folder.join(CONTENTS))?;
        create_folder(&folder.join(NOTHING))?;
        let lock = options().write(true).create(true).truncate(false).open(folder.join(LOCK))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        let file = options().read(true).write(true).create(true).truncate(false).open(folder.join(JOURNAL))?;
        Stage::load(folder, limits, Some(lock), |apply| Journal::open(file, apply))
    }

    /// Reads a stage that another process may have open. It cannot be changed by the returned value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is none, or the error of the system.
    pub fn read(&self, name: &str) -> io::Result<Arc<Stage>> {
        check_name(name)?;
        let folder = self.0.join(name);
        let file = options().read(true).open(folder.join(JOURNAL))?;
        Stage::load(folder, Limits::default(), None, |apply| Journal::read_only(file, apply))
    }
}

/// Refuses a name that could be anything but the name of one folder.
fn check_name(name: &str) -> io::Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
    match (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('-') {
        true => Ok(()),
        false => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("expected 1 to {MAX_NAME} lowercase letters, digits, `-` and `_`"),
        )),
    }
}

/// Open stage.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
    state: Mutex<State>,
    /// Number of open folders.
    open: AtomicUsize,
    /// Held while this process may change the stage.
    lock: Option<File>,
    /// Paths of real folders that are not there any more.
    lost: Vec<String>,
}

impl Stage {
    fn load(
        folder: PathBuf,
        limits: Limits,
        lock: Option<File>,
        open: impl FnOnce(&mut dyn FnMut(Fact)) -> io::Result<Journal>,
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
        let (tree, linked) = (Tree::new(), HashMap::new());
        let mut state = State { tree, bases, contents, journal, limits, linked, call: 0, used: 0 };
        facts.into_iter().for_each(|fact| state.apply(fact));
        state.count_contents()?;
        Ok(Arc::new(Self { folder, state: Mutex::new(state), open: AtomicUsize::new(0), lock, lost }))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn hold(&self) {
        self.open.fetch_add(1, AcqRel);
    }

    /// Gives an open folder back. With the last one, the folders that were only passed are forgotten.
    pub(crate) fn release(&self) {
        let mut state = self.state();
        if self.open.fetch_sub(1, AcqRel) == 1 {
            state.tree.forget_passed();
        }
    }

    /// Name of the stage.
    pub fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Real folders under the stage.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.state().bases.paths().map(PathBuf::from).collect()
    }

    /// Paths of real folders under the stage that are gone, or that others have taken the place of. Their changes cannot be
    /// committed.
    pub fn lost(&self) -> &[String] {
        &self.lost
    }

    /// Begins a call, and returns its number, by which its changes are noted.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub fn begin_call(&self, id: &str, tool: &str) -> io::Result<u32> {
        let mut state = self.state();
        state.record(vec![Fact::Call(StagedCall { id: id.to_owned(), tool: tool.to_owned() })])?;
        Ok(state.tree.calls().len() as u32)
    }

    /// Counts bytes that a call has written to files of the stage. Counting too many is harmless: before a write is refused, the
    /// files themselves are counted.
    pub fn count_written(&self, bytes: u64) {
        let mut state = self.state();
        state.used = state.used.saturating_add(bytes);
    }

    /// Puts a real folder under the stage, and opens it. `path` is its real path.
    ///
    /// # Errors
    ///
    /// The folder was removed in the stage, its path is not Unicode text, or the error of the system.
    pub fn attach(self: &Arc<Self>, path: &Path, folder: File) -> io::Result<StagedFolder> {
        let path = path.to_str().filter(|path| path.starts_with('/')).ok_or(Errno::ILSEQ)?;
        let dir = Dir::from_std_file(folder);
        let about = About::of(&dir.dir_metadata()?);
        let mut state = self.state();
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
                None if state.tree.hidden().contains_key(&reached) => {
                    let mut nodes = state.tree.nodes();
                    nodes.find(|(id, _)| is_carried(id)).map(|(id, _)| id).ok_or(Errno::NOENT)?
                }
                None => state.tree.pass(at, name, Origin { path: reached.clone(), about }),
            };
        }
        state.tree.describe(at, about);
        drop(state);
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
        let state = self.state();
        let Some(path) = change.real.as_ref().filter(|_| change.before.is_some()) else { return Ok(None) };
        let (folder, rest) = state.bases.find(path)?;
        match folder.open_with(rest, cap_std::fs::OpenOptions::new().read(true)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened.map(|file| Some(file.into_std())),
        }
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
            Some(_) => {
                drop(state);
                let moved = Change { before: Some(0), ..change.clone() };
                self.before(&moved)
            }
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

    /// Returns `true` if a commit has begun.
    pub fn is_committing(&self) -> bool {
        self.folder.join(STEPS).exists()
    }

    /// Commits all changes and removes the stage. A commit that was interrupted goes on. `progress` gets the number of steps
    /// that are done, and of all.
    ///
    /// # Errors
    ///
    /// The first conflict, before anything has changed or, if others change the folders meanwhile, at one step; or an error
    /// of the system. The steps before are done, and the next commit goes on after them.
    pub fn commit(self: Arc<Self>, progress: &mut dyn FnMut(usize, usize)) -> Result<usize, CommitError> {
        let system = |error| CommitError::System(self.folder.clone(), error);
        if self.lock.is_none() {
            return Err(system(ErrorKind::PermissionDenied.into()));
        }
        let aside = format!("{ASIDE}{}-", self.name());
        let steps = match self.begun().map_err(system)? {
            Some(steps) => steps,
            None => {
                self.check_conflicts().map_err(system)??;
                let state = self.state();
                let steps = plan(&state, &aside).map_err(system)?;
                state.journal.sync().and_then(|()| self.begin(&steps)).map_err(system)?;
                steps
            }
        };
        let mut done = options().read(true).append(true).create(true).open(self.folder.join(DONE)).map_err(system)?;
        let first = usize::try_from(done.metadata().map_err(system)?.len()).unwrap_or(usize::MAX);
        let state = self.state();
        for (number, step) in steps.iter().enumerate().skip(first) {
            progress(number, steps.len());
            let is_repeated = number == first;
            let performer = Performer { bases: &state.bases, contents: &state.contents, aside: &aside, is_repeated };
            performer.perform(step)?;
            done.write_all(b".").map_err(system)?;
        }
        progress(steps.len(), steps.len());
        drop(state);
        self.remove().map_err(system)?;
        Ok(steps.len())
    }

    fn check_conflicts(&self) -> io::Result<Result<(), CommitError>> {
        if let Some(lost) = self.lost.first() {
            return Ok(Err(CommitError::Conflict(lost.into(), Conflict::Gone)));
        }
        let mut changes = self.changes()?.into_iter();
        let conflict = changes.find_map(|change| Some(CommitError::Conflict(change.path, change.conflict?)));
        Ok(conflict.map_or(Ok(()), Err))
    }

    /// Reads the steps of a commit that has begun.
    fn begun(&self) -> io::Result<Option<Vec<Step>>> {
        match options().read(true).open(self.folder.join(STEPS)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            file => {
                let mut text = Vec::new();
                file?.read_to_end(&mut text)?;
                Ok(Some(serde_json::from_slice(&text)?))
            }
        }
    }

    /// Writes the steps down before the first one.
    fn begin(&self, steps: &[Step]) -> io::Result<()> {
        let unfinished = self.folder.join("steps.unfinished");
        let mut file = options().write(true).create(true).truncate(true).open(&unfinished)?;
        file.write_all(&serde_json::to_vec(steps)?)?;
        file.sync_all()?;
        fs::rename(unfinished, self.folder.join(STEPS))?;
        File::open(&self.folder)?.sync_all()
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
        // Without its journal it is no stage, whatever is left of it.
        for name in [JOURNAL, STEPS] {
            match fs::remove_file(self.folder.join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::remove_dir_all(&self.folder)
    }
}
