//! The system's keyring: the Secret Service on Linux, the keychain on macOS, the Credential Manager on Windows. Each
//! request runs on a thread of its own with a timeout, because a keyring can wait for a bus, another program or a
//! person. While a request hangs, further requests fail at once, so at most one thread is lost.

#[cfg(any(target_os = "macos", windows))]
mod native;
#[cfg(target_os = "linux")]
mod secret_service;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod unsupported;

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use toolcrib::policy::Secret;
use zeroize::Zeroizing;

#[cfg(any(target_os = "macos", windows))]
use native::Store;
#[cfg(target_os = "linux")]
use secret_service::Store;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
use unsupported::Store;

/// Service name of the stored secrets.
const SERVICE: &str = "toolcrib";
/// Reason if a value is not text.
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
const NOT_TEXT: &str = "the value is not UTF-8";
/// Maximum wait for a response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Failure of a request to the keyring.
#[derive(Debug)]
pub enum KeyringError {
    /// The system has no keyring, or it cannot be reached.
    Absent(String),
    /// The keyring answered with an error, or not in time.
    Failed(String),
}

impl KeyringError {
    /// The reason, without the kind of the failure.
    pub fn reason(&self) -> &str {
        match self {
            KeyringError::Absent(reason) | KeyringError::Failed(reason) => reason,
        }
    }
}

impl std::error::Error for KeyringError {}

impl fmt::Display for KeyringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyringError::Absent(reason) => write!(f, "no keyring is available: {reason}"),
            KeyringError::Failed(reason) => write!(f, "the keyring failed: {reason}"),
        }
    }
}

/// Operations of a keyring, which tests replace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyring {
    /// Reads the value of a secret.
    pub(super) read: fn(&str) -> Result<Option<Zeroizing<String>>, KeyringError>,
    /// Stores a secret, replacing any with the same name.
    pub(super) set: fn(&Secret) -> Result<(), KeyringError>,
    /// Removes a secret; `false` if there was none.
    pub(super) remove: fn(&str) -> Result<bool, KeyringError>,
    /// Lists the names of the secrets, sorted.
    pub(super) list: fn() -> Result<Vec<String>, KeyringError>,
    /// Checks that a keyring answers.
    pub(super) probe: fn() -> Result<(), KeyringError>,
    /// Returns `true` if this system may have a keyring, even if it does not answer now.
    pub(super) is_expected: fn() -> bool,
}

/// The system's keyring.
pub(super) const SYSTEM: Keyring = Keyring { read, set, remove, list, probe, is_expected };

fn read(name: &str) -> Result<Option<Zeroizing<String>>, KeyringError> {
    let name = name.to_owned();
    request(move |store| store.read(&name))
}

fn set(secret: &Secret) -> Result<(), KeyringError> {
    let (name, value) = (secret.name().to_owned(), Zeroizing::new(secret.value().to_owned()));
    request(move |store| store.set(&name, &value))
}

fn remove(name: &str) -> Result<bool, KeyringError> {
    let name = name.to_owned();
    request(move |store| store.remove(&name))
}

fn list() -> Result<Vec<String>, KeyringError> {
    request(|store| {
        let mut names = store.names()?;
        names.sort();
        names.dedup();
        Ok(names)
    })
}

fn probe() -> Result<(), KeyringError> {
    request(|_| Ok(()))
}

/// Requests to the system's keyring.
static REQUESTS: RequestQueue = RequestQueue::new();

/// Sends a request to the keyring, which must not run in an async task and may never answer.
fn request<T: Send + 'static>(
    operation: impl FnOnce(&Store) -> Result<T, String> + Send + 'static,
) -> Result<T, KeyringError> {
    REQUESTS.run(REQUEST_TIMEOUT, move || {
        let store = Store::connect().map_err(KeyringError::Absent)?;
        operation(&store).map_err(KeyringError::Failed)
    })
}

/// Runs one request at a time, each on its own thread.
struct RequestQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    Running,
    /// A request has not ended, and its caller has timed out.
    Hung,
}

impl RequestQueue {
    const fn new() -> Self {
        Self { state: Mutex::new(State::Idle), changed: Condvar::new() }
    }

