//! Authorization of requests: scopes, token requests and the tokens kept in memory.
//!
//! The scope is always the client's own, for one repository and the least access: a scope named in a challenge is
//! ignored. A token server is reached over HTTPS, or on the own machine.

use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde::Deserialize;
use zeroize::{Zeroize, Zeroizing};

use crate::challenge::Challenge;
use crate::error::{Error, What};
use crate::exchange::Payload;
use crate::limits::{MAX_ANSWER_BYTES, MAX_CREDENTIAL_BYTES, MAX_TOKEN_LIFETIME, MAX_TOKENS, MAX_URL_BYTES};
use crate::reference::Repository;
use crate::secret::{Credential, Secret, authorization, basic_pair};
use crate::session::{Credentials, Session, authority};

/// Lifetime of a token without `expires_in`. Source: the token authentication specification of Docker.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(60);
/// Time before the end of a lifetime at which a token is no longer used.
const LIFETIME_MARGIN: Duration = Duration::from_secs(5);

/// Access to a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    repository: Option<Repository>,
    push: bool,
}

impl Scope {
    pub(crate) fn pull(repository: &Repository) -> Self {
        Self { repository: Some(repository.clone()), push: false }
    }

    pub(crate) fn push(repository: &Repository) -> Self {
        Self { repository: Some(repository.clone()), push: true }
    }

    /// Access to the API as such, without a repository.
    pub(crate) fn api() -> Self {
        Self { repository: None, push: false }
    }

    fn text(&self) -> Option<String> {
        let actions = if self.push { "pull,push" } else { "pull" };
        self.repository.as_ref().map(|repository| format!("repository:{}:{actions}", repository.path()))
    }
}

/// Value of an `Authorization` header and the time until which it is used.
#[derive(Clone, Debug)]
pub(crate) struct Authorization {
    scheme: &'static str,
    value: Secret,
    expires: Instant,
    /// `true` if it was obtained without a credential.
    pub(crate) anonymous: bool,
}

impl Authorization {
    fn new(scheme: &'static str, value: Secret, lifetime: Duration, anonymous: bool) -> Self {
        let lifetime = lifetime.min(MAX_TOKEN_LIFETIME).saturating_sub(LIFETIME_MARGIN);
        Self { scheme, value, expires: Instant::now() + lifetime, anonymous }
    }

    pub(crate) fn header(&self) -> Option<HeaderValue> {
        authorization(self.scheme, &self.value)
    }
}

/// Authorizations of one registry, in memory only.
#[derive(Default)]
pub(crate) struct Authorizations(Vec<(Scope, Authorization)>);

impl Authorizations {
    pub(crate) fn get(&mut self, scope: &Scope) -> Option<Authorization> {
        let now = Instant::now();
        self.0.retain(|(_, authorization)| authorization.expires > now);
        self.0.iter().find(|(known, _)| known == scope).map(|(_, authorization)| authorization.clone())
    }

    pub(crate) fn insert(&mut self, scope: &Scope, authorization: Authorization) {
        self.remove(scope);
        if self.0.len() >= MAX_TOKENS {
            self.0.remove(0);
        }
        self.0.push((scope.clone(), authorization));
    }

    pub(crate) fn remove(&mut self, scope: &Scope) {
        self.0.retain(|(known, _)| known != scope);
    }
}

/// Response of a token server.
#[derive(Deserialize)]
struct TokenResponse {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    access_token: Option<String>,
    #[serde(default)]
    expires_in: Option<u64>,
}

impl Drop for TokenResponse {
    fn drop(&mut self) {
        self.token.zeroize();
        self.access_token.zeroize();
    }
}

impl Session {
    /// Meets a challenge. `None` if it needs a credential and none was found.
    pub(crate) async fn authorize(&self, challenge: &Challenge, scope: &Scope) -> Result<Option<Authorization>, Error> {
        let credential = match (&self.shared.credentials, &scope.repository) {
            (Credentials::Fixed(credential), _) => Some(credential.clone()),
            (Credentials::Store(store), Some(repository)) => store.find(repository).await?,
            (Credentials::Store(_), None) => None,
        };
        match (challenge, credential) {
            (Challenge::Basic, Some(Credential::Password { username, password })) => {
                let pair = basic_pair(&username, &password);
                Ok(Some(Authorization::new("Basic", pair, MAX_TOKEN_LIFETIME, false)))
            }
            (Challenge::Basic, _) => Ok(None),
            (Challenge::Bearer { .. }, Some(Credential::RegistryToken(token))) => {
                Ok(Some(Authorization::new("Bearer", token, MAX_TOKEN_LIFETIME, false)))
            }
            (Challenge::Bearer { realm, service }, credential) => {
                self.request_token(realm, service.as_deref(), scope, credential).await.map(Some)
            }
        }
    }

