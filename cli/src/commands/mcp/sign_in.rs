//! Options for the sign-in of people at `toolcrib mcp --http`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use toolcrib_base::http_server::ServedHost;
use toolcrib_base::oauth::SecureUrl;
use toolcrib_base::render::Advice;
use toolcrib_mcp::SignIn;

/// Heading of the options in the help.
const HEADING: &str = "HTTP";

/// Sign-in of people.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct SignInOptions {
    /// Accept the tokens of people who sign in at this file's issuers, with the rights that its rules give them
    #[arg(long, value_name = "FILE", requires = "http", conflicts_with = "no_token", help_heading = HEADING)]
    sign_in: Option<PathBuf>,
    /// Address of this server for its clients, and audience of their tokens; its host is served [default: its own]
    #[arg(long, value_name = "URL", requires = "sign_in", help_heading = HEADING)]
    public_url: Option<SecureUrl>,
}

impl SignInOptions {
    /// Returns the file of the sign-in.
    pub(super) fn file(&self) -> Option<&Path> {
        self.sign_in.as_deref()
    }

    /// Returns the host of the public address.
    pub(super) fn host(&self) -> Option<ServedHost> {
        self.public_url.as_ref()?.url().host_str()?.parse().ok()
    }

    /// Checks that the address of the server is known: it is a loopback address, or there is one host, over TLS.
    ///
    /// # Errors
    ///
    /// Clients reach the server by another address than its own, or by one of several.
    pub(super) fn check(&self, address: SocketAddr, has_tls: bool, hosts: &[ServedHost]) -> anyhow::Result<()> {
        let is_known = address.ip().is_loopback() || (has_tls && hosts.len() == 1);
        if self.sign_in.is_none() || self.public_url.is_some() || is_known {
            return Ok(());
        }
        let hint = "set `server.public_url`, such as `https://tools.example.com/mcp`; a server with `server.tls_cert` and one host \
                    in `server.hosts` needs none";
        Err(Advice::new("tokens are issued for the address of the server, which is not known", hint).into())
    }

    /// Opens the sign-in, if there is one, and reads the keys of its issuers. `own` is the server's own address.
    pub(super) async fn open(&self, own: &str) -> anyhow::Result<Option<SignIn>> {
        let Some(path) = &self.sign_in else { return Ok(None) };
        let server = match &self.public_url {
            Some(url) => url.clone(),
            None => own.parse().map_err(|error| {
                Advice::new(format!("`{own}` cannot be the address of a sign-in: {error}"), "set `server.public_url`")
            })?,
        };
        let sign_in = SignIn::open(path, server)?;
        sign_in.read_keys().await;
        Ok(Some(sign_in))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_several_hosts_or_without_tls_needs_its_public_address() {
        let hosts: Vec<ServedHost> = ["a.example.com", "b.example.com"].map(|host| host.parse().unwrap()).into();
        let url: SecureUrl = "https://a.example.com/mcp".parse().unwrap();
        let check = |public_url: Option<SecureUrl>, address: &str, has_tls, hosts| {
            let options = SignInOptions { sign_in: Some("people.toml".into()), public_url };
            assert_eq!(options.host().is_some(), options.public_url.is_some());
            options.check(address.parse().unwrap(), has_tls, hosts)
        };
        for address in ["0.0.0.0:8931", "192.0.2.7:8931"] {
            assert!(check(None, address, true, &hosts[..1]).is_ok(), "{address}");
            assert!(check(Some(url.clone()), address, false, &hosts).is_ok(), "{address}");
            for (has_tls, hosts) in [(true, &hosts[..]), (false, &hosts[..1]), (true, &[])] {
                let error = check(None, address, has_tls, hosts).unwrap_err().to_string();
                assert!(error.contains("address of the server"), "{address}: {error}");
            }
        }
        assert!(check(None, "127.0.0.1:8931", false, &hosts).is_ok());
    }
}
