//! The files of the log. Several processes append to one file: each takes the file's lock, mends a torn tail, and writes
//! its line whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Room kept in the file ahead of the records, and how near its end it is renewed.
const RESERVE: u64 = 1 << 20;
const RESERVE_AGAIN: u64 = 256 << 10;

#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    open: Mutex<Option<Day>>,
    lost: Mutex<u64>,
}

#[derive(Debug)]
struct Day {
    name: String,
    file: File,
    /// Where our own last record ended: a file of this length has a whole tail.
    end: u64,
    reserved: u64,
}

impl Log {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, open: Mutex::new(None), lost: Mutex::new(0) }
    }

    /// Opens the day's file and makes sure that records still fit on the disk.
    pub(super) fn ready(&self, day: &str) -> Result<(), Error> {
        let mut open = lock(&self.open);
        let ready = self.day(&mut open, day).and_then(Day::reserve);
        ready.map_err(|error| {
            *open = None;
            self.fault(day, &error)
        })
    }

    /// Appends one line. On failure nothing of it stays in the file and the loss is counted.
    pub(super) fn append(&self, day: &str, line: Vec<u8>) -> Result<(), Error> {
        let mut open = lock(&self.open);
        let appended = self.day(&mut open, day).and_then(|day| day.append(line));
        appended.map_err(|error| {
            *open = None;
            *lock(&self.lost) += 1;
            self.fault(day, &error)
        })
    }

    fn day<'a>(&self, open: &'a mut Option<Day>, day: &str) -> std::io::Result<&'a mut Day> {
        match open.take().filter(|known| known.name == day && known.path_is_current(&self.path(day))) {
            Some(known) => Ok(open.insert(known)),
            None => Ok(open.insert(Day::open(&self.folder, &self.path(day), day)?)),
        }
    }

    fn path(&self, day: &str) -> PathBuf {
        self.folder.join(format!("{day}.log"))
    }

    fn fault(&self, day: &str, error: &std::io::Error) -> Error {
        let lost = *lock(&self.lost);
        let lost = if lost > 0 { format!("; records lost so far: {lost}") } else { String::new() };
        Error::Audit { path: self.path(day), reason: format!("{error}{lost}") }
    }
}

impl Day {
    fn open(folder: &Path, path: &Path, name: &str) -> std::io::Result<Self> {
        make_folder(folder)?;
        let file = private(OpenOptions::new().read(true).append(true).create(true)).open(path)?;
        Ok(Self { name: name.to_owned(), file, end: 0, reserved: 0 })
    }

    /// Whether the open file is still the one at its path: a log that was moved away is begun anew.
    fn path_is_current(&self, path: &Path) -> bool {
        same_file(&self.file, path)
    }

    fn reserve(&mut self) -> std::io::Result<()> {
        let length = self.file.metadata()?.len();
        if length + RESERVE_AGAIN > self.reserved {
            reserve(&self.file, length, RESERVE)?;
            self.reserved = length + RESERVE;
        }
        Ok(())
    }

    fn append(&mut self, mut line: Vec<u8>) -> std::io::Result<()> {
        self.file.lock()?;
        let written = self.append_locked(&mut line);
        self.file.unlock()?;
        written
    }

    fn append_locked(&mut self, line: &mut Vec<u8>) -> std::io::Result<()> {
        let length = self.file.metadata()?.len();
        if length != self.end && length > 0 && last_byte(&self.file, length)? != b'\n' {
            line.insert(0, b'\n');
        }
        if let Err(error) = self.file.write_all(line) {
            self.file.set_len(length)?;
            return Err(error);
        }
        self.end = length + line.len() as u64;
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn make_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
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
