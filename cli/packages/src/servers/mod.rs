//! Remote MCP servers as sources: their client, the definitions that are pinned when a person agrees to them, and the logins with
//! their tokens. Each byte passes the network gate of the library.

mod client;
mod fault;
mod headers;
mod listing;
mod message;
mod pack;
mod peer;
mod pin;
mod probe;
mod reply;
mod result;
mod source;

pub use client::ServerClient;
pub use fault::Fault;
pub use listing::Listing;
pub(crate) use pack::{PackedServer, pack};
pub use pack::{Pinning, ServerAccess};
pub use pin::difference;
pub use probe::challenge;
pub use source::ServerSource;
