//! Runs the calls of one step. The first interruption stops the calls that may be stopped, a second one stops all.

use std::time::Duration;

use toolcrib::{Session, Step, ToolCall, ToolResult};
use toolcrib_base::{interrupt, render};

/// Time for the records of calls that are stopped.
const LAST_RECORDS: Duration = Duration::from_secs(1);

/// Running calls of a step. Dropping it stops them without waiting for their records, which the end of the program can lose.
pub struct Calls {
    step: Step,
    stage: Stage,
}

/// Interruptions so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Interrupted,
    Cancelled,
}

impl Calls {
    /// Starts the calls.
    pub fn start(session: &Session, calls: Vec<ToolCall>) -> Self {
        Self { step: session.step(calls), stage: Stage::Running }
    }

    /// Awaits the next result in order, of a call that ended or was stopped.
    pub async fn next(&mut self) -> Option<ToolResult> {
        loop {
            let stage = self.stage;
            tokio::select! {
                biased;
                () = interrupt::hard_stop(), if stage != Stage::Cancelled => {
                    self.step.cancel();
                    self.stage = Stage::Cancelled;
                }
                () = interrupt::soft_stop(), if stage == Stage::Running => {
                    self.step.interrupt();
                    self.stage = Stage::Interrupted;
                    let held = self.step.held();
                    if !held.is_empty() {
                        let held = render::one_line(&held.join(", "));
                        render::aside(&format!("info: waiting for {held} to finish; interrupt again to stop it"));
                    }
                }
                result = self.step.next() => return result,
            }
        }
    }

    /// Cancels all calls: from here on none begins.
    pub fn cancel(&self) {
        self.step.cancel();
    }

    /// Stops all calls, and waits until each has its record.
    pub async fn stop(&mut self) {
        self.step.cancel();
        let ended = async { while self.step.next().await.is_some() {} };
        // A record that cannot be written for so long is lost with the program.
        let _ = tokio::time::timeout(LAST_RECORDS, ended).await;
    }
}
