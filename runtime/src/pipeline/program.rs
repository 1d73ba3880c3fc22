//! The compiled program of a tool: made once, and by no call in particular. Who needs it waits for it, up to the deadline
//! of his call; that somebody stops waiting stops nothing for the others, and the next call finds what was made meanwhile.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};

use crate::error::{Error, Outcome, ToolError};
use crate::sandbox::compiler::Failure;
use crate::sandbox::{self, Program, Sandbox};

use super::Pipeline;
use super::ticket::Ticket;

/// What the model is told where the system fails: how it fails is for the operator alone, and may pass.
const NOT_NOW: &str = "the tool's program cannot be made ready on this host now; the call itself is not at fault";

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
        let underway = {
            let mut now = self.now();
            // Whoever held the lock before may have kept what was made.
            if let Some(made) = self.made.get() {
                return Ok(made.clone());
            }
            now.get_or_insert_with(begin).clone()
        };
        let ended = underway.await;
        // What has ended is kept where it stays so, and forgotten where it may be tried again: both under one lock, so that
        // nobody finds neither.
        let mut now = self.now();
        if let Some(last) = now.as_ref().and_then(|underway| underway.peek().cloned()) {
            if let Ok(made) = last {
                self.made.get_or_init(|| made);
            }
            *now = None;
        }
        ended
    }

    fn now(&self) -> MutexGuard<'_, Option<Underway>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pipeline {
    /// The compiled program of a tool, made at most once.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the program cannot be run.
    pub(crate) async fn program(&self, index: usize) -> Result<Arc<Program>, Error> {
        let bad = |reason| self.bad(index, reason);
        self.made(index).await.map_err(bad)?.map_err(bad)
    }

    fn path(&self, index: usize) -> &Path {
        self.registry.tools()[index].body.program().unwrap_or(Path::new(""))
    }

    fn bad(&self, index: usize, reason: String) -> Error {
        Error::Component { path: self.path(index).to_path_buf(), reason }
    }

    async fn made(&self, index: usize) -> Result<Made, String> {
        let ready = &self.ready[index];
        let begin = || {
            let (sandbox, path) = (self.sandbox.clone(), self.path(index).to_path_buf());
            let counts_fuel = ready.limits.fuel.is_some();
            let made = tokio::task::spawn_blocking(move || prepare(&sandbox, &path, counts_fuel));
            let made = made.map(|made| match made {
                Ok(made) => made,
                Err(broken) if broken.is_panic() => Ok(Err("the compiler broke on it".to_owned())),
                Err(_) => Err("the program was not compiled to its end".to_owned()),
            });
            made.boxed().shared()
        };
        ready.program.finish(begin).await
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
        let made = tokio::time::timeout(left.deadline, self.made(index)).await;
        ticket.spend(since.elapsed());
        match made {
            Ok(Ok(made)) => made.map_err(|reason| ticket.fault(self.bad(index, reason))),
            Ok(Err(reason)) => {
                ticket.fault(self.bad(index, reason));
                Err(ToolError::new(Outcome::BadComponent, NOT_NOW))
            }
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread;
    use std::time::Duration;

    use futures::executor::block_on;

    use super::*;

    fn broken() -> Made {
        Err("broken".to_owned())
    }

    fn ending(ended: Result<Made, String>) -> Underway {
        std::future::ready(ended).boxed().shared()
    }

    #[test]
    fn what_was_made_while_somebody_waited_for_the_lock_is_not_made_again() {
        let (making, begun) = (Making::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            let held = making.now();
            let waiting = scope.spawn(|| {
                block_on(making.finish(|| {
                    begun.fetch_add(1, SeqCst);
                    ending(Ok(broken()))
                }))
            });
            // He has seen by now that nothing is made; where he is later than this, he sees what is.
            thread::sleep(Duration::from_millis(200));
            assert!(making.made.set(broken()).is_ok());
            drop(held);
            assert!(matches!(waiting.join(), Ok(Ok(Err(why))) if why == "broken"));
        });
        assert_eq!(begun.load(SeqCst), 0);
    }

    #[test]
    fn what_another_attempt_made_is_kept_by_whoever_forgets_it() {
        let making = Arc::new(Making::default());
        let others = making.clone();
        let failed = block_on(making.finish(move || {
            let work = async move {
                let made = ending(Ok(broken()));
                assert!(made.clone().await.is_ok());
                *others.now() = Some(made);
                Err("no room".to_owned())
            };
            work.boxed().shared()
        }));
        assert!(matches!(failed, Err(why) if why == "no room"));
        assert!(making.made.get().is_some() && making.now().is_none());
    }
}
