//! Connections to one registry: one pool for each purpose, the addresses seen, and the authorizations in memory.
//!
//! The pools are separate so that a connection opened to the registry is never reused for a redirect from another
//! registry, which the address policy might refuse.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Url;
use rustls::ClientConfig;

use crate::address::{AddressPolicy, Gate, NameLookup, Role};
use crate::authorization::{Authorization, Authorizations, Scope};
use crate::credentials::CredentialStore;
use crate::error::Error;
use crate::limits::{Limits, MAX_HEADERS};
use crate::reference::Registry;
use crate::secret::Credential;

/// Parts that the sessions of one client share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) limits: Arc<Limits>,
    pub(crate) tls: ClientConfig,
    pub(crate) policy: Arc<dyn AddressPolicy>,
    pub(crate) lookup: Arc<dyn NameLookup>,
    pub(crate) credentials: Credentials,
    /// Registries with a scheme set by the operator: `true` is plain HTTP.
    pub(crate) schemes: Arc<Vec<(Registry, bool)>>,
}

/// Source of the credential for a repository.
#[derive(Clone)]
pub(crate) enum Credentials {
    /// Files and helpers.
    Store(Arc<CredentialStore>),
    /// One credential, to be checked by `login`.
    Fixed(Credential),
}

/// Connections to one registry.
pub(crate) struct Session {
    pub(crate) registry: Registry,
    /// `https://host:port/`, or `http://host:port/` where that is allowed.
    pub(crate) base: Url,
    pub(crate) shared: Shared,
    authorizations: Mutex<Authorizations>,
    to_registry: Pool,
    to_token_server: Pool,
    to_redirect: Pool,
}

/// Connection pool of one role.
pub(crate) struct Pool {
    pub(crate) gate: Gate,
    pub(crate) http: reqwest::Client,
}

impl Session {
    pub(crate) fn new(registry: &Registry, shared: Shared) -> Result<Self, Error> {
        let secure = base_url("https", registry)?;
        let plain = match shared.schemes.iter().find(|(named, _)| named == registry) {
            Some((_, plain)) => *plain,
            None => crate::address::is_loopback(&secure),
        };
        let base = if plain { base_url("http", registry)? } else { secure };
        let seen = Arc::new(Mutex::new(Vec::new()));
        let pool = |role| {
            let (policy, lookup) = (shared.policy.clone(), shared.lookup.clone());
            Pool::new(Gate { role, policy, lookup, registry: Arc::clone(&seen) }, &shared)
        };
        Ok(Self {
            registry: registry.clone(),
            base,
            authorizations: Mutex::default(),
            to_registry: pool(Role::Registry)?,
            to_token_server: pool(Role::TokenServer)?,
            to_redirect: pool(Role::Redirect)?,
            shared,
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    pub(crate) fn pool(&self, role: Role) -> &Pool {
        match role {
            Role::Registry => &self.to_registry,
            Role::TokenServer => &self.to_token_server,
            Role::Redirect => &self.to_redirect,
        }
    }

    /// Returns `true` if the URL has the scheme, host and port of the registry.
    pub(crate) fn is_own(&self, url: &Url) -> bool {
        url.origin() == self.base.origin()
    }

    /// Refuses plain HTTP except to the own machine and to the registry for which the operator allowed it.
    pub(crate) fn check_scheme(&self, url: &Url) -> Result<(), Error> {
        let allowed = match url.scheme() {
            "https" => true,
            "http" => crate::address::is_loopback(url) || self.is_own(url),
            _ => false,
        };
        if allowed { Ok(()) } else { Err(Error::PlainHttp { host: authority(url) }) }
    }

    /// Refuses plain HTTP for a credential, except to the registry itself: a registry names its token server, which can be any program
    /// of the own machine.
    pub(crate) fn check_credential(&self, url: &Url) -> Result<(), Error> {
        match url.scheme() == "https" || self.is_own(url) {
            true => Ok(()),
            false => Err(Error::PlainHttpCredential { host: authority(url) }),
        }
    }

    pub(crate) fn remembered(&self, scope: &Scope) -> Option<Authorization> {
        self.authorizations.lock().unwrap_or_else(PoisonError::into_inner).get(scope)
    }

    pub(crate) fn remember(&self, scope: &Scope, authorization: Authorization) {
        self.authorizations.lock().unwrap_or_else(PoisonError::into_inner).insert(scope, authorization);
    }

    pub(crate) fn forget(&self, scope: &Scope) {
        self.authorizations.lock().unwrap_or_else(PoisonError::into_inner).remove(scope);
    }

    /// Returns the URL `/v2/` with these segments below, escaped.
    pub(crate) fn url<'a>(&self, repository: &'a str, segments: impl IntoIterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        // A URL with a host has path segments.
        if let Ok(mut path) = url.path_segments_mut() {
            path.clear().push("v2");
            path.extend(repository.split('/').filter(|part| !part.is_empty()));
            path.extend(segments);
        }
        url
    }
}

impl Pool {
    fn new(gate: Gate, shared: &Shared) -> Result<Self, Error> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(shared.tls.clone())
            .user_agent(concat!("toolcrib/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .http1_only()
            .http1_max_headers(MAX_HEADERS)
            .connect_timeout(shared.limits.connect)
            .pool_idle_timeout(Duration::from_secs(20))
            .pool_max_idle_per_host(4)
            .dns_resolver(Arc::new(gate.clone()))
            .build()
            .map_err(|error| Error::Setup(Box::new(error.without_url())))?;
        Ok(Self { gate, http })
    }
}

/// Returns `host` or `host:port` of a URL, for messages.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn base_url(scheme: &str, registry: &Registry) -> Result<Url, Error> {
    let text = format!("{scheme}://{}/", registry.api_authority());
    Url::parse(&text).map_err(|error| Error::Setup(Box::new(error)))
}
