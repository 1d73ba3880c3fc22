//! Where secrets are kept: the system's keyring where there is one, else an encrypted file. What is asked here is asked by
//! a person at the command line, or by a call that was granted a secret; a tool has no way here.
//!
//! Where both are used, a value in the file is the newer one: whatever goes into the keyring is removed from the file.

mod file;
mod keyring;
mod owner;
pub(crate) mod prompt;
mod sealed;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde::Serialize;
use toolcrib::policy::{Secret, SecretStore};
use zeroize::Zeroizing;

use crate::render::Advice;

use keyring::{Keyring, Trouble};

pub(crate) use file::{Lock, PASSPHRASE, SecretsFile};

/// Which store is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Choice {
    /// The keyring where there is one, else the file; what is kept is looked for in both, in the file first
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
    keyring: Keyring,
}

impl Vault {
    pub(crate) fn new(choice: Choice, file: SecretsFile) -> Self {
        Self { choice, file, keyring: keyring::SYSTEM }
    }

    /// The encrypted file, whether or not it is there.
    pub(crate) fn file(&self) -> &Path {
        self.file.path()
    }

    /// The key of the encrypted file, whether or not it is there.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.file.beside("key")
    }

    /// By what the file is locked, where it is there.
    pub(crate) fn lock(&self) -> anyhow::Result<Lock> {
        self.file.lock_kind()
    }

    /// Whether the keyring is used, and why not.
    pub(crate) fn keyring(&self) -> Result<(), String> {
        match self.choice {
            Choice::File => Err("it was not chosen".to_owned()),
            Choice::Auto | Choice::Keyring => (self.keyring.probe)().map_err(|trouble| match trouble {
                Trouble::Absent(why) | Trouble::Failed(why) => why,
            }),
        }
    }

    /// Keeps a secret in the place of another of its name, and tells where.
    pub(crate) fn set(&self, secret: &Secret) -> anyhow::Result<Place> {
        let kept = match self.choice {
            Choice::File => Err(Trouble::Absent("it was not chosen".to_owned())),
            Choice::Auto | Choice::Keyring => (self.keyring.set)(secret),
        };
        match (self.choice, kept) {
            (_, Ok(())) => {
                // An older value must not come back from there.
                let removed = self.file.remove(secret.name());
                removed.context("the keyring has the new value, but an older one may be left in the file")?;
                Ok(Place::Keyring)
            }
            (Choice::Auto | Choice::File, Err(Trouble::Absent(_))) => {
                self.file.set(secret)?;
                Ok(Place::File)
            }
            (_, Err(trouble)) => Err(refused(&trouble)),
        }
    }

    /// Removes secrets wherever they are; nothing where one of them is unknown.
    ///
    /// # Errors
    ///
    /// Also where only the file could be asked: what a keyring holds would be used again once it answers.
    pub(crate) fn remove(&self, names: &[String]) -> anyhow::Result<()> {
        let in_file = match self.choice {
            Choice::Keyring => Vec::new(),
            Choice::Auto | Choice::File => self.file.list()?.into_iter().map(|(name, _)| name).collect(),
        };
        let (in_keyring, trouble) = match (self.choice, self.in_keyring()) {
            (_, Ok(listed)) => (listed, None),
            (Choice::Auto, Err(Trouble::Absent(_))) if !(self.keyring.is_expected)() => (Vec::new(), None),
            (Choice::Auto, Err(trouble)) => (Vec::new(), Some(trouble)),
            (_, Err(trouble)) => return Err(refused(&trouble)),
        };
        let is_known = |name: &String| in_file.contains(name) || in_keyring.contains(name);
        if let Some(unknown) = names.iter().find(|name| !is_known(name)) {
            let beside = trouble.map(|trouble| format!(" in the file, and {trouble}")).unwrap_or_default();
            let hint = "`toolcrib secret list` shows what there is";
            bail!(Advice::new(format!("no secret `{unknown}`{beside}: nothing was removed"), hint));
        }
        for name in names {
            if in_keyring.contains(name) {
                (self.keyring.remove)(name).map_err(|trouble| refused(&trouble))?;
            }
            if in_file.contains(name) {
                self.file.remove(name)?;
            }
        }
        let Some(trouble) = trouble else { return Ok(()) };
        let told = format!(
            "removed from `{}` alone: {trouble}; what a keyring holds under {} lives on",
            self.file().display(),
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        );
        let hint = "do it again when the keyring answers; where there is none, say `--secrets-store file`";
        bail!(Advice::new(told, hint))
    }

    /// What is kept, by name.
    pub(crate) fn list(&self) -> anyhow::Result<Vec<Kept>> {
        let in_keyring = match (self.choice, self.in_keyring()) {
            (Choice::Auto, Err(Trouble::Absent(_))) => Vec::new(),
            (_, listed) => listed.map_err(|trouble| refused(&trouble))?,
        };
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
        let path = self.file.path().display();
        let keep = format!("keep it with `toolcrib secret set {name}`");
        if self.choice != Choice::Keyring
            && let Some(value) = self.file.read(name)?
        {
            return Ok(value);
        }
        if self.choice == Choice::File {
            bail!("it is not in `{path}`; {keep}");
        }
        match (self.choice, (self.keyring.read)(name)) {
            (_, Ok(Some(value))) => Ok(value),
            (Choice::Keyring, Ok(None)) => bail!("it is not in the keyring; {keep}"),
            (_, Ok(None)) => bail!("it is neither in `{path}` nor in the keyring; {keep}"),
            (Choice::Auto, Err(Trouble::Absent(why))) => bail!("it is not in `{path}` (of the keyring: {why}); {keep}"),
            (_, Err(trouble)) => bail!("{trouble}"),
        }
    }

    /// What the keyring lists; nothing where it is not used.
    fn in_keyring(&self) -> Result<Vec<String>, Trouble> {
        if self.choice == Choice::File { Ok(Vec::new()) } else { (self.keyring.list)() }
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

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;

    use super::*;

    thread_local! {
        static HELD: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
        static ANSWERS: Cell<bool> = const { Cell::new(true) };
    }

    fn held<T>(ask: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> Result<T, Trouble> {
        match ANSWERS.get() {
            true => Ok(HELD.with_borrow_mut(ask)),
            false => Err(Trouble::Absent("no answer".to_owned())),
        }
    }

    /// A keyring that answers or not.
    const FAKE: Keyring = Keyring {
        read: |name| held(|all| all.get(name).cloned().map(Zeroizing::new)),
        set: |secret| held(|all| all.insert(secret.name().to_owned(), secret.value().to_owned())).map(|_| ()),
        remove: |name| held(|all| all.remove(name).is_some()),
        list: || held(|all| all.keys().cloned().collect()),
        probe: || held(|_| ()),
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
        assert_eq!(set(&auto, "the first value"), Place::Keyring);
        ANSWERS.set(false);
        assert_eq!(set(&auto, "the second value"), Place::File);
        ANSWERS.set(true);
        assert_eq!(value(&auto), "the second value");
        for choice in [Choice::Auto, Choice::Keyring] {
            set(&vault(Choice::File), "an older value");
            assert_eq!(set(&vault(choice), "the third value"), Place::Keyring);
            assert_eq!((value(&auto), file.list().unwrap()), ("the third value".to_owned(), vec![]));
        }
        set(&vault(Choice::File), "the fourth value");
        ANSWERS.set(false);
        let names = ["github".to_owned()];
        let told = auto.remove(&names).unwrap_err().to_string();
        assert!(told.contains("alone") && told.contains("under `github` lives on"), "{told}");
        assert!(file.list().unwrap().is_empty());
        let told = auto.remove(&names).unwrap_err().to_string();
        assert!(told.contains("no secret `github` in the file") && told.contains("nothing was removed"), "{told}");
        ANSWERS.set(true);
        auto.remove(&names).unwrap();
        assert!(auto.list().unwrap().is_empty() && auto.read("github").is_err());
    }
}
