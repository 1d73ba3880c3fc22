//! The compiled program of a tool: made once, and by no call in particular. Who needs it waits for it, up to the deadline
//! of his call; that somebody stops waiting stops nothing for the others, and the next call finds what was made meanwhile.

use std::collections::HashMap;
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
use crate::source;

use super::ticket::Ticket;
use super::{Entry, Pipeline};

/// EventKind the model is told where the system fails: how it fails is for the operator alone, and may pass.
pub(super) const NOT_NOW: &str =
    "the host cannot prepare the tool's program right now; the call itself is not at fault";

/// A program, or what is wrong with it, which stays wrong.
type Made<T> = Result<Arc<T>, String>;
/// The making of one; it fails where the system does, and then it may be tried again.
type Underway<T> = Shared<BoxFuture<'static, Result<Made<T>, String>>>;

/// EventKind has become of a program.
pub(super) struct Making<T> {
    made: OnceLock<Made<T>>,
    now: Mutex<Option<Underway<T>>>,
}

impl<T> Default for Making<T> {
    fn default() -> Self {
        Self { made: OnceLock::new(), now: Mutex::default() }
    }
}

impl<T> Making<T> {
    /// EventKind comes of it, begun by whoever asks first.
    pub(super) async fn finish(&self, begin: impl FnOnce() -> Underway<T>) -> Result<Made<T>, String> {
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
        // EventKind has ended is kept where it stays so, and forgotten where it may be tried again: both under one lock, so that
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

    /// The reason for which there is none and never will be, if known.
    pub(super) fn broken(&self) -> Option<&str> {
        self.made.get()?.as_ref().err().map(String::as_str)
    }

    fn now(&self) -> MutexGuard<'_, Option<Underway<T>>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pipeline {
    /// The compiled program of a command, made at most once.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the program cannot be run.
    pub(crate) async fn program(&self, entry: Entry<'_>) -> Result<Arc<Program>, Error> {
        let bad = |reason| entry.bad(reason);
        self.made(entry).await.map_err(bad)?.map_err(bad)
    }

    async fn made(&self, entry: Entry<'_>) -> Result<Made<Program>, String> {
        let ready = entry.ready;
        let begin = || {
            let (sandbox, compiled, path) = (self.sandbox.clone(), self.compiled.clone(), entry.path().to_path_buf());
            let counts_fuel = ready.limits.fuel.is_some();
            let made = tokio::task::spawn_blocking(move || prepare(&sandbox, &compiled, &path, counts_fuel));
            let made = made.map(|made| match made {
                Ok(made) => made,
                Err(broken) if broken.is_panic() => Ok(Err("the compiler crashed on it".to_owned())),
                Err(_) => Err("compilation of the program did not finish".to_owned()),
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
        entry: Entry<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<Arc<Program>, ToolError> {
        let ready = entry.ready;
        if let Some(Ok(program)) = ready.program.made.get() {
            return Ok(program.clone());
        }
        let left = ticket.left_of(&ready.limits)?;
        let since = Instant::now();
        let made = tokio::time::timeout(left.deadline, self.made(entry)).await;
        ticket.spend(since.elapsed());
        match made {
            Ok(Ok(made)) => made.map_err(|reason| ticket.fault(entry.bad(reason))),
            Ok(Err(reason)) => {
                ticket.fault(entry.bad(reason));
                Err(ToolError::new(Outcome::BadComponent, NOT_NOW))
            }
            Err(_) => Err(ToolError::new(Outcome::Deadline, "tool timed out while its program was compiled")),
        }
    }
}

impl Entry<'_> {
    fn path(&self) -> &Path {
        self.tool.body.program().unwrap_or(Path::new(""))
    }

    fn bad(&self, reason: String) -> Error {
        Error::Component { path: self.path().to_path_buf(), reason }
    }
}

/// The place of a compiled program: empty until it was compiled.
type Place = Arc<Mutex<Option<Arc<Program>>>>;

/// Compiled programs by their digest, and by whether their fuel is counted: two files of the same bytes are one program.
#[derive(Default)]
pub(crate) struct Compiled(Mutex<HashMap<(String, bool), Place>>);

impl Compiled {
    /// The place of a program. Whoever holds its lock compiles it.
    fn place(&self, digest: String, counts_fuel: bool) -> Place {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        places.entry((digest, counts_fuel)).or_default().clone()
    }
}

/// Reads and compiles a program. The outer error is the system's, the inner one the program's own.
fn prepare(sandbox: &Sandbox, compiled: &Compiled, path: &Path, counts_fuel: bool) -> Result<Made<Program>, String> {
    let unreadable = |error: std::io::Error| format!("the program cannot be read: {}", error.kind());
    let mut bytes = Vec::new();
    let most = sandbox::MAX_PROGRAM_BYTES as u64 + 1;
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    let place = compiled.place(source::digest(&bytes), counts_fuel);
    let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(program) = place.as_ref() {
        return Ok(Ok(program.clone()));
    }
    match sandbox.prepare(&bytes, counts_fuel) {
        Ok(program) => Ok(Ok(place.insert(Arc::new(program)).clone())),
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

    fn broken() -> Made<Program> {
        Err("broken".to_owned())
    }

    fn ending(ended: Result<Made<Program>, String>) -> Underway<Program> {
        std::future::ready(ended).boxed().shared()
    }

    #[test]
    fn what_was_made_while_somebody_waited_for_the_lock_is_not_made_again() {
        let (making, begun) = (Making::<Program>::default(), AtomicUsize::new(0));
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
        let making = Arc::new(Making::<Program>::default());
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
