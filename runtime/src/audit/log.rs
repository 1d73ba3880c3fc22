//! Appending to the log. Several processes may write one folder: each takes the lock of the sidecar, finds the last
//! record, terminates an incomplete last line, and writes its own lines completely or not at all.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::figures::{LOST_RECORDS, RECORDS};
use crate::store::owner_only;

use super::chain::{Link, MAX_LINE_LEN};
use super::day::{self, Day};
use super::file;
use super::head::{self, Head};
use super::queue::{Entry, Sink};

/// Space reserved in the file after the last record, and the remaining space at which it is renewed.
const RESERVED_LEN: u64 = 1 << 20;
const MIN_RESERVED_LEN: u64 = 256 << 10;
/// Interval of the checks that the open files are still those at their paths.
const PATH_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum bytes of records that are written at once. A longer record is written alone.
const MAX_BATCH_LEN: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Log {
    folder: PathBuf,
    state: Mutex<State>,
    /// `true` if the files were open and had space after the last check or record.
    is_ready: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    writer: Option<Writer>,
    /// Number of records that could not be written.
    lost: u64,
}

/// The open files of the log.
#[derive(Debug)]
struct Writer {
    /// The file `head`. The holder of its lock may write in the folder.
    sidecar: File,
    /// Newest day, with its file.
    day: Day,
    file: File,
    /// End of the file after our last record, and end of its reserved space.
    end: u64,
    reserved: u64,
    /// Time of the last path check.
    checked: Instant,
    /// Buffer of the lines that are written, reused for its memory.
    lines: Vec<u8>,
}

/// End of the log: its last record, and whether an incomplete line follows.
struct LogEnd {
    head: Head,
    torn: bool,
}

