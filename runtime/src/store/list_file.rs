//! A JSON list in an owner-only file, read whole and replaced whole by one process at a time, or the same list as one entry of a
//! store that servers share. A list with unknown content is an error and stays unchanged.
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

use super::owner_only::{FileLock, OwnerOnlyFile, SharedAccess};
use super::shared_entries::{EntryGroup, ExpectedVersion, SharedEntries};

/// Maximum wait for the lock that another holder has: a change is written to a disk that others may keep busy.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(30);

/// Maximum attempts at a change that other servers make too.
const MAX_ATTEMPTS: u32 = 40;
/// Longer wait before each further attempt.
const ATTEMPT_WAIT: Duration = Duration::from_millis(1);
/// Group of the lists that servers share.
const GROUP: &str = "lists";

/// A file with a list. It may be missing, and the list is then empty.
#[derive(Debug, Clone)]
pub struct ListFile<T> {
    place: ListPlace,
    /// The one field of the JSON object in the file.
    field: &'static str,
    items: PhantomData<fn() -> T>,
    /// Held during a change: the threads of a process wait for one another here, however many they are, and one of them at a
    /// time waits for the lock. Time of the last wait that failed.
    turn: Arc<Mutex<Option<Instant>>>,
}

/// Place of a list.
#[derive(Debug, Clone)]
enum ListPlace {
    File(OwnerOnlyFile),
    Shared(SharedList),
}

/// List in a store that servers share.
#[derive(Debug, Clone)]
struct SharedList {
    entries: Arc<dyn SharedEntries>,
    group: EntryGroup,
    /// Name of the list in messages.
    label: PathBuf,
    max_len: usize,
}

impl<T: Clone + PartialEq + Serialize + DeserializeOwned> ListFile<T> {
    /// Names a file of at most `max_len` bytes, without opening it. Other users may read it.
    pub fn new(path: impl Into<PathBuf>, field: &'static str, max_len: u64) -> Self {
        Self::at(ListPlace::File(OwnerOnlyFile::new(path, max_len, SharedAccess::Read)), field)
    }

    /// Names a list of at most `max_len` bytes in a store that servers share, without reading it.
    pub fn shared(entries: Arc<dyn SharedEntries>, field: &'static str, max_len: usize) -> Self {
        let label = PathBuf::from(format!("{field} of the shared store"));
        Self::at(ListPlace::Shared(SharedList { entries, group: EntryGroup::new(GROUP, None), label, max_len }), field)
    }

    fn at(place: ListPlace, field: &'static str) -> Self {
        Self { place, field, items: PhantomData, turn: Arc::default() }
    }

    /// Path, or a name for messages if servers share the list.
    pub fn path(&self) -> &Path {
        match &self.place {
            ListPlace::File(file) => file.path(),
            ListPlace::Shared(list) => &list.label,
        }
    }

    /// Returns `true` for a list in a store that servers share.
    pub fn is_shared(&self) -> bool {
        matches!(self.place, ListPlace::Shared(_))
    }

    /// Reads the list.
    ///
    /// # Errors
    ///
    /// The file exists and cannot be read or parsed, or can be written by other users. The shared store does not answer.
    pub fn read(&self) -> io::Result<Vec<T>> {
        let text = match &self.place {
            ListPlace::File(file) => file.read()?,
            ListPlace::Shared(list) => list.entries.read(&list.group, self.field)?.map(|found| found.value),
        };
        self.parse(text.as_deref())
    }

    /// Reads, changes and replaces the file while holding its lock. An unchanged list is not written. Clones take turns.
    ///
    /// # Errors
    ///
    /// As for [`ListFile::read`], and if the file cannot be locked or written, or would become too long. Another server changed
    /// a shared list at the same time.
    pub fn change<R>(&self, change: impl FnOnce(&mut Vec<T>) -> R) -> io::Result<R> {
        let mut change = Some(change);
        let once = |items: &mut Vec<T>| change.take().map(|change| change(items));
        let changed = self.attempt(1, once)?;
        changed.ok_or_else(|| io::Error::new(ErrorKind::ResourceBusy, "other servers change it at the same time"))
    }

    /// Changes the list as [`ListFile::change`] does. If another server changes a shared list at the same time, the change is made
    /// again, with the list as it is then.
    ///
    /// # Errors
    ///
    /// As for [`ListFile::change`].
    pub fn update<R>(&self, change: impl FnMut(&mut Vec<T>) -> R) -> io::Result<R> {
        self.attempt(MAX_ATTEMPTS, change)
    }

