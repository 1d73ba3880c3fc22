//! Options for connections to registries.

use std::ffi::OsString;
use std::time::Duration;

use toolcrib_base::headings::REGISTRIES;
use toolcrib_base::parse::duration;
use toolcrib_base::render::{shell_word, usage_error};
use toolcrib_registry::limits::MAX_REGISTRIES;
use toolcrib_registry::{Client, CredentialStore, Limits, Registry};
use toolcrib_settings::secrets::SECRETS;

use super::MAX_BLOB_BYTES;

/// Connections to registries.
#[derive(Debug, Clone, clap::Args)]
pub struct RegistryOptions {
    /// Use plain HTTP for this registry, HOST or HOST:PORT, with credentials; without a value, for the only registry that
    /// the command names. A registry on this machine needs no flag
    #[arg(long, value_name = "HOST", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(help_heading = REGISTRIES)]
    plain_http: Vec<String>,
    /// Maximum time without data from a registry
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "30s", help_heading = REGISTRIES)]
    registry_timeout: Duration,
}

/// Connections to registries for sources of tools.
#[derive(Debug, Clone, clap::Args)]
pub struct SourceRegistries {
    /// Options of each connection.
    #[command(flatten)]
    pub connection: RegistryOptions,
    /// Connect to no registry: references need a digest, and their bundles must be stored
    #[arg(long, help_heading = REGISTRIES)]
    pub offline: bool,
}

impl RegistryOptions {
    /// Returns a client for the registries that the command names. Credentials come from the Docker configuration.
    ///
    /// # Errors
    ///
    /// A usage error if a registry of `--plain-http` is not named by the command.
    pub fn client(&self, named: &[&Registry]) -> anyhow::Result<Client> {
        let mut limits = Limits::default();
        limits.stall = self.registry_timeout;
        limits.connect = limits.connect.min(self.registry_timeout);
        limits.blob_bytes = MAX_BLOB_BYTES;
        let mut builder = Client::builder().limits(limits).credentials(CredentialStore::from_variables(variables()));
        for registry in self.plain(named)? {
            builder = builder.plain_http(registry);
        }
        builder.build().map_err(anyhow::Error::new)
    }

    /// Lists the flags that a repetition of the command needs, with their values for a shell.
    pub(crate) fn flags(&self) -> impl Iterator<Item = (&'static str, String)> {
        // The flag alone is not the flag with an empty value: that would have to be quoted.
        self.plain_http.iter().map(|registry| match registry.as_str() {
            "" => ("plain-http", String::new()),
            registry => ("plain-http", shell_word(registry)),
        })
    }

    /// Returns the registries that are reached over plain HTTP.
    fn plain(&self, named: &[&Registry]) -> anyhow::Result<Vec<Registry>> {
        let mut distinct: Vec<&Registry> = named.to_vec();
        distinct.sort();
        distinct.dedup();
        if distinct.len() > MAX_REGISTRIES {
            return Err(usage_error(format!("a command names at most {MAX_REGISTRIES} registries")));
        }
        let registry = |value: &String| match (value.as_str(), distinct.as_slice()) {
            ("", [only]) => Ok((*only).clone()),
            ("", []) => Err(usage_error("--plain-http: the command names no registry")),
            ("", _) => Err(usage_error("--plain-http: name one of the registries, as in `--plain-http=HOST:PORT`")),
            (value, _) => {
                let registry: Registry =
                    value.parse().map_err(|error| usage_error(format!("--plain-http: {error}")))?;
                match distinct.contains(&&registry) {
                    true => Ok(registry),
                    false => Err(usage_error(format!("--plain-http: the command does not name `{registry}`"))),
                }
            }
        };
        self.plain_http.iter().map(registry).collect()
    }
}

/// Returns the variables that credential helpers receive: this process's variables without the program's own secrets.
fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    // Some systems ignore the case of the name.
    std::env::vars_os().filter(|(name, _)| !SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(flags: &[&str], named: &[&str]) -> Result<Vec<String>, String> {
        let named: Vec<Registry> = named.iter().map(|name| name.parse().unwrap()).collect();
        let options = RegistryOptions {
            plain_http: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            registry_timeout: Duration::from_secs(1),
        };
        let plain = options.plain(&named.iter().collect::<Vec<_>>()).map_err(|error| error.to_string())?;
        Ok(plain.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn plain_http_is_for_registries_that_the_command_names() {
        assert_eq!(plain(&[], &["a.example", "b.example"]), Ok(vec![]));
        assert_eq!(plain(&[""], &["a.example", "a.example"]), Ok(vec!["a.example".to_owned()]));
        assert_eq!(plain(&["b.example:5000"], &["a.example", "b.example:5000"]), Ok(vec!["b.example:5000".to_owned()]));
        for (flag, named, words) in [
            ("", &[][..], "names no registry"),
            ("", &["a.example", "b.example"], "--plain-http=HOST:PORT"),
            ("c.example", &["a.example"], "does not name `c.example`"),
            ("a.example:5000", &["a.example"], "does not name"),
            ("http://a.example", &["a.example"], "--plain-http"),
        ] {
            let refused = plain(&[flag], named).unwrap_err();
            assert!(refused.contains(words), "{flag} {refused}");
        }
        let many: Vec<String> = (0..=MAX_REGISTRIES).map(|number| format!("r{number}.example")).collect();
        assert!(plain(&[], &many.iter().map(String::as_str).collect::<Vec<_>>()).unwrap_err().contains("at most"));
    }
}