impl Log {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, state: Mutex::default(), is_ready: AtomicBool::new(false) }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Opens the day's file and checks that records fit on the disk.
    pub(super) fn ready(&self, day: Day) -> Result<(), Error> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            // The call that writes at this moment checks the space after its records.
            Err(TryLockError::WouldBlock) if self.is_ready.load(Acquire) => return Ok(()),
            _ => self.state(),
        };
        let ready = self.with_writer(&mut state, day, |writer| writer.ready(&self.folder, day));
        self.is_ready.store(ready.is_ok(), Release);
        ready.map_err(|error| self.fault(&mut state, day, error))
    }

    /// Appends records of one day, each one JSON object, as the next lines. On failure no part of them stays in the file or
    /// the chain, and the loss is counted.
    fn append_all(&self, day: Day, records: &[Entry]) -> Result<(), Error> {
        let mut state = self.state();
        let appended = self.with_writer(&mut state, day, |writer| writer.append(&self.folder, day, records));
        let has_space = |state: &mut State| state.writer.as_mut().is_some_and(|writer| writer.reserve().is_ok());
        self.is_ready.store(appended.is_ok() && has_space(&mut state), Release);
        let count = records.len() as u64;
        if appended.is_ok() { &RECORDS } else { &LOST_RECORDS }.add(count);
        appended.map_err(|error| {
            state.lost += count;
            self.fault(&mut state, day, error)
        })
    }

    /// Appends one record.
    #[cfg(test)]
    pub(super) fn append(&self, day: Day, record: &[u8]) -> Result<(), Error> {
        self.append_all(day, &[Entry { day, record: record.to_vec() }])
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` with the open files, and again with reopened ones if a file was removed in the meantime.
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

    /// Converts an error. The files are reopened next time.
    fn fault(&self, state: &mut State, day: Day, error: io::Error) -> Error {
        state.writer = None;
        let lost = if state.lost > 0 { format!("; records lost so far: {}", state.lost) } else { String::new() };
        Error::Audit {
            path: self.folder.join(day.file_name()),
            reason: format!("{error}{lost}"),
            source: Some(Arc::new(error)),
        }
    }
}

impl Sink for Log {
    fn write(&self, entries: &[Entry]) -> Vec<Result<(), Error>> {
        let mut results = Vec::with_capacity(entries.len());
        let mut rest = entries;
        while let Some(first) = rest.first() {
            let (batch, after) = rest.split_at(written_at_once(rest));
            results.resize(results.len() + batch.len(), self.append_all(first.day, batch));
            rest = after;
        }
        results
    }
}

/// Counts the first entries that are written at once: entries of one day, at most [`MAX_BATCH_LEN`] bytes together.
fn written_at_once(entries: &[Entry]) -> usize {
    let mut len = 0;
    let fits = |entry: &&Entry| {
        len += entry.record.len();
        entry.day == entries[0].day && len <= MAX_BATCH_LEN
    };
    entries.iter().take_while(fits).count().max(1)
}

impl Writer {
    /// Opens the newest file, or the file of `day` if newer: the log never goes back a day, whatever the clock says.
    fn open(folder: &Path, day: Day) -> io::Result<Self> {
        owner_only::create_folder(folder)?;
        let sidecar = file::open_in_place(&Head::path(folder))?;
        // Some systems let nobody else read a locked file.
        file::lock(&sidecar)?;
        let known = Head::read(&sidecar).map(|head| head.map(|head| head.day));
        let _ = sidecar.unlock();
        let known = known?;
        let newest = day::days(folder)?.last().copied();
        let day = day.max(known.unwrap_or(day)).max(newest.unwrap_or(day));
        let file = file::open_growing(&folder.join(day.file_name()))?;
        Ok(Self { sidecar, day, file, end: 0, reserved: 0, checked: Instant::now(), lines: Vec::new() })
    }

    /// Returns `true` if the files were still those at their paths at the last check. A log that was moved away is
    /// started again.
    fn is_current(&mut self, folder: &Path) -> bool {
        if self.checked.elapsed() < PATH_CHECK_INTERVAL {
            return true;
        }
        self.checked = Instant::now();
        self.is_in_place(folder)
    }

    fn is_in_place(&self, folder: &Path) -> bool {
        owner_only::is_file_at(&self.sidecar, &Head::path(folder))
            && owner_only::is_file_at(&self.file, &folder.join(self.day.file_name()))
    }

    fn ready(&mut self, folder: &Path, day: Day) -> io::Result<()> {
        if day > self.day {
            self.with_lock(|writer| writer.find_end(folder, day).map(|_| ()))?;
        }
        self.reserve()
    }

    /// Renews the reserved space if little of it remains.
    fn reserve(&mut self) -> io::Result<()> {
        if self.end + MIN_RESERVED_LEN > self.reserved {
            let end = file::length(&self.file)?;
            file::reserve(&self.file, end, RESERVED_LEN)?;
            (self.end, self.reserved) = (end, end + RESERVED_LEN);
        }
        Ok(())
    }

    fn append(&mut self, folder: &Path, day: Day, records: &[Entry]) -> io::Result<()> {
        self.with_lock(|writer| {
            let end = writer.find_end(folder, day)?;
            writer.write(end, records)
        })
    }

    fn with_lock(&mut self, act: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        file::lock(&self.sidecar)?;
        let done = act(self);
        // A lock that cannot be released ends with the file.
        let _ = self.sidecar.unlock();
        done
    }

    /// Finds the end of the log. If the sidecar matches the length of the file, no other process has written since the
    /// last record, and only the last byte of the file is read.
    fn find_end(&mut self, folder: &Path, day: Day) -> io::Result<LogEnd> {
        let mut head = Head::read(&self.sidecar)?;
        let newest = self.day.max(day).max(head.map_or(day, |head| head.day));
        if let Some(head) = head.as_mut().filter(|head| head.day < newest) {
            // The sidecar changes first: from then on no process writes to an older day.
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
            head => Head { link: self.recover_link(folder, head, length)?, day: self.day, end: length },
        };
        // A file of the right length may lack its last line break if it was overwritten in place.
        Ok(LogEnd { head, torn: head::is_torn(&self.file, length)? })
    }

    /// Determines the last record when the sidecar and the file disagree: the later one, so that a record is kept whose
    /// writer died before it updated the head, and a removal of the last lines stays visible.
    fn recover_link(&self, folder: &Path, head: Option<Head>, length: u64) -> io::Result<Link> {
        if !self.is_in_place(folder) {
            return Err(ErrorKind::NotFound.into());
        }
        let within = head.filter(|head| head.day == self.day && (1..=length).contains(&head.end));
        // If the file has another record where the head points, its end was rewritten. The head takes precedence, so
        // that later records do not fit that end and hide the change.
        let forged = match within {
            Some(head) => head::last_link(&self.file, 0, head.end)? != Some(head.link),
            None => false,
        };
        let mut found = match forged {
            true => None,
            false => head::last_link(&self.file, within.map_or(0, |head| head.end), length)?,
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

    /// Writes the records in one piece, after a line break if the last line is incomplete, and updates the head.
    fn write(&mut self, LogEnd { head, torn }: LogEnd, records: &[Entry]) -> io::Result<()> {
        self.lines.clear();
        if torn {
            self.lines.push(b'\n');
        }
        let mut link = head.link;
        for Entry { record, .. } in records {
            let start = self.lines.len();
            link = link.seal(record, &mut self.lines);
            if self.lines.len() - start > MAX_LINE_LEN {
                return Err(io::Error::new(ErrorKind::InvalidInput, "the record exceeds the maximum length of a line"));
            }
        }
        let next = Head { link, day: self.day, end: head.end + self.lines.len() as u64 };
        if let Err(error) = file::append_at(&self.file, &self.lines, head.end).and_then(|()| next.write(&self.sidecar))
        {
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
        let (_, before) = chain::parse_sealed(line(first).trim_ascii_end()).unwrap();
        let mut expected = Vec::new();
        before.seal(b"{\"n\":3}", &mut expected);
        assert_eq!(line(second), expected);
        assert!(log.append(second, &vec![b' '; MAX_LINE_LEN]).is_err(), "nor one that is too long");
        assert_eq!(line(second), expected);
    }

    #[test]
    fn a_record_does_not_hide_a_rewritten_end() {
        let dir = tempfile::tempdir().unwrap();
        let day = Day::of_digits(b"20260301").unwrap();
        let write =
            |name: &str| Log::new(dir.path().to_path_buf()).append(day, format!("{{\"tool\":\"{name}\"}}").as_bytes());
        ["a", "b"].into_iter().for_each(|name| write(name).unwrap());
        let path = dir.path().join(day.file_name());
        let whole = std::fs::read(&path).unwrap();
        let (_, mut link) = chain::parse_sealed(whole.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
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
    fn a_record_has_its_own_line_after_an_overwritten_line_break() {
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
        assert_eq!(tools.collect::<Vec<_>>(), ["b"], "the overwritten line is no longer a record, the next one is");
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

    #[test]
    fn records_of_one_day_are_written_at_once_up_to_a_length_and_fail_together() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::new(dir.path().to_path_buf());
        let days = [b"20260301", b"20260302", b"20260303"].map(|digits| Day::of_digits(digits).unwrap());
        let entry = |day: usize, len: usize| {
            let (start, end) = ("{\"ts\":\"\",\"tool\":\"", "\"}");
            let name = "t".repeat(len.saturating_sub(start.len() + end.len()));
            Entry { day: days[day], record: format!("{start}{name}{end}").into_bytes() }
        };
        let half = MAX_BATCH_LEN / 2;
        for (entries, count) in [
            (vec![entry(0, half), entry(0, half)], 2),
            (vec![entry(0, half), entry(0, half + 1)], 1),
            (vec![entry(0, MAX_BATCH_LEN + 1), entry(0, 99)], 1),
            (vec![entry(0, 99), entry(1, 99)], 1),
            (vec![entry(0, 99), entry(0, 99), entry(0, 99), entry(1, 99)], 3),
        ] {
            assert_eq!(written_at_once(&entries), count);
        }
        let lens = [99, 99, half, half + 1, MAX_LINE_LEN, 99];
        let entries: Vec<_> = [0, 1].into_iter().flat_map(|day| lens.map(|len| entry(day, len))).collect();
        let failed: Vec<_> = log.write(&entries).iter().map(Result::is_err).collect();
        assert_eq!(failed, [[false, false, false, false, true, false]; 2].concat(), "only what is too long");
        std::os::unix::fs::symlink("/dev/full", dir.path().join(days[2].file_name())).unwrap();
        let lost: Vec<_> = log.write(&[entry(2, 99), entry(2, 99)]).into_iter().map(Result::unwrap_err).collect();
        assert!(lost.len() == 2 && lost.iter().all(|error| error.to_string().contains("lost so far: 4")), "{lost:?}");
        std::fs::remove_file(dir.path().join(days[2].file_name())).unwrap();
        let mut verification = crate::audit::verify(dir.path()).unwrap();
        assert_eq!(verification.by_ref().count(), 0);
        let summary = verification.summary();
        assert_eq!((summary.files, summary.records, summary.last), (2, 10, Some(10)));
    }
}
