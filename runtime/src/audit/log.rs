//! Appending to the log. Many processes write one folder: each takes the lock of its sidecar, learns where the log stands,
//! closes a torn tail, and writes its line whole or not at all.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::owner_only;

use super::chain::Link;
use super::day::{self, Day};
use super::file;
use super::head::{self, Head};

/// The longest line, in bytes with its line break: a longer one is refused, so that a reader needs no more room.
pub(super) const MAX_LINE_LEN: usize = 16 << 20;
/// Room kept in the file ahead of the records, and how near its end it is renewed.
const RESERVE: u64 = 1 << 20;
const RESERVE_AGAIN: u64 = 256 << 10;
/// How often it is looked whether the open files are still those at their paths.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    writer: Option<Writer>,
    /// LogRecords that could not be written.
    lost: u64,
}

/// The open files of the log.
#[derive(Debug)]
struct Writer {
    /// The file `head`. Whoever holds its lock may write in the folder.
    sidecar: File,
    /// The newest day, and its file.
    day: Day,
    file: File,
    /// Where the file ended after our last record, and up to where room is kept in it.
    end: u64,
    reserved: u64,
    looked: Instant,
    /// The line that is being written; kept for its memory.
    line: Vec<u8>,
}

/// Where the log stands, and whether a line stands there that was not written to its end.
struct Standing {
    head: Head,
    torn: bool,
}

impl Log {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, state: Mutex::default() }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the day's file and makes sure that records still fit on the disk.
    pub(super) fn ready(&self, day: Day) -> Result<(), Error> {
        let mut state = self.state();
        let ready = self.with_writer(&mut state, day, |writer| writer.ready(&self.folder, day));
        ready.map_err(|error| self.fault(&mut state, day, &error))
    }

    /// Appends a record, one JSON object, as the next line. On failure nothing of it stays, neither in the file nor in
    /// the chain, and the loss is counted.
    pub(super) fn append(&self, day: Day, record: &[u8]) -> Result<(), Error> {
        let mut state = self.state();
        let appended = self.with_writer(&mut state, day, |writer| writer.append(&self.folder, day, record));
        appended.map_err(|error| {
            state.lost += 1;
            self.fault(&mut state, day, &error)
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the open files, and once more with new ones where somebody took one away while it was open.
    fn with_writer(&self, state: &mut State, day: Day, act: impl Fn(&mut Writer) -> io::Result<()>) -> io::Result<()> {
        match self.writer(state, day).and_then(&act) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                state.writer = None;
                self.writer(state, day).and_then(act)
            }
            done => done,
        }
    }

    fn writer<'a>(&self, state: &'a mut State, day: Day) -> io::Result<&'a mut Writer> {
        if let Some(mut known) = state.writer.take()
            && known.is_current(&self.folder)
        {
            return Ok(state.writer.insert(known));
        }
        Ok(state.writer.insert(Writer::open(&self.folder, day)?))
    }

    /// The fault that an error is; the files are opened anew next time.
    fn fault(&self, state: &mut State, day: Day, error: &io::Error) -> Error {
        state.writer = None;
        let lost = if state.lost > 0 { format!("; records lost so far: {}", state.lost) } else { String::new() };
        Error::Audit { path: self.folder.join(day.file_name()), reason: format!("{error}{lost}") }
    }
}

impl Writer {
    /// Opens the newest file, or the day's where that is newer: the log never goes back a day, whatever a clock says.
    fn open(folder: &Path, day: Day) -> io::Result<Self> {
        file::make_folder(folder)?;
        owner_only::refuse_shared(folder)?;
        let sidecar = file::open_in_place(&Head::path(folder))?;
        let known = Head::read(&sidecar)?.map(|head| head.day);
        let newest = day::days(folder)?.last().copied();
        let day = day.max(known.unwrap_or(day)).max(newest.unwrap_or(day));
        let file = file::open_growing(&folder.join(day.file_name()))?;
        Ok(Self { sidecar, day, file, end: 0, reserved: 0, looked: Instant::now(), line: Vec::new() })
    }

    /// Whether the files are still those at their paths, as far as it was looked lately: a log that was moved away is
    /// begun anew.
    fn is_current(&mut self, folder: &Path) -> bool {
        if self.looked.elapsed() < LOOK_AGAIN {
            return true;
        }
        self.looked = Instant::now();
        self.is_in_place(folder)
    }

