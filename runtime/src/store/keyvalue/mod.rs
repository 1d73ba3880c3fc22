//! Key-value stores of tools: values that a tool stores between its calls, with limits, separate for each owner. A
//! store is in memory and lives as long as its handles, or in a folder, where it persists and several processes share
//! it, or in a store that several servers share.

mod error;
mod folder;
mod memory;
mod shared;
#[cfg(test)]
mod tests;

use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use toolcrib_foundation::hex;

pub(crate) use error::StoreError;
use folder::Folder;
use memory::Values;
use shared::SharedKeys;

use super::shared_entries::{EntryGroup, SharedEntries};

/// Limits of one store.
pub(crate) const MAX_KEYS: usize = 1000;
const MAX_BYTES: usize = 16 << 20;
pub(crate) const MAX_KEY_LEN: usize = 1024;
const MAX_VALUE_LEN: usize = 1 << 20;
/// Maximum number of keys per listing page.
const PAGE_LEN: usize = 100;

/// Persistent stores of tools: a folder, created with owner-only rights when the first value is set, or entries that several
/// servers share.
#[derive(Debug, Clone)]
pub struct KeyValue(Stores);

#[derive(Debug, Clone)]
enum Stores {
    Folder(PathBuf),
    Shared(Arc<dyn SharedEntries>),
}

impl KeyValue {
    /// Uses a folder for the stores.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self(Stores::Folder(path.into()))
    }

    /// Uses entries that several servers share. Their groups have at most 1,000 entries and 16 MiB.
    pub fn shared(entries: Arc<dyn SharedEntries>) -> Self {
        Self(Stores::Shared(entries))
    }

    /// Path of the folder, which is granted to no tool; `None` for shared entries.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Stores::Folder(path) => Some(path),
            Stores::Shared(_) => None,
        }
    }

    /// Opens a store, identified by a sequence of words. Its operations are the owner's, if the session has one.
    pub(crate) fn store(&self, words: &[&str], owner: Option<&Arc<str>>) -> Store {
        let mut name = Sha256::new();
        for word in words {
            name.update((word.len() as u64).to_le_bytes());
            name.update(word);
        }
        let name = hex(&name.finalize());
        Store(match &self.0 {
            Stores::Folder(path) => Backend::Folder(Arc::new(Folder::new(path, &name))),
            Stores::Shared(entries) => {
                let group = EntryGroup::new(name, owner.cloned());
                Backend::Shared(Arc::new(SharedKeys::new(entries.clone(), group)))
            }
        })
    }
}

/// Store of one owner. Clones share it.
#[derive(Clone)]
pub(crate) struct Store(Backend);

#[derive(Clone)]
enum Backend {
    Memory(Arc<Mutex<Values>>),
    Folder(Arc<Folder>),
    Shared(Arc<SharedKeys>),
}

impl Default for Store {
    /// Creates an empty store in memory.
    fn default() -> Self {
        Self(Backend::Memory(Arc::default()))
    }
}

/// The entries of a locked store.
trait Entries {
    fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>>;
    fn put(&mut self, key: &str, value: &[u8]) -> io::Result<()>;
    fn remove(&mut self, key: &str) -> io::Result<()>;
    /// All keys, in any order.
    fn keys(&self) -> io::Result<Vec<String>>;
    /// Bytes of a key and its value together; `None` if the key does not exist.
    fn size_of(&self, key: &str) -> io::Result<Option<usize>>;
    /// Number of keys, and total bytes of keys and values.
    fn size(&self) -> io::Result<(usize, usize)>;
}

/// Version of a value for compare-and-swap: its digest, or `None` if the key does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version(Option<[u8; 32]>);

impl Version {
    pub(crate) fn of(value: Option<&[u8]>) -> Self {
        Self(value.map(|value| Sha256::digest(value).into()))
    }
}

