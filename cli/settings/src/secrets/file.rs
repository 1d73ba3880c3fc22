//! `secrets.enc`: secrets in one encrypted owner-only file. It is read whole and replaced whole by one process at a
//! time. A file that cannot be decrypted is an error and stays unchanged.
//!
//! The key is an owner-only file in the same folder. It protects copies of the encrypted file alone, such as backups,
//! and not against anyone who can read both files. With a passphrase there is no key file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use toolcrib::owner_only::{FileLock, OwnerOnlyFile, SharedAccess};
use toolcrib::policy::Secret;
use toolcrib_base::render::Advice;
use zeroize::Zeroizing;

use super::sealed::{self, Entry, KEY_LEN, Key, KeyKind};

/// Environment variable of the passphrase.
pub const PASSPHRASE: &str = "TOOLCRIB_SECRETS_PASSPHRASE";
/// Minimum passphrase length in characters.
const MIN_PASSPHRASE_LEN: usize = 8;
/// Maximum file size, and maximum number of secrets in the file.
const MAX_BYTES: u64 = 4 << 20;
const MAX_SECRETS: usize = 1000;
/// Maximum wait for the lock.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(5);

/// A file of secrets. It may be missing, and is then empty.
#[derive(Debug, Clone)]
pub struct SecretsFile {
    file: OwnerOnlyFile,
    /// Key file, in the same folder.
    key: OwnerOnlyFile,
}

/// Protection of the file, which is known without decrypting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// The file does not exist.
    Missing,
    /// Key in a file beside the secrets.
    KeyFile,
    /// Passphrase of the user.
    Passphrase,
}

