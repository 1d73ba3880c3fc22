//! Storage of secrets: the system's keyring if there is one, else an encrypted file. It is used by `toolcrib secret`
//! and by calls that were granted a secret; tools cannot reach it.
//!
//! If both contain a secret, the value in the file is the newer one, because storing a secret in the keyring removes it
//! from the file.

mod file;
mod keyring;
pub mod prompt;
mod sealed;

use std::path::Path;

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde::Serialize;
use toolcrib::policy::{Secret, SecretStore};
use toolcrib_base::render::Advice;
use zeroize::Zeroizing;

use keyring::{Keyring, KeyringError};

pub use file::{PASSPHRASE, Protection, SecretsFile};

/// Environment variables with values that are masked in the audit log.
pub const SECRETS: [&str; 3] = ["OAI_API_KEY", "OPENAI_API_KEY", PASSPHRASE];

/// Choice of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Choice {
    /// The keyring if there is one, else the file; secrets are looked up in both, in the file first
    #[default]
    Auto,
    /// The system's keyring only
    Keyring,
    /// The encrypted file only
    File,
}

/// Store that contains a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Location {
    /// The system's keyring.
    Keyring,
    /// The encrypted file.
    File,
}

/// Entry of a listing; never contains the value.
#[derive(Debug, Serialize)]
pub struct ListedSecret {
    /// Name of the secret.
    pub name: String,
    /// Store that contains it.
    #[serde(rename = "place")]
    pub location: Location,
    /// Time at which it was set; unknown in a keyring.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Timestamp>,
}

/// Secrets of the user, in the keyring and in the encrypted file.
#[derive(Debug, Clone)]
pub struct Vault {
    choice: Choice,
    file: SecretsFile,
    keyring: Keyring,
}

impl Vault {
    /// Creates the store with a choice of places.
    pub fn new(choice: Choice, file: SecretsFile) -> Self {
        Self { choice, file, keyring: keyring::SYSTEM }
    }

    /// Path of the encrypted file, which may be missing.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Path of the encrypted file's key, which may be missing.
    pub fn key_path(&self) -> &Path {
        self.file.key_path()
    }

    /// Determines how the file is encrypted.
    pub fn protection(&self) -> anyhow::Result<Protection> {
        self.file.protection()
    }

    /// Checks that the keyring is selected and answers.
    ///
    /// # Errors
    ///
    /// The reason why it is not used.
    pub fn probe_keyring(&self) -> Result<(), KeyringError> {
        match self.choice {
            Choice::File => Err(not_selected()),
            Choice::Auto | Choice::Keyring => (self.keyring.probe)(),
        }
    }

    /// Stores a secret, replacing any with the same name, and returns its location.
    pub fn set(&self, secret: &Secret) -> anyhow::Result<Location> {
        let stored = match self.choice {
            Choice::File => Err(not_selected()),
            Choice::Auto | Choice::Keyring => (self.keyring.set)(secret),
        };
        match (self.choice, stored) {
            (_, Ok(())) => {
                // Otherwise the older value in the file would take precedence.
                let removed = self.file.remove(secret.name());
                removed.context("the keyring has the new value, but the file may still contain an older one")?;
                Ok(Location::Keyring)
            }
            (Choice::Auto | Choice::File, Err(KeyringError::Absent(_))) => {
                self.file.set(secret)?;
                Ok(Location::File)
            }
            (_, Err(error)) => Err(with_hint(&error)),
        }
    }

