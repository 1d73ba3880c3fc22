//! A store in a folder: one file per key, named by the digest of the key, and a lock file that every access holds. A
//! file gets its name once it is complete, and starts with the digest of the rest.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::store::owner_only::{self, FileLock, SharedAccess, TEMPORARY_PREFIX};

use super::{Entries, MAX_KEY_LEN, MAX_VALUE_LEN, hex};

/// File layout: digest of the rest, key length in two bytes, key, value.
const DIGEST_LEN: usize = 32;
const HEADER_LEN: usize = DIGEST_LEN + 2;

pub(super) struct Folder {
    /// Folder of all stores.
    parent: PathBuf,
    /// Folder of this store in it.
    path: PathBuf,
}

/// The folder while this process holds its lock.
pub(super) struct LockedFolder<'a> {
    path: &'a Path,
    _lock: FileLock,
}

impl Folder {
    pub(super) fn new(parent: &Path, name: &str) -> Self {
        Self { parent: parent.to_path_buf(), path: parent.join(name) }
    }

    /// Creates the folder if it is missing and waits for its lock.
    pub(super) fn lock(&self) -> io::Result<LockedFolder<'_>> {
        owner_only::create_folder(&self.parent)?;
        let lock = owner_only::lock_folder(&self.path, owner_only::MAX_LOCK_WAIT)?;
        Ok(LockedFolder { path: &self.path, _lock: lock })
    }
}

impl LockedFolder<'_> {
    fn file(&self, key: &str) -> PathBuf {
        self.path.join(file_name(key))
    }

    /// Lists the files of keys by name and length.
    fn files(&self) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.path)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if name.len() == 2 * DIGEST_LEN && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                files.push((name, entry.metadata()?.len()));
            }
        }
        Ok(files)
    }

    /// Reads at most `max_len` bytes of a key's file; `None` if it does not exist.
    fn read(&self, name: &str, max_len: usize) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = owner_only::open(&self.path.join(name), SharedAccess::Read)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(max_len as u64).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}

impl Entries for LockedFolder<'_> {
    fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(mut bytes) = self.read(&file_name(key), HEADER_LEN + MAX_KEY_LEN + MAX_VALUE_LEN + 1)? else {
            return Ok(None);
        };
        let is_intact =
            bytes.split_at_checked(DIGEST_LEN).is_some_and(|(digest, rest)| Sha256::digest(rest)[..] == *digest);
        match key_of(&bytes) {
            Some(found) if is_intact && found == key.as_bytes() => Ok(Some(bytes.split_off(HEADER_LEN + key.len()))),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }

    fn put(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        let length = u16::try_from(key.len()).map_err(|_| ErrorKind::InvalidInput)?.to_le_bytes();
        let mut digest = Sha256::new();
        let mut file = owner_only::temporary(self.path, TEMPORARY_PREFIX)?;
        let parts = [&length[..], key.as_bytes(), value];
        parts.iter().for_each(|part| digest.update(part));
        file.write_all(&digest.finalize())?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        owner_only::persist(file, &self.file(key)).map(drop)
    }

    fn remove(&mut self, key: &str) -> io::Result<()> {
        owner_only::remove(&self.file(key)).map(drop)
    }

    /// Lists the keys. A file whose key does not match its name is omitted, but still counts towards the limits.
    fn keys(&self) -> io::Result<Vec<String>> {
        let mut keys = Vec::new();
        for (file, _) in self.files()? {
            let header = self.read(&file, HEADER_LEN + MAX_KEY_LEN).ok().flatten().unwrap_or_default();
            let key = key_of(&header).and_then(|key| String::from_utf8(key.to_vec()).ok());
            keys.extend(key.filter(|key| file_name(key) == file));
        }
        Ok(keys)
    }

    fn size_of(&self, key: &str) -> io::Result<Option<usize>> {
        match fs::symlink_metadata(self.file(key)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            metadata => metadata.map(|metadata| Some(content_len(metadata.len()))),
        }
    }

    fn size(&self) -> io::Result<(usize, usize)> {
        let files = self.files()?;
        Ok((files.len(), files.iter().map(|(_, length)| content_len(*length)).sum()))
    }
}

/// Name of a key's file.
fn file_name(key: &str) -> String {
    hex(&Sha256::digest(key))
}

/// Finds the key in the bytes of a file.
fn key_of(bytes: &[u8]) -> Option<&[u8]> {
    let length = bytes.get(DIGEST_LEN..HEADER_LEN)?;
    bytes.get(HEADER_LEN..)?.get(..usize::from(u16::from_le_bytes([length[0], length[1]])))
}

/// Key and value bytes in a file of this length.
fn content_len(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(HEADER_LEN)
}
