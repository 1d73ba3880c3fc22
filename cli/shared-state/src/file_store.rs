//! State of one server, or several that share a folder: entries in files that are locked while they are held, and counters in
//! this process. A lock ends with its process.

use std::fs;
use std::future::ready;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use toolcrib::owner_only::{FileLock, OwnerOnlyFile, SharedAccess};

use crate::entry::{HeldState, StateClaim, StateKind, StateName, UnheldState};
use crate::error::StoreError;
use crate::quotas::{AdmittedCall, MemoryQuotas, QuotaExceeded, QuotaLimits, QuotaUse};
use crate::used_list::UsedList;
use crate::{StateStore, StoreFuture};

/// Number of claims after which entries that are too old are removed.
const SWEEP: u64 = 256;
/// Time to wait for another reader of the same file.
const MAX_READ_WAIT: Duration = Duration::from_millis(200);
/// Maximum wait for the lock of a key that servers share.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);

/// Store in files.
#[derive(Debug)]
pub struct FileStore {
    /// Files of claims; `None` if no folder is known.
    files: Option<Arc<EntryFiles>>,
    /// Folder of the states that several servers share.
    states: Option<PathBuf>,
    used: Option<UsedList>,
    quotas: Arc<MemoryQuotas>,
}

/// Files of claimed entries in a folder.
#[derive(Debug)]
struct EntryFiles {
    folder: PathBuf,
    claimed: AtomicU64,
    /// `true` while there are too many entries.
    is_full: AtomicBool,
}

/// File of an entry with its lock.
#[derive(Debug)]
struct EntryFile {
    file: OwnerOnlyFile,
    lock: FileLock,
}

impl FileStore {
    /// Names the folder for claimed entries, and the folder for states that several servers share, without opening them.
    pub fn new(claims: Option<PathBuf>, states: Option<&Path>) -> Self {
        Self {
            files: claims.map(EntryFiles::new).map(Arc::new),
            used: states.map(|folder| UsedList::new(&folder.join("states.json"))),
            states: states.map(Path::to_path_buf),
            quotas: Arc::default(),
        }
    }
}

impl StateStore for FileStore {
    fn insert(&self, entry: StateName, value: Vec<u8>) -> StoreFuture<'_, Option<Vec<u8>>> {
        let (used, states) = (self.used.clone(), self.states.clone());
        if let Err(error) = entry.check(&value) {
            return ready(Err(error)).boxed();
        }
        blocking(move || match (entry.kind, used, states) {
            (StateKind::UsedState, Some(used), _) => {
                used.add(entry.kind, &entry.key).map(|is_new| (!is_new).then(Vec::new))
            }
            (StateKind::SealKey, _, Some(folder)) => seal_key(&folder, &value),
            _ => Err(StoreError::Unusable(format!("no folder is shared for entries `{}`", entry.kind.as_str()))),
        })
    }

    fn claim(&self, entry: StateName, value: Vec<u8>) -> StoreFuture<'_, StateClaim> {
        let files = self.files.clone();
        blocking(move || {
            entry.check(&value)?;
            let files = files.ok_or_else(|| StoreError::Unusable("no folder is known for claims".to_owned()))?;
            files.claim(&entry, &value)
        })
    }

    fn admit<'a>(
        &'a self,
        owner: &'a Arc<str>,
        limits: &'a QuotaLimits,
        is_continued: bool,
    ) -> StoreFuture<'a, Result<AdmittedCall, QuotaExceeded>> {
        ready(Ok(self.quotas.admit(owner, limits, is_continued, SystemTime::now()))).boxed()
    }

    fn charge(&self, owner: &Arc<str>, limits: &QuotaLimits, used: QuotaUse) {
        self.quotas.charge(owner, limits, used, SystemTime::now());
    }
}

impl EntryFiles {
    fn new(folder: PathBuf) -> Self {
        Self { folder, claimed: AtomicU64::new(0), is_full: AtomicBool::new(false) }
    }

    fn claim(&self, entry: &StateName, value: &[u8]) -> Result<StateClaim, StoreError> {
        if self.claimed.fetch_add(1, Relaxed).is_multiple_of(SWEEP) || self.is_full.load(Relaxed) {
            let swept = self.sweep(entry.kind, SystemTime::now());
            self.is_full.store(swept.is_err(), Relaxed);
            swept?;
        }
        let path = self.folder.join(entry.file_name());
        let file = OwnerOnlyFile::new(path, entry.kind.max_value() as u64, SharedAccess::None);
        let lock = match lock(&file) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(StateClaim::Held),
            lock => lock?,
        };
        let found = file.read()?;
        let entry = Box::new(EntryFile { file, lock });
        match found {
            None => {
                entry.write(value)?;
                Ok(StateClaim::New(entry))
            }
            Some(found) => Ok(StateClaim::Existing(found, entry)),
        }
    }

    /// Removes the entries that are too old.
    fn sweep(&self, kind: StateKind, now: SystemTime) -> Result<(), StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        let (mut kept, mut bytes) = (0, 0);
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let facts = entry.metadata()?;
            let age = facts.modified().ok().and_then(|changed| now.duration_since(changed).ok());
            let file = OwnerOnlyFile::new(path, kind.max_value() as u64, SharedAccess::None);
            // An entry that is held is locked.
            match age.filter(|age| *age > kind.lifetime()).and_then(|_| file.lock(Duration::ZERO).ok()) {
                Some(_lock) => {
                    fs::remove_file(file.path())?;
                    let _ = fs::remove_file(file.beside("lock"));
                }
                None => (kept, bytes) = (kept + 1, bytes + facts.len()),
            }
        }
        let (max_entries, max_bytes) = kind.max_in_files();
        if kept >= max_entries || bytes >= max_bytes {
            let mib = (bytes >> 20, max_bytes >> 20);
            let message = format!(
                "{kept} keys with {} MiB are kept for a day, and {max_entries} keys and {} MiB are the maximum",
                mib.0, mib.1
            );
            return Err(StoreError::Full(message));
        }
        Ok(())
    }
}

