//! The file of one run, open for writing. One process at a time writes it: the lock is a file of its own, so that others can
//! read the run meanwhile.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcrib::owner_only::{self, FileLock, OwnerOnlyFile, SharedAccess};

/// Maximum size of a run's file, in bytes.
pub(super) const MAX_RUN_BYTES: u64 = 64 << 20;
/// Maximum wait for the lock of a run: one that looks whether the run is written holds it for a moment.
const MAX_LOCK_WAIT: Duration = Duration::from_millis(200);

/// File of a run, with its lock.
#[derive(Debug)]
pub(crate) struct RunFile {
    path: PathBuf,
    file: File,
    /// End of the last complete line.
    end: u64,
    _lock: FileLock,
}

/// Names the file at a path, without opening it.
pub(super) fn named(path: &Path) -> OwnerOnlyFile {
    OwnerOnlyFile::new(path, MAX_RUN_BYTES, SharedAccess::None)
}

/// Takes the lock of the file at a path; the error is [`ErrorKind::WouldBlock`] if a process writes it.
pub(super) fn lock(path: &Path) -> io::Result<FileLock> {
    named(path).lock(MAX_LOCK_WAIT)
}

/// Returns `true` if a process holds the lock of the file at a path. Creates nothing.
pub(super) fn is_locked(path: &Path) -> bool {
    let file = owner_only::options().read(true).open(named(path).beside("lock"));
    // Shared, so that two processes that look at the same time do not take each other for the writer.
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl RunFile {
    /// Creates the file, which must not exist.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        let lock = lock(&path)?;
        let file = owner_only::options().write(true).create_new(true).open(&path)?;
        Ok(Self { path, file, end: 0, _lock: lock })
    }

    /// Opens the file, cuts off an incomplete last line, and returns its content.
    pub(super) fn open(path: PathBuf) -> io::Result<(Self, Vec<u8>)> {
        let lock = lock(&path)?;
        // The holder of the lock is the only writer, and the folder belongs to this user alone.
        let mut bytes = named(&path).read()?.ok_or(ErrorKind::NotFound)?;
        bytes.truncate(complete(&bytes));
        let file = owner_only::options().write(true).open(&path)?;
        file.set_len(bytes.len() as u64)?;
        Ok((Self { path, file, end: bytes.len() as u64, _lock: lock }, bytes))
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line completely or not at all. The line survives the end of the process and, after [`RunFile::sync`],
    /// the end of the system.
    pub(crate) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let bytes = [line, b"\n"].concat();
        if self.end + bytes.len() as u64 > MAX_RUN_BYTES {
            return Err(io::Error::other(format!("it would exceed the {MAX_RUN_BYTES} bytes allowed for a run")));
        }
        let written = self.file.seek(SeekFrom::Start(self.end)).and_then(|_| self.file.write_all(&bytes));
        if let Err(error) = written {
            // A part of the line that stays is cut off when the file is opened.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Removes the file and its lock file.
    pub(crate) fn remove(&self) -> io::Result<()> {
        std::fs::remove_file(&self.path)?;
        // Without its run, a lock file only takes space.
        let _ = std::fs::remove_file(self.path.with_added_extension("lock"));
        Ok(())
    }

    /// Waits until all lines are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Returns the length of the complete lines.
pub(super) fn complete(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_line_is_cut_off_before_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs/a.ndjson");
        let mut file = RunFile::create(path.clone()).unwrap();
        file.append(b"{\"n\":1}").unwrap();
        drop(file);
        let torn = [std::fs::read(&path).unwrap(), b"{\"n\":".to_vec()].concat();
        std::fs::write(&path, torn).unwrap();
        let (mut file, bytes) = RunFile::open(path.clone()).unwrap();
        assert_eq!(bytes, b"{\"n\":1}\n");
        file.append(b"{\"n\":2}").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"n\":1}\n{\"n\":2}\n");
        let busy = RunFile::open(path).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::WouldBlock, "one process writes at a time");
    }

    #[test]
    fn a_run_that_is_too_long_is_not_written_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs/a.ndjson");
        let mut file = RunFile::create(path.clone()).unwrap();
        file.append(b"{}").unwrap();
        let long = vec![b' '; usize::try_from(MAX_RUN_BYTES).unwrap() - 3];
        assert!(file.append(&long).unwrap_err().to_string().contains("67108864 bytes"), "one byte too many");
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n");
        file.append(&long[1..]).unwrap();
    }
}
