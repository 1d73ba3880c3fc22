//! Manifests: resolving a tag to a digest, fetching with every check, and tagging.

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};

use crate::authorization::Scope;
use crate::client::Client;
use crate::content::{Descriptor, MANIFEST_TYPES, Manifest};
use crate::digest::Digest;
use crate::error::{Error, What};
use crate::exchange::Exchange;
use crate::limits::MAX_DOCUMENT_BYTES;
use crate::reference::{Reference, Repository, Tag};
use crate::reply::Reply;
use crate::retry::Retry;
use crate::session::Session;

const WHAT: What = What::Manifest;

impl Client {
    /// Resolves a reference to media type, digest and size of its manifest or index.
    ///
    /// A reference with a digest is checked to exist. If the registry does not announce the digest, the manifest is
    /// fetched and its digest computed.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`]; [`Error::DigestMismatch`] if the registry announces another digest than the reference;
    /// and the errors of [`pull_manifest`](Self::pull_manifest).
    pub async fn resolve(&self, reference: &Reference) -> Result<Descriptor, Error> {
        let session = self.session(reference.repository().registry())?;
        self.within_deadline(async {
            match session.head_manifest(reference).await? {
                Some(descriptor) => Ok(descriptor),
                None => Ok(session.manifest(reference, &Scope::pull(reference.repository())).await?.descriptor),
            }
        })
        .await
    }

    /// Fetches a manifest or index. Of an index, the caller selects a manifest and fetches it by its digest.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] over [`MAX_DOCUMENT_BYTES`]; [`Error::DigestMismatch`] if the content has another digest
    /// than the reference or the header `Docker-Content-Digest`; [`Error::MediaType`] if the type is not one of OCI or
    /// Docker; [`Error::Malformed`] if the content is not a manifest of that type.
    pub async fn pull_manifest(&self, reference: &Reference) -> Result<Manifest, Error> {
        let session = self.session(reference.repository().registry())?;
        let scope = Scope::pull(reference.repository());
        self.within_deadline(session.manifest(reference, &scope)).await
    }

    /// Gives a further tag to the manifest of a reference. Returns its descriptor.
    ///
    /// # Errors
    ///
    /// The errors of [`pull_manifest`](Self::pull_manifest) and [`push_manifest`](Self::push_manifest).
    pub async fn tag(&self, reference: &Reference, tag: &Tag) -> Result<Descriptor, Error> {
        let repository = reference.repository();
        let session = self.session(repository.registry())?;
        let scope = Scope::push(repository);
        self.within_deadline(async {
            let manifest = session.manifest(reference, &scope).await?;
            session.put_manifest(repository, &manifest, tag.as_str()).await?;
            Ok(manifest.descriptor)
        })
        .await
    }
}

