//! The requests of one connection: read with limits, answered one after the other, and finished when the server stops.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{Connection, Use};

/// Limits of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// Time within which the head of a request has arrived.
    pub arrival: Duration,
    /// Maximum size of the head in bytes.
    pub head: usize,
}

/// Answers the requests of one connection, until its client leaves or the server stops. A fault of the connection concerns
/// its client only.
pub async fn serve<A, B>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    client: &Arc<Connection>,
    limits: RequestLimits,
    stop: &CancellationToken,
    answer: impl Fn(Request<Incoming>, Arc<Use>) -> A,
) where
    A: Future<Output = Response<B>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let service = service_fn(|request| {
        let used = Arc::new(client.used());
        let answer = answer(request, used.clone());
        async move {
            // A request runs until its answer is sent or dropped.
            let until_sent = move |frame| {
                let _ = &used;
                frame
            };
            Ok::<_, Infallible>(answer.await.map(|body| body.map_frame(until_sent)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.arrival)
        .max_buf_size(limits.head)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => drop(ended),
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            drop(connection.await);
        }
    }
}
