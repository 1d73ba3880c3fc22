//! An opened OCI image layout in a tar file: its manifests and blobs, whatever artifacts they belong to.

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

use toolcrib_foundation::text::{listed, shown};

use crate::blob::BlobReader;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::media_type::{OCI_INDEX, OCI_MANIFEST};
use crate::oci::{Descriptor, Index, Layout, Manifest, REF_NAME};
use crate::tar::{self, Contents};

/// Maximum size of `oci-layout` in bytes.
pub const MAX_LAYOUT_SIZE: u64 = 4 << 10;
/// Maximum size of `index.json` or a nested index in bytes.
pub const MAX_INDEX_SIZE: u64 = 1 << 20;
/// Maximum size of a manifest or a config in bytes, as registries accept it.
pub const MAX_DOCUMENT_SIZE: u64 = 4 << 20;
/// Maximum number of manifests per archive, including nested indexes and their manifests.
pub const MAX_MANIFESTS: usize = 64;
/// Maximum length of a ref name in bytes.
pub const MAX_REFERENCE_LENGTH: usize = 255;

/// OCI image layout in a tar file, which is never unpacked.
///
/// Only `index.json` and `oci-layout` are trusted as they are in the file. Everything else is named by its digest, and the
/// digest is checked on every read: a file that another process changes produces errors, never other content.
#[derive(Debug)]
pub struct Archive<R> {
    reader: R,
    contents: Contents,
    manifests: Vec<ManifestEntry>,
}

/// Manifest of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManifestEntry {
    /// Descriptor of the manifest in the index.
    pub descriptor: Descriptor,
    /// Ref name in the index. A manifest in a nested index without one has the ref name of the nested index.
    pub ref_name: Option<String>,
    /// Type of the artifact: `artifactType` of the manifest, else the media type of its config.
    pub artifact_type: String,
    /// Manifest that this one is attached to, such as the signed bundle of a signature.
    pub subject: Option<Digest>,
}

/// Selection of one manifest in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Selector {
    /// The only manifest that is not attached to another one.
    #[default]
    Only,
    /// The manifest with this ref name in the index.
    RefName(String),
    /// The manifest with this digest.
    Digest(Digest),
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Only => f.write_str("no selection"),
            Self::RefName(name) => write!(f, "ref name {name:?}"),
            Self::Digest(digest) => write!(f, "digest {digest}"),
        }
    }
}

impl Archive<File> {
    /// Opens an archive. The handle is judged, not its path.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotAFile`] for anything but a regular file, and the errors of [`Archive::from_reader`].
    pub fn open(file: File) -> Result<Self> {
        if !file.metadata()?.is_file() {
            return Err(Error::NotAFile);
        }
        Self::from_reader(file)
    }
}

impl<'a> Archive<Cursor<&'a [u8]>> {
    /// Opens an archive in memory.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Archive::from_reader`].
    pub fn open_bytes(bytes: &'a [u8]) -> Result<Self> {
        Self::from_reader(Cursor::new(bytes))
    }
}

impl<R: Read + Seek> Archive<R> {
    /// Opens an archive: finds its entries, and reads its index and manifests.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Tar`] for an archive that is no plain OCI image layout, [`Error::Json`] and [`Error::Document`] for
    /// invalid documents, and an error for every bound that is exceeded and every manifest that is missing or does not match
    /// its digest.
    pub fn from_reader(mut reader: R) -> Result<Self> {
        let contents = tar::scan(&mut reader)?;
        let mut archive = Self { reader, contents, manifests: Vec::new() };
        let layout = archive.contents.layout.ok_or(Error::Missing { name: "oci-layout" })?;
        Layout::check(&archive.document(layout)?)?;
        let index = archive.contents.index.ok_or(Error::Missing { name: "index.json" })?;
        let index = Index::parse("index.json", &archive.document(index)?)?;
        archive.add_index(index, None, &mut { MAX_MANIFESTS })?;
        Ok(archive)
    }

