//! Records that wait to be written. A call that finds no writer writes its own record, and then those that arrived meanwhile,
//! many at once. The others wait for the result without blocking a thread, so that no call waits for the lock of another. After
//! some batches a thread of the queue continues, and no thread of the embedder's async runtime, which its calls can use up.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::channel::oneshot;

use crate::error::Error;
use crate::figures::WAITING_RECORDS;

use super::day::Day;

/// Maximum batches that a call writes for others before the thread continues.
const MAX_BATCHES: usize = 32;
/// Time after which a call writes no more batches for others.
const MAX_TIME: Duration = Duration::from_millis(10);
/// Maximum time that a call polls for the result of its entry before it waits: enough for a few writes.
const MAX_LOOK: Duration = Duration::from_micros(20);
/// Name of the thread. Linux keeps 15 bytes of it.
const THREAD_NAME: &str = "toolcrib-audit";

/// A record and the day of its file.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) day: Day,
    /// One JSON object.
    pub(super) record: Vec<u8>,
}

/// Destination of entries.
pub(super) trait Sink: Send + Sync + 'static {
    /// Writes entries in their order, and returns the result of each.
    fn write(&self, entries: &[Entry]) -> Vec<Result<(), Error>>;
}

/// Entries that wait for a writer. Dropping the queue waits until all of them are written, on any thread and without an async
/// runtime. What ends the process without dropping it loses the entries that nobody awaits.
#[derive(Debug)]
pub(super) struct WriteQueue<S: Sink> {
    shared: Arc<Shared<S>>,
    /// Thread that continues for calls, once it was needed.
    thread: Mutex<Option<WriterThread>>,
}

/// Part of a queue that its thread shares.
#[derive(Debug)]
struct Shared<S> {
    sink: S,
    state: Mutex<State>,
    /// Wakes the thread when the writer is passed to it, and when the queue is dropped.
    wakes: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Vec<(Entry, oneshot::Sender<Result<(), Error>>)>,
    has_writer: bool,
    /// `true` while the writer is passed to the thread, which has not continued yet.
    is_passed: bool,
    /// `true` once the queue is dropped.
    is_dropped: bool,
}

/// A started thread, with the process in which it runs.
#[derive(Debug)]
struct WriterThread {
    handle: JoinHandle<()>,
    process: u32,
}

/// Result of an entry, now or when its writer has written it.
#[derive(Debug)]
pub(crate) enum Writing {
    Ended(Result<(), Error>),
    /// Ended, after this call wrote for others, which were woken on its thread.
    WroteForOthers(Result<(), Error>),
    Waits(oneshot::Receiver<Result<(), Error>>),
}

impl Writing {
    /// Polls for the result for at most this time before it waits: an idle processor would wake up later.
    fn soon(mut receiver: oneshot::Receiver<Result<(), Error>>, max: Duration) -> Self {
        let since = Instant::now();
        loop {
            match receiver.try_recv() {
                Ok(Some(result)) => return Self::Ended(result),
                Ok(None) if since.elapsed() < max => std::hint::spin_loop(),
                Ok(None) => return Self::Waits(receiver),
                Err(oneshot::Canceled) => return Self::Ended(Err(failed())),
            }
        }
    }

