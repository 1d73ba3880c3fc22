//! Performs a client's call in the runtime. A cancellation and the end of the server stop the guest.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures::FutureExt;
use tokio_util::sync::CancellationToken;
use toolcrib::tool::{Body, Builtin};
use toolcrib::{CallInterrupt, Tool, ToolCall, ToolResult};
use toolcrib_base::interrupt;

use super::caller::Caller;
use super::program_calls::{ProgramView, must_end};
use super::publication::Published;

/// Maximum length of a client's name in a record, in characters.
const MAX_CLIENT_LEN: usize = 128;
/// Maximum time in which tools that must end finish their calls when the server ends.
pub(super) const MAX_FINISH: Duration = Duration::from_secs(5);

/// Reasons to stop a call.
pub(super) struct Stop {
    /// The client cancelled it. A tool that states that it must end is not stopped then.
    pub(super) cancelled: CancellationToken,
    /// The server ends. A tool that states that it must end may finish.
    pub(super) stopping: CancellationToken,
    /// The client sends nothing more, or the server begins to end.
    pub(super) closing: CancellationToken,
    /// Number of calls that were stopped since.
    pub(super) unfinished: Arc<AtomicUsize>,
}

/// Call of a program, which ends as soon as none of its calls must end.
struct Program {
    interrupt: CallInterrupt,
    calls: ProgramView,
}

impl Program {
    /// Lets the program make no further call, and waits until it can be stopped.
    async fn interrupted(&self) {
        self.interrupt.interrupt();
        self.calls.may_stop().await;
    }
}

impl Stop {
    /// Waits for a reason to stop, and until the call can be stopped.
    async fn requested(&self, must_end: bool, program: Option<&Program>) {
        let finished = async || match program {
            Some(program) => program.interrupted().await,
            None if must_end => std::future::pending().await,
            None => {}
        };
        let ending = async {
            self.stopping.cancelled().await;
            let finished = async {
                tokio::select! {
                    () = finished() => {}
                    () = interrupt::hard_stop() => {}
                }
            };
            let _ = tokio::time::timeout(MAX_FINISH, finished).await;
        };
        let cancelled = async {
            self.cancelled.cancelled().await;
            finished().await;
        };
        tokio::select! {
            () = ending => {}
            () = cancelled => {}
        }
    }
}

/// Returns `true` for the tool that runs programs.
pub(super) fn runs_programs(tool: &Tool) -> bool {
    matches!(tool.body, Body::Builtin(Builtin::RunCode))
}

/// Performs a call of a tool by its name in the runtime, with these arguments. Returns `None` if it was stopped, with its guest. The
/// call leaves a record also if the future is dropped before it is polled. With `to_end`, a call that would go on in the background
/// is performed to its end.
pub(super) fn perform(
    published: &Published,
    id: &str,
    (name, arguments): (String, String),
    caller: Arc<Caller>,
    stop: Stop,
    to_end: bool,
) -> impl Future<Output = Option<ToolResult>> + Send + 'static {
    let mut call = ToolCall::new(id, &name, arguments);
    call.caller = Some(caller.client.chars().take(MAX_CLIENT_LEN).collect());
    call.trace = caller.trace;
    call.label = caller.label.clone();
    let tool = published.runtime.tool(&name);
    let must_end = tool.is_some_and(must_end);
    let session = published.session(&caller.holder);
    // In a box: the library moves the future of a request several times, and each function around the call would double it.
    let (work, program) = match tool.is_some_and(runs_programs) {
        true => {
            let calls = published.parts.programs.view(id);
            let (interrupt, work) = session.call_with_interrupt(call);
            (work.boxed(), Some(Program { interrupt, calls }))
        }
        false if to_end => (session.call_to_end(call).boxed(), None),
        false => (session.call(call).boxed(), None),
    };
    async move {
        let (mut work, mut stopped) = (pin!(caller.perform(work)), pin!(stop.requested(must_end, program.as_ref())));
        tokio::select! {
            biased;
            () = &mut stopped => {
                if stop.closing.is_cancelled() {
                    stop.unfinished.fetch_add(1, Relaxed);
                }
                None
            }
            result = &mut work => Some(result),
        }
    }
}