impl Session {
    fn manifest_exchange<'a>(
        &self,
        method: Method,
        repository: &Repository,
        name: &str,
        scope: &'a Scope,
    ) -> Exchange<'a> {
        let url = self.url(repository.path(), ["manifests", name]);
        Exchange::new(method, url, scope, WHAT)
    }

    /// Fetches a manifest, with repetitions.
    pub(crate) async fn manifest(&self, reference: &Reference, scope: &Scope) -> Result<Manifest, Error> {
        let name = reference.selector()?;
        self.manifest_named(reference.repository(), &name, reference.digest(), scope).await
    }

    /// Fetches the manifest with this tag or digest.
    pub(crate) async fn manifest_named(
        &self,
        repository: &Repository,
        name: &str,
        digest: Option<&Digest>,
        scope: &Scope,
    ) -> Result<Manifest, Error> {
        let host = self.registry.to_string();
        let mut retry = Retry::new(self.limits(), &host);
        loop {
            let exchange = self.manifest_exchange(Method::GET, repository, name, scope).header(ACCEPT, accepted());
            match self.manifest_once(&exchange, digest).await {
                Ok(manifest) => return Ok(manifest),
                Err(error) => retry.pause(error).await?,
            }
        }
    }

    async fn manifest_once(&self, exchange: &Exchange<'_>, expected: Option<&Digest>) -> Result<Manifest, Error> {
        let reply = self.checked(exchange, &[200]).await?;
        let media_type = manifest_type(&reply)?;
        let announced = reply.announced_digest(WHAT)?;
        let bytes = reply.body(WHAT, MAX_DOCUMENT_BYTES, self.limits()).await?;
        for expected in expected.into_iter().chain(&announced) {
            let found = Digest::compute(expected.algorithm(), &bytes);
            if found != *expected {
                return Err(Error::DigestMismatch { what: WHAT, expected: expected.clone(), found });
            }
        }
        let mut manifest = Manifest::new(&media_type, bytes)?;
        if let Some(expected) = expected {
            manifest.descriptor.digest = expected.clone();
        }
        Ok(manifest)
    }

    /// Asks for the descriptor of a manifest. `None` if the registry does not announce all of it.
    async fn head_manifest(&self, reference: &Reference) -> Result<Option<Descriptor>, Error> {
        let name = reference.selector()?;
        let scope = Scope::pull(reference.repository());
        let host = self.registry.to_string();
        let mut retry = Retry::new(self.limits(), &host);
        let reply = loop {
            let exchange = self.manifest_exchange(Method::HEAD, reference.repository(), &name, &scope);
            match self.checked(&exchange.header(ACCEPT, accepted()), &[200, 400, 405, 501]).await {
                Ok(reply) => break reply,
                Err(error) => retry.pause(error).await?,
            }
        };
        let (Some(digest), Some(size)) = (reply.announced_digest(WHAT)?, reply.content_length()) else {
            return Ok(None);
        };
        if reply.status() != 200 {
            return Ok(None);
        }
        if size > MAX_DOCUMENT_BYTES as u64 {
            return Err(Error::TooLarge { what: WHAT, limit: MAX_DOCUMENT_BYTES as u64 });
        }
        match reference.digest() {
            // Digests of two algorithms cannot be compared: the content decides.
            Some(expected) if expected.algorithm() != digest.algorithm() => return Ok(None),
            Some(expected) if *expected != digest => {
                return Err(Error::DigestMismatch { what: WHAT, expected: expected.clone(), found: digest });
            }
            _ => {}
        }
        Ok(Some(Descriptor::new(manifest_type(&reply)?, digest, size)))
    }

    /// Sends a manifest under a tag or digest, with repetitions. Returns the response.
    pub(crate) async fn put_manifest(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        name: &str,
    ) -> Result<Reply, Error> {
        let media_type = HeaderValue::from_str(&manifest.descriptor.media_type)
            .map_err(|_| Error::malformed(WHAT, "the media type does not fit into a header"))?;
        let scope = Scope::push(repository);
        let body: Bytes = manifest.bytes.clone();
        let host = self.registry.to_string();
        let mut retry = Retry::new(self.limits(), &host);
        let reply = loop {
            let mut exchange = self.manifest_exchange(Method::PUT, repository, name, &scope);
            exchange = exchange.header(CONTENT_TYPE, media_type.clone());
            exchange.payload = Some(&body);
            match self.checked(&exchange, &[200, 201]).await {
                Ok(reply) => break reply,
                Err(error) => retry.pause(error).await?,
            }
        };
        if let Some(found) = reply.announced_digest(WHAT)? {
            let expected = Digest::compute(found.algorithm(), &manifest.bytes);
            if found != expected {
                return Err(Error::DigestMismatch { what: WHAT, expected, found });
            }
        }
        Ok(reply)
    }
}

fn accepted() -> HeaderValue {
    // The media types are ASCII.
    HeaderValue::from_str(&MANIFEST_TYPES.join(", ")).unwrap_or(HeaderValue::from_static("*/*"))
}

fn manifest_type(reply: &Reply) -> Result<String, Error> {
    let found = reply.media_type().unwrap_or_default();
    if MANIFEST_TYPES.contains(&found) {
        return Ok(found.to_owned());
    }
    let expected = "an image manifest or index of OCI or Docker";
    Err(Error::MediaType { what: WHAT, found: crate::text::excerpt(found), expected })
}
