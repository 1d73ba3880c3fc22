//! Content of a blob to push: bytes in memory, a file or part of a file, checked against its descriptor before anything
//! is sent.

use std::io::SeekFrom;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures::{TryStreamExt as _, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use reqwest::Body;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use crate::client::{OnProgress, Progress};
use crate::content::Descriptor;
use crate::digest::{Digest, Hasher};
use crate::error::{Error, What};
use crate::exchange::Payload;
use crate::files;

/// Size of the parts in which content is sent, in bytes.
const PART_BYTES: usize = 64 << 10;

/// Content of a blob.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BlobSource {
    /// Bytes in memory.
    Bytes(Bytes),
    /// Regular file. It must not change during the upload.
    File(PathBuf),
    /// Part of a regular file, such as an archive. It must not change during the upload.
    FilePart {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the first byte.
        offset: u64,
        /// Size of the part in bytes.
        size: u64,
    },
}

impl BlobSource {
    /// Compares size and digest with the descriptor.
    pub(crate) async fn check(&self, blob: &Descriptor) -> Result<(), Error> {
        let (found, size) = match self {
            Self::Bytes(bytes) => (Digest::compute(blob.digest.algorithm(), bytes), bytes.len() as u64),
            Self::File(path) | Self::FilePart { path, .. } => {
                let failed = |source| Error::File { action: "read", path: path.clone(), source };
                let (offset, max) = self.extent();
                let mut file = tokio::fs::File::from_std(self.open()?);
                file.seek(SeekFrom::Start(offset)).await.map_err(failed)?;
                let mut file = file.take(max);
                let mut hasher = Hasher::new(blob.digest.algorithm());
                let mut part = vec![0; PART_BYTES];
                let mut size = 0;
                loop {
                    let count = file.read(&mut part).await.map_err(failed)?;
                    if count == 0 || size > blob.size {
                        break (hasher.finish(), size);
                    }
                    size += count as u64;
                    hasher.update(&part[..count]);
                }
            }
        };
        if size != blob.size {
            return Err(Error::Size { what: What::Upload, expected: blob.size, found: size });
        }
        if found != blob.digest {
            return Err(Error::DigestMismatch { what: What::Upload, expected: blob.digest.clone(), found });
        }
        Ok(())
    }

    /// Returns the offset of the content in its file, and the most bytes that it has.
    fn extent(&self) -> (u64, u64) {
        match self {
            Self::Bytes(_) | Self::File(_) => (0, u64::MAX),
            Self::FilePart { offset, size, .. } => (*offset, *size),
        }
    }

    fn open(&self) -> Result<std::fs::File, Error> {
        match self {
            Self::Bytes(_) => Err(Error::malformed(What::Upload, "bytes in memory are no file")),
            Self::File(path) | Self::FilePart { path, .. } => {
                files::open_regular(path).map_err(|source| Error::File { action: "open", path: path.clone(), source })
            }
        }
    }
}

/// Range of a blob, as a request body.
pub(crate) struct Part<'a> {
    pub(crate) source: &'a BlobSource,
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Size of the whole blob, for progress.
    pub(crate) total: u64,
    pub(crate) on_progress: Option<&'a OnProgress>,
}

/// State of a body on its way.
struct Sending {
    content: Content,
    /// Offset of the blob in its file.
    offset: u64,
    start: u64,
    left: u64,
    done: u64,
    total: u64,
    sent: Arc<AtomicU64>,
    on_progress: Option<OnProgress>,
}

enum Content {
    Bytes(Bytes),
    File(tokio::fs::File),
}

impl Payload for Part<'_> {
    fn length(&self) -> u64 {
        self.length
    }

    fn body(&self, sent: Arc<AtomicU64>) -> Result<Body, Error> {
        let content = match self.source {
            // The range was checked against the size of the blob, which fits into memory.
            BlobSource::Bytes(bytes) => {
                Content::Bytes(bytes.slice(self.start as usize..(self.start + self.length) as usize))
            }
            BlobSource::File(_) | BlobSource::FilePart { .. } => {
                Content::File(tokio::fs::File::from_std(self.source.open()?))
            }
        };
        let on_progress = self.on_progress.cloned();
        let (start, left, total) = (self.start, self.length, self.total);
        let offset = self.source.extent().0;
        let sending = Sending { content, offset, start, left, done: 0, total, sent, on_progress };
        Ok(Body::wrap(StreamBody::new(stream::try_unfold(sending, Sending::next).map_ok(Frame::data))))
    }
}

impl Sending {
    async fn next(mut self) -> std::io::Result<Option<(Bytes, Self)>> {
        if self.left == 0 {
            return Ok(None);
        }
        let size = self.left.min(PART_BYTES as u64) as usize;
        let bytes = match &mut self.content {
            Content::Bytes(bytes) => bytes.split_to(size),
            Content::File(file) => {
                if self.done == 0 {
                    file.seek(SeekFrom::Start(self.offset + self.start)).await?;
                }
                let mut part = vec![0; size];
                // A file that became shorter ends the upload with an error.
                file.read_exact(&mut part).await?;
                part.into()
            }
        };
        self.left -= size as u64;
        self.done += size as u64;
        self.sent.fetch_add(size as u64, Ordering::Relaxed);
        if let Some(on_progress) = &self.on_progress {
            on_progress(Progress { done: self.start + self.done, total: self.total });
        }
        Ok(Some((bytes, self)))
    }
}
