//! Settings of the database that servers share: its address, and the place of its password. The password itself is in no setting.

use std::path::{Path, PathBuf};

use anyhow::Context;
use toolcrib_base::render::Advice;
use toolcrib_base::store_address::StoreAddress;

use super::layers::Layers;
use super::own_text;

/// Maximum size of the file with the password in bytes.
const MAX_PASSWORD: u64 = 4096;
/// Name of the servers without a setting.
const DEFAULT_NAME: &str = "default";

/// Database that servers share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSettings {
    /// Address of the database.
    pub address: StoreAddress,
    /// Name of the servers that share state with one another.
    pub name: String,
    /// Environment variable with the password.
    pub password_env: Option<String>,
    /// File with the password.
    pub password_file: Option<PathBuf>,
}

impl StoreSettings {
    /// Collects the settings; `None` without an address.
    ///
    /// # Errors
    ///
    /// The address is invalid.
    pub(super) fn of(layers: &Layers) -> anyhow::Result<Option<Self>> {
        let text = |name: &str| {
            let (layer, setting) = layers.effective(name).into_iter().next()?;
            layer.texts(setting).into_iter().next()
        };
        let Some(address) = text("server.store") else { return Ok(None) };
        let address = address.parse().map_err(|error| anyhow::anyhow!("`server.store`: {error}"))?;
        Ok(Some(Self {
            address,
            name: text("server.store_name").unwrap_or_else(|| DEFAULT_NAME.to_owned()),
            password_env: text("server.store_password_env"),
            password_file: text("server.store_password_file").map(PathBuf::from),
        }))
    }

    /// Returns the files of the settings, which no tool may read or write.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.password_file.as_deref().into_iter().chain(self.address.authority())
    }

    /// Reads the password; `None` if its place is not set.
    ///
    /// # Errors
    ///
    /// Both places are set, or the one that is set has none.
    pub fn password(&self) -> anyhow::Result<Option<String>> {
        let password = match (&self.password_env, &self.password_file) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                let message = "the password of the shared store has two places";
                return Err(
                    Advice::new(message, "set `server.store_password_env` or `server.store_password_file`").into()
                );
            }
            (Some(name), None) => std::env::var(name).ok().with_context(|| {
                Advice::new(format!("the variable `{name}` of `server.store_password_env` is not set"), "set it")
            })?,
            (None, Some(path)) => own_text(path, MAX_PASSWORD)?.trim_end_matches(['\r', '\n']).to_owned(),
        };
        if password.is_empty() {
            return Err(Advice::new("the password of the shared store is empty", "store it in the named place").into());
        }
        Ok(Some(password))
    }
}
