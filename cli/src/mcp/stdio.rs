//! Service over standard streams: one client, until it closes standard input or the program is interrupted.

use std::process::ExitCode;

use rmcp::ServiceExt;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::stdio;

use crate::interrupt;

use super::handler::Handler;

/// Maximum length of a message in bytes. A longer one is refused, and the connection goes on.
const MAX_MESSAGE: usize = 16 << 20;

/// Serves a client until it leaves.
///
/// # Errors
///
/// The client sends no message of the protocol.
pub(crate) async fn serve(handler: Handler) -> anyhow::Result<ExitCode> {
    let _guard = interrupt::guard();
    let (read, write) = stdio();
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
        ended = &mut ended => drop(ended?),
        () = interrupt::soft_stop() => {
            // Running calls are stopped, and each leaves its record.
            stop.cancel();
            drop(ended.await?);
            return Ok(ExitCode::from(interrupt::INTERRUPTED));
        }
    }
    Ok(ExitCode::SUCCESS)
}