impl Store {
    /// Returns `true` if its operations do not block.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.0, Backend::Memory(_))
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.with_entries(|entries| Ok(entries.get(key)?))
    }

    /// Returns the values of several keys, in their order.
    pub(crate) fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        check_count(keys.len())?;
        self.with_entries(|entries| {
            let mut left = MAX_BYTES;
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                let value = entries.get(key)?;
                let bytes = value.as_ref().map_or(0, Vec::len);
                left = left.checked_sub(bytes).ok_or(StoreError::RequestedBytes)?;
                values.push(value);
            }
            Ok(values)
        })
    }

    /// Returns `true` if the key exists.
    pub(crate) fn exists(&self, key: &str) -> Result<bool, StoreError> {
        self.with_entries(|entries| Ok(entries.size_of(key)?.is_some()))
    }

    /// Sets values in order, and stops at the first that exceeds a limit.
    pub(crate) fn set(&self, pairs: &[(String, Vec<u8>)]) -> Result<(), StoreError> {
        check_count(pairs.len())?;
        if let Backend::Shared(shared) = &self.0 {
            return pairs.iter().try_for_each(|(key, value)| shared.set(key, value));
        }
        self.with_entries(|entries| put(entries, pairs.iter().map(|(key, value)| (key.as_str(), value.as_slice()))))
    }

    /// Removes the keys that exist.
    pub(crate) fn delete(&self, keys: &[String]) -> Result<(), StoreError> {
        check_count(keys.len())?;
        self.with_entries(|entries| Ok(keys.iter().try_for_each(|key| entries.remove(key))?))
    }

    /// Lists the next keys in their order, and whether more follow: those after `after`, without the first `skip` of
    /// them.
    pub(crate) fn keys(&self, after: Option<&str>, skip: usize) -> Result<(Vec<String>, bool), StoreError> {
        let mut keys = self.with_entries(|entries| Ok(entries.keys()?))?;
        keys.retain(|key| after.is_none_or(|after| key.as_str() > after));
        keys.sort_unstable();
        let mut keys = keys.split_off(skip.min(keys.len()));
        let more = keys.len() > PAGE_LEN;
        keys.truncate(PAGE_LEN);
        Ok((keys, more))
    }

    /// Adds to a number, which is stored as decimal text; a missing key counts as 0.
    pub(crate) fn increment(&self, key: &str, delta: i128, range: RangeInclusive<i128>) -> Result<i128, StoreError> {
        self.change(key, |value| {
            let sum = sum(value, delta, &range)?;
            Ok((Some(sum.to_string().into_bytes()), sum))
        })
    }

    /// Sets a value if the current one still has the expected version. The inner error is the current version.
    pub(crate) fn swap(&self, key: &str, expected: &Version, value: &[u8]) -> Result<Result<(), Version>, StoreError> {
        self.change(key, |found| {
            let current = Version::of(found);
            Ok(if current == *expected { (Some(value.to_vec()), Ok(())) } else { (None, Err(current)) })
        })
    }

    /// Sets the value that a function chooses from the present one, as one step. Without a new value, it stays. The function
    /// may be called more than once.
    fn change<T>(
        &self,
        key: &str,
        choose: impl Fn(Option<&[u8]>) -> Result<(Option<Vec<u8>>, T), StoreError>,
    ) -> Result<T, StoreError> {
        if let Backend::Shared(shared) = &self.0 {
            return shared.change(key, choose);
        }
        self.with_entries(|entries| {
            let (value, result) = choose(entries.get(key)?.as_deref())?;
            if let Some(value) = value {
                put(entries, [(key, value.as_slice())])?;
            }
            Ok(result)
        })
    }

    fn with_entries<T>(&self, act: impl FnOnce(&mut dyn Entries) -> Result<T, StoreError>) -> Result<T, StoreError> {
        match &self.0 {
            Backend::Memory(values) => act(&mut *values.lock().unwrap_or_else(PoisonError::into_inner)),
            Backend::Folder(folder) => act(&mut folder.lock()?),
            Backend::Shared(shared) => act(&mut &**shared),
        }
    }
}

/// Adds to a number in decimal text.
fn sum(value: Option<&[u8]>, delta: i128, range: &RangeInclusive<i128>) -> Result<i128, StoreError> {
    let number = match value {
        None => 0,
        Some(value) => std::str::from_utf8(value)
            .ok()
            .and_then(|text| text.parse::<i128>().ok())
            .filter(|number| range.contains(number))
            .ok_or(StoreError::NotANumber)?,
    };
    number.checked_add(delta).filter(|sum| range.contains(sum)).ok_or(StoreError::Overflow)
}

/// Checks the size of a key and its value.
fn check_size(key: &str, value: &[u8]) -> Result<(), StoreError> {
    if key.len() > MAX_KEY_LEN {
        return Err(StoreError::KeyLength(key.len()));
    }
    if value.len() > MAX_VALUE_LEN {
        return Err(StoreError::ValueLength(value.len()));
    }
    Ok(())
}

/// Sets values within the limits. A value that exceeds one is not set, and the previous value stays.
fn put<'a>(entries: &mut dyn Entries, pairs: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<(), StoreError> {
    let (mut keys, mut bytes) = entries.size()?;
    for (key, value) in pairs {
        check_size(key, value)?;
        let before = entries.size_of(key)?;
        if before.is_none() && keys >= MAX_KEYS {
            return Err(StoreError::KeyCount(keys));
        }
        let after = bytes.saturating_sub(before.unwrap_or_default()) + key.len() + value.len();
        if after > MAX_BYTES {
            return Err(StoreError::StoreSize(after));
        }
        entries.put(key, value)?;
        keys += usize::from(before.is_none());
        bytes = after;
    }
    Ok(())
}

fn check_count(count: usize) -> Result<(), StoreError> {
    if count > MAX_KEYS { Err(StoreError::RequestedKeys(count)) } else { Ok(()) }
}