    fn attempt<R>(&self, attempts: u32, change: impl FnMut(&mut Vec<T>) -> R) -> io::Result<R> {
        let begin = Instant::now();
        let mut failed = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever waited behind a failed wait has waited as long, and does not wait again.
        if failed.is_some_and(|at| at > begin) {
            return Err(match self.place {
                ListPlace::File(_) => io::Error::new(ErrorKind::WouldBlock, "another process holds its lock"),
                ListPlace::Shared(_) => io::Error::new(ErrorKind::NotConnected, "the shared store does not answer"),
            });
        }
        match &self.place {
            ListPlace::File(file) => {
                let lock = file.lock(MAX_LOCK_WAIT).inspect_err(|_| *failed = Some(Instant::now()))?;
                self.change_file(file, &lock, change)
            }
            ListPlace::Shared(list) => self.change_shared(list, attempts, change).inspect_err(|error| {
                if error.kind() == ErrorKind::NotConnected {
                    *failed = Some(Instant::now());
                }
            }),
        }
    }

    fn change_file<R>(
        &self,
        file: &OwnerOnlyFile,
        lock: &FileLock,
        mut change: impl FnMut(&mut Vec<T>) -> R,
    ) -> io::Result<R> {
        let mut items = self.read()?;
        let before = items.clone();
        let result = change(&mut items);
        if items != before {
            file.replace(lock, &self.text(items)?)?;
        }
        Ok(result)
    }

    fn change_shared<R>(
        &self,
        list: &SharedList,
        attempts: u32,
        mut change: impl FnMut(&mut Vec<T>) -> R,
    ) -> io::Result<R> {
        for attempt in 0..attempts {
            std::thread::sleep(ATTEMPT_WAIT * attempt);
            let found = list.entries.read(&list.group, self.field)?;
            let mut items = self.parse(found.as_ref().map(|found| found.value.as_slice()))?;
            let before = items.clone();
            let result = change(&mut items);
            if items == before {
                return Ok(result);
            }
            let text = self.text(items)?;
            if text.len() > list.max_len {
                let message = format!("it would have more than the {} bytes allowed", list.max_len);
                return Err(io::Error::new(ErrorKind::FileTooLarge, message));
            }
            let expected = found.map_or(ExpectedVersion::Absent, |found| ExpectedVersion::Present(found.version));
            if list.entries.replace(&list.group, self.field, expected, Some(&text))? {
                return Ok(result);
            }
        }
        Err(io::Error::new(ErrorKind::ResourceBusy, "other servers change it at the same time"))
    }

    fn parse(&self, text: Option<&[u8]>) -> io::Result<Vec<T>> {
        let Some(text) = text else { return Ok(Vec::new()) };
        let mut content: BTreeMap<String, Vec<T>> = serde_json::from_slice(text)?;
        let items = content.remove(self.field).filter(|_| content.is_empty());
        items.ok_or_else(|| io::Error::other(format!("expected an object with the field `{}` alone", self.field)))
    }

    fn text(&self, items: Vec<T>) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(&BTreeMap::from([(self.field, items)]))?;
        text.push(b'\n');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::store::shared_entries::memory::MemoryEntries;

    #[test]
    fn servers_that_change_a_shared_list_at_the_same_time_lose_nothing() {
        let entries = MemoryEntries::shared();
        let list = || ListFile::<u32>::shared(entries.clone(), "numbers", 1000);
        thread::scope(|scope| {
            for server in 0..3 {
                scope.spawn({
                    let list = list();
                    move || (0..20).for_each(|number| list.update(|all| all.push(server * 100 + number)).unwrap())
                });
            }
        });
        let mut all = list().read().unwrap();
        all.sort_unstable();
        assert!(all.len() == 60 && all.is_sorted_by(|one, next| one < next), "{all:?}");
    }

    #[test]
    fn a_shared_list_is_changed_whole_or_not_at_all() {
        let entries = MemoryEntries::shared();
        let list = || ListFile::<u32>::shared(entries.clone(), "numbers", 100);
        assert!(list().read().unwrap().is_empty());
        list().update(|all| all.push(7)).unwrap();
        let full = list().update(|all| all.extend(0..100)).unwrap_err();
        assert!(full.to_string().contains("more than the 100 bytes allowed"), "{full}");
        // Another server changes it between the two steps of this one, each time.
        let other = |all: &mut Vec<u32>| {
            all.push(1);
            list().change(|all| *all = vec![all.first().map_or(0, |first| first + 1)]).unwrap();
        };
        let refused = [list().update(other).unwrap_err(), list().change(other).unwrap_err()];
        assert!(refused.iter().all(|error| error.kind() == ErrorKind::ResourceBusy), "{refused:?}");
        let all = list().read().unwrap();
        assert_eq!(all, [7 + MAX_ATTEMPTS + 1]);
        let unknown = ListFile::<String>::shared(entries.clone(), "numbers", 100);
        assert!(unknown.read().is_err() && unknown.update(Vec::clear).is_err());
        assert_eq!(list().read().unwrap(), all);
        *entries.is_gone.lock().unwrap() = true;
        assert_eq!(list().update(Vec::clear).unwrap_err().kind(), ErrorKind::NotConnected);
        *entries.is_gone.lock().unwrap() = false;
        assert_eq!(list().read().unwrap(), all);
    }
}
