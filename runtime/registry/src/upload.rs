//! Uploading blobs: at once or in chunks, to an address on the registry itself.

use bytes::Bytes;
use reqwest::header::{CONTENT_RANGE, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Method, Url};

use crate::authorization::Scope;
use crate::client::{Client, OnProgress};
use crate::content::Descriptor;
use crate::error::{Error, What};
use crate::exchange::Exchange;
use crate::limits::{MAX_CHUNK_BYTES, MAX_URL_BYTES};
use crate::reference::Repository;
use crate::reply::Reply;
use crate::retry::Retry;
use crate::session::{Session, authority};
use crate::source::{BlobSource, Part};

const WHAT: What = What::Upload;
static NO_BYTES: Bytes = Bytes::new();

/// Way in which a blob is uploaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UploadMode {
    /// At once; in chunks if the registry refuses that.
    #[default]
    Auto,
    /// At once, in one request.
    Monolithic,
    /// In chunks.
    Chunked,
}

/// Result of pushing a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushedBlob {
    /// The repository had the blob already, and nothing was sent.
    Existing,
    /// The blob was uploaded.
    Uploaded,
}

/// Blob on its way to a repository.
struct Upload<'a> {
    repository: &'a Repository,
    blob: &'a Descriptor,
    source: &'a BlobSource,
    scope: Scope,
    on_progress: Option<OnProgress>,
}

/// Upload session of the registry.
struct Opened {
    location: Url,
    /// Smallest chunk that the registry accepts, in bytes.
    min_chunk: u64,
}

impl Client {
    /// Pushes a blob, unless the repository has it.
    ///
    /// The content is read once before, to compare size and digest with the descriptor. A broken upload is repeated
    /// from the start.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] over [`Limits::blob_bytes`](crate::Limits::blob_bytes); [`Error::Size`] and
    /// [`Error::DigestMismatch`] if the content is not the one described; [`Error::UploadLocation`] if the registry
    /// names an upload address that is not its own.
    pub async fn push_blob(
        &self,
        repository: &Repository,
        blob: &Descriptor,
        source: &BlobSource,
        mode: UploadMode,
        on_progress: Option<OnProgress>,
    ) -> Result<PushedBlob, Error> {
        let session = self.session(repository.registry())?;
        let limit = self.limits().blob_bytes;
        if blob.size > limit {
            return Err(Error::TooLarge { what: WHAT, limit });
        }
        self.within_deadline(async {
            source.check(blob).await?;
            let upload = Upload { repository, blob, source, scope: Scope::push(repository), on_progress };
            if session.has_blob(repository, blob, &upload.scope).await? {
                return Ok(PushedBlob::Existing);
            }
            session.upload(&upload, mode).await?;
            Ok(PushedBlob::Uploaded)
        })
        .await
    }
}

impl Session {
    async fn upload(&self, upload: &Upload<'_>, mode: UploadMode) -> Result<(), Error> {
        let mut chunked = mode == UploadMode::Chunked;
        let host = self.registry.to_string();
        let mut retry = Retry::new(self.limits(), &host);
        loop {
            let result = match chunked {
                true => self.upload_in_chunks(upload).await,
                false => self.upload_at_once(upload).await,
            };
            let Err(error) = result else { return Ok(()) };
            if mode == UploadMode::Auto && !chunked && wants_chunks(&error) {
                chunked = true;
                // A refusal by status is not a failure of the network: the next attempt follows at once.
                if !error.is_passing() {
                    continue;
                }
            }
            retry.pause(error).await?;
        }
    }