    /// Runs a request, and waits at most `timeout` for the previous one to end and `timeout` for the response.
    fn run<T: Send + 'static>(
        &'static self,
        timeout: Duration,
        operation: impl FnOnce() -> Result<T, KeyringError> + Send + 'static,
    ) -> Result<T, KeyringError> {
        let timed_out = || KeyringError::Failed(format!("it did not answer within {} s", timeout.as_secs()));
        let idle = self.changed.wait_timeout_while(self.state(), timeout, |state| *state == State::Running);
        let (mut state, _) = idle.unwrap_or_else(PoisonError::into_inner);
        match *state {
            State::Idle => *state = State::Running,
            State::Running => return Err(timed_out()),
            State::Hung => return Err(KeyringError::Failed("it has not answered an earlier request yet".to_owned())),
        }
        drop(state);
        let running = RunningRequest(self);
        let (sender, response) = mpsc::channel();
        let run = move || {
            let _running = running;
            // The caller may have timed out.
            let _ = sender.send(operation());
        };
        let spawned = thread::Builder::new().name("keyring".to_owned()).spawn(run);
        spawned.map_err(|error| KeyringError::Failed(error.to_string()))?;
        let disconnected = || Err(KeyringError::Failed("the request ended without a response".to_owned()));
        match response.recv_timeout(timeout) {
            Ok(response) => response,
            Err(RecvTimeoutError::Disconnected) => disconnected(),
            Err(RecvTimeoutError::Timeout) => {
                // While the state is locked the request cannot end, so the state belongs to it until there is a
                // response.
                let mut state = self.state();
                match response.try_recv() {
                    Ok(response) => response,
                    Err(TryRecvError::Disconnected) => disconnected(),
                    Err(TryRecvError::Empty) => {
                        *state = State::Hung;
                        self.changed.notify_all();
                        Err(timed_out())
                    }
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running request; marks the queue idle on drop, also after a panic.
struct RunningRequest(&'static RequestQueue);

impl Drop for RunningRequest {
    fn drop(&mut self) {
        *self.0.state() = State::Idle;
        self.0.changed.notify_all();
    }
}

/// Reason if several secrets have the name of one.
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
fn several(count: usize) -> String {
    format!("it contains {} with this name", toolcrib_base::render::counted(count, "secret"))
}

/// Returns `true` if there is a session bus, over which a keyring is reached.
#[cfg(target_os = "linux")]
fn is_expected() -> bool {
    let named = std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some_and(|address| !address.is_empty());
    let default = || format!("/run/user/{}", rustix::process::geteuid().as_raw()).into();
    let folder: std::path::PathBuf = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(default, Into::into);
    named || folder.join("bus").exists()
}

#[cfg(not(target_os = "linux"))]
fn is_expected() -> bool {
    cfg!(any(target_os = "macos", windows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_a_request_hangs_no_other_is_sent() {
        static REQUESTS: RequestQueue = RequestQueue::new();
        let (go, gone) = mpsc::channel::<()>();
        let (short, long) = (Duration::from_millis(50), Duration::from_secs(20));
        let reason = |response: Result<u8, KeyringError>| match response {
            Err(KeyringError::Failed(reason)) => reason,
            other => panic!("{other:?}"),
        };
        let hung = REQUESTS.run(short, move || {
            let _ = gone.recv_timeout(long);
            Ok(1)
        });
        assert!(reason(hung).contains("it did not answer within"));
        let (sent, receiver) = mpsc::channel();
        let second = REQUESTS.run(long, move || {
            let _ = sent.send(());
            Ok(2)
        });
        assert!(reason(second).contains("it has not answered an earlier request yet"));
        assert!(receiver.recv().is_err(), "it was never sent");
        go.send(()).unwrap();
        let free = REQUESTS.changed.wait_timeout_while(REQUESTS.state(), long, |state| *state != State::Idle).unwrap();
        drop(free);
        assert!(matches!(REQUESTS.run(long, || Ok(3)), Ok(3)), "after it has ended, the next one is sent");
        let broken: Result<u8, KeyringError> = REQUESTS.run(long, || panic!("it panics"));
        assert!(reason(broken).contains("ended without a response"));
        assert!(matches!(REQUESTS.run(long, || Ok(4)), Ok(4)));
    }
}