    fn is_in_place(&self, folder: &Path) -> bool {
        file::same_file(&self.sidecar, &Head::path(folder))
            && file::same_file(&self.file, &folder.join(self.day.file_name()))
    }

    fn ready(&mut self, folder: &Path, day: Day) -> io::Result<()> {
        if day > self.day {
            self.locked(|writer| writer.standing(folder, day).map(|_| ()))?;
        }
        if self.end + RESERVE_AGAIN > self.reserved {
            let end = file::length(&self.file)?;
            file::reserve(&self.file, end, RESERVE)?;
            (self.end, self.reserved) = (end, end + RESERVE);
        }
        Ok(())
    }

    fn append(&mut self, folder: &Path, day: Day, record: &[u8]) -> io::Result<()> {
        self.locked(|writer| {
            let standing = writer.standing(folder, day)?;
            writer.write(standing, record)
        })
    }

    fn locked(&mut self, act: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        file::lock(&self.sidecar)?;
        let done = act(self);
        // A lock that cannot be given back goes with the file; what was done is done.
        let _ = self.sidecar.unlock();
        done
    }

    /// Where the log stands. Nobody else has written since the last record where the sidecar and the file's length agree;
    /// then nothing more than the file's last byte is read.
    fn standing(&mut self, folder: &Path, day: Day) -> io::Result<Standing> {
        let mut head = Head::read(&self.sidecar)?;
        let newest = self.day.max(day).max(head.map_or(day, |head| head.day));
        if let Some(head) = head.as_mut().filter(|head| head.day < newest) {
            // The sidecar turns first: from then on nobody writes into an older day.
            (head.day, head.end) = (newest, 0);
            head.write(&self.sidecar)?;
        }
        if newest > self.day {
            self.file = file::open_growing(&folder.join(newest.file_name()))?;
            (self.day, self.end, self.reserved) = (newest, 0, 0);
        }
        let length = file::length(&self.file)?;
        let head = match head {
            Some(head) if (head.day, head.end) == (self.day, length) => head,
            head => Head { link: self.settle(folder, head, length)?, day: self.day, end: length },
        };
        // A file may have its length and still not end in a line break: somebody wrote over it in place.
        Ok(Standing { head, torn: head::is_torn(&self.file, length)? })
    }

    /// What the next record follows when the sidecar and the file disagree: the later of the two, so that neither a
    /// record whose writer died before it moved the head, nor a removal of the last lines, is forgotten.
    fn settle(&self, folder: &Path, head: Option<Head>, length: u64) -> io::Result<Link> {
        if !self.is_in_place(folder) {
            return Err(ErrorKind::NotFound.into());
        }
        let settled = head.filter(|head| head.day == self.day && (1..=length).contains(&head.end));
        // Where the file holds another record than the head names, somebody wrote its end anew. The head stands, so that
        // the records to come do not fit to that end and cover it.
        let forged = match settled {
            Some(head) => head::last_link(&self.file, 0, head.end)? != Some(head.link),
            None => false,
        };
        let mut found = match forged {
            true => None,
            false => head::last_link(&self.file, settled.map_or(0, |head| head.end), length)?,
        };
        if head.is_none() && found.is_none() {
            for day in day::days(folder)?.into_iter().rev().filter(|day| *day < self.day) {
                let older = File::open(folder.join(day.file_name()))?;
                found = head::last_link(&older, 0, file::length(&older)?)?;
                if found.is_some() {
                    break;
                }
            }
        }
        let known = head.map_or(Link::START, |head| head.link);
        Ok(found.filter(|found| found.seq > known.seq).unwrap_or(known))
    }

