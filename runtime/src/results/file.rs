//! The file of a result: one line of JSON that says what it is, then the content as it came. One file cannot be torn
//! apart, and what is not as its line says is told and not passed on.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Error, Read, Seek, SeekFrom};
use std::ops::{Bound, RangeBounds};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::owner_only;

use super::reference::Reference;
use super::{Excerpt, StoredResult};

/// The longest first line that is read, in bytes.
const MAX_LINE_LEN: u64 = 16 << 10;
/// The most bytes of a character in UTF-8.
const MAX_CHAR_BYTES: u64 = 4;

/// An open file whose first line has been read.
pub(super) struct Opened {
    file: File,
    kept: StoredResult,
    /// Where the content begins.
    start: u64,
}

/// The first line of a result's file.
pub(super) fn first_line(kept: &StoredResult) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(kept)?;
    line.push(b'\n');
    Ok(line)
}

/// SHA-256 in hexadecimal digits.
pub(super) fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Opened {
    /// Opens the file of a result and reads what it says of itself.
    pub(super) fn open(path: &Path, reference: &Reference) -> io::Result<Self> {
        // Opening follows no link either; this says why.
        if !fs::symlink_metadata(path)?.is_file() {
            return Err(Error::other("it is a link or no file at all"));
        }
        let file = owner_only::options().read(true).open(path)?;
        let mut line = Vec::new();
        BufReader::new(&file).take(MAX_LINE_LEN).read_until(b'\n', &mut line)?;
        let kept: StoredResult =
            serde_json::from_slice(&line).map_err(|_| Error::other("its first line is not a result's"))?;
        if kept.reference != reference.as_str() {
            return Err(Error::other("it is another result's"));
        }
        let (start, length) = (line.len() as u64, file.metadata()?.len());
        if start.checked_add(kept.bytes) != Some(length) {
            let there = length.saturating_sub(start);
            return Err(Error::other(format!("it is incomplete: {there} of {} bytes", kept.bytes)));
        }
        Ok(Self { file, kept, start })
    }

    pub(super) fn kept(&self) -> &StoredResult {
        &self.kept
    }

    /// The content in a range of bytes, from one character to another; the whole is compared with its digest.
    pub(super) fn part(mut self, range: impl RangeBounds<u64>) -> io::Result<Excerpt> {
        let total = self.kept.bytes;
        let (from, to) = limits(range, total);
        // So much more on either side that every border can be seen.
        let low = from.saturating_sub(MAX_CHAR_BYTES);
        let high = to.saturating_add(MAX_CHAR_BYTES).min(total);
        let mut content = self.read(low, high)?;
        let window = |at: u64| (at - low) as usize;
        let start = border(&content, window(from));
        let end = match border(&content, window(to)) {
            end if end > start || start == content.len() => end,
            _ => content.len().min(start + width(content[start])),
        };
        content.truncate(end);
        content.drain(..start);
        let (offset, end) = (low + start as u64, low + end as u64);
        if content.len() as u64 == total && sha256(&content) != self.kept.sha256 {
            return Err(Error::other("its content was changed: the SHA-256 does not match"));
        }
        Ok(Excerpt { kept: self.kept, offset, content, next: (end < total).then_some(end) })
    }

    fn read(&mut self, low: u64, high: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.file.seek(SeekFrom::Start(self.start + low))?;
        let read = Read::by_ref(&mut self.file).take(high - low).read_to_end(&mut content)?;
        if read as u64 == high - low { Ok(content) } else { Err(Error::other("it was truncated while it was read")) }
    }
}

/// The first byte of a range and the first after it, within `total`.
fn limits(range: impl RangeBounds<u64>, total: u64) -> (u64, u64) {
    let from = match range.start_bound() {
        Bound::Included(at) => *at,
        Bound::Excluded(at) => at.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let to = match range.end_bound() {
        Bound::Included(at) => at.saturating_add(1),
        Bound::Excluded(at) => *at,
        Bound::Unbounded => total,
    };
    let from = from.min(total);
    (from, to.clamp(from, total))
}

/// The border of characters at a place or next before it. What is not UTF-8 has a border everywhere.
fn border(bytes: &[u8], at: usize) -> usize {
    let continues = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    if bytes.get(at).is_none_or(|byte| !continues(byte)) {
        return at;
    }
    let lead = bytes[..at].iter().rposition(|byte| !continues(byte));
    lead.filter(|lead| lead + width(bytes[*lead]) > at).unwrap_or(at)
}

/// The bytes of the character that begins with a byte.
fn width(lead: u8) -> usize {
    match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_border_is_never_within_a_character() {
        let text = "aä日💻z";
        for at in 0..=text.len() {
            assert_eq!(border(text.as_bytes(), at), text.floor_char_boundary(at), "{at}");
        }
    }

    #[test]
    fn what_is_not_utf_8_has_a_border_everywhere() {
        for bytes in [&[0x80; 9][..], b"a\x80\x80\x80\x80", b"\xff\x80\x80\xc0\x80"] {
            for at in 0..=bytes.len() {
                assert_eq!(border(bytes, at), at, "{bytes:?}");
            }
        }
    }

    #[test]
    fn a_range_ends_where_the_content_does() {
        assert_eq!(limits(.., 5), (0, 5));
        assert_eq!(limits(2..=3, 5), (2, 4));
        assert_eq!(limits(7..9, 5), (5, 5));
        assert_eq!(limits(3..u64::MAX, 5), (3, 5));
        assert_eq!(limits((Bound::Excluded(u64::MAX), Bound::Included(u64::MAX)), 5), (5, 5));
        assert_eq!(limits((Bound::Included(4), Bound::Excluded(2)), 5), (4, 4));
    }
}
