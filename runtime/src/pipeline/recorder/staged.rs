//! Names a call for the stage that holds its writes back. The stage notes it with its first change.

use std::sync::Arc;

use toolcrib_staging::StagedCall;

use crate::policy::Grant;
use crate::tool::Tool;

use super::CallRecorder;

impl CallRecorder<'_> {
    /// Names the call, if its grant has a stage.
    pub(super) fn name_for_stage(&self, tool: &Tool, grant: &Grant) {
        if let (Some(_), Some(receipt)) = (grant.stage(), &self.receipt) {
            let (id, tool) = (receipt.invocation.clone(), tool.name.clone());
            // A call has one tool.
            let _ = self.usage.staged_call.set(Arc::new(StagedCall { id, tool }));
        }
    }
}
