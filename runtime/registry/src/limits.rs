//! Bounds on everything that a registry or a credential helper sends.
//!
//! The constants hold for every client. [`Limits`] holds the bounds that a caller may move.

use std::time::Duration;

pub use crate::reference::{MAX_HOST_BYTES, MAX_REFERENCE_BYTES, MAX_REPOSITORY_BYTES, MAX_TAG_BYTES};

/// Largest manifest, index or page of tags or referrers accepted and sent, in bytes. Registries are required to accept 4 MiB.
pub const MAX_DOCUMENT_BYTES: usize = 4 << 20;
/// Most entries read from one manifest or index: layers, blobs or manifests.
pub const MAX_MANIFEST_ENTRIES: usize = 10_000;
/// Largest body of an error response that is read, in bytes. The rest is dropped with the connection.
pub const MAX_ERROR_BYTES: usize = 16 << 10;
/// Largest answer of a token server or a credential helper, in bytes.
pub const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Longest lifetime assumed for a token. A token server that claims more is asked again after this time.
pub const MAX_TOKEN_LIFETIME: Duration = Duration::from_secs(3600);
/// Most tokens kept in memory. The oldest is dropped first.
pub const MAX_TOKENS: usize = 256;
/// Most registries with an open connection pool in one client. The oldest is closed first.
pub const MAX_REGISTRIES: usize = 32;
/// Most redirects followed for one request.
pub const MAX_REDIRECTS: usize = 5;
/// Most header fields of one response.
pub const MAX_HEADERS: usize = 64;
/// Most bytes of header names and values in one response.
pub const MAX_HEADER_BYTES: usize = 32 << 10;
/// Longest address in a `Location`, `Link` or `WWW-Authenticate` header, in bytes.
pub const MAX_URL_BYTES: usize = 8 << 10;
/// Most addresses used from one name lookup.
pub const MAX_ADDRESSES: usize = 32;
/// Most attempts for one request, whatever [`Limits::attempts`] says.
pub const MAX_ATTEMPTS: u32 = 10;
/// Longest pause between two attempts that the client chooses by itself.
pub const MAX_BACK_OFF: Duration = Duration::from_secs(30);
/// Largest chunk sent by a chunked upload. A registry that demands larger chunks is refused.
pub const MAX_CHUNK_BYTES: u64 = 256 << 20;
/// Largest credential file, in bytes.
pub const MAX_CREDENTIAL_FILE_BYTES: u64 = 1 << 20;
/// Largest user name, password or token, in bytes. It has to fit into one request header.
pub const MAX_CREDENTIAL_BYTES: usize = 16 << 10;
/// Longest name of a credential helper, in bytes.
pub const MAX_HELPER_NAME_BYTES: usize = 64;
/// Longest run of a credential helper. It may have to ask a person to unlock a keychain.
pub const MAX_HELPER_TIME: Duration = Duration::from_secs(60);

/// Bounds that a caller may move. Create with [`Limits::default`] and assign fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Largest blob pulled or pushed, in bytes. Default: 1 GiB.
    pub blob_bytes: u64,
    /// Attempts for a request that may be repeated, at least 1. Default: 4. Upper bound: [`MAX_ATTEMPTS`].
    pub attempts: u32,
    /// First pause between two attempts; it doubles with each. Default: 500 ms. Upper bound: [`MAX_BACK_OFF`].
    pub back_off: Duration,
    /// Longest `Retry-After` that is waited for. A longer one ends the operation. Default: 60 s.
    pub retry_after: Duration,
    /// Time for connecting, with name lookup and TLS handshake. Default: 15 s.
    pub connect: Duration,
    /// Longest time without a byte in either direction. Default: 30 s.
    pub stall: Duration,
    /// Time for one exchange other than the transfer of a blob. Default: 60 s.
    pub exchange: Duration,
    /// Time for one call of the client, with all its attempts. Default: 30 min.
    pub deadline: Duration,
    /// Most pages of tags or referrers. Default: 64.
    pub pages: usize,
    /// Most tags or referrers over all pages. Default: 10,000.
    pub entries: usize,
    /// Preferred chunk size for a chunked upload, in bytes. Default: 16 MiB. Upper bound: [`MAX_CHUNK_BYTES`].
    pub chunk_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            blob_bytes: 1 << 30,
            attempts: 4,
            back_off: Duration::from_millis(500),
            retry_after: Duration::from_secs(60),
            connect: Duration::from_secs(15),
            stall: Duration::from_secs(30),
            exchange: Duration::from_secs(60),
            deadline: Duration::from_secs(30 * 60),
            pages: 64,
            entries: 10_000,
            chunk_bytes: 16 << 20,
        }
    }
}
