//! Unix socket of a database, which this system does not have.

use std::io;
use std::path::Path;

use super::stream::PlainStream;

/// Refuses to connect to a socket.
pub(super) async fn connect(_: &Path) -> io::Result<PlainStream> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "sockets in folders are not supported here: name a host"))
}
