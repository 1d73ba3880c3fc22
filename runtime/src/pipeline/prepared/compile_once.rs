//! Compiles a program at most once; callers await it up to their own deadline. A caller that stops waiting stops nothing
//! for the others, and the next call finds the result of the work done meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use futures::future::{BoxFuture, Shared};
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// A compiled program, or the reason why it can never be compiled.
pub(super) type Compiled<T> = Result<Arc<T>, String>;
/// A compilation in progress. It fails if the system fails, and may then be tried again.
pub(super) type Pending<T> = Shared<BoxFuture<'static, Result<Compiled<T>, String>>>;

/// State of a compilation that is done at most once.
pub(crate) struct CompileOnce<T> {
    result: OnceLock<Compiled<T>>,
    pending: Mutex<Option<Pending<T>>>,
    /// Program digest of the compiled code found in the cache, if any.
    found: OnceCell<Option<Arc<str>>>,
}

impl<T> Default for CompileOnce<T> {
    fn default() -> Self {
        Self { result: OnceLock::new(), pending: Mutex::default(), found: OnceCell::new() }
    }
}

impl<T> CompileOnce<T> {
    /// Waits for the result. The first caller starts the compilation by `start`.
    pub(super) async fn finish(&self, start: impl FnOnce() -> Pending<T>) -> Result<Compiled<T>, String> {
        if let Some(result) = self.result.get() {
            return Ok(result.clone());
        }
        let pending = {
            let mut pending = self.pending();
            // The previous holder of the lock may have stored a result.
            if let Some(result) = self.result.get() {
                return Ok(result.clone());
            }
            pending.get_or_insert_with(start).clone()
        };
        let ended = pending.await;
        // A final result is stored and a failure of the system is forgotten, both under one lock: no caller finds neither a
        // result nor a pending compilation.
        let mut pending = self.pending();
        if let Some(last) = pending.as_ref().and_then(|pending| pending.peek().cloned()) {
            if let Ok(result) = last {
                self.result.get_or_init(|| result);
            }
            *pending = None;
        }
        ended
    }

    /// Returns `true` if the program is loaded, or if `find` finds its compiled code and returns the program's digest.
    /// It looks at most once, on a blocking thread.
    pub(super) async fn is_compiled(&self, find: impl FnOnce() -> Option<String> + Send + 'static) -> bool {
        match self.result.get() {
            Some(result) => result.is_ok(),
            None => {
                let find = || async { spawn_blocking(find).await.unwrap_or(None).map(Arc::from) };
                self.found.get_or_init(find).await.is_some()
            }
        }
    }

    /// Returns the program digest of the compiled code found in the cache.
    pub(super) fn found(&self) -> Option<&Arc<str>> {
        self.found.get()?.as_ref()
    }

    /// Returns the program if it is compiled already.
    pub(super) fn get(&self) -> Option<&Arc<T>> {
        self.result.get()?.as_ref().ok()
    }

    /// Returns the reason why the program can never run, if known.
    pub(super) fn error(&self) -> Option<&str> {
        self.result.get()?.as_ref().err().map(String::as_str)
    }

    fn pending(&self) -> MutexGuard<'_, Option<Pending<T>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread;
    use std::time::Duration;

    use futures::FutureExt;
    use futures::executor::block_on;

    use super::*;

    struct Program;

    fn broken() -> Compiled<Program> {
        Err("broken".to_owned())
    }

    fn ending(ended: Result<Compiled<Program>, String>) -> Pending<Program> {
        std::future::ready(ended).boxed().shared()
    }

    #[test]
    fn what_was_made_while_somebody_waited_for_the_lock_is_not_made_again() {
        let (once, started) = (CompileOnce::<Program>::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            let held = once.pending();
            let waiting = scope.spawn(|| {
                block_on(once.finish(|| {
                    started.fetch_add(1, SeqCst);
                    ending(Ok(broken()))
                }))
            });
            // The waiting thread has seen by now that there is no result; if it is later than this, it sees the result.
            thread::sleep(Duration::from_millis(200));
            assert!(once.result.set(broken()).is_ok());
            drop(held);
            assert!(matches!(waiting.join(), Ok(Ok(Err(why))) if why == "broken"));
        });
        assert_eq!(started.load(SeqCst), 0);
    }

    #[test]
    fn what_another_attempt_made_is_kept_by_whoever_forgets_it() {
        let once = Arc::new(CompileOnce::<Program>::default());
        let others = once.clone();
        let failed = block_on(once.finish(move || {
            let work = async move {
                let pending = ending(Ok(broken()));
                assert!(pending.clone().await.is_ok());
                *others.pending() = Some(pending);
                Err("no room".to_owned())
            };
            work.boxed().shared()
        }));
        assert!(matches!(failed, Err(why) if why == "no room"));
        assert!(once.result.get().is_some() && once.pending().is_none());
    }

    #[test]
    fn code_is_looked_for_once_by_all_and_not_once_the_result_is_final() {
        let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for found in [true, false] {
            let (once, looked) = (CompileOnce::<Program>::default(), Arc::new(AtomicUsize::new(0)));
            let look = || {
                let looked = looked.clone();
                once.is_compiled(move || {
                    looked.fetch_add(1, SeqCst);
                    found.then(|| "digest".to_owned())
                })
            };
            assert_eq!(tokio.block_on(async { futures::join!(look(), look(), look()) }), (found, found, found));
            assert_eq!((looked.load(SeqCst), once.found().map(AsRef::as_ref)), (1, found.then_some("digest")));
            assert!(tokio.block_on(once.finish(|| ending(Ok(broken())))).is_ok());
            assert!(!tokio.block_on(look()), "it can never be compiled");
            assert_eq!(looked.load(SeqCst), 1);
        }
    }
}
