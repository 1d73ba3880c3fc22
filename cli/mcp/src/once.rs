//! Calls with a key of their client, which have their effect once: a repeated request with the key gets the first result. A file for
//! each key, locked while its call runs, is shared by all servers of a folder and outlives them.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib::owner_only::{FileLock, OwnerOnlyFile, SharedAccess};
use toolcrib::source::digest;

/// Maximum size of a kept result in bytes.
const MAX_RESULT: usize = 1 << 20;
/// Maximum size of a file: a result with the facts of its call.
const MAX_FILE: u64 = 2 << 20;
/// Time that a result is kept.
const KEPT: Duration = Duration::from_hours(24);
/// Maximum number of keys in a folder.
const MAX_KEYS: usize = 20_000;
/// Maximum size of all files of a folder in bytes.
const MAX_BYTES: u64 = 1 << 30;
/// Number of new keys after which those that are too old are removed.
const SWEEP: u64 = 256;
/// Time to wait for another reader of the same file.
const MAX_READ_WAIT: Duration = Duration::from_millis(200);
/// Maximum length of a key in bytes.
pub(super) const MAX_KEY_LEN: usize = 256;

/// Keys of calls in a folder.
#[derive(Debug)]
pub(super) struct KeyedCalls {
    folder: PathBuf,
    begun: AtomicU64,
    /// `true` while there are too many keys.
    is_full: AtomicBool,
}

/// Facts of a call with a key, as they are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCall {
    /// Digest of the tool's name and of the arguments.
    request: String,
    begun: Timestamp,
    state: CallState,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallState {
    /// The call was refused before its tool ran.
    Refused,
    /// The tool runs, or the server ended while it ran.
    Begun,
    /// The call has ended with this result; `None` if it was too large to be kept.
    Ended(Option<Value>),
}

/// State of the call with a key, as a request finds it.
#[derive(Debug)]
pub(super) enum KeyState {
    /// The call is new: the value keeps its key.
    New(KeyedCall),
    /// The call has ended with this result.
    Ended(Value),
    /// There is no result, for this reason.
    Without(String),
    /// The call began, and its server ended before the call did. The value makes it again.
    Lost(KeyedCall, Timestamp),
}

/// Key of a running call. Dropping it leaves the call as one that began and has no result.
#[derive(Debug)]
pub(super) struct KeyedCall {
    file: OwnerOnlyFile,
    lock: FileLock,
    call: StoredCall,
}

impl KeyedCalls {
    /// Names the folder without opening it.
    pub(super) fn new(folder: PathBuf) -> Arc<Self> {
        Arc::new(Self { folder, begun: AtomicU64::new(0), is_full: AtomicBool::new(false) })
    }

    /// Looks for the call of a client with a key. `request` is the text of the tool and its arguments. This blocks.
    ///
    /// # Errors
    ///
    /// The folder cannot be used, or has too many keys.
    pub(super) fn begin(&self, client: &str, key: &str, request: &str) -> io::Result<KeyState> {
        if self.begun.fetch_add(1, Relaxed).is_multiple_of(SWEEP) || self.is_full.load(Relaxed) {
            let swept = self.sweep(SystemTime::now());
            self.is_full.store(swept.is_err(), Relaxed);
            swept?;
        }
        let name = digest(&[client.as_bytes(), b"\0", key.as_bytes()].concat());
        let name = name.trim_start_matches("sha256:");
        let file = OwnerOnlyFile::new(self.folder.join(format!("{name}.json")), MAX_FILE, SharedAccess::None);
        let lock = match lock(&file) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Ok(KeyState::Without("the call with this key still runs: repeat the request later".to_owned()));
            }
            lock => lock?,
        };
        let request = digest(request.as_bytes());
        let stored = match file.read()? {
            None => None,
            Some(bytes) => Some(serde_json::from_slice::<StoredCall>(&bytes)?),
        };
        let call = StoredCall { request, begun: Timestamp::now(), state: CallState::Begun };
        let other = stored.as_ref().is_some_and(|stored| stored.request != call.request);
        let new = KeyedCall { file, lock, call };
        match stored {
            None | Some(StoredCall { state: CallState::Refused, .. }) => new.store().map(KeyState::New),
            Some(_) if other => Ok(KeyState::Without("the key was used for another call: choose a new one".to_owned())),
            Some(StoredCall { state: CallState::Begun, begun, .. }) => Ok(KeyState::Lost(new, begun)),
            Some(StoredCall { state: CallState::Ended(Some(result)), .. }) => Ok(KeyState::Ended(result)),
            Some(StoredCall { state: CallState::Ended(None), begun, .. }) => Ok(KeyState::Without(format!(
                "the call with this key, of {begun:.0}, has ended; its result was over {} KiB, and was not kept",
                MAX_RESULT >> 10
            ))),
        }
    }

    /// Removes the keys that are too old.
    fn sweep(&self, now: SystemTime) -> io::Result<()> {
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
            let file = OwnerOnlyFile::new(path, MAX_FILE, SharedAccess::None);
            // A call that still runs holds the lock.
            match age.filter(|age| *age > KEPT).and_then(|_| file.lock(Duration::ZERO).ok()) {
                Some(_lock) => {
                    fs::remove_file(file.path())?;
                    let _ = fs::remove_file(file.beside("lock"));
                }
                None => (kept, bytes) = (kept + 1, bytes + facts.len()),
            }
        }
        if kept >= MAX_KEYS || bytes >= MAX_BYTES {
            let mib = (bytes >> 20, MAX_BYTES >> 20);
            let message = format!(
                "{kept} keys with {} MiB are kept for a day, and {MAX_KEYS} keys and {} MiB are the maximum",
                mib.0, mib.1
            );
            return Err(io::Error::other(message));
        }
        Ok(())
    }
}

