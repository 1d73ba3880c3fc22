//! The system's keyring: the Secret Service on Linux, the keychain on macOS, the Credential Manager on Windows. Each
//! question has a thread of its own and a few seconds: behind a keyring are a bus, another program and a person. While one
//! hangs no other is asked, so that at most one thread is lost to it.

use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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

/// What a keyring can be asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyring {
    /// The value of a secret.
    pub(super) read: fn(&str) -> Result<Option<Zeroizing<String>>, Trouble>,
    /// Keeps a secret in the place of another of its name.
    pub(super) set: fn(&Secret) -> Result<(), Trouble>,
    /// Removes a secret; tells whether there was one.
    pub(super) remove: fn(&str) -> Result<bool, Trouble>,
    /// The names of the secrets, sorted.
    pub(super) list: fn() -> Result<Vec<String>, Trouble>,
    /// Whether there is a keyring that answers.
    pub(super) probe: fn() -> Result<(), Trouble>,
    /// Whether this system may have one, also where it does not answer now.
    pub(super) is_expected: fn() -> bool,
}

/// The system's own.
pub(super) const SYSTEM: Keyring = Keyring { read, set, remove, list, probe, is_expected: system::is_expected };

fn read(name: &str) -> Result<Option<Zeroizing<String>>, Trouble> {
    let name = name.to_owned();
    ask(move |store| match store.build(SERVICE, &name, None)?.get_password() {
        Ok(value) => Ok(Some(Zeroizing::new(value))),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(error),
    })
}

fn set(secret: &Secret) -> Result<(), Trouble> {
    let (name, value) = (secret.name().to_owned(), Zeroizing::new(secret.value().to_owned()));
    ask(move |store| store.build(SERVICE, &name, None)?.set_password(&value))
}

fn remove(name: &str) -> Result<bool, Trouble> {
    let name = name.to_owned();
    ask(move |store| match store.build(SERVICE, &name, None)?.delete_credential() {
        Ok(()) => Ok(true),
        Err(Error::NoEntry) => Ok(false),
        Err(error) => Err(error),
    })
}

fn list() -> Result<Vec<String>, Trouble> {
    ask(|store| {
        let found = store.search(&HashMap::from([system::SEARCH]))?;
        let kept = found.iter().filter_map(|entry| entry.get_specifiers());
        let mut names: Vec<String> = kept.filter(|(service, _)| service == SERVICE).map(|(_, name)| name).collect();
        names.sort();
        names.dedup();
        Ok(names)
    })
}

fn probe() -> Result<(), Trouble> {
    ask(|_| Ok(()))
}

/// Whoever asks the system's keyring.
static TURNS: Turns = Turns::new();

/// Asks the keyring: it may not be asked from an async task, and it may never answer.
fn ask<T: Send + 'static>(
    question: impl FnOnce(&CredentialStore) -> keyring_core::Result<T> + Send + 'static,
) -> Result<T, Trouble> {
    TURNS.ask(PATIENCE, move || {
        let store: keyring_core::Result<Arc<CredentialStore>> = system::store();
        match store {
            Err(error) => Err(Trouble::Absent(told(&error))),
            // An error can carry what was found: only its kind is told.
            Ok(store) => question(&*store).map_err(|error| Trouble::Failed(told(&error))),
        }
    })
}

/// Lets one question at a time be asked.
struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Asking,
    /// Whoever asked waits no more, and the question has not ended.
    Hung,
}

impl Turns {
    const fn new() -> Self {
        Self { state: Mutex::new(State::Free), changed: Condvar::new() }
    }

