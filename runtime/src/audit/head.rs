//! Where the log stands: in the sidecar `head`, and, where that is missing or behind, at the end of the files themselves.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::chain::{self, Chain, Link, MAX_SEAL_LEN};
use super::day::Day;
use super::file;

/// Bytes of the sidecar: number, chain, day and end, with a space between each two and a line break at the end.
const WIDTH: usize = 20 + 1 + 64 + 1 + 8 + 1 + 20 + 1;
/// How much of a file is read at once, from its end.
const CHUNK: u64 = 64 << 10;

/// The last record, the newest day's file, and the length of that file after the record. Every line before is whole.
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

    /// The head that a sidecar holds; `None` where it is empty or was not written by this program.
    pub(super) fn read(sidecar: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; WIDTH];
        Ok(Self::parse(file::read_up_to(sidecar, &mut bytes, 0)?))
    }

    /// Puts this head into the sidecar, with one write over the one before.
    pub(super) fn write(&self, sidecar: &File) -> io::Result<()> {
        file::write_at(sidecar, &self.to_bytes(), 0)
    }

    fn to_bytes(self) -> [u8; WIDTH] {
        let mut bytes = [b' '; WIDTH];
        let Self { link: Link { seq, chain }, day, end } = self;
        let written = writeln!(&mut bytes[..], "{seq:020} {chain} {:08} {end:020}", day.number());
        debug_assert!(written.is_ok(), "the fields have their widths");
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

/// The link of the last whole record that ends in a file after `from`, at or before `end`. A line is whole also where
/// nothing but its line break is missing.
pub(super) fn last_link(log: &File, from: u64, end: u64) -> io::Result<Option<Link>> {
    let mut buffer = vec![0; (CHUNK as usize) + MAX_SEAL_LEN];
    let mut end = end;
    let mut at_end = true;
    loop {
        let start = end.saturating_sub(CHUNK).max(from);
        // What a line ends with may begin in the part before.
        let place = start.saturating_sub(MAX_SEAL_LEN as u64);
        let wanted = usize::try_from(end - place).map_err(io::Error::other)?;
        let bytes = file::read_up_to(log, &mut buffer[..wanted], place)?;
        let breaks = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        let ends = at_end.then_some(bytes.len()).into_iter().chain(breaks);
        let first = usize::try_from(start - place).map_err(io::Error::other)?;
        let links = ends.take_while(|at| *at >= first).map(|at| &bytes[at.saturating_sub(MAX_SEAL_LEN)..at]);
        if let Some((_, link)) = links.filter_map(chain::sealed).next() {
            return Ok(Some(link));
        }
        if start == from {
            return Ok(None);
        }
        (end, at_end) = (start, false);
    }
}

/// Whether a file of this length ends in a line without its line break.
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
    fn a_head_is_read_as_it_is_written_and_nothing_else_is_one() {
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
    fn the_last_whole_record_is_found_behind_whatever_follows_it() {
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