    async fn upload_at_once(&self, upload: &Upload<'_>) -> Result<(), Error> {
        let opened = self.open_upload(upload).await?;
        let part = upload.part(0, upload.blob.size);
        let mut exchange = Exchange::new(Method::PUT, closing(&opened.location, upload.blob), &upload.scope, WHAT);
        exchange = exchange.header(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
        exchange.payload = Some(&part);
        check_stored(&self.checked(&exchange, &[200, 201, 204]).await?, upload.blob)
    }

    async fn upload_in_chunks(&self, upload: &Upload<'_>) -> Result<(), Error> {
        let Opened { mut location, min_chunk } = self.open_upload(upload).await?;
        let size = self.limits().chunk_bytes.clamp(1, MAX_CHUNK_BYTES).max(min_chunk);
        let mut start = 0;
        while start < upload.blob.size {
            let length = size.min(upload.blob.size - start);
            let last = start + length - 1;
            let range = HeaderValue::from_str(&format!("{start}-{last}"));
            let part = upload.part(start, length);
            let mut exchange = Exchange::new(Method::PATCH, location, &upload.scope, WHAT)
                .header(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"))
                .header(CONTENT_RANGE, range.map_err(|_| Error::malformed(WHAT, "the range does not fit"))?);
            exchange.payload = Some(&part);
            let reply = self.checked(&exchange, &[202]).await?;
            if reply.header("range").is_some_and(|range| range != format!("0-{last}")) {
                return Err(Error::malformed(WHAT, "the registry has another number of bytes than was sent"));
            }
            location = self.upload_location(&exchange.url, &reply)?;
            start += length;
        }
        let mut exchange = Exchange::new(Method::PUT, closing(&location, upload.blob), &upload.scope, WHAT);
        exchange.payload = Some(&NO_BYTES);
        check_stored(&self.checked(&exchange, &[200, 201, 204]).await?, upload.blob)
    }

    async fn open_upload(&self, upload: &Upload<'_>) -> Result<Opened, Error> {
        let url = self.url(upload.repository.path(), ["blobs", "uploads", ""]);
        let mut exchange = Exchange::new(Method::POST, url, &upload.scope, WHAT);
        exchange.payload = Some(&NO_BYTES);
        let reply = self.checked(&exchange, &[202]).await?;
        let min_chunk = reply.header("oci-chunk-min-length").and_then(|text| text.parse().ok()).unwrap_or(0);
        if min_chunk > MAX_CHUNK_BYTES {
            return Err(Error::TooLarge { what: WHAT, limit: MAX_CHUNK_BYTES });
        }
        Ok(Opened { location: self.upload_location(&exchange.url, &reply)?, min_chunk })
    }

    /// Returns the address for continuing an upload. Its scheme, host and port must match the registry:
    /// content and token go there.
    fn upload_location(&self, from: &Url, reply: &Reply) -> Result<Url, Error> {
        let location = reply.header(LOCATION.as_str()).filter(|location| location.len() <= MAX_URL_BYTES);
        let url = location.and_then(|location| from.join(location).ok());
        let mut url = url.ok_or_else(|| Error::malformed(WHAT, "the registry names no valid upload address"))?;
        if !self.is_own(&url) || !url.username().is_empty() || url.password().is_some() {
            let found = crate::text::excerpt(&format!("{}://{}", url.scheme(), authority(&url)));
            return Err(Error::UploadLocation { registry: authority(&self.base), found });
        }
        url.set_fragment(None);
        Ok(url)
    }
}

impl Upload<'_> {
    fn part(&self, start: u64, length: u64) -> Part<'_> {
        let on_progress = self.on_progress.as_ref();
        Part { source: self.source, start, length, total: self.blob.size, on_progress }
    }
}

/// Returns the address that closes an upload.
fn closing(location: &Url, blob: &Descriptor) -> Url {
    let mut url = location.clone();
    url.query_pairs_mut().append_pair("digest", &blob.digest.to_string());
    url
}

/// Returns `true` if a failed upload at once may succeed in chunks. Some registries and their proxies close the
/// connection on a large body instead of answering.
fn wants_chunks(error: &Error) -> bool {
    match error {
        Error::NotFound { .. } | Error::Connection { .. } => true,
        Error::Status { status, .. } => matches!(status, 405 | 411 | 413 | 415 | 416 | 501),
        _ => false,
    }
}

fn check_stored(reply: &Reply, blob: &Descriptor) -> Result<(), Error> {
    match reply.announced_digest(WHAT)? {
        Some(found) if found.algorithm() == blob.digest.algorithm() && found != blob.digest => {
            Err(Error::DigestMismatch { what: WHAT, expected: blob.digest.clone(), found })
        }
        _ => Ok(()),
    }
}
