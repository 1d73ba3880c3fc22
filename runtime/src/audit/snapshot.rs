//! Snapshot of a log for reading: its files with their lengths, its head, and the lines. Records written during reading
//! are not included, so a line that is being written is not mistaken for an incomplete one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Take};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;

use super::chain::MAX_LINE_LEN;
use super::day::{self, Day, Position};
use super::file;
use super::from_end::LinesFromEnd;
use super::head::Head;

/// State of the sidecar.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sidecar {
    /// There is no file, or it is empty.
    Missing,
    /// The file does not have the format of a head.
    Invalid,
    Head(Head),
}

/// The files of a log, oldest first, and its head.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) files: Vec<(Day, u64)>,
    pub(super) sidecar: Sidecar,
}

impl Snapshot {
    /// Takes a snapshot under the lock of the log, or without it if another process holds it for too long.
    pub(super) fn take(folder: &Path) -> Result<Self, Error> {
        read_folder(folder).map_err(|error| unreadable(folder, error))
    }
}

fn read_folder(folder: &Path) -> io::Result<Snapshot> {
    let sidecar = match File::open(Head::path(folder)) {
        Ok(sidecar) => Some(sidecar),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let locked = sidecar.as_ref().filter(|sidecar| file::lock(sidecar).is_ok());
    let mut files = Vec::new();
    // Newest first: even without the lock, a file that has a newer one with records has its last length.
    for day in day::days(folder)?.into_iter().rev() {
        match folder.join(day.file_name()).metadata() {
            Ok(metadata) => files.push((day, metadata.len())),
            // It was removed after the listing.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    files.reverse();
    let head = match &sidecar {
        None => Sidecar::Missing,
        // A new writer creates it empty.
        Some(sidecar) if sidecar.metadata()?.len() == 0 => Sidecar::Missing,
        Some(sidecar) => Head::read(sidecar)?.map_or(Sidecar::Invalid, Sidecar::Head),
    };
    // A lock that cannot be released ends with the file.
    let _ = locked.map(File::unlock);
    Ok(Snapshot { files, sidecar: head })
}

/// The error for a log that cannot be read.
pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    Error::AuditUnread { path: path.to_path_buf(), reason: error.to_string(), source: Some(Arc::new(error)) }
}

/// The lines of a log in file order, with one line in memory at a time.
#[derive(Debug)]
pub(super) struct Lines {
    folder: PathBuf,
    files: std::vec::IntoIter<(Day, u64)>,
    open: Option<OpenFile>,
    line: Vec<u8>,
}

#[derive(Debug)]
struct OpenFile {
    position: Position,
    reader: Take<BufReader<File>>,
}

impl Lines {
    pub(super) fn new(folder: &Path, files: Vec<(Day, u64)>) -> Self {
        Self { folder: folder.to_path_buf(), files: files.into_iter(), open: None, line: Vec::new() }
    }

    /// Skips the files of older days.
    pub(super) fn skip_before(&mut self, day: Day) {
        let newer: Vec<_> = self.files.by_ref().filter(|(of, _)| *of >= day).collect();
        self.files = newer.into_iter();
    }

    /// Returns the lines of the files that were not opened yet, newest first.
    pub(super) fn newest_first(self) -> LinesFromEnd {
        LinesFromEnd::new(self.folder, self.files.collect())
    }

    /// Reads the next line without its line break. A line that exceeds the maximum length is truncated to it.
    pub(super) fn next(&mut self) -> Result<Option<(Position, &[u8])>, Error> {
        loop {
            if let Some(open) = &mut self.open {
                match open.next(&mut self.line) {
                    Ok(true) => return Ok(Some((open.position, self.line.strip_suffix(b"\n").unwrap_or(&self.line)))),
                    Ok(false) => self.open = None,
                    Err(error) => return Err(unreadable(&self.folder.join(open.position.day.file_name()), error)),
                }
            }
            let Some((day, length)) = self.files.next() else { return Ok(None) };
            let path = self.folder.join(day.file_name());
            match File::open(&path) {
                Ok(file) => {
                    let reader = BufReader::with_capacity(64 << 10, file).take(length);
                    self.open = Some(OpenFile { position: Position { day, line: 0 }, reader });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&path, error)),
            }
        }
    }
}

impl OpenFile {
    fn next(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        self.reader.by_ref().take(MAX_LINE_LEN as u64).read_until(b'\n', line)?;
        if line.len() == MAX_LINE_LEN && !line.ends_with(b"\n") {
            self.reader.skip_until(b'\n')?;
        }
        self.position.line += 1;
        Ok(!line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_length_and_content_are_counted_within_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let day = Day::of_digits(b"20260301").unwrap();
        let text = [b"a\n\n\xff\0\n".as_slice(), &vec![b'x'; MAX_LINE_LEN + 9], b"\nlast"].concat();
        std::fs::write(dir.path().join(day.file_name()), &text).unwrap();
        let snapshot = Snapshot::take(dir.path()).unwrap();
        let mut lines = Lines::new(dir.path(), snapshot.files);
        let mut seen = Vec::new();
        while let Some((position, line)) = lines.next().unwrap() {
            seen.push((position.line, line.len()));
        }
        assert_eq!(seen, [(1, 1), (2, 0), (3, 2), (4, MAX_LINE_LEN), (5, 4)]);
    }
}
