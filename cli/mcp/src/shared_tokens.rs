//! Tokens of clients in the database that servers share. Only the digest of a token is there, and a change holds at all servers
//! within half a second.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use toolcrib::source::digest;
use toolcrib_base::render;
use toolcrib_shared_state::{PostgresStore, StateKind, StateName, StateStore, StoreError};

use super::access::Identity;
use super::refusal::Refusal;
use super::tokens::{TokenRecord, TokenRights, name_taken, too_many};

/// Age at which the tokens are read again.
const MAX_AGE: Duration = Duration::from_millis(500);
/// Age at which they are read again for a token that is not among them: it may be new.
const MAX_AGE_UNKNOWN: Duration = Duration::from_millis(100);

/// Tokens in a database.
#[derive(Debug)]
pub struct SharedTokens {
    store: Arc<PostgresStore>,
    read: Mutex<Option<ListedTokens>>,
}

/// Clients by their tokens' digests, or a failure, as of a time.
#[derive(Debug)]
struct ListedTokens {
    begun: Instant,
    clients: Option<HashMap<String, Identity>>,
}

impl SharedTokens {
    /// Uses a database.
    pub fn new(store: Arc<PostgresStore>) -> Self {
        Self { store, read: Mutex::default() }
    }

    /// Lists the tokens, by their names.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn list(&self) -> Result<Vec<TokenRecord>, StoreError> {
        let values = self.store.list(StateKind::Token, "").await?;
        let record = |value: Vec<u8>| match serde_json::from_slice(&value) {
            Ok(record) => Some(record),
            Err(error) => {
                render::warning(&format!("a token in the shared store is not understood, and not accepted: {error}"));
                None
            }
        };
        let mut all: Vec<TokenRecord> = values.into_iter().filter_map(record).collect();
        all.sort_by(|one, other| (one.created, &one.name).cmp(&(other.created, &other.name)));
        Ok(all)
    }

    /// Creates a token, and returns it. It is shown once and not stored.
    ///
    /// # Errors
    ///
    /// The name is invalid or taken, there are too many tokens, or the database does not answer.
    pub async fn create(&self, name: &str, rights: TokenRights) -> anyhow::Result<String> {
        let (token, record) = TokenRecord::create(name, rights)?;
        match self.store.insert(entry(name), serde_json::to_vec(&record)?).await {
            Ok(None) => Ok(token),
            Ok(Some(_)) => Err(name_taken(name).into()),
            Err(StoreError::Full(_)) => Err(too_many().into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Revokes a token; returns `false` if there is none of the name.
    ///
    /// # Errors
    ///
    /// The database does not answer: the token may be revoked.
    pub async fn revoke(&self, name: &str) -> Result<bool, StoreError> {
        self.store.forget(&entry(name)).await
    }

    /// Returns the client with a token; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The database does not answer, so no client is known.
    pub(super) async fn client(&self, token: &str) -> Result<Option<Identity>, Refusal> {
        let digest = digest(token.as_bytes());
        // One request reads for all that wait meanwhile.
        let mut read = self.read.lock().await;
        let known = read.as_ref().filter(|read| read.begun.elapsed() < MAX_AGE);
        match known {
            Some(ListedTokens { clients: None, .. }) => return Err(Refusal::Store),
            Some(ListedTokens { clients: Some(clients), begun }) => {
                let client = clients.get(&digest);
                if client.is_some() || begun.elapsed() < MAX_AGE_UNKNOWN {
                    return Ok(client.cloned());
                }
            }
            None => {}
        }
        let begun = Instant::now();
        let listed = self.list().await;
        let clients = listed.map(|all| all.into_iter().map(TokenRecord::client).collect::<HashMap<_, _>>());
        let found = match &clients {
            Ok(clients) => Ok(clients.get(&digest).cloned()),
            Err(_) => Err(Refusal::Store),
        };
        // A failure counts from its end: the others that waited for it do not wait as long again.
        let begun = if clients.is_ok() { begun } else { Instant::now() };
        *read = Some(ListedTokens { begun, clients: clients.ok() });
        found
    }
}

fn entry(name: &str) -> StateName {
    StateName::new(StateKind::Token, "", name)
}
