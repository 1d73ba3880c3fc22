//! One request and its response: scheme and address checks, time limits, redirects, authorization.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use reqwest::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Body, Method, StatusCode, Url};

use crate::address::{self, AddressRefused, Role};
use crate::authorization::{Authorization, Scope};
use crate::error::{Error, RedirectError, What};
use crate::limits::{MAX_REDIRECTS, MAX_URL_BYTES};
use crate::reply::Reply;
use crate::session::{Session, authority};

/// Request to the registry.
pub(crate) struct Exchange<'a> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Access that the request needs. `None` is the API check, which needs a credential but no repository.
    pub(crate) scope: &'a Scope,
    pub(crate) what: What,
    /// Body, created for each sending.
    pub(crate) payload: Option<&'a dyn Payload>,
}

/// Body that can be sent several times.
pub(crate) trait Payload: Send + Sync {
    /// Returns the length in bytes.
    fn length(&self) -> u64;
    /// Returns the body from its start. It adds the bytes handed to the connection to `sent`.
    fn body(&self, sent: Arc<AtomicU64>) -> Result<Body, Error>;
}

impl Payload for bytes::Bytes {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn body(&self, _sent: Arc<AtomicU64>) -> Result<Body, Error> {
        Ok(Body::from(self.clone()))
    }
}

/// Single message to a host.
struct Message<'a> {
    method: &'a Method,
    url: &'a Url,
    headers: &'a HeaderMap,
    payload: Option<&'a dyn Payload>,
    authorization: Option<&'a Authorization>,
    role: Role,
}

impl<'a> Exchange<'a> {
    pub(crate) fn new(method: Method, url: Url, scope: &'a Scope, what: What) -> Self {
        Self { method, url, headers: HeaderMap::new(), scope, what, payload: None }
    }

    pub(crate) fn header(mut self, name: reqwest::header::HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }
}

impl Session {
    /// Sends a request. A challenge is met once; redirects of `GET` and `HEAD` are followed.
    ///
    /// Every status but 401 and redirects is returned. The future is boxed, so that crates that use the client do not compile its
    /// HTTP again.
    pub(crate) fn send<'s>(&'s self, exchange: &'s Exchange<'_>) -> BoxFuture<'s, Result<Reply, Error>> {
        Box::pin(async move {
            let remembered = self.remembered(exchange.scope);
            let (reply, own) = self.follow(exchange, remembered.as_ref()).await?;
            if reply.status() != StatusCode::UNAUTHORIZED || !own {
                return Ok(reply);
            }
            self.forget(exchange.scope);
            let challenge = reply.challenge()?;
            let host = self.registry.to_string();
            let refused = |sent| Error::Unauthorized { host: host.clone(), what: exchange.what, status: 401, sent };
            let Some(challenge) = challenge else { return Err(refused(remembered.is_some())) };
            let authorization = self.authorize(&challenge, exchange.scope).await?;
            let Some(authorization) = authorization else { return Err(refused(false)) };
            let (reply, own) = self.follow(exchange, Some(&authorization)).await?;
            if reply.status() == StatusCode::UNAUTHORIZED && own {
                return Err(refused(!authorization.anonymous));
            }
            self.remember(exchange.scope, authorization);
            Ok(reply)
        })
    }

    /// Sends a request and follows redirects. Returns `true` if the response is the registry's own.
    ///
    /// Once a redirect has left the registry, the authorization is not sent again, even if another redirect returns.
    async fn follow(
        &self,
        exchange: &Exchange<'_>,
        authorization: Option<&Authorization>,
    ) -> Result<(Reply, bool), Error> {
        let mut url = exchange.url.clone();
        let mut own = true;
        for _ in 0..=MAX_REDIRECTS {
            own = own && self.is_own(&url);
            let role = if own { Role::Registry } else { Role::Redirect };
            let authorization = authorization.filter(|_| own);
            let Exchange { method, headers, payload, .. } = exchange;
            let message = Message { method, url: &url, headers, payload: *payload, authorization, role };
            let reply = self.once(&message).await?;
            if !matches!(reply.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok((reply, own));
            }
            let refused = |reason| Error::Redirect { host: reply.host.clone(), reason };
            if !matches!(exchange.method, Method::GET | Method::HEAD) {
                return Err(refused(RedirectError::NotFollowed));
            }
            url = next_url(&url, reply.header(LOCATION.as_str())).map_err(refused)?;
        }
        Err(Error::Redirect { host: authority(&url), reason: RedirectError::TooMany })
    }

    /// Sends a request to a token server. Redirects are not followed.
    pub(crate) async fn send_to_token_server(
        &self,
        method: Method,
        url: &Url,
        headers: &HeaderMap,
        payload: Option<&dyn Payload>,
        authorization: Option<&Authorization>,
    ) -> Result<Reply, Error> {
        let role = if self.is_own(url) { Role::Registry } else { Role::TokenServer };
        let reply = self.once(&Message { method: &method, url, headers, payload, authorization, role }).await?;
        if reply.status().is_redirection() {
            return Err(Error::Redirect { host: reply.host, reason: RedirectError::NotFollowed });
        }
        Ok(reply)
    }

    async fn once(&self, message: &Message<'_>) -> Result<Reply, Error> {
        let url = message.url;
        self.check_scheme(url)?;
        let host = authority(url);
        let pool = self.pool(message.role);
        let refused = |refused: &AddressRefused| Error::AddressRefused {
            host: host.clone(),
            address: refused.address,
            role: message.role,
        };
        // A URL with an address involves no name lookup, so it is judged here.
        if let Some(address) = address::literal(url) {
            pool.gate.judge(url.host_str().unwrap_or_default(), address).map_err(|error| refused(&error))?;
        }
        let mut request = pool
            .http
            .request(message.method.clone(), url.clone())
            .headers(message.headers.clone())
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(authorization) = message.authorization {
            let value =
                authorization.header().ok_or_else(|| Error::malformed(What::Token, "it does not fit a header"))?;
            request = request.header(AUTHORIZATION, value);
        }
        let sent = Arc::new(AtomicU64::new(0));
        if let Some(payload) = message.payload {
            request = request.header(CONTENT_LENGTH, payload.length()).body(payload.body(Arc::clone(&sent))?);
        }
        let mut sending = std::pin::pin!(request.send());
        let mut before = 0;
        let mut allowed = self.limits().connect.saturating_add(self.limits().stall);
        let response = loop {
            match tokio::time::timeout(allowed, &mut sending).await {
                Ok(response) => break response,
                Err(_) => {
                    let now = sent.load(Ordering::Relaxed);
                    if now == before {
                        return Err(Error::Stalled { host, limit: self.limits().stall });
                    }
                    before = now;
                    allowed = self.limits().stall;
                }
            }
        };
        let response = response.map_err(|error| match address_refused(&error) {
            Some(error) => refused(error),
            None => Error::Connection { host: host.clone(), source: Box::new(error.without_url()) },
        })?;
        Reply::new(response, host)
    }
}

