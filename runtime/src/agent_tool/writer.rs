//! The files of the records: one a kind, appended to by a thread of their own, so that no call waits for a disk before
//! the queue is full. Several processes may write to one folder.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::Error;
use crate::owner_only;

/// The most lines that wait to be written; a call that brings another waits.
const QUEUE: usize = 256;
/// The longest wait for a file that another process is writing to.
const MAX_LOCK: Duration = Duration::from_secs(2);

/// The kinds of records that a run leaves, each in a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Invocation,
    Event,
    Progress,
    Result,
    PermissionDecision,
    InputMutation,
    Hook,
    ResultPersistence,
}

/// The file names in the order of the kinds.
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

pub(super) struct Writer {
    queue: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    trouble: Arc<Mutex<Trouble>>,
    folder: PathBuf,
}

enum Message {
    Line(Kind, Vec<u8>),
    /// Answered once everything before it is written.
    Mark(Sender<()>),
}

/// EventKind could not be written since somebody last asked.
#[derive(Default)]
struct Trouble {
    reason: Option<String>,
    lost: u64,
}

impl Writer {
    /// Opens the folder and its files.
    pub(super) fn open(folder: PathBuf) -> Result<Self, Error> {
        let files = open(&folder).map_err(|error| fault(&folder, error.to_string()))?;
        let (queue, lines) = mpsc::sync_channel(QUEUE);
        let trouble = Arc::new(Mutex::new(Trouble::default()));
        let told = trouble.clone();
        let thread = thread::Builder::new().name("records".to_owned()).spawn(move || write(files, &lines, &told));
        let thread = thread.map_err(|error| fault(&folder, error.to_string()))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), trouble, folder })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Hands on a line; waits where the queue is full.
    pub(super) fn line(&self, kind: Kind, line: Vec<u8>) {
        let sent = self.queue.as_ref().map(|queue| queue.send(Message::Line(kind, line)));
        if !matches!(sent, Some(Ok(()))) {
            self.trouble().note("the writer thread has ended".to_owned());
        }
    }

    /// Waits until everything handed on so far is written, and tells once what could not be.
    pub(super) fn finish(&self) -> Result<(), Error> {
        let (done, wait) = mpsc::channel();
        if self.queue.as_ref().is_some_and(|queue| queue.send(Message::Mark(done)).is_ok()) {
            // Where the thread broke off, nothing comes.
            let _ = wait.recv();
        }
        let trouble = std::mem::take(&mut *self.trouble());
        match trouble.reason {
            Some(reason) => Err(fault(&self.folder, format!("{reason}; records lost: {}", trouble.lost))),
            None => Ok(()),
        }
    }

    fn trouble(&self) -> std::sync::MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Writer {
    /// Waits until everything is written.
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // A thread that broke off was told of when a line found it gone.
            let _ = thread.join();
        }
    }
}

impl Trouble {
    /// The first reason is the one to tell.
    fn note(&mut self, reason: String) {
        self.reason.get_or_insert(reason);
        self.lost += 1;
    }
}

fn fault(folder: &Path, reason: String) -> Error {
    Error::Records { path: folder.to_path_buf(), reason }
}

fn open(folder: &Path) -> io::Result<Vec<File>> {
    owner_only::make_folder(folder)?;
    owner_only::refuse_shared(folder)?;
    let open = |name| owner_only::options().read(true).append(true).create(true).open(folder.join(name));
    FILES.into_iter().map(open).collect()
}

/// Writes lines until nobody is left who could send one; lines of a kind that wait together are written together.
fn write(mut files: Vec<File>, lines: &Receiver<Message>, trouble: &Mutex<Trouble>) {
    while let Ok(first) = lines.recv() {
        let mut waiting: [Vec<Vec<u8>>; FILES.len()] = Default::default();
        let mut marks = Vec::new();
        for message in std::iter::once(first).chain(lines.try_iter().take(QUEUE)) {
            match message {
                Message::Line(kind, line) => waiting[kind as usize].push(line),
                Message::Mark(mark) => marks.push(mark),
            }
        }
        for (file, lines) in files.iter_mut().zip(&waiting).filter(|(_, lines)| !lines.is_empty()) {
            if let Err(error) = append(file, &lines.concat()) {
                let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
                lines.iter().for_each(|_| trouble.note(error.to_string()));
            }
        }
        for mark in marks {
            // Whoever waited may have gone.
            let _ = mark.send(());
        }
    }
}

/// Appends whole lines or nothing, after a line break where a process that was killed left a part of one.
fn append(file: &mut File, lines: &[u8]) -> io::Result<()> {
    owner_only::lock(file, MAX_LOCK)?;
    let before = file.seek(SeekFrom::End(0))?;
    let mut last = [b'\n'];
    if before > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
    }
    let torn: &[u8] = if last == [b'\n'] { b"" } else { b"\n" };
    let written = file.write_all(&[torn, lines].concat()).or_else(|error| file.set_len(before).and(Err(error)));
    // A lock that cannot be given back goes with the file; the lines are in it.
    let _ = file.unlock();
    written
}
