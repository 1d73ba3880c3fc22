//! Fetching blobs: streamed, bounded, resumed after a failure, and never complete before the digest is right.

use std::io;
use std::path::Path;

use reqwest::Method;
use reqwest::header::{HeaderValue, RANGE};
use tokio::io::AsyncWrite;

use crate::authorization::Scope;
use crate::client::{Client, OnProgress};
use crate::content::Descriptor;
use crate::error::{Error, What};
use crate::exchange::Exchange;
use crate::intake::Intake;
use crate::reference::Repository;
use crate::reply::Reply;
use crate::retry::Retry;
use crate::session::Session;

const WHAT: What = What::Blob;

impl Client {
    /// Fetches a blob into a writer.
    ///
    /// The writer receives bytes before the digest of the whole is known: on an error, the caller must discard
    /// its content. A broken transfer continues where it ended.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] over [`Limits::blob_bytes`](crate::Limits::blob_bytes), before any request; [`Error::Size`],
    /// [`Error::Truncated`] or [`Error::DigestMismatch`] if the content is not the one described; [`Error::Writer`].
    pub async fn pull_blob<W: AsyncWrite + Unpin + Send>(
        &self,
        repository: &Repository,
        blob: &Descriptor,
        writer: &mut W,
        on_progress: Option<OnProgress>,
    ) -> Result<(), Error> {
        let session = self.session(repository.registry())?;
        check_size(blob, self.limits().blob_bytes)?;
        self.within_deadline(async {
            let mut intake = Intake::to_writer(writer, blob, on_progress);
            session.fetch(repository, blob, &mut intake).await?;
            intake.complete().await
        })
        .await
    }

    /// Fetches a blob into the file `partial`, and renames it to `target` once size and digest are right.
    ///
    /// Content left in `partial` by an earlier call is continued. If the registry ignores the range, or the whole has
    /// another digest, the transfer starts again once. Both paths must be on one file system, in a folder that
    /// others cannot write. A cancelled call leaves nothing but `partial`.
    ///
    /// # Errors
    ///
    /// See [`pull_blob`](Self::pull_blob); [`Error::PartialInUse`] if another call writes to `partial`;
    /// [`Error::File`]. After [`Error::DigestMismatch`], `partial` is empty.
    pub async fn pull_blob_to_file(
        &self,
        repository: &Repository,
        blob: &Descriptor,
        partial: &Path,
        target: &Path,
        on_progress: Option<OnProgress>,
    ) -> Result<(), Error> {
        let session = self.session(repository.registry())?;
        check_size(blob, self.limits().blob_bytes)?;
        self.within_deadline(async {
            let mut intake = Intake::to_file(partial, blob, on_progress).await?;
            let resumed = intake.offset() > 0;
            session.fetch(repository, blob, &mut intake).await?;
            match intake.complete().await {
                // The earlier content may be to blame.
                Err(Error::DigestMismatch { .. }) if resumed => {
                    session.fetch(repository, blob, &mut intake).await?;
                    intake.complete().await?;
                }
                result => result?,
            }
            let failed = |source| Error::File { action: "rename the partial file to", path: target.to_owned(), source };
            let (from, to) = (partial.to_owned(), target.to_owned());
            let renamed = tokio::task::spawn_blocking(move || toolcrib_private_files::rename(&from, &to)).await;
            renamed.map_err(io::Error::other).and_then(|renamed| renamed).map_err(failed)
        })
        .await
    }

    /// Returns `true` if the repository has the blob.
    ///
    /// # Errors
    ///
    /// [`Error::Size`] if the registry announces another size than the descriptor.
    pub async fn has_blob(&self, repository: &Repository, blob: &Descriptor) -> Result<bool, Error> {
        let session = self.session(repository.registry())?;
        self.within_deadline(session.has_blob(repository, blob, &Scope::pull(repository))).await
    }
}

