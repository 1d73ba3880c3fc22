//! The calls of one step under a person's eyes: an interruption stops what may be stopped, a second one everything.

use toolcrib::{Session, Step, ToolCall, ToolResult};

use crate::{interrupt, render};

/// Calls that run.
pub(crate) struct Calls {
    step: Step,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Undisturbed,
    Asked,
    Insisted,
}

impl Calls {
    /// Starts them.
    pub(crate) fn start(session: &Session, calls: Vec<ToolCall>) -> Self {
        Self { step: session.step(calls), stage: Stage::Undisturbed }
    }

    /// The next result in order, as soon as the call has ended or was stopped.
    pub(crate) async fn next(&mut self) -> Option<ToolResult> {
        loop {
            let stage = self.stage;
            tokio::select! {
                biased;
                () = interrupt::insisted(), if stage != Stage::Insisted => {
                    self.step.cancel();
                    self.stage = Stage::Insisted;
                }
                () = interrupt::asked(), if stage == Stage::Undisturbed => {
                    self.step.interrupt();
                    self.stage = Stage::Asked;
                    let held = self.step.held();
                    if !held.is_empty() {
                        let held = render::one_line(&held.join(", "));
                        render::aside(&format!("info: waiting for {held} to end; interrupt again to stop it"));
                    }
                }
                result = self.step.next() => return result,
            }
        }
    }
}
