//! File format of a result: one JSON line that describes it, then the content unchanged. A file that does not match its
//! first line is reported and its content is not returned.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Error, ErrorKind, Read, Seek, SeekFrom};
use std::ops::{Bound, RangeBounds};
use std::path::Path;

use sha2::{Digest, Sha256};
use toolcrib_foundation::hex;

use crate::store::owner_only::{self, SharedAccess};

use super::reference::Reference;
use super::{Excerpt, StoredResult};

/// Maximum length of the first line in bytes.
const MAX_LINE_LEN: u64 = 16 << 10;
/// Maximum length of a character in UTF-8.
const MAX_CHAR_BYTES: u64 = 4;

/// An open file of a result, or its bytes, with its first line parsed.
pub(super) struct ResultFile<R> {
    file: R,
    stored: StoredResult,
    /// Offset of the content in the file.
    start: u64,
}

/// Formats the first line of a result's file.
pub(super) fn first_line(stored: &StoredResult) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(stored)?;
    line.push(b'\n');
    if line.len() as u64 > MAX_LINE_LEN {
        return Err(Error::new(ErrorKind::InvalidInput, format!("its description exceeds {MAX_LINE_LEN} bytes")));
    }
    Ok(line)
}

/// Computes a SHA-256 in hexadecimal digits.
pub(super) fn sha256(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

impl ResultFile<File> {
    /// Opens the file of a result, reads its first line and compares its content's length.
    pub(super) fn open(path: &Path, reference: &Reference) -> io::Result<Self> {
        let file = owner_only::open(path, SharedAccess::Read)?.ok_or(ErrorKind::NotFound)?;
        let length = file.metadata()?.len();
        Self::parse(file, length, reference)
    }
}

impl ResultFile<Cursor<Vec<u8>>> {
    /// Reads the first line in the bytes of a result's file and compares its content's length.
    pub(super) fn of_bytes(bytes: Vec<u8>, reference: &Reference) -> io::Result<Self> {
        let length = bytes.len() as u64;
        Self::parse(Cursor::new(bytes), length, reference)
    }
}

impl<R: Read + Seek> ResultFile<R> {
    fn parse(mut file: R, length: u64, reference: &Reference) -> io::Result<Self> {
        let mut line = Vec::new();
        BufReader::new(&mut file).take(MAX_LINE_LEN).read_until(b'\n', &mut line)?;
        let stored: StoredResult =
            serde_json::from_slice(&line).map_err(|_| Error::other("its first line does not describe a result"))?;
        if stored.reference != reference.as_str() {
            return Err(Error::other("it describes another result"));
        }
        let start = line.len() as u64;
        if start.checked_add(stored.bytes) != Some(length) {
            let there = length.saturating_sub(start);
            return Err(Error::other(format!("it has {there} of {} bytes of content", stored.bytes)));
        }
        Ok(Self { file, stored, start })
    }

    /// Description of the result, from the first line.
    pub(super) fn stored(&self) -> &StoredResult {
        &self.stored
    }

    /// Reads a range of the content's bytes, extended to character boundaries. The whole content is compared with its
    /// digest.
    pub(super) fn excerpt(mut self, range: impl RangeBounds<u64>) -> io::Result<Excerpt> {
        let total = self.stored.bytes;
        let (from, to) = limits(range, total);
        // A margin of one character on either side shows every boundary.
        let low = from.saturating_sub(MAX_CHAR_BYTES);
        let high = to.saturating_add(MAX_CHAR_BYTES).min(total);
        let mut content = self.read(low, high)?;
        let window = |at: u64| (at - low) as usize;
        let start = boundary(&content, window(from));
        let end = match boundary(&content, window(to)) {
            end if end > start || start == content.len() => end,
            _ => content.len().min(start + width(content[start])),
        };
        content.truncate(end);
        content.drain(..start);
        let (offset, end) = (low + start as u64, low + end as u64);
        if content.len() as u64 == total && sha256(&content) != self.stored.sha256 {
            return Err(Error::other("its content was changed: its SHA-256 is not the one recorded"));
        }
        Ok(Excerpt { stored: self.stored, offset, content, next: (end < total).then_some(end) })
    }

    fn read(&mut self, low: u64, high: u64) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.file.seek(SeekFrom::Start(self.start + low))?;
        let read = Read::by_ref(&mut self.file).take(high - low).read_to_end(&mut content)?;
        if read as u64 == high - low { Ok(content) } else { Err(Error::other("it was truncated while it was read")) }
    }
}

/// Resolves a range to its first byte and the byte after its last, both within `total`.
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

/// Finds the character boundary at an offset or before it. In bytes that are not UTF-8, every offset is a boundary.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let continues = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
    if bytes.get(at).is_none_or(|byte| !continues(byte)) {
        return at;
    }
    let lead = bytes[..at].iter().rposition(|byte| !continues(byte));
    lead.filter(|lead| lead + width(bytes[*lead]) > at).unwrap_or(at)
}

/// Length of the character that starts with this byte.
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
    fn a_boundary_is_never_within_a_character() {
        let text = "aä日💻z";
        for at in 0..=text.len() {
            assert_eq!(boundary(text.as_bytes(), at), text.floor_char_boundary(at), "{at}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_have_boundaries_everywhere() {
        for bytes in [&[0x80; 9][..], b"a\x80\x80\x80\x80", b"\xff\x80\x80\xc0\x80"] {
            for at in 0..=bytes.len() {
                assert_eq!(boundary(bytes, at), at, "{bytes:?}");
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
