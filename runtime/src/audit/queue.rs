//! Records that wait to be written. A call that finds no writer writes its own record, and then those that arrived meanwhile,
//! many at once. The others wait for the result without blocking a thread, so that no call waits for the lock of another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::channel::oneshot;
use tokio::runtime::Handle;

use crate::error::Error;

use super::day::Day;

/// Maximum batches that a call writes for others before a blocking thread continues.
const MAX_BATCHES: usize = 32;
/// Time after which a call writes no more batches for others.
const MAX_TIME: Duration = Duration::from_millis(10);

/// A record and the day of its file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) day: Day,
    /// One JSON object.
    pub(super) record: Vec<u8>,
}

/// Place to which entries are written.
pub(super) trait Sink: Send + Sync + 'static {
    /// Writes entries in their order, and returns the result of each.
    fn write(&self, entries: &[Entry]) -> Vec<Result<(), Error>>;
}

/// Entries that wait for a writer.
#[derive(Debug)]
pub(super) struct WriteQueue<S: Sink> {
    sink: S,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<(Entry, oneshot::Sender<Result<(), Error>>)>,
    has_writer: bool,
}

/// Result of an entry, now or when its writer has written it.
#[derive(Debug)]
pub(crate) enum Writing {
    Ended(Result<(), Error>),
    Waits(oneshot::Receiver<Result<(), Error>>),
}

impl Writing {
    /// Waits for the result, which is returned once. The entry is written even if the future is dropped.
    ///
    /// # Errors
    ///
    /// The entry was not written.
    pub(crate) async fn ended(&mut self) -> Result<(), Error> {
        match self {
            Self::Ended(result) => std::mem::replace(result, Ok(())),
            Self::Waits(result) => result.await.unwrap_or_else(|_| Err(failed())),
        }
    }

    /// Waits for the result on this thread, which may run other futures.
    ///
    /// # Errors
    ///
    /// The entry was not written.
    pub(crate) fn wait(&mut self) -> Result<(), Error> {
        let mut ended = Box::pin(self.ended());
        let waker = Arc::new(Unpark(thread::current())).into();
        loop {
            match ended.poll_unpin(&mut Context::from_waker(&waker)) {
                Poll::Ready(result) => return result,
                Poll::Pending => thread::park(),
            }
        }
    }
}

/// Waker of a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The error of an entry whose writer panicked.
fn failed() -> Error {
    Error::Audit { path: PathBuf::from("head"), reason: "its writer failed inside the host".to_owned(), source: None }
}

impl<S: Sink> WriteQueue<S> {
    pub(super) fn new(sink: S) -> Self {
        Self { sink, state: Mutex::default() }
    }

    pub(super) fn sink(&self) -> &S {
        &self.sink
    }

    /// Writes an entry, or passes it to the call that writes.
    pub(super) fn write(self: &Arc<Self>, entry: Entry) -> Writing {
        {
            let mut state = self.state();
            if state.has_writer {
                let (sender, receiver) = oneshot::channel();
                state.waiting.push((entry, sender));
                return Writing::Waits(receiver);
            }
            state.has_writer = true;
        }
        let (writer, since) = (Writer { queue: self.clone(), has_ended: false }, Instant::now());
        let written = catch_unwind(AssertUnwindSafe(|| self.sink.write(std::slice::from_ref(&entry)).pop()));
        let written = written.ok().flatten().unwrap_or_else(|| Err(failed()));
        writer.write_waiting(since, written.is_ok());
        Writing::Ended(written)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the writer if nothing waits, and returns `true` then.
    fn ends_writer(&self) -> bool {
        let mut state = self.state();
        state.has_writer = !state.waiting.is_empty();
        !state.has_writer
    }

    /// Writes everything that waits. Returns `false` if an entry was not written.
    fn write_batch(&self) -> bool {
        let waiting = std::mem::take(&mut self.state().waiting);
        let (entries, senders): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        // If the sink panics, the senders are dropped, and each entry has failed.
        let Ok(results) = catch_unwind(AssertUnwindSafe(|| self.sink.write(&entries))) else { return false };
        let is_written = results.iter().all(Result::is_ok);
        for (sender, result) in senders.into_iter().zip(results) {
            // A call that was dropped needs no result.
            let _ = sender.send(result);
        }
        is_written
    }
}

/// The writer of a queue. Dropping it writes everything that waits.
struct Writer<S: Sink> {
    queue: Arc<WriteQueue<S>>,
    /// `true` if nothing waited, so that another call may be the writer by now.
    has_ended: bool,
}

impl<S: Sink> Writer<S> {
    /// Writes what waits. A call does not write for others without end, nor for long, nor where its own record or a batch
    /// could not be written: a blocking thread continues.
    fn write_waiting(mut self, since: Instant, mut is_written: bool) {
        let mut batches = 0;
        while !self.ends() {
            if !is_written || batches == MAX_BATCHES || since.elapsed() >= MAX_TIME {
                if let Ok(runtime) = Handle::try_current() {
                    self.hand_over(|writes| drop(runtime.spawn_blocking(writes)));
                }
                return;
            }
            is_written = self.queue.write_batch();
            batches += 1;
        }
    }

