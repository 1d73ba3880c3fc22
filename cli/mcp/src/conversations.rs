//! Conversations of the earlier revision: their number is limited, and each belongs to the client that began it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::request::Parts;
use http::{HeaderMap, Method};
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::access::Identity;
use super::refusal::Refusal;
use super::skills::SCHEME;

/// Header with the identifier of a conversation.
const SESSION: &str = "mcp-session-id";
/// Header with the revision of a request.
const VERSION: &str = "mcp-protocol-version";
/// Time without a message after which a conversation ends. It is longer than every call.
const MAX_IDLE: Duration = Duration::from_hours(24);
/// Time without a request after which a conversation makes room for another.
const IDLE: Duration = Duration::from_mins(10);

/// Conversations that are kept between requests.
pub(super) struct Conversations {
    sessions: Arc<LocalSessionManager>,
    /// Maximum number of conversations.
    most: usize,
    /// Time without a request after which a conversation makes room.
    idle: Duration,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Clients by the identifier of their conversation. Conversations that have ended leave once there is no room.
    owners: HashMap<String, Owner>,
    /// Number of conversations that are about to begin.
    beginning: usize,
}

/// Client of a conversation.
#[derive(Debug)]
struct Owner {
    /// Holder of the client's token.
    client: Arc<str>,
    /// Time of the last request.
    used: Instant,
}

/// Room for a conversation that is about to begin.
pub(super) struct Beginning<'a>(&'a Conversations);

impl Conversations {
    pub(super) fn new(sessions: Arc<LocalSessionManager>, most: usize) -> Self {
        Self { sessions, most, idle: IDLE, known: Mutex::default() }
    }

    /// Checks that a request's conversation, if it is part of one, belongs to its client.
    ///
    /// # Errors
    ///
    /// The conversation of another client is as unknown as one that has ended.
    pub(super) fn check(&self, headers: &HeaderMap, client: &Identity) -> Result<(), Refusal> {
        let Some(session) = headers.get(SESSION) else { return Ok(()) };
        let mut known = self.known();
        let owner = session.to_str().ok().and_then(|session| known.owners.get_mut(session));
        let owner = owner.filter(|owner| owner.client == client.holder).ok_or(Refusal::UnknownConversation)?;
        owner.used = Instant::now();
        Ok(())
    }

    /// Makes room for a conversation if a request begins one.
    ///
    /// # Errors
    ///
    /// There are too many conversations.
    pub(super) async fn begin(
        &self,
        head: &Parts,
        body: &[u8],
        client: &Identity,
    ) -> Result<Option<Beginning<'_>>, Refusal> {
        if head.method != Method::POST || head.headers.contains_key(SESSION) || !may_begin(body) {
            return Ok(None);
        }
        if let Some(idle) = self.make_room(client).await {
            // It fails only if the conversation has ended meanwhile.
            let _ = self.sessions.close_session(&idle.into()).await;
        }
        let sessions = self.sessions.sessions.read().await.len();
        let mut known = self.known();
        if known.is_full(sessions, self.most) {
            return Err(Refusal::Conversations);
        }
        known.beginning += 1;
        Ok(Some(Beginning(self)))
    }

    /// Forgets the conversations that have ended if there is no room. If there is still none, returns the one to end: the one
    /// that was idle for the longest time, or else one of a client with more conversations than this one.
    async fn make_room(&self, client: &Identity) -> Option<String> {
        let sessions = self.sessions.sessions.read().await;
        let mut known = self.known();
        if !known.is_full(sessions.len(), self.most) {
            return None;
        }
        known.owners.retain(|session, _| sessions.contains_key(session.as_str()));
        if !known.is_full(sessions.len(), self.most) {
            return None;
        }
        let session = known.idlest(|owner| owner.used.elapsed() >= self.idle).or_else(|| {
            let greedy = known.greediest(&client.holder)?;
            known.idlest(|owner| owner.client == greedy)
        })?;
        known.owners.remove(&session);
        Some(session)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Returns `true` if no conversation can begin. A client that leaves before the answer leaves one without an owner until
    /// the library ends it.
    fn is_full(&self, sessions: usize, most: usize) -> bool {
        sessions.max(self.owners.len() + self.beginning) >= most
    }

    /// Returns the conversation of such an owner without a request for the longest time.
    fn idlest(&self, is_owner: impl Fn(&Owner) -> bool) -> Option<String> {
        let some = self.owners.iter().filter(|(_, owner)| is_owner(owner));
        some.min_by_key(|(_, owner)| owner.used).map(|(session, _)| session.clone())
    }

    /// Returns the client with the most conversations if `client` would have fewer with one more.
    fn greediest(&self, client: &Arc<str>) -> Option<Arc<str>> {
        let mut numbers: HashMap<&Arc<str>, usize> = HashMap::new();
        for owner in self.owners.values() {
            *numbers.entry(&owner.client).or_default() += 1;
        }
        let own = numbers.get(client).copied().unwrap_or_default();
        let (greedy, number) = numbers.into_iter().max_by_key(|(_, number)| *number)?;
        (number > own + 1).then(|| greedy.clone())
    }
}

