//! Newer versions of a release whose tag is a version: such a tag stays with its content, and the next release has another tag.

use toolcrib_base::progress;
use toolcrib_base::render;
use toolcrib_registry::Reference;

use crate::install::ReleaseOptions;
use crate::registries;

use super::source::BundleSource;
use super::version;

/// Newest version of a source.
pub struct Newest {
    /// Source of the newest release.
    pub source: BundleSource,
    /// Reason why only the version of the tag itself is known, if its registry does not list the others.
    pub problem: Option<String>,
}

/// Returns the newest version's source: a reference whose tag is a version and that has no digest leads to the highest
/// tag of its repository. Every other source is its own newest one. What else is wrong with a source is found when it
/// is fetched.
pub async fn newest(source: BundleSource, options: &ReleaseOptions) -> Newest {
    let tag = match &source {
        BundleSource::Registry(reference) => newest_tag(reference, options).await,
        BundleSource::Recipe(_) | BundleSource::Server(_) | BundleSource::File(_) => Ok(None),
    };
    match tag {
        Ok(Some(reference)) => Newest { source: BundleSource::Registry(Box::new(reference)), problem: None },
        Ok(None) => Newest { source, problem: None },
        Err(problem) => Newest { source, problem: Some(problem) },
    }
}

/// Returns the reference with a higher version in place of its tag, if there is one.
async fn newest_tag(reference: &Reference, options: &ReleaseOptions) -> Result<Option<Reference>, String> {
    let present = reference.tag().map(|tag| tag.as_str()).filter(|tag| version::is_fixed(tag));
    let is_open = reference.digest().is_none() && !options.registries.offline;
    let Some(present) = present.filter(|_| is_open) else { return Ok(None) };
    let repository = reference.repository();
    let Ok(client) = options.registries.connection.client(&[repository.registry()]) else { return Ok(None) };
    let tags = progress::during("asking the registry", client.tags(repository)).await.map_err(|error| {
        let doing = format!("list the versions of `{reference}`");
        let reason = render::message(&registries::failed(error, &doing, repository.registry()));
        format!("{reason}; newer versions are not known")
    })?;
    let newest = version::newest(present, tags.iter().map(|tag| tag.as_str()));
    let with_tag = |tag| format!("{}{}/{}:{tag}", registries::SCHEME, repository.registry(), repository.path()).parse();
    Ok(newest.and_then(|tag| with_tag(tag).ok()))
}
