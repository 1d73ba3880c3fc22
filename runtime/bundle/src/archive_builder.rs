//! Writing of archives from manifests and blobs, such as those that were pulled from a registry.

use std::collections::BTreeMap;
use std::io::{self, Cursor, Read, Seek, Write};

use crate::archive::{MAX_DOCUMENT_SIZE, MAX_INDEX_SIZE, MAX_MANIFESTS, check_reference};
use crate::digest::{Digest, HashWriter};
use crate::error::{Error, Result};
use crate::media_type::{MediaType, OCI_MANIFEST};
use crate::oci::{Descriptor, Index, Layout, Manifest, REF_NAME};
use crate::program;
use crate::tar::{self, BLOCK, MAX_ARCHIVE_SIZE, MAX_BLOB_SIZE, MAX_ENTRIES};

/// Content that can be read more than once: for its digest when it is added, and when the archive is written.
pub trait BlobSource {
    /// Returns a reader at the beginning of the content.
    ///
    /// # Errors
    ///
    /// Returns the error of opening or seeking.
    fn reader(&mut self) -> io::Result<Box<dyn Read + '_>>;
}

impl<S: Read + Seek> BlobSource for S {
    fn reader(&mut self) -> io::Result<Box<dyn Read + '_>> {
        self.rewind()?;
        Ok(Box::new(self))
    }
}

/// Size and source of a blob.
struct Blob<'a> {
    size: u64,
    source: Box<dyn BlobSource + 'a>,
}

/// Blob that was read once.
pub(crate) struct ExaminedBlob<'a> {
    /// Digest of the content.
    pub(crate) digest: Digest,
    /// First bytes of the content, as [`program::check`] needs them.
    pub(crate) prefix: Vec<u8>,
    blob: Blob<'a>,
}

impl<'a> ExaminedBlob<'a> {
    /// Reads a source of exactly `size` bytes.
    pub(crate) fn new(size: u64, mut source: impl BlobSource + 'a) -> Result<Self> {
        Error::check_size(|| "the content of a file".to_owned(), size, MAX_BLOB_SIZE)?;
        let mut prefix = Vec::new();
        let mut hash = HashWriter::new(io::sink());
        let mut reader = source.reader()?.take(size + 1);
        reader.by_ref().take(program::PREFIX as u64).read_to_end(&mut prefix)?;
        hash.write_all(&prefix)?;
        io::copy(&mut reader, &mut hash)?;
        drop(reader);
        let (digest, actual) = hash.finish();
        if actual != size {
            return Err(Error::SourceSize { path: "a blob".to_owned(), size });
        }
        Ok(Self { digest, prefix, blob: Blob { size, source: Box::new(source) } })
    }
}

/// Digest and size of a written archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenArchive {
    /// Digest of the tar file.
    pub digest: Digest,
    /// Size of the tar file in bytes.
    pub size: u64,
}

/// Builder of an OCI image layout in a tar file. Equal blobs and manifests produce equal bytes, in any order.
#[derive(Default)]
pub struct ArchiveBuilder<'a> {
    blobs: BTreeMap<Digest, Blob<'a>>,
    manifests: Vec<Descriptor>,
}

impl<'a> ArchiveBuilder<'a> {
    /// Returns a builder without blobs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a blob in memory and returns its digest. Equal blobs are stored once.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TooLarge`] for more than [`MAX_BLOB_SIZE`] bytes.
    pub fn add_bytes(&mut self, bytes: impl AsRef<[u8]> + 'a) -> Result<Digest> {
        let size = bytes.as_ref().len() as u64;
        self.add_source(size, Cursor::new(bytes))
    }

    /// Adds a blob of `size` bytes, reads it once, and returns its digest.
    ///
    /// # Errors
    ///
    /// Returns [`Error::TooLarge`] for more than [`MAX_BLOB_SIZE`] bytes, [`Error::SourceSize`] if the source has more or fewer
    /// bytes than `size`, and [`Error::Io`] if it cannot be read.
    pub fn add_source(&mut self, size: u64, source: impl BlobSource + 'a) -> Result<Digest> {
        let blob = ExaminedBlob::new(size, source)?;
        Ok(self.add_examined(blob))
    }

