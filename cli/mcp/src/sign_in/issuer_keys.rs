//! Keys of one issuer: read from its documents, kept for a bounded time, and read again when they are old or a token names another
//! one. Requests that a kept key fits wait for no reading, and requests with invented keys cause no more than one reading in some seconds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::Url;
use serde_json::Value;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::task::JoinHandle;
use toolcrib_base::http::{client, local_client};
use toolcrib_base::oauth::{SecureUrl, issuer_documents};
use toolcrib_base::render::{self, one_line, shortened};
use toolcrib_foundation::json::{Limits, parse_within};

use super::fault::{SignInFault, TokenFault};
use super::keys::KeySet;

/// Maximum size of a document in bytes.
const MAX_BYTES: usize = 256 << 10;
/// Limits of the JSON in a document.
const LIMITS: Limits = Limits { depth: 20, values: 10_000 };
/// Maximum time of one reading.
const MAX_READING: Duration = Duration::from_secs(5);
/// Maximum characters of a foreign text in a message.
const MAX_SHOWN: usize = 200;

/// Times of the kept keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyTimes {
    /// Minimum age of keys that are read again.
    pub(super) fresh: Duration,
    /// Maximum age of keys that are used while the issuer cannot be reached.
    pub(super) most: Duration,
    /// Minimum time between the end of a reading and the next one.
    pub(super) pause: Duration,
}

impl Default for KeyTimes {
    fn default() -> Self {
        Self { fresh: Duration::from_mins(5), most: Duration::from_hours(1), pause: Duration::from_secs(5) }
    }
}

/// Keys of one issuer.
#[derive(Debug)]
pub(super) struct IssuerKeys {
    issuer: SecureUrl,
    client: reqwest::Client,
    times: KeyTimes,
    kept: Mutex<Option<(Arc<KeySet>, Instant)>>,
    reading: Arc<AsyncMutex<Reading>>,
}

/// State of the readings. The lock is held while one runs.
#[derive(Debug, Default)]
struct Reading {
    /// End of the last one, or its beginning while it runs.
    last: Option<Instant>,
    /// `true` if the last one failed, so that a further failure is not reported again.
    has_failed: bool,
}

impl IssuerKeys {
    /// Prepares the keys of an issuer without reading them.
    pub(super) fn new(issuer: SecureUrl, times: KeyTimes) -> anyhow::Result<Arc<Self>> {
        let client = if issuer.is_loopback() { local_client() } else { client() }?;
        Ok(Arc::new(Self { issuer, client, times, kept: Mutex::default(), reading: Arc::default() }))
    }