    /// Removes secrets from both stores. If one of them is unknown, none is removed.
    ///
    /// # Errors
    ///
    /// Also if the keyring does not answer: secrets in it would be used again once it does.
    pub fn remove(&self, names: &[String]) -> anyhow::Result<()> {
        let in_file = match self.choice {
            Choice::Keyring => Vec::new(),
            Choice::Auto | Choice::File => self.file.list()?.into_iter().map(|(name, _)| name).collect(),
        };
        let (in_keyring, keyring_error) = match (self.choice, self.in_keyring()) {
            (_, Ok(listed)) => (listed, None),
            (Choice::Auto, Err(KeyringError::Absent(_))) if !(self.keyring.is_expected)() => (Vec::new(), None),
            (Choice::Auto, Err(error)) => (Vec::new(), Some(error)),
            (_, Err(error)) => return Err(with_hint(&error)),
        };
        let is_known = |name: &String| in_file.contains(name) || in_keyring.contains(name);
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            let searched = keyring_error.map(|error| format!(" in the file, and {error}")).unwrap_or_default();
            let hint = "`toolcrib secret list` lists all secrets";
            bail!(Advice::new(format!("no secret `{unknown}`{searched}: nothing was removed"), hint));
        }
        for name in names {
            if in_keyring.contains(name) {
                (self.keyring.remove)(name).map_err(|error| with_hint(&error))?;
            }
            if in_file.contains(name) {
                self.file.remove(name)?;
            }
        }
        let Some(error) = keyring_error else { return Ok(()) };
        let message = format!(
            "removed only from `{}`: {error}; the keyring may still contain {}",
            self.path().display(),
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        );
        let hint = "repeat the command when the keyring answers; without a keyring, use `--set secrets.store=file`";
        bail!(Advice::new(message, hint))
    }

    /// Lists the secrets by name.
    pub fn list(&self) -> anyhow::Result<Vec<ListedSecret>> {
        let in_keyring = match (self.choice, self.in_keyring()) {
            (Choice::Auto, Err(KeyringError::Absent(_))) => Vec::new(),
            (_, listed) => listed.map_err(|error| with_hint(&error))?,
        };
        let from_keyring = |name| ListedSecret { name, location: Location::Keyring, set: None };
        let mut secrets: Vec<_> = in_keyring.into_iter().map(from_keyring).collect();
        if self.choice != Choice::Keyring {
            for (name, set) in self.file.list()? {
                secrets.push(ListedSecret { name, location: Location::File, set: Some(set) });
            }
        }
        secrets.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(secrets)
    }

    /// Reads the value of a secret.
    fn read(&self, name: &str) -> anyhow::Result<Zeroizing<String>> {
        let path = self.file.path().display();
        let hint = format!("store it with `toolcrib secret set {name}`");
        if self.choice != Choice::Keyring
            && let Some(value) = self.file.read(name)?
        {
            return Ok(value);
        }
        if self.choice == Choice::File {
            bail!("it is not in `{path}`; {hint}");
        }
        match (self.choice, (self.keyring.read)(name)) {
            (_, Ok(Some(value))) => Ok(value),
            (Choice::Keyring, Ok(None)) => bail!("it is not in the keyring; {hint}"),
            (_, Ok(None)) => bail!("it is neither in `{path}` nor in the keyring; {hint}"),
            (Choice::Auto, Err(KeyringError::Absent(reason))) => {
                bail!("it is not in `{path}` (keyring: {reason}); {hint}")
            }
            (_, Err(error)) => Err(error.into()),
        }
    }

    /// Lists the names in the keyring; empty if it is not selected.
    fn in_keyring(&self) -> Result<Vec<String>, KeyringError> {
        if self.choice == Choice::File { Ok(Vec::new()) } else { (self.keyring.list)() }
    }
}

fn not_selected() -> KeyringError {
    KeyringError::Absent("not selected by `secrets.store`".to_owned())
}

fn with_hint(error: &KeyringError) -> anyhow::Error {
    Advice::new(error.to_string(), "unlock the keyring, or store secrets in a file with `--set secrets.store=file`")
        .into()
}

impl SecretStore for Vault {
    fn value(&self, name: &str) -> Result<Option<Secret>, toolcrib::Error> {
        match self.read(name) {
            Ok(value) => Secret::new(name, value.as_str()).map(Some),
            Err(error) => Err(toolcrib::Error::Secret { name: name.to_owned(), reason: format!("{error:#}") }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    use super::*;

    thread_local! {
        static ENTRIES: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
        static ANSWERS: Cell<bool> = const { Cell::new(true) };
    }

    fn entries<T>(ask: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> Result<T, KeyringError> {
        match ANSWERS.get() {
            true => Ok(ENTRIES.with_borrow_mut(ask)),
            false => Err(KeyringError::Absent("no answer".to_owned())),
        }
    }

    /// A keyring that answers only while `ANSWERS` is set.
    const FAKE: Keyring = Keyring {
        read: |name| entries(|all| all.get(name).cloned().map(Zeroizing::new)),
        set: |secret| entries(|all| all.insert(secret.name().to_owned(), secret.value().to_owned())).map(|_| ()),
        remove: |name| entries(|all| all.remove(name).is_some()),
        list: || entries(|all| all.keys().cloned().collect()),
        probe: || entries(|_| ()),
        is_expected: || true,
    };

    #[test]
    fn a_value_that_was_replaced_or_removed_does_not_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = SecretsFile::new(folder.path().join("own/secrets.enc"));
        let vault = |choice| Vault { choice, file: file.clone(), keyring: FAKE };
        let auto = vault(Choice::Auto);
        let set = |vault: &Vault, value: &str| vault.set(&Secret::new("github", value).unwrap()).unwrap();
        let value = |vault: &Vault| vault.read("github").unwrap().to_string();
        assert_eq!(set(&auto, "the first value"), Location::Keyring);
        ANSWERS.set(false);
        assert_eq!(set(&auto, "the second value"), Location::File);
        ANSWERS.set(true);
        assert_eq!(value(&auto), "the second value");
        for choice in [Choice::Auto, Choice::Keyring] {
            set(&vault(Choice::File), "an older value");
            assert_eq!(set(&vault(choice), "the third value"), Location::Keyring);
            assert_eq!((value(&auto), file.list().unwrap()), ("the third value".to_owned(), vec![]));
        }
        set(&vault(Choice::File), "the fourth value");
        ANSWERS.set(false);
        let names = ["github".to_owned()];
        let message = auto.remove(&names).unwrap_err().to_string();
        assert!(message.contains("removed only from") && message.contains("may still contain `github`"), "{message}");
        assert!(file.list().unwrap().is_empty());
        let message = auto.remove(&names).unwrap_err().to_string();
        assert!(
            message.contains("no secret `github` in the file") && message.contains("nothing was removed"),
            "{message}"
        );
        ANSWERS.set(true);
        auto.remove(&names).unwrap();
        assert!(auto.list().unwrap().is_empty() && auto.read("github").is_err());
    }
}
