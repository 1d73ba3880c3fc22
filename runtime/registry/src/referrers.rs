//! Referrers: manifests that refer to another one, such as signatures and SBOMs.
//!
//! A registry with the referrers API keeps their list by itself. For the others, the client keeps an index under the
//! tag `sha256-<hex>`. Source: OCI distribution specification 1.1, "Referrers Tag Schema".

use reqwest::Url;
use serde_json::{Value, json};

use crate::authorization::Scope;
use crate::client::Client;
use crate::content::{Content, Descriptor, Index, Manifest, OCI_INDEX};
use crate::digest::Digest;
use crate::error::{Error, What};
use crate::limits::MAX_MANIFEST_ENTRIES;
use crate::pages::Walk;
use crate::reference::{Repository, Tag};
use crate::session::Session;

const WHAT: What = What::Referrers;
/// Most attempts to add an entry to an index that other clients change at the same time.
const MAX_INDEX_ROUNDS: u32 = 4;

/// Result of pushing a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PushedManifest {
    /// Descriptor of the manifest.
    pub descriptor: Descriptor,
    /// List in which the manifest appears as a referrer. `None` if it has no subject.
    pub listed: Option<ReferrersList>,
}

/// Keeper of a referrers list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReferrersList {
    /// The registry, by the referrers API.
    Api,
    /// The client, in the index under the fallback tag.
    Tag,
}

impl Client {
    /// Pushes a manifest by its digest, or under a tag. Its blobs must be pushed first.
    ///
    /// If the manifest has a `subject` and the registry does not confirm it, the manifest is added to the index under
    /// the fallback tag.
    ///
    /// # Errors
    ///
    /// [`Error::DigestMismatch`] if the registry stored something else; [`Error::MediaType`] if the fallback tag is
    /// taken by something other than an index.
    pub async fn push_manifest(
        &self,
        repository: &Repository,
        manifest: &Manifest,
        tag: Option<&Tag>,
    ) -> Result<PushedManifest, Error> {
        let session = self.session(repository.registry())?;
        self.within_deadline(async {
            let content = manifest.parse()?;
            let digest = manifest.descriptor.digest.to_string();
            let reply = session.put_manifest(repository, manifest, tag.map_or(&digest, Tag::as_str)).await?;
            let Some(subject) = content.subject() else {
                return Ok(PushedManifest { descriptor: manifest.descriptor.clone(), listed: None });
            };
            let listed = if reply.header("oci-subject") == Some(&subject.digest.to_string()) {
                ReferrersList::Api
            } else {
                session.add_to_index(repository, &subject.digest, &entry(manifest, &content)).await?;
                ReferrersList::Tag
            };
            Ok(PushedManifest { descriptor: manifest.descriptor.clone(), listed: Some(listed) })
        })
        .await
    }

