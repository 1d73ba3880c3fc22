//! The options about secrets: which may be put into requests, and where their values are kept.

use std::path::PathBuf;
use std::sync::OnceLock;

use toolcrib::policy::{Permission, Secrets};

use crate::render::Advice;
use crate::secrets::{Choice, SecretsFile, Vault};

use super::{ALL, PERMISSIONS, RECORDS, state_folder};

/// Which secrets tools may have put into their requests.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SecretOptions {
    /// Let tools that ask for them have these secrets in their requests; see `toolcrib secret`
    ///
    /// A tool of a record gets a secret only where the flag names its host and its place in the request, such as
    /// `github@api.github.com#header:authorization` or `maps@maps.example.com#query:key`. A manifest of your own says
    /// both itself and needs no flag; a name alone, or one with a host, allows nothing beyond that.
    #[arg(long, value_name = "NAME@HOST#PLACE", value_delimiter = ',', help_heading = PERMISSIONS)]
    allow_secret: Vec<String>,
    /// Keep these secrets from every tool, or all; wins over any allowance
    #[arg(long, value_name = "NAME[@HOST[#PLACE]]", value_delimiter = ',', help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_secret: Vec<String>,
    #[command(flatten)]
    pub(crate) kept: KeptSecrets,
}

/// Where the values of secrets are kept.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct KeptSecrets {
    /// Where secrets are kept
    #[arg(
        long,
        value_name = "STORE",
        value_enum,
        default_value_t,
        env = "TOOLCRIB_SECRETS_STORE",
        hide_env_values = true
    )]
    #[arg(help_heading = RECORDS)]
    secrets_store: Choice,
    /// The encrypted file of secrets [default: `toolcrib/secrets/secrets.enc` in your state folder]
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_SECRETS_FILE", hide_env_values = true, help_heading = RECORDS)]
    secrets_file: Option<PathBuf>,
    /// What was read of them so far: everybody who masks them has to know the same ones.
    #[arg(skip)]
    shared: OnceLock<Option<Secrets>>,
}

impl SecretOptions {
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        self.allow_secret.iter().cloned().map(Permission::Secret)
    }

    pub(super) fn denied(&self) -> impl Iterator<Item = Permission> {
        self.deny_secret.iter().cloned().map(Permission::Secret)
    }
}

impl KeptSecrets {
    /// Where they are; nothing is opened yet.
    pub(crate) fn vault(&self) -> anyhow::Result<Vault> {
        let file =
            self.secrets_file.clone().or_else(|| state_folder("secrets").map(|folder| folder.join("secrets.enc")));
        let file = file.ok_or_else(|| {
            Advice::new("no file for secrets: you have no home folder", "name one with `--secrets-file FILE`")
        })?;
        Ok(Vault::new(self.secrets_store, SecretsFile::new(file)))
    }

    /// The secrets that calls can be given; `None` where there is no place for any.
    pub(crate) fn secrets(&self) -> Option<Secrets> {
        self.shared.get_or_init(|| self.vault().ok().map(Secrets::new)).clone()
    }
}
