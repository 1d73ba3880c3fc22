//! Errors of reading and writing bundles.

use std::io;

use crate::archive::{MAX_MANIFESTS, MAX_REFERENCE_LENGTH};
use crate::bundle::MAX_LAYERS;
use crate::digest::Digest;
use crate::json::JsonError;
use crate::media_type::MediaTypeError;
use crate::path::{BundlePath, PathError};
use crate::tar::{MAX_ARCHIVE_SIZE, MAX_BLOB_SIZE, MAX_ENTRIES, TarError};
use crate::text::TextError;

/// Result with an [`enum@Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error of reading or writing a bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing failed.
    #[error("input or output failed: {0}")]
    Io(#[source] io::Error),
    /// The opened file is a directory, device, pipe or socket.
    #[error("the bundle is not a regular file")]
    NotAFile,
    /// The archive has too many bytes.
    #[error("the archive has {size} bytes; at most {MAX_ARCHIVE_SIZE} are allowed")]
    ArchiveSize {
        /// Size in bytes.
        size: u64,
    },
    /// The archive is compressed.
    #[error("the archive is compressed ({format}); decompress it first")]
    Compressed {
        /// Name of the compression format.
        format: &'static str,
    },
    /// The tar archive has an entry that is not allowed, or is damaged.
    #[error(transparent)]
    Tar(#[from] TarError),
    /// A file of the OCI image layout is missing from the archive.
    #[error("the archive has no `{name}`: it is not an OCI image layout")]
    Missing {
        /// Name of the file.
        name: &'static str,
    },
    /// A layout document is not JSON of the expected structure.
    #[error("{document} is invalid: {source}")]
    Json {
        /// The document, such as `index.json`.
        document: String,
        /// Reason of the refusal.
        source: JsonError,
    },
    /// A layout document violates a rule of the OCI image specification or of bundles.
    #[error("{document} is invalid: {reason}")]
    Document {
        /// The document, such as `index.json`.
        document: String,
        /// Rule that is violated.
        reason: String,
    },
    /// A blob is larger than allowed for its use.
    #[error("{document} has {size} bytes; at most {max} are allowed")]
    TooLarge {
        /// The document or file.
        document: String,
        /// Size in bytes.
        size: u64,
        /// Maximum size in bytes; [`MAX_BLOB_SIZE`] for files.
        max: u64,
    },
    /// A blob is named by a manifest or a caller, and is not in the archive.
    #[error("blob {digest} is not in the archive")]
    BlobMissing {
        /// Digest of the blob.
        digest: Digest,
    },
    /// A blob does not have the size that its descriptor states.
    #[error("blob {digest} has {actual} bytes in the archive, but {stated} in its descriptor")]
    BlobSize {
        /// Digest of the blob.
        digest: Digest,
        /// Size in the descriptor in bytes.
        stated: u64,
        /// Size in the archive in bytes.
        actual: u64,
    },
    /// The content of a blob does not match its digest: the archive is damaged, forged, or changed while it was read.
    #[error("the content of blob {expected} has digest {actual}")]
    DigestMismatch {
        /// Digest in the name of the blob.
        expected: Digest,
        /// Digest of the content.
        actual: Digest,
    },
    /// The archive became shorter while it was open.
    #[error("blob {digest} is truncated: the archive changed while it was open")]
    BlobTruncated {
        /// Digest of the blob.
        digest: Digest,
    },
    /// An index contains too many manifests.
    #[error("the index has more than {MAX_MANIFESTS} manifests")]
    TooManyManifests,
    /// A manifest contains too many layers, or a builder too many files.
    #[error("the bundle has more than {MAX_LAYERS} files")]
    TooManyLayers,
    /// An archive to write has too many blobs.
    #[error("the archive has more than {MAX_ENTRIES} entries")]
    TooManyEntries,
    /// Nested indexes are followed one level deep.
    #[error("index {digest} is nested more than one level deep")]
    NestedIndex {
        /// Digest of the index.
        digest: Digest,
    },
    /// No manifest matches the selection.
    #[error("the archive has no bundle for {selection}; it has {available}")]
    NotFound {
        /// Description of the selection.
        selection: String,
        /// Manifests that could have been selected.
        available: String,
    },
    /// Several manifests match the selection.
    #[error("{selection} matches several bundles: {available}")]
    Ambiguous {
        /// Description of the selection.
        selection: String,
        /// Manifests that match.
        available: String,
    },
    /// The selected manifest describes something that is no bundle and no WebAssembly artifact.
    #[error("manifest {digest} is not a tool bundle: {reason}")]
    NotABundle {
        /// Digest of the manifest.
        digest: Digest,
        /// Property that differs.
        reason: String,
    },
    /// The bundle has no file with this path.
    #[error("the bundle has no file {path:?}")]
    FileMissing {
        /// The first characters of the path.
        path: String,
    },
    /// The content of a file does not fit its media type: precompiled or native code, or WebAssembly under another type.
    #[error("{file} is refused: {fault}")]
    Program {
        /// Path of the file, or blob digest.
        file: String,
        /// Reason of the refusal.
        fault: crate::program::ProgramFault,
    },
    /// A path is not allowed in bundles.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Two paths cannot exist beside one another on every file system.
    #[error("paths `{path}` and `{other}` collide")]
    PathCollision {
        /// Path that was added second.
        path: BundlePath,
        /// Path that was added first.
        other: BundlePath,
    },
    /// A media type has a wrong syntax.
    #[error(transparent)]
    MediaType(#[from] MediaTypeError),
    /// A text of the metadata is not allowed.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A ref name has a wrong syntax.
    #[error(
        "{name:?} is not a ref name: expected letters and digits, separated by `-`, `.`, `_`, `:`, `@`, `/` or `+`, at most {MAX_REFERENCE_LENGTH} bytes"
    )]
    Reference {
        /// The first characters of the name.
        name: String,
    },
    /// A source of content does not have the stated size, or changed between its two readings.
    #[error("the source of {path} does not have the stated {size} bytes")]
    SourceSize {
        /// Path or use of the content.
        path: String,
        /// Stated size in bytes.
        size: u64,
    },
    /// A source of content changed between its two readings. The archive is incomplete.
    #[error("the source of blob {digest} changed while the archive was written")]
    SourceChanged {
        /// Digest that was computed by the first reading.
        digest: Digest,
    },
}

impl Error {
    /// Returns an error about the rules of a document.
    pub(crate) fn document(document: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Document { document: document.into(), reason: reason.into() }
    }

    /// Returns the error of a document's size, if it is larger than `max`.
    pub(crate) fn check_size(document: impl FnOnce() -> String, size: u64, max: u64) -> Result<()> {
        if size > max { Err(Self::TooLarge { document: document(), size, max }) } else { Ok(()) }
    }

    /// Wraps the error for an interface of [`std::io`]; [`From<io::Error>`] keeps it as it is.
    pub(crate) fn into_io(self) -> io::Error {
        match self {
            Self::Io(error) => error,
            other => io::Error::new(io::ErrorKind::InvalidData, other),
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        error.downcast::<Self>().unwrap_or_else(Self::Io)
    }
}

const _: () = assert!(MAX_BLOB_SIZE <= MAX_ARCHIVE_SIZE);
