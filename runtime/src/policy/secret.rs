//! Secrets by name: the value, the store that an embedder provides, and a cache of the values read so far. A value is
//! read when a call first needs it, is only used in requests of the sandbox, and is masked from then on in all output
//! and records.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use zeroize::Zeroizing;

use crate::error::Error;
use crate::tool::{SecretRequest, is_secret_name};

use super::scanner::{Needle, Scanner};

/// Maximum number of masked values per secret: the present one, and the latest that it replaced. A value that was replaced before
/// its end counts apart.
const MAX_VALUES: usize = 4;
/// Maximum number of values of a secret that are replaced before their end: each may still be valid, and stays masked.
const MAX_EARLY: usize = 32;

/// A secret. Its value is erased from memory on drop, and the type has no `Debug`, `Display` or `Serialize`.
pub struct Secret {
    name: String,
    value: Zeroizing<String>,
    /// End of the value, if it has one.
    end: Option<SystemTime>,
}

impl Secret {
    /// Minimum number of characters in a value; a shorter one would match unrelated text.
    pub const MIN_LEN: usize = 8;
    /// Maximum bytes of a value.
    pub const MAX_LEN: usize = 2048;

    /// Creates a secret.
    ///
    /// # Errors
    ///
    /// [`Error::Secret`] if the name does not match `[a-z0-9][a-z0-9_-]*`, or the value is shorter than
    /// [`Secret::MIN_LEN`], longer than [`Secret::MAX_LEN`], repeats one character, or is not a single line of text.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Result<Self, Error> {
        let (name, value) = (name.into(), Zeroizing::new(value.into()));
        let refuse = |reason: String| Err(Error::Secret { name: name.clone(), reason });
        if !is_secret_name(&name) {
            let name = toolcrib_foundation::text::shown(&name);
            let reason = "not the name of a secret (must match [a-z0-9][a-z0-9_-]*, at most 64 characters)".to_owned();
            return Err(Error::Secret { name, reason });
        }
        let characters = value.chars().count();
        if characters < Self::MIN_LEN {
            let length = match characters {
                0 => "is empty".to_owned(),
                _ => format!("has {characters} characters"),
            };
            return refuse(format!("its value {length}: use at least {} characters", Self::MIN_LEN));
        }
        if value.len() > Self::MAX_LEN {
            return refuse(format!("its value has {} bytes, more than the {} of a secret", value.len(), Self::MAX_LEN));
        }
        if value.chars().any(char::is_control) {
            return refuse(
                "its value has a line break or another control character, which a header cannot contain".to_owned(),
            );
        }
        let first = value.chars().next();
        if value.starts_with(' ') || value.ends_with(' ') || value.chars().all(|c| Some(c) == first) {
            return refuse("its value begins or ends with a space, or repeats one character".to_owned());
        }
        Ok(Self { name, value, end: None })
    }

    /// Returns the secret with a time at which its value ends, such as an access token. It is read again after that.
    #[must_use]
    pub fn until(self, end: SystemTime) -> Self {
        Self { end: Some(end), ..self }
    }

    /// Returns `true` if the value has not ended.
    fn is_current(&self) -> bool {
        self.end.is_none_or(|end| SystemTime::now() < end)
    }

    /// Name of the secret.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Value of the secret, for a store or a request.
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// Store of secrets, provided by an embedder.
pub trait SecretStore: Send + Sync {
    /// Reads the secret of this name; `None` if it does not exist. It is called on a separate thread and may block.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be read. The call that needs it is refused then.
    fn value(&self, name: &str) -> Result<Option<Secret>, Error>;

    /// Replaces a value that a server has refused, such as an access token; `None` if it is not replaced. It is called like
    /// [`SecretStore::value`].
    ///
    /// # Errors
    ///
    /// The reason why it cannot be replaced.
    fn renewed(&self, name: &str, refused: &Secret) -> Result<Option<Secret>, Error> {
        let _ = (name, refused);
        Ok(None)
    }
}

/// A store with a cache of the secrets read so far. Clones share both.
#[derive(Clone)]
pub struct Secrets(Arc<Inner>);

struct Inner {
    store: Box<dyn SecretStore>,
    read: Mutex<HashMap<String, Known>>,
    /// Search for all secrets that were read.
    scanner: RwLock<Arc<Scanner>>,
    /// `true` once a secret was read; checked on every call.
    any: AtomicBool,
}

