//! Bundles and components in OCI registries: pushed, pulled into a store, and loaded from there. Every command that takes a
//! source of tools takes a reference, `oci://HOST/PATH[:TAG][@DIGEST]`, or the name of the built-in tools, through
//! [`localize`].

mod artifact;
mod failure;
mod fetch;
mod options;
mod push;
mod store;
mod transfer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib::cache::{Cache, HeldFile};
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::{self, usage_error};
use toolcrib_registry::{Reference, Registry};

use crate::builtin;

pub use failure::failed;
pub use fetch::{Fetched, fetch};
pub use options::{RegistryOptions, SourceRegistries};
pub use push::{Pushed, push};
pub use store::{BundleStore, copy_to};

/// Scheme that marks a reference in place of a path.
pub const SCHEME: &str = "oci://";
/// Maximum bytes of one blob.
pub(crate) const MAX_BLOB_BYTES: u64 = toolcrib_bundle::MAX_BLOB_SIZE;

/// Bundles that are kept in the cache as long as this value exists.
pub type HeldBundles = Vec<Arc<HeldFile>>;

/// Returns the reference in place of a source's path.
pub(crate) fn as_reference(source: &Path) -> Option<anyhow::Result<Reference>> {
    let text = source.to_str().filter(|text| text.starts_with(SCHEME))?;
    Some(text.parse().map_err(|error| usage_error(format!("`{text}`: {error}"))))
}

/// Replaces the built-in tools' name and the references among sources by their bundle files, which are pulled if
/// necessary. This is the only place that does so.
///
/// # Errors
///
/// A usage error for an invalid reference, and the errors of [`builtin::copy`] and [`fetch`].
pub async fn localize(
    sources: &mut [PathBuf],
    options: &SourceRegistries,
    cache: Option<Cache>,
) -> anyhow::Result<HeldBundles> {
    let mut references = Vec::new();
    for (place, source) in sources.iter_mut().enumerate() {
        if builtin::is_named(source) {
            *source = builtin::copy(cache.clone())?.to_owned();
        }
        if let Some(reference) = as_reference(source) {
            references.push((place, reference?));
        }
    }
    if references.is_empty() {
        return Ok(Vec::new());
    }
    let registries: Vec<&Registry> =
        references.iter().map(|(_, reference)| reference.repository().registry()).collect();
    let client = options.connection.client(&registries)?;
    let store = BundleStore::new(cache)?;
    let mut held = Vec::new();
    for (place, reference) in references {
        let fetched = fetch(&client, &store, &reference, options.offline).await?;
        if !fetched.was_stored {
            render::aside(&format!("pulled {}, {}", fetched.reference, rounded_size(fetched.bytes)));
        }
        sources[place] = fetched.file;
        held.extend(fetched.held);
    }
    Ok(held)
}
