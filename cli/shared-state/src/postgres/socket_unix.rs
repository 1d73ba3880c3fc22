//! Unix socket of a database.

use std::io;
use std::path::Path;

use tokio::net::UnixStream;

use super::stream::PlainStream;

/// Connects to a socket.
pub(super) async fn connect(path: &Path) -> io::Result<PlainStream> {
    UnixStream::connect(path).await.map(PlainStream::new)
}
