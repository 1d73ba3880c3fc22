//! Parts that every HTTP server in this program needs: connections with limits, and the hosts and origins of requests.
//! Nothing of a protocol is here.

mod connections;
mod hosts;
mod origin;
mod requests;
mod write_limit;

use std::time::Duration;

use http::Request;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;

pub use connections::{Connection, Connections, Use};
pub use hosts::{Hosts, ServedHost};
pub use origin::{Origin, Origins, share};
pub use requests::{RequestLimits, serve};
pub use write_limit::WriteLimit;

/// Maximum size of a request's head in bytes.
pub const MAX_HEAD: usize = 64 << 10;

/// Accepts a connection, and waits until there is room for it; `None` after a fault of one connection.
pub async fn accept(listener: &TcpListener, connections: &Connections) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    match listener.accept().await {
        Ok((stream, _from)) => {
            // Answers are small: they are sent at once.
            let _ = stream.set_nodelay(true);
            Some((stream, connections.room().await?))
        }
        Err(_) => {
            // Such as too many open files: the next attempt waits for others to end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

/// Size of a request's head. The library reads somewhat more than its buffer if it arrives at once.
pub fn head_size<B>(request: &Request<B>) -> usize {
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    // Each header has a colon and an end of line.
    target + request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 3).sum::<usize>()
}
