//! Service over standard streams: one client, until it closes standard input or the program is interrupted.

use std::io;
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll};

use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio;
use tokio::io::{AsyncRead, ReadBuf, Stdin};
use tokio_util::sync::CancellationToken;

use crate::interrupt;

use super::handler::Handler;

/// Maximum length of a message in bytes. A longer one is refused, and the connection goes on.
const MAX_MESSAGE: usize = 16 << 20;

/// Standard input that reports its end.
struct ClosingInput {
    input: Stdin,
    closing: CancellationToken,
}

impl AsyncRead for ClosingInput {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.input).poll_read(context, buffer);
        if read.is_ready() && buffer.filled().len() == before {
            self.closing.cancel();
        }
        read
    }
}

/// Serves a client until it leaves.
///
/// # Errors
///
/// The client sends no message of the protocol.
pub(crate) async fn serve(handler: Handler) -> anyhow::Result<ExitCode> {
    let (_guard, calls) = (interrupt::server(), handler.clone());
    let (read, write) = stdio();
    let read = ClosingInput { input: read, closing: handler.closing().clone() };
    let transport = AsyncRwTransport::new_server(read, write).with_max_line_length(MAX_MESSAGE);
    let service = tokio::select! {
        service = handler.serve(transport) => match service {
            // The client left before it asked for anything.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(ExitCode::SUCCESS),
            service => service?,
        },
        () = interrupt::soft_stop() => return Ok(ExitCode::from(interrupt::INTERRUPTED)),
    };
    let stop = service.cancellation_token();
    let ended = service.waiting();
    tokio::pin!(ended);
    tokio::select! {
        // After the end of the input, running calls have a moment to be answered.
        ended = &mut ended => drop(ended?),
        () = interrupt::soft_stop() => {
            calls.stop().await;
            stop.cancel();
            drop(ended.await?);
            return Ok(ExitCode::from(interrupt::INTERRUPTED));
        }
    }
    calls.stop().await;
    Ok(ExitCode::SUCCESS)
}
