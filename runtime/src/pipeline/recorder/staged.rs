//! Names a call for the stage that holds its writes back, or for the record that notes them. Both note it with its first change.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use toolcrib_staging::{StagedCall, Withhold};

use crate::call::{Exchange, HeldChanges, HeldEnd, Receipt, clipped};
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

    /// Records the changes that the call has held back.
    pub(crate) fn set_held(&mut self, held: HeldChanges) {
        self.note(|receipt| receipt.held = Some(held));
    }

    /// Records another end of these changes.
    pub(crate) fn end_held(&mut self, end: HeldEnd) {
        self.note(|receipt| receipt.held.iter_mut().for_each(|held| held.end = end));
    }

    /// Records a request that was held back and is sent from now on: without a status, it may have arrived.
    pub(crate) fn begin_sent(&mut self, method: &str, url: &str) {
        let host = clipped(url.split('/').nth(2).unwrap_or_default());
        let exchange = Exchange { method: method.to_owned(), host, ..Exchange::default() };
        self.note(|receipt| receipt.held.iter_mut().for_each(|held| held.sent.push(exchange.clone())));
    }

    /// Records the result of that request.
    pub(crate) fn end_sent(&mut self, exchange: Exchange) {
        let last = |receipt: &mut Receipt| {
            receipt.held.as_mut().and_then(|held| held.sent.last_mut().map(|last| *last = exchange))
        };
        self.note(|receipt| {
            last(receipt);
        });
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
