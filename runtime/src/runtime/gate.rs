//! The network gate for the embedder's own requests, such as the list of a server's tools before anybody has agreed to them.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::error::{Error, ToolError};
use crate::policy::{Credentials, Network, Secrets};
use crate::remote::{Gate, GateRequest, GateResponse};
use crate::sandbox::{Certificates, EgressGate, HttpClient, Usage, certificates};
use crate::tool::{Limits, Placement, RemoteAddress, SecretRequest};

/// Maximum number of requests by one gate.
const MAX_REQUESTS: usize = 512;
/// Maximum bytes that one gate receives.
const MAX_RECEIVED: usize = 32 << 20;

/// Opens gates to single hosts. Requests are checked, connected and bounded like those of a tool.
#[derive(Default)]
pub struct HostGate {
    client: Arc<HttpClient>,
}

/// Gate to one host.
pub struct OpenGate {
    egress: EgressGate,
    credentials: Option<Arc<Credentials>>,
}

impl HostGate {
    /// Creates a gate that trusts the certificates of PEM texts as roots, in addition to the system's roots.
    ///
    /// # Errors
    ///
    /// [`Error::Network`] if a text holds no certificate, or one that cannot be a root.
    pub fn with_roots<'p>(pems: impl IntoIterator<Item = &'p [u8]>) -> Result<Self, Error> {
        let mut roots = Certificates::new();
        for pem in pems {
            roots.extend(certificates(pem).map_err(Error::Network)?);
        }
        Ok(Self { client: Arc::new(HttpClient::new(Vec::new(), roots)) })
    }

    /// Opens a gate to the host of an address. Requests carry a secret as a bearer token, if one is named; reading it may block.
    ///
    /// # Errors
    ///
    /// [`Error::Secret`] if the secret cannot be read.
    pub fn open(&self, to: &RemoteAddress, token: Option<(&Secrets, &str)>) -> Result<OpenGate, Error> {
        let credentials = match token {
            None => None,
            Some((secrets, name)) => {
                let unfit = |error: crate::tool::PlacementError| Error::Secret {
                    name: name.to_owned(),
                    reason: error.to_string(),
                };
                let placement = Placement::header("authorization", "Bearer {}").map_err(unfit)?;
                let request = SecretRequest { name: name.to_owned(), host: to.host().clone(), placement };
                Some(Arc::new(secrets.open(&[request])?))
            }
        };
        let network = Arc::new(Network::of_host([to.destination().clone()]));
        let limits = Limits { requests: MAX_REQUESTS, received: MAX_RECEIVED, ..Limits::default() };
        let usage = Arc::new(Usage::default());
        let egress = EgressGate::new(self.client.clone(), network, credentials.clone(), limits, usage);
        Ok(OpenGate { egress, credentials })
    }

    /// Opens a gate in place of one with a token that the server has refused; `None` if the store has no other token.
    ///
    /// # Errors
    ///
    /// [`Error::Secret`] if the token cannot be renewed.
    pub fn renewed(
        &self,
        refused: &OpenGate,
        to: &RemoteAddress,
        (secrets, name): (&Secrets, &str),
    ) -> Result<Option<OpenGate>, Error> {
        match &refused.credentials {
            Some(credentials) if secrets.renew(credentials)? => self.open(to, Some((secrets, name))).map(Some),
            _ => Ok(None),
        }
    }
}

impl Gate for OpenGate {
    fn send(&self, request: GateRequest) -> BoxFuture<'_, Result<GateResponse, ToolError>> {
        self.egress.send(request)
    }
}
