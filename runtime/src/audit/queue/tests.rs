//! Tests of the queue: batches, the thread that continues, and the queue's end.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;

use super::*;

/// Sink that waits for a permission for each batch, and notes the sizes of the batches.
struct Slow {
    permission: Mutex<mpsc::Receiver<()>>,
    batches: Arc<Mutex<Vec<usize>>>,
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
    let sink = Slow { permission: Mutex::new(receiver), batches: Arc::default(), at_once: AtomicUsize::new(0) };
    (sender, Arc::new(WriteQueue::new(sink)))
}

#[test]
fn what_arrives_while_a_call_writes_is_written_at_once_and_nobody_waits_for_a_lock() {
    let (permission, queue) = slow();
    let first = thread::spawn({
        let queue = queue.clone();
        move || queue.write(entry(b"{}")).wait()
    });
    while queue.sink().at_once.load(SeqCst) == 0 {
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
    assert_eq!(*queue.sink().batches.lock().unwrap(), [1, 101]);
    // The writer ends soon after its last batch; then a call writes itself.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        permission.send(()).unwrap();
        if matches!(queue.write(entry(b"{}")), Writing::Ended(Ok(()))) {
            break;
        }
        assert!(Instant::now() < until, "the writer does not end");
        thread::yield_now();
    }
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
    queue.sink().queue.set(Arc::downgrade(&queue)).unwrap();
    queue
}

/// Writes an entry, waits for all that arrived, and returns the number of batches of this thread and of all.
fn batches(queue: &Arc<WriteQueue<Fed>>) -> (usize, usize) {
    let written = queue.write(entry(b"{}")).wait();
    assert_eq!(written.is_err(), queue.sink().fails);
    while queue.shared.state().has_writer {
        thread::yield_now();
    }
    let results = std::mem::take(&mut *queue.sink().results.lock().unwrap());
    assert_eq!(results.len(), queue.sink().more, "each has its result");
    assert!(results.into_iter().all(|mut result| result.wait().is_err() == queue.sink().fails));
    let threads = queue.sink().threads.lock().unwrap();
    let own = threads.iter().filter(|id| **id == thread::current().id()).count();
    (own, threads.len())
}

#[test]
fn a_call_writes_few_batches_for_others_and_none_once_it_takes_long_or_fails() {
    let queue = fed(100, Duration::ZERO, false);
    let (own, all) = batches(&queue);
    assert!((1..=1 + MAX_BATCHES).contains(&own) && all == 101, "{own} of {all}");
    assert_eq!(batches(&fed(5, MAX_TIME, false)), (1, 6), "it takes long");
    assert_eq!(batches(&fed(5, Duration::ZERO, true)), (1, 6), "it fails");
    assert_eq!(batches(&fed(0, MAX_TIME, true)), (1, 1), "nothing waits");
}

#[test]
fn a_call_that_wrote_for_others_lets_them_run() {
    let queue = fed(1, Duration::ZERO, false);
    let mut writing = queue.write(entry(b"{}"));
    let mut ended = Box::pin(writing.ended());
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(ended.poll_unpin(&mut context).is_pending());
    assert!(matches!(ended.poll_unpin(&mut context), Poll::Ready(Ok(()))));
    drop(ended);
    assert!(queue.write(entry(b"{}")).ended().now_or_never().is_some(), "there are no others");
}

#[test]
fn a_result_that_comes_soon_is_not_awaited() {
    let (sender, receiver) = oneshot::channel();
    let sending = thread::spawn(move || {
        thread::sleep(Duration::from_millis(5));
        sender.send(Ok(())).unwrap();
    });
    assert!(matches!(Writing::soon(receiver, Duration::from_secs(60)), Writing::Ended(Ok(()))));
    sending.join().unwrap();
    let (sender, receiver) = oneshot::channel();
    assert!(matches!(Writing::soon(receiver, MAX_LOOK), Writing::Waits(_)), "one that comes later is");
    drop(sender);
    let (sender, receiver) = oneshot::channel();
    drop(sender);
    assert!(matches!(Writing::soon(receiver, MAX_LOOK), Writing::Ended(Err(_))));
}

#[test]
fn one_thread_continues_each_time() {
    let queue = fed(5, Duration::ZERO, true);
    (0..3).for_each(|_| assert_eq!(batches_again(&queue), (1, 6)));
    let threads = queue.sink().threads.lock().unwrap();
    let others: std::collections::HashSet<_> = threads.iter().filter(|id| **id != thread::current().id()).collect();
    assert_eq!((others.len(), threads.len()), (1, 18));
}

/// Forgets the batches so far, except for their threads, and writes an entry as in [`batches`].
fn batches_again(queue: &Arc<WriteQueue<Fed>>) -> (usize, usize) {
    let before = std::mem::take(&mut *queue.sink().threads.lock().unwrap());
    let counted = batches(queue);
    queue.sink().threads.lock().unwrap().extend(before);
    counted
}

