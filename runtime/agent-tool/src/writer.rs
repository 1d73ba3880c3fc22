//! Record files: one per kind, appended to by a separate thread, so that a call waits for the disk only while the queue
//! is full. Several processes may write to one folder.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use toolcrib::owner_only;

use crate::error::Error;

/// Maximum number of queued lines; a call with another waits.
const MAX_QUEUE: usize = 256;
/// Maximum wait for the lock of a file that another process writes to.
const MAX_LOCK: Duration = Duration::from_secs(2);

/// Kind of call record. Each kind has a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Invocation,
    Event,
    Progress,
    Result,
    PermissionDecision,
    InputMutation,
    Hook,
    ResultPersistence,
}

/// File names in the order of the kinds.
const FILES: [&str; 8] = [
    "invocations.ndjson",
    "events.ndjson",
    "progress.ndjson",
    "results.ndjson",
    "permission-decisions.ndjson",
    "input-mutations.ndjson",
    "hooks.ndjson",
    "result-persistence.ndjson",
];

/// Handle of the thread that writes records.
pub(crate) struct Writer {
    queue: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    losses: Arc<Mutex<Losses>>,
    folder: PathBuf,
}

enum Message {
    Line(RecordKind, Vec<u8>),
    /// Answered once every earlier line is written.
    Flush(Sender<()>),
}

/// Records that could not be written since the last [`Writer::finish`].
#[derive(Default)]
struct Losses {
    first: Option<io::Error>,
    count: u64,
}

impl Writer {
    /// Opens the folder and its files, and starts the thread.
    pub(crate) fn open(folder: PathBuf) -> Result<Self, Error> {
        let losses = Arc::new(Mutex::new(Losses::default()));
        let start = || {
            let files = open(&folder)?;
            let (queue, lines) = mpsc::sync_channel(MAX_QUEUE);
            let losses = losses.clone();
            let thread =
                thread::Builder::new().name("records".to_owned()).spawn(move || write(files, &lines, &losses))?;
            Ok((queue, thread))
        };
        match start() {
            Ok((queue, thread)) => Ok(Self { queue: Some(queue), thread: Some(thread), losses, folder }),
            Err(source) => Err(Error::Open { folder, source }),
        }
    }

    /// Folder of the files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Queues a line; waits while the queue is full.
    pub(crate) fn line(&self, kind: RecordKind, line: Vec<u8>) {
        let sent = self.queue.as_ref().map(|queue| queue.send(Message::Line(kind, line)));
        if !matches!(sent, Some(Ok(()))) {
            self.losses().add(io::Error::other("the writer thread has ended"));
        }
    }

    /// Waits until every queued line is written, and reports losses once.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let (done, wait) = mpsc::channel();
        if self.queue.as_ref().is_some_and(|queue| queue.send(Message::Flush(done)).is_ok()) {
            // If the thread is gone, no answer comes and the channel closes.
            let _ = wait.recv();
        }
        let Losses { first, count } = std::mem::take(&mut *self.losses());
        match first {
            Some(source) => Err(Error::Write { folder: self.folder.clone(), lost: count, source }),
            None => Ok(()),
        }
    }

    fn losses(&self) -> std::sync::MutexGuard<'_, Losses> {
        self.losses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Writer {
    /// Waits until every queued line is written.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // The end of a thread that panicked was counted as a loss when a line found it gone.
            let _ = thread.join();
        }
    }
}

impl Losses {
    /// Counts a lost record; the first cause is the one reported.
    fn add(&mut self, cause: io::Error) {
        self.first.get_or_insert(cause);
        self.count += 1;
    }
}

/// Opens the files in a folder that belongs to the owner alone.
fn open(folder: &Path) -> io::Result<Vec<File>> {
    owner_only::create_folder(folder)?;
    // Not for appending alone: some systems cannot lock or shorten such a file. Each write is at the end, under the lock.
    let open = |name| owner_only::options().read(true).write(true).create(true).truncate(false).open(folder.join(name));
    FILES.into_iter().map(open).collect()
}

/// Writes lines until every sender is gone. Queued lines of one kind are written together.
fn write(mut files: Vec<File>, lines: &Receiver<Message>, losses: &Mutex<Losses>) {
    while let Ok(first) = lines.recv() {
        let mut waiting: [Vec<Vec<u8>>; FILES.len()] = Default::default();
        let mut flushes = Vec::new();
        for message in std::iter::once(first).chain(lines.try_iter().take(MAX_QUEUE)) {
            match message {
                Message::Line(kind, line) => waiting[kind as usize].push(line),
                Message::Flush(done) => flushes.push(done),
            }
        }
        for (file, lines) in files.iter_mut().zip(&waiting).filter(|(_, lines)| !lines.is_empty()) {
            if let Err(error) = append(file, &lines.concat()) {
                let mut losses = losses.lock().unwrap_or_else(PoisonError::into_inner);
                losses.count += lines.len() as u64 - 1;
                losses.add(error);
            }
        }
        for done in flushes {
            // The waiting thread may be gone.
            let _ = done.send(());
        }
    }
}

/// Appends whole lines or nothing, after a line break if a killed process left an incomplete line.
fn append(file: &mut File, lines: &[u8]) -> io::Result<()> {
    owner_only::lock(file, MAX_LOCK)?;
    let before = file.seek(SeekFrom::End(0))?;
    let mut last = [b'\n'];
    if before > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let line_break: &[u8] = if last == [b'\n'] { b"" } else { b"\n" };
    let written = file.write_all(&[line_break, lines].concat()).or_else(|error| file.set_len(before).and(Err(error)));
    // A lock that cannot be released goes with the file; the lines are written.
    let _ = file.unlock();
    written
}