impl SecretsFile {
    /// Creates the store in a file, which may be missing.
    pub fn new(path: PathBuf) -> Self {
        let file = OwnerOnlyFile::new(path, MAX_BYTES, SharedAccess::None);
        let key = OwnerOnlyFile::new(file.beside("key"), KEY_LEN as u64, SharedAccess::None);
        Self { file, key }
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// Path of the key file, which may be missing.
    pub(crate) fn key_path(&self) -> &Path {
        self.key.path()
    }

    /// Determines how the file is encrypted.
    pub(crate) fn protection(&self) -> anyhow::Result<Protection> {
        let Some(bytes) = self.explain(self.bytes())? else { return Ok(Protection::Missing) };
        Ok(match self.explain(sealed::key_kind(&bytes))? {
            KeyKind::File => Protection::KeyFile,
            KeyKind::Passphrase => Protection::Passphrase,
        })
    }

    /// Reads the value of a secret.
    pub(crate) fn read(&self, name: &str) -> anyhow::Result<Option<Zeroizing<String>>> {
        let (entries, _) = self.explain(self.entries())?;
        Ok(entries.iter().find(|entry| entry.name == name).map(|entry| Zeroizing::new(entry.value.clone())))
    }

    /// Lists the names with the times at which they were set, sorted by name.
    pub(crate) fn list(&self) -> anyhow::Result<Vec<(String, Timestamp)>> {
        let (entries, _) = self.explain(self.entries())?;
        let mut names: Vec<_> = entries.iter().map(|entry| (entry.name.clone(), entry.set)).collect();
        names.sort();
        Ok(names)
    }

    /// Stores a secret, replacing any with the same name.
    pub(crate) fn set(&self, secret: &Secret) -> anyhow::Result<()> {
        let name = secret.name();
        self.explain(self.change(|entries| {
            entries.retain(|entry| entry.name != name);
            ensure!(entries.len() < MAX_SECRETS, "it already holds {MAX_SECRETS} secrets; remove some first");
            entries.push(Entry { name: name.to_owned(), value: secret.value().to_owned(), set: Timestamp::now() });
            Ok(true)
        }))
        .map(|_| ())
    }

    /// Removes a secret; `false` if there was none. A missing file is not created.
    pub(crate) fn remove(&self, name: &str) -> anyhow::Result<bool> {
        if self.protection()? == Protection::Missing {
            return Ok(false);
        }
        self.explain(self.change(|entries| {
            let before = entries.len();
            entries.retain(|entry| entry.name != name);
            Ok(entries.len() < before)
        }))
    }

    /// Reads and changes the secrets, and replaces the file if there was a change, while holding its lock.
    fn change(&self, change: impl FnOnce(&mut Vec<Entry>) -> anyhow::Result<bool>) -> anyhow::Result<bool> {
        let lock = self.file.lock(MAX_LOCK_WAIT)?;
        let (mut entries, known) = self.entries()?;
        if !change(&mut entries)? {
            return Ok(false);
        }
        let key = match (passphrase()?, known) {
            (Some(words), _) => Key::Passphrase(words),
            (None, Some(key)) => key,
            (None, None) => Key::File(self.new_key(&lock)?),
        };
        self.file.replace(&lock, &sealed::seal(&entries, &key)?)?;
        if matches!(key, Key::Passphrase(_)) {
            // The previous key decrypts nothing any more.
            let _ = fs::remove_file(self.key_path());
        }
        Ok(true)
    }

    /// Decrypts the file, and returns its secrets with the key.
    fn entries(&self) -> anyhow::Result<(Vec<Entry>, Option<Key>)> {
        let Some(bytes) = self.bytes()? else { return Ok((Vec::new(), None)) };
        let key = match sealed::key_kind(&bytes)? {
            KeyKind::File => Key::File(
                self.key()?.with_context(|| format!("its key is missing: expected `{}`", self.key_path().display()))?,
            ),
            KeyKind::Passphrase => Key::Passphrase(match passphrase()? {
                Some(words) => words,
                None => bail!(Advice::new(
                    "it is encrypted with a passphrase",
                    format!("set {PASSPHRASE} to its passphrase; tools never see that variable")
                )),
            }),
        };
        Ok((sealed::open(&bytes, &key)?, Some(key)))
    }

    fn bytes(&self) -> anyhow::Result<Option<Vec<u8>>> {
        Ok(self.file.read()?)
    }

    /// Reads the key file; `None` if it does not exist.
    fn key(&self) -> anyhow::Result<Option<Zeroizing<[u8; KEY_LEN]>>> {
        let path = self.key_path().display();
        let Some(bytes) = self.key.read().with_context(|| format!("its key `{path}`"))? else { return Ok(None) };
        let bytes = Zeroizing::new(bytes);
        let key = <[u8; KEY_LEN]>::try_from(bytes.as_slice()).ok();
        let key = key.with_context(|| format!("its key `{path}` has {} bytes instead of {KEY_LEN}", bytes.len()))?;
        Ok(Some(Zeroizing::new(key)))
    }

    /// Returns the key for a new file: an existing key, so that older copies of the file can still be decrypted, or a
    /// random one.
    fn new_key(&self, lock: &FileLock) -> anyhow::Result<Zeroizing<[u8; KEY_LEN]>> {
        if let Some(known) = self.key()? {
            return Ok(known);
        }
        let key = Key::random()?;
        self.key.replace(lock, &*key)?;
        Ok(key)
    }

    /// Adds the path and a hint to an error.
    fn explain<T>(&self, result: anyhow::Result<T>) -> anyhow::Result<T> {
        result.map_err(|error| {
            let hint = match error.downcast_ref::<Advice>() {
                Some(advice) => advice.hint().to_owned(),
                None => "nothing was changed: check the owner, mode and content of the file, or use another with `--set secrets.file=FILE`".to_owned(),
            };
            Advice::new(format!("secrets `{}`: {error:#}", self.path().display()), hint).into()
        })
    }
}

/// Reads the passphrase from the environment, if it is set.
fn passphrase() -> anyhow::Result<Option<Zeroizing<String>>> {
    let Some(words) = std::env::var_os(PASSPHRASE).filter(|words| !words.is_empty()) else { return Ok(None) };
    let words = Zeroizing::new(words.into_string().ok().with_context(|| format!("{PASSPHRASE} is not UTF-8"))?);
    let characters = words.chars().count();
    if characters < MIN_PASSPHRASE_LEN {
        bail!(Advice::new(
            format!("{PASSPHRASE} has {characters} characters, but at least {MIN_PASSPHRASE_LEN} are required"),
            format!("set {PASSPHRASE} to a longer passphrase, or unset it to use a key file")
        ));
    }
    Ok(Some(words))
}