/// Resolves the location of a redirect.
fn next_url(from: &Url, location: Option<&str>) -> Result<Url, RedirectError> {
    let location = location.ok_or(RedirectError::NoLocation)?;
    if location.len() > MAX_URL_BYTES {
        return Err(RedirectError::TooLong);
    }
    let mut url = from.join(location).map_err(|_| RedirectError::NoLocation)?;
    if !matches!(url.scheme(), "https" | "http") || url.host().is_none() {
        return Err(RedirectError::Scheme);
    }
    if from.scheme() == "https" && url.scheme() == "http" {
        return Err(RedirectError::Downgrade);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(RedirectError::UserInfo);
    }
    url.set_fragment(None);
    Ok(url)
}

/// Finds the gate's refusal among the causes of a connection error.
fn address_refused(error: &reqwest::Error) -> Option<&AddressRefused> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_that_weakens_the_connection_is_refused() {
        let from = Url::parse("https://registry.example/v2/a/blobs/x").unwrap();
        let next = |location: &str| next_url(&from, Some(location));
        assert_eq!(next("/other").unwrap().as_str(), "https://registry.example/other");
        assert_eq!(next("//cdn.example/x#y").unwrap().as_str(), "https://cdn.example/x");
        assert_eq!(next("http://cdn.example/x"), Err(RedirectError::Downgrade));
        assert_eq!(next("http://registry.example/x"), Err(RedirectError::Downgrade));
        assert_eq!(next("file:///etc/passwd"), Err(RedirectError::Scheme));
        assert_eq!(next("data:text/plain,x"), Err(RedirectError::Scheme));
        assert_eq!(next("https://user@cdn.example/"), Err(RedirectError::UserInfo));
        assert_eq!(next("https://:secret@cdn.example/"), Err(RedirectError::UserInfo));
        assert_eq!(next("https://"), Err(RedirectError::NoLocation));
        assert_eq!(next(&format!("/{}", "x".repeat(MAX_URL_BYTES))), Err(RedirectError::TooLong));
        assert_eq!(next_url(&from, None), Err(RedirectError::NoLocation));
        // Octal and decimal forms become the address that they mean, which is then judged.
        assert_eq!(next("https://0x7f.1/").unwrap().host_str(), Some("127.0.0.1"));
    }
}
