//! A call between its acceptance and its start. Every accepted call leaves a record, also one that is dropped before it starts:
//! the task that would have run it was aborted, or nothing ever polled its future.

use std::borrow::Borrow;
use std::sync::Arc;

use crate::call::ToolCall;

use super::{Memory, Pipeline};

/// A call that has not started. If it is dropped, it is recorded as cancelled.
pub(crate) struct UnstartedCall<P: Borrow<Pipeline>, M: Borrow<Memory>> {
    pipeline: P,
    memory: M,
    /// `None` once it starts.
    call: Option<ToolCall>,
}

impl<P: Borrow<Pipeline>, M: Borrow<Memory>> UnstartedCall<P, M> {
    pub(crate) fn new(pipeline: P, memory: M, call: ToolCall) -> Self {
        Self { pipeline, memory, call: Some(call) }
    }

    /// Returns the call to start it. From then on, the pipeline records it.
    pub(crate) fn start(mut self) -> ToolCall {
        self.call.take().unwrap_or_else(|| ToolCall::new("", "", ""))
    }
}

impl<P: Borrow<Pipeline>, M: Borrow<Memory>> Drop for UnstartedCall<P, M> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            let memory = self.memory.borrow();
            drop(self.pipeline.borrow().recorder(Arc::new(call), memory).watched_by(memory.watcher()));
        }
    }
}