    /// Waits for the result, which is returned once. The entry is written even if the future is dropped.
    ///
    /// # Errors
    ///
    /// The entry was not written.
    pub(crate) async fn ended(&mut self) -> Result<(), Error> {
        match self {
            Self::Ended(result) => std::mem::replace(result, Ok(())),
            // An async runtime may keep those calls behind this one, so this one lets them run before it returns.
            Self::WroteForOthers(result) => {
                yield_once().await;
                std::mem::replace(result, Ok(()))
            }
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

/// Lets the other tasks of this thread run once.
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
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
        let shared = Shared { sink, state: Mutex::default(), wakes: Condvar::new() };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    pub(super) fn sink(&self) -> &S {
        &self.shared.sink
    }

    /// Writes an entry, or passes it to the call that writes.
    pub(super) fn write(&self, entry: Entry) -> Writing {
        {
            let mut state = self.shared.state();
            if state.has_writer {
                let (sender, receiver) = oneshot::channel();
                state.waiting.push((entry, sender));
                WAITING_RECORDS.add(1);
                drop(state);
                return Writing::soon(receiver, MAX_LOOK);
            }
            state.has_writer = true;
        }
        let (writer, since) = (Writer::new(&self.shared), Instant::now());
        let written = catch_unwind(AssertUnwindSafe(|| self.sink().write(std::slice::from_ref(&entry)).pop()));
        let written = written.ok().flatten().unwrap_or_else(|| Err(failed()));
        match self.write_waiting(writer, since, written.is_ok()) {
            0 => Writing::Ended(written),
            _ => Writing::WroteForOthers(written),
        }
    }

    /// Writes what waits. A call does not write for others without end, nor for long, nor where its own record or a batch
    /// could not be written: the thread continues, or this call if no thread can be had. Returns the number of batches that
    /// this call wrote.
    fn write_waiting(&self, mut writer: Writer<'_, S>, since: Instant, mut is_written: bool) -> usize {
        let mut batches = 0;
        while !writer.ends() {
            if !is_written || batches == MAX_BATCHES || since.elapsed() >= MAX_TIME {
                writer.has_ended = self.pass_writer();
                break;
            }
            is_written = self.shared.write_batch();
            batches += 1;
        }
        batches
    }

    /// Passes the writer to the thread, which the first pass starts, and also one after it has ended; `false` if no thread can
    /// be had.
    fn pass_writer(&self) -> bool {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.as_ref().is_none_or(|thread| thread.handle.is_finished()) {
            *thread = WriterThread::start(self.shared.clone()).ok();
        }
        let has_thread = thread.as_ref().is_some_and(WriterThread::is_of_this_process);
        if has_thread {
            self.shared.state().is_passed = true;
            self.shared.wakes.notify_one();
        }
        has_thread
    }
}

impl<S: Sink> Drop for WriteQueue<S> {
    /// Ends the thread after everything that waits is written. No call writes at this time: it would borrow the queue.
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread.filter(WriterThread::is_of_this_process) else { return };
        self.shared.state().is_dropped = true;
        self.shared.wakes.notify_one();
        // A call that the thread has woken may drop the queue there: the thread then writes the rest and ends by itself.
        if thread.handle.thread().id() != thread::current().id() {
            // After a panic of the thread, its entries have failed.
            let _ = thread.handle.join();
        }
    }
}

impl WriterThread {
    fn start<S: Sink>(shared: Arc<Shared<S>>) -> io::Result<Self> {
        let handle = thread::Builder::new().name(THREAD_NAME.to_owned()).spawn(move || shared.continue_writing())?;
        Ok(Self { handle, process: process::id() })
    }

    /// Returns `false` in a process that was forked from the thread's process, and so does not have the thread.
    fn is_of_this_process(&self) -> bool {
        self.process == process::id()
    }
}

impl<S: Sink> Shared<S> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what waits whenever the writer is passed to this thread, until the queue is dropped.
    fn continue_writing(&self) {
        while self.takes_writer() {
            drop(Writer::new(self));
        }
    }

    /// Waits until the writer is passed to this thread; `false` if the queue was dropped instead.
    fn takes_writer(&self) -> bool {
        let is_idle = |state: &mut State| !state.is_passed && !state.is_dropped;
        let mut state = self.wakes.wait_while(self.state(), is_idle).unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.is_passed)
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
        WAITING_RECORDS.subtract(entries.len() as u64);
        // If the sink panics, each entry has failed.
        let results = catch_unwind(AssertUnwindSafe(|| self.sink.write(&entries))).unwrap_or_default();
        let mut results = results.into_iter();
        let mut is_written = true;
        for sender in senders {
            let result = results.next().unwrap_or_else(|| Err(failed()));
            is_written &= result.is_ok();
            // A call that was dropped needs no result. The waker of one that waits is not ours: if it panics, the writer
            // goes on, since all other calls depend on it.
            let _ = catch_unwind(AssertUnwindSafe(|| sender.send(result)));
        }
        is_written
    }
}

/// The writer of a queue. Dropping it writes everything that waits.
struct Writer<'q, S: Sink> {
    shared: &'q Shared<S>,
    /// `true` if nothing waited, or if the writer was passed to the thread.
    has_ended: bool,
}

impl<'q, S: Sink> Writer<'q, S> {
    /// Continues as the writer. A queue has one writer at a time.
    fn new(shared: &'q Shared<S>) -> Self {
        Self { shared, has_ended: false }
    }

    /// Returns `true` if nothing waits, and this writer has ended.
    fn ends(&mut self) -> bool {
        self.has_ended = self.has_ended || self.shared.ends_writer();
        self.has_ended
    }
}

impl<S: Sink> Drop for Writer<'_, S> {
    fn drop(&mut self) {
        while !self.ends() {
            self.shared.write_batch();
        }
    }
}

#[cfg(test)]
mod tests;
