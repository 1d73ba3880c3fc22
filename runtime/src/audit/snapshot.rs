//! A log as it stands at one moment, for reading: its files with their lengths, its head, and the lines. What is written
//! while somebody reads is not seen, so that nobody's half-written line is taken for a torn one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Take};
use std::path::{Path, PathBuf};

use crate::error::Error;

use super::day::{self, Day};
use super::file;
use super::head::Head;
use super::log::MAX_LINE_LEN;

/// What was found in the place of the sidecar.
#[derive(Debug, Clone, Copy)]
pub(super) enum Sidecar {
    /// Nothing, or an empty file.
    Missing,
    /// Something that no writer left there.
    Foreign,
    Head(Head),
}

/// The files of a log, oldest first, and its head.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) files: Vec<(Day, u64)>,
    pub(super) sidecar: Sidecar,
}

impl Snapshot {
    /// Looks at a log under its lock, and without where somebody keeps it.
    pub(super) fn take(folder: &Path) -> Result<Self, Error> {
        look(folder).map_err(|error| unreadable(folder, &error))
    }
}

fn look(folder: &Path) -> io::Result<Snapshot> {
    let sidecar = match File::open(Head::path(folder)) {
        Ok(sidecar) => Some(sidecar),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let held = sidecar.as_ref().filter(|sidecar| file::lock(sidecar).is_ok());
    let mut files = Vec::new();
    for day in day::days(folder)? {
        match folder.join(day.file_name()).metadata() {
            Ok(about) => files.push((day, about.len())),
            // It was taken away between two looks.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let head = match &sidecar {
        None => Sidecar::Missing,
        // A writer that has written nothing yet leaves it empty.
        Some(sidecar) if sidecar.metadata()?.len() == 0 => Sidecar::Missing,
        Some(sidecar) => Head::read(sidecar)?.map_or(Sidecar::Foreign, Sidecar::Head),
    };
    held.map_or(Ok(()), File::unlock)?;
    Ok(Snapshot { files, sidecar: head })
}

/// The fault of a log that cannot be read.
pub(super) fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::AuditUnread { path: path.to_path_buf(), reason: error.to_string() }
}

/// The lines of a log, one at a time, in the order of its files. It holds one line.
#[derive(Debug)]
pub(super) struct Lines {
    folder: PathBuf,
    files: std::vec::IntoIter<(Day, u64)>,
    open: Option<Open>,
    line: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    place: Place,
    reader: Take<BufReader<File>>,
}

/// The day whose file a line stands in, and its number, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) day: Day,
    pub(super) line: u64,
}

impl Lines {
    pub(super) fn new(folder: &Path, files: Vec<(Day, u64)>) -> Self {
        Self { folder: folder.to_path_buf(), files: files.into_iter(), open: None, line: Vec::new() }
    }

    /// Leaves out the files of older days.
    pub(super) fn skip_before(&mut self, day: Day) {
        let newer: Vec<_> = self.files.by_ref().filter(|(of, _)| *of >= day).collect();
        self.files = newer.into_iter();
    }

    /// The next line without its line break. Of a line longer than a record can be there is only a beginning.
    pub(super) fn next(&mut self) -> Result<Option<(Place, &[u8])>, Error> {
        loop {
            if let Some(open) = &mut self.open {
                match open.next(&mut self.line) {
                    Ok(true) => return Ok(Some((open.place, self.line.strip_suffix(b"\n").unwrap_or(&self.line)))),
                    Ok(false) => self.open = None,
                    Err(error) => return Err(unreadable(&self.folder.join(open.place.day.file_name()), &error)),
                }
            }
            let Some((day, length)) = self.files.next() else { return Ok(None) };
            let path = self.folder.join(day.file_name());
            match File::open(&path) {
                Ok(file) => {
                    let reader = BufReader::with_capacity(64 << 10, file).take(length);
                    self.open = Some(Open { place: Place { day, line: 0 }, reader });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&path, &error)),
            }
        }
    }
}

impl Open {
    fn next(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        self.reader.by_ref().take(MAX_LINE_LEN as u64).read_until(b'\n', line)?;
        if line.len() == MAX_LINE_LEN && !line.ends_with(b"\n") {
            self.reader.skip_until(b'\n')?;
        }
        self.place.line += 1;
        Ok(!line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_length_and_content_are_counted_and_held_in_bound() {
        let dir = tempfile::tempdir().unwrap();
        let day = Day::of_digits(b"20260301").unwrap();
        let text = [b"a\n\n\xff\0\n".as_slice(), &vec![b'x'; MAX_LINE_LEN + 9], b"\nlast"].concat();
        std::fs::write(dir.path().join(day.file_name()), &text).unwrap();
        let snapshot = Snapshot::take(dir.path()).unwrap();
        let mut lines = Lines::new(dir.path(), snapshot.files);
        let mut seen = Vec::new();
        while let Some((place, line)) = lines.next().unwrap() {
            seen.push((place.line, line.len()));
        }
        assert_eq!(seen, [(1, 1), (2, 0), (3, 2), (4, MAX_LINE_LEN), (5, 4)]);
    }
}
