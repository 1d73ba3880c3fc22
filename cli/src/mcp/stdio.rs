//! Service over standard streams: one client, until it closes standard input or the program is interrupted.

use std::process::ExitCode;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;

use crate::interrupt;

use super::handler::Handler;
use super::wire::Wire;

/// Serves a client until it leaves.
///
/// # Errors
///
/// The client sends no message of the protocol.
pub(crate) async fn serve(handler: Handler) -> anyhow::Result<ExitCode> {
    let (_guard, calls) = (interrupt::server(), handler.clone());
    let (read, write) = stdio();
    let transport = Wire::new(read, write, handler.closing().clone());
    let service = tokio::select! {
        service = handler.serve(transport) => match service {
            // The client left before it asked for anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(ExitCode::SUCCESS),
            Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                anyhow::bail!("the first message of the client is no request of the protocol")
            }
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
