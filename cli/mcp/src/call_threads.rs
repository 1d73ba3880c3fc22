//! Threads for one client's calls. The thread that reads the requests also runs a call, if it is the only one and short:
//! between two threads, each call would wait until an idle processor wakes up. All other calls run on threads of their own.
//!
//! A step that blocks, such as the wait of at most 2 seconds for the lock of the audit log, delays the requests behind a call on
//! the thread that reads them.

use std::future::poll_fn;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;
use toolcrib_base::async_runtime;

/// Time for which a call may compute on the thread that reads requests. It moves when it pauses next: a guest does so every
/// 5 milliseconds at least.
const MAX_TIME: Duration = Duration::from_millis(2);

/// Threads for calls beside the one that reads requests.
pub(super) struct CallThreads {
    /// `None` only while it is dropped.
    threads: Option<Runtime>,
    /// `true` while a call runs on the thread that reads requests.
    is_busy: AtomicBool,
}

impl CallThreads {
    /// Starts a thread for each processor.
    ///
    /// # Errors
    ///
    /// The system refuses a thread.
    pub(super) fn start() -> io::Result<Self> {
        let threads = async_runtime::build(Builder::new_multi_thread().thread_name("toolcrib-calls").enable_all())?;
        Ok(Self { threads: Some(threads), is_busy: AtomicBool::new(false) })
    }

    /// Runs a call to its end. Dropping the future drops the call. Tasks that a call starts run where it runs itself, so one that
    /// starts tasks must not stay on the thread that reads requests.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
        may_stay: bool,
    ) -> T {
        let Some(threads) = &self.threads else { return call.await };
        let mut call = Box::pin(call);
        if let Some(_here) = may_stay.then(|| Here::take(&self.is_busy)).flatten() {
            let mut computed = Duration::ZERO;
            let ended = poll_fn(|context| {
                let since = Instant::now();
                let polled = call.as_mut().poll(context);
                computed += since.elapsed();
                match polled {
                    Poll::Ready(result) => Poll::Ready(Some(result)),
                    Poll::Pending if computed < MAX_TIME => Poll::Pending,
                    Poll::Pending => Poll::Ready(None),
                }
            });
            if let Some(result) = ended.await {
                return result;
            }
        }
        match AbortOnDropHandle::new(threads.spawn(call)).await {
            Ok(result) => result,
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The threads end with the program.
                Err(_cancelled) => std::future::pending().await,
            },
        }
    }
}

impl Drop for CallThreads {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// Use of the thread that reads requests, by one call at a time.
struct Here<'a>(&'a AtomicBool);

impl<'a> Here<'a> {
    fn take(is_busy: &'a AtomicBool) -> Option<Self> {
        (!is_busy.swap(true, SeqCst)).then_some(Self(is_busy))
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::{self, ThreadId};

    use tokio::sync::oneshot;

    use super::*;

    async fn id() -> ThreadId {
        thread::current().id()
    }

    #[tokio::test]
    async fn one_call_runs_here_and_others_on_their_own_threads() {
        let threads = Arc::new(CallThreads::start().unwrap());
        let here = thread::current().id();
        assert_eq!(threads.run(id(), true).await, here);
        let (end, ended) = oneshot::channel::<()>();
        let waits = tokio::spawn({
            let threads = threads.clone();
            async move { threads.run(async { (ended.await.is_ok(), id().await) }, true).await }
        });
        tokio::task::yield_now().await;
        assert_ne!(threads.run(id(), true).await, here, "another call runs here");
        end.send(()).unwrap();
        assert_eq!(waits.await.unwrap(), (true, here), "a call that waits keeps no thread");
        assert_eq!(threads.run(id(), true).await, here);
    }

    #[tokio::test]
    async fn a_call_that_computes_moves_when_it_pauses() {
        let threads = CallThreads::start().unwrap();
        let ids = threads.run(
            async {
                let first = id().await;
                for _ in 0..2 {
                    thread::sleep(MAX_TIME / 2);
                    tokio::task::yield_now().await;
                }
                [first, id().await]
            },
            true,
        );
        let [first, second] = ids.await;
        assert!(first == thread::current().id() && second != first);
    }

    #[tokio::test]
    async fn a_call_that_may_not_stay_and_its_tasks_run_on_the_other_threads() {
        let threads = CallThreads::start().unwrap();
        let ids = threads.run(async { [id().await, tokio::spawn(id()).await.unwrap()] }, false).await;
        assert!(!ids.contains(&thread::current().id()));
    }

    #[tokio::test]
    async fn a_dropped_call_is_dropped_on_its_thread_too() {
        let threads = CallThreads::start().unwrap();
        let _here = Here::take(&threads.is_busy).unwrap();
        let (kept, dropped) = oneshot::channel::<()>();
        let call = threads.run(
            async move {
                std::future::pending::<()>().await;
                drop(kept);
            },
            true,
        );
        assert!(tokio::time::timeout(MAX_TIME, call).await.is_err());
        assert!(tokio::time::timeout(Duration::from_secs(60), dropped).await.expect("the call is dropped").is_err());
    }

    #[tokio::test]
    #[should_panic(expected = "planned")]
    async fn a_panic_of_a_call_is_that_of_its_request() {
        let threads = CallThreads::start().unwrap();
        let _here = Here::take(&threads.is_busy).unwrap();
        threads.run(async { panic!("planned") }, true).await
    }
}
