//! The compiled program of a tool: made once, and by no call in particular. Who needs it waits for it, up to the deadline
//! of his call; that somebody stops waiting stops nothing for the others, and the next call finds what was made meanwhile.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

use crate::error::{Error, Outcome, ToolError};
use crate::sandbox::compiler::Failure;
use crate::sandbox::{self, Program, Sandbox};

use super::Pipeline;
use super::ticket::Ticket;

/// A program, or what is wrong with it, which stays wrong.
type Made = Result<Arc<Program>, String>;
/// The making of one; it fails where the system does, and then it may be tried again.
type Underway = Shared<BoxFuture<'static, Result<Made, String>>>;

/// What has become of a tool's program.
#[derive(Default)]
pub(super) struct Making {
    made: OnceLock<Made>,
    now: Mutex<Option<Underway>>,
}

impl Making {
    /// What comes of it, begun by whoever asks first.
    async fn finish(&self, begin: impl FnOnce() -> Underway) -> Result<Made, String> {
        if let Some(made) = self.made.get() {
            return Ok(made.clone());
        }
        let underway = self.now.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(begin).clone();
        let ended = underway.await.map(|made| self.made.get_or_init(|| made).clone());
        // What has ended is kept where it stays so, and forgotten where it may be tried again.
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if now.as_ref().is_some_and(|underway| underway.peek().is_some()) {
            *now = None;
        }
        ended
    }
}

impl Pipeline {
    /// The compiled program of a tool, made at most once.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the program cannot be run.
    pub(crate) async fn program(&self, index: usize) -> Result<Arc<Program>, Error> {
        let ready = &self.ready[index];
        let path = self.registry.tools()[index].body.program().unwrap_or(Path::new(""));
        let made = ready.program.finish(|| {
            let (sandbox, path) = (self.sandbox.clone(), path.to_path_buf());
            let counts_fuel = ready.limits.fuel.is_some();
            let made = tokio::task::spawn_blocking(move || prepare(&sandbox, &path, counts_fuel));
            let made = made.map(|made| match made {
                Ok(made) => made,
                Err(broken) if broken.is_panic() => Ok(Err("the compiler broke on it".to_owned())),
                Err(_) => Err("the program was not compiled to its end".to_owned()),
            });
            made.boxed().shared()
        });
        let bad = |reason: String| Error::Component { path: path.to_path_buf(), reason };
        made.await.map_err(bad)?.map_err(bad)
    }

    /// The same for a call, which waits no longer than it may take.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadComponent`], or [`Outcome::Deadline`] where the program is not ready by then.
    pub(super) async fn program_in_time(
        &self,
        index: usize,
        ticket: &mut Ticket<'_>,
    ) -> Result<Arc<Program>, ToolError> {
        let ready = &self.ready[index];
        if let Some(Ok(program)) = ready.program.made.get() {
            return Ok(program.clone());
        }
        let left = ticket.left_of(&ready.limits)?;
        let since = Instant::now();
        let made = tokio::time::timeout(left.deadline, self.program(index)).await;
        ticket.spend(since.elapsed());
        match made {
            Ok(made) => made.map_err(|fault| ticket.fault(fault)),
            Err(_) => Err(ToolError::new(Outcome::Deadline, "tool timed out while its program was compiled")),
        }
    }
}

/// Reads and compiles a program. The outer error is the system's, the inner one the program's own.
fn prepare(sandbox: &Sandbox, path: &Path, counts_fuel: bool) -> Result<Made, String> {
    let unreadable = |error: std::io::Error| format!("the program cannot be read: {}", error.kind());
    let mut bytes = Vec::new();
    let most = sandbox::MOST_PROGRAM_BYTES as u64 + 1;
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    match sandbox.prepare(&bytes, counts_fuel) {
        Ok(program) => Ok(Ok(Arc::new(program))),
        Err(Failure::Program(reason)) => Ok(Err(reason)),
        Err(Failure::System(reason)) => Err(reason),
    }
}
