//! Values that live as long as the run, shared by the tools of one component. A tool requests them with
//! `#[tool(cache)]`.

use crate::{Error, Result, host};

/// Returns the value of a key, if one is set.
pub fn get(key: &str) -> Option<String> {
    host::cache::get(key)
}

/// Sets the value of a key.
///
/// # Errors
///
/// If the host refuses to store the value.
pub fn set(key: &str, value: &str) -> Result<()> {
    host::cache::set(key, value).map_err(Error::new)
}
