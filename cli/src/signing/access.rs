//! Access to registries: the client with its credentials, and plain HTTP for registries that the user names.

use anyhow::Context;
use toolcrib_registry::{Client, CredentialStore, Registry};

/// Options of commands that talk to a registry.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RegistryAccess {
    /// Use plain HTTP for this registry; loopback registries need no permission; repeatable
    #[arg(long, value_name = "HOST[:PORT]", help_heading = "Registry")]
    plain_http: Vec<Registry>,
}

impl RegistryAccess {
    /// Creates the client. Credentials come from the usual configuration files of container tools.
    ///
    /// # Errors
    ///
    /// The system's certificates cannot be used.
    pub(crate) fn client(&self) -> anyhow::Result<Client> {
        let builder = Client::builder().credentials(CredentialStore::from_variables(std::env::vars_os()));
        let builder = self.plain_http.iter().cloned().fold(builder, toolcrib_registry::ClientBuilder::plain_http);
        builder.build().context("cannot create the registry client")
    }
}
