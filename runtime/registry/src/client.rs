//! The client: its construction, its sessions, and the deadline around each call.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls_platform_verifier::{BuilderVerifierExt as _, Verifier};

use crate::address::{AddressPolicy, NameLookup, PublicOrBesideRegistry, SystemLookup};
use crate::authorization::Scope;
use crate::credentials::{CredentialStore, StoredIn};
use crate::error::{Error, What};
use crate::exchange::Exchange;
use crate::limits::{Limits, MAX_REGISTRIES};
use crate::reference::Registry;
use crate::retry::Retry;
use crate::secret::Credential;
use crate::session::{Credentials, Session, Shared};

/// Progress of a blob's transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes transferred. The number falls when a transfer starts again.
    pub done: u64,
    /// Size of the blob in bytes.
    pub total: u64,
}

/// Callback for progress. It is called for each part of a transfer, and must return quickly.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// Client of OCI registries. A clone shares connections and tokens.
///
/// Every call ends within [`Limits::deadline`]. Dropping the future of a call cancels it.
#[derive(Clone)]
pub struct Client {
    shared: Shared,
    store: Arc<CredentialStore>,
    sessions: Arc<Mutex<Vec<Arc<Session>>>>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}

/// Settings of a [`Client`].
#[must_use]
pub struct ClientBuilder {
    limits: Limits,
    store: CredentialStore,
    policy: Arc<dyn AddressPolicy>,
    lookup: Arc<dyn NameLookup>,
    roots: Vec<CertificateDer<'static>>,
    schemes: Vec<(Registry, bool)>,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the credential store. Default: no credentials.
    pub fn credentials(mut self, store: CredentialStore) -> Self {
        self.store = store;
        self
    }

    /// Sets the address policy. Default: [`PublicOrBesideRegistry`].
    pub fn address_policy(mut self, policy: impl AddressPolicy + 'static) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// Sets the name lookup. Default: [`SystemLookup`].
    pub fn name_lookup(mut self, lookup: impl NameLookup + 'static) -> Self {
        self.lookup = Arc::new(lookup);
        self
    }

    /// Adds a root certificate in DER form to the system's roots.
    pub fn root_certificate(mut self, der: Vec<u8>) -> Self {
        self.roots.push(der.into());
        self
    }

    /// Allows plain HTTP, with credentials, for one registry. Loopback registries need no permission.
    pub fn plain_http(mut self, registry: Registry) -> Self {
        self.schemes.push((registry, true));
        self
    }

    /// Demands HTTPS for one registry on the own machine.
    pub fn https(mut self, registry: Registry) -> Self {
        self.schemes.push((registry, false));
        self
    }

    /// Creates the client.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] if a root certificate is not valid or the system's certificates cannot be used.
    pub fn build(self) -> Result<Client, Error> {
        let shared = Shared {
            limits: Arc::new(self.limits),
            tls: tls(self.roots).map_err(|error| Error::Setup(Box::new(error)))?,
            policy: self.policy,
            lookup: self.lookup,
            credentials: Credentials::Store(Arc::default()),
            schemes: Arc::new(self.schemes),
        };
        let store = Arc::new(self.store);
        let shared = Shared { credentials: Credentials::Store(Arc::clone(&store)), ..shared };
        Ok(Client { shared, store, sessions: Arc::default() })
    }
}

fn tls(roots: Vec<CertificateDer<'static>>) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    if roots.is_empty() {
        return Ok(builder.with_platform_verifier()?.with_no_client_auth());
    }
    let verifier = Verifier::new_with_extra_roots(roots, provider)?;
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

impl Client {
    /// Creates settings with safe defaults.
    pub fn builder() -> ClientBuilder {
        ClientBuilder {
            limits: Limits::default(),
            store: CredentialStore::default(),
            policy: Arc::new(PublicOrBesideRegistry),
            lookup: Arc::new(SystemLookup),
            roots: Vec::new(),
            schemes: Vec::new(),
        }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Checks a credential against a registry and stores it. See [`CredentialStore::save`].
    ///
    /// A registry that answers its API check without authentication cannot check the credential: it is stored
    /// unchecked.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthorized`] if the registry refuses the credential; nothing is stored then.
    pub async fn login(&self, registry: &Registry, credential: &Credential) -> Result<StoredIn, Error> {
        self.within_deadline(async {
            let shared = Shared { credentials: Credentials::Fixed(credential.clone()), ..self.shared.clone() };
            Session::new(registry, shared)?.check_api().await?;
            let stored = self.store.save(registry, credential).await?;
            self.drop_session(registry);
            Ok(stored)
        })
        .await
    }

    /// Erases the credential of a registry from the store and the memory. Returns `true` if there was one in the file.
    ///
    /// # Errors
    ///
    /// See [`CredentialStore::erase`].
    pub async fn logout(&self, registry: &Registry) -> Result<bool, Error> {
        self.drop_session(registry);
        self.within_deadline(async { Ok(self.store.erase(registry).await?) }).await
    }

    pub(crate) async fn within_deadline<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let limit = self.limits().deadline;
        tokio::time::timeout(limit, call).await.unwrap_or(Err(Error::Deadline { limit }))
    }

