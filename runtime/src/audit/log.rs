//! The files of the log. Several processes append to one file: each takes the file's lock, mends a torn tail, and writes
//! its line whole or not at all.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::private;

/// Seconds of a day.
pub(super) const DAY: i64 = 24 * 60 * 60;
/// Room kept in the file ahead of the records, and how near its end it is renewed.
const RESERVE: u64 = 1 << 20;
const RESERVE_AGAIN: u64 = 256 << 10;
/// How often it is looked whether the open file is still the one at its path.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The longest wait for the file's lock: one that stands still must not stand in every call's way.
const LONGEST_LOCK: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: Option<Open>,
    /// Records that could not be written.
    lost: u64,
}

/// The file of a day.
#[derive(Debug)]
struct Open {
    day: i64,
    file: File,
    /// Where the file ended when it was last looked at. After a record of ours a file of this length has a whole tail.
    end: u64,
    whole: bool,
    reserved: u64,
    looked: Instant,
}

impl Log {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, state: Mutex::default() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the day's file and makes sure that records still fit on the disk.
    pub(super) fn ready(&self, day: i64) -> Result<(), Error> {
        let mut state = self.state();
        let ready = self.with_open(&mut state, day, Open::reserve);
        ready.map_err(|error| self.fault(&mut state, day, &error))
    }

    /// Appends one line. On failure nothing of it stays in the file and the loss is counted.
    pub(super) fn append(&self, day: i64, line: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        let appended = self.with_open(&mut state, day, |open| open.append(line));
        appended.map_err(|error| {
            state.lost += 1;
            self.fault(&mut state, day, &error)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the day's file, and once more with a new one where somebody deleted it while it was open.
    fn with_open(
        &self,
        state: &mut State,
        day: i64,
        act: impl Fn(&mut Open) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        match self.open(state, day).and_then(&act) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                state.open = None;
                self.open(state, day).and_then(act)
            }
            done => done,
        }
    }

    fn open<'a>(&self, state: &'a mut State, day: i64) -> std::io::Result<&'a mut Open> {
        if let Some(mut known) = state.open.take()
            && known.day == day
            && known.is_current(|| self.path(day))
        {
            return Ok(state.open.insert(known));
        }
        let file = open(&self.folder, &self.path(day))?;
        let end = file.metadata()?.len();
        Ok(state.open.insert(Open { day, file, end, whole: false, reserved: 0, looked: Instant::now() }))
    }

    fn path(&self, day: i64) -> PathBuf {
        let date = jiff::Timestamp::from_second(day.saturating_mul(DAY)).unwrap_or(jiff::Timestamp::MAX);
        self.folder.join(format!("{}.log", date.strftime("%Y%m%d")))
    }

    /// The fault that an error is; the file is opened anew next time.
    fn fault(&self, state: &mut State, day: i64, error: &std::io::Error) -> Error {
        state.open = None;
        let lost = if state.lost > 0 { format!("; records lost so far: {}", state.lost) } else { String::new() };
        Error::Audit { path: self.path(day), reason: format!("{error}{lost}") }
    }
}

impl Open {
    /// Whether the file is still the one at its path, as far as it was looked at lately: a log that was moved away is
    /// begun anew.
    fn is_current(&mut self, path: impl FnOnce() -> PathBuf) -> bool {
        if self.looked.elapsed() < LOOK_AGAIN {
            return true;
        }
        self.looked = Instant::now();
        same_file(&self.file, &path())
    }

    fn reserve(&mut self) -> std::io::Result<()> {
        let end = length(&self.file)?;
        if end + RESERVE_AGAIN > self.reserved {
            reserve(&self.file, end, RESERVE)?;
            self.reserved = end + RESERVE;
        }
        Ok(())
    }

    fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
        private::lock(&self.file, LONGEST_LOCK)?;
        let written = self.append_locked(line);
        // A lock that cannot be given back goes with the file; the record is in it.
        let _ = self.file.unlock();
        written
    }

    /// Writes the line in one piece, after a line break where somebody else left a torn tail.
    fn append_locked(&mut self, line: &[u8]) -> std::io::Result<()> {
        let length = length(&self.file)?;
        let known = self.whole && length == self.end;
        let mended;
        let line = if !known && length > 0 && last_byte(&self.file, length)? != b'\n' {
            mended = [b"\n", line].concat();
            &mended
        } else {
            line
        };
        if let Err(error) = self.file.write_all(line) {
            self.file.set_len(length)?;
            return Err(error);
        }
        (self.end, self.whole) = (length + line.len() as u64, true);
        Ok(())
    }
}

fn open(folder: &Path, path: &Path) -> std::io::Result<File> {
    private::make_folder(folder)?;
    private::options().read(true).append(true).create(true).open(path)
}

#[cfg(unix)]
fn same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), path.metadata()) {
        (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_file(_: &File, path: &Path) -> bool {
    path.exists()
}

/// The length of a file that still has a name.
#[cfg(unix)]
fn length(file: &File) -> std::io::Result<u64> {
    let stat = rustix::fs::fstat(file)?;
    if stat.st_nlink == 0 {
        return Err(ErrorKind::NotFound.into());
    }
    u64::try_from(stat.st_size).map_err(std::io::Error::other)
}

#[cfg(not(unix))]
fn length(file: &File) -> std::io::Result<u64> {
    Ok(file.metadata()?.len())
}

#[cfg(unix)]
fn last_byte(file: &File, length: u64) -> std::io::Result<u8> {
    use std::os::unix::fs::FileExt;
    let mut byte = [0];
    file.read_exact_at(&mut byte, length - 1)?;
    Ok(byte[0])
}

#[cfg(not(unix))]
fn last_byte(mut file: &File, length: u64) -> std::io::Result<u8> {
    use std::io::{Read, Seek, SeekFrom};
    let mut byte = [0];
    file.seek(SeekFrom::Start(length - 1))?;
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Takes room on the disk beyond the file's end, so that a full disk is seen before a call and not after it. A file
/// system that cannot is not asked twice.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn reserve(file: &File, from: u64, bytes: u64) -> std::io::Result<()> {
    use rustix::fs::FallocateFlags;
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn reserve(_: &File, _: u64, _: u64) -> std::io::Result<()> {
    Ok(())
}
