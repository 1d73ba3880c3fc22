//! Services of the crib that a script or a rich tool can request: other programs, values, agents, tools, the model. Whoever
//! implements [`HostServices`] judges the permission; a call without services is refused all of them.

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt;
use futures::future::{self, BoxFuture};

use super::bindings::{CodeCall, CodeCallResult, ExecOptions, ExecOutput, GuestPart, ModelAnswer, ModelQuestion};
use super::usage::Usage;

/// Refusal of a service that a call does not have.
const UNAVAILABLE: &str = "not available here";

/// Services of one call. Each one that a kind of guest cannot request keeps its default, a refusal. The guest receives the
/// text of an `Err`.
pub(crate) trait HostServices: Send + Sync {
    /// Runs a command of the crib, with at most this much fuel if fuel is counted.
    fn exec(
        &self,
        program: String,
        arguments: Vec<String>,
        options: ExecOptions,
        fuel: Option<u64>,
    ) -> BoxFuture<'_, Result<ExecOutcome, String>> {
        let _ = (program, arguments, options, fuel);
        unavailable()
    }

    /// Returns the value stored under a key.
    fn cached(&self, key: &str) -> Option<String> {
        let _ = key;
        None
    }

    /// Stores a value under a key.
    fn cache(&self, key: String, value: String) -> Result<(), String> {
        let _ = (key, value);
        Err(UNAVAILABLE.to_owned())
    }

    /// Delegates a task to another agent.
    fn delegate(&self, task: String) -> BoxFuture<'_, Result<String, String>> {
        let _ = task;
        unavailable()
    }

    /// Makes calls for which a program's interpreter waits, and returns their results with its new deadline.
    fn make(&self, calls: Vec<CodeCall>) -> BoxFuture<'_, Result<(Vec<CodeCallResult>, Instant), String>> {
        let _ = calls;
        unavailable()
    }

    /// Adds a tool or a hook to the run.
    fn register(&self, kind: Registration, definition: String) -> Result<(), String> {
        let _ = (kind, definition);
        Err(UNAVAILABLE.to_owned())
    }

    /// Shows a part of the answer before the call ends.
    fn show(&self, part: GuestPart) -> BoxFuture<'_, ()> {
        let _ = part;
        future::ready(()).boxed()
    }

    /// Reports the progress of the call.
    fn measure(&self, done: u64, total: Option<u64>) -> BoxFuture<'_, ()> {
        let _ = (done, total);
        future::ready(()).boxed()
    }

    /// Sends a request to the model.
    fn complete(&self, question: ModelQuestion) -> BoxFuture<'_, Result<ModelAnswer, String>> {
        let _ = question;
        unavailable()
    }

    /// Calls another tool.
    fn call(&self, name: String, arguments: String) -> BoxFuture<'_, Result<String, String>> {
        let _ = (name, arguments);
        unavailable()
    }

    /// Returns the names of the secrets that the host puts into the call's requests.
    fn secrets(&self) -> Vec<String> {
        Vec::new()
    }
}

fn unavailable<T: Send + 'static>() -> BoxFuture<'static, Result<T, String>> {
    future::ready(Err(UNAVAILABLE.to_owned())).boxed()
}

/// Services of a call that has none: every one is refused, and parts are counted as dropped.
pub(super) struct NoServices(pub(super) Arc<Usage>);

impl HostServices for NoServices {
    fn show(&self, _: GuestPart) -> BoxFuture<'_, ()> {
        self.0.dropped();
        future::ready(()).boxed()
    }

    fn measure(&self, _: u64, _: Option<u64>) -> BoxFuture<'_, ()> {
        self.0.dropped();
        future::ready(()).boxed()
    }
}

/// Kind of definition that a script registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registration {
    Tool,
    Hook,
}

/// Output of a command that a script ran, and the fuel that it used.
#[derive(Debug, Clone)]
pub(crate) struct ExecOutcome {
    pub(crate) output: ExecOutput,
    pub(crate) fuel: u64,
}
