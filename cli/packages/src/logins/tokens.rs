//! Requests to the token endpoint of an authorization server, and the tokens in its answers.

use std::time::Duration;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;
use toolcrib::tool::RemoteAddress;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::documents::{Documents, error_of, short_text, text};

/// Maximum life of a token.
const MAX_LIFE: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Tokens of an answer.
pub(super) struct Tokens {
    pub(super) access: Zeroizing<String>,
    pub(super) renewal: Option<Zeroizing<String>>,
    pub(super) scope: Option<String>,
    pub(super) ends: Option<Timestamp>,
}

/// Reason why no tokens were issued.
#[derive(Debug)]
pub(super) enum TokenFault {
    /// The grant has ended, so that only a new login helps.
    Ended(String),
    /// Any other reason.
    Failed(anyhow::Error),
}

/// Client of a token endpoint.
pub(super) struct TokenClient<'a> {
    pub(super) documents: Documents<'a>,
    pub(super) endpoint: &'a RemoteAddress,
    pub(super) client_id: &'a str,
    pub(super) client_secret: Option<&'a str>,
    /// `true` if the secret is sent in the body of a request (`client_secret_post`), and not in its header.
    pub(super) posts_secret: bool,
    /// Resource that the tokens are for.
    pub(super) resource: &'a str,
}

impl TokenClient<'_> {
    /// Exchanges a grant for tokens.
    pub(super) async fn exchange(&self, grant: &[(&str, &str)]) -> Result<Tokens, TokenFault> {
        let own = [("resource", self.resource), ("client_id", self.client_id)];
        let posted = self.client_secret.filter(|_| self.posts_secret).map(|secret| ("client_secret", secret));
        let own = own.into_iter().chain(posted);
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(grant).extend_pairs(own).finish();
        let authorization = self.client_secret.filter(|_| !self.posts_secret).map(|secret| {
            let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            let pair = Zeroizing::new(format!("{}:{}", encoded(self.client_id), encoded(secret)));
            format!("Basic {}", STANDARD.encode(pair.as_bytes()))
        });
        let kind = "application/x-www-form-urlencoded";
        let answer = self.documents.post(self.endpoint, kind, form, authorization).await;
        let (status, answer) = answer.map_err(TokenFault::Failed)?;
        if status == 200 {
            return read(&answer)
                .with_context(|| format!("`{}` issued no usable token", self.endpoint))
                .map_err(TokenFault::Failed);
        }
        let reason = format!("`{}` issued no token ({status}): {}", self.endpoint, error_of(&answer));
        Err(match answer["error"].as_str() {
            Some("invalid_grant" | "invalid_client" | "unauthorized_client") => TokenFault::Ended(reason),
            _ => TokenFault::Failed(anyhow::anyhow!(reason)),
        })
    }
}

/// Reads the tokens of an answer. No text of it is shown.
fn read(answer: &Value) -> anyhow::Result<Tokens> {
    let access = text(answer, "access_token").context("the answer has no `access_token`")?;
    let kind = text(answer, "token_type").unwrap_or_default();
    if !kind.eq_ignore_ascii_case("bearer") {
        bail!("the token is not a bearer token");
    }
    let life = match &answer["expires_in"] {
        Value::Null => None,
        Value::String(text) => text.parse::<u64>().ok(),
        other => other.as_u64(),
    };
    let ends = life.map(|seconds| Timestamp::now() + Duration::from_secs(seconds).min(MAX_LIFE));
    let scope = short_text(answer, "scope");
    Ok(Tokens {
        access: Zeroizing::new(access),
        renewal: text(answer, "refresh_token").map(Zeroizing::new),
        scope,
        ends,
    })
}