    /// Asks on a thread of its own, and waits so long for the turn and so long for the answer.
    fn ask<T: Send + 'static>(
        &'static self,
        patience: Duration,
        question: impl FnOnce() -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Trouble> {
        let silent = || Trouble::Failed(format!("it did not answer within {} s", patience.as_secs()));
        let taken = self.changed.wait_timeout_while(self.state(), patience, |state| *state == State::Asking);
        let (mut state, _) = taken.unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::Free => *state = State::Asking,
            State::Asking => return Err(silent()),
            State::Hung => return Err(Trouble::Failed("it has not answered an earlier question yet".to_owned())),
        }
        drop(state);
        let turn = Turn(self);
        let (answer, answered) = mpsc::channel();
        let asking = move || {
            let _turn = turn;
            // Nobody may be waiting any more.
            let _ = answer.send(question());
        };
        let spawned = thread::Builder::new().name("keyring".to_owned()).spawn(asking);
        spawned.map_err(|error| Trouble::Failed(error.to_string()))?;
        let broke_off = || Err(Trouble::Failed("it broke off".to_owned()));
        match answered.recv_timeout(patience) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Disconnected) => broke_off(),
            Err(RecvTimeoutError::Timeout) => {
                // With the state held the turn cannot end, so it is this question's as long as there is no answer.
                let mut state = self.state();
                match answered.try_recv() {
                    Ok(answer) => answer,
                    Err(TryRecvError::Disconnected) => broke_off(),
                    Err(TryRecvError::Empty) => {
                        *state = State::Hung;
                        self.changed.notify_all();
                        Err(silent())
                    }
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one who asks. It ends with the question, however that does.
struct Turn(&'static Turns);

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.state() = State::Free;
        self.0.changed.notify_all();
    }
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

    /// Whether there is a bus of the session, over which a keyring would be asked.
    pub(super) fn is_expected() -> bool {
        let named = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
        let usual = || format!("/run/user/{}", rustix::process::geteuid().as_raw()).into();
        let folder: std::path::PathBuf = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(usual, Into::into);
        named || folder.join("bus").exists()
    }
}

#[cfg(target_os = "macos")]
mod system {
    use super::{Arc, CredentialStore, SERVICE};

    pub(super) const SEARCH: (&str, &str) = ("service", SERVICE);

    pub(super) fn store() -> keyring_core::Result<Arc<CredentialStore>> {
        Ok(apple_native_keyring_store::keychain::Store::new()?)
    }

    pub(super) fn is_expected() -> bool {
        true
    }
}

#[cfg(windows)]
mod system {
    use super::{Arc, CredentialStore, SERVICE};

    pub(super) const SEARCH: (&str, &str) = ("pattern", SERVICE);

    pub(super) fn store() -> keyring_core::Result<Arc<CredentialStore>> {
        Ok(windows_native_keyring_store::Store::new()?)
    }

    pub(super) fn is_expected() -> bool {
        true
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod system {
    use super::{Arc, CredentialStore, SERVICE};

    pub(super) const SEARCH: (&str, &str) = ("service", SERVICE);

    pub(super) fn store() -> keyring_core::Result<Arc<CredentialStore>> {
        Err(keyring_core::Error::NoDefaultStore)
    }

    pub(super) fn is_expected() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_a_question_hangs_no_other_is_asked() {
        static TURNS: Turns = Turns::new();
        let (go, gone) = mpsc::channel::<()>();
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(20));
        let told = |asked: Result<u8, Trouble>| match asked {
            Err(Trouble::Failed(why)) => why,
            other => panic!("{other:?}"),
        };
        let hung = TURNS.ask(short, move || {
            let _ = gone.recv_timeout(long);
            Ok(1)
        });
        assert!(told(hung).contains("it did not answer within"));
        let (asked, asking) = mpsc::channel();
        let second = TURNS.ask(long, move || {
            let _ = asked.send(());
            Ok(2)
        });
        assert!(told(second).contains("it has not answered an earlier question yet"));
        assert!(asking.recv().is_err(), "it was never asked");
        go.send(()).unwrap();
        let free = TURNS.changed.wait_timeout_while(TURNS.state(), long, |state| *state != State::Free).unwrap();
        drop(free);
        assert!(matches!(TURNS.ask(long, || Ok(3)), Ok(3)), "when it has ended, the next one is");
        let broken: Result<u8, Trouble> = TURNS.ask(long, || panic!("it panics"));
        assert!(told(broken).contains("it broke off"));
        assert!(matches!(TURNS.ask(long, || Ok(4)), Ok(4)));
    }
}
