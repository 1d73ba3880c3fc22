//! Store of secrets with the tokens of logins, which are renewed before they end and after a server has refused one. Only one
//! process renews a token at a time: the token for renewal is often of use once.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, bail};
use jiff::Timestamp;
use tokio::runtime::Handle;
use toolcrib::policy::{Secret, SecretStore};
use toolcrib::tool::RemoteAddress;
use toolcrib::{Error, HostGate};
use toolcrib_base::render;
use toolcrib_settings::secrets::Vault;

use super::documents::Documents;
use super::record::{Login, Logins};
use super::tokens::{TokenClient, TokenFault, Tokens};

/// Time between the renewal of a token and its end.
const MARGIN: Duration = Duration::from_secs(10);
/// Time after which a token without a stated end is read again.
const MAX_AGE: Duration = Duration::from_secs(60);
/// Maximum time of a renewal.
const MAX_RENEWAL: Duration = Duration::from_secs(30);

/// Store of secrets with the tokens of logins.
pub struct TokenStore {
    vault: Vault,
    logins: Option<Logins>,
    gate: Arc<HostGate>,
}

impl TokenStore {
    /// Creates the store.
    pub fn new(vault: Vault) -> Self {
        Self { vault, logins: Logins::of_user(), gate: Arc::default() }
    }

    fn login(&self, name: &str) -> anyhow::Result<Option<Login>> {
        self.logins.as_ref().map_or(Ok(None), |logins| logins.named(name))
    }

    /// Returns the present token of a login, unless it is the refused one or ends.
    fn present(&self, login: &Login, refused: Option<&Secret>) -> anyhow::Result<Option<Secret>> {
        let Some(secret) = self.vault.value(&login.secret)? else { return Ok(None) };
        if refused.is_some_and(|refused| refused.value() == secret.value()) {
            return Ok(None);
        }
        let is_present = login.ends.is_none_or(|ends| Timestamp::now() + MARGIN < ends);
        Ok(is_present.then(|| with_end(secret, login.ends)))
    }

    /// Returns a token of a login, renewed if it must be.
    fn token(&self, login: Login, refused: Option<&Secret>) -> anyhow::Result<Secret> {
        if let Some(secret) = self.present(&login, refused)? {
            return Ok(secret);
        }
        let logins = self.logins.as_ref().context("no logins are stored")?;
        let _lock = logins.lock(&login.server.parse()?)?;
        // Another process may have renewed it.
        let login = logins.named(&login.secret)?.with_context(|| ended(&login, "it was logged out"))?;
        if let Some(secret) = self.present(&login, refused)? {
            return Ok(secret);
        }
        if !login.is_renewable {
            bail!(ended(&login, "its token has ended or was refused, and cannot be renewed"));
        }
        let tokens = self.renew(&login)?;
        // An earlier version of this program takes another lock.
        let present = logins.named(&login.secret)?.filter(|present| present.is_same(&login));
        present.with_context(|| ended(&login, "it was logged out, or replaced by another"))?;
        let secret = keep(&self.vault, login, &tokens, |login| logins.renew(login))?;
        Ok(with_end(secret, tokens.ends))
    }

    /// Renews the tokens of a login.
    fn renew(&self, login: &Login) -> anyhow::Result<Tokens> {
        let read = |name: &str| self.vault.value(name)?.with_context(|| format!("the secret `{name}` is missing"));
        let renewal = read(&login.renewal())?;
        let client_secret = login.has_client_secret.then(|| read(&login.client_secret())).transpose()?;
        let server: RemoteAddress = login.server.parse()?;
        let documents = Documents { gate: &self.gate, server: &server };
        let endpoint = documents.address("the token endpoint", &login.token_endpoint)?;
        let client = TokenClient {
            documents,
            endpoint: &endpoint,
            client_id: &login.client_id,
            client_secret: client_secret.as_ref().map(Secret::value),
            posts_secret: login.posts_client_secret,
            resource: &login.resource,
        };
        let grant = [("grant_type", "refresh_token"), ("refresh_token", renewal.value())];
        let handle = Handle::try_current().context("tokens are renewed on the threads of the program alone")?;
        let exchanged = handle.block_on(async { tokio::time::timeout(MAX_RENEWAL, client.exchange(&grant)).await });
        match exchanged.context("the token endpoint did not answer in time")? {
            Ok(tokens) => Ok(tokens),
            Err(TokenFault::Ended(reason)) => bail!(ended(login, &reason)),
            Err(TokenFault::Failed(error)) => {
                Err(error.context(format!("cannot renew the token for `{}`", login.server)))
            }
        }
    }
}

/// Stores the tokens of a login, and the login itself. The token for renewal goes first: the one before it may be of no use any
/// more.
pub(super) fn keep(
    vault: &Vault,
    login: Login,
    tokens: &Tokens,
    put: impl FnOnce(Login) -> anyhow::Result<()>,
) -> anyhow::Result<Secret> {
    let too_long = |what: &str| format!("the {what} of the authorization server cannot be stored");
    let access = Secret::new(&login.secret, tokens.access.as_str()).with_context(|| too_long("access token"))?;
    if let Some(renewal) = &tokens.renewal {
        let renewal = Secret::new(login.renewal(), renewal.as_str()).with_context(|| too_long("refresh token"))?;
        vault.set(&renewal)?;
    }
    vault.set(&access)?;
    let is_renewable = tokens.renewal.is_some() || login.is_renewable;
    let scope = tokens.scope.clone().or(login.scope.clone());
    put(Login { is_renewable, scope, ends: tokens.ends, ..login })?;
    Ok(access)
}

/// Returns a token with the time at which it is read again: shortly before its end, if it lives longer than that.
fn with_end(token: Secret, ends: Option<Timestamp>) -> Secret {
    let end = match ends {
        None => SystemTime::now() + MAX_AGE,
        Some(ends) if Timestamp::now() + MARGIN < ends => SystemTime::from(ends) - MARGIN,
        Some(ends) => SystemTime::from(ends),
    };
    token.until(end)
}

fn ended(login: &Login, reason: &str) -> String {
    let server = render::shell_word(&login.server);
    format!("the login at `{}` has ended: {reason}; log in again with `toolcrib login {server}`", login.server)
}

impl SecretStore for TokenStore {
    fn value(&self, name: &str) -> Result<Option<Secret>, Error> {
        let failed = |error: anyhow::Error| Error::Secret { name: name.to_owned(), reason: format!("{error:#}") };
        match self.login(name).map_err(failed)? {
            None => self.vault.value(name),
            Some(login) => self.token(login, None).map(Some).map_err(failed),
        }
    }

    fn renewed(&self, name: &str, refused: &Secret) -> Result<Option<Secret>, Error> {
        let failed = |error: anyhow::Error| Error::Secret { name: name.to_owned(), reason: format!("{error:#}") };
        match self.login(name).map_err(failed)? {
            None => Ok(None),
            Some(login) => self.token(login, Some(refused)).map(Some).map_err(failed),
        }
    }
}
