//! Service over standard streams: one client, until it closes standard input and has its answers, or the program is interrupted.

use std::convert::Infallible;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::Context;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use toolcrib_base::http_server::WriteLimit;
use toolcrib_base::{interrupt, render};

use super::call_threads::CallThreads;
use super::handler::Handler;
use super::streams;
use super::wire::Wire;

/// Time after which a client that reads nothing has left.
const MAX_UNREAD: Duration = Duration::from_secs(30);
/// Time after which the user sees that the server waits for calls.
const MAX_SILENCE: Duration = Duration::from_millis(700);
/// Time in which the answers of stopped calls are sent when the server ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Serves a client until it leaves.
///
/// # Errors
///
/// The client sends no message of the protocol, or the system refuses a thread.
pub async fn serve(handler: Handler) -> anyhow::Result<ExitCode> {
    let handler = handler.on_threads(CallThreads::start().context("cannot start threads")?);
    let (_guard, calls) = (interrupt::server(), handler.clone());
    let (read, write) = streams::open();
    let transport = Wire::new(read, WriteLimit::new(write, MAX_UNREAD), handler.closing().clone());
    let service = tokio::select! {
        service = handler.serve(transport) => match service {
            // The client left before it asked for anything.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(ExitCode::SUCCESS),
            Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                anyhow::bail!("expected an MCP request as the first message")
            }
            service => service?,
        },
        () = interrupt::soft_stop() => return Ok(ExitCode::from(interrupt::INTERRUPTED)),
    };
    let stop = service.cancellation_token();
    let ended = service.waiting();
    tokio::pin!(ended);
    tokio::select! {
        ended = &mut ended => drop(ended?),
        () = client_left(&calls) => {}
        never = report_wait(&calls) => match never {},
        () = interrupt::soft_stop() => {
            calls.stop().await;
            stop.cancel();
            // A client that reads nothing delays the end for a moment only.
            let _ = tokio::time::timeout(LAST_ANSWERS, ended).await;
            return Ok(ExitCode::from(interrupt::INTERRUPTED));
        }
    }
    calls.stop().await;
    warn_of_unfinished(calls.unfinished.load(Relaxed));
    Ok(ExitCode::SUCCESS)
}

/// Waits until the client has closed standard input and nobody can read the answers.
async fn client_left(calls: &Handler) {
    calls.closing().cancelled().await;
    streams::reader_left().await;
}

/// Says after the end of the input that the server waits for calls, if it does so for a while.
async fn report_wait(calls: &Handler) -> Infallible {
    calls.closing().cancelled().await;
    tokio::time::sleep(MAX_SILENCE).await;
    match calls.running.len() {
        0 => {}
        1 => render::aside("standard input is closed: waiting for 1 running call"),
        running => render::aside(&format!("standard input is closed: waiting for {running} running calls")),
    }
    std::future::pending().await
}

/// Reports calls for which a client did not wait: whoever pipes a request into the server sees why there is no answer.
fn warn_of_unfinished(calls: usize) {
    let calls = match calls {
        0 => return,
        1 => "1 running call was".to_owned(),
        calls => format!("{calls} running calls were"),
    };
    render::warning(&format!(
        "{calls} stopped, because standard input was closed: keep it open, and read standard output, until the answers have come"
    ));
}