/// A secret that was read, with its search.
#[derive(Clone)]
struct Known {
    secret: Arc<Secret>,
    needle: Arc<Needle>,
    /// Number of earlier values that were replaced before their end.
    early: usize,
}

impl Secrets {
    /// Uses the secrets of a store.
    pub fn new(store: impl SecretStore + 'static) -> Self {
        Self(Arc::new(Inner {
            store: Box::new(store),
            read: Mutex::default(),
            scanner: RwLock::default(),
            any: AtomicBool::new(false),
        }))
    }

    /// Reads the values of granted secrets. A value is cached from its first use.
    ///
    /// # Errors
    ///
    /// [`Error::Secret`] if a secret does not exist, or cannot be read or searched for.
    pub(crate) fn open(&self, granted: &[SecretRequest]) -> Result<Credentials, Error> {
        let mut scanner = Scanner::default();
        let mut secrets = Vec::with_capacity(granted.len());
        for request in granted {
            let known = self.0.read.lock().unwrap_or_else(PoisonError::into_inner).get(&request.name).cloned();
            let known = known.filter(|known| known.secret.is_current());
            let known = known.map_or_else(|| self.read(&request.name), Ok)?;
            scanner.add(&known.needle);
            secrets.push((request.clone(), known.secret));
        }
        Ok(Credentials { secrets, scanner: Arc::new(scanner) })
    }

    /// Replaces the values that a server has refused, as far as the store has others. Returns `false` if it has none.
    ///
    /// # Errors
    ///
    /// [`Error::Secret`] if a value cannot be replaced.
    pub(crate) fn renew(&self, refused: &Credentials) -> Result<bool, Error> {
        let mut is_renewed = false;
        for (request, secret) in &refused.secrets {
            let known = self.0.read.lock().unwrap_or_else(PoisonError::into_inner).get(&request.name).cloned();
            // Another call may have replaced it already.
            if known.as_ref().is_some_and(|known| !Arc::ptr_eq(&known.secret, secret)) {
                is_renewed = true;
                continue;
            }
            if known.is_some_and(|known| known.early >= MAX_EARLY) {
                let reason = format!("{MAX_EARLY} values were refused before their end, so no other is asked for");
                return Err(Error::Secret { name: request.name.clone(), reason });
            }
            if let Some(fresh) = self.0.store.renewed(&request.name, secret)? {
                self.keep(fresh)?;
                is_renewed = true;
            }
        }
        Ok(is_renewed)
    }

    /// Reads a secret. No lock is held while the store is read, which may wait for a person, or while the search is
    /// compiled, so that other calls continue.
    fn read(&self, name: &str) -> Result<Known, Error> {
        let missing = || Error::Secret { name: name.to_owned(), reason: "no secret has this name".to_owned() };
        self.keep(self.0.store.value(name)?.ok_or_else(missing)?)
    }

    /// Keeps a secret, unless another call has kept one meanwhile.
    fn keep(&self, secret: Secret) -> Result<Known, Error> {
        let needle = Arc::new(Needle::new(secret.name(), secret.value())?);
        let mut read = self.0.read.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match read.get(&secret.name) {
            // Of several calls that read it at the same time, the first one determines the value.
            Some(known) if known.secret.end.is_none() => return Ok(known.clone()),
            // The same value, with another end.
            Some(known) if known.secret.value == secret.value => {
                Known { secret: Arc::new(secret), needle: known.needle.clone(), early: known.early }
            }
            known => {
                let early = known.map_or(0, |known| known.early + usize::from(known.secret.is_current()));
                self.add_to_scanner(&needle, MAX_VALUES + early);
                Known { secret: Arc::new(secret), needle, early }
            }
        };
        read.insert(known.secret.name.clone(), known.clone());
        Ok(known)
    }

    /// Adds the secret to the search, so that it is masked, with at most `max` values: the latest ones.
    fn add_to_scanner(&self, needle: &Arc<Needle>, max: usize) {
        let mut all = self.0.scanner.write().unwrap_or_else(PoisonError::into_inner);
        let mut more = Scanner::clone(&all);
        more.add_latest(needle, max);
        *all = Arc::new(more);
        self.0.any.store(true, Release);
    }

