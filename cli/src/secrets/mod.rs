//! Where secrets are kept: the system's keyring where there is one, else an encrypted file. What is asked here is asked by
//! a person at the command line, or by a call that was granted a secret; a tool has no way here.

mod file;
mod keyring;
mod owner;
pub(crate) mod prompt;
mod sealed;

use std::path::Path;

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde::Serialize;
use toolcrib::policy::{Secret, SecretStore};
use zeroize::Zeroizing;

use crate::render::Advice;

use keyring::Trouble;

pub(crate) use file::{Lock, PASSPHRASE, SecretsFile};

/// Which store is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Choice {
    /// The keyring where one answers, else the file; what is kept is looked for in both
    #[default]
    Auto,
    /// The system's keyring, and nothing where there is none
    Keyring,
    /// The encrypted file
    File,
}

/// Where a secret is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    Keyring,
    File,
}

/// What is told of a secret: never its value.
#[derive(Debug, Serialize)]
pub(crate) struct Kept {
    pub(crate) name: String,
    pub(crate) place: Place,
    /// When it was set; a keyring does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) set: Option<Timestamp>,
}

/// The secrets of a person.
#[derive(Debug, Clone)]
pub(crate) struct Vault {
    choice: Choice,
    file: SecretsFile,
}

impl Vault {
    pub(crate) fn new(choice: Choice, file: SecretsFile) -> Self {
        Self { choice, file }
    }

    /// The encrypted file, whether or not it is there.
    pub(crate) fn file(&self) -> &Path {
        self.file.path()
    }

    /// By what the file is locked, where it is there.
    pub(crate) fn lock(&self) -> anyhow::Result<Lock> {
        self.file.lock_kind()
    }

    /// Whether the keyring is used, and why not.
    pub(crate) fn keyring(&self) -> Result<(), String> {
        match self.choice {
            Choice::File => Err("it was not chosen".to_owned()),
            Choice::Auto | Choice::Keyring => keyring::probe().map_err(|trouble| match trouble {
                Trouble::Absent(why) | Trouble::Failed(why) => why,
            }),
        }
    }

    /// Keeps a secret in the place of another of its name, and tells where.
    pub(crate) fn set(&self, secret: &Secret) -> anyhow::Result<Place> {
        let kept = match self.choice {
            Choice::File => Err(Trouble::Absent("it was not chosen".to_owned())),
            Choice::Auto | Choice::Keyring => keyring::set(secret),
        };
        match (self.choice, kept) {
            (_, Ok(())) => {
                if self.choice == Choice::Auto {
                    // An older value must not come back where the keyring cannot be reached.
                    let removed = self.file.remove(secret.name());
                    removed.context("the keyring has the new value, but an older one may be left in the file")?;
                }
                Ok(Place::Keyring)
            }
            (Choice::Auto | Choice::File, Err(Trouble::Absent(_))) => {
                self.file.set(secret)?;
                Ok(Place::File)
            }
            (_, Err(trouble)) => Err(refused(&trouble)),
        }
    }

    /// Removes a secret wherever it is; tells whether there was one.
    pub(crate) fn remove(&self, name: &str) -> anyhow::Result<bool> {
        let in_keyring = self.asked_keyring(|| keyring::remove(name))?.unwrap_or_default();
        let in_file = self.choice != Choice::Keyring && self.file.remove(name)?;
        Ok(in_keyring || in_file)
    }

    /// What is kept, by name.
    pub(crate) fn list(&self) -> anyhow::Result<Vec<Kept>> {
        let in_keyring = self.asked_keyring(keyring::list)?.unwrap_or_default();
        let mut kept: Vec<_> =
            in_keyring.into_iter().map(|name| Kept { name, place: Place::Keyring, set: None }).collect();
        if self.choice != Choice::Keyring {
            for (name, set) in self.file.list()? {
                kept.push(Kept { name, place: Place::File, set: Some(set) });
            }
        }
        kept.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(kept)
    }

    /// The value of a secret.
    fn read(&self, name: &str) -> anyhow::Result<Zeroizing<String>> {
        let in_keyring = match self.choice {
            Choice::File => Err(Trouble::Absent("it was not chosen".to_owned())),
            Choice::Auto | Choice::Keyring => keyring::read(name),
        };
        let beside = match (self.choice, in_keyring) {
            (_, Ok(Some(value))) => return Ok(value),
            (Choice::Keyring, Ok(None)) => bail!("it is not in the keyring; keep it with `toolcrib secret set {name}`"),
            (Choice::Auto, Ok(None)) => "it is not in the keyring".to_owned(),
            (Choice::Auto | Choice::File, Err(Trouble::Absent(why))) => format!("of the keyring: {why}"),
            (_, Err(trouble)) => bail!("{trouble}"),
            (Choice::File, Ok(None)) => String::new(),
        };
        let value = self.file.read(name)?;
        let path = self.file.path().display();
        value.ok_or_else(|| {
            anyhow::anyhow!("it is not in `{path}` ({beside}); keep it with `toolcrib secret set {name}`")
        })
    }

    /// What the keyring answers; `None` where the file is enough.
    fn asked_keyring<T>(&self, ask: impl FnOnce() -> Result<T, Trouble>) -> anyhow::Result<Option<T>> {
        if self.choice == Choice::File {
            return Ok(None);
        }
        match ask() {
            Ok(answer) => Ok(Some(answer)),
            Err(Trouble::Absent(_)) if self.choice == Choice::Auto => Ok(None),
            Err(trouble) => Err(refused(&trouble)),
        }
    }
}

fn refused(trouble: &Trouble) -> anyhow::Error {
    Advice::new(trouble.to_string(), "unlock the keyring, or keep secrets in a file with `--secrets-store file`").into()
}

impl SecretStore for Vault {
    fn value(&self, name: &str) -> Result<Option<Secret>, toolcrib::Error> {
        match self.read(name) {
            Ok(value) => Secret::new(name, value.as_str()).map(Some),
            Err(error) => Err(toolcrib::Error::Secret { name: name.to_owned(), reason: format!("{error:#}") }),
        }
    }
}