    /// Lists the referrers of a digest, with one artifact type or with any. An unknown digest has none.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] over [`Limits::pages`](crate::Limits::pages) or [`Limits::entries`](crate::Limits::entries):
    /// a list is complete or an error. [`Error::MediaType`] if a page is not an OCI index.
    pub async fn referrers(
        &self,
        repository: &Repository,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, Error> {
        let session = self.session(repository.registry())?;
        self.within_deadline(async {
            let mut found = match session.referrers_by_api(repository, digest, artifact_type).await? {
                Some(found) => found,
                None => session.referrers_by_tag(repository, digest).await?,
            };
            // A registry may ignore the filter.
            found.retain(|entry| artifact_type.is_none() || entry.artifact_type.as_deref() == artifact_type);
            Ok(found)
        })
        .await
    }
}

impl Session {
    /// Asks the referrers API. `None` if the registry has none.
    async fn referrers_by_api(
        &self,
        repository: &Repository,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Option<Vec<Descriptor>>, Error> {
        let name = digest.to_string();
        let mut url: Url = self.url(repository.path(), ["referrers", &name]);
        if let Some(artifact_type) = artifact_type {
            url.query_pairs_mut().append_pair("artifactType", artifact_type);
        }
        let limit = self.limits().entries;
        let mut found: Vec<Descriptor> = Vec::new();
        let scope = Scope::pull(repository);
        let walk = self.walk(url, &scope, WHAT, Some(OCI_INDEX), |page| {
            check_index_type(&page.media_type)?;
            let index: Index = serde_json::from_slice(&page.body).map_err(|error| Error::json(WHAT, &error))?;
            if found.len() + index.manifests.len() > limit {
                return Err(Error::TooMany { what: WHAT, limit });
            }
            found.extend(index.manifests);
            Ok(())
        });
        Ok(match walk.await? {
            Walk::Complete => Some(found),
            Walk::Missing => None,
        })
    }

    async fn referrers_by_tag(&self, repository: &Repository, digest: &Digest) -> Result<Vec<Descriptor>, Error> {
        let Some(manifest) = self.fallback_index(repository, digest, &Scope::pull(repository)).await? else {
            return Ok(Vec::new());
        };
        let limit = self.limits().entries;
        match manifest.parse()? {
            Content::Index(index) if index.manifests.len() > limit => Err(Error::TooMany { what: WHAT, limit }),
            Content::Index(index) => Ok(index.manifests),
            Content::Image(_) => Err(not_an_index(&manifest.descriptor.media_type)),
        }
    }

    async fn fallback_index(
        &self,
        repository: &Repository,
        digest: &Digest,
        scope: &Scope,
    ) -> Result<Option<Manifest>, Error> {
        match self.manifest_named(repository, &digest.referrers_tag(), None, scope).await {
            Ok(manifest) => Ok(Some(manifest)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds an entry to the index under the fallback tag, and reads it again: another client may have replaced the
    /// index in between.
    async fn add_to_index(&self, repository: &Repository, subject: &Digest, entry: &Descriptor) -> Result<(), Error> {
        let scope = Scope::push(repository);
        for _ in 0..MAX_INDEX_ROUNDS {
            let current = self.fallback_index(repository, subject, &scope).await?;
            let Some(index) = index_with(current.as_ref(), entry)? else { return Ok(()) };
            self.put_manifest(repository, &index, &subject.referrers_tag()).await?;
        }
        Err(Error::malformed(WHAT, "the index under the fallback tag does not keep a new entry"))
    }
}

/// Returns the index with a further entry, and everything else as it was. `None` if it has the entry.
fn index_with(current: Option<&Manifest>, entry: &Descriptor) -> Result<Option<Manifest>, Error> {
    let mut value = match current {
        None => json!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [] }),
        Some(manifest) => {
            check_index_type(&manifest.descriptor.media_type)?;
            let Content::Index(index) = manifest.parse()? else {
                return Err(not_an_index(&manifest.descriptor.media_type));
            };
            if index.manifests.iter().any(|known| known.digest == entry.digest) {
                return Ok(None);
            }
            if index.manifests.len() >= MAX_MANIFEST_ENTRIES {
                return Err(Error::TooMany { what: WHAT, limit: MAX_MANIFEST_ENTRIES });
            }
            serde_json::from_slice(&manifest.bytes).map_err(|error| Error::json(WHAT, &error))?
        }
    };
    let entry = serde_json::to_value(entry).map_err(|error| Error::json(WHAT, &error))?;
    if let Some(entries) = value.get_mut("manifests").and_then(Value::as_array_mut) {
        entries.push(entry);
    }
    Manifest::new(OCI_INDEX, value.to_string()).map(Some)
}

/// Returns a manifest's entry in a list of referrers.
fn entry(manifest: &Manifest, content: &Content) -> Descriptor {
    let mut entry = manifest.descriptor.clone();
    entry.artifact_type = content.artifact_type().map(str::to_owned);
    entry.annotations = content.annotations().clone();
    entry
}

fn check_index_type(media_type: &str) -> Result<(), Error> {
    if media_type == OCI_INDEX { Ok(()) } else { Err(not_an_index(media_type)) }
}

fn not_an_index(media_type: &str) -> Error {
    Error::MediaType { what: WHAT, found: crate::text::excerpt(media_type), expected: "an OCI index" }
}