#[test]
fn a_call_that_has_no_thread_to_continue_writes_everything_itself() {
    let queue = fed(5, Duration::ZERO, true);
    // As in a process that was forked: no number of a process is 0.
    *queue.thread.lock().unwrap() = Some(WriterThread { handle: thread::spawn(thread::park), process: 0 });
    assert_eq!(batches(&queue), (6, 6));
    // Nor does the end of the queue wait for that thread.
    drop(queue);
}

/// Makes the queue wait for a writer, as while another call writes.
fn begin_writer<S: Sink>(queue: &WriteQueue<S>) {
    queue.shared.state().has_writer = true;
}

#[test]
fn calls_that_fill_the_blocking_threads_of_a_runtime_are_written() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(2).build().unwrap();
    let queue = fed(0, Duration::ZERO, false);
    begin_writer(&queue);
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let queue = queue.clone();
            runtime.spawn_blocking(move || queue.write(entry(b"{}")).wait())
        })
        .collect();
    while queue.shared.state().waiting.len() < 2 {
        thread::yield_now();
    }
    // The call that wrote could not write its own record, and so passes on.
    let written = runtime.block_on(async {
        queue.write_waiting(Writer::new(&queue.shared), Instant::now(), false);
        tokio::time::timeout(Duration::from_secs(60), futures::future::join_all(calls)).await
    });
    if written.is_err() {
        runtime.shutdown_background();
        panic!("no record is written");
    }
    assert!(written.unwrap().into_iter().all(|call| call.unwrap().is_ok()));
}

#[test]
fn the_end_of_a_queue_waits_for_all_entries_and_for_its_thread() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (permission, queue) = slow();
    let shared = Arc::downgrade(&queue.shared);
    begin_writer(&queue);
    // Nobody waits for these.
    (0..3).for_each(|_| drop(queue.write(entry(b"{}"))));
    queue.write_waiting(Writer::new(&queue.shared), Instant::now(), false);
    let permits = thread::spawn({
        let shared = shared.clone();
        move || {
            // The queue ends while its thread writes.
            while !shared.upgrade().is_none_or(|shared| shared.state().is_dropped) {
                thread::yield_now();
            }
            permission.send(()).unwrap();
        }
    });
    let batches = queue.sink().batches.clone();
    runtime.block_on(async move { drop(queue) });
    permits.join().unwrap();
    assert_eq!(*batches.lock().unwrap(), [3], "in an async context too");
    assert!(shared.upgrade().is_none(), "the thread has ended");
}

/// Waker that drops a queue on the thread that wakes.
struct DropsQueue(Mutex<Option<Arc<WriteQueue<Slow>>>>);

impl Wake for DropsQueue {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

#[test]
fn a_queue_that_its_own_thread_drops_ends_too() {
    let (permission, queue) = slow();
    let shared = Arc::downgrade(&queue.shared);
    begin_writer(&queue);
    let mut writing = queue.write(entry(b"{}"));
    let mut ended = Box::pin(writing.ended());
    let waker = Arc::new(DropsQueue(Mutex::new(Some(queue.clone())))).into();
    assert!(ended.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
    queue.write_waiting(Writer::new(&queue.shared), Instant::now(), false);
    // The thread waits for the permission: it wakes the call after this.
    drop(queue);
    permission.send(()).unwrap();
    while shared.upgrade().is_some() {
        thread::yield_now();
    }
    assert!(matches!(ended.poll_unpin(&mut Context::from_waker(&waker)), Poll::Ready(Ok(()))));
}

/// Waker that panics on the thread that wakes.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("planned");
    }
}

#[test]
fn a_waker_that_panics_harms_no_other_call() {
    let queue = fed(0, Duration::ZERO, false);
    // On this thread, and twice on the queue's thread.
    for is_written in [true, false, false] {
        begin_writer(&queue);
        let mut writing = queue.write(entry(b"{}"));
        let mut other = queue.write(entry(b"{}"));
        let mut ended = Box::pin(writing.ended());
        let waker = Arc::new(Panics).into();
        assert!(ended.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
        queue.write_waiting(Writer::new(&queue.shared), Instant::now(), is_written);
        assert!(other.wait().is_ok());
        assert!(matches!(ended.poll_unpin(&mut Context::from_waker(&waker)), Poll::Ready(Ok(()))));
        while queue.shared.state().has_writer {
            thread::yield_now();
        }
    }
}

#[test]
fn a_thread_that_has_ended_is_replaced() {
    let queue = fed(5, Duration::ZERO, true);
    let handle = thread::spawn(|| ());
    while !handle.is_finished() {
        thread::yield_now();
    }
    *queue.thread.lock().unwrap() = Some(WriterThread { handle, process: process::id() });
    assert_eq!(batches(&queue), (1, 6));
}
