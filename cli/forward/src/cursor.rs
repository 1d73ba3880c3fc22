//! Cursors: the last record that a target has acknowledged, in a file beside the log that one process at a time may use. It is
//! written when it is first locked, with nothing sent, and after each batch, so a process that is killed repeats at most one batch.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolcrib::audit::{Chain, Day, LogPlace};
use toolcrib::owner_only::{FileLock, OwnerOnlyFile, SharedAccess};
use toolcrib_base::render::Advice;
use toolcrib_foundation::hex;

/// Version of the format.
const VERSION: u32 = 1;
/// Maximum size of a cursor.
const MAX_BYTES: u64 = 16 << 10;
/// Start and end of a cursor's name.
const NAME: (&str, &str) = ("forward-", ".json");
/// Hexadecimal digits in the name that distinguish targets.
const DIGITS: usize = 12;

/// A locked cursor.
#[derive(Debug)]
pub(crate) struct Cursor {
    file: OwnerOnlyFile,
    lock: FileLock,
    target: String,
}

/// Content of a cursor. The place is absent if nothing was sent yet.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chain: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
}

/// A cursor beside a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredCursor {
    /// File of the cursor.
    pub path: PathBuf,
    /// Target without passwords and keys.
    pub target: String,
    /// Last acknowledged record; `None` if nothing was sent yet.
    pub place: Option<LogPlace>,
}

/// Returns the path of a target's cursor beside a log. `identity` distinguishes targets that are displayed alike.
pub(crate) fn beside(log: &Path, identity: &str) -> PathBuf {
    let digest = hex(&Sha256::digest(identity.as_bytes()));
    log.join(format!("{}{}{}", NAME.0, &digest[..DIGITS], NAME.1))
}

