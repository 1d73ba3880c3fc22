//! Values that last as long as the run, shared by the tools of one component. A tool asks for it with `#[tool(cache)]`.

use crate::{Error, Result, host};

/// The value under a key, if there is one.
pub fn get(key: &str) -> Option<String> {
    host::cache::get(key)
}

/// Keeps a value under a key.
///
/// # Errors
///
/// Where the host does not keep it.
pub fn set(key: &str, value: &str) -> Result<()> {
    host::cache::set(key, value).map_err(Error::new)
}
