//! Names a call for the stage that holds its writes back, or for the record that notes them. Both note it with its first change.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use toolcrib_staging::{StagedCall, Withhold};

use crate::call::HeldChanges;
use crate::policy::{Grant, Secrets};
use crate::tool::Tool;

use super::CallRecorder;

impl CallRecorder<'_> {
    /// Names the call, if its grant has a stage or a record.
    pub(super) fn name_for_effects(&mut self, tool: &Tool, grant: &Grant) {
        let Some(receipt) = &mut self.receipt else { return };
        receipt.stage = grant.stage_name().map(str::to_owned);
        let call = || StagedCall { id: receipt.invocation.clone(), tool: tool.name.clone() };
        // A call has one tool.
        if grant.stage().is_some() {
            let _ = self.usage.staged_call.set(Arc::new(call()));
        }
        // Also a secret that the call itself is the first to use.
        let secrets = self.secrets;
        let withhold = || Some(secrets?.clone()).map(|secrets| Withhold::new(move |file| holds_secret(&secrets, file)));
        if let Some(notes) = grant.notes(call, withhold) {
            let _ = self.usage.history.set(notes);
        }
    }

    /// Names the call for the stage that a call opens for itself and those below it.
    pub(crate) fn name_for_stage(&mut self, tool: &Tool, stage: &str) {
        let Some(receipt) = &mut self.receipt else { return };
        receipt.stage = Some(stage.to_owned());
        let call = StagedCall { id: receipt.invocation.clone(), tool: tool.name.clone() };
        let _ = self.usage.staged_call.set(Arc::new(call));
    }

    /// Records the end of the changes that the call held back.
    pub(crate) fn set_held(&mut self, held: HeldChanges) {
        self.note(|receipt| receipt.held = Some(held));
    }

    /// Notes in which state the call leaves the files that it changed, before another call changes them.
    pub(super) async fn end_notes(&self) {
        match self.usage.history.get().cloned() {
            Some(notes) if notes.is_large() => {
                // The notes end with the call, also if this is cancelled.
                let _ = tokio::task::spawn_blocking(move || notes.end()).await;
            }
            Some(notes) => notes.end(),
            None => {}
        }
    }
}

/// Returns `true` if a file holds a secret that was used, or if it cannot be read.
fn holds_secret(secrets: &Secrets, file: &mut File) -> bool {
    let Some(scanner) = secrets.scanner() else { return false };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).is_err() || scanner.check(&bytes).is_err()
}
