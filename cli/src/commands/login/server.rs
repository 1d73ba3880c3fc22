//! Logins at remote servers.

use std::process::ExitCode;

use toolcrib::tool::RemoteAddress;
use toolcrib_base::render::{self, shell_word};
use toolcrib_packages::logins::{self, LoginOptions};
use toolcrib_sources::options::KeptSecrets;

/// Heading of the options in the help.
const SERVERS: &str = "Servers";

/// Choices of a login at a server.
#[derive(Debug, clap::Args)]
pub(super) struct ServerOptions {
    /// Identifier of a client that you registered, or address at which a document describes it
    #[arg(long, value_name = "ID", help_heading = SERVERS)]
    client_id: Option<String>,
    /// Name of the secret with that client's own secret
    #[arg(long, value_name = "NAME", requires = "client_id", help_heading = SERVERS)]
    client_secret: Option<String>,
    /// Scope to ask for, instead of the one that the server names
    #[arg(long, value_name = "SCOPE", help_heading = SERVERS)]
    scope: Option<String>,
    /// Port of this machine on which the browser's answer arrives [default: a free one]
    #[arg(long, value_name = "PORT", help_heading = SERVERS)]
    callback_port: Option<u16>,
}

impl ServerOptions {
    /// Returns `true` if any option is given.
    pub(super) fn are_given(&self) -> bool {
        self.client_id.is_some() || self.scope.is_some() || self.callback_port.is_some()
    }
}

/// Logs in at a server.
pub(super) async fn log_in(
    server: &RemoteAddress,
    options: ServerOptions,
    kept: &KeptSecrets,
) -> anyhow::Result<ExitCode> {
    let ServerOptions { client_id, client_secret, scope, callback_port } = options;
    let options = LoginOptions { client_id, client_secret, scope, port: callback_port.unwrap_or_default() };
    let login = logins::log_in(server, options, &kept.vault()?).await?;
    let life = match (login.ends, login.is_renewable) {
        (_, true) => "is renewed when it ends".to_owned(),
        (Some(ends), false) => format!("ends at {ends:.0}"),
        (None, false) => "no expiry stated".to_owned(),
    };
    render::aside(&format!(
        "logged in to {server}: the token is stored as the secret `{}`, is sent to this server alone, and {life}",
        login.secret
    ));
    render::hint(&format!("install its tools with `toolcrib install {}`", shell_word(server.as_str())));
    Ok(ExitCode::SUCCESS)
}

/// Ends a login at a server.
pub(super) async fn log_out(server: &RemoteAddress, kept: &KeptSecrets) -> anyhow::Result<ExitCode> {
    let (address, vault) = (server.clone(), kept.vault()?);
    match tokio::task::spawn_blocking(move || logins::log_out(&address, &vault)).await?? {
        true => render::aside(&format!(
            "logged out of {server}: its tokens are erased here, and may still be valid at the server"
        )),
        false => render::aside(&format!("no login at {server} was stored")),
    }
    Ok(ExitCode::SUCCESS)
}
