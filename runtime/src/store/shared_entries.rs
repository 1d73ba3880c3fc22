//! Entries outside of this machine that several servers share: values with versions, so that no change is lost.

use std::sync::Arc;
use std::{fmt, io};

/// Group of entries with its own limits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryGroup {
    /// Name of the group, which no other group has.
    pub name: String,
    /// Owner whose operations take turns, so that one owner cannot delay the others; `None` for the host itself.
    pub owner: Option<Arc<str>>,
}

impl EntryGroup {
    /// Names a group.
    pub fn new(name: impl Into<String>, owner: Option<Arc<str>>) -> Self {
        Self { name: name.into(), owner }
    }
}

/// Value of an entry with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedValue {
    /// The value.
    pub value: Vec<u8>,
    /// Number that differs after each change.
    pub version: i64,
}

impl SharedValue {
    /// Creates a value with its version.
    pub fn new(value: Vec<u8>, version: i64) -> Self {
        Self { value, version }
    }
}

/// Version that an entry has for a change to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// Any version, or no entry.
    Any,
    /// No entry.
    Absent,
    /// This version.
    Present(i64),
}

/// Store of entries that several servers share. All methods block, and end within a bounded time. A full group is
/// [`io::ErrorKind::QuotaExceeded`].
pub trait SharedEntries: fmt::Debug + Send + Sync {
    /// Returns an entry; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn read(&self, group: &EntryGroup, key: &str) -> io::Result<Option<SharedValue>>;

    /// Replaces an entry's value, or removes the entry without a value. Returns `false` if the entry has another version.
    ///
    /// # Errors
    ///
    /// The group is full, or the store does not answer: the change may have been made.
    fn replace(
        &self,
        group: &EntryGroup,
        key: &str,
        expected: ExpectedVersion,
        value: Option<&[u8]>,
    ) -> io::Result<bool>;

    /// Returns the beginnings of a group's values, each with at most `max_len` bytes.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    fn beginnings(&self, group: &EntryGroup, max_len: usize) -> io::Result<Vec<Vec<u8>>>;
}

/// Entries in the memory of a test.
#[cfg(test)]
pub(crate) mod memory {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::{Arc, EntryGroup, ExpectedVersion, SharedEntries, SharedValue, io};

    /// Maximum entries of a group, and maximum bytes in their values.
    const MAX_ENTRIES: usize = 1000;
    const MAX_BYTES: usize = 16 << 20;

    #[derive(Debug, Default)]
    pub(crate) struct MemoryEntries {
        entries: Mutex<BTreeMap<(String, String), SharedValue>>,
        /// `true` for a store that does not answer.
        pub(crate) is_gone: Mutex<bool>,
    }

    impl MemoryEntries {
        pub(crate) fn shared() -> Arc<Self> {
            Arc::default()
        }

        fn check(&self) -> io::Result<()> {
            match *self.is_gone.lock().unwrap() {
                true => Err(io::ErrorKind::NotConnected.into()),
                false => Ok(()),
            }
        }
    }

    impl SharedEntries for MemoryEntries {
        fn read(&self, group: &EntryGroup, key: &str) -> io::Result<Option<SharedValue>> {
            self.check()?;
            Ok(self.entries.lock().unwrap().get(&(group.name.clone(), key.to_owned())).cloned())
        }

        fn replace(
            &self,
            group: &EntryGroup,
            key: &str,
            expected: ExpectedVersion,
            value: Option<&[u8]>,
        ) -> io::Result<bool> {
            self.check()?;
            let mut entries = self.entries.lock().unwrap();
            let name = (group.name.clone(), key.to_owned());
            let old = entries.remove(&name);
            let is_expected = match expected {
                ExpectedVersion::Any => true,
                ExpectedVersion::Absent => old.is_none(),
                ExpectedVersion::Present(version) => old.as_ref().is_some_and(|old| old.version == version),
            };
            let own = entries.iter().filter(|((of, _), _)| *of == group.name);
            let (number, bytes) = own.fold((0, 0), |(number, bytes), (_, one)| (number + 1, bytes + one.value.len()));
            let is_full = number >= MAX_ENTRIES || value.is_some_and(|value| bytes + value.len() > MAX_BYTES);
            let version = old.as_ref().map_or(1, |old| old.version + 1);
            let new = value.map(|value| SharedValue::new(value.to_vec(), version));
            let is_changed = is_expected && !(is_full && value.is_some());
            let kept = if is_changed { new } else { old };
            kept.map(|kept| entries.insert(name, kept));
            match is_expected && !is_changed {
                true => Err(io::ErrorKind::QuotaExceeded.into()),
                false => Ok(is_changed),
            }
        }

        fn beginnings(&self, group: &EntryGroup, max_len: usize) -> io::Result<Vec<Vec<u8>>> {
            self.check()?;
            let entries = self.entries.lock().unwrap();
            let own = entries.iter().filter(|((of, _), _)| *of == group.name);
            Ok(own.map(|(_, one)| one.value[..one.value.len().min(max_len)].to_vec()).collect())
        }
    }
}
