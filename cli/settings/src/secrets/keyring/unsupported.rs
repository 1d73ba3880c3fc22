//! A system without a keyring that toolcrib knows.

use zeroize::Zeroizing;

/// Never exists.
pub(super) enum Store {}

impl Store {
    pub(super) fn connect() -> Result<Self, String> {
        Err("this system is not supported".to_owned())
    }

    pub(super) fn read(&self, _: &str) -> Result<Option<Zeroizing<String>>, String> {
        match *self {}
    }

    pub(super) fn set(&self, _: &str, _: &str) -> Result<(), String> {
        match *self {}
    }

    pub(super) fn remove(&self, _: &str) -> Result<bool, String> {
        match *self {}
    }

    pub(super) fn names(&self) -> Result<Vec<String>, String> {
        match *self {}
    }
}
