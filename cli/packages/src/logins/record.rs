//! Logins in the user's state: the servers, the endpoints that renew their tokens, and the names of the secrets.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolcrib::owner_only::{FileLock, OwnerOnlyFile, SharedAccess};
use toolcrib::tool::RemoteAddress;
use toolcrib::{ListFile, source};
use toolcrib_base::folders::state_folder;

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 4 << 20;
/// Maximum number of logins.
const MAX_LOGINS: usize = 256;
/// Name of the file.
const FILE: &str = "logins.json";
/// Number of digest digits in a secret's name.
const DIGITS: usize = 32;
/// Maximum host length in a secret's name.
const MAX_HOST: usize = 19;
/// Maximum wait for another process that renews a token, logs in or logs out.
const MAX_WAIT: Duration = Duration::from_secs(40);

/// Login at a server. It holds no token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// Address of the server. The token is sent to no other.
    pub server: String,
    /// Name of the secret with the access token.
    pub secret: String,
    /// Resource that the token is for, as the server states it.
    pub resource: String,
    /// Issuer of the tokens.
    pub issuer: String,
    /// Endpoint that issues and renews tokens.
    pub token_endpoint: String,
    /// Identifier of this client at the issuer.
    pub client_id: String,
    /// `true` if the client has a secret of its own, which is stored too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_client_secret: bool,
    /// `true` if the client's secret is sent in the body of a request, and not in its header.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub posts_client_secret: bool,
    /// `true` if a token for renewal is stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_renewable: bool,
    /// Scope that was granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// End of the access token, if the issuer states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Timestamp>,
}

impl Login {
    /// Returns the name of the secret with the access token for a server.
    pub(super) fn secret_of(server: &RemoteAddress) -> String {
        let text = server.as_str();
        let host = text.split_once("://").map_or(text, |(_, rest)| rest).split('/').next().unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let host: String = host.chars().map(plain).take(MAX_HOST).collect();
        let digest = source::digest(text.as_bytes());
        let digits = digest.rsplit(':').next().unwrap_or_default();
        format!("mcp-{}-{}", host.trim_matches('-'), &digits[..DIGITS.min(digits.len())])
    }

    /// Returns `true` for the same client's login at the same server.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.server, &self.secret, &self.client_id) == (&other.server, &other.secret, &other.client_id)
    }

    /// Name of the secret with the token for renewal.
    pub(super) fn renewal(&self) -> String {
        format!("{}-renewal", self.secret)
    }

    /// Name of the client's secret.
    pub(super) fn client_secret(&self) -> String {
        format!("{}-client", self.secret)
    }

    /// Names of the login's secrets, with those of an earlier login that it may not have.
    pub(super) fn secrets(&self) -> [String; 3] {
        [self.secret.clone(), self.renewal(), self.client_secret()]
    }
}

/// The user's logins.
#[derive(Debug, Clone)]
pub struct Logins(ListFile<Login>);

impl Logins {
    /// Returns the user's logins; `None` without a home directory.
    pub fn of_user() -> Option<Self> {
        Some(Self::folder(&state_folder("")?))
    }

    /// Returns the logins in a folder.
    pub(super) fn folder(folder: &Path) -> Self {
        Self(ListFile::new(folder.join(FILE), "logins", MAX_BYTES))
    }

