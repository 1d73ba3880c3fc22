//! Faults in tar archives, each with its entry's position.

use super::{MAX_BLOB_SIZE, MAX_ENTRIES, MAX_TRAILING_ZEROS};

/// Fault of a tar archive.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tar entry at byte {offset} is refused: {fault}")]
#[non_exhaustive]
pub struct TarError {
    /// Offset of the entry's header in bytes, or of the block where a header was expected.
    pub offset: u64,
    /// Reason of the refusal.
    pub fault: TarFault,
}

/// Reason why a tar archive is refused. Names are escaped and have at most 100 bytes before escaping.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TarFault {
    /// The archive ends inside a header or before the two zero blocks that end an archive.
    #[error("the archive is truncated before its end marker")]
    Truncated,
    /// The checksum of the header is wrong or is no number.
    #[error("the checksum of the header does not match")]
    Checksum,
    /// The header is in no known format.
    #[error("the header is neither POSIX nor GNU tar")]
    Format,
    /// The entry is no regular file and no directory.
    #[error("`{name}` is {kind}; only regular files and directories are allowed")]
    EntryType {
        /// Name of the entry.
        name: String,
        /// Kind of the entry, with an article.
        kind: &'static str,
    },
    /// The name is none of an OCI image layout.
    #[error(
        "unexpected name `{name}`; an OCI image layout has only `oci-layout`, `index.json`, `manifest.json` and `blobs/sha256/DIGEST`"
    )]
    Name {
        /// Name of the entry.
        name: String,
    },
    /// Bytes follow the end of the name, or a field is used that must be empty.
    #[error("`{name}` uses the header field `{field}`, which must be empty")]
    Field {
        /// Name of the entry.
        name: String,
        /// Header field.
        field: &'static str,
    },
    /// The size is no octal number.
    #[error("the size of `{name}` is not an octal number")]
    SizeSyntax {
        /// Name of the entry.
        name: String,
    },
    /// The size is a base-256 number, an extension for files of 8 GiB and more.
    #[error("the size of `{name}` is a base-256 number")]
    SizeBase256 {
        /// Name of the entry.
        name: String,
    },
    /// The entry is larger than allowed for its name.
    #[error("`{name}` has {size} bytes; at most {max} are allowed")]
    TooLarge {
        /// Name of the entry.
        name: String,
        /// Size in bytes.
        size: u64,
        /// Maximum size in bytes, [`MAX_BLOB_SIZE`] for blobs.
        max: u64,
    },
    /// A directory has content.
    #[error("directory `{name}` has {size} bytes of content")]
    DirectoryContent {
        /// Name of the entry.
        name: String,
        /// Size in bytes.
        size: u64,
    },
    /// An entry's data extends past the end of the archive.
    #[error("`{name}` has {size} bytes, but the archive ends before them")]
    PastEnd {
        /// Name of the entry.
        name: String,
        /// Size in bytes.
        size: u64,
    },
    /// The bytes between the data of an entry and the next header are not zero.
    #[error("the padding after `{name}` is not zero")]
    Padding {
        /// Name of the entry.
        name: String,
    },
    /// Two entries have the same name.
    #[error("`{name}` occurs twice")]
    Duplicate {
        /// Name of the entry.
        name: String,
    },
    /// The archive has too many entries.
    #[error("the archive has more than {MAX_ENTRIES} entries")]
    TooManyEntries,
    /// A block of zeros is followed by data.
    #[error("data follows the end marker of the archive")]
    TrailingData,
    /// More zeros follow the end marker than any tar writer pads with.
    #[error("more than {MAX_TRAILING_ZEROS} bytes of padding follow the end marker")]
    TrailingZeros,
}

const _: () = assert!(MAX_BLOB_SIZE < 1 << 33, "an octal size field holds less than 8 GiB");
