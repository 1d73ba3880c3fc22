//! Secrets by name: the value, the store that an embedder provides, and a cache of the values read so far. A value is
//! read when a call first needs it, is only used in requests of the sandbox, and is masked from then on in all output
//! and records.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use zeroize::Zeroizing;

use crate::call::Denial;
use crate::error::Error;
use crate::tool::{Placement, SecretHost, SecretHostError, SecretRequest, Tool, is_secret_name};

use super::scanner::{Needle, Scanner};

/// Maximum number of masked values per secret: the present one, and the latest that it replaced.
const MAX_VALUES: usize = 4;

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
            if known.is_some_and(|known| !Arc::ptr_eq(&known.secret, secret)) {
                is_renewed = true;
                continue;
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
        // Of several calls that read it at the same time, the first one determines the value.
        if let Some(known) = read.get(&secret.name)
            && (known.secret.end.is_none() || known.secret.value == secret.value)
        {
            return Ok(known.clone());
        }
        self.add_to_scanner(&needle);
        let known = Known { secret: Arc::new(secret), needle };
        read.insert(known.secret.name.clone(), known.clone());
        Ok(known)
    }

    /// Adds the secret to the search, so that it is masked, with the latest of its earlier values.
    fn add_to_scanner(&self, needle: &Arc<Needle>) {
        let mut all = self.0.scanner.write().unwrap_or_else(PoisonError::into_inner);
        let mut more = Scanner::clone(&all);
        more.add_latest(needle, MAX_VALUES);
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

/// Secret of a flag, written `NAME@HOST#PLACE`. A denial may omit the place, or the host and the place.
#[derive(Debug, Clone)]
pub(super) struct SecretRule {
    name: String,
    host: Option<SecretHost>,
    place: Option<Placement>,
}

impl SecretRule {
    /// Parses the value of a flag. `*` in a denial means every secret.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] if it is malformed, or an allowance without a host or a place.
    pub(super) fn read(text: &str, flag: &str) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Permission { permission: format!("{flag}={text}"), reason };
        let (name, target) = text.split_once('@').map_or((text, None), |(name, target)| (name, Some(target)));
        let is_allowance = flag.starts_with("--allow");
        let is_all = name == "*" && !is_allowance;
        if !is_all && !is_secret_name(name) {
            let form = if is_allowance { "NAME@HOST#PLACE" } else { "NAME, NAME@HOST or NAME@HOST#PLACE" };
            let reason = format!("not the name of a secret (must match [a-z0-9][a-z0-9_-]*); write {form}");
            return Err(refuse(reason));
        }
        let (host, place) = match target.map(|target| target.split_once('#').unwrap_or((target, ""))) {
            None => (None, None),
            Some((host, "")) if !text.ends_with('#') => (Some(host), None),
            Some((host, place)) => (Some(host), Some(place)),
        };
        let host = host.map(str::parse).transpose().map_err(|error: SecretHostError| refuse(error.to_string()))?;
        let place = place.map(Placement::parse).transpose().map_err(|error| refuse(error.to_string()))?;
        if is_allowance && place.is_none() {
            let (missing, start) = match host.is_none() {
                true => ("host and no place", format!("{name}@api.example.com")),
                false => ("place", text.to_owned()),
            };
            let form = format!("write NAME@HOST#PLACE, such as `{start}#header:authorization`");
            return Err(refuse(format!("names no {missing}, so it would allow nothing; {form}")));
        }
        Ok(Self { name: name.to_owned(), host, place })
    }

    /// Returns `true` if a denial covers the request; a missing host or place covers all.
    fn denies(&self, request: &SecretRequest) -> bool {
        let named = self.name == "*" || self.name == request.name;
        named
            && self.host.as_ref().is_none_or(|host| *host == request.host)
            && self.place.as_ref().is_none_or(|place| place.shares_place(&request.placement))
    }

    /// Returns `true` if a flag allows the request of an untrusted tool. The flag must name the host, which learns the
    /// value, and the place, because the host may publish other parts of a request, such as the text of a post.
    fn allows(&self, request: &SecretRequest) -> bool {
        self.name == request.name
            && self.host.as_ref().is_some_and(|host| *host == request.host)
            && self.place.as_ref().is_some_and(|place| place.shares_place(&request.placement))
    }
}

/// Rules of the flags that allow and deny secrets.
#[derive(Debug, Clone, Default)]
pub(super) struct SecretRules {
    pub(super) allow: Vec<SecretRule>,
    pub(super) deny: Vec<SecretRule>,
}

/// Grants the secrets that a tool requests, and records denied ones. If `by_naming` is `true`, the source of the tool
/// is the operator's own and its requests are allowed.
pub(super) fn granted(
    tool: &Tool,
    by_naming: bool,
    rules: &SecretRules,
    denied: &mut Vec<Denial>,
) -> Vec<SecretRequest> {
    let mut granted = Vec::new();
    for request in &tool.requested.secrets {
        let capability = request.capability();
        if rules.deny.iter().any(|rule| rule.denies(request)) {
            denied.push(Denial { capability, flag: None });
        } else if by_naming || rules.allow.iter().any(|rule| rule.allows(request)) {
            granted.push(request.clone());
        } else {
            denied.push(Denial { capability, flag: Some(format!("--allow-secret={}", request.flag_value())) });
        }
    }
    granted
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    use super::*;

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

    #[test]
    fn an_allowance_names_the_host_and_the_place_and_a_denial_need_not() {
        let asked = request("github");
        for (rule, allows, denies) in [
            ("github@api.example.com#header:X-Key", true, true),
            ("github@api.example.com#query:x-key", false, false),
            ("other@api.example.com#header:x-key", false, false),
            ("github@b.example#header:x-key", false, false),
        ] {
            let rule_of = |flag| SecretRule::read(rule, flag).unwrap();
            assert_eq!(rule_of("--allow-secret").allows(&asked), allows, "{rule}");
            assert_eq!(rule_of("--deny-secret").denies(&asked), denies, "{rule}");
        }
        for rule in ["github@api.example.com", "github", "*"] {
            assert!(SecretRule::read(rule, "--deny-secret").unwrap().denies(&asked), "{rule}");
            let allowance = SecretRule::read(rule, "--allow-secret").unwrap_err().to_string();
            assert!(allowance.contains("NAME@HOST#PLACE"), "{rule}: {allowance}");
        }
        assert!(SecretRule::read("*", "--allow-secret").is_err());
    }
}
