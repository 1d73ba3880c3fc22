//! A store in a folder: a file for each key, named by the key's digest, and beside them a lock, which whoever looks or
//! changes anything holds. A file gets its name when it is whole, and begins with the digest of all that follows.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::owner_only;

use super::{Entries, MAX_KEY_LEN, MAX_VALUE_LEN, hex};

const LOCK: &str = "lock";
/// The longest wait for the others.
const MAX_LOCK: Duration = Duration::from_secs(5);
/// What stands before a key and its value: the digest of what follows, and the length of the key.
const DIGEST: usize = 32;
const HEAD: usize = DIGEST + 2;

pub(super) struct Folder {
    /// The folder of all stores, and that of this one in it.
    all: PathBuf,
    own: PathBuf,
}

/// The store while nobody else uses it.
pub(super) struct Held<'a> {
    path: &'a Path,
    _lock: File,
}

impl Folder {
    pub(super) fn new(all: &Path, name: &str) -> Self {
        Self { all: all.to_path_buf(), own: all.join(name) }
    }

    /// Makes the folder where it is missing, and waits until nobody else uses it.
    pub(super) fn hold(&self) -> io::Result<Held<'_>> {
        for folder in [&self.all, &self.own] {
            owner_only::make_folder(folder)?;
            owner_only::refuse_shared(folder)?;
        }
        let lock = owner_only::options().write(true).create(true).truncate(false).open(self.own.join(LOCK))?;
        owner_only::lock(&lock, MAX_LOCK)?;
        Ok(Held { path: &self.own, _lock: lock })
    }
}

impl Held<'_> {
    fn file(&self, key: &str) -> PathBuf {
        self.path.join(name(key))
    }

    /// The names and lengths of the files of keys.
    fn files(&self) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.path)? {
            let entry = entry?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if name.len() == 2 * DIGEST && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                files.push((name, entry.metadata()?.len()));
            }
        }
        Ok(files)
    }

    /// At most so many bytes of the file of a key; nothing where there is none.
    fn read(&self, name: &str, most: usize) -> io::Result<Option<Vec<u8>>> {
        let file = match owner_only::options().read(true).open(self.path.join(name)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if !file.metadata()?.is_file() {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}

impl Entries for Held<'_> {
    fn get(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(mut bytes) = self.read(&name(key), HEAD + MAX_KEY_LEN + MAX_VALUE_LEN + 1)? else { return Ok(None) };
        let whole = bytes.split_at_checked(DIGEST).is_some_and(|(digest, rest)| Sha256::digest(rest)[..] == *digest);
        match key_of(&bytes) {
            Some(found) if whole && found == key.as_bytes() => Ok(Some(bytes.split_off(HEAD + key.len()))),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }

    fn put(&mut self, key: &str, value: &[u8]) -> io::Result<()> {
        let length = u16::try_from(key.len()).map_err(|_| ErrorKind::InvalidInput)?.to_le_bytes();
        let mut digest = Sha256::new();
        let mut file = owner_only::unfinished(self.path)?;
        let parts = [&length[..], key.as_bytes(), value];
        parts.iter().for_each(|part| digest.update(part));
        file.write_all(&digest.finalize())?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.persist(self.file(key)).map(drop).map_err(|failed| failed.error)
    }

    fn remove(&mut self, key: &str) -> io::Result<()> {
        match fs::remove_file(self.file(key)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// A file that is not what its name says has no key to list, and still takes its room.
    fn keys(&self) -> io::Result<Vec<String>> {
        let mut keys = Vec::new();
        for (file, _) in self.files()? {
            let head = self.read(&file, HEAD + MAX_KEY_LEN).ok().flatten().unwrap_or_default();
            let key = key_of(&head).and_then(|key| String::from_utf8(key.to_vec()).ok());
            keys.extend(key.filter(|key| name(key) == file));
        }
        Ok(keys)
    }

    fn size_of(&self, key: &str) -> io::Result<Option<usize>> {
        match fs::symlink_metadata(self.file(key)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            about => about.map(|about| Some(content(about.len()))),
        }
    }

    fn size(&self) -> io::Result<(usize, usize)> {
        let files = self.files()?;
        Ok((files.len(), files.iter().map(|(_, length)| content(*length)).sum()))
    }
}

fn name(key: &str) -> String {
    hex(&Sha256::digest(key))
}

/// The key that the bytes of a file begin with.
fn key_of(bytes: &[u8]) -> Option<&[u8]> {
    let length = bytes.get(DIGEST..HEAD)?;
    bytes.get(HEAD..)?.get(..usize::from(u16::from_le_bytes([length[0], length[1]])))
}

/// How many bytes of a file are its key and its value.
fn content(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX).saturating_sub(HEAD)
}
