//! One pass over an archive that finds where its entries are, without reading their data.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Seek, SeekFrom};

use super::error::{TarError, TarFault};
use super::header::{BLOCK, Header, Name};
use crate::digest::Digest;
use crate::error::Error;

/// Maximum size of an archive in bytes.
pub const MAX_ARCHIVE_SIZE: u64 = 2 << 30;
/// Maximum size of a blob in bytes.
pub const MAX_BLOB_SIZE: u64 = 512 << 20;
/// Maximum number of entries per archive, including directories.
pub const MAX_ENTRIES: usize = 4096;
/// Maximum number of zero bytes after an archive's end marker: tar writers pad to a record, by default 10 KiB.
pub const MAX_TRAILING_ZEROS: u64 = 1 << 20;

/// First bytes of compressed files, which are refused by name.
const COMPRESSED: [(&[u8], &str); 6] = [
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "zip"),
];

/// Offset of the magic in an archive's first header.
const MAGIC: usize = 257;
/// Number of leading file bytes that [`looks_like_archive`] needs.
pub const ARCHIVE_PREFIX: usize = MAGIC + 5;

/// Returns `true` if a file that begins with `prefix` is meant as an archive: a tar archive, or a compressed file, which is
/// refused by name when it is opened.
#[must_use]
pub fn looks_like_archive(prefix: &[u8]) -> bool {
    prefix.get(MAGIC..ARCHIVE_PREFIX) == Some(b"ustar") || COMPRESSED.iter().any(|(magic, _)| prefix.starts_with(magic))
}

/// Position of an entry's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Offset of the first byte.
    pub(crate) offset: u64,
    /// Size in bytes.
    pub(crate) size: u64,
}

/// Positions of an archive's entries. Nothing is known about their data.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// `oci-layout`.
    pub(crate) layout: Option<Extent>,
    /// `index.json`.
    pub(crate) index: Option<Extent>,
    /// Blobs by the digest in their names.
    pub(crate) blobs: BTreeMap<Digest, Extent>,
}

/// Finds the entries of an archive.
///
/// # Errors
///
/// Returns [`Error::Tar`] for the first entry that is not allowed, [`Error::Compressed`] and [`Error::ArchiveSize`] for files
/// that are refused as a whole, and [`Error::Io`] if reading fails.
pub(crate) fn scan<R: Read + Seek>(reader: &mut R) -> Result<Contents, Error> {
    let end = reader.seek(SeekFrom::End(0))?;
    if end > MAX_ARCHIVE_SIZE {
        return Err(Error::ArchiveSize { size: end });
    }
    reader.seek(SeekFrom::Start(0))?;
    let mut pass = Pass { reader, end, offset: 0, entry: 0 };
    let mut contents = Contents::default();
    let mut names = BTreeSet::new();
    loop {
        let block = pass.block()?;
        if is_zero(&block) {
            pass.finish()?;
            return Ok(contents);
        }
        let Header { name, size } = Header::parse(&block).map_err(|fault| pass.error(fault))?;
        let max = max_size(name);
        if size > max {
            return Err(pass.error(TarFault::TooLarge { name: name.to_string(), size, max }));
        }
        if !names.insert(name) {
            return Err(pass.error(TarFault::Duplicate { name: name.to_string() }));
        }
        if names.len() > MAX_ENTRIES {
            return Err(pass.error(TarFault::TooManyEntries));
        }
        let extent = Extent { offset: pass.offset, size };
        pass.skip(name, size)?;
        match name {
            Name::Layout => contents.layout = Some(extent),
            Name::Index => contents.index = Some(extent),
            Name::Blob(digest) => drop(contents.blobs.insert(digest, extent)),
            Name::Blobs | Name::Sha256 | Name::DockerManifest => {}
        }
    }
}

/// Returns the maximum size of an entry in bytes.
fn max_size(name: Name) -> u64 {
    match name {
        Name::Blob(_) => MAX_BLOB_SIZE,
        Name::Layout => crate::archive::MAX_LAYOUT_SIZE,
        Name::Index | Name::DockerManifest => crate::archive::MAX_INDEX_SIZE,
        Name::Blobs | Name::Sha256 => 0,
    }
}

/// Returns `true` if every byte is zero.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// State of the pass.
struct Pass<'a, R> {
    reader: &'a mut R,
    /// Size of the archive in bytes when the pass began. A file that grows meanwhile is read up to here.
    end: u64,
    /// Offset of the next byte.
    offset: u64,
    /// Offset of the current header, for errors.
    entry: u64,
}

impl<R: Read + Seek> Pass<'_, R> {
    /// Returns an error at the current header.
    fn error(&self, fault: TarFault) -> Error {
        TarError { offset: self.entry, fault }.into()
    }

    /// Reads the next `bytes.len()` bytes.
    fn read(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        let next = self.offset + bytes.len() as u64;
        if next > self.end {
            return Err(self.error(TarFault::Truncated));
        }
        match self.reader.read_exact(bytes) {
            Ok(()) => {
                self.offset = next;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(self.error(TarFault::Truncated)),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the next header. At the beginning of the archive, compressed input is refused by the name of its format, even if
    /// it is shorter than a block.
    fn block(&mut self) -> Result<[u8; BLOCK], Error> {
        self.entry = self.offset;
        let mut block = [0; BLOCK];
        let length = (self.end - self.offset).min(BLOCK as u64) as usize;
        self.read(&mut block[..length])?;
        if self.entry == 0
            && let Some((_, format)) = COMPRESSED.iter().find(|(magic, _)| block.starts_with(magic))
        {
            return Err(Error::Compressed { format });
        }
        if length < BLOCK { Err(self.error(TarFault::Truncated)) } else { Ok(block) }
    }

    /// Skips the data of an entry and reads its padding.
    fn skip(&mut self, name: Name, size: u64) -> Result<(), Error> {
        let data_end = self.offset + size;
        let padded_end = data_end.next_multiple_of(BLOCK as u64);
        if padded_end > self.end {
            return Err(self.error(TarFault::PastEnd { name: name.to_string(), size }));
        }
        self.reader.seek(SeekFrom::Start(data_end))?;
        self.offset = data_end;
        let mut padding = [0; BLOCK];
        let padding = &mut padding[..(padded_end - data_end) as usize];
        self.read(padding)?;
        if is_zero(padding) { Ok(()) } else { Err(self.error(TarFault::Padding { name: name.to_string() })) }
    }

    /// Reads the rest of the archive after the first zero block: a second one, and zeros up to the end.
    fn finish(&mut self) -> Result<(), Error> {
        let rest = self.end - self.offset;
        if rest < BLOCK as u64 {
            return Err(self.error(TarFault::Truncated));
        }
        let max = BLOCK as u64 + MAX_TRAILING_ZEROS;
        let mut left = rest.min(max);
        let mut chunk = [0; 8 * BLOCK];
        while left > 0 {
            let chunk = &mut chunk[..left.min(8 * BLOCK as u64) as usize];
            self.read(chunk)?;
            if !is_zero(chunk) {
                return Err(self.error(TarFault::TrailingData));
            }
            left -= chunk.len() as u64;
        }
        if rest > max { Err(self.error(TarFault::TrailingZeros)) } else { Ok(()) }
    }
}
