//! The interpreter of programs that call tools.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::{Outcome, ToolError};
use crate::sandbox::{CodeInterpreter, MAX_PROGRAMS, Sandbox};

use super::PreparedTool;
use super::host_component::{HostComponent, InterpreterSource};

/// The interpreter of programs, and the permits to run one.
pub(crate) struct CodeInterpreters {
    component: HostComponent<CodeInterpreter>,
    permits: Semaphore,
}

impl CodeInterpreters {
    /// Creates the state of an interpreter that is not compiled; without a component no program can run.
    pub(crate) fn new(sandbox: Arc<Sandbox>, component: Option<InterpreterSource>) -> Self {
        let prepare = |sandbox: &Sandbox, digest: &str, read: &dyn Fn() -> _, counts_fuel| {
            sandbox.prepare_code_interpreter(digest, read, counts_fuel)
        };
        let component = HostComponent::new(sandbox, component, "interpreter of programs", prepare);
        Self { component, permits: Semaphore::new(MAX_PROGRAMS as usize) }
    }

    /// Returns the interpreter, and the permit to run one program.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`] if there is no interpreter, or it cannot run.
    pub(crate) async fn interpreter(
        &self,
        prepared: &PreparedTool,
    ) -> Result<(Arc<CodeInterpreter>, SemaphorePermit<'_>), ToolError> {
        let interpreter = self.component.get(prepared).await?;
        let permit = self.permits.acquire().await;
        Ok((interpreter, permit.map_err(|_| ToolError::new(Outcome::Busy, "no program can run now"))?))
    }
}
