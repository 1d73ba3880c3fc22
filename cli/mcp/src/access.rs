//! Access to a server over HTTP: tokens, people who sign in, and each client's request rate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use http::request::Parts;
use http::{HeaderMap, header};
use jiff::Timestamp;
use rmcp::model::Extensions;
use serde::{Deserialize, Serialize};

use super::declared_tokens::DeclaredTokens;
use super::refusal::Refusal;
use super::shared_tokens::SharedTokens;
use super::sign_in::SignIn;
use super::tokens::{PREFIX, Tokens, UnreadTokens};

/// Maximum number of clients whose rates are remembered.
const MAX_RATES: usize = 4096;
/// Identity of clients without a token.
const LOCAL: &str = "local";
/// Holder of what a request without an identity stores.
const UNIDENTIFIED: &str = "unidentified";
/// Scheme of tokens in a request.
const BEARER: &str = "bearer ";

/// Limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Requests at once.
    pub requests: usize,
    /// Size of a request's body in bytes.
    pub body: usize,
    /// Requests of a client in one second; twice as many can come at once.
    pub rate: u32,
    /// Conversations of the earlier revision at once.
    pub sessions: usize,
    /// Time within which the head of a request has arrived, and then its body.
    pub arrival: Duration,
    /// Time for running requests when the server ends.
    pub drain: Duration,
    /// Time for which requests are still accepted when the server ends, while it says that it is not ready.
    pub delay: Duration,
}

/// Client of a request, by its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    /// Name of the token or the person, for people; one name for all clients without a token.
    pub(super) name: Arc<str>,
    /// Permissions and rules of the client, in addition to those for all.
    pub(super) options: Arc<[String]>,
    pub(super) has_token: bool,
    /// Digest of the token, or a person's issuer and subject; one for all clients without a token. What a client owns belongs to
    /// its holder: a later token of the same name has another one.
    pub(super) holder: Arc<str>,
    /// Parts of the server that the client may use.
    pub(super) scopes: Arc<[TokenScope]>,
    /// End of the token.
    pub(super) expires: Option<Timestamp>,
}

/// Part of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    /// The protocol: the tools and their calls
    Calls,
    /// The figures of the server
    Metrics,
}

impl TokenScope {
    /// Name of the scope.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Metrics => "metrics",
        }
    }
}

/// Returns the holder of an owner's things; one for all clients without a token.
pub(super) fn holder(owner: Option<&str>) -> &str {
    owner.unwrap_or(LOCAL)
}

/// Returns the owner of a client's stored things, by its holder; `None` for clients without a token.
pub(super) fn owner(holder: &str) -> Option<&str> {
    (holder != LOCAL).then_some(holder)
}

impl Identity {
    /// Returns the identity of clients without a token.
    fn local() -> Self {
        let scopes = TokenScope::value_variants().into();
        Self {
            name: LOCAL.into(),
            options: Arc::new([]),
            has_token: false,
            holder: LOCAL.into(),
            scopes,
            expires: None,
        }
    }

    /// Creates an identity for a test.
    #[cfg(test)]
    pub(super) fn named(name: impl Into<Arc<str>>, options: Arc<[String]>) -> Self {
        let name = name.into();
        Self { holder: name.clone(), name, options, has_token: true, ..Self::local() }
    }

    /// Returns the identity of a request's client.
    pub(super) fn of(extensions: &Extensions) -> Self {
        match extensions.get::<Parts>() {
            None => Self::local(),
            // A request over HTTP without an identity is nobody's: it must not pass for one of a client without a token.
            Some(parts) => parts.extensions.get::<Self>().cloned().unwrap_or_else(|| Self {
                has_token: true,
                holder: UNIDENTIFIED.into(),
                scopes: Arc::new([]),
                ..Self::local()
            }),
        }
    }
}

/// Rules for access.
pub struct Access {
    /// Tokens; `None` if none is required.
    tokens: Option<Tokens>,
    /// Tokens of a file, besides.
    declared: Option<DeclaredTokens>,
    /// Tokens of a database, besides.
    shared: Option<Arc<SharedTokens>>,
    /// Sign-in of people, besides the tokens.
    sign_in: Option<SignIn>,
    rates: Mutex<HashMap<Arc<str>, Rate>>,
}

/// Requests that a client may still send.
#[derive(Debug, Clone, Copy)]
struct Rate {
    left: f64,
    at: Instant,
}

impl Access {
    /// Creates the access with the accepted tokens, if any.
    pub fn new(tokens: Option<Tokens>) -> Self {
        Self { tokens, declared: None, shared: None, sign_in: None, rates: Mutex::default() }
    }

    /// Accepts the tokens of a file, besides the others.
    #[must_use]
    pub fn with_declared(self, declared: DeclaredTokens) -> Self {
        Self { declared: Some(declared), ..self }
    }

    /// Accepts the tokens of a database, besides the others.
    #[must_use]
    pub fn with_shared(self, shared: Arc<SharedTokens>) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Accepts people who sign in, besides the tokens.
    #[must_use]
    pub fn with_sign_in(self, sign_in: SignIn) -> Self {
        Self { sign_in: Some(sign_in), ..self }
    }

