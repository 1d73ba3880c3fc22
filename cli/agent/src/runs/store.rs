//! The folder of kept runs, within limits on their number, their age and their bytes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use jiff::Timestamp;

use toolcrib::owner_only;
use toolcrib::programs::ProgramStore;
use toolcrib_base::render::{Advice, excerpt};
use toolcrib_base::short_id;

use super::file::{self, RunFile, complete};
use super::given::GivenOptions;
use super::line::{Header, Line, RUN_VERSION};
use super::reading::{KeptRun, RunState};
use super::summary::{self, RunSummary};

/// Maximum number of kept runs.
pub(crate) const MAX_RUNS: usize = 500;
/// Maximum bytes of all kept runs together.
pub(crate) const MAX_BYTES: u64 = 512 << 20;
/// Age of the last change at which a run is removed.
pub(crate) const MAX_AGE: Duration = Duration::from_hours(90 * 24);
/// Word for the last run of the current directory.
const LAST: &str = "last";
/// Extension of a run's file.
const EXTENSION: &str = "ndjson";
/// Beginnings of the lines that a process begins with.
const BEGINNINGS: [&str; 2] = [r#"{"type":"run""#, r#"{"type":"resumed""#];
const LIST_HINT: &str = "`toolcrib runs list` lists the kept runs";

/// Folder of kept runs. It may be missing, and is then empty.
#[derive(Debug, Clone)]
pub struct RunStore {
    folder: PathBuf,
}

/// File of a run with the facts that the limits judge.
#[derive(Debug, Clone)]
pub struct StoredRun {
    /// Identifier of the run.
    pub id: String,
    /// Size of the file and its program sessions in bytes.
    pub bytes: u64,
    /// Time of the last change.
    pub modified: SystemTime,
}

/// Returns the bytes of the files in a folder; 0 if there is none.
fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

impl RunStore {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Path of the folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates an identifier for a new run.
    pub(crate) fn new_id() -> anyhow::Result<String> {
        short_id::random()
    }

    /// Creates the file of a new run, and removes the runs that exceed the limits.
    pub(crate) fn create(
        &self,
        id: String,
        door: &str,
        model: &str,
        parent: Option<String>,
    ) -> anyhow::Result<(RunFile, Header)> {
        let header = Header {
            version: RUN_VERSION,
            id,
            created: Timestamp::now(),
            door: door.to_owned(),
            model: model.to_owned(),
            folder: std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default(),
            parent,
            options: None,
        };
        self.prune();
        let path = self.path(&header.id);
        let file =
            RunFile::create(path.clone()).with_context(|| format!("cannot keep the run in `{}`", path.display()))?;
        Ok((file, header))
    }

    /// Opens a run to go on with it.
    ///
    /// # Errors
    ///
    /// There is no such run, another process writes it, or its file is damaged.
    pub(crate) fn open(&self, id: &str) -> anyhow::Result<(RunFile, KeptRun)> {
        let path = self.path(id);
        if !path.is_file() {
            return Err(unknown(id));
        }
        let (file, bytes) = match RunFile::open(path.clone()) {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(unknown(id)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let hint = "wait until it ends, or continue with a copy: `--fork`";
                return Err(Advice::new(format!("run `{id}` is open in another process"), hint).into());
            }
            Err(error) => return Err(error).with_context(|| format!("cannot open the run `{}`", path.display())),
        };
        let run = KeptRun::read(&bytes, &path.display().to_string(), false)?;
        Ok((file, run))
    }

    /// Reads a run, which another process may write at the same time.
    ///
    /// # Errors
    ///
    /// There is no such run, or its file is damaged.
    pub fn read(&self, id: &str) -> anyhow::Result<KeptRun> {
        let path = self.path(id);
        let goes_on = self.is_running(id);
        let bytes = file::named(&path).read().with_context(|| format!("cannot read the run `{}`", path.display()))?;
        let bytes = bytes.ok_or_else(|| unknown(id))?;
        // A process may have begun to write it meanwhile.
        let goes_on = goes_on || self.is_running(id);
        KeptRun::read(&bytes[..complete(&bytes)], &path.display().to_string(), goes_on)
    }

    /// Returns the folder for program sessions in a run.
    pub fn programs(&self, id: &str) -> ProgramStore {
        ProgramStore::folder(self.folder.join(id).with_extension("programs"))
    }

    /// Returns `true` if a process writes the run now.
    pub fn is_running(&self, id: &str) -> bool {
        file::is_locked(&self.path(id))
    }

    /// Returns the run ID that a person typed; `last` is the last run in this directory.
    ///
    /// # Errors
    ///
    /// It is no identifier, or there is no last run.
    pub fn find(&self, typed: &str) -> anyhow::Result<String> {
        if typed == LAST { self.latest_here() } else { Self::parse(typed) }
    }

    /// Returns the identifier of the run that a person typed.
    pub fn parse(typed: &str) -> anyhow::Result<String> {
        short_id::parse(typed).ok_or_else(|| {
            let shown = excerpt(typed);
            Advice::new(format!("`{shown}` is not a run ID such as `7k3md-x0q9a`"), LIST_HINT).into()
        })
    }

    /// Lists the files, last changed first.
    pub fn files(&self) -> anyhow::Result<Vec<StoredRun>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("cannot read the folder `{}`", self.folder.display()))?,
        };
        let stored = |entry: fs::DirEntry| {
            let path = entry.path();
            let id = path.file_stem()?.to_str()?;
            let is_run = path.extension()? == EXTENSION && short_id::parse(id).as_deref() == Some(id);
            let about = entry.metadata().ok().filter(|about| is_run && about.is_file())?;
            let sessions = folder_bytes(self.programs(id).path());
            Some(StoredRun { id: id.to_owned(), bytes: about.len() + sessions, modified: about.modified().ok()? })
        };
        let mut files: Vec<StoredRun> = entries.flatten().filter_map(stored).collect();
        files.sort_by(|one, other| (other.modified, &other.id).cmp(&(one.modified, &one.id)));
        Ok(files)
    }

    /// Sums up a run, which another process may write at the same time.
    ///
    /// # Errors
    ///
    /// There is no such run, or the parts of its file that are read are damaged.
    pub(crate) fn summary(&self, id: &str) -> anyhow::Result<RunSummary> {
        let path = self.path(id);
        let goes_on = self.is_running(id);
        let mut file = match owner_only::options().read(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(unknown(id)),
            file => file.with_context(|| format!("cannot read the run `{}`", path.display()))?,
        };
        let summary = RunSummary::read(&mut file, &path.display().to_string())?;
        Ok(if goes_on { RunSummary { state: RunState::Running, ..summary } } else { summary })
    }

    /// Returns the run of the current directory that was changed last. Files without a run, as a kill at its beginning leaves them,
    /// are passed over.
    ///
    /// # Errors
    ///
    /// There is none, or its file or a later one is damaged.
    pub(crate) fn latest_here(&self) -> anyhow::Result<String> {
        let here = std::env::current_dir().map(|here| here.display().to_string()).unwrap_or_default();
        for stored in self.files()? {
            if summary::header_at(&self.path(&stored.id))?.is_some_and(|header| header.folder == here) {
                return Ok(stored.id);
            }
        }
        Err(Advice::new("no saved run for this directory", "`toolcrib runs list` lists the runs of all directories")
            .into())
    }

    /// Reads the model and the options of the last process that began or resumed a run.
    ///
    /// # Errors
    ///
    /// There is no such run, or its file is damaged.
    pub(super) fn given(&self, id: &str) -> anyhow::Result<(String, Option<GivenOptions>)> {
        let path = self.path(id);
        let bytes = file::named(&path).read().with_context(|| format!("cannot read the run `{}`", path.display()))?;
        let bytes = bytes.ok_or_else(|| unknown(id))?;
        let is_begin = |line: &&[u8]| BEGINNINGS.iter().any(|beginning| line.starts_with(beginning.as_bytes()));
        let last = bytes[..complete(&bytes)].rsplit(|byte| *byte == b'\n').find(is_begin).unwrap_or_default();
        match serde_json::from_slice(last) {
            Ok(Line::Run(Header { model, options, .. }) | Line::Resumed { model, options, .. }) => Ok((model, options)),
            _ => bail!("`{}` does not state who wrote it", path.display()),
        }
    }

    /// Removes a run; `false` if there is none.
    ///
    /// # Errors
    ///
    /// A process writes it, or the file cannot be removed.
    pub fn remove(&self, id: &str) -> anyhow::Result<bool> {
        let path = self.path(id);
        if !path.is_file() {
            return Ok(false);
        }
        let lock = match file::lock(&path) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(Advice::new(format!("run `{id}` is open in another process"), "end it first").into());
            }
            lock => lock.with_context(|| format!("cannot lock the run `{}`", path.display()))?,
        };
        // First, so that no sessions are left without their run.
        let programs = self.programs(id);
        match fs::remove_dir_all(programs.path()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| {
                    format!("cannot remove the sessions of programs in `{}`", programs.path().display())
                });
            }
            _ => {}
        }
        fs::remove_file(&path).with_context(|| format!("cannot remove the run `{}`", path.display()))?;
        drop(lock);
        // Without its run, a lock file only takes space.
        let _ = fs::remove_file(path.with_added_extension("lock"));
        Ok(true)
    }

    /// Removes the runs that exceed the limits, except those that a process writes.
    fn prune(&self) {
        let now = SystemTime::now();
        let (mut count, mut bytes) = (1, 0_u64);
        for stored in self.files().unwrap_or_default() {
            count += 1;
            bytes += stored.bytes;
            let is_old = now.duration_since(stored.modified).is_ok_and(|age| age > MAX_AGE);
            if is_old || count > MAX_RUNS || bytes > MAX_BYTES {
                // A run that stays only takes space.
                let _ = self.remove(&stored.id);
            }
        }
    }

    /// Path of a run's file.
    pub fn path(&self, id: &str) -> PathBuf {
        self.folder.join(id).with_added_extension(EXTENSION)
    }
}

