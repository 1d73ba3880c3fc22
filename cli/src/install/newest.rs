//! Newer versions of a release whose tag is a version: such a tag stays with its content, and the next release has another tag.

use toolcrib_registry::Reference;

use crate::options::ReleaseOptions;
use crate::progress;
use crate::registries;
use crate::render;

use super::source::BundleSource;
use super::version;

/// Returns the source of the newest version: a reference whose tag is a version and that has no digest leads to the highest tag of
/// its repository. Every other source is its own newest one, and so is, with a warning, one whose registry does not list its tags.
/// What else is wrong with a source is found when it is fetched.
pub(crate) async fn newest(source: BundleSource, options: &ReleaseOptions) -> BundleSource {
    let tag = match &source {
        BundleSource::Registry(reference) => newest_tag(reference, options).await,
        BundleSource::File(_) => None,
    };
    tag.map_or(source, |reference| BundleSource::Registry(Box::new(reference)))
}

/// Returns the reference with a higher version in place of its tag, if there is one.
async fn newest_tag(reference: &Reference, options: &ReleaseOptions) -> Option<Reference> {
    let present = reference.tag().map(|tag| tag.as_str()).filter(|tag| version::is_fixed(tag))?;
    if reference.digest().is_some() || options.registries.offline {
        return None;
    }
    let repository = reference.repository();
    let client = options.registries.connection.client(&[repository.registry()]).ok()?;
    let tags = match progress::during("asking the registry", client.tags(repository)).await {
        Ok(tags) => tags,
        Err(error) => {
            let doing = format!("list the versions of `{reference}`");
            let reason = render::message(&registries::failed(error, &doing, repository.registry()));
            render::warning(&format!("{reason}; only this version is looked at"));
            return None;
        }
    };
    let newest = version::newest(present, tags.iter().map(|tag| tag.as_str()))?;
    format!("{}{}/{}:{newest}", registries::SCHEME, repository.registry(), repository.path()).parse().ok()
}
