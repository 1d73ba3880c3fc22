//! Journal of a stage or a record: each line has the facts about one change. A line that was cut off by the end of its process counts as
//! not written.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Maximum length of the journal in bytes.
const MAX_LEN: u64 = 256 << 20;

/// Open journal of facts.
#[derive(Debug)]
pub(crate) struct Journal<T> {
    file: File,
    len: u64,
    max: u64,
    facts: PhantomData<fn(T)>,
}

impl<T: Serialize + DeserializeOwned> Journal<T> {
    /// Opens a journal, and passes on its facts.
    ///
    /// # Errors
    ///
    /// The error of the system, or a line that is not one of facts.
    pub(crate) fn open(file: File, apply: impl FnMut(T)) -> io::Result<Self> {
        let len = read(&file, apply)?;
        // What follows was cut off.
        file.set_len(len)?;
        Ok(Self { file, len, max: MAX_LEN, facts: PhantomData })
    }

    /// Reads a journal that another process may be writing. Nothing can be added to it.
    pub(crate) fn read_only(file: File, apply: impl FnMut(T)) -> io::Result<Self> {
        let len = read(&file, apply)?;
        Ok(Self { file, len, max: 0, facts: PhantomData })
    }

    /// Adds a line. After an error the journal is as before.
    pub(crate) fn add(&mut self, facts: &[T]) -> io::Result<()> {
        self.add_within(self.max, facts)
    }

    /// Adds a line for which the maximum leaves room: it ends what earlier lines have begun.
    pub(crate) fn add_last(&mut self, facts: &[T]) -> io::Result<()> {
        self.add_within(self.max.saturating_mul(2), facts)
    }

    fn add_within(&mut self, max: u64, facts: &[T]) -> io::Result<()> {
        let mut line = serde_json::to_vec(facts)?;
        line.push(b'\n');
        let len = self.len + line.len() as u64;
        if len > max {
            return Err(rustix::io::Errno::DQUOT.into());
        }
        let written = self.file.seek(SeekFrom::Start(self.len)).and_then(|_| self.file.write_all(&line));
        match written {
            Ok(()) => self.len = len,
            Err(_) => self.file.set_len(self.len)?,
        }
        written
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Waits until all lines are on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Reads the whole lines of a journal, and returns their length.
///
/// # Errors
///
/// The error of the system, or a line that is not one of facts.
pub(crate) fn read<T: DeserializeOwned>(file: &File, mut apply: impl FnMut(T)) -> io::Result<u64> {
    let (mut reader, mut line, mut len) = (BufReader::new(file), Vec::new(), 0);
    reader.seek(SeekFrom::Start(0))?;
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok(len);
        }
        let facts: Vec<T> = serde_json::from_slice(&line)?;
        facts.into_iter().for_each(&mut apply);
        len += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fact::Fact;

    fn facts(file: &File) -> Vec<Fact> {
        let mut facts = Vec::new();
        read(file, |fact| facts.push(fact)).unwrap();
        facts
    }

    #[test]
    fn a_line_that_was_cut_off_is_not_read_and_makes_room_for_the_next() {
        let mut file = tempfile::tempfile().unwrap();
        let mut journal = Journal::open(file.try_clone().unwrap(), |_: Fact| {}).unwrap();
        journal.add(&[Fact::Gone(1)]).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b"[{\"gone\":2}").unwrap();
        assert_eq!(facts(&file), [Fact::Gone(1)]);
        let mut journal = Journal::open(file.try_clone().unwrap(), |_: Fact| {}).unwrap();
        journal.add(&[Fact::Gone(3)]).unwrap();
        assert_eq!(facts(&file), [Fact::Gone(1), Fact::Gone(3)]);
    }

    #[test]
    fn a_journal_ends_at_its_maximum_and_at_no_half_line() {
        let file = tempfile::tempfile().unwrap();
        let mut journal = Journal::open(file.try_clone().unwrap(), |_: Fact| {}).unwrap();
        journal.max = 30;
        journal.add(&[Fact::Gone(1)]).unwrap();
        assert!(journal.add(&[Fact::Shown("a".repeat(30))]).is_err());
        journal.add(&[Fact::Gone(2)]).unwrap();
        assert_eq!(facts(&file), [Fact::Gone(1), Fact::Gone(2)]);
        assert!(journal.add(&[Fact::Gone(3)]).is_err());
        journal.add_last(&[Fact::Gone(3)]).unwrap();
        assert!(journal.add_last(&[Fact::Shown("a".repeat(30))]).is_err());
        assert_eq!(facts(&file), [Fact::Gone(1), Fact::Gone(2), Fact::Gone(3)]);
    }

    #[test]
    fn a_line_of_something_else_is_an_error() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"[{\"other\":2}]\n").unwrap();
        assert!(read(&file, |_: Fact| {}).is_err());
    }
}
