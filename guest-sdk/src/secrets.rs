//! Secrets, which a tool uses by their names and never sees.

use crate::host;

/// The names of those that the host puts into this call's requests.
pub fn granted() -> Vec<String> {
    host::secrets::granted()
}
