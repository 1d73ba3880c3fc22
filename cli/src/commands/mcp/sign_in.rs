//! Options for the sign-in of people at `toolcrib mcp --http`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

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
    /// Address by which clients reach this server, for which issuers issue tokens [default: its own]
    #[arg(long, value_name = "URL", requires = "sign_in", help_heading = HEADING)]
    public_url: Option<SecureUrl>,
}

impl SignInOptions {
    /// Returns the file of the sign-in.
    pub(super) fn file(&self) -> Option<&Path> {
        self.sign_in.as_deref()
    }

    /// Checks that the address of the server is known.
    ///
    /// # Errors
    ///
    /// Clients reach the server by another address than its own.
    pub(super) fn check(&self, address: SocketAddr, has_tls: bool) -> anyhow::Result<()> {
        if self.sign_in.is_none() || self.public_url.is_some() || has_tls || address.ip().is_loopback() {
            return Ok(());
        }
        let hint =
            "set `server.public_url`, such as `https://tools.example.com/mcp`, or serve TLS with `server.tls_cert`";
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
