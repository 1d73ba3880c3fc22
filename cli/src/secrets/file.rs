//! `secrets.enc`: secrets in one encrypted file, its owner's alone. It is read whole and written whole or not at all, by one
//! process at a time; one that cannot be opened is an error and stays as it is.
//!
//! Its key lies in an owner-only file beside it, which keeps the values out of backups and searches of the one file, and
//! from nobody who can read both. With a passphrase there is no such file, and whoever has the file has to guess.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use toolcrib::policy::Secret;
use zeroize::Zeroizing;

use crate::render::Advice;

use super::owner;
use super::sealed::{self, Entry, KEY_LEN, Key, KeyKind};

/// The variable that holds the passphrase.
pub(crate) const PASSPHRASE: &str = "TOOLCRIB_SECRETS_PASSPHRASE";
/// The fewest characters of a passphrase.
const MIN_PASSPHRASE_LEN: usize = 8;
/// The largest file of secrets, and the most that are in one.
const MAX_BYTES: u64 = 4 << 20;
const MAX_SECRETS: usize = 1000;
/// The longest wait for another process that writes, and how often its lock is tried.
const MAX_LOCK: Duration = Duration::from_secs(5);
const LOCK_AGAIN: Duration = Duration::from_millis(2);

/// A file of secrets, which need not be there yet.
#[derive(Debug, Clone)]
pub(crate) struct SecretsFile {
    path: PathBuf,
}

/// What can be told of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// There is no file.
    Absent,
    KeyFile,
    Passphrase,
}

impl SecretsFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// By what the file is locked.
    pub(crate) fn lock_kind(&self) -> anyhow::Result<Lock> {
        let Some(bytes) = self.told(self.bytes())? else { return Ok(Lock::Absent) };
        Ok(match self.told(sealed::key_kind(&bytes))? {
            KeyKind::File => Lock::KeyFile,
            KeyKind::Passphrase => Lock::Passphrase,
        })
    }

    /// The value of a secret.
    pub(crate) fn read(&self, name: &str) -> anyhow::Result<Option<Zeroizing<String>>> {
        let (entries, _) = self.told(self.entries())?;
        Ok(entries.iter().find(|entry| entry.name == name).map(|entry| Zeroizing::new(entry.value.clone())))
    }

    /// Names, and when each was set, in the order of the names.
    pub(crate) fn list(&self) -> anyhow::Result<Vec<(String, Timestamp)>> {
        let (entries, _) = self.told(self.entries())?;
        let mut names: Vec<_> = entries.iter().map(|entry| (entry.name.clone(), entry.set)).collect();
        names.sort();
        Ok(names)
    }

    /// Keeps a secret in the place of another of its name.
    pub(crate) fn set(&self, secret: &Secret) -> anyhow::Result<()> {
        let name = secret.name();
        self.told(self.change(|entries| {
            entries.retain(|entry| entry.name != name);
            ensure!(entries.len() < MAX_SECRETS, "it holds {MAX_SECRETS} secrets already; remove some first");
            entries.push(Entry { name: name.to_owned(), value: secret.value().to_owned(), set: Timestamp::now() });
            Ok(true)
        }))
        .map(|_| ())
    }

    /// Removes a secret; tells whether there was one. A file that is not there is not made for that.
    pub(crate) fn remove(&self, name: &str) -> anyhow::Result<bool> {
        if self.lock_kind()? == Lock::Absent {
            return Ok(false);
        }
        self.told(self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| entry.name != name);
            Ok(entries.len() < before)
        }))
    }

    /// Reads, changes and writes where there was a change, while no other process does.
    fn change(&self, change: impl FnOnce(&mut Vec<Entry>) -> anyhow::Result<bool>) -> anyhow::Result<bool> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        owner::make_folder(folder)?;
        // The lock is a file of its own: the secrets themselves are replaced.
        let _lock = locked(&self.beside("lock"))?;
        let (mut entries, known) = self.entries()?;
        if !change(&mut entries)? {
            return Ok(false);
        }
        let key = match (passphrase()?, known) {
            (Some(words), _) => Key::Passphrase(words),
            (None, Some(key)) => key,
            (None, None) => Key::File(self.new_key(folder)?),
        };
        let bytes = sealed::seal(&entries, &key)?;
        ensure!(bytes.len() as u64 <= MAX_BYTES, "more than the {MAX_BYTES} bytes that it may have");
        replace(folder, &self.path, &self.beside("new"), &bytes)?;
        if matches!(key, Key::Passphrase(_)) {
            // The key of before opens nothing any more.
            let _ = fs::remove_file(self.beside("key"));
        }
        Ok(true)
    }

    /// What is in the file, and what opened it.
    fn entries(&self) -> anyhow::Result<(Vec<Entry>, Option<Key>)> {
        let Some(bytes) = self.bytes()? else { return Ok((Vec::new(), None)) };
        let key = match sealed::key_kind(&bytes)? {
            KeyKind::File => Key::File(self.key()?.with_context(|| {
                format!("its key is missing: `{}` has to lie beside it", self.beside("key").display())
            })?),
            KeyKind::Passphrase => Key::Passphrase(match passphrase()? {
                Some(words) => words,
                None => bail!(Advice::new(
                    "it is locked with a passphrase",
                    format!("set {PASSPHRASE} to its passphrase: a tool never sees that variable")
                )),
            }),
        };
        Ok((sealed::open(&bytes, &key)?, Some(key)))
    }

    fn bytes(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let Some(file) = owner::open(&self.path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        ensure!(bytes.len() as u64 <= MAX_BYTES, "more than the {MAX_BYTES} bytes that it may have");
        Ok(Some(bytes))
    }

    /// The key beside the file, where there is one.
    fn key(&self) -> anyhow::Result<Option<Zeroizing<[u8; KEY_LEN]>>> {
        let path = self.beside("key");
        let Some(file) = owner::open(&path).with_context(|| format!("its key `{}`", path.display()))? else {
            return Ok(None);
        };
        let mut bytes = Zeroizing::new(Vec::with_capacity(KEY_LEN + 2));
        file.take(KEY_LEN as u64 + 1).read_to_end(&mut bytes)?;
        let key = <[u8; KEY_LEN]>::try_from(bytes.as_slice()).ok();
        let key = key.with_context(|| format!("its key `{}` is no key: it has another length", path.display()))?;
        Ok(Some(Zeroizing::new(key)))
    }

    /// The key for a new file: one that lies there already, so that an old copy of the file is not lost, or a random one.
    fn new_key(&self, folder: &Path) -> anyhow::Result<Zeroizing<[u8; KEY_LEN]>> {
        if let Some(known) = self.key()? {
            return Ok(known);
        }
        let key = Key::random()?;
        replace(folder, &self.beside("key"), &self.beside("key.new"), &*key)?;
        Ok(key)
    }

    pub(super) fn beside(&self, extension: &str) -> PathBuf {
        self.path.with_added_extension(extension)
    }

    /// A failure with the file it is about, and what to do.
    fn told<T>(&self, result: anyhow::Result<T>) -> anyhow::Result<T> {
        result.map_err(|error| {
            let hint = match error.downcast_ref::<Advice>() {
                Some(advice) => advice.hint().to_owned(),
                None => "nothing was changed: see that it is yours alone and whole, or keep secrets elsewhere with `--secrets-file FILE`".to_owned(),
            };
            Advice::new(format!("secrets `{}`: {error:#}", self.path.display()), hint).into()
        })
    }
}