fn unknown(id: &str) -> anyhow::Error {
    let message = format!("no run `{id}`: it was removed, was replaced by newer runs, or never existed");
    Advice::new(message, LIST_HINT).into()
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn store() -> (tempfile::TempDir, RunStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::new(folder.path().join("runs"));
        (folder, store)
    }

    /// Creates a run of this size that was changed before this time.
    fn add(store: &RunStore, bytes: u64, age: Duration) -> String {
        let (file, header) = store.create(RunStore::new_id().unwrap(), "run", "m", None).unwrap();
        let handle = File::options().write(true).open(file.path()).unwrap();
        handle.set_len(bytes).unwrap();
        handle.set_modified(SystemTime::now() - age).unwrap();
        header.id
    }

    fn left(store: &RunStore) -> Vec<String> {
        store.files().unwrap().into_iter().map(|stored| stored.id).collect()
    }

    #[test]
    fn the_oldest_runs_make_room() {
        let (_folder, store) = store();
        let ids: Vec<String> = (0..MAX_RUNS as u64).map(|age| add(&store, 1, Duration::from_secs(age * 60))).collect();
        assert_eq!(left(&store).len(), MAX_RUNS);
        let newest = add(&store, 1, Duration::ZERO);
        let left = left(&store);
        assert_eq!(left.len(), MAX_RUNS);
        assert!(left.contains(&newest) && left.contains(&ids[0]) && !left.contains(&ids[MAX_RUNS - 1]));
    }

    #[test]
    fn old_runs_and_too_many_bytes_are_removed() {
        let (_folder, store) = store();
        let old = add(&store, 1, MAX_AGE + Duration::from_secs(60));
        let young = add(&store, 1, MAX_AGE - Duration::from_secs(60));
        assert!(!left(&store).contains(&old) && left(&store).contains(&young));
        let large = add(&store, MAX_BYTES - 1, Duration::from_secs(60));
        let small = add(&store, 1, Duration::ZERO);
        add(&store, 1, Duration::ZERO);
        assert!(left(&store).contains(&small) && left(&store).contains(&large) && !left(&store).contains(&young));
    }

    #[test]
    fn processes_that_look_at_the_same_time_do_not_take_each_other_for_the_writer() {
        let (_folder, store) = store();
        let id = add(&store, 1, Duration::ZERO);
        // Another one that looks.
        let lock = File::open(store.path(&id).with_added_extension("lock")).unwrap();
        lock.lock_shared().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..500).for_each(|_| assert!(!store.is_running(&id))));
            }
        });
        assert!(!store.is_running("7k3md-x0q9a"));
        assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 2, "looking creates no file");
    }

    #[test]
    fn a_run_that_is_written_is_neither_removed_nor_opened_again() {
        let (_folder, store) = store();
        let (file, header) = store.create(RunStore::new_id().unwrap(), "run", "m", None).unwrap();
        assert!(store.is_running(&header.id));
        assert!(store.remove(&header.id).unwrap_err().to_string().contains("another process"));
        assert!(store.open(&header.id).unwrap_err().to_string().contains("another process"));
        drop(file);
        assert!(store.remove(&header.id).unwrap() && !store.remove(&header.id).unwrap());
        assert!(store.open(&header.id).unwrap_err().to_string().contains("no run"));
        assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 0, "no lock file stays");
    }
}