    async fn request_token(
        &self,
        realm: &str,
        service: Option<&str>,
        scope: &Scope,
        credential: Option<Credential>,
    ) -> Result<Authorization, Error> {
        let mut url = token_url(realm)?;
        self.check_scheme(&url)?;
        let host = authority(&url);
        let mut fields = vec![("service", service.map(str::to_owned)), ("scope", scope.text())];
        let anonymous = credential.is_none();
        if !anonymous {
            self.check_credential(&url)?;
        }
        let mut headers = HeaderMap::new();
        let reply = match credential {
            Some(Credential::IdentityToken(token)) => {
                fields.push(("grant_type", Some("refresh_token".to_owned())));
                fields.push(("client_id", Some("toolcrib".to_owned())));
                let form = form(&fields, &token);
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
                self.send_to_token_server(Method::POST, &url, &headers, Some(&form as &dyn Payload), None).await?
            }
            credential => {
                for (name, value) in &fields {
                    if let Some(value) = value {
                        url.query_pairs_mut().append_pair(name, value);
                    }
                }
                let basic = match credential {
                    Some(Credential::Password { username, password }) => {
                        let pair = basic_pair(&username, &password);
                        Some(Authorization::new("Basic", pair, MAX_TOKEN_LIFETIME, false))
                    }
                    _ => None,
                };
                self.send_to_token_server(Method::GET, &url, &headers, None, basic.as_ref()).await?
            }
        };
        if !reply.status().is_success() {
            // A token server answers 400 to credentials that it does not accept as well.
            if reply.status().as_u16() == 400 && !anonymous {
                return Err(Error::Unauthorized { host, what: What::Token, status: 400, sent: true });
            }
            return Err(reply.into_error(What::Token, !anonymous, self.limits()).await);
        }
        let body = reply.body(What::Token, MAX_ANSWER_BYTES, self.limits()).await?;
        let (token, lifetime) = read_token(&body)?;
        Ok(Authorization::new("Bearer", token, lifetime, anonymous))
    }
}

/// Parses the address of a token server. Its scheme is checked by the session.
fn token_url(realm: &str) -> Result<Url, Error> {
    let invalid = |reason: &str| Error::malformed(What::Challenge, reason);
    let url = Url::parse(realm).map_err(|_| invalid("the realm is not a URL"))?;
    if realm.len() > MAX_URL_BYTES || url.host().is_none() || !matches!(url.scheme(), "https" | "http") {
        return Err(invalid("the realm is not an https URL"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.fragment().is_some() {
        return Err(invalid("the realm has a user name, password or fragment"));
    }
    Ok(url)
}

/// Returns the form that exchanges a refresh token.
fn form(fields: &[(&str, Option<String>)], token: &Secret) -> bytes::Bytes {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        if let Some(value) = value {
            form.append_pair(name, value);
        }
    }
    form.append_pair("refresh_token", token.expose());
    // The bytes overwrite their memory once the request is sent.
    bytes::Bytes::from_owner(Zeroizing::new(form.finish().into_bytes()))
}

fn read_token(body: &[u8]) -> Result<(Secret, Duration), Error> {
    let what = What::Token;
    let mut response: TokenResponse = serde_json::from_slice(body).map_err(|error| Error::json(what, &error))?;
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty()).map(Secret::new);
    let token = filled(response.token.take()).or(filled(response.access_token.take()));
    let token = token.ok_or_else(|| Error::malformed(what, "it has neither `token` nor `access_token`"))?;
    if token.expose().len() > MAX_CREDENTIAL_BYTES {
        return Err(Error::TooLarge { what, limit: MAX_CREDENTIAL_BYTES as u64 });
    }
    if !token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::malformed(what, "the token has characters that do not fit into a header"));
    }
    let lifetime = response.expires_in.map_or(DEFAULT_LIFETIME, |seconds| Duration::from_secs(seconds.max(10)));
    Ok((token, lifetime))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realm_is_a_plain_web_address() {
        assert!(token_url("https://auth.example/token?a=b").is_ok());
        for realm in ["", "token", "ftp://a/", "https://u:p@a/", "https://a/#x", "javascript:alert(1)", "https://"] {
            assert!(matches!(token_url(realm), Err(Error::Malformed { .. })), "{realm}");
        }
    }

    #[test]
    fn a_token_is_bounded_and_fits_into_a_header() {
        let read = |token: &str| read_token(format!(r#"{{"access_token":"{token}","expires_in":20}}"#).as_bytes());
        assert_eq!(read("abc.def").unwrap().1, Duration::from_secs(20));
        assert!(matches!(read(&"x".repeat(MAX_CREDENTIAL_BYTES + 1)), Err(Error::TooLarge { .. })));
        for token in ["", "a b", "a\\r\\nHost: evil", "\\u00e4"] {
            assert!(matches!(read(token), Err(Error::Malformed { .. })), "{token}");
        }
        assert!(matches!(read_token(b"[]"), Err(Error::Malformed { .. })));
    }

    #[test]
    fn tokens_expire_and_their_number_is_bounded() {
        let mut known = Authorizations::default();
        let scope = |index: usize| {
            let reference: crate::Reference = format!("a.example/r{index}").parse().unwrap();
            Scope::pull(reference.repository())
        };
        let token = |lifetime| Authorization::new("Bearer", Secret::new("t"), lifetime, true);
        known.insert(&scope(0), token(LIFETIME_MARGIN));
        assert!(known.get(&scope(0)).is_none());
        for index in 0..=MAX_TOKENS {
            known.insert(&scope(index), token(Duration::MAX));
        }
        assert_eq!(known.0.len(), MAX_TOKENS);
        assert!(known.get(&scope(0)).is_none());
        let kept = known.get(&scope(MAX_TOKENS)).unwrap();
        assert!(kept.expires <= Instant::now() + MAX_TOKEN_LIFETIME);
        assert!(format!("{kept:?}").contains("Secret(***)"));
    }
}
