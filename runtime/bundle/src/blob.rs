//! Reading of one blob, with its digest checked before its last byte is handed out.

use std::io::{self, Read, Seek, SeekFrom};

use crate::digest::{Digest, Hasher};
use crate::error::{Error, Result};
use crate::media_type::MediaType;
use crate::program;
use crate::tar::Extent;

/// Reader of a blob.
///
/// The bytes up to the last ones are handed out before the digest is known. The read that would return the last byte returns
/// an error of kind [`io::ErrorKind::InvalidData`] instead, if the content does not match the digest. So a caller that received
/// all [`size`](Self::size) bytes, or the end of the stream, received the right content. After an error, every read fails.
///
/// The error is an [`enum@Error`]; [`Error::from`] recovers it.
#[derive(Debug)]
pub struct BlobReader<'a, R> {
    reader: &'a mut R,
    digest: Digest,
    size: u64,
    left: u64,
    hasher: Hasher,
    failed: bool,
}

impl<'a, R: Read + Seek> BlobReader<'a, R> {
    /// Begins to read a blob. An empty blob is checked at once.
    pub(crate) fn new(reader: &'a mut R, digest: Digest, extent: Extent) -> Result<Self> {
        reader.seek(SeekFrom::Start(extent.offset))?;
        let size = extent.size;
        let blob = Self { reader, digest, size, left: size, hasher: Hasher::default(), failed: false };
        if size == 0 {
            blob.check()?;
        }
        Ok(blob)
    }

    /// Returns the digest of the blob.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the size of the blob in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads the whole blob.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TooLarge`] if the blob has more than `max` bytes, and the errors of reading.
    pub fn into_vec(mut self, max: u64) -> Result<Vec<u8>> {
        let digest = self.digest;
        Error::check_size(|| format!("blob {digest}"), self.size, max)?;
        let mut bytes = with_room(self.size);
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Compares the digest of all bytes with the expected one.
    fn check(&self) -> Result<()> {
        let actual = self.hasher.clone().finish();
        if actual == self.digest { Ok(()) } else { Err(Error::DigestMismatch { expected: self.digest, actual }) }
    }

    /// Reads and checks the next bytes.
    fn next(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let max = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let buffer = &mut buffer[..max];
        let count = self.reader.read(buffer)?;
        if count == 0 {
            return Err(Error::BlobTruncated { digest: self.digest });
        }
        self.hasher.update(&buffer[..count]);
        self.left -= count as u64;
        if self.left == 0
            && let Err(error) = self.check()
        {
            buffer.fill(0);
            return Err(error);
        }
        Ok(count)
    }
}

impl<R: Read + Seek> Read for BlobReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.failed {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an earlier read of this blob failed"));
        }
        if self.left == 0 || buffer.is_empty() {
            return Ok(0);
        }
        match self.next(buffer) {
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            result => result.map_err(|error| {
                self.failed = true;
                error.into_io()
            }),
        }
    }
}

/// Reader for a bundle file: a [`BlobReader`] that also refuses native and precompiled code.
///
/// The first read fails if the file does not fit its media type. No byte of such a file is handed out.
#[derive(Debug)]
pub struct FileReader<'a, R> {
    blob: BlobReader<'a, R>,
    prefix: Vec<u8>,
    position: usize,
}

impl<'a, R: Read + Seek> FileReader<'a, R> {
    /// Reads and checks the first bytes of the file.
    pub(crate) fn new(mut blob: BlobReader<'a, R>, path: &str, media_type: &MediaType) -> Result<Self> {
        let mut prefix = Vec::with_capacity(program::PREFIX);
        blob.by_ref().take(program::PREFIX as u64).read_to_end(&mut prefix)?;
        program::check(media_type, &prefix).map_err(|fault| Error::Program { file: path.to_owned(), fault })?;
        Ok(Self { blob, prefix, position: 0 })
    }

    /// Returns the digest of the file.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.blob.digest
    }

    /// Returns the size of the file in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.blob.size
    }

    /// Reads the rest of the file.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TooLarge`] if the file has more than `max` bytes, and the errors of reading.
    pub fn into_vec(mut self, max: u64) -> Result<Vec<u8>> {
        let digest = self.blob.digest;
        Error::check_size(|| format!("blob {digest}"), self.blob.size, max)?;
        let mut bytes = with_room(self.blob.size);
        self.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Creates a buffer with room for this many bytes, or one that grows with the data if there is no room.
fn with_room(bytes: u64) -> Vec<u8> {
    let mut buffer = Vec::new();
    let _ = buffer.try_reserve_exact(usize::try_from(bytes).unwrap_or_default());
    buffer
}

impl<R: Read + Seek> Read for FileReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = &self.prefix[self.position..];
        if rest.is_empty() {
            return self.blob.read(buffer);
        }
        let count = rest.read(buffer)?;
        self.position += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn reader<'a>(file: &'a mut Cursor<Vec<u8>>, digest: Digest, size: u64) -> Result<BlobReader<'a, Cursor<Vec<u8>>>> {
        BlobReader::new(file, digest, Extent { offset: 1, size })
    }

    #[test]
    fn the_right_content_is_handed_out() {
        let mut file = Cursor::new(b"-content-".to_vec());
        let blob = reader(&mut file, Digest::of(b"content"), 7).unwrap();
        assert_eq!(blob.into_vec(7).unwrap(), b"content");
    }

    #[test]
    fn the_last_byte_of_wrong_content_is_never_handed_out() {
        for step in 1..10 {
            let mut file = Cursor::new(b"-content-".to_vec());
            let mut blob = reader(&mut file, Digest::of(b"another"), 7).unwrap();
            let mut received = 0;
            let mut buffer = vec![0; step];
            let error = loop {
                match blob.read(&mut buffer) {
                    Ok(0) => panic!("the wrong content was handed out"),
                    Ok(count) => received += count,
                    Err(error) => break error,
                }
            };
            assert!(received < 7);
            assert!(matches!(Error::from(error), Error::DigestMismatch { .. }));
            assert!(blob.read(&mut buffer).is_err(), "a failed reader stays failed");
        }
    }

    #[test]
    fn an_empty_blob_with_another_digest_is_refused_at_once() {
        let mut file = Cursor::new(b"-".to_vec());
        assert!(matches!(reader(&mut file, Digest::of(b"x"), 0), Err(Error::DigestMismatch { .. })));
        assert!(reader(&mut file, Digest::of(b""), 0).unwrap().into_vec(0).unwrap().is_empty());
    }

    #[test]
    fn a_file_that_became_shorter_is_an_error() {
        let mut file = Cursor::new(b"-cont".to_vec());
        let error = reader(&mut file, Digest::of(b"content"), 7).unwrap().into_vec(7).unwrap_err();
        assert!(matches!(error, Error::BlobTruncated { .. }));
    }

    #[test]
    fn a_blob_over_the_callers_bound_is_not_read() {
        let mut file = Cursor::new(b"-content-".to_vec());
        let error = reader(&mut file, Digest::of(b"content"), 7).unwrap().into_vec(6).unwrap_err();
        assert!(matches!(error, Error::TooLarge { size: 7, max: 6, .. }));
    }
}
