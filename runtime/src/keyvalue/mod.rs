//! What a tool keeps between its calls: values under keys, within bounds and for itself alone. A store lies in memory and
//! ends with whoever holds it, or in a folder of the operator's, where it lasts and several processes share it. Nothing
//! here knows a guest, or what a value means.

mod folder;
mod memory;
#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use folder::Folder;
use memory::Values;

/// The bounds of one store.
const MAX_KEYS: usize = 1000;
const MAX_BYTES: usize = 16 << 20;
const MAX_KEY_LEN: usize = 1024;
const MAX_VALUE_LEN: usize = 1 << 20;
/// How many keys are listed at once.
const PAGE: usize = 100;

/// A folder in which tools keep values that outlive a run, made with owner-only rights when the first is kept.
#[derive(Debug, Clone)]
pub struct KeyValue {
    path: PathBuf,
}

impl KeyValue {
    /// Stores in a folder.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder, which no tool may reach.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The store of whoever these words name, in their order.
    pub(crate) fn store(&self, owner: &[&str]) -> Store {
        let mut name = Sha256::new();
        for word in owner {
            name.update((word.len() as u64).to_le_bytes());
            name.update(word);
        }
        Store(Place::Folder(Arc::new(Folder::new(&self.path, &hex(&name.finalize())))))
    }
}

/// What one tool keeps. Clones share it.
#[derive(Clone)]
pub(crate) struct Store(Place);

#[derive(Clone)]
enum Place {
    Memory(Arc<Mutex<Values>>),
    Folder(Arc<Folder>),
}

impl Default for Store {
    /// An empty one in memory.
    fn default() -> Self {
        Self(Place::Memory(Arc::default()))
    }
}

/// The values of a store, while nobody else changes them.
trait Entries {
    fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>>;
    fn put(&mut self, key: &str, value: &[u8]) -> io::Result<()>;
    fn remove(&mut self, key: &str) -> io::Result<()>;
    /// All keys, in any order.
    fn keys(&self) -> io::Result<Vec<String>>;
    /// How many bytes a key and its value have.
    fn size_of(&self, key: &str) -> io::Result<Option<usize>>;
    /// How many keys there are, and the bytes of all of them with their values.
    fn size(&self) -> io::Result<(usize, usize)>;
}

/// What a value was when it was looked at: its digest, where there was one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark(Option<[u8; 32]>);

impl Mark {
    pub(crate) fn of(value: Option<&[u8]>) -> Self {
        Self(value.map(|value| Sha256::digest(value).into()))
    }
}

