//! Secrets, which a tool uses by name and never reads.

use crate::host;

/// Lists the names of the secrets that the host inserts into this call's requests.
pub fn granted() -> Vec<String> {
    host::secrets::granted()
}
