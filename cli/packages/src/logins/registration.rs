//! Registration of this program at an authorization server (RFC 7591), if nobody has registered it.

use anyhow::{Context, bail};
use serde_json::json;
use toolcrib_base::render::Advice;
use zeroize::Zeroizing;

use super::discovery::{AuthorizationServer, SECRET_IN_BODY, SECRET_IN_HEADER};
use super::documents::{Documents, error_of, short_text, text};

/// Client at an authorization server.
pub(super) struct OAuthClient {
    pub(super) id: String,
    pub(super) secret: Option<Zeroizing<String>>,
    /// `true` if the secret is sent in the body of a request.
    pub(super) posts_secret: bool,
}

/// Registers a client that gets its answers at an address of this machine.
pub(super) async fn register(
    documents: &Documents<'_>,
    server: &AuthorizationServer,
    redirect: &str,
    scope: Option<&str>,
) -> anyhow::Result<OAuthClient> {
    let Some(endpoint) = &server.registration else {
        let message = format!("the authorization server `{}` does not register clients automatically", server.issuer);
        let hint = match server.takes_documents {
            true => {
                "register one with its owner, or publish a document about your client, and name it with `--client-id`"
            }
            false => "register a client with its owner, and name it with `--client-id`",
        };
        return Err(Advice::new(message, hint).into());
    };
    let method = match (server.takes_public_clients, server.takes_secrets_in_body) {
        (true, _) => "none",
        (false, true) => SECRET_IN_BODY,
        (false, false) => SECRET_IN_HEADER,
    };
    let mut client = json!({
        "client_name": "toolcrib",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native",
        "token_endpoint_auth_method": method,
    });
    if let Some(scope) = scope {
        client["scope"] = json!(scope);
    }
    let (status, answer) = documents.post(endpoint, "application/json", client.to_string(), None).await?;
    if !(200..300).contains(&status) {
        bail!("`{endpoint}` refused to register this client ({status}): {}", error_of(&answer));
    }
    let id = short_text(&answer, "client_id")
        .with_context(|| format!("`{endpoint}` registered a client without an identifier, or with a too long one"))?;
    // It may register another method than it was asked for.
    let posts_secret = match text(&answer, "token_endpoint_auth_method").as_deref() {
        Some(SECRET_IN_BODY) => true,
        Some(SECRET_IN_HEADER) => false,
        _ => server.takes_secrets_in_body,
    };
    Ok(OAuthClient { id, secret: text(&answer, "client_secret").map(Zeroizing::new), posts_secret })
}