    /// Returns the session of a registry.
    pub(crate) fn session(&self, registry: &Registry) -> Result<Arc<Session>, Error> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = sessions.iter().find(|session| session.registry == *registry) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(Session::new(registry, self.shared.clone())?);
        if sessions.len() >= MAX_REGISTRIES {
            sessions.remove(0);
        }
        sessions.push(Arc::clone(&session));
        Ok(session)
    }

    fn drop_session(&self, registry: &Registry) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.registry != *registry);
    }
}

impl Session {
    /// Asks the registry for its API version, with the credential.
    async fn check_api(&self) -> Result<(), Error> {
        let scope = Scope::api();
        let host = self.registry.to_string();
        let mut retry = Retry::new(self.limits(), &host);
        loop {
            let exchange = Exchange::new(reqwest::Method::GET, self.url("", [""]), &scope, What::Registry);
            match self.checked(&exchange, &[200]).await {
                Ok(_) => return Ok(()),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    /// Sends a request once and turns every status but the expected ones into an error.
    pub(crate) async fn checked(
        &self,
        exchange: &Exchange<'_>,
        expected: &[u16],
    ) -> Result<crate::reply::Reply, Error> {
        let reply = self.send(exchange).await?;
        if expected.contains(&reply.status().as_u16()) {
            return Ok(reply);
        }
        let sent = self.remembered(exchange.scope).is_some_and(|authorization| !authorization.anonymous);
        Err(reply.into_error(exchange.what, sent, self.limits()).await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_shared_and_their_number_is_bounded() {
        let client = Client::builder().build().unwrap();
        let registry = |number: usize| format!("r{number}.example").parse::<Registry>().unwrap();
        let first = client.session(&registry(0)).unwrap();
        assert!(Arc::ptr_eq(&first, &client.clone().session(&registry(0)).unwrap()));
        for number in 0..=MAX_REGISTRIES {
            client.session(&registry(number)).unwrap();
        }
        assert_eq!(client.sessions.lock().unwrap().len(), MAX_REGISTRIES);
        assert!(!Arc::ptr_eq(&first, &client.session(&registry(0)).unwrap()));
    }

    #[test]
    fn the_future_of_a_call_can_move_between_threads() {
        fn movable<T: Send>(_: T) {}
        let client = Client::builder().build().unwrap();
        let reference: crate::Reference = "a.example/x:v1".parse().unwrap();
        let blob = crate::Descriptor::of("a/b", b"");
        let source = crate::BlobSource::Bytes("".into());
        let mut writer = Vec::new();
        movable(client.pull_manifest(&reference));
        movable(client.tags(reference.repository()));
        movable(client.referrers(reference.repository(), &blob.digest, None));
        movable(client.pull_blob(reference.repository(), &blob, &mut writer, None));
        movable(client.push_blob(reference.repository(), &blob, &source, crate::UploadMode::Auto, None));
        movable(client.logout(reference.repository().registry()));
    }
}