impl Beginning<'_> {
    /// Remembers the client of the conversation that an answer begins.
    pub(super) fn settle(self, answer: &HeaderMap, client: Arc<str>) {
        if let Some(session) = answer.get(SESSION).and_then(|session| session.to_str().ok()) {
            self.0.known().owners.insert(session.to_owned(), Owner { client, used: Instant::now() });
        }
    }
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        self.0.known().beginning -= 1;
    }
}

/// Creates the keeper of conversations.
pub(super) fn sessions() -> LocalSessionManager {
    let mut sessions = LocalSessionManager::default();
    sessions.session_config.keep_alive = Some(MAX_IDLE);
    sessions
}

/// Returns the revision that a request states: in its head, or in its body if it begins a conversation.
pub(super) fn version<'a>(headers: &'a HeaderMap, body: &'a [u8]) -> Option<Cow<'a, str>> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        params: Parameters<'a>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Parameters<'a> {
        #[serde(borrow)]
        protocol_version: Cow<'a, str>,
    }
    match headers.get(VERSION) {
        Some(version) => version.to_str().ok().map(Cow::Borrowed),
        None => serde_json::from_slice::<Message<'_>>(body).ok().map(|message| message.params.protocol_version),
    }
}

/// Returns `true` if a message may be the first of a conversation: unless it is clearly another one.
fn may_begin(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: Cow<'a, str>,
    }
    serde_json::from_slice::<Message<'_>>(body).map_or(true, |message| message.method == "initialize")
}

/// Request of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CallRequest {
    /// `true` if it goes on with a call after a question.
    pub(super) is_continued: bool,
    /// `true` if its client states a key in the metadata.
    pub(super) has_key: bool,
}

