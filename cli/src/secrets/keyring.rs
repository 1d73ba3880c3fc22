//! The system's keyring: the Secret Service on Linux, the keychain on macOS, the Credential Manager on Windows. Each
//! question has a thread of its own and a few seconds: behind a keyring are a bus, another program and a person.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use keyring_core::{CredentialStore, Error};
use toolcrib::policy::Secret;
use zeroize::Zeroizing;

/// The service under which secrets are kept.
const SERVICE: &str = "toolcrib";
/// The longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a keyring gave no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is none, or it cannot be reached.
    Absent(String),
    /// It is there, and could not do what was asked.
    Failed(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Absent(why) => write!(f, "there is no keyring here: {why}"),
            Trouble::Failed(why) => write!(f, "the keyring refused: {why}"),
        }
    }
}

/// The value of a secret.
pub(super) fn read(name: &str) -> Result<Option<Zeroizing<String>>, Trouble> {
    let name = name.to_owned();
    ask(move |store| match store.build(SERVICE, &name, None)?.get_password() {
        Ok(value) => Ok(Some(Zeroizing::new(value))),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(error),
    })
}

/// Keeps a secret in the place of another of its name.
pub(super) fn set(secret: &Secret) -> Result<(), Trouble> {
    let (name, value) = (secret.name().to_owned(), Zeroizing::new(secret.value().to_owned()));
    ask(move |store| store.build(SERVICE, &name, None)?.set_password(&value))
}

/// Removes a secret; tells whether there was one.
pub(super) fn remove(name: &str) -> Result<bool, Trouble> {
    let name = name.to_owned();
    ask(move |store| match store.build(SERVICE, &name, None)?.delete_credential() {
        Ok(()) => Ok(true),
        Err(Error::NoEntry) => Ok(false),
        Err(error) => Err(error),
    })
}

/// The names of the secrets, sorted.
pub(super) fn list() -> Result<Vec<String>, Trouble> {
    ask(|store| {
        let found = store.search(&HashMap::from([system::SEARCH]))?;
        let kept = found.iter().filter_map(|entry| entry.get_specifiers());
        let mut names: Vec<String> = kept.filter(|(service, _)| service == SERVICE).map(|(_, name)| name).collect();
        names.sort();
        names.dedup();
        Ok(names)
    })
}

/// Whether there is a keyring that answers.
pub(super) fn probe() -> Result<(), Trouble> {
    ask(|_| Ok(()))
}

/// Asks the keyring on a thread of its own: it may not be asked from an async task, and it may never answer.
fn ask<T: Send + 'static>(
    question: impl FnOnce(&CredentialStore) -> keyring_core::Result<T> + Send + 'static,
) -> Result<T, Trouble> {
    let (answer, answered) = mpsc::channel();
    let asking = move || {
        let store: keyring_core::Result<Arc<CredentialStore>> = system::store();
        let end = match store {
            Err(error) => Err(Trouble::Absent(told(&error))),
            // An error can carry what was found: only its kind is told.
            Ok(store) => question(&*store).map_err(|error| Trouble::Failed(told(&error))),
        };
        // Nobody may be waiting any more.
        let _ = answer.send(end);
    };
    let spawned = thread::Builder::new().name("keyring".to_owned()).spawn(asking);
    spawned.map_err(|error| Trouble::Failed(error.to_string()))?;
    answered.recv_timeout(PATIENCE).unwrap_or_else(|error| {
        Err(Trouble::Absent(match error {
            RecvTimeoutError::Timeout => format!("it did not answer within {} s", PATIENCE.as_secs()),
            RecvTimeoutError::Disconnected => "it broke off".to_owned(),
        }))
    })
}

fn told(error: &Error) -> String {
    match error {
        Error::PlatformFailure(why) | Error::NoStorageAccess(why) => why.to_string(),
        Error::BadEncoding(_) => "what it holds is not UTF-8".to_owned(),
        Error::Ambiguous(found) => format!("it holds {} secrets of this name", found.len()),
        Error::TooLong(what, most) => format!("its {what} may have {most} characters"),
        Error::NoDefaultStore => "none is known for this system".to_owned(),
        _ => "it cannot do this".to_owned(),
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::{Arc, CredentialStore, SERVICE};

    pub(super) const SEARCH: (&str, &str) = ("service", SERVICE);

    pub(super) fn store() -> keyring_core::Result<Arc<CredentialStore>> {
        Ok(zbus_secret_service_keyring_store::Store::new()?)
    }
}

#[cfg(target_os = "macos")]
mod system {
    use super::{Arc, CredentialStore, SERVICE};

    pub(super) const SEARCH: (&str, &str) = ("service", SERVICE);

    pub(super) fn store() -> keyring_core::Result<Arc<CredentialStore>> {
        Ok(apple_native_keyring_store::keychain::Store::new()?)
    }
}

#[cfg(windows)]
mod system {
    use super::{Arc, CredentialStore, SERVICE};

    pub(super) const SEARCH: (&str, &str) = ("pattern", SERVICE);

    pub(super) fn store() -> keyring_core::Result<Arc<CredentialStore>> {
        Ok(windows_native_keyring_store::Store::new()?)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod system {
    use super::{Arc, CredentialStore, SERVICE};

    pub(super) const SEARCH: (&str, &str) = ("service", SERVICE);

    pub(super) fn store() -> keyring_core::Result<Arc<CredentialStore>> {
        Err(keyring_core::Error::NoDefaultStore)
    }
}
