//! A store in entries that several servers share. Each change is one step for all of them, and the store itself keeps the limits.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use crate::store::shared_entries::{EntryGroup, ExpectedVersion, SharedEntries};

use super::{Entries, MAX_KEY_LEN, StoreError, check_size};

/// Maximum attempts at a change of a value that others change too.
const MAX_ATTEMPTS: u32 = 100;
/// Longer wait before each further attempt.
const ATTEMPT_WAIT: Duration = Duration::from_micros(500);
/// Length of a key's length before the key and the value.
const HEADER_LEN: usize = 2;

/// Keys of one store.
pub(super) struct SharedKeys {
    entries: Arc<dyn SharedEntries>,
    group: EntryGroup,
}

impl SharedKeys {
    pub(super) fn new(entries: Arc<dyn SharedEntries>, group: EntryGroup) -> Self {
        Self { entries, group }
    }

    /// Sets a value within the limits.
    pub(super) fn set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        check_size(key, value)?;
        self.replace(key, ExpectedVersion::Any, value).map(drop)
    }

    /// Sets the value that a function chooses from the present one, unless another server changed it meanwhile: then again.
    pub(super) fn change<T>(
        &self,
        key: &str,
        choose: impl Fn(Option<&[u8]>) -> Result<(Option<Vec<u8>>, T), StoreError>,
    ) -> Result<T, StoreError> {
        for attempt in 0..MAX_ATTEMPTS {
            std::thread::sleep(ATTEMPT_WAIT * attempt);
            let found = self.entries.read(&self.group, key)?;
            let expected =
                found.as_ref().map_or(ExpectedVersion::Absent, |found| ExpectedVersion::Present(found.version));
            let present = found.map(|found| decoded(key, found.value)).transpose()?;
            let (value, result) = choose(present.as_deref())?;
            let Some(value) = value else { return Ok(result) };
            check_size(key, &value)?;
            if self.replace(key, expected, &value)? {
                return Ok(result);
            }
        }
        Err(StoreError::Io(ErrorKind::ResourceBusy.into()))
    }

    fn replace(&self, key: &str, expected: ExpectedVersion, value: &[u8]) -> Result<bool, StoreError> {
        let value = encoded(key, value)?;
        self.entries.replace(&self.group, key, expected, Some(&value)).map_err(|error| match error.kind() {
            ErrorKind::QuotaExceeded => StoreError::Full(error),
            _ => error.into(),
        })
    }
}

impl Entries for &SharedKeys {
    fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        self.entries.read(&self.group, key)?.map(|found| decoded(key, found.value)).transpose()
    }

    fn put(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        let value = encoded(key, value)?;
        self.entries.replace(&self.group, key, ExpectedVersion::Any, Some(&value)).map(drop)
    }

    fn remove(&mut self, key: &str) -> io::Result<()> {
        self.entries.replace(&self.group, key, ExpectedVersion::Any, None).map(drop)
    }

    fn keys(&self) -> io::Result<Vec<String>> {
        let beginnings = self.entries.beginnings(&self.group, HEADER_LEN + MAX_KEY_LEN)?;
        let keys = beginnings.iter().filter_map(|beginning| key_of(beginning));
        Ok(keys.filter_map(|key| String::from_utf8(key.to_vec()).ok()).collect())
    }

    fn size_of(&self, key: &str) -> io::Result<Option<usize>> {
        Ok(self.get(key)?.map(|value| key.len() + value.len()))
    }

    fn size(&self) -> io::Result<(usize, usize)> {
        // The store itself keeps the limits.
        Ok((0, 0))
    }
}

/// Returns the key's length, the key and the value.
fn encoded(key: &str, value: &[u8]) -> io::Result<Vec<u8>> {
    let length = u16::try_from(key.len()).map_err(|_| ErrorKind::InvalidInput)?.to_le_bytes();
    Ok([&length[..], key.as_bytes(), value].concat())
}

/// Returns the value in the entry of a key.
fn decoded(key: &str, mut entry: Vec<u8>) -> io::Result<Vec<u8>> {
    match key_of(&entry) == Some(key.as_bytes()) {
        true => Ok(entry.split_off(HEADER_LEN + key.len())),
        false => Err(ErrorKind::InvalidData.into()),
    }
}

/// Finds the key in an entry.
fn key_of(entry: &[u8]) -> Option<&[u8]> {
    let length = entry.get(..HEADER_LEN)?;
    entry.get(HEADER_LEN..)?.get(..usize::from(u16::from_le_bytes([length[0], length[1]])))
}
