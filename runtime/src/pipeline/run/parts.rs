//! Shows the parts of a running component in their order.

use tokio::sync::mpsc;

use crate::call::Part;
use crate::error::ToolError;
use crate::pipeline::recorder::CallRecorder;

/// Awaits `work` and shows the parts that arrive meanwhile. Parts after its end are dropped.
pub(super) async fn show_while<T>(
    receiver: &mut mpsc::Receiver<Part>,
    recorder: &mut CallRecorder<'_>,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    let mut work = std::pin::pin!(work);
    let end = loop {
        tokio::select! {
            biased;
            Some(part) = receiver.recv() => recorder.show_part(part),
            end = &mut work => break end,
        }
    };
    while let Ok(part) = receiver.try_recv() {
        recorder.show_part(part);
    }
    end
}
