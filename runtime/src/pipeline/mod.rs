//! The one way of a call: resolve, validate, hooks, permit, execute, map, audit. Nothing goes round it.

mod contract;
mod ticket;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OnceCell, Semaphore};

use crate::audit::Audit;
use crate::call::{ToolCall, ToolResult};
use crate::error::{Error, Outcome, ToolError};
use crate::hook::{Hook, Verdict};
use crate::policy::Grant;
use crate::registry::Registry;
use crate::sandbox::{Finished, Invocation, Program, Sandbox};
use crate::schema::Arguments;
use crate::tool::{Body, Limits};

use ticket::Ticket;

/// Everything a call passes through.
pub(crate) struct Pipeline {
    pub(crate) registry: Registry,
    /// One for each tool of the registry, in its order.
    pub(crate) ready: Vec<Ready>,
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) slots: Semaphore,
}

/// What was settled for a tool before its first call.
pub(crate) struct Ready {
    pub(crate) arguments: Arguments,
    pub(crate) grant: Grant,
    pub(crate) limits: Limits,
    program: OnceCell<Result<Arc<Program>, Error>>,
}

impl Ready {
    pub(crate) fn new(arguments: Arguments, grant: Grant, limits: Limits) -> Self {
        Self { arguments, grant, limits, program: OnceCell::new() }
    }
}

impl Pipeline {
    /// Takes a call from its door to its record. It always answers, and dropping it stops the guest and leaves a record.
    pub(crate) async fn call(&self, call: ToolCall) -> ToolResult {
        let mut ticket = Ticket::new(self.audit.clone(), &call);
        let ended = match self.audit.ready() {
            Ok(()) => self.pass(&call, &mut ticket).await,
            Err(fault) => Err(ticket.fault(fault)),
        };
        ticket.close(call, ended)
    }

    async fn pass(&self, call: &ToolCall, ticket: &mut Ticket) -> Result<String, ToolError> {
        let index = self.registry.find(&call.name).map_err(|fault| ticket.fault(fault))?;
        let (tool, ready) = (&self.registry.tools()[index], &self.ready[index]);
        let Body::Command { argv, .. } = &tool.body;
        ticket.permit(&ready.grant, argv);
        let arguments = ready.arguments.check(&call.arguments)?;
        for hook in &self.hooks {
            let refusal = match hook.before(tool, call).await {
                Ok(Verdict::Allow) => continue,
                Ok(Verdict::Block(reason)) => format!("blocked by hook {:?}: {reason}", hook.name()),
                Err(error) => format!("blocked by hook {:?}, which failed: {error}", hook.name()),
            };
            return Err(ToolError::new(Outcome::Denied, refusal));
        }
        let program = self.program(index).await.map_err(|fault| ticket.fault(fault))?;
        ticket.program(&program.digest, arguments.len());
        let slot = self.slots.acquire().await.map_err(|_| ToolError::new(Outcome::Cancelled, "shutting down"))?;
        let stdin = Bytes::copy_from_slice(arguments.as_bytes());
        let invocation = Invocation { argv, stdin, grant: &ready.grant, limits: &ready.limits };
        let Finished { exit, stdout, stderr } = self.sandbox.run(&program, invocation, &ticket.meter).await;
        drop(slot);
        ticket.log(&stderr);
        let exit = exit?;
        ticket.exited(exit);
        contract::answer(exit, stdout, stderr)
    }

    /// The compiled program of a tool, made at most once.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the program cannot be run.
    pub(crate) async fn program(&self, index: usize) -> Result<Arc<Program>, Error> {
        let ready = &self.ready[index];
        let made = ready.program.get_or_init(|| async {
            let path = self.registry.tools()[index].body.program().to_path_buf();
            let sandbox = self.sandbox.clone();
            let counts_fuel = ready.limits.fuel.is_some();
            let made = {
                let path = path.clone();
                tokio::task::spawn_blocking(move || prepare(&sandbox, &path, counts_fuel)).await
            };
            let made = made.unwrap_or_else(|_| Err("the program could not be compiled".to_owned()));
            made.map_err(|reason| Error::Component { path, reason })
        });
        made.await.clone()
    }
}

fn prepare(sandbox: &Sandbox, path: &Path, counts_fuel: bool) -> Result<Arc<Program>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("the program cannot be read: {}", error.kind()))?;
    sandbox.prepare(&bytes, counts_fuel).map(Arc::new)
}
