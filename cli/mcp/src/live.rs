//! Settings of a server over HTTP that can change while it runs. A request has those of its begin until its end.

use std::sync::{Arc, Mutex, PoisonError};

use http::{Request, header};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolcrib_base::http_server::{Hosts, Origin, Origins, ServedHost};

use super::access::Limits;
use super::handler::Handler;
use super::refusal::Refusal;

/// Settings of a server over HTTP. Of a later value, `connections`, `requests` and `sessions` of the limits are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSettings {
    /// Hosts that requests may name.
    pub hosts: Vec<ServedHost>,
    /// Origins of web pages that may send requests, besides the server's own on a loopback address.
    pub origins: Vec<Origin>,
    /// Limits of connections and requests.
    pub limits: Limits,
}

/// Service of the protocol with the settings at one time.
pub(super) struct LiveService {
    pub(super) hosts: Hosts,
    pub(super) origins: Origins,
    pub(super) limits: Limits,
    pub(super) service: StreamableHttpService<Handler, LocalSessionManager>,
}

/// Parts of the service that never change.
pub(super) struct ServiceParts {
    pub(super) handler: Handler,
    pub(super) sessions: Arc<LocalSessionManager>,
    /// Origins of the server itself.
    pub(super) own_origins: Vec<Origin>,
    pub(super) is_stateless: bool,
    /// Ends all requests.
    pub(super) end: CancellationToken,
}

/// The present service. A request that begins after a change of the settings has the changed ones.
pub(super) struct PresentService {
    parts: ServiceParts,
    present: Mutex<Present>,
}

struct Present {
    settings: watch::Receiver<LiveSettings>,
    service: Arc<LiveService>,
}

impl PresentService {
    pub(super) fn new(parts: ServiceParts, mut settings: watch::Receiver<LiveSettings>) -> Self {
        let first = settings.borrow_and_update().clone();
        let service = Arc::new(parts.serve(first));
        Self { parts, present: Mutex::new(Present { settings, service }) }
    }

    /// Returns the service with the present settings.
    pub(super) fn get(&self) -> Arc<LiveService> {
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        // Without a sender nobody changes them.
        if present.settings.has_changed().unwrap_or(false) {
            let mut settings = present.settings.borrow_and_update().clone();
            let Limits { connections, requests, sessions, .. } = present.service.limits;
            settings.limits = Limits { connections, requests, sessions, ..settings.limits };
            present.service = Arc::new(self.parts.serve(settings));
        }
        present.service.clone()
    }
}

impl ServiceParts {
    /// Creates the service with some settings, over the conversations of all.
    fn serve(&self, settings: LiveSettings) -> LiveService {
        let LiveSettings { hosts, mut origins, limits } = settings;
        origins.extend(self.own_origins.iter().cloned());
        let (hosts, origins) = (Hosts::new(hosts), Origins::new(origins));
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts.texts())
            .with_allowed_origins(origins.texts())
            .enforce_origin_validation()
            .with_legacy_session_mode(!self.is_stateless)
            .with_json_response(self.is_stateless)
            .with_max_request_body_bytes(limits.body)
            .with_cancellation_token(self.end.clone());
        let each = self.handler.clone();
        let service = StreamableHttpService::new(move || Ok(each.for_conversation()), self.sessions.clone(), config);
        LiveService { hosts, origins, limits, service }
    }
}

impl LiveService {
    /// Checks the host that a request names, and the origin of its page.
    ///
    /// # Errors
    ///
    /// The host is not served, or the page is foreign.
    pub(super) fn check_origin<T>(&self, request: &Request<T>) -> Result<(), Refusal> {
        let headers = request.headers();
        if !self.hosts.includes(request.uri(), headers) {
            return Err(Refusal::Host);
        }
        if headers.contains_key(header::ORIGIN) && self.origins.allowed(headers).is_none() {
            return Err(Refusal::Origin);
        }
        Ok(())
    }
}
