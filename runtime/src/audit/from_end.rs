//! The lines of a log from its end, newest file first. What is not asked for is not read, and at most one line and one block
//! are in memory.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::error::Error;

use super::chain::MAX_LINE_LEN;
use super::day::Day;
use super::snapshot::unreadable;

/// Number of bytes that are read at once.
const BLOCK: u64 = 64 << 10;

/// The lines of a log's files, from the last to the first.
#[derive(Debug)]
pub(super) struct LinesFromEnd {
    folder: PathBuf,
    /// Files that were not opened, with their lengths, oldest first.
    files: Vec<(Day, u64)>,
    open: Option<(Day, FileFromEnd<File>)>,
    line: Vec<u8>,
}

impl LinesFromEnd {
    pub(super) fn new(folder: PathBuf, files: Vec<(Day, u64)>) -> Self {
        Self { folder, files, open: None, line: Vec::new() }
    }

    /// Reads the line before those that were returned, without its line break, and returns it with the day of its file. A
    /// line that exceeds the maximum length is truncated to it. The rest of a file that cannot be read is left out.
    pub(super) fn next(&mut self) -> Result<Option<(Day, &[u8])>, Error> {
        loop {
            if let Some((day, file)) = &mut self.open {
                let day = *day;
                match file.next(&mut self.line) {
                    Ok(true) => return Ok(Some((day, &self.line))),
                    Ok(false) => self.open = None,
                    Err(error) => {
                        self.open = None;
                        return Err(unreadable(&self.folder.join(day.file_name()), error));
                    }
                }
            }
            let Some((day, length)) = self.files.pop() else { return Ok(None) };
            let path = self.folder.join(day.file_name());
            match File::open(&path).and_then(|file| Ok((file.metadata()?.len().min(length), file))) {
                Ok((length, file)) => self.open = Some((day, FileFromEnd::new(file, length))),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&path, error)),
            }
        }
    }
}

/// The lines of a file, from the last to the first.
#[derive(Debug)]
struct FileFromEnd<F> {
    file: F,
    /// Number of bytes before the lines that were returned.
    left: u64,
    /// Latest block, and its offset in the file.
    block: Vec<u8>,
    offset: u64,
}

impl<F: Read + Seek> FileFromEnd<F> {
    fn new(file: F, length: u64) -> Self {
        Self { file, left: length, block: Vec::new(), offset: 0 }
    }

    /// Reads the line before those that were returned into `line`; `false` if there is none.
    fn next(&mut self, line: &mut Vec<u8>) -> io::Result<bool> {
        line.clear();
        if self.left == 0 {
            return Ok(false);
        }
        let has_break = self.before(self.left)?.last() == Some(&b'\n');
        let end = self.left - u64::from(has_break);
        let mut start = end;
        while start > 0 {
            let bytes = self.before(start)?;
            let found = bytes.iter().rposition(|byte| *byte == b'\n');
            start = self.offset + found.map_or(0, |at| at as u64 + 1);
            if found.is_some() {
                break;
            }
        }
        let length = (end - start).min(MAX_LINE_LEN as u64);
        match self.block.get((start - self.offset) as usize..).and_then(|rest| rest.get(..length as usize)) {
            Some(bytes) => line.extend_from_slice(bytes),
            None => {
                line.resize(length as usize, 0);
                self.file.seek(SeekFrom::Start(start))?;
                self.file.read_exact(line)?;
            }
        }
        self.left = start;
        Ok(true)
    }

    /// Returns the bytes before an offset that is not 0, as far as they lie in one block.
    fn before(&mut self, end: u64) -> io::Result<&[u8]> {
        if end <= self.offset || end > self.offset + self.block.len() as u64 {
            self.offset = end.saturating_sub(BLOCK);
            self.block.resize((end - self.offset) as usize, 0);
            self.file.seek(SeekFrom::Start(self.offset))?;
            self.file.read_exact(&mut self.block)?;
        }
        Ok(&self.block[..(end - self.offset) as usize])
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Bytes that count how many of them are read.
    struct Counted(Cursor<Vec<u8>>, usize);

    impl Read for Counted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.read(buffer)?;
            self.1 += count;
            Ok(count)
        }
    }

    impl Seek for Counted {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    fn from_end(text: &[u8]) -> FileFromEnd<Counted> {
        FileFromEnd::new(Counted(Cursor::new(text.to_vec()), 0), text.len() as u64)
    }

    fn lines(text: &[u8]) -> Vec<Vec<u8>> {
        let (mut file, mut line, mut lines) = (from_end(text), Vec::new(), Vec::new());
        while file.next(&mut line).unwrap() {
            lines.push(line.clone());
        }
        lines.reverse();
        lines
    }

    #[test]
    fn lines_of_any_length_are_those_of_a_reader_from_the_beginning() {
        let block = BLOCK as usize;
        for lengths in [
            &[][..],
            &[0],
            &[0, 0, 0],
            &[1, 0, 2],
            &[block],
            &[block - 1],
            &[block - 1, block - 1],
            &[block - 2, 0, block],
            &[3, block + 1, 3],
            &[5 * block + 7, 1, 2 * block],
            &[1, MAX_LINE_LEN - 1, MAX_LINE_LEN, 2],
        ] {
            let whole: Vec<Vec<u8>> = lengths.iter().map(|length| vec![b'x'; *length]).collect();
            let mut text: Vec<u8> = whole.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
            assert!(lines(&text) == whole, "{lengths:?}");
            text.extend(b"torn");
            assert!(lines(&text) == [whole, vec![b"torn".to_vec()]].concat(), "{lengths:?}, torn");
        }
        let long = lines(&[b"a\n".as_slice(), &vec![b'x'; MAX_LINE_LEN + 9], b"\nb"].concat());
        assert_eq!(long.iter().map(Vec::len).collect::<Vec<_>>(), [1, MAX_LINE_LEN, 1]);
    }

    #[test]
    fn the_last_lines_cost_their_own_blocks() {
        let mut file = from_end(&b"0123456789\n".repeat(1 << 20));
        let mut line = Vec::new();
        for _ in 0..20 {
            assert!(file.next(&mut line).unwrap() && line == b"0123456789");
        }
        assert_eq!(file.file.1, BLOCK as usize);
    }
}
