//! Saved sessions of programs in a folder: the variables that the next program of a session sees. Each session is a file that is
//! replaced as a whole, so that a process that is killed leaves the state before its last program.

use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolcrib_foundation::hex;

use super::owner_only::{FileLock, OwnerOnlyFile, SharedAccess};

/// Maximum number of sessions of one conversation.
pub(crate) const MAX_SESSIONS: usize = 8;
/// Maximum bytes of the state of one session.
pub(crate) const MAX_SESSION_BYTES: usize = 8 << 20;
/// Maximum bytes of the first line of a file.
const MAX_HEADER: usize = 4096;
/// Time after the last program of a session after which it is removed.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// Maximum wait for a session that another process uses.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);
/// Extension of the files.
const EXTENSION: &str = "session";

/// Folder with the saved sessions of one conversation.
#[derive(Debug, Clone)]
pub struct ProgramStore {
    path: PathBuf,
}

/// Saved session of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSession {
    /// Name of the session.
    pub name: String,
    /// Language of its programs.
    pub language: String,
    /// Bytes of its state.
    pub bytes: u64,
    /// Time of its last program.
    pub used: SystemTime,
}

/// State of a session after its last program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedProgram {
    pub(crate) language: String,
    /// Digest of the interpreter that saved the state, which no other version can read.
    pub(crate) interpreter: String,
    pub(crate) state: Bytes,
}

/// First line of a file.
#[derive(Serialize, Deserialize)]
struct Header {
    name: String,
    language: String,
    interpreter: String,
    /// Digest of the state.
    digest: String,
}

impl ProgramStore {
    /// Uses a folder, which is created with owner-only rights when the first session is saved.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Path of the folder, which is granted to no tool.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lists the sessions that can be continued, the one with the latest program first. Files that cannot be read as a session are
    /// left out.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub fn list(&self) -> io::Result<Vec<StoredSession>> {
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut sessions = Vec::new();
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != EXTENSION) {
                continue;
            }
            let Ok((header, bytes)) = header(&path) else { continue };
            let Ok(used) = fs::symlink_metadata(&path).and_then(|metadata| metadata.modified()) else { continue };
            if !is_old(used) {
                sessions.push(StoredSession { name: header.name, language: header.language, bytes, used });
            }
        }
        sessions.sort_by_key(|session| std::cmp::Reverse(session.used));
        Ok(sessions)
    }

    /// Ends a session. Returns `false` if there is none with this name.
    ///
    /// # Errors
    ///
    /// A program uses the session, or its file cannot be removed.
    pub fn end(&self, name: &str) -> io::Result<bool> {
        if !self.path.is_dir() {
            return Ok(false);
        }
        self.end_within(name, MAX_LOCK_WAIT)
    }

    fn end_within(&self, name: &str, max_wait: Duration) -> io::Result<bool> {
        let lock = self.file(name).lock(max_wait)?;
        let removed = self.remove(name);
        drop(lock);
        removed
    }

    /// Excludes other processes from a session while the lock lives.
    pub(crate) fn lock(&self, name: &str) -> io::Result<FileLock> {
        self.file(name).lock(MAX_LOCK_WAIT)
    }

    /// Returns the state of a session; `None` if there is none, or its last program is too long ago.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no saved session.
    pub(crate) fn load(&self, name: &str) -> io::Result<Option<SavedProgram>> {
        let path = self.file(name).path().to_owned();
        let used = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata.modified()?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if is_old(used) {
            self.remove(name)?;
            return Ok(None);
        }
        let found = read(&path)?.filter(|(header, _)| header.name == name);
        Ok(found.map(|(Header { language, interpreter, .. }, state)| SavedProgram { language, interpreter, state }))
    }

    /// Saves the state of a session, and ends the sessions that are too many. Returns their names.
    ///
    /// # Errors
    ///
    /// The file cannot be written; the state before remains.
    pub(crate) fn save(&self, lock: &FileLock, name: &str, saved: &SavedProgram) -> io::Result<Vec<String>> {
        let digest = hex(&Sha256::digest(&saved.state));
        let SavedProgram { language, interpreter, state } = saved;
        let (language, interpreter) = (language.clone(), interpreter.clone());
        let mut bytes = serde_json::to_vec(&Header { name: name.to_owned(), language, interpreter, digest })?;
        bytes.push(b'\n');
        bytes.extend_from_slice(state);
        self.file(name).replace(lock, &bytes)?;
        // The session is saved. One that a program uses ends another time.
        let others = self.list().unwrap_or_default().into_iter().map(|session| session.name);
        let ended = others.skip(MAX_SESSIONS).filter(|name| self.end_within(name, Duration::ZERO).unwrap_or(false));
        Ok(ended.collect())
    }

    fn remove(&self, name: &str) -> io::Result<bool> {
        match fs::remove_file(self.file(name).path()) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The name of a file is a digest: names that differ in their case alone are two files everywhere.
    fn file(&self, name: &str) -> OwnerOnlyFile {
        let digest = hex(&Sha256::digest(name));
        let path = self.path.join(&digest[..32]).with_extension(EXTENSION);
        OwnerOnlyFile::new(path, (MAX_SESSION_BYTES + MAX_HEADER) as u64, SharedAccess::None)
    }
}