    /// Returns the manifests in the order of the index.
    #[must_use]
    pub fn manifests(&self) -> &[ManifestEntry] {
        &self.manifests
    }

    /// Returns the manifests that are attached to another one, such as its signatures.
    pub fn referrers(&self, subject: Digest) -> impl Iterator<Item = &ManifestEntry> {
        self.manifests.iter().filter(move |manifest| manifest.subject == Some(subject))
    }

    /// Returns the digests and sizes in bytes of all blobs, sorted by digest. Their content is not checked.
    pub fn blobs(&self) -> impl Iterator<Item = (Digest, u64)> {
        self.contents.blobs.iter().map(|(digest, extent)| (*digest, extent.size))
    }

    /// Selects a manifest.
    ///
    /// # Errors
    ///
    /// Returns [`Error::NotFound`] or [`Error::Ambiguous`], unless exactly one manifest matches. Entries of the index with the
    /// same digest count as one.
    pub fn select(&self, selector: &Selector) -> Result<&ManifestEntry> {
        let matches = |manifest: &&ManifestEntry| match selector {
            Selector::Only => manifest.subject.is_none(),
            Selector::RefName(name) => manifest.ref_name.as_ref() == Some(name),
            Selector::Digest(digest) => manifest.descriptor.digest == *digest,
        };
        let mut found = self.manifests.iter().filter(matches);
        let Some(first) = found.next() else {
            return Err(Error::NotFound { selection: selector.to_string(), available: list(self.manifests.iter()) });
        };
        if found.any(|other| other.descriptor.digest != first.descriptor.digest) {
            let available = list(self.manifests.iter().filter(matches));
            return Err(Error::Ambiguous { selection: selector.to_string(), available });
        }
        Ok(first)
    }

    /// Begins to read a blob. See [`BlobReader`] for the moment at which its digest is checked.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BlobMissing`] if the archive has no such blob.
    pub fn read_blob(&mut self, digest: Digest) -> Result<BlobReader<'_, R>> {
        let extent = *self.contents.blobs.get(&digest).ok_or(Error::BlobMissing { digest })?;
        BlobReader::new(&mut self.reader, digest, extent)
    }

    /// Returns the offset and the size in bytes of a blob in the archive, to send it from there. Its content is not checked.
    ///
    /// # Errors
    ///
    /// Returns [`Error::BlobMissing`] if the archive has no such blob.
    pub fn blob_range(&self, digest: Digest) -> Result<(u64, u64)> {
        let extent = self.contents.blobs.get(&digest).ok_or(Error::BlobMissing { digest })?;
        Ok((extent.offset, extent.size))
    }

    /// Reads a whole blob, which `document` describes in errors.
    pub(crate) fn read_document(&mut self, document: &str, descriptor: &Descriptor, max: u64) -> Result<Vec<u8>> {
        self.check_present(descriptor)?;
        Error::check_size(|| document.to_owned(), descriptor.size, max)?;
        self.read_blob(descriptor.digest)?.into_vec(max)
    }

    /// Checks that the archive has the blob of a descriptor in the size that the descriptor states.
    pub(crate) fn check_present(&self, descriptor: &Descriptor) -> Result<()> {
        let digest = descriptor.digest;
        let actual = self.contents.blobs.get(&digest).ok_or(Error::BlobMissing { digest })?.size;
        let stated = descriptor.size;
        if stated == actual { Ok(()) } else { Err(Error::BlobSize { digest, stated, actual }) }
    }

    /// Reads `index.json` or `oci-layout`, which have no digest. Their sizes are bounded by the scan.
    fn document(&mut self, extent: tar::Extent) -> Result<Vec<u8>> {
        self.reader.seek(SeekFrom::Start(extent.offset))?;
        let mut bytes = Vec::new();
        (&mut self.reader).take(extent.size).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != extent.size {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(bytes)
    }

    /// Adds the manifests of an index. `left` bounds the descriptors of all indexes, so that an archive that repeats a
    /// nested index does not cost more reads.
    fn add_index(&mut self, index: Index, nested_in: Option<&Descriptor>, left: &mut usize) -> Result<()> {
        for descriptor in index.manifests {
            *left = left.checked_sub(1).ok_or(Error::TooManyManifests)?;
            let digest = descriptor.digest;
            match descriptor.media_type.as_str() {
                OCI_INDEX if nested_in.is_some() => return Err(Error::NestedIndex { digest }),
                OCI_INDEX => {
                    let document = format!("index {digest}");
                    let bytes = self.read_document(&document, &descriptor, MAX_INDEX_SIZE)?;
                    self.add_index(Index::parse(&document, &bytes)?, Some(&descriptor), left)?;
                }
                _ => self.add_manifest(descriptor, nested_in)?,
            }
        }
        Ok(())
    }

    /// Adds one manifest.
    fn add_manifest(&mut self, descriptor: Descriptor, nested_in: Option<&Descriptor>) -> Result<()> {
        if descriptor.media_type.as_str() != OCI_MANIFEST {
            let reason = format!("media type `{}` is neither an OCI manifest nor an OCI index", descriptor.media_type);
            return Err(Error::document(format!("manifest {}", descriptor.digest), reason));
        }
        let manifest = self.read_manifest(&descriptor)?.0;
        let own = descriptor.annotations.get(REF_NAME);
        let ref_name = own.or_else(|| nested_in?.annotations.get(REF_NAME)).cloned();
        if let Some(name) = &ref_name {
            check_reference(name)?;
        }
        let artifact_type = manifest.artifact_type.unwrap_or_else(|| manifest.config.media_type.as_str().to_owned());
        let subject = manifest.subject.map(|subject| subject.digest);
        self.manifests.push(ManifestEntry { descriptor, ref_name, artifact_type, subject });
        Ok(())
    }

    /// Reads a manifest and its bytes.
    pub(crate) fn read_manifest(&mut self, descriptor: &Descriptor) -> Result<(Manifest, Vec<u8>)> {
        let document = format!("manifest {}", descriptor.digest);
        let bytes = self.read_document(&document, descriptor, MAX_DOCUMENT_SIZE)?;
        Ok((Manifest::parse(&document, &bytes)?, bytes))
    }
}