/// Reads the cursors beside a log.
///
/// # Errors
///
/// A cursor cannot be read, or is damaged.
pub fn registered(log: &Path) -> anyhow::Result<Vec<RegisteredCursor>> {
    let mut found = Vec::new();
    for entry in log.read_dir().with_context(|| format!("cannot read `{}`", log.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(NAME.0) && name.ends_with(NAME.1) {
            let content = content(&OwnerOnlyFile::new(&path, MAX_BYTES, SharedAccess::Read))?;
            found.extend(content.map(|(target, place)| RegisteredCursor { path, target, place }));
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

impl Cursor {
    /// Locks a cursor, and creates it if it is missing; `None` if another process forwards the log to this target.
    ///
    /// # Errors
    ///
    /// The file cannot be locked, read or created, or is damaged.
    pub(crate) fn lock(path: &Path, target: &str) -> anyhow::Result<Option<Self>> {
        let file = OwnerOnlyFile::new(path, MAX_BYTES, SharedAccess::Read);
        match file.lock(Duration::ZERO) {
            Ok(lock) => {
                let cursor = Self { file, lock, target: target.to_owned() };
                // `prune` keeps what a target that was set up has not got yet.
                if content(&cursor.file)?.is_none() {
                    cursor.replace(None)?;
                }
                Ok(Some(cursor))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot lock the cursor `{}`", path.display())),
        }
    }

    /// Reads the last acknowledged record; `None` if nothing was sent yet.
    ///
    /// # Errors
    ///
    /// The cursor cannot be read, is damaged, or belongs to another target.
    pub(crate) fn read(&self) -> anyhow::Result<Option<LogPlace>> {
        let Some((target, place)) = content(&self.file)? else { return Ok(None) };
        if target != self.target {
            let message = format!("the cursor `{}` belongs to the target {target}", self.file.path().display());
            return Err(Advice::new(message, "name another file with --cursor").into());
        }
        Ok(place)
    }

    /// Notes that the target has all records up to this one.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(crate) fn write(&self, place: LogPlace) -> anyhow::Result<()> {
        self.replace(Some(place))
    }

    fn replace(&self, place: Option<LogPlace>) -> anyhow::Result<()> {
        let content = Content {
            version: VERSION,
            target: self.target.clone(),
            seq: place.map(|place| place.seq),
            chain: place.map(|place| place.chain.to_string()),
            day: place.map(|place| place.day.to_string()),
            offset: place.map(|place| place.offset),
        };
        let text = serde_json::to_string_pretty(&content)? + "\n";
        let written = self.file.replace(&self.lock, text.as_bytes());
        written.with_context(|| format!("cannot write the cursor `{}`", self.file.path().display()))
    }
}

fn content(file: &OwnerOnlyFile) -> anyhow::Result<Option<(String, Option<LogPlace>)>> {
    let path = file.path().display();
    let Some(bytes) = file.read().with_context(|| format!("cannot read the cursor `{path}`"))? else { return Ok(None) };
    let damaged = |reason: String| {
        let hint = "if it is a cursor, remove it to send the log again from its beginning; otherwise name another file with --cursor";
        Advice::new(format!("the cursor `{path}` is damaged: {reason}"), hint)
    };
    let content: Content = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
    if content.version != VERSION {
        return Err(damaged(format!("`version`: found {}, expected {VERSION}", content.version)).into());
    }
    let (seq, chain, day, offset) = match (content.seq, content.chain, content.day, content.offset) {
        (None, None, None, None) => return Ok(Some((content.target, None))),
        (Some(seq), Some(chain), Some(day), Some(offset)) => (seq, chain, day, offset),
        _ => return Err(damaged("found a part of `seq`, `chain`, `day` and `offset`".to_owned()).into()),
    };
    let chain: Chain = chain.parse().map_err(|error| damaged(format!("`chain`: {error}")))?;
    let day: Day = day.parse().map_err(|error| damaged(format!("`day`: {error}")))?;
    if !(1..=u64::MAX / 2).contains(&seq) {
        return Err(damaged(format!("`seq`: found {seq}")).into());
    }
    Ok(Some((content.target, Some(LogPlace { seq, chain, day, offset }))))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_cursor_is_read_as_written_by_one_process_at_a_time() {
        let log = tempfile::tempdir().unwrap();
        let path = beside(log.path(), "a");
        assert_ne!(path, beside(log.path(), "b"));
        let cursor = Cursor::lock(&path, "a").unwrap().unwrap();
        assert!(Cursor::lock(&path, "a").unwrap().is_none());
        assert_eq!(cursor.read().unwrap(), None);
        let [found] = registered(log.path()).unwrap().try_into().unwrap();
        assert_eq!((found.target.as_str(), found.place), ("a", None), "nothing was sent yet");
        let place = LogPlace {
            seq: 3,
            chain: "ab".repeat(32).parse().unwrap(),
            day: "2026-03-01".parse().unwrap(),
            offset: 99,
        };
        cursor.write(place).unwrap();
        assert_eq!(cursor.read().unwrap(), Some(place));
        drop(cursor);
        let [found] = registered(log.path()).unwrap().try_into().unwrap();
        assert_eq!((found.target.as_str(), found.place), ("a", Some(place)));
        let other = Cursor::lock(&path, "b").unwrap().unwrap();
        assert!(other.read().unwrap_err().to_string().contains("belongs to the target a"));
        let text = fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("\"version\": 1", "\"version\": 2"),
            ("\"seq\": 3", "\"seq\": 0"),
            ("\"seq\": 3,", ""),
            ("\"seq\": 3", "\"seq\": 18446744073709551615"),
            ("abab", "zzab"),
            ("2026-03-01", "2026-02-30"),
            ("{", "{\"more\": 1,"),
            ("}", ""),
        ] {
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let error = other.read().unwrap_err();
            assert!(error.to_string().contains("is damaged"), "{to}: {error}");
            assert!(registered(log.path()).is_err());
        }
        fs::write(&path, vec![b' '; MAX_BYTES as usize + 1]).unwrap();
        assert!(other.read().is_err(), "too long");
    }
}