    /// Adds a blob that was read once.
    pub(crate) fn add_examined(&mut self, blob: ExaminedBlob<'a>) -> Digest {
        self.blobs.entry(blob.digest).or_insert(blob.blob);
        blob.digest
    }

    /// Adds a manifest to the index, under a ref name. Its blobs may be added later.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Json`] and [`Error::Document`] for invalid manifests, [`Error::Reference`] for an invalid ref name,
    /// [`Error::TooLarge`] and [`Error::TooManyManifests`] if a bound is exceeded.
    pub fn add_manifest(&mut self, bytes: Vec<u8>, ref_name: Option<&str>) -> Result<Descriptor> {
        let size = bytes.len() as u64;
        Error::check_size(|| "the manifest".to_owned(), size, MAX_DOCUMENT_SIZE)?;
        let manifest = Manifest::parse("the manifest", &bytes)?;
        if self.manifests.len() == MAX_MANIFESTS {
            return Err(Error::TooManyManifests);
        }
        let media_type = OCI_MANIFEST.parse::<MediaType>()?;
        let mut descriptor = Descriptor::new(media_type, self.add_bytes(bytes)?, size);
        descriptor.artifact_type = manifest.artifact_type;
        if let Some(name) = ref_name {
            check_reference(name)?;
            descriptor.annotations.insert(REF_NAME.to_owned(), name.to_owned());
        }
        self.manifests.push(descriptor.clone());
        Ok(descriptor)
    }

    /// Writes the archive.
    ///
    /// # Errors
    ///
    /// Returns [`Error::ArchiveSize`], [`Error::TooLarge`] or [`Error::TooManyEntries`] before the first byte if a bound is
    /// exceeded. Returns [`Error::SourceChanged`] or [`Error::Io`] while writing; the output is then incomplete.
    pub fn write_to(mut self, writer: impl Write) -> Result<WrittenArchive> {
        self.manifests.sort_by(|a, b| (a.digest, &a.annotations).cmp(&(b.digest, &b.annotations)));
        self.manifests.dedup();
        let index = Index::new(self.manifests).to_json()?;
        let layout = Layout::to_json()?;
        Error::check_size(|| "index.json".to_owned(), index.len() as u64, MAX_INDEX_SIZE)?;
        // Four entries are no blobs: two directories, `index.json` and `oci-layout`.
        if self.blobs.len() + 4 > MAX_ENTRIES {
            return Err(Error::TooManyEntries);
        }
        let entry = |size: u64| BLOCK as u64 + size.next_multiple_of(BLOCK as u64);
        let sizes = self.blobs.values().map(|blob| blob.size).chain([0, 0, index.len() as u64, layout.len() as u64]);
        let size = sizes.map(entry).sum::<u64>() + 2 * BLOCK as u64;
        if size > MAX_ARCHIVE_SIZE {
            return Err(Error::ArchiveSize { size });
        }
        let mut tar = tar::Writer::new(HashWriter::new(writer))?;
        for (digest, blob) in &mut self.blobs {
            tar.blob(*digest, blob.size, blob.source.reader()?)?;
        }
        let (digest, written) = tar.finish(&index, &layout)?.finish();
        debug_assert_eq!(size, written);
        Ok(WrittenArchive { digest, size: written })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_that_exceed_an_archive_together_are_refused_before_the_first_byte() {
        let mut builder = ArchiveBuilder::new();
        // The blobs alone have the size of an archive, so their headers exceed it. Their content is not read.
        for n in 0..(MAX_ARCHIVE_SIZE / MAX_BLOB_SIZE) as u8 {
            builder.blobs.insert(Digest::of(&[n]), Blob { size: MAX_BLOB_SIZE, source: Box::new(io::empty()) });
        }
        let mut output = Vec::new();
        assert!(matches!(builder.write_to(&mut output), Err(Error::ArchiveSize { .. })));
        assert!(output.is_empty());
    }
}