    /// Passes the writer to another thread. If no thread can be had, this one writes: the writer is dropped where its task is,
    /// or here if `spawn` panics and loses the task.
    fn hand_over(self, spawn: impl FnOnce(Box<dyn FnOnce() + Send>)) {
        let place = Arc::new(Mutex::new(Some(self)));
        let take = |place: &Mutex<Option<Self>>| place.lock().unwrap_or_else(PoisonError::into_inner).take();
        let passed = place.clone();
        let spawned = catch_unwind(AssertUnwindSafe(|| spawn(Box::new(move || drop(take(&passed))))));
        if spawned.is_err() {
            drop(take(&place));
        }
    }

    /// Returns `true` if nothing waits, and this writer has ended.
    fn ends(&mut self) -> bool {
        self.has_ended = self.has_ended || self.queue.ends_writer();
        self.has_ended
    }
}

impl<S: Sink> Drop for Writer<S> {
    fn drop(&mut self) {
        while !self.ends() {
            self.queue.write_batch();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::mpsc;

    use super::*;

    /// Sink that waits for a permission for each batch, and notes the sizes of the batches.
    struct Slow {
        permission: Mutex<mpsc::Receiver<()>>,
        batches: Mutex<Vec<usize>>,
        at_once: AtomicUsize,
    }

    impl Sink for Slow {
        fn write(&self, entries: &[Entry]) -> Vec<Result<(), Error>> {
            assert_eq!(self.at_once.fetch_add(1, SeqCst), 0, "there is one writer");
            let _ = self.permission.lock().unwrap().recv();
            self.batches.lock().unwrap().push(entries.len());
            self.at_once.fetch_sub(1, SeqCst);
            entries.iter().map(|entry| if entry.record == b"panic" { panic!("planned") } else { Ok(()) }).collect()
        }
    }

    fn entry(record: &[u8]) -> Entry {
        Entry { day: Day::of_digits(b"20260301").unwrap(), record: record.to_vec() }
    }

    fn slow() -> (mpsc::Sender<()>, Arc<WriteQueue<Slow>>) {
        let (sender, receiver) = mpsc::channel();
        let sink = Slow { permission: Mutex::new(receiver), batches: Mutex::default(), at_once: AtomicUsize::new(0) };
        (sender, Arc::new(WriteQueue::new(sink)))
    }

    #[test]
    fn what_arrives_while_a_call_writes_is_written_at_once_and_nobody_waits_for_a_lock() {
        let (permission, queue) = slow();
        let first = thread::spawn({
            let queue = queue.clone();
            move || queue.write(entry(b"{}")).wait()
        });
        while queue.sink.at_once.load(SeqCst) == 0 {
            thread::yield_now();
        }
        // These return although the writer does not go on.
        let waiting: Vec<_> = (0..100).map(|_| queue.write(entry(b"{}"))).collect();
        // A result that nobody waits for is written too.
        let dropped = queue.write(entry(b"{}"));
        drop(dropped);
        (0..2).for_each(|_| permission.send(()).unwrap());
        assert!(first.join().unwrap().is_ok());
        assert!(waiting.into_iter().all(|mut result| result.wait().is_ok()));
        assert_eq!(*queue.sink.batches.lock().unwrap(), [1, 101]);
        permission.send(()).unwrap();
        assert!(matches!(queue.write(entry(b"{}")), Writing::Ended(Ok(()))), "there is no writer any more");
    }

    #[test]
    fn a_writer_that_panics_fails_its_entries_and_leaves_the_queue_usable() {
        let (permission, queue) = slow();
        (0..2).for_each(|_| permission.send(()).unwrap());
        assert!(matches!(queue.write(entry(b"panic")).wait(), Err(Error::Audit { .. })));
        assert!(queue.write(entry(b"{}")).wait().is_ok());
    }

    /// Sink that takes `time` for each batch, fails if it `fails`, and receives another entry during each of the first `more`
    /// batches. It notes the thread of each batch.
    struct Fed {
        queue: std::sync::OnceLock<std::sync::Weak<WriteQueue<Fed>>>,
        time: Duration,
        fails: bool,
        more: usize,
        threads: Mutex<Vec<thread::ThreadId>>,
        results: Mutex<Vec<Writing>>,
    }

    impl Sink for Fed {
        fn write(&self, entries: &[Entry]) -> Vec<Result<(), Error>> {
            thread::sleep(self.time);
            let mut threads = self.threads.lock().unwrap();
            threads.push(thread::current().id());
            if threads.len() <= self.more {
                let queue = self.queue.get().unwrap().upgrade().unwrap();
                self.results.lock().unwrap().push(queue.write(entry(b"{}")));
            }
            entries.iter().map(|_| if self.fails { Err(failed()) } else { Ok(()) }).collect()
        }
    }

    fn fed(more: usize, time: Duration, fails: bool) -> Arc<WriteQueue<Fed>> {
        let (queue, threads, results) = Default::default();
        let queue = Arc::new(WriteQueue::new(Fed { queue, time, fails, more, threads, results }));
        queue.sink.queue.set(Arc::downgrade(&queue)).unwrap();
        queue
    }

    /// Writes an entry, waits for all that arrived, and returns the number of batches of this thread and of all.
    fn batches(queue: &Arc<WriteQueue<Fed>>) -> (usize, usize) {
        let written = queue.write(entry(b"{}")).wait();
        assert_eq!(written.is_err(), queue.sink.fails);
        while queue.state().has_writer {
            thread::yield_now();
        }
        let results = std::mem::take(&mut *queue.sink.results.lock().unwrap());
        assert_eq!(results.len(), queue.sink.more, "each has its result");
        assert!(results.into_iter().all(|mut result| result.wait().is_err() == queue.sink.fails));
        let threads = queue.sink.threads.lock().unwrap();
        let own = threads.iter().filter(|id| **id == thread::current().id()).count();
        (own, threads.len())
    }

    #[test]
    fn a_call_writes_few_batches_for_others_and_none_once_it_takes_long_or_fails() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _entered = runtime.enter();
        let (own, all) = batches(&fed(100, Duration::ZERO, false));
        assert!((1..=1 + MAX_BATCHES).contains(&own) && all == 101, "{own} of {all}");
        assert_eq!(batches(&fed(5, MAX_TIME, false)), (1, 6), "it takes long");
        assert_eq!(batches(&fed(5, Duration::ZERO, true)), (1, 6), "it fails");
        assert_eq!(batches(&fed(0, MAX_TIME, true)), (1, 1), "nothing waits");
    }

    #[test]
    fn a_writer_that_no_other_thread_takes_writes_itself() {
        let without_runtime = fed(5, Duration::ZERO, true);
        assert_eq!(batches(&without_runtime), (6, 6));
        // A runtime that is shut down drops what it is given.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let handle = runtime.handle().clone();
        runtime.shutdown_background();
        let _entered = handle.enter();
        assert_eq!(batches(&fed(5, Duration::ZERO, true)), (6, 6));
        // A failed start of a thread loses the task.
        let queue = fed(0, Duration::ZERO, false);
        queue.state().has_writer = true;
        let mut waits = queue.write(entry(b"{}"));
        Writer { queue: queue.clone(), has_ended: false }.hand_over(|writes| {
            std::mem::forget(writes);
            panic!("planned");
        });
        assert!(waits.wait().is_ok() && !queue.state().has_writer);
    }
}