/// Returns `true` if the last program of a session is too long ago.
fn is_old(used: SystemTime) -> bool {
    used.elapsed().is_ok_and(|age| age > MAX_AGE)
}

/// Reads the first line of a file, and returns it with the bytes of the state.
fn header(path: &Path) -> io::Result<(Header, u64)> {
    let mut start = Vec::new();
    let file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    file.take(MAX_HEADER as u64).read_to_end(&mut start)?;
    let end = start.iter().position(|byte| *byte == b'\n').ok_or(ErrorKind::InvalidData)?;
    Ok((serde_json::from_slice(&start[..end])?, length - end as u64 - 1))
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> io::Result<Option<(Header, Bytes)>> {
    let file = OwnerOnlyFile::new(path, (MAX_SESSION_BYTES + MAX_HEADER) as u64, SharedAccess::None);
    let Some(bytes) = file.read()?.map(Bytes::from) else { return Ok(None) };
    let broken = || io::Error::new(ErrorKind::InvalidData, format!("`{}` is no saved session", path.display()));
    let end = bytes.iter().take(MAX_HEADER).position(|byte| *byte == b'\n').ok_or_else(broken)?;
    let header: Header = serde_json::from_slice(&bytes[..end]).map_err(|_| broken())?;
    let state = bytes.slice(end + 1..);
    match hex(&Sha256::digest(&state)) == header.digest {
        true => Ok(Some((header, state))),
        false => Err(broken()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, ProgramStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = ProgramStore::folder(folder.path().join("programs"));
        (folder, store)
    }

    fn saved(state: &[u8]) -> SavedProgram {
        let state = Bytes::copy_from_slice(state);
        SavedProgram { language: "python".to_owned(), interpreter: "sha256:1".to_owned(), state }
    }

    fn save(store: &ProgramStore, name: &str, state: &[u8]) -> Vec<String> {
        let lock = store.lock(name).unwrap();
        store.save(&lock, name, &saved(state)).unwrap()
    }

    #[test]
    fn a_session_is_saved_listed_and_ended() {
        let (_folder, store) = store();
        assert_eq!((store.load("a").unwrap(), store.list().unwrap().len()), (None, 0));
        save(&store, "a", b"one");
        save(&store, "A", b"two");
        assert_eq!(store.load("a").unwrap(), Some(saved(b"one")));
        assert_eq!(store.load("A").unwrap(), Some(saved(b"two")));
        let listed: Vec<_> = store.list().unwrap().into_iter().map(|session| (session.name, session.bytes)).collect();
        assert!(listed.contains(&("a".to_owned(), 3)) && listed.len() == 2, "{listed:?}");
        assert!(store.end("a").unwrap() && !store.end("a").unwrap());
        assert_eq!(store.load("a").unwrap(), None);
    }

    #[test]
    fn a_changed_or_cut_file_is_refused() {
        let (_folder, store) = store();
        save(&store, "a", b"some state");
        let path = store.file("a").path().to_owned();
        let whole = fs::read(&path).unwrap();
        for at in [0, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            assert!(store.load("a").is_err(), "{at}");
        }
        for len in 0..whole.len() {
            fs::write(&path, &whole[..len]).unwrap();
            assert!(store.load("a").is_err(), "{len}");
        }
        fs::write(&path, "no header").unwrap();
        assert!(store.list().unwrap().is_empty());
    }

    #[test]
    fn the_oldest_session_ends_for_one_too_many() {
        let (_folder, store) = store();
        let hour = Duration::from_hours(1);
        for n in 0..MAX_SESSIONS {
            assert!(save(&store, &n.to_string(), b"x").is_empty());
            let used = SystemTime::now() - hour * (MAX_SESSIONS - n) as u32;
            fs::File::options()
                .write(true)
                .open(store.file(&n.to_string()).path())
                .unwrap()
                .set_modified(used)
                .unwrap();
        }
        let used = store.lock("0").unwrap();
        assert!(save(&store, "more", b"x").is_empty(), "a program uses the oldest");
        drop(used);
        assert_eq!(save(&store, "more", b"x"), ["0"]);
        assert_eq!(store.list().unwrap().len(), MAX_SESSIONS);
    }

    #[test]
    fn a_session_without_programs_for_a_week_is_removed() {
        let (_folder, store) = store();
        save(&store, "a", b"x");
        let used = SystemTime::now() - MAX_AGE - Duration::from_secs(1);
        fs::File::options().write(true).open(store.file("a").path()).unwrap().set_modified(used).unwrap();
        assert_eq!((store.list().unwrap().len(), store.load("a").unwrap()), (0, None));
        assert!(!store.file("a").path().exists());
    }

    #[test]
    fn a_state_beyond_its_limit_is_refused_and_the_one_before_remains() {
        let (_folder, store) = store();
        save(&store, "a", b"x");
        let lock = store.lock("a").unwrap();
        let long = saved(&vec![0; MAX_SESSION_BYTES + MAX_HEADER]);
        assert!(store.save(&lock, "a", &long).is_err());
        assert_eq!(store.load("a").unwrap(), Some(saved(b"x")));
    }
}