/// Returns `Some` for a message that calls a tool. A message that cannot be read counts as a call.
pub(super) fn call(body: &[u8]) -> Option<CallRequest> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        method: Option<Cow<'a, str>>,
        params: Option<Parameters>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Parameters {
        request_state: Option<IgnoredAny>,
        uri: Option<String>,
        #[serde(rename = "_meta")]
        meta: Option<Metadata>,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(rename = "toolcrib/idempotencyKey")]
        key: Option<IgnoredAny>,
    }
    let Ok(message) = serde_json::from_slice::<Message<'_>>(body) else { return Some(CallRequest::default()) };
    // A file of a skill is read by a call.
    let is_of_skill = |parameters: &Parameters| parameters.uri.as_ref().is_some_and(|uri| uri.starts_with(SCHEME));
    let is_call = message.method.is_some_and(|method| match &*method {
        "tools/call" => true,
        "resources/read" => message.params.as_ref().is_some_and(is_of_skill),
        _ => false,
    });
    let params = message.params.filter(|_| is_call);
    is_call.then(|| CallRequest {
        is_continued: params.as_ref().is_some_and(|params| params.request_state.is_some()),
        has_key: params.and_then(|params| params.meta).is_some_and(|meta| meta.key.is_some()),
    })
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const FIRST: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;

    fn head(session: Option<&str>) -> Parts {
        let mut request = Request::post("/mcp");
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn named(name: &str) -> Identity {
        Identity::named(name, Arc::new([]))
    }

    #[test]
    fn a_request_states_its_revision_in_its_head_or_in_its_first_message() {
        let of = |header: Option<&str>, body: &[u8]| {
            let headers = header.map(|header| (VERSION.parse().unwrap(), header.parse().unwrap()));
            version(&headers.into_iter().collect(), body).map(Cow::into_owned)
        };
        let first = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}"#;
        assert_eq!(of(None, first).as_deref(), Some("2025-06-18"));
        assert_eq!(of(Some("2025-11-25"), first).as_deref(), Some("2025-11-25"));
        for body in [FIRST, b"", b"{", b"[]", br#"{"params":{"protocolVersion":1}}"#] {
            assert_eq!(of(None, body), None, "{}", String::from_utf8_lossy(body));
        }
    }

    #[test]
    fn a_message_begins_a_conversation_unless_it_is_clearly_another_one() {
        for body in [
            FIRST,
            br#"{"method":"\u0069nitialize"}"#,
            br#"{"method":"tools/list","method":"initialize"}"#,
            br#"{"method":"initialize","method":"tools/list"}"#,
            b"{",
            b"",
        ] {
            assert!(may_begin(body), "{}", String::from_utf8_lossy(body));
        }
        for body in [&br#"{"id":1,"method":"tools/list"}"#[..], br#"{"params":{"method":"initialize"},"method":"x"}"#] {
            assert!(!may_begin(body), "{}", String::from_utf8_lossy(body));
        }
    }

    #[tokio::test]
    async fn the_number_of_conversations_is_bounded_and_the_room_of_an_ended_one_is_free() {
        let sessions = Arc::new(LocalSessionManager::default());
        let all = Conversations::new(sessions.clone(), 1);
        let ada = named("ada");
        let Ok(Some(beginning)) = all.begin(&head(None), FIRST, &ada).await else { panic!("there is room") };
        assert!(
            matches!(all.begin(&head(None), FIRST, &ada).await, Err(Refusal::Conversations)),
            "one is about to begin"
        );
        drop(beginning);
        let Ok(Some(beginning)) = all.begin(&head(None), FIRST, &ada).await else { panic!("there is room again") };
        let (session, _transport) = sessions.create_session().await.unwrap();
        beginning.settle(&head(Some(&*session)).headers, ada.holder.clone());
        assert!(matches!(all.begin(&head(None), FIRST, &ada).await, Err(Refusal::Conversations)), "one has begun");
        assert!(matches!(all.begin(&head(None), br#"{"method":"tools/list"}"#, &ada).await, Ok(None)));
        assert!(matches!(all.begin(&head(Some(&*session)), FIRST, &ada).await, Ok(None)), "its own requests");
        assert_eq!(all.check(&head(Some(&*session)).headers, &ada), Ok(()));
        for (session, client) in [(&*session, "bob"), ("other", "ada")] {
            let refused = all.check(&head(Some(session)).headers, &named(client));
            assert_eq!(refused, Err(Refusal::UnknownConversation), "{session}, {client}");
        }
        let all = Conversations { idle: Duration::ZERO, ..all };
        assert!(matches!(all.begin(&head(None), FIRST, &ada).await, Ok(Some(_))), "an idle one has ended");
        assert!(!sessions.sessions.read().await.contains_key(&session));
        assert!(matches!(all.begin(&head(None), FIRST, &ada).await, Ok(Some(_))), "it has ended");
        let (_session, _transport) = sessions.create_session().await.unwrap();
        assert!(
            matches!(all.begin(&head(None), FIRST, &ada).await, Err(Refusal::Conversations)),
            "one without an owner"
        );
    }
    #[tokio::test]
    async fn the_client_with_the_most_conversations_makes_room_for_one_with_fewer() {
        let sessions = Arc::new(LocalSessionManager::default());
        let all = Conversations::new(sessions.clone(), 3);
        let (ada, bob) = (named("ada"), named("bob"));
        let begin = async |client: &Identity| match all.begin(&head(None), FIRST, client).await {
            Ok(Some(beginning)) => {
                let (session, _transport) = sessions.create_session().await.unwrap();
                beginning.settle(&head(Some(&*session)).headers, client.holder.clone());
                Ok(session)
            }
            Ok(None) => panic!("the message begins one"),
            Err(refusal) => Err(refusal),
        };
        let first = begin(&ada).await.unwrap();
        begin(&ada).await.unwrap();
        begin(&ada).await.unwrap();
        assert_eq!(begin(&ada).await, Err(Refusal::Conversations), "nobody has more");
        let own = begin(&bob).await.unwrap();
        assert!(!sessions.sessions.read().await.contains_key(&first), "the idlest of ada");
        assert_eq!(begin(&bob).await, Err(Refusal::Conversations), "two and one are fair");
        assert_eq!(all.check(&head(Some(&*own)).headers, &bob), Ok(()));
    }
}
