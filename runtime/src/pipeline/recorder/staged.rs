//! Notes a call in the stage that holds its writes back.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use toolcrib_staging::Stage;

use super::CallRecorder;

impl CallRecorder<'_> {
    /// Notes the call in the stage that holds its writes back.
    ///
    /// # Errors
    ///
    /// The error of the system.
    pub(crate) async fn begin_staged(&self, stage: &Arc<Stage>, tool: &str) -> io::Result<()> {
        let Some(receipt) = &self.receipt else { return Ok(()) };
        let (stage, id, tool) = (stage.clone(), receipt.invocation.clone(), tool.to_owned());
        // Another call may be copying a large file meanwhile.
        let number = tokio::task::spawn_blocking(move || stage.begin_call(&id, &tool)).await??;
        self.usage.staged_call.store(number, Relaxed);
        Ok(())
    }
}