/// Lists the first manifests for an error message.
fn list<'a>(manifests: impl Iterator<Item = &'a ManifestEntry>) -> String {
    let all = manifests.map(|manifest| match &manifest.ref_name {
        Some(name) => format!("`{name}` ({})", manifest.descriptor.digest),
        None => manifest.descriptor.digest.to_string(),
    });
    match all.collect::<Vec<_>>() {
        none if none.is_empty() => "none".to_owned(),
        all => listed(all.into_iter()),
    }
}

/// Checks the syntax of a ref name, as the OCI image specification defines it.
pub(crate) fn check_reference(name: &str) -> Result<()> {
    let separators = |c: char| "-._:@+/".contains(c);
    let is_run = |run: &str| matches!(run, "" | "--") || run.len() == 1;
    let mut runs = name.split(|c: char| c.is_ascii_alphanumeric());
    let valid = name.len() <= MAX_REFERENCE_LENGTH
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && runs.all(|run| run.chars().all(separators) && is_run(run));
    if valid { Ok(()) } else { Err(Error::Reference { name: shown(name) }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ref_names_have_the_syntax_of_the_specification() {
        let longest = "a".repeat(MAX_REFERENCE_LENGTH);
        for name in ["latest", "1.2.0", "registry.example.com:5000/acme/tools:1.2.0", "v1_2--rc.1+b", "a@b", &longest] {
            assert!(check_reference(name).is_ok(), "{name}");
        }
        let too_long = "a".repeat(MAX_REFERENCE_LENGTH + 1);
        for name in ["", "-a", "a-", "a..b", "a b", "a\u{202e}b", "ü", "a---b", "a/../b", &too_long] {
            assert!(check_reference(name).is_err(), "{name}");
        }
    }
}
