//! The Secret Service of Linux, over the session bus. An item has the attributes and the label that the `keyring` crates
//! give it, so that they and earlier versions of toolcrib find it.

use std::collections::HashMap;

use secret_service::blocking::{Item, SecretService};
use secret_service::{EncryptionType, Error};
use zeroize::Zeroizing;

use super::{NOT_TEXT, SERVICE, several};

/// Name of the attribute for [`SERVICE`].
const SERVICE_ATTRIBUTE: &str = "service";
/// Name of the attribute for the secret's name.
const NAME_ATTRIBUTE: &str = "username";
const CONTENT_TYPE: &str = "application/octet-stream";

/// A connection to the service.
pub(super) struct Store(SecretService<'static>);

impl Store {
    /// Connects to the service. Values are encrypted on the bus.
    pub(super) fn connect() -> Result<Self, String> {
        SecretService::connect(EncryptionType::Dh).map(Self).map_err(described)
    }

    /// Reads the value of a secret.
    pub(super) fn read(&self, name: &str) -> Result<Option<Zeroizing<String>>, String> {
        let Some(item) = self.item(name)? else { return Ok(None) };
        match String::from_utf8(item.get_secret().map_err(described)?) {
            Ok(value) => Ok(Some(Zeroizing::new(value))),
            Err(error) => {
                drop(Zeroizing::new(error.into_bytes()));
                Err(NOT_TEXT.to_owned())
            }
        }
    }

    /// Stores a secret, replacing any with the same name.
    pub(super) fn set(&self, name: &str, value: &str) -> Result<(), String> {
        match self.item(name)? {
            Some(item) => item.set_secret(value.as_bytes(), CONTENT_TYPE).map_err(described),
            None => self.create(name, value).map_err(described),
        }
    }

    /// Removes a secret; `false` if there was none.
    pub(super) fn remove(&self, name: &str) -> Result<bool, String> {
        let Some(item) = self.item(name)? else { return Ok(false) };
        item.delete().map(|()| true).map_err(described)
    }

    /// Lists the names of the secrets.
    pub(super) fn names(&self) -> Result<Vec<String>, String> {
        let items = self.search(HashMap::from([(SERVICE_ATTRIBUTE, SERVICE)])).map_err(described)?;
        let unlocked = items.iter().filter(|item| item.ensure_unlocked().is_ok());
        let attributes = unlocked.filter_map(|item| item.get_attributes().ok());
        Ok(attributes.filter_map(|mut attributes| attributes.remove(NAME_ATTRIBUTE)).collect())
    }

    fn create(&self, name: &str, value: &str) -> Result<(), Error> {
        let collection = self.0.get_default_collection()?;
        if collection.is_locked()? {
            collection.unlock()?;
        }
        let label = format!("keyring:{name}@{SERVICE}");
        collection.create_item(&label, attributes(name), value.as_bytes(), true, CONTENT_TYPE).map(drop)
    }

    /// Finds the only item of a secret.
    fn item(&self, name: &str) -> Result<Option<Item<'_>>, String> {
        let mut items = self.search(attributes(name)).map_err(described)?;
        match items.len() {
            0 | 1 => Ok(items.pop()),
            count => Err(several(count)),
        }
    }

    /// Finds items, and unlocks those that are locked.
    fn search(&self, attributes: HashMap<&str, &str>) -> Result<Vec<Item<'_>>, Error> {
        let mut found = self.0.search_items(attributes)?;
        if !found.locked.is_empty() {
            self.0.unlock_all(&found.locked.iter().collect::<Vec<_>>())?;
        }
        found.unlocked.append(&mut found.locked);
        Ok(found.unlocked)
    }
}

fn attributes(name: &str) -> HashMap<&str, &str> {
    HashMap::from([(SERVICE_ATTRIBUTE, SERVICE), (NAME_ATTRIBUTE, name)])
}

fn described(error: Error) -> String {
    error.to_string()
}
