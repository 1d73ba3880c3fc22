//! The macOS keychain and the Windows Credential Manager.

use std::collections::HashMap;
use std::sync::Arc;

use keyring_core::{CredentialStore, Entry, Error};
use zeroize::Zeroizing;

use super::{NOT_TEXT, SERVICE, several};

#[cfg(target_os = "macos")]
const SEARCH: (&str, &str) = ("service", SERVICE);
#[cfg(windows)]
const SEARCH: (&str, &str) = ("pattern", SERVICE);

/// The store of the system.
pub(super) struct Store(Arc<CredentialStore>);

impl Store {
    /// Opens the store.
    pub(super) fn connect() -> Result<Self, String> {
        #[cfg(target_os = "macos")]
        let store = apple_native_keyring_store::keychain::Store::new();
        #[cfg(windows)]
        let store = windows_native_keyring_store::Store::new();
        Ok(Self(store.map_err(described)?))
    }

    /// Reads the value of a secret.
    pub(super) fn read(&self, name: &str) -> Result<Option<Zeroizing<String>>, String> {
        match self.entry(name)?.get_password() {
            Ok(value) => Ok(Some(Zeroizing::new(value))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(described(error)),
        }
    }

    /// Stores a secret, replacing any with the same name.
    pub(super) fn set(&self, name: &str, value: &str) -> Result<(), String> {
        self.entry(name)?.set_password(value).map_err(described)
    }

    /// Removes a secret; `false` if there was none.
    pub(super) fn remove(&self, name: &str) -> Result<bool, String> {
        match self.entry(name)?.delete_credential() {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(false),
            Err(error) => Err(described(error)),
        }
    }

    /// Lists the names of the secrets.
    pub(super) fn names(&self) -> Result<Vec<String>, String> {
        let found = self.0.search(&HashMap::from([SEARCH])).map_err(described)?;
        let entries = found.iter().filter_map(|entry| entry.get_specifiers());
        Ok(entries.filter(|(service, _)| service == SERVICE).map(|(_, name)| name).collect())
    }

    fn entry(&self, name: &str) -> Result<Entry, String> {
        self.0.build(SERVICE, name, None).map_err(described)
    }
}

/// Describes an error without the value that it may contain.
fn described(error: Error) -> String {
    match error {
        Error::PlatformFailure(cause) | Error::NoStorageAccess(cause) => cause.to_string(),
        Error::BadEncoding(_) => NOT_TEXT.to_owned(),
        Error::Ambiguous(found) => several(found.len()),
        Error::TooLong(field, limit) => format!("its {field} is limited to {limit} characters"),
        Error::NoDefaultStore => "this system is not supported".to_owned(),
        _ => "unsupported operation".to_owned(),
    }
}
