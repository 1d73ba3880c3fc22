//! The last record of the log, read from the sidecar `head` or, if that is missing or behind, from the files' end.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::chain::{self, Chain, Link, MAX_SEAL_LEN};
use super::day::Day;
use super::file;

/// Length of the sidecar: number, chain, day and end, separated by spaces, with a line break at the end.
const WIDTH: usize = 20 + 1 + 64 + 1 + 8 + 1 + 20 + 1;
/// Bytes that are read at once when a file is searched from its end.
const CHUNK: u64 = 64 << 10;

/// The last record, the day of the newest file, and that file's length after the record. All lines up to there are
/// complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) link: Link,
    pub(super) day: Day,
    pub(super) end: u64,
}

impl Head {
    pub(super) fn path(folder: &Path) -> PathBuf {
        folder.join("head")
    }

    /// Reads the head from a sidecar; `None` if it is empty or has another format.
    pub(super) fn read(sidecar: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; WIDTH];
        Ok(Self::parse(file::read_up_to(sidecar, &mut bytes, 0)?))
    }

    /// Overwrites the sidecar with this head in one write.
    pub(super) fn write(&self, sidecar: &File) -> io::Result<()> {
        file::write_at(sidecar, &self.to_bytes(), 0)
    }

    fn to_bytes(self) -> [u8; WIDTH] {
        let mut bytes = [b' '; WIDTH];
        let Self { link: Link { seq, chain }, day, end } = self;
        write_digits(&mut bytes[..20], seq);
        bytes[21..85].copy_from_slice(chain.digits());
        write_digits(&mut bytes[86..94], day.number().into());
        write_digits(&mut bytes[95..115], end);
        bytes[WIDTH - 1] = b'\n';
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let fields = bytes.strip_suffix(b"\n").filter(|_| bytes.len() == WIDTH)?;
        let mut fields = fields.split(|byte| *byte == b' ');
        let mut field = || fields.next();
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse().ok();
        let link = Link::new(number(field()?)?, Chain::of_digits(field()?)?)?;
        Some(Self { link, day: Day::of_digits(field()?)?, end: number(field()?)? })
    }
}

/// Fills a field with the digits of a number, with zeros before them.
fn write_digits(field: &mut [u8], mut number: u64) {
    for digit in field.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Finds the link of the last complete record that ends in a file after `from`, at or before `end`. A line that only
/// lacks its line break is complete.
pub(super) fn last_link(log: &File, from: u64, end: u64) -> io::Result<Option<Link>> {
    let mut buffer = vec![0; (CHUNK as usize) + MAX_SEAL_LEN];
    let mut end = end;
    let mut at_end = true;
    loop {
        let start = end.saturating_sub(CHUNK).max(from);
        // The fields at the end of a line may start in the previous chunk.
        let offset = start.saturating_sub(MAX_SEAL_LEN as u64);
        let length = usize::try_from(end - offset).map_err(io::Error::other)?;
        let bytes = file::read_up_to(log, &mut buffer[..length], offset)?;
        let breaks = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        let ends = at_end.then_some(bytes.len()).into_iter().chain(breaks);
        let first = usize::try_from(start - offset).map_err(io::Error::other)?;
        let links = ends.take_while(|at| *at >= first).map(|at| &bytes[at.saturating_sub(MAX_SEAL_LEN)..at]);
        if let Some((_, link)) = links.filter_map(chain::parse_sealed).next() {
            return Ok(Some(link));
        }
        if start == from {
            return Ok(None);
        }
        (end, at_end) = (start, false);
    }
}

/// Returns `true` if a file of this length does not end with a line break.
pub(super) fn is_torn(log: &File, length: u64) -> io::Result<bool> {
    let mut last = [b'\n'];
    if length > 0 {
        file::read_up_to(log, &mut last, length - 1)?;
    }
    Ok(last != [b'\n'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_written_and_other_bytes_are_none() {
        let link = Link { seq: 7, chain: Link::START.chain.after(b"x") };
        let head = Head { link, day: Day::of_digits(b"20260301").unwrap(), end: 1234 };
        let bytes = head.to_bytes();
        assert_eq!(Head::parse(&bytes), Some(head));
        assert_eq!(Head::parse(&bytes[1..]), None);
        for at in [19, 21, 84, 93, 94, WIDTH - 1] {
            let mut changed = bytes;
            changed[at] = b'?';
            assert_eq!(Head::parse(&changed), None, "{at}");
        }
    }

    #[test]
    fn the_last_complete_record_is_found_before_any_other_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut text = vec![b'x'; 3 * CHUNK as usize];
        let first = Link::START.seal(b"{}", &mut text);
        let after_first = text.len() as u64;
        let found = |text: &[u8], from| {
            std::fs::write(&path, text).unwrap();
            last_link(&File::open(&path).unwrap(), from, text.len() as u64).unwrap()
        };
        assert_eq!(found(b"", 0), None);
        assert_eq!(found(&text, 0), Some(first));
        assert_eq!(found(&text, after_first), None);
        for rest in [1, 300, CHUNK as usize - 1, CHUNK as usize, CHUNK as usize + 90, 3 * CHUNK as usize] {
            let long = [text.clone(), vec![b'y'; rest]].concat();
            assert_eq!(found(&long, 0), Some(first), "{rest}");
        }
        let second = first.seal(b"{}", &mut text);
        assert_eq!(found(&text, after_first), Some(second));
        assert_eq!(found(text.trim_ascii_end(), 0), Some(second), "only its line break is missing");
        assert_eq!(found(&text[..text.len() - 2], 0), Some(first));
    }
}