    /// Path of the file.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the login at a server.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn of(&self, server: &RemoteAddress) -> anyhow::Result<Option<Login>> {
        Ok(self.read()?.into_iter().find(|login| login.server == server.as_str()))
    }

    /// Returns the login whose access token has this name.
    pub(super) fn named(&self, secret: &str) -> anyhow::Result<Option<Login>> {
        Ok(self.read()?.into_iter().find(|login| login.secret == secret))
    }

    /// Returns the login that a secret belongs to: its access token, its token for renewal or its client's secret.
    pub(crate) fn owner(&self, secret: &str) -> anyhow::Result<Option<Login>> {
        Ok(self.read()?.into_iter().find(|login| login.secrets().iter().any(|own| own == secret)))
    }

    /// Waits until no other process changes the tokens of a server.
    pub(super) fn lock(&self, server: &RemoteAddress) -> anyhow::Result<FileLock> {
        let path = self.path().with_file_name(format!("{}.renewing", Login::secret_of(server)));
        let file = OwnerOnlyFile::new(path, 0, SharedAccess::None);
        file.lock(MAX_WAIT).context("another process changes the token")
    }

    /// Refuses a login whose secret has the name of another server's.
    pub(super) fn check(&self, login: &Login) -> anyhow::Result<()> {
        match self.named(&login.secret)?.filter(|other| other.server != login.server) {
            Some(other) => bail!("the login at `{}` has a secret of the name `{}` already", other.server, other.secret),
            None => Ok(()),
        }
    }

    fn read(&self) -> anyhow::Result<Vec<Login>> {
        self.0.read().with_context(|| self.unusable())
    }

    /// Adds a login, in place of an earlier one at its server.
    pub(super) fn put(&self, login: Login) -> anyhow::Result<()> {
        let change = |all: &mut Vec<Login>| {
            if let Some(other) = all.iter().find(|other| other.server != login.server && other.secret == login.secret) {
                return Err(io::Error::other(format!("the login at `{}` has a secret of its name", other.server)));
            }
            all.retain(|other| other.server != login.server);
            if all.len() >= MAX_LOGINS {
                return Err(io::Error::other(format!(
                    "there are {MAX_LOGINS} logins already; end one with `toolcrib logout`"
                )));
            }
            all.push(login);
            Ok(())
        };
        self.0.change(change).and_then(|changed| changed).with_context(|| self.unusable())
    }

    /// Replaces a login that was renewed, unless it was ended or replaced meanwhile.
    pub(super) fn renew(&self, login: Login) -> anyhow::Result<()> {
        let change = |all: &mut Vec<Login>| match all.iter_mut().find(|one| login.is_same(one)) {
            Some(present) => {
                *present = login;
                Ok(())
            }
            None => Err(io::Error::other(format!("the login at `{}` was ended or replaced", login.server))),
        };
        self.0.change(change).and_then(|changed| changed).with_context(|| self.unusable())
    }

    /// Removes the login at a server.
    pub(super) fn remove(&self, server: &RemoteAddress) -> anyhow::Result<()> {
        self.0.change(|all| all.retain(|login| login.server != server.as_str())).with_context(|| self.unusable())
    }

    fn unusable(&self) -> String {
        format!("cannot use the logins in `{}`", self.path().display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_takes_no_name_of_another_server_and_a_renewal_revives_none() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins::folder(folder.path());
        let login = |server: &str, client: &str| Login {
            server: server.to_owned(),
            secret: "mcp-a".to_owned(),
            resource: server.to_owned(),
            issuer: server.to_owned(),
            token_endpoint: server.to_owned(),
            client_id: client.to_owned(),
            has_client_secret: false,
            posts_client_secret: false,
            is_renewable: false,
            scope: None,
            ends: None,
        };
        let one = login("https://a.example/", "1");
        assert!(logins.renew(one.clone()).is_err(), "there is none");
        logins.put(one.clone()).unwrap();
        logins.renew(Login { is_renewable: true, ..one }).unwrap();
        assert!(logins.renew(login("https://a.example/", "2")).is_err(), "of another client");
        let other = login("https://b.example/", "1");
        assert!(logins.check(&other).is_err() && logins.put(other).is_err());
        let owner = logins.owner("mcp-a-renewal").unwrap();
        assert!(owner.is_some_and(|owner| owner.is_renewable && owner.client_id == "1"));
        assert_eq!(logins.owner("mcp-b").unwrap(), None);
    }

    #[test]
    fn the_secret_of_a_server_has_its_host_and_differs_for_each_path() {
        let name = |text: &str| Login::secret_of(&text.parse().unwrap());
        let one = name("https://Api.Example.com:8443/mcp");
        assert!(one.starts_with("mcp-api-example-com-844-") && toolcrib::tool::is_secret_name(&one), "{one}");
        assert_ne!(one, name("https://api.example.com:8443/mcp2"));
        let long = name(&format!("https://{}.example/", "a".repeat(60)));
        assert!(toolcrib::tool::is_secret_name(&format!("{long}-renewal")), "{long}");
    }
}
