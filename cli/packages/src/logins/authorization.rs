//! Request for an authorization: the address that a person opens, and the check of the answer that comes back.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use toolcrib_base::render::{one_line, shortened};
use url::Url;
use zeroize::Zeroizing;

use super::discovery::AuthorizationServer;

/// Bytes of a random value.
const RANDOM: usize = 32;

/// Random values of one request. Its answer must fit to them.
pub(super) struct AuthorizationRequest {
    /// Value that only the holder of this request knows (RFC 7636).
    pub(super) verifier: Zeroizing<String>,
    pub(super) state: String,
    pub(super) redirect: String,
}

impl AuthorizationRequest {
    /// Creates a request for an answer at an address of this machine.
    pub(super) fn new(redirect: String) -> anyhow::Result<Self> {
        Ok(Self { verifier: Zeroizing::new(random()?), state: random()?, redirect })
    }

    /// Returns the address that a person opens.
    pub(super) fn url(
        &self,
        server: &AuthorizationServer,
        client: &str,
        resource: &str,
        scope: Option<&str>,
    ) -> anyhow::Result<Url> {
        let mut url = Url::parse(server.authorization.as_str())?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(self.verifier.as_bytes()));
        let own = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", &self.redirect),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("state", &self.state),
            ("resource", resource),
        ];
        url.query_pairs_mut().extend_pairs(own).extend_pairs(scope.map(|scope| ("scope", scope)));
        Ok(url)
    }

    /// Returns `true` if an answer's query has this request's state.
    pub(super) fn is_answered_by(&self, query: &str) -> bool {
        parameter(query, "state").is_some_and(|state| state == self.state)
    }

    /// Returns the code in the query of an answer.
    ///
    /// # Errors
    ///
    /// The answer is of another authorization server, or a refusal.
    pub(super) fn code(&self, server: &AuthorizationServer, query: &str) -> anyhow::Result<Zeroizing<String>> {
        match parameter(query, "iss") {
            // The text of another issuer's answer is not shown.
            Some(issuer) if issuer != server.issuer => {
                bail!("the answer is of another authorization server: nothing was stored")
            }
            None if server.names_itself => {
                bail!(
                    "the answer does not name its authorization server, which names itself in all answers: nothing was stored"
                )
            }
            _ => {}
        }
        if let Some(error) = parameter(query, "error") {
            let description = parameter(query, "error_description").map(|text| format!(": {text}")).unwrap_or_default();
            bail!("the authorization server refused: {}", one_line(&shortened(&format!("{error}{description}"), 300)));
        }
        let code = parameter(query, "code").filter(|code| !code.is_empty());
        code.map(Zeroizing::new).context("the answer holds no code")
    }
}

/// Returns a parameter of a query, unless it is given twice.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut values = url::form_urlencoded::parse(query.as_bytes()).filter(|(known, _)| known == name);
    let value = values.next()?.1.into_owned();
    values.next().is_none().then_some(value)
}

fn random() -> anyhow::Result<String> {
    let mut bytes = [0; RANDOM];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random values: {error}"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(names_itself: bool) -> AuthorizationServer {
        let address = |text: &str| text.parse().unwrap();
        AuthorizationServer {
            issuer: "https://a.example".to_owned(),
            authorization: address("https://a.example/authorize?x=1"),
            token: address("https://a.example/token"),
            registration: None,
            names_itself,
            takes_public_clients: true,
            takes_secrets_in_body: false,
            takes_documents: false,
            offers_offline_access: false,
        }
    }

    #[test]
    fn an_answer_fits_to_its_request_and_its_server() {
        let request = AuthorizationRequest::new("http://127.0.0.1:1/callback".to_owned()).unwrap();
        let url = request.url(&server(false), "c", "https://b.example/mcp", Some("a b")).unwrap();
        assert!(url.as_str().starts_with("https://a.example/authorize?x=1&response_type=code"), "{url}");
        assert!(url.as_str().contains("resource=https%3A%2F%2Fb.example%2Fmcp&scope=a+b"), "{url}");
        assert!(!url.as_str().contains(request.verifier.as_str()) && request.verifier.len() == 43);
        let state = request.state.clone();
        assert!(request.is_answered_by(&format!("code=x&state={state}")));
        for query in ["code=x", "code=x&state=y", &format!("state={state}&state={state}"), &format!("state={state}x")] {
            assert!(!request.is_answered_by(query), "{query}");
        }
        let code = |names_itself: bool, query: &str| {
            request.code(&server(names_itself), query).map(|code| code.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(code(false, "code=x%2B").as_deref(), Ok("x+"));
        assert_eq!(code(true, "code=x&iss=https%3A%2F%2Fa.example").as_deref(), Ok("x"));
        for (names_itself, query, reason) in [
            (true, "code=x", "does not name"),
            (false, "code=x&iss=https://b.example", "another authorization server"),
            (false, "error=evil&iss=https://b.example", "another authorization server"),
            (false, "error=access_denied&error_description=no", "access_denied: no"),
            (false, "code=", "no code"),
            (false, "code=x&code=y", "no code"),
        ] {
            let error = code(names_itself, query).unwrap_err();
            assert!(error.contains(reason) && !error.contains("evil"), "{query}: {error}");
        }
    }
}