/// Locks a file that may be removed meanwhile, for its age.
fn lock(file: &OwnerOnlyFile) -> std::io::Result<FileLock> {
    loop {
        let lock = file.lock(MAX_READ_WAIT)?;
        // A lock of a removed file keeps nobody from another.
        match file.lock(Duration::ZERO) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(lock),
            other => drop(other?),
        }
    }
}

/// Returns the key of a folder, or creates it with this value (`None`).
fn seal_key(folder: &Path, value: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    let max_len = StateKind::SealKey.max_value() as u64;
    let file = OwnerOnlyFile::new(folder.join("states.key"), max_len, SharedAccess::None);
    let key = || {
        let lock = file.lock(MAX_LOCK_WAIT)?;
        let key = file.read()?;
        if key.is_none() {
            file.replace(&lock, value)?;
        }
        std::io::Result::Ok(key)
    };
    key().map_err(|error| StoreError::Unusable(format!("cannot use the key `{}`: {error}", file.path().display())))
}

impl EntryFile {
    fn write(&self, value: &[u8]) -> Result<(), StoreError> {
        Ok(self.file.replace(&self.lock, value)?)
    }
}

impl HeldState for EntryFile {
    fn finish(self: Box<Self>, value: Vec<u8>) -> BoxFuture<'static, Result<(), StoreError>> {
        blocking(move || self.write(&value))
    }
}

impl UnheldState for EntryFile {
    fn hold(self: Box<Self>, value: Vec<u8>) -> BoxFuture<'static, Result<Option<Box<dyn HeldState>>, StoreError>> {
        blocking(move || {
            self.write(&value)?;
            Ok(Some(self as Box<dyn HeldState>))
        })
    }
}

/// Runs an operation that waits for files.
fn blocking<T: Send + 'static>(
    operation: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> BoxFuture<'static, Result<T, StoreError>> {
    let done = tokio::task::spawn_blocking(operation);
    async move { done.await.map_err(|error| StoreError::Unusable(error.to_string()))? }.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Duration = Duration::from_hours(24);

    fn files() -> (tempfile::TempDir, EntryFiles) {
        let folder = tempfile::tempdir().unwrap();
        let files = EntryFiles::new(folder.path().join("calls"));
        (folder, files)
    }

    fn new(files: &EntryFiles, owner: &str) -> Box<dyn HeldState> {
        match files.claim(&StateName::new(StateKind::Call, owner, "k"), b"begun").unwrap() {
            StateClaim::New(held) => held,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn old_entries_are_removed_and_too_many_are_an_error() {
        let (_folder, files) = files();
        let running = new(&files, "ada");
        drop(new(&files, "bob"));
        files.sweep(StateKind::Call, SystemTime::now()).unwrap();
        let number = || fs::read_dir(&files.folder).unwrap().count();
        assert_eq!(number(), 4);
        files.sweep(StateKind::Call, SystemTime::now() + KEPT + Duration::from_secs(60)).unwrap();
        assert_eq!(number(), 2, "the files of the entry that is held");
        drop(running);
        for number in 0..StateKind::Call.max_in_files().0 {
            fs::write(files.folder.join(format!("{number}.json")), "").unwrap();
        }
        files.claimed.store(SWEEP, Relaxed);
        let other = StateName::new(StateKind::Call, "ada", "other");
        for _ in 0..3 {
            let error = files.claim(&other, b"").unwrap_err();
            assert!(matches!(&error, StoreError::Full(text) if text.contains("20000 keys")), "{error}");
        }
        files.sweep(StateKind::Call, SystemTime::now() + KEPT + Duration::from_secs(60)).unwrap();
        assert!(matches!(files.claim(&other, b"").unwrap(), StateClaim::New(_)));
    }

    #[test]
    fn a_key_of_another_length_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("states");
        assert_eq!(seal_key(&folder, &[1; 32]), Ok(None));
        assert_eq!(seal_key(&folder, &[2; 32]), Ok(Some(vec![1; 32])));
        fs::write(folder.join("states.key"), [7; 33]).unwrap();
        let error = seal_key(&folder, &[2; 32]).unwrap_err();
        assert!(error.to_string().contains("states.key"), "{error}");
        assert_eq!(fs::read(folder.join("states.key")).unwrap(), [7; 33]);
    }
}
