//! A JSON list in an owner-only file, read whole and replaced whole by one process at a time. A file with unknown content is
//! an error and stays unchanged.
//!
//! ```json
//! {"approvals": [{"tool": "fs_rm"}]}
//! ```

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::owner_only::{OwnerOnlyFile, SharedAccess};

/// Maximum wait for the lock that another holder has: a change is written to a disk that others may keep busy.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(30);

/// A file with a list. It may be missing, and the list is then empty.
#[derive(Debug, Clone)]
pub struct ListFile<T> {
    file: OwnerOnlyFile,
    /// The one field of the JSON object in the file.
    field: &'static str,
    items: PhantomData<fn() -> T>,
    /// Held during a change: the threads of a process wait for one another here, however many they are, and one of them at a
    /// time waits for the lock. Time of the last wait that failed.
    turn: Arc<Mutex<Option<Instant>>>,
}

impl<T: Clone + PartialEq + Serialize + DeserializeOwned> ListFile<T> {
    /// Names a file of at most `max_len` bytes, without opening it. Other users may read it.
    pub fn new(path: impl Into<PathBuf>, field: &'static str, max_len: u64) -> Self {
        Self {
            file: OwnerOnlyFile::new(path, max_len, SharedAccess::Read),
            field,
            items: PhantomData,
            turn: Arc::default(),
        }
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Reads the list.
    ///
    /// # Errors
    ///
    /// The file exists and cannot be read or parsed, or can be written by other users.
    pub fn read(&self) -> io::Result<Vec<T>> {
        let Some(text) = self.file.read()? else { return Ok(Vec::new()) };
        let mut content: BTreeMap<String, Vec<T>> = serde_json::from_slice(&text)?;
        let items = content.remove(self.field).filter(|_| content.is_empty());
        items.ok_or_else(|| io::Error::other(format!("expected an object with the field `{}` alone", self.field)))
    }

    /// Reads, changes and replaces the file while holding its lock. An unchanged list is not written. Clones take turns.
    ///
    /// # Errors
    ///
    /// As for [`ListFile::read`], and if the file cannot be locked or written, or would become too long.
    pub fn change<R>(&self, change: impl FnOnce(&mut Vec<T>) -> R) -> io::Result<R> {
        let begin = Instant::now();
        let mut failed = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever waited behind a failed wait has waited as long, and does not wait again.
        if failed.is_some_and(|at| at > begin) {
            return Err(io::Error::new(ErrorKind::WouldBlock, "another process holds its lock"));
        }
        let lock = self.file.lock(MAX_LOCK_WAIT).inspect_err(|_| *failed = Some(Instant::now()))?;
        let mut items = self.read()?;
        let before = items.clone();
        let result = change(&mut items);
        if items != before {
            let mut text = serde_json::to_vec_pretty(&BTreeMap::from([(self.field, items)]))?;
            text.push(b'\n');
            self.file.replace(&lock, &text)?;
        }
        Ok(result)
    }
}
