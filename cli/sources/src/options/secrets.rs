//! Options for secrets: permissions to use them, and the store of their values.

use std::path::PathBuf;
use std::sync::OnceLock;

use toolcrib::Runtime;
use toolcrib::policy::{Permission, Secrets};
use toolcrib::tool::{Placement, SecretHost, SecretRequest};
use toolcrib_base::folders::state_folder;
use toolcrib_base::headings::{PERMISSIONS, RECORDS};
use toolcrib_base::render::{self, Advice};
use toolcrib_packages::logins::{Logins, TokenStore};
use toolcrib_packages::servers::ServerAccess;
use toolcrib_settings::secrets::{Choice, SecretsFile, Vault};
use toolcrib_settings::selection::ALL;
use toolcrib_settings::selection::{Limited, texts};

/// Permissions to use secrets in requests.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SecretPermissions {
    /// Allow tools to use these secrets in requests; see `toolcrib secret`
    ///
    /// SECRET is NAME@HOST#PLACE, with a place in the request, such as `github@api.github.com#header:authorization` or
    /// `maps@maps.example.com#query:key`. A trusted source needs no flag.
    #[arg(long, value_name = "SECRET", value_parser = texts, help_heading = PERMISSIONS)]
    allow_secret: Vec<Limited<String>>,
    /// Deny these secrets, or all, to every tool, as NAME[@HOST[#PLACE]]; overrides any --allow-* flag
    #[arg(long, value_name = "SECRET", value_parser = texts, help_heading = PERMISSIONS)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = ALL)]
    deny_secret: Vec<Limited<String>>,
}

/// Location of the secret store.
#[derive(Debug, Clone, clap::Args)]
pub struct KeptSecrets {
    /// Store for secrets
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
    /// Encrypted file for secrets [default: `toolcrib/secrets/secrets.enc` in your state directory]
    #[arg(long, value_name = "FILE", env = "TOOLCRIB_SECRETS_FILE", hide_env_values = true, help_heading = RECORDS)]
    secrets_file: Option<PathBuf>,
    /// Store shared by everything that masks secrets, so that all mask the same ones.
    #[arg(skip)]
    shared: OnceLock<Option<Secrets>>,
}

impl SecretPermissions {
    /// Returns the allowed secrets.
    pub(super) fn allowed(&self) -> impl Iterator<Item = Permission> {
        self.allow_secret.iter().flat_map(|list| list.permissions(Permission::Secret))
    }

    /// Returns `true` if any secret is allowed.
    pub(super) fn has_allowed(&self) -> bool {
        !self.allow_secret.is_empty()
    }

    /// Returns the denied secrets.
    pub(super) fn denied(&self) -> impl Iterator<Item = Permission> {
        self.deny_secret.iter().flat_map(|list| list.permissions(Permission::Secret))
    }

    /// Warns about each allowed secret that no tool requests.
    pub(super) fn warn_about_unrequested(&self, runtime: &Runtime) {
        let requested: Vec<&SecretRequest> = runtime.grants().flat_map(|(tool, _)| &tool.requested.secrets).collect();
        let unrequested = self
            .allow_secret
            .iter()
            .flat_map(Limited::values)
            .filter(|flag| !requested.iter().any(|request| is_for(flag, request)));
        for flag in unrequested {
            let mut flags: Vec<String> =
                requested.iter().map(|request| format!("`{}`", request.flag_value())).collect();
            flags.sort();
            flags.dedup();
            let requested = match flags.is_empty() {
                true => String::new(),
                false => format!("; requested: {}", flags.join(", ")),
            };
            render::warning(&format!("--allow-secret={flag}: no tool requests this secret{requested}"));
        }
    }
}

/// Returns `true` if a flag, `NAME@HOST#PLACE`, allows the request.
fn is_for(flag: &str, request: &SecretRequest) -> bool {
    let parts = || {
        let (name, target) = flag.split_once('@')?;
        let (host, place) = target.split_once('#')?;
        Some((name, host.parse::<SecretHost>().ok()?, Placement::parse(place).ok()?))
    };
    parts().is_some_and(|(name, host, place)| {
        name == request.name && host == request.host && place.shares_place(&request.placement)
    })
}

impl KeptSecrets {
    /// Returns the store without opening it.
    pub fn vault(&self) -> anyhow::Result<Vault> {
        let file =
            self.secrets_file.clone().or_else(|| state_folder("secrets").map(|folder| folder.join("secrets.enc")));
        let file = file.ok_or_else(|| {
            Advice::new("no file for secrets: no home directory was found", "set one with `--set secrets.file=FILE`")
        })?;
        Ok(Vault::new(self.secrets_store, SecretsFile::new(file)))
    }

    /// Returns the access to servers, with the secrets that they may get.
    pub fn servers(&self) -> ServerAccess {
        ServerAccess { secrets: self.secrets(), logins: Logins::of_user(), ..ServerAccess::default() }
    }

    /// Returns the secrets available to calls; `None` if there is no store.
    pub fn secrets(&self) -> Option<Secrets> {
        self.shared.get_or_init(|| self.vault().ok().map(|vault| Secrets::new(TokenStore::new(vault)))).clone()
    }
}
