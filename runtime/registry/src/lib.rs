//! Client of OCI registries: `push`, `pull`, `resolve`, list of tags, referrers, `login` and `logout`, with a bound on
//! everything that a registry sends and a digest check on everything that it stores.
//!
//! # Trust
//!
//! The caller names a registry, a repository and, best, a digest. Nothing that the registry answers is trusted:
//!
//! - Sizes, counts, pages, redirects, headers, tokens and times have a bound: see [`limits`].
//! - Content is hashed while it streams, and is complete only if size and digest are right. The header
//!   `Docker-Content-Digest` is checked too, but never believed.
//! - A redirect leads over HTTPS to an address that the [`AddressPolicy`] permits. The authorization stays behind when
//!   scheme, host or port change. An upload never leaves the registry.
//! - Credentials go to the registry and to the token server that it names, over HTTPS or within the own machine. They
//!   are overwritten in memory when dropped. Copies in the buffers of a connection live as long as the request.
//! - Errors contain no text of the registry but escaped words, and no secret.
//!
//! # Why an own client
//!
//! The crate `oci-client` 0.18 was examined first. It fits tools that trust their registry. Its types own the HTTP
//! client and every response body, so bounds cannot be put around it from outside:
//!
//! - Manifests, tag lists, referrers, token responses and error bodies are read whole, without a limit, and free text
//!   of the registry becomes part of errors.
//! - The HTTP client is created inside, with the default redirect policy and name lookup: no hook for addresses.
//! - The user name and password are sent to any token server that the registry names, over plain HTTP as well.
//! - An upload continues at any address in `Location`. A `Location` that is not a URL, and a token that does not fit
//!   into a header, end in a panic.
//! - There is no deadline over a call, no repetition, and no resumption from a partial file with a check of the whole.
//! - A reference without a host means Docker Hub.
//!
//! `contributions/oci-client.patch` adds hooks for the first two. The protocol itself is small. This crate implements it over `reqwest` with rustls and ring, HTTP/1.1 only, and
//! without proxies, cookies, compression or automatic redirects and repetitions.
//!
//! # Example
//!
//! ```no_run
//! # async fn example() -> Result<(), toolcrib_registry::Error> {
//! use toolcrib_registry::{Client, Content, CredentialStore, Reference};
//!
//! let client = Client::builder().credentials(CredentialStore::from_variables(std::env::vars_os())).build()?;
//! let reference: Reference = "oci://registry.example.com/tools/fetch:1.2".parse()?;
//! let descriptor = client.resolve(&reference).await?;
//! let manifest = client.pull_manifest(&reference.clone().with_digest(descriptor.digest)).await?;
//! if let Content::Image(image) = manifest.parse()? {
//!     for layer in &image.layers {
//!         let mut bytes = Vec::new();
//!         client.pull_blob(reference.repository(), layer, &mut bytes, None).await?;
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod address;
mod authorization;
mod blobs;
mod challenge;
mod client;
mod content;
mod credentials;
mod digest;
mod error;
mod exchange;
mod files;
mod intake;
pub mod limits;
mod manifests;
mod pages;
mod reference;
mod referrers;
mod reply;
mod retry;
mod secret;
mod session;
mod source;
mod text;
mod upload;

pub use address::{AddressPolicy, AddressRange, Lookup, NameLookup, Peer, PublicOrBesideRegistry, Role, SystemLookup};
pub use client::{Client, ClientBuilder, OnProgress, Progress};
pub use content::{
    Content, DOCKER_INDEX, DOCKER_MANIFEST, Descriptor, ImageManifest, Index, Manifest, OCI_INDEX, OCI_MANIFEST,
    Platform,
};
pub use credentials::{CredentialStore, HelperEnvironment, StoredIn};
pub use digest::{Algorithm, Digest, DigestError};
pub use error::{CredentialError, Error, RedirectError, What};
pub use limits::Limits;
pub use reference::{Reference, ReferenceError, Registry, Repository, Tag};
pub use referrers::{PushedManifest, ReferrersList};
pub use secret::{Credential, Secret};
pub use source::BlobSource;
pub use upload::{PushedBlob, UploadMode};
