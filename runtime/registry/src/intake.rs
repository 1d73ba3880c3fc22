//! Destination of a blob: counts and hashes the bytes received, refuses more than the described size, and holds the lock on
//! a partial file.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::client::{OnProgress, Progress};
use crate::content::Descriptor;
use crate::digest::Hasher;
use crate::error::{Error, What};
use crate::files;

const WHAT: What = What::Blob;
/// Size of the parts in which an earlier partial file is hashed, in bytes.
const PART_BYTES: usize = 64 << 10;

/// Destination of one blob.
pub(crate) struct Intake<'a> {
    target: Target<'a>,
    blob: &'a Descriptor,
    hasher: Hasher,
    offset: u64,
    on_progress: Option<OnProgress>,
}

enum Target<'a> {
    Writer(&'a mut (dyn AsyncWrite + Unpin + Send)),
    /// Locked until it is dropped.
    File {
        file: tokio::fs::File,
        path: PathBuf,
    },
}

impl<'a> Intake<'a> {
    pub(crate) fn to_writer(
        writer: &'a mut (dyn AsyncWrite + Unpin + Send),
        blob: &'a Descriptor,
        on_progress: Option<OnProgress>,
    ) -> Self {
        let hasher = Hasher::new(blob.digest.algorithm());
        Self { target: Target::Writer(writer), blob, hasher, offset: 0, on_progress }
    }

    /// Opens a partial file, locks it, and hashes its content. A file larger than the blob is emptied.
    pub(crate) async fn to_file(
        path: &Path,
        blob: &'a Descriptor,
        on_progress: Option<OnProgress>,
    ) -> Result<Self, Error> {
        let owned = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open_locked(&owned)).await;
        let failed = |action, source| Error::File { action, path: path.to_owned(), source };
        let file = opened.map_err(|error| failed("open", std::io::Error::other(error)))??;
        let file = tokio::fs::File::from_std(file);
        let hasher = Hasher::new(blob.digest.algorithm());
        let target = Target::File { file, path: path.to_owned() };
        let mut intake = Self { target, blob, hasher, offset: 0, on_progress };
        intake.read_earlier().await?;
        Ok(intake)
    }

    async fn read_earlier(&mut self) -> Result<(), Error> {
        let Target::File { file, path } = &mut self.target else { return Ok(()) };
        let mut part = vec![0; PART_BYTES];
        loop {
            let read = file.read(&mut part).await;
            let count = read.map_err(|source| Error::File { action: "read", path: path.clone(), source })?;
            if count == 0 {
                return Ok(());
            }
            self.offset += count as u64;
            if self.offset > self.blob.size {
                return self.restart().await.map(|_| ());
            }
            self.hasher.update(&part[..count]);
        }
    }

    /// Returns the number of bytes that arrived.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes bytes, and refuses those beyond the size of the blob.
    pub(crate) async fn take(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let found = self.offset + bytes.len() as u64;
        if found > self.blob.size {
            return Err(Error::Size { what: WHAT, expected: self.blob.size, found });
        }
        match &mut self.target {
            Target::Writer(writer) => writer.write_all(bytes).await.map_err(Error::Writer)?,
            Target::File { file, path } => {
                let written = file.write_all(bytes).await;
                written.map_err(|source| Error::File { action: "write", path: path.clone(), source })?;
            }
        }
        self.hasher.update(bytes);
        self.offset = found;
        if let Some(on_progress) = &self.on_progress {
            on_progress(Progress { done: self.offset, total: self.blob.size });
        }
        Ok(())
    }

    /// Discards all bytes received. Returns `false` if the destination is a writer, which cannot be emptied.
    pub(crate) async fn restart(&mut self) -> Result<bool, Error> {
        let Target::File { file, path } = &mut self.target else { return Ok(false) };
        let emptied = async {
            // A write that is still under way would otherwise follow the cut.
            file.flush().await?;
            file.set_len(0).await?;
            file.rewind().await
        };
        emptied.await.map_err(|source| Error::File { action: "empty", path: path.clone(), source })?;
        self.offset = 0;
        self.hasher = Hasher::new(self.blob.digest.algorithm());
        Ok(true)
    }

    /// Compares size and digest. A file is written to the disk, or emptied if it is not the blob.
    pub(crate) async fn complete(&mut self) -> Result<(), Error> {
        let found = self.hasher.clone().finish();
        if self.offset != self.blob.size || found != self.blob.digest {
            self.restart().await?;
            return Err(Error::DigestMismatch { what: WHAT, expected: self.blob.digest.clone(), found });
        }
        match &mut self.target {
            Target::Writer(writer) => writer.flush().await.map_err(Error::Writer),
            Target::File { file, path } => {
                let synced = async {
                    file.flush().await?;
                    file.sync_all().await
                };
                synced.await.map_err(|source| Error::File { action: "write", path: path.clone(), source })
            }
        }
    }
}

fn open_locked(path: &Path) -> Result<File, Error> {
    let failed = |action, source| Error::File { action, path: path.to_owned(), source };
    let file = files::open_private(path).map_err(|source| failed("open", source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::PartialInUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed("lock", source)),
    }
}
