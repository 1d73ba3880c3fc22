//! Client for the servers of remote tools: pinned definitions are compared before the first call and at times after it, and each
//! conversation has one with a server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::Mutex as AsyncMutex;
use toolcrib::remote::{Gate, RemoteAnswer, RemoteCall, RemoteError, RemoteTools};
use toolcrib::tool::{Remote, RemoteServer};
use toolcrib::{Outcome, ToolError};

use super::fault::Fault;
use super::headers::{marked, of_arguments};
use super::listing::{Listing, list};
use super::message::aside;
use super::peer::{Conversation, Peer, has_handshake};
use super::{pin, result};

/// Maximum age of listed definitions.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Maximum number of conversations that are kept; the oldest is forgotten.
const MAX_CONVERSATIONS: usize = 256;
/// Maximum time for the end of a conversation that is not kept.
const MAX_END: Duration = Duration::from_secs(1);

/// Server as a user of it: its address and the token that it gets.
type ServerKey = (String, Option<String>);

/// Client of remote servers. It keeps what it knows of them as long as it exists.
#[derive(Default)]
pub struct ServerClient {
    listings: Mutex<HashMap<ServerKey, Arc<AsyncMutex<Option<KnownListing>>>>>,
    conversations: Mutex<Vec<(ServerKey, String, Conversation)>>,
}

/// Definitions of a server, at the time at which they were listed.
struct KnownListing {
    at: Instant,
    listing: Arc<Listing>,
}

impl RemoteTools for ServerClient {
    fn call<'a>(
        &'a self,
        call: RemoteCall<'a>,
        gate: &'a dyn Gate,
    ) -> BoxFuture<'a, Result<RemoteAnswer, RemoteError>> {
        Box::pin(self.make(call, gate))
    }
}

impl ServerClient {
    async fn make(&self, call: RemoteCall<'_>, gate: &dyn Gate) -> Result<RemoteAnswer, RemoteError> {
        let Remote { server, .. } = call.remote;
        let key = (server.address.as_str().to_owned(), server.secret.clone());
        let known = call.conversation.and_then(|name| self.conversation(&key, name));
        let is_known = known.is_some();
        let mut peer = match known {
            Some(conversation) => Peer::resume(gate, &server.address, conversation),
            None => {
                Peer::open(gate, &server.address, &server.revision).await.map_err(|fault| outdated(fault, server))?
            }
        };
        let mut ended = self.call_on(&mut peer, &call, &key).await;
        if is_known && matches!(ended, Err(CallFault::Server(Fault::Forgotten))) {
            // The server has refused the conversation, and so has done nothing.
            peer = Peer::open(gate, &server.address, &server.revision).await?;
            ended = self.call_on(&mut peer, &call, &key).await;
        }
        if peer.has_changed {
            *self.listing(&key).lock().await = None;
        }
        match call.conversation {
            Some(name) => self.keep(key, name, peer.conversation.clone()),
            None => drop(tokio::time::timeout(MAX_END, peer.end()).await),
        }
        ended.map_err(|fault| match fault {
            CallFault::Server(fault) => fault.into(),
            CallFault::Pin(difference) => RemoteError::Failed(ToolError::new(Outcome::Denied, refusal(&difference))),
        })
    }

    /// Compares the definition of the tool, and calls it.
    async fn call_on(
        &self,
        peer: &mut Peer<'_>,
        call: &RemoteCall<'_>,
        key: &ServerKey,
    ) -> Result<RemoteAnswer, CallFault> {
        let listing = self.present(peer, key).await?;
        if let Some(difference) = pin::difference(call.remote, &listing) {
            // The server may have changed it back, or the program may be told to look again.
            *self.listing(key).lock().await = None;
            return Err(CallFault::Pin(difference));
        }
        let pinned = &call.remote.pinned;
        let headers = match has_handshake(&peer.conversation.revision) {
            true => Vec::new(),
            false => {
                let marked = marked(&pinned["inputSchema"]).map_err(Fault::Foreign)?;
                of_arguments(&marked, call.arguments)
            }
        };
        let params = Map::from_iter([
            ("name".to_owned(), Value::from(call.remote.name.as_str())),
            ("arguments".to_owned(), call.arguments.clone()),
        ]);
        let progress = |done, total| call.progress(done, total);
        let found = peer.ask("tools/call", params, &headers, Some(&progress)).await?;
        let has_schema = pinned.get("outputSchema").is_some_and(Value::is_object);
        // It decodes media.
        Ok(aside(move || result::answer(&found, has_schema)).await?)
    }

    /// Returns the present definitions of a server, which are asked for again after a while.
    async fn present(&self, peer: &mut Peer<'_>, key: &ServerKey) -> Result<Arc<Listing>, Fault> {
        let cell = self.listing(key);
        let mut known = cell.lock().await;
        if let Some(known) = known.as_ref().filter(|known| known.at.elapsed() < MAX_AGE) {
            return Ok(known.listing.clone());
        }
        let listing = Arc::new(list(peer).await?);
        *known = Some(KnownListing { at: Instant::now(), listing: listing.clone() });
        Ok(listing)
    }

    fn listing(&self, key: &ServerKey) -> Arc<AsyncMutex<Option<KnownListing>>> {
        let mut listings = self.listings.lock().unwrap_or_else(PoisonError::into_inner);
        listings.entry(key.clone()).or_default().clone()
    }

    fn conversation(&self, key: &ServerKey, name: &str) -> Option<Conversation> {
        let known = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|(server, of, _)| server == key && of == name).map(|(.., conversation)| conversation.clone())
    }

    fn keep(&self, key: ServerKey, name: &str, conversation: Conversation) {
        let mut known = self.conversations.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(server, of, _)| !(*server == key && of == name));
        if known.len() >= MAX_CONVERSATIONS {
            known.remove(0);
        }
        known.push((key, name.to_owned(), conversation));
    }
}

/// Reason why a call was not made or failed.
enum CallFault {
    Server(Fault),
    /// The definition of the tool differs from the pinned one.
    Pin(String),
}

impl From<Fault> for CallFault {
    fn from(fault: Fault) -> Self {
        Self::Server(fault)
    }
}

fn refusal(difference: &str) -> String {
    format!("{difference}, which was not approved; `toolcrib update` shows the current definition and asks")
}

/// Names the way out for a server that speaks another revision than it did.
fn outdated(fault: Fault, server: &RemoteServer) -> RemoteError {
    match fault {
        Fault::Revision(_) | Fault::Status(400..=499, _) => {
            let message = format!("{fault}; it spoke {} when it was installed: `toolcrib update`", server.revision);
            RemoteError::Failed(ToolError::new(Outcome::Upstream, message))
        }
        fault => fault.into(),
    }
}