    /// Returns the key that a token names.
    ///
    /// # Errors
    ///
    /// The issuer has no such key, or its keys are not known or too old.
    pub(super) async fn key(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, SignInFault> {
        let find = |keys: &KeySet| keys.find(id, algorithm).cloned();
        if let Some((keys, read)) = self.kept()
            && read.elapsed() < self.times.most
            && let Some(key) = find(&keys)
        {
            if read.elapsed() >= self.times.fresh {
                self.refresh_beside();
            }
            return Ok(key);
        }
        self.refresh().await;
        match self.kept().filter(|(_, read)| read.elapsed() < self.times.most) {
            Some((keys, _)) => find(&keys).ok_or(SignInFault::Token(TokenFault::Key)),
            None => Err(SignInFault::UnknownKeys),
        }
    }

    /// Reads the keys without keeping them; returns their number.
    pub(super) async fn check(&self) -> anyhow::Result<usize> {
        let read = tokio::time::timeout(MAX_READING, self.read()).await;
        read.unwrap_or_else(|_| bail!("no answer within {} seconds", MAX_READING.as_secs())).map(|keys| keys.len())
    }

    /// Reads the keys, or waits for the reading that runs, unless the last one ended a moment ago.
    pub(super) async fn refresh(self: &Arc<Self>) {
        let began = Instant::now();
        let reading = self.reading.clone().lock_owned().await;
        // Another request has read them while this one waited.
        if reading.last.is_some_and(|last| last >= began) || self.pauses(&reading) {
            return;
        }
        // A panic leaves the keys as they were.
        let _ = self.begin(reading).await;
    }

    /// Lets the keys be read while requests use those from before, unless a reading runs or ended a moment ago.
    fn refresh_beside(self: &Arc<Self>) {
        if let Ok(reading) = self.reading.clone().try_lock_owned()
            && !self.pauses(&reading)
        {
            drop(self.begin(reading));
        }
    }

    fn pauses(&self, reading: &Reading) -> bool {
        reading.last.is_some_and(|last| last.elapsed() < self.times.pause)
    }

    /// Begins a reading. It goes on if the client leaves: otherwise clients that leave at once could prevent every reading.
    fn begin(self: &Arc<Self>, mut reading: OwnedMutexGuard<Reading>) -> JoinHandle<()> {
        let keys = self.clone();
        tokio::spawn(async move {
            reading.last = Some(Instant::now());
            let read = tokio::time::timeout(MAX_READING, keys.read()).await;
            let read = read.unwrap_or_else(|_| bail!("no answer within {} seconds", MAX_READING.as_secs()));
            keys.keep(read, &mut reading);
            reading.last = Some(Instant::now());
        })
    }

    /// Keeps the keys of a reading, or reports that it failed.
    fn keep(&self, read: anyhow::Result<KeySet>, reading: &mut Reading) {
        let issuer = &self.issuer;
        match read {
            Ok(read) => {
                *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::new(read), Instant::now()));
                if reading.has_failed {
                    render::aside(&format!("the keys of the issuer `{issuer}` were read again"));
                }
                reading.has_failed = false;
            }
            Err(error) if !reading.has_failed => {
                reading.has_failed = true;
                let error = render::message(&error);
                let effect = match self.kept() {
                    Some(_) => format!("those from before are used for {} at most", minutes(self.times.most)),
                    None => "sign-in with it fails until they are read".to_owned(),
                };
                render::warning(&format!("cannot read the keys of the issuer `{issuer}`: {error}; {effect}"));
            }
            Err(_) => {}
        }
    }

    fn kept(&self) -> Option<(Arc<KeySet>, Instant)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn read(&self) -> anyhow::Result<KeySet> {
        let keys = self.keys_address().await?;
        let document = self.document(keys.url()).await?.with_context(|| format!("`{keys}` does not exist"))?;
        KeySet::parse(&document).map_err(|reason| anyhow::anyhow!("`{keys}`: {reason}"))
    }

    /// Returns the address of the keys, as the document about the issuer states it.
    async fn keys_address(&self) -> anyhow::Result<SecureUrl> {
        for place in issuer_documents(self.issuer.url()) {
            let Some(document) = self.document(&place).await? else { continue };
            let stated = document["issuer"].as_str().unwrap_or_default();
            if stated != self.issuer.as_str() {
                let stated = one_line(&shortened(stated, MAX_SHOWN));
                bail!("`{place}` is about the issuer `{stated}`: name the issuer exactly as its tokens do");
            }
            let keys = document["jwks_uri"].as_str().with_context(|| format!("`{place}` names no `jwks_uri`"))?;
            let address: SecureUrl = keys.parse().map_err(|_| {
                anyhow::anyhow!(
                    "`{place}`: `jwks_uri` is not an address over TLS: `{}`",
                    one_line(&shortened(keys, MAX_SHOWN))
                )
            })?;
            if address.is_loopback() && !self.issuer.is_loopback() {
                bail!("`{place}`: `jwks_uri` is an address of this machine, and the issuer is not");
            }
            return Ok(address);
        }
        bail!("no metadata found at the well-known paths")
    }

    /// Gets a document; `None` if there is none. Redirects are not followed.
    async fn document(&self, url: &Url) -> anyhow::Result<Option<Value>> {
        let cannot = || format!("cannot get `{url}`");
        let request = self.client.get(url.clone()).header(http::header::ACCEPT, "application/json");
        let mut response = request.send().await.map_err(reqwest::Error::without_url).with_context(cannot)?;
        match response.status().as_u16() {
            200 => {}
            // Some servers answer every unknown path with a page or a login.
            401 | 403 | 404 | 405 | 410 => return Ok(None),
            status => bail!("`{url}` answered with the status {status}"),
        }
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(reqwest::Error::without_url).with_context(cannot)? {
            if bytes.len() + part.len() > MAX_BYTES {
                bail!("`{url}` has more than {MAX_BYTES} bytes");
            }
            bytes.extend_from_slice(&part);
        }
        let value = parse_within(&bytes, LIMITS).with_context(|| format!("`{url}` is not JSON"))?;
        Ok(Some(value))
    }
}

fn minutes(time: Duration) -> String {
    render::counted(time.as_secs() / 60, "minute")
}