/// Puts a new file into the place of the old one. Only who holds the lock writes the name between.
fn replace(folder: &Path, path: &Path, between: &Path, bytes: &[u8]) -> io::Result<()> {
    // What a killed process left is half a file at most, and nobody's.
    if let Err(error) = fs::remove_file(between)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error);
    }
    let written = || {
        let mut file = owner::options().write(true).create_new(true).open(between)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(between, path)
    };
    written().inspect_err(|_| {
        // The place that is left is worth more than half a file.
        let _ = fs::remove_file(between);
    })?;
    // A rename outlasts a crash once its folder is written. Where folders cannot be synced, it is as safe as it gets.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Waits for the lock, which goes with the file.
fn locked(path: &Path) -> anyhow::Result<File> {
    let file = owner::options().append(true).create(true).open(path)?;
    let until = Instant::now() + MAX_LOCK;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::Error(error)) => return Err(error.into()),
            Err(fs::TryLockError::WouldBlock) if Instant::now() >= until => bail!("another process holds its lock"),
            Err(fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_AGAIN),
        }
    }
}

/// The passphrase of the surroundings, where there is one.
fn passphrase() -> anyhow::Result<Option<Zeroizing<String>>> {
    let Some(words) = std::env::var_os(PASSPHRASE).filter(|words| !words.is_empty()) else { return Ok(None) };
    let words = Zeroizing::new(words.into_string().ok().with_context(|| format!("{PASSPHRASE} is not UTF-8"))?);
    let characters = words.chars().count();
    ensure!(
        characters >= MIN_PASSPHRASE_LEN,
        "{PASSPHRASE} has {characters} characters, and fewer than {MIN_PASSPHRASE_LEN} are soon guessed"
    );
    Ok(Some(words))
}
