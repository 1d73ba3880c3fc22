//! The interpreter of programs that call tools.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::delegate::MAX_DEPTH;
use crate::error::{Outcome, ToolError};
use crate::sandbox::{CodeInterpreter, MAX_PROGRAMS, Sandbox};
use crate::tool::Limits;

use super::PreparedTool;
use super::host_component::{HostComponent, InterpreterSource};

/// The interpreter of programs, and the permits to run one.
pub(crate) struct CodeInterpreters {
    component: HostComponent<CodeInterpreter>,
    /// Permits by depth: programs of a delegated agent take none from the programs that wait for it.
    permits: [Semaphore; MAX_DEPTH as usize + 1],
}

impl CodeInterpreters {
    /// Creates the state of an interpreter that is not compiled; without a component no program can run.
    pub(crate) fn new(sandbox: Arc<Sandbox>, component: Option<InterpreterSource>) -> Self {
        let prepare = |sandbox: &Sandbox, digest: &str, read: &dyn Fn() -> _, counts_fuel| {
            sandbox.prepare_code_interpreter(digest, read, counts_fuel)
        };
        let component = HostComponent::new(sandbox, component, "interpreter of programs", prepare);
        Self { component, permits: std::array::from_fn(|_| Semaphore::new(MAX_PROGRAMS as usize)) }
    }

    /// Returns the interpreter, and the permit to run one program at a depth.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`] if there is no interpreter, or it cannot run; [`Outcome::Busy`] if other programs run until the
    /// deadline.
    pub(crate) async fn interpreter(
        &self,
        prepared: &PreparedTool,
        limits: &Limits,
        depth: u32,
    ) -> Result<(Arc<CodeInterpreter>, SemaphorePermit<'_>), ToolError> {
        let interpreter = self.component.get(prepared).await?;
        let permits = &self.permits[(depth as usize).min(self.permits.len() - 1)];
        let permit = tokio::time::timeout(limits.deadline, permits.acquire()).await;
        let busy = || ToolError::new(Outcome::Busy, format!("{MAX_PROGRAMS} other programs run"));
        Ok((interpreter, permit.ok().and_then(Result::ok).ok_or_else(busy)?))
    }
}
