//! Records that wait to be written. A call that finds no writer writes its own record, and then those that arrived meanwhile,
//! many at once. The others wait for the result without blocking a thread, so that no call waits for the lock of another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use futures::FutureExt;
use futures::channel::oneshot;
use tokio::runtime::Handle;

use crate::error::Error;

use super::day::Day;

/// Maximum batches that a call writes for others before a blocking thread continues.
const MAX_BATCHES: usize = 32;

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
        let writer = Writer { queue: self.clone(), has_ended: false };
        let written = catch_unwind(AssertUnwindSafe(|| self.sink.write(std::slice::from_ref(&entry)).pop()));
        writer.write_waiting();
        Writing::Ended(written.ok().flatten().unwrap_or_else(|| Err(failed())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes everything that waits. Returns `false` if nothing waits; then there is no writer any more.
    fn write_batch(&self) -> bool {
        let waiting = {
            let mut state = self.state();
            state.has_writer = !state.waiting.is_empty();
            std::mem::take(&mut state.waiting)
        };
        if waiting.is_empty() {
            return false;
        }
        let (entries, senders): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
        // If the sink panics, the senders are dropped, and each entry has failed.
        if let Ok(results) = catch_unwind(AssertUnwindSafe(|| self.sink.write(&entries))) {
            for (sender, result) in senders.into_iter().zip(results) {
                // A call that was dropped needs no result.
                let _ = sender.send(result);
            }
        }
        true
    }
}

/// The writer of a queue. Dropping it writes everything that waits.
struct Writer<S: Sink> {
    queue: Arc<WriteQueue<S>>,
    /// `true` if nothing waited, so that another call may be the writer by now.
    has_ended: bool,
}

impl<S: Sink> Writer<S> {
    /// Writes what waits. A call does not write for others without end: a blocking thread continues.
    fn write_waiting(mut self) {
        for _ in 0..MAX_BATCHES {
            if !self.queue.write_batch() {
                self.has_ended = true;
                return;
            }
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn_blocking(move || drop(self));
        }
    }
}

impl<S: Sink> Drop for Writer<S> {
    fn drop(&mut self) {
        while !self.has_ended {
            self.has_ended = !self.queue.write_batch();
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
}