impl Session {
    /// Asks for a blob, with repetitions.
    pub(crate) async fn has_blob(
        &self,
        repository: &Repository,
        blob: &Descriptor,
        scope: &Scope,
    ) -> Result<bool, Error> {
        let digest = blob.digest.to_string();
        let host = self.registry.to_string();
        let mut retry = Retry::new(self.limits(), &host);
        let reply = loop {
            let url = self.url(repository.path(), ["blobs", &digest]);
            match self.checked(&Exchange::new(Method::HEAD, url, scope, WHAT), &[200, 404]).await {
                Ok(reply) => break reply,
                Err(error) => retry.pause(error).await?,
            }
        };
        match reply.content_length() {
            _ if reply.status() == 404 => Ok(false),
            Some(found) if found != blob.size => Err(Error::Size { what: WHAT, expected: blob.size, found }),
            _ => Ok(true),
        }
    }

    /// Fetches until the intake has the size of the blob, with repetitions.
    async fn fetch(&self, repository: &Repository, blob: &Descriptor, intake: &mut Intake<'_>) -> Result<(), Error> {
        let host = self.registry.to_string();
        let mut retry = Retry::new(self.limits(), &host);
        while let Err(error) = self.fetch_once(repository, blob, intake).await {
            retry.pause(error).await?;
        }
        Ok(())
    }

    async fn fetch_once(
        &self,
        repository: &Repository,
        blob: &Descriptor,
        intake: &mut Intake<'_>,
    ) -> Result<(), Error> {
        let start = intake.offset();
        if start == blob.size {
            return Ok(());
        }
        let digest = blob.digest.to_string();
        let scope = Scope::pull(repository);
        let mut exchange = Exchange::new(Method::GET, self.url(repository.path(), ["blobs", &digest]), &scope, WHAT);
        let mut expected = &[200][..];
        if start > 0 {
            let range = HeaderValue::from_str(&format!("bytes={start}-"));
            exchange = exchange.header(RANGE, range.map_err(|_| Error::malformed(WHAT, "the range does not fit"))?);
            expected = &[200, 206, 416];
        }
        let mut reply = self.checked(&exchange, expected).await?;
        check_announced(&reply, blob)?;
        // Bytes of the response that the intake already has.
        let mut skip = 0;
        match reply.status().as_u16() {
            206 => check_range(&reply, start, blob.size)?,
            status => {
                if !intake.restart().await? {
                    skip = start;
                }
                if status == 416 {
                    // Without content there is nothing to continue: the next attempt asks for the whole.
                    return Err(Error::Truncated { what: WHAT, expected: blob.size, found: 0 });
                }
            }
        }
        let announced = reply.content_length().map(|length| length.saturating_add(intake.offset() - skip));
        if let Some(found) = announced.filter(|found| *found != blob.size) {
            return Err(Error::Size { what: WHAT, expected: blob.size, found });
        }
        while let Some(mut chunk) = reply.chunk(self.limits().stall).await? {
            let known = skip.min(chunk.len() as u64);
            skip -= known;
            // `known` is not larger than the chunk.
            let fresh = chunk.split_off(known as usize);
            intake.take(&fresh).await?;
        }
        match intake.offset() {
            found if found < blob.size => Err(Error::Truncated { what: WHAT, expected: blob.size, found }),
            _ => Ok(()),
        }
    }
}

fn check_size(blob: &Descriptor, limit: u64) -> Result<(), Error> {
    if blob.size > limit { Err(Error::TooLarge { what: WHAT, limit }) } else { Ok(()) }
}

/// Compares the digest that the registry announces, if it uses the same algorithm.
fn check_announced(reply: &Reply, blob: &Descriptor) -> Result<(), Error> {
    match reply.announced_digest(WHAT)? {
        Some(found) if found.algorithm() == blob.digest.algorithm() && found != blob.digest => {
            Err(Error::DigestMismatch { what: WHAT, expected: blob.digest.clone(), found })
        }
        _ => Ok(()),
    }
}

/// Checks `Content-Range: bytes START-LAST/SIZE` of a partial response.
fn check_range(reply: &Reply, start: u64, size: u64) -> Result<(), Error> {
    let whole = reply.header("content-range").and_then(|range| range.strip_prefix("bytes "));
    let valid = whole.and_then(|range| range.split_once('/')).is_some_and(|(range, total)| {
        let (first, last) = range.split_once('-').unwrap_or_default();
        first.parse() == Ok(start) && last.parse() == Ok(size - 1) && (total == "*" || total.parse() == Ok(size))
    });
    if valid { Ok(()) } else { Err(Error::malformed(WHAT, "the header `Content-Range` is not the range asked for")) }
}