/// Locks a file that may be removed meanwhile, for its age.
fn lock(file: &OwnerOnlyFile) -> io::Result<FileLock> {
    loop {
        let lock = file.lock(MAX_READ_WAIT)?;
        // A lock of a removed file keeps nobody from another.
        match file.lock(Duration::ZERO) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(lock),
            other => drop(other?),
        }
    }
}

impl KeyedCall {
    /// Notes that the call begins.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(super) fn store(self) -> io::Result<Self> {
        self.write()?;
        Ok(self)
    }

    /// Keeps the result of the call, or notes that it was refused before its tool ran (`None`). This blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be written: the call is then one that began and has no result.
    pub(super) fn end(mut self, result: Option<&Value>) -> io::Result<()> {
        self.call.state = match result {
            None => CallState::Refused,
            Some(result) => {
                let is_small = serde_json::to_vec(result).is_ok_and(|bytes| bytes.len() <= MAX_RESULT);
                CallState::Ended(is_small.then(|| result.clone()))
            }
        };
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        self.file.replace(&self.lock, &serde_json::to_vec(&self.call)?)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn calls() -> (tempfile::TempDir, Arc<KeyedCalls>) {
        let folder = tempfile::tempdir().unwrap();
        let calls = KeyedCalls::new(folder.path().join("calls"));
        (folder, calls)
    }

    fn new(calls: &KeyedCalls, client: &str, request: &str) -> KeyedCall {
        match calls.begin(client, "k", request).unwrap() {
            KeyState::New(call) => call,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_result_is_the_result_of_each_repetition() {
        let (_folder, calls) = calls();
        let call = new(&calls, "ada", "echo");
        assert!(
            matches!(calls.begin("ada", "k", "echo").unwrap(), KeyState::Without(why) if why.contains("still runs"))
        );
        new(&calls, "bob", "echo").end(None).unwrap();
        call.end(Some(&json!({"n": 1}))).unwrap();
        for _ in 0..2 {
            assert!(
                matches!(calls.begin("ada", "k", "echo").unwrap(), KeyState::Ended(result) if result == json!({"n": 1}))
            );
        }
        assert!(
            matches!(calls.begin("ada", "k", "rm").unwrap(), KeyState::Without(why) if why.contains("another call"))
        );
        // A refused call had no effect.
        new(&calls, "bob", "echo").end(Some(&json!("x".repeat(MAX_RESULT)))).unwrap();
        assert!(matches!(calls.begin("bob", "k", "echo").unwrap(), KeyState::Without(why) if why.contains("not kept")));
    }

    #[test]
    fn a_call_whose_server_ended_is_lost_and_can_be_made_again_on_request_alone() {
        let (_folder, calls) = calls();
        drop(new(&calls, "ada", "echo"));
        for _ in 0..2 {
            assert!(matches!(calls.begin("ada", "k", "echo").unwrap(), KeyState::Lost(..)));
        }
        let KeyState::Lost(again, _) = calls.begin("ada", "k", "echo").unwrap() else { panic!("it is lost") };
        again.store().unwrap().end(Some(&json!(2))).unwrap();
        assert!(matches!(calls.begin("ada", "k", "echo").unwrap(), KeyState::Ended(result) if result == 2));
    }

    #[test]
    fn old_keys_are_removed_and_too_many_are_an_error() {
        let (_folder, calls) = calls();
        let running = new(&calls, "ada", "echo");
        new(&calls, "bob", "echo").end(Some(&json!(1))).unwrap();
        calls.sweep(SystemTime::now()).unwrap();
        let files = || fs::read_dir(&calls.folder).unwrap().count();
        assert_eq!(files(), 4);
        calls.sweep(SystemTime::now() + KEPT + Duration::from_secs(60)).unwrap();
        assert_eq!(files(), 2, "that of the running call");
        running.end(Some(&json!(1))).unwrap();
        for number in 0..MAX_KEYS {
            fs::write(calls.folder.join(format!("{number}.json")), "").unwrap();
        }
        calls.begun.store(SWEEP, Relaxed);
        for _ in 0..3 {
            let error = calls.begin("ada", "other", "echo").unwrap_err();
            assert!(error.to_string().contains("20000 keys"), "{error}");
        }
        calls.sweep(SystemTime::now() + KEPT + Duration::from_secs(60)).unwrap();
        assert!(matches!(calls.begin("ada", "other", "echo").unwrap(), KeyState::New(_)));
    }

    #[test]
    fn a_file_that_is_no_record_of_a_call_is_an_error_and_nothing_runs() {
        let (_folder, calls) = calls();
        new(&calls, "ada", "echo").end(Some(&json!(1))).unwrap();
        let files = fs::read_dir(&calls.folder).unwrap().map(|entry| entry.unwrap().path());
        let file = files.into_iter().find(|path| path.extension().unwrap() == "json").unwrap();
        fs::write(file, "{").unwrap();
        calls.begin("ada", "k", "echo").unwrap_err();
    }
}