    /// Returns the sign-in of people, if there is one.
    pub(super) fn sign_in(&self) -> Option<&SignIn> {
        self.sign_in.as_ref()
    }

    /// Returns the client's identity for one part of the server. A client may send `rate` requests in a second.
    ///
    /// # Errors
    ///
    /// The client has no valid token, or one that has expired or is for other parts, or sends too many requests.
    pub(super) async fn admit(&self, headers: &HeaderMap, scope: TokenScope, rate: u32) -> Result<Identity, Refusal> {
        let identity = match (&self.tokens, &self.sign_in) {
            (None, _) => Identity::local(),
            (Some(tokens), sign_in) => {
                let token = bearer(headers).ok_or(Refusal::NoToken)?;
                match sign_in.as_ref().filter(|_| !token.starts_with(PREFIX)) {
                    Some(sign_in) => sign_in.person(token, scope).await.map_err(Refusal::SignIn)?,
                    None => self.token_client(tokens, token).await?,
                }
            }
        };
        if identity.expires.is_some_and(|end| end <= Timestamp::now()) {
            return Err(Refusal::EndedToken);
        }
        if !identity.scopes.contains(&scope) {
            return Err(Refusal::Scope(scope));
        }
        match self.is_within_rate(&identity.holder, rate, Instant::now()) {
            true => Ok(identity),
            false => Err(Refusal::Rate),
        }
    }

    /// Returns the client with one among the server's own tokens.
    async fn token_client(&self, tokens: &Tokens, token: &str) -> Result<Identity, Refusal> {
        if let Some(declared) = &self.declared
            && let Some(client) = declared.client(token).await
        {
            return Ok(client);
        }
        let client = tokens.client(token).map_err(|UnreadTokens| Refusal::UnreadTokens)?;
        let client = match (client, &self.shared) {
            (None, Some(shared)) => shared.client(token).await?,
            (client, _) => client,
        };
        client.ok_or(Refusal::UnknownToken)
    }

    fn is_within_rate(&self, holder: &Arc<str>, per_second: u32, now: Instant) -> bool {
        let most = f64::from(per_second) * 2.0;
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.len() >= MAX_RATES && !rates.contains_key(holder) {
            // Those that are full again are as good as new.
            rates.retain(|_, rate| rate.refilled(per_second, now) < most);
            if rates.len() >= MAX_RATES {
                return false;
            }
        }
        let rate = rates.entry(holder.clone()).or_insert(Rate { left: most, at: now });
        *rate = Rate { left: rate.refilled(per_second, now), at: now };
        let is_within = rate.left >= 1.0;
        if is_within {
            rate.left -= 1.0;
        }
        is_within
    }
}

impl Rate {
    fn refilled(&self, rate: u32, now: Instant) -> f64 {
        let rate = f64::from(rate);
        (self.left + now.duration_since(self.at).as_secs_f64() * rate).min(rate * 2.0)
    }
}

/// Returns the token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let value = all.next()?.to_str().ok()?;
    if all.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_at_checked(BEARER.len())?;
    scheme.eq_ignore_ascii_case(BEARER).then_some(token.trim()).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (header::AUTHORIZATION, value.parse().unwrap())).collect()
    }

    #[test]
    fn one_token_of_the_scheme_is_read() {
        assert_eq!(bearer(&headers(&["Bearer a"])), Some("a"));
        assert_eq!(bearer(&headers(&["bEARER a"])), Some("a"));
        for values in [&[][..], &["a"], &["Basic a"], &["Bearer "], &["Bearer"], &["Bearer a", "Bearer b"]] {
            assert_eq!(bearer(&headers(values)), None, "{values:?}");
        }
    }

    #[test]
    fn a_request_over_http_without_an_identity_is_not_one_of_a_local_client() {
        let mut extensions = Extensions::new();
        assert_eq!(owner(&Identity::of(&extensions).holder), None, "standard streams");
        let (parts, ()) = http::Request::new(()).into_parts();
        extensions.insert(parts);
        let nobody = Identity::of(&extensions);
        assert_eq!((owner(&nobody.holder), nobody.scopes.len()), (Some(UNIDENTIFIED), 0));
    }

    #[test]
    fn a_client_has_its_own_rate_and_gets_it_back() {
        let access = Access::new(None);
        let now = Instant::now();
        assert_eq!((0..100).filter(|_| access.is_within_rate(&"a".into(), 10, now)).count(), 20);
        assert!(access.is_within_rate(&"b".into(), 10, now));
        let later = now + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| access.is_within_rate(&"a".into(), 10, later)).count(), 10);
    }

    #[test]
    fn the_number_of_remembered_clients_is_bounded() {
        let access = Access::new(None);
        let now = Instant::now();
        assert!((0..MAX_RATES).all(|client| access.is_within_rate(&client.to_string().into(), 1, now)));
        assert!(!access.is_within_rate(&"one more".into(), 1, now));
        assert!(access.is_within_rate(&"one more".into(), 1, now + Duration::from_secs(2)), "the others are forgotten");
    }
}