/// Every error is a sentence for the guest and names no path of the host's.
impl Store {
    /// Whether what it does waits for nothing.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.0, Place::Memory(_))
    }

    /// The value under a key.
    pub(crate) fn get(&self, key: &str) -> Result<Option<Vec<u8>>, String> {
        self.hold(|entries| found(entries, key))
    }

    /// The values under several keys, in their order.
    pub(crate) fn get_many(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, String> {
        refuse_many(keys.len())?;
        self.hold(|entries| {
            let mut left = MAX_BYTES;
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                let value = found(entries, key)?;
                left = left
                    .checked_sub(value.as_ref().map_or(0, Vec::len))
                    .ok_or_else(|| format!("the values have more than the {MAX_BYTES} bytes that are given at once"))?;
                values.push(value);
            }
            Ok(values)
        })
    }

    /// Whether there is something under a key.
    pub(crate) fn exists(&self, key: &str) -> Result<bool, String> {
        self.hold(|entries| entries.size_of(key).map(|size| size.is_some()).map_err(told))
    }

    /// Keeps one value or several, those before the first that exceeds a bound.
    pub(crate) fn set(&self, pairs: &[(String, Vec<u8>)]) -> Result<(), String> {
        refuse_many(pairs.len())?;
        self.hold(|entries| put(entries, pairs.iter().map(|(key, value)| (key.as_str(), value.as_slice()))))
    }

    /// Removes what is there of these keys.
    pub(crate) fn delete(&self, keys: &[String]) -> Result<(), String> {
        refuse_many(keys.len())?;
        self.hold(|entries| keys.iter().try_for_each(|key| entries.remove(key).map_err(told)))
    }

    /// The next keys in their order, and whether there are more: those behind `after`, without the first `skip` of them.
    pub(crate) fn keys(&self, after: Option<&str>, skip: usize) -> Result<(Vec<String>, bool), String> {
        let mut keys = self.hold(|entries| entries.keys().map_err(told))?;
        keys.retain(|key| after.is_none_or(|after| key.as_str() > after));
        keys.sort_unstable();
        let mut keys = keys.split_off(skip.min(keys.len()));
        let more = keys.len() > PAGE;
        keys.truncate(PAGE);
        Ok((keys, more))
    }

    /// Adds to a number, which is kept as text; one that is missing is nought.
    pub(crate) fn increment(&self, key: &str, delta: i128, range: RangeInclusive<i128>) -> Result<i128, String> {
        self.hold(|entries| {
            let number = match found(entries, key)? {
                None => 0,
                Some(value) => std::str::from_utf8(&value)
                    .ok()
                    .and_then(|text| text.parse::<i128>().ok())
                    .filter(|number| range.contains(number))
                    .ok_or("the value under the key is not a whole number in the range of this function")?,
            };
            let sum = number.checked_add(delta).filter(|sum| range.contains(sum));
            let sum = sum.ok_or("the sum is outside the range of this function; the value stays as it was")?;
            put(entries, [(key, sum.to_string().as_bytes())])?;
            Ok(sum)
        })
    }

    /// Keeps a value where what is there is still what it was. The inner error is what it is now.
    pub(crate) fn swap(&self, key: &str, seen: &Mark, value: &[u8]) -> Result<Result<(), Mark>, String> {
        self.hold(|entries| {
            let now = Mark::of(found(entries, key)?.as_deref());
            if now != *seen {
                return Ok(Err(now));
            }
            put(entries, [(key, value)]).map(Ok)
        })
    }

    fn hold<T>(&self, act: impl FnOnce(&mut dyn Entries) -> Result<T, String>) -> Result<T, String> {
        match &self.0 {
            Place::Memory(values) => act(&mut *values.lock().unwrap_or_else(PoisonError::into_inner)),
            Place::Folder(folder) => act(&mut folder.hold().map_err(told)?),
        }
    }
}

fn found(entries: &dyn Entries, key: &str) -> Result<Option<Vec<u8>>, String> {
    entries.get(key).map_err(told)
}

/// Keeps values within the bounds. What was there before stays where one exceeds them.
fn put<'a>(entries: &mut dyn Entries, pairs: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<(), String> {
    let (mut keys, mut bytes) = entries.size().map_err(told)?;
    for (key, value) in pairs {
        if key.len() > MAX_KEY_LEN {
            return Err(format!("the key has {} bytes, more than the {MAX_KEY_LEN} allowed", key.len()));
        }
        if value.len() > MAX_VALUE_LEN {
            return Err(format!("the value has {} bytes, more than the {MAX_VALUE_LEN} allowed", value.len()));
        }
        let before = entries.size_of(key).map_err(told)?;
        if before.is_none() && keys >= MAX_KEYS {
            return Err(format!("the store has {keys} keys already, and at most {MAX_KEYS} are allowed"));
        }
        let after = bytes.saturating_sub(before.unwrap_or_default()) + key.len() + value.len();
        if after > MAX_BYTES {
            return Err(format!("the store would have {after} bytes, more than the {MAX_BYTES} allowed"));
        }
        entries.put(key, value).map_err(told)?;
        keys += usize::from(before.is_none());
        bytes = after;
    }
    Ok(())
}

fn refuse_many(count: usize) -> Result<(), String> {
    match count > MAX_KEYS {
        true => Err(format!("{count} keys at once, more than the {MAX_KEYS} allowed")),
        false => Ok(()),
    }
}

/// What a guest is told of a failure: the system's own words could name a path.
fn told(error: io::Error) -> String {
    match error.kind() {
        ErrorKind::InvalidData => "the stored value is damaged; set it again or delete it".to_owned(),
        kind => format!("the store cannot be used now: {kind}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
