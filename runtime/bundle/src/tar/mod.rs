//! Tar archives of OCI image layouts: the few names they have, one bounded pass over them, and their writing.
//!
//! Only the ustar subset that layouts need is known. Everything else that tar can express, such as links, devices, sparse
//! files and extended headers, is refused and never interpreted.

mod error;
mod header;
mod scan;
mod write;

pub use error::{TarError, TarFault};
pub(crate) use header::BLOCK;
pub use scan::{ARCHIVE_PREFIX, MAX_ARCHIVE_SIZE, MAX_BLOB_SIZE, MAX_ENTRIES, MAX_TRAILING_ZEROS, looks_like_archive};
pub(crate) use scan::{Contents, Extent, scan};
pub(crate) use write::Writer;
