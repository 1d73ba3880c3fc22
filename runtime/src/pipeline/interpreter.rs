//! The interpreter of scripts: compiled once for all of them, and once more for those whose fuel is counted. Making it
//! ready is the host's own work and costs no script its time.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;

use crate::error::{Outcome, ToolError};
use crate::sandbox::compiler::Failure;
use crate::sandbox::{Interpreter, Sandbox};

use super::Pipeline;
use super::program::{Making, NOT_NOW};
use super::ready::Ready;

/// The interpreter's bytes, and what was made of them.
#[derive(Default)]
pub(crate) struct Interpreters {
    bytes: Option<Bytes>,
    plain: Making<Interpreter>,
    metered: Making<Interpreter>,
}

impl Interpreters {
    pub(crate) fn new(bytes: Option<Bytes>) -> Self {
        Self { bytes, ..Self::default() }
    }
}

impl Pipeline {
    /// The interpreter, made at most once.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`] where there is none, or none that runs.
    pub(crate) async fn interpreter(&self, ready: &Ready) -> Result<Arc<Interpreter>, ToolError> {
        let bad = |why: &str| ToolError::new(Outcome::BadComponent, why);
        let bytes = self.interpreters.bytes.as_ref().ok_or_else(|| bad("no script interpreter is configured"))?;
        let counts_fuel = ready.limits.fuel.is_some();
        let making = if counts_fuel { &self.interpreters.metered } else { &self.interpreters.plain };
        let begin = || {
            let (sandbox, bytes) = (self.sandbox.clone(), bytes.clone());
            let made = tokio::task::spawn_blocking(move || prepare(&sandbox, &bytes, counts_fuel));
            let made = made.map(|made| made.unwrap_or_else(|_| Err("its compilation did not finish".to_owned())));
            made.boxed().shared()
        };
        match making.finish(begin).await {
            Ok(made) => made.map_err(|why| bad(&format!("the interpreter of scripts cannot be run: {why}"))),
            Err(_) => Err(bad(NOT_NOW)),
        }
    }
}

/// The outer error is the system's, the inner one the interpreter's own.
fn prepare(sandbox: &Sandbox, bytes: &[u8], counts_fuel: bool) -> Result<Result<Arc<Interpreter>, String>, String> {
    match sandbox.prepare_interpreter(bytes, counts_fuel) {
        Ok(interpreter) => Ok(Ok(Arc::new(interpreter))),
        Err(Failure::Program(reason)) => Ok(Err(reason)),
        Err(Failure::System(reason)) => Err(reason),
    }
}
