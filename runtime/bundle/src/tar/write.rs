//! Deterministic writing of a layout: entries in name order, with fixed metadata.

use std::io::{self, Read, Write};

use super::header::{BLOCK, Header, Name};
use crate::digest::{Digest, Hasher};
use crate::error::Error;

/// Writer of one archive. The caller adds the blobs in order of their digests.
pub(crate) struct Writer<W> {
    inner: W,
}

impl<W: Write> Writer<W> {
    /// Begins an archive with its two directories.
    pub(crate) fn new(inner: W) -> io::Result<Self> {
        let mut writer = Self { inner };
        for name in [Name::Blobs, Name::Sha256] {
            writer.inner.write_all(&Header { name, size: 0 }.to_block())?;
        }
        Ok(writer)
    }

    /// Writes a blob.
    ///
    /// # Errors
    ///
    /// Returns [`Error::SourceChanged`] if the source no longer has `size` bytes with this digest.
    pub(crate) fn blob(&mut self, digest: Digest, size: u64, source: impl Read) -> Result<(), Error> {
        self.inner.write_all(&Header { name: Name::Blob(digest), size }.to_block())?;
        let mut source = source.take(size + 1);
        let mut hasher = Hasher::default();
        let mut buffer = vec![0; 64 << 10];
        let mut left = size;
        loop {
            let count = match source.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            left = left.checked_sub(count as u64).ok_or(Error::SourceChanged { digest })?;
            hasher.update(&buffer[..count]);
            self.inner.write_all(&buffer[..count])?;
        }
        if left != 0 || hasher.finish() != digest {
            return Err(Error::SourceChanged { digest });
        }
        self.pad(size)
    }

    /// Writes `index.json` and `oci-layout`, and ends the archive.
    pub(crate) fn finish(mut self, index: &[u8], layout: &[u8]) -> Result<W, Error> {
        for (name, bytes) in [(Name::Index, index), (Name::Layout, layout)] {
            let size = bytes.len() as u64;
            self.inner.write_all(&Header { name, size }.to_block())?;
            self.inner.write_all(bytes)?;
            self.pad(size)?;
        }
        self.inner.write_all(&[0; 2 * BLOCK])?;
        self.inner.flush()?;
        Ok(self.inner)
    }

    /// Pads an entry's data to a whole number of blocks.
    fn pad(&mut self, size: u64) -> Result<(), Error> {
        let padding = (size.next_multiple_of(BLOCK as u64) - size) as usize;
        Ok(self.inner.write_all(&[0; BLOCK][..padding])?)
    }
}
