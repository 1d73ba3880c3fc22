//! Names a call for the stage that holds its writes back, or for the record that notes them. Both note it with its first change.

use std::sync::Arc;

use toolcrib_staging::StagedCall;

use crate::policy::Grant;
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
        if let Some(notes) = grant.notes(call) {
            let _ = self.usage.history.set(notes);
        }
    }

    /// Notes in which state the call leaves the files that it changed, before another call changes them.
    pub(super) fn end_notes(&self) {
        if let Some(notes) = self.usage.history.get() {
            notes.end();
        }
    }
}