    /// Returns the search for all secrets read so far; `None` if none was read.
    pub(crate) fn scanner(&self) -> Option<Arc<Scanner>> {
        if !self.0.any.load(Acquire) {
            return None;
        }
        Some(self.0.scanner.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

/// Secrets that one tool was granted, with their values.
pub(crate) struct Credentials {
    /// Each secret with its host and placement.
    pub(crate) secrets: Vec<(SecretRequest, Arc<Secret>)>,
    /// Search for these secrets.
    pub(crate) scanner: Arc<Scanner>,
}

impl Credentials {
    /// Returns `true` if no value has ended.
    pub(crate) fn are_current(&self) -> bool {
        self.secrets.iter().all(|(_, secret)| secret.is_current())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::tool::Placement;

    /// Timeout that is never reached.
    const TIMEOUT: Duration = Duration::from_secs(20);

    /// Reports the requested names, and returns `slow` only when permitted.
    struct Slow {
        asked: Sender<String>,
        go: Mutex<Receiver<()>>,
    }

    impl SecretStore for Slow {
        fn value(&self, name: &str) -> Result<Option<Secret>, Error> {
            self.asked.send(name.to_owned()).unwrap();
            if name == "slow" {
                self.go.lock().unwrap().recv_timeout(TIMEOUT).unwrap();
            }
            Secret::new(name, format!("the value of {name}")).map(Some)
        }
    }

    fn request(name: &str) -> SecretRequest {
        let placement = Placement::parse("header:x-key").unwrap();
        SecretRequest { name: name.to_owned(), host: "api.example.com".parse().unwrap(), placement }
    }

    #[test]
    fn a_slow_store_does_not_delay_other_secrets() {
        let ((asked, asking), (go, gone), (done, ended)) = (channel(), channel(), channel());
        let secrets = Secrets::new(Slow { asked, go: Mutex::new(gone) });
        thread::scope(|scope| {
            let slow = scope.spawn(|| secrets.open(&[request("slow")]).is_ok());
            assert_eq!(asking.recv_timeout(TIMEOUT).unwrap(), "slow");
            scope.spawn(|| done.send([(); 2].map(|()| secrets.open(&[request("quick")]).is_ok())));
            let quick = ended.recv_timeout(TIMEOUT / 4);
            go.send(()).unwrap();
            assert_eq!(quick, Ok([true, true]));
            assert!(slow.join().unwrap());
        });
        assert_eq!(asking.try_iter().collect::<Vec<_>>(), ["quick"], "a secret is read once");
        let all = secrets.scanner().unwrap();
        assert!(["slow", "quick"].iter().all(|name| all.check(format!("the value of {name}").as_bytes()).is_err()));
    }

    /// Store with another value at each refusal, which ends after an hour or has ended already.
    struct Fresh(std::sync::atomic::AtomicUsize, bool);

    impl Fresh {
        fn next(&self, name: &str) -> Result<Option<Secret>, Error> {
            let number = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let end = if self.1 { SystemTime::now() + Duration::from_secs(3600) } else { SystemTime::now() };
            Secret::new(name, format!("value-{number:04}")).map(|secret| Some(secret.until(end)))
        }
    }

    impl SecretStore for Fresh {
        fn value(&self, name: &str) -> Result<Option<Secret>, Error> {
            self.next(name)
        }

        fn renewed(&self, name: &str, _: &Secret) -> Result<Option<Secret>, Error> {
            self.next(name)
        }
    }

    #[test]
    fn a_value_that_was_replaced_before_its_end_stays_masked_and_there_are_few_of_them() {
        let secrets = Secrets::new(Fresh(0.into(), true));
        let mut known = secrets.open(&[request("token")]).unwrap();
        for _ in 0..MAX_EARLY {
            assert!(secrets.renew(&known).unwrap());
            known = secrets.open(&[request("token")]).unwrap();
        }
        let error = secrets.renew(&known).unwrap_err().to_string();
        assert!(error.contains("32 values were refused"), "{error}");
        let is_masked = |number: usize| {
            let all = secrets.scanner().unwrap();
            all.check(format!("value-{number:04}").as_bytes()).is_err()
        };
        assert!((0..=MAX_EARLY).all(is_masked));
    }

    #[test]
    fn a_value_that_has_ended_is_read_again_and_the_latest_stay_masked() {
        let secrets = Secrets::new(Fresh(0.into(), false));
        for _ in 0..10 {
            secrets.open(&[request("token")]).unwrap();
        }
        let all = secrets.scanner().unwrap();
        let masked = (0..10).filter(|number| all.check(format!("value-{number:04}").as_bytes()).is_err());
        assert_eq!(masked.collect::<Vec<usize>>(), [6, 7, 8, 9]);
    }
}
