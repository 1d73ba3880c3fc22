//! The one way of a call: resolve, validate, hooks, permit, execute, map, audit. Nothing goes round it.

mod contract;
mod ticket;

use std::fs::File;
use std::io::Read;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use crate::audit::Audit;
use crate::call::{ToolCall, ToolResult};
use crate::error::{Error, Outcome, ToolError};
use crate::hook::{Hook, Verdict};
use crate::policy::Grant;
use crate::registry::Registry;
use crate::sandbox::{self, Finished, Invocation, Program, Sandbox};
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
    pub(crate) arguments: Arc<Arguments>,
    pub(crate) grant: Grant,
    pub(crate) limits: Limits,
    slots: Semaphore,
    program: OnceCell<Result<Arc<Program>, String>>,
}

impl Ready {
    /// `slots` is how many calls of this tool may run at once.
    pub(crate) fn new(arguments: Arguments, grant: Grant, limits: Limits, slots: usize) -> Self {
        Self { arguments: Arc::new(arguments), grant, limits, slots: Semaphore::new(slots), program: OnceCell::new() }
    }

    /// Checks arguments; where that may take long, elsewhere and until the deadline.
    async fn check(&self, text: &str) -> Result<String, ToolError> {
        if !self.arguments.may_take_long(text) {
            return self.arguments.check(text).map(str::to_owned);
        }
        let (arguments, text) = (self.arguments.clone(), text.to_owned());
        let checked = tokio::task::spawn_blocking(move || arguments.check(&text).map(str::to_owned));
        match tokio::time::timeout(self.limits.deadline, checked).await {
            Ok(Ok(checked)) => checked,
            Ok(Err(_)) => Err(ToolError::new(Outcome::BadArguments, "arguments could not be checked")),
            Err(_) => Err(ToolError::new(Outcome::Deadline, "tool timed out while its arguments were checked")),
        }
    }
}

impl Pipeline {
    /// Takes a call from its door to its record. It always answers, and dropping it stops the guest and leaves a record.
    pub(crate) async fn call(&self, call: ToolCall) -> ToolResult {
        let mut ticket = Ticket::new(self.audit.clone(), &call);
        let ended = match self.audit.ready() {
            Ok(()) => {
                let passed = AssertUnwindSafe(self.pass(&call, &mut ticket)).catch_unwind().await;
                passed.unwrap_or_else(|_| Err(ToolError::new(Outcome::Trap, "the call broke off inside the host")))
            }
            Err(fault) => Err(ticket.fault(fault)),
        };
        ticket.close(call, ended)
    }

    async fn pass(&self, call: &ToolCall, ticket: &mut Ticket) -> Result<String, ToolError> {
        let index = self.registry.find(&call.name).map_err(|fault| ticket.fault(fault))?;
        let (tool, ready) = (&self.registry.tools()[index], &self.ready[index]);
        let Body::Command { argv, .. } = &tool.body;
        ticket.permit(&ready.grant, argv);
        let arguments = ready.check(&call.arguments).await?;
        let value = serde_json::Value::Null;
        for hook in &self.hooks {
            let proposed = crate::hook::Proposed {
                invocation: "",
                call_id: &call.id,
                tool,
                model_input: &call.arguments,
                arguments: &value,
            };
            let refusal = match hook.before(proposed).await {
                Ok(Verdict::Modify(_) | Verdict::Allow | Verdict::Pass) => continue,
                Ok(Verdict::Block(reason)) => format!("blocked by hook {:?}: {reason}", hook.name()),
                Err(error) => format!("blocked by hook {:?}, which failed: {error}", hook.name()),
            };
            return Err(ToolError::new(Outcome::Denied, refusal));
        }
        let program = self.program(index).await.map_err(|fault| ticket.fault(fault))?;
        ticket.program(&program.digest, arguments.len());
        let slots = tokio::time::timeout(ready.limits.deadline, self.slots(ready)).await;
        let slots = slots.map_err(|_| ToolError::new(Outcome::Deadline, "tool timed out waiting for its turn"))?;
        let stdin = Bytes::from(arguments);
        let invocation = Invocation { argv, stdin, grant: &ready.grant, limits: &ready.limits };
        let Finished { exit, stdout, stderr } = self.sandbox.run(&program, invocation, &ticket.meter).await;
        drop(slots);
        ticket.log(&stderr);
        let exit = exit?;
        ticket.exited(exit);
        contract::answer(exit, stdout, stderr)
    }

    /// A slot of the tool's own and one of all: calls of a tool that hangs leave slots to the others.
    async fn slots<'a>(&'a self, ready: &'a Ready) -> [Option<SemaphorePermit<'a>>; 2] {
        // Neither semaphore is ever closed, which is all that can fail here.
        [ready.slots.acquire().await.ok(), self.slots.acquire().await.ok()]
    }

    /// The compiled program of a tool, made at most once.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the program cannot be run.
    pub(crate) async fn program(&self, index: usize) -> Result<Arc<Program>, Error> {
        let ready = &self.ready[index];
        let path = self.registry.tools()[index].body.program();
        let made = ready.program.get_or_try_init(|| async {
            let (sandbox, path) = (self.sandbox.clone(), path.to_path_buf());
            let counts_fuel = ready.limits.fuel.is_some();
            let made = tokio::task::spawn_blocking(move || prepare(&sandbox, &path, counts_fuel)).await;
            made.unwrap_or_else(|_| Ok(Err("the program could not be compiled".to_owned())))
        });
        let bad = |reason: String| Error::Component { path: path.to_path_buf(), reason };
        // A file that cannot be read now may be read later; what is wrong with its bytes stays wrong.
        made.await.map_err(bad)?.clone().map_err(bad)
    }
}

/// Reads and compiles a program. The outer error is the system's, the inner one the program's own.
fn prepare(sandbox: &Sandbox, path: &Path, counts_fuel: bool) -> Result<Result<Arc<Program>, String>, String> {
    let unreadable = |error: std::io::Error| format!("the program cannot be read: {}", error.kind());
    let mut bytes = Vec::new();
    let most = sandbox::MOST_PROGRAM_BYTES as u64 + 1;
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    Ok(sandbox.prepare(&bytes, counts_fuel).map(Arc::new))
}