    /// Writes the record in one piece, after a line break where a torn line stands, and moves the head on.
    fn write(&mut self, Standing { head, torn }: Standing, record: &[u8]) -> io::Result<()> {
        self.line.clear();
        if torn {
            self.line.push(b'\n');
        }
        let link = head.link.seal(record, &mut self.line);
        if self.line.len() > MAX_LINE_LEN {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the record is larger than a line may be"));
        }
        let next = Head { link, day: self.day, end: head.end + self.line.len() as u64 };
        if let Err(error) = self.file.write_all(&self.line).and_then(|()| next.write(&self.sidecar)) {
            self.file.set_len(head.end)?;
            return Err(error);
        }
        self.end = next.end;
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::audit::chain;

    #[test]
    fn a_record_that_cannot_be_written_does_not_move_the_chain() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::new(dir.path().to_path_buf());
        let [first, second] = [b"20260301", b"20260302"].map(|digits| Day::of_digits(digits).unwrap());
        log.append(first, b"{\"n\":1}").unwrap();
        let path = dir.path().join(second.file_name());
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let refused = log.append(second, b"{\"n\":2}").unwrap_err().to_string();
        assert!(refused.contains("records lost so far: 1"), "{refused}");
        std::fs::remove_file(&path).unwrap();
        log.append(second, b"{\"n\":3}").unwrap();
        let line = |day: Day| std::fs::read(dir.path().join(day.file_name())).unwrap();
        let (_, before) = chain::sealed(line(first).trim_ascii_end()).unwrap();
        let mut wanted = Vec::new();
        before.seal(b"{\"n\":3}", &mut wanted);
        assert_eq!(line(second), wanted);
        assert!(log.append(second, &vec![b' '; MAX_LINE_LEN]).is_err(), "nor one that is too long");
        assert_eq!(line(second), wanted);
    }

    #[test]
    fn a_record_does_not_cover_an_end_that_somebody_wrote_anew() {
        let dir = tempfile::tempdir().unwrap();
        let day = Day::of_digits(b"20260301").unwrap();
        let write =
            |name: &str| Log::new(dir.path().to_path_buf()).append(day, format!("{{\"tool\":\"{name}\"}}").as_bytes());
        ["a", "b"].into_iter().for_each(|name| write(name).unwrap());
        let path = dir.path().join(day.file_name());
        let whole = std::fs::read(&path).unwrap();
        let (_, mut link) = chain::sealed(whole.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
        let mut forged = whole[..=whole.iter().position(|byte| *byte == b'\n').unwrap()].to_vec();
        for _ in 2..=3 {
            link = link.seal(b"{\"tool\":\"forged\"}", &mut forged);
        }
        std::fs::write(&path, forged).unwrap();
        let errors = || crate::audit::verify(dir.path()).unwrap().count();
        assert_eq!(errors(), 1);
        for name in ["c", "d"] {
            write(name).unwrap();
            assert!(errors() > 0, "after {name}");
        }
    }

    #[test]
    fn a_record_has_a_line_of_its_own_where_the_last_line_break_was_written_over() {
        let dir = tempfile::tempdir().unwrap();
        let day = Day::of_digits(b"20260301").unwrap();
        let log = Log::new(dir.path().to_path_buf());
        let write = |name: &str| log.append(day, format!("{{\"ts\":\"\",\"tool\":\"{name}\"}}").as_bytes()).unwrap();
        write("a");
        let path = dir.path().join(day.file_name());
        let mut text = std::fs::read(&path).unwrap();
        *text.last_mut().unwrap() = b'x';
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file::write_at(&file, &text, 0).unwrap();
        write("b");
        let tools = crate::audit::records(dir.path()).unwrap().map(|entry| entry.unwrap().tool);
        assert_eq!(tools.collect::<Vec<_>>(), ["b"], "what was written over is no record any more, the next one is");
        assert!(crate::audit::verify(dir.path()).unwrap().count() > 0);
    }

    #[test]
    fn writers_on_both_sides_of_midnight_make_one_chain() {
        let dir = tempfile::tempdir().unwrap();
        let days = [b"20260228", b"20260301", b"20260302"].map(|digits| Day::of_digits(digits).unwrap());
        std::thread::scope(|scope| {
            for writer in 0..6 {
                let log = Log::new(dir.path().to_path_buf());
                scope.spawn(move || {
                    for n in 0..150 {
                        log.append(days[(n + 10 * writer) / 80], b"{\"ts\":\"\",\"tool\":\"t\"}").unwrap();
                    }
                });
            }
        });
        let mut verification = crate::audit::verify(dir.path()).unwrap();
        let problems: Vec<_> = verification.by_ref().collect();
        assert!(problems.is_empty(), "{problems:?}");
        let summary = verification.summary();
        assert_eq!((summary.files, summary.records, summary.last), (3, 900, Some(900)));
    }
}
