//! Login procedure: discovery, registration, the browser's answer, and the first use of the token.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use toolcrib::HostGate;
use toolcrib::policy::{Secret, SecretStore};
use toolcrib::tool::RemoteAddress;
use toolcrib_base::render::{self, Advice};
use toolcrib_settings::secrets::Vault;
use zeroize::Zeroizing;

use crate::servers::{Fault, challenge};

use super::authorization::AuthorizationRequest;
use super::discovery::{self, AuthorizationServer, ProtectedResource};
use super::documents::Documents;
use super::listener::AnswerListener;
use super::record::{Login, Logins};
use super::registration::{OAuthClient, register};
use super::store::keep;
use super::tokens::{TokenClient, TokenFault};

/// Scope that asks for a token for renewal.
const OFFLINE: &str = "offline_access";
/// Maximum time of each step that needs no person.
const MAX_STEP: Duration = Duration::from_secs(60);

/// Choices of a login.
#[derive(Debug, Clone, Default)]
pub struct LoginOptions {
    /// Identifier of a client that was registered before, or the address at which a document describes it.
    pub client_id: Option<String>,
    /// Name of the secret with the client's own secret.
    pub client_secret: Option<String>,
    /// Scope in place of the one that the server asks for.
    pub scope: Option<String>,
    /// Port on which the answer of the browser arrives; 0 is any.
    pub port: u16,
}

/// Logs in at a server. Prints the address that a person opens, and waits for the answer.
///
/// # Errors
///
/// A server does not follow the specifications, the person refuses, or nothing can be stored.
pub async fn log_in(server: &RemoteAddress, options: LoginOptions, vault: &Vault) -> anyhow::Result<Login> {
    let logins = Logins::of_user().ok_or_else(toolcrib_base::folders::no_home)?;
    let gate = Arc::new(HostGate::default());
    let about = Documents { gate: &gate, server };
    let asked = match within("the server", challenge(&gate, server, None)).await? {
        Some(Fault::Unauthorized { challenge }) => challenge,
        Some(fault) => return Err(anyhow!("cannot log in at `{server}`: {fault}")),
        None => return Err(anyhow!("`{server}` answers without a token: it needs no login")),
    };
    let found = discovery::resource(&about, asked.as_deref());
    let ProtectedResource { resource, issuer, scope } = within("the server", found).await?;
    let found = discovery::authorization_server(&about, &issuer);
    let authorization = within("the authorization server", found).await?;
    let scope = with_offline(options.scope.clone().or(scope), &authorization);
    let listener = AnswerListener::bind(options.port).await?;
    let request = AuthorizationRequest::new(listener.address())?;
    let client = match &options.client_id {
        Some(id) => OAuthClient {
            id: id.clone(),
            secret: options.client_secret.as_deref().map(|name| client_secret(name, vault)).transpose()?,
            posts_secret: authorization.takes_secrets_in_body,
        },
        None => {
            let registered = register(&about, &authorization, &request.redirect, scope.as_deref());
            within("the authorization server", registered).await?
        }
    };
    let url = request.url(&authorization, &client.id, &resource, scope.as_deref())?;
    render::aside(&format!("open this address in a browser, and log in at {}:\n\n{url}\n", authorization.issuer));
    let query = listener.answer(|query| request.is_answered_by(query)).await?;
    let code = request.code(&authorization, &query)?;
    let token_client = TokenClient {
        documents: Documents { gate: &gate, server },
        endpoint: &authorization.token,
        client_id: &client.id,
        client_secret: client.secret.as_ref().map(|secret| secret.as_str()),
        posts_secret: client.posts_secret,
        resource: &resource,
    };
    let grant = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("redirect_uri", request.redirect.as_str()),
        ("code_verifier", request.verifier.as_str()),
    ];
    let exchanged = async {
        token_client.exchange(&grant).await.map_err(|fault| match fault {
            TokenFault::Ended(reason) => anyhow!(reason),
            TokenFault::Failed(error) => error,
        })
    };
    let tokens = within("the token endpoint", exchanged).await?;
    // A token of another audience is found now, and not by a call.
    let tried = within("the server", challenge(&gate, server, Some(tokens.access.as_str()))).await?;
    if let Some(fault) = tried {
        let message = match fault {
            Fault::Unauthorized { .. } | Fault::Forbidden { .. } => {
                format!("the server refuses the token that `{}` issued for it: {fault}", authorization.issuer)
            }
            fault => format!("the server does not list its tools with the token that was issued for it: {fault}"),
        };
        return Err(Advice::new(message, "nothing was stored; ask the owner of the server").into());
    }
    let earlier = logins.of(server)?;
    let login = Login {
        server: server.as_str().to_owned(),
        // Installed tools request a secret of an earlier name.
        secret: earlier.map_or_else(|| Login::secret_of(server), |earlier| earlier.secret),
        resource,
        issuer: authorization.issuer.clone(),
        token_endpoint: authorization.token.as_str().to_owned(),
        client_id: client.id.clone(),
        has_client_secret: client.secret.is_some(),
        posts_client_secret: client.posts_secret && client.secret.is_some(),
        is_renewable: tokens.renewal.is_some(),
        scope,
        ends: tokens.ends,
    };
    let (vault, stored, server) = (vault.clone(), login.clone(), server.clone());
    tokio::task::spawn_blocking(move || {
        let _lock = logins.lock(&server)?;
        logins.check(&stored)?;
        if let Some(secret) = &client.secret {
            vault.set(&Secret::new(stored.client_secret(), secret.as_str())?)?;
        }
        keep(&vault, stored, &tokens, |login| logins.put(login)).map(drop)
    })
    .await??;
    Ok(login)
}

/// Ends the login at a server. Returns `false` if there is none.
///
/// # Errors
///
/// The list or the store cannot be changed.
pub fn log_out(server: &RemoteAddress, vault: &Vault) -> anyhow::Result<bool> {
    let logins = Logins::of_user().ok_or_else(toolcrib_base::folders::no_home)?;
    if logins.of(server)?.is_none() {
        return Ok(false);
    }
    let _lock = logins.lock(server)?;
    let Some(login) = logins.of(server)? else { return Ok(false) };
    let names = vault.list()?.into_iter().map(|listed| listed.name);
    let own = login.secrets();
    let stored: Vec<String> = names.filter(|name| own.contains(name)).collect();
    if !stored.is_empty() {
        vault.remove(&stored)?;
    }
    logins.remove(server)?;
    Ok(true)
}

/// Waits for one step, within a time.
async fn within<T>(who: &str, step: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let ended = tokio::time::timeout(MAX_STEP, step).await;
    ended.map_err(|_| anyhow!("{who} did not answer within {} seconds", MAX_STEP.as_secs()))?
}

/// Returns the secret of a client that was registered before.
fn client_secret(name: &str, vault: &Vault) -> anyhow::Result<Zeroizing<String>> {
    let secret = vault.value(name)?.with_context(|| format!("no secret `{name}`"))?;
    Ok(Zeroizing::new(secret.value().to_owned()))
}

/// Adds the scope for a token that renews, where the authorization server has one.
fn with_offline(scope: Option<String>, server: &AuthorizationServer) -> Option<String> {
    if !server.offers_offline_access {
        return scope;
    }
    match scope {
        None => Some(OFFLINE.to_owned()),
        Some(scope) if scope.split(' ').any(|one| one == OFFLINE) => Some(scope),
        Some(scope) => Some(format!("{scope} {OFFLINE}")),
    }
}
