//! Access to bundle releases: files, registries, and the signatures of both.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, ensure};
use tempfile::TempDir;
use toolcrib::cache::HeldFile;
use toolcrib_base::render::Advice;
use toolcrib_registry::{Client, Reference};

use crate::install::ReleaseOptions;
use crate::recipes::{self, PackedRecipe};
use crate::registries::{self, Fetched};
use crate::servers::{self, PackedServer, ServerAccess, ServerSource};
use crate::signing::{self, SignatureReport};

use super::options::installer;
use super::release::Release;
use super::source::BundleSource;

/// Release of a bundle with its signatures' place.
pub struct FetchedRelease {
    /// The release.
    pub release: Release,
    place: Place,
    /// Hold on a file in the cache: it is not evicted as long as this value exists.
    _held: Option<Arc<HeldFile>>,
    /// Folder of a bundle that was packed from a recipe.
    _packed: Option<TempDir>,
}

/// Place of a release's signatures.
enum Place {
    /// Beside and inside of a file.
    File(PathBuf),
    /// In a registry, unless no registry is connected to.
    Registry(Option<Box<(Client, Reference)>>),
}

/// Gets the present release of a source and reads its facts, except its signers.
///
/// # Errors
///
/// The source cannot be fetched, or is no valid bundle.
pub async fn fetch(source: &BundleSource, options: &ReleaseOptions) -> anyhow::Result<FetchedRelease> {
    if options.package.is_some() && !matches!(source, BundleSource::Recipe(_)) {
        let hint = "`toolcrib install --list` lists the recipes; a bundle file needs no --from";
        return Err(Advice::new("--from is for the programs of a recipe, and the source is none", hint).into());
    }
    let (mut packed, mut package, mut stated) = (None, None, None);
    let (file, place, held) = match source {
        BundleSource::File(path) => (path.clone(), Place::File(path.clone()), None),
        BundleSource::Recipe(recipe) => {
            let (local, offline) = (options.package.as_deref(), options.registries.offline);
            let recipe = recipe.read()?;
            let PackedRecipe { file, folder } = recipes::pack(&recipe, local, offline).await?;
            packed = Some(folder);
            package = Some(recipe.package.to_string());
            (file.clone(), Place::File(file), None)
        }
        BundleSource::Server(server) if options.registries.offline => {
            let message = format!("`{}` is a server, and --offline connects to none", server.address);
            return Err(Advice::new(message, "leave --offline out").into());
        }
        BundleSource::Server(server) => {
            let PackedServer { file, folder, title } =
                servers::pack(server, &with_grants(server, &options.servers)?).await?;
            packed = Some(folder);
            stated = title;
            (file.clone(), Place::File(file), None)
        }
        BundleSource::Registry(reference) => {
            let client = options.registries.connection.client(&[reference.repository().registry()])?;
            let offline = options.registries.offline;
            let Fetched { file, reference, held, .. } =
                registries::fetch(&client, &options.store()?, reference, offline).await?;
            (file, Place::Registry((!offline).then(|| Box::new((client, reference)))), held)
        }
    };
    let is_server = matches!(source, BundleSource::Server(_));
    let source = source.clone();
    // Digests block the thread.
    let mut release = tokio::task::spawn_blocking(move || Release::read(&file, &source)).await??;
    release.package = package;
    if is_server {
        // The version of its program is shown, and is no part of what a person agrees to.
        (release.version, release.package) = (None, stated);
    }
    Ok(FetchedRelease { release, place, _held: held, _packed: packed })
}

/// Adds the grants of the user's own records, for a server whose source names a secret: a lock of somebody else grants none.
fn with_grants(server: &ServerSource, access: &ServerAccess) -> anyhow::Result<ServerAccess> {
    let mut access = access.clone();
    if let Some(installer) = installer().filter(|_| server.secret.is_some()) {
        access.granted.extend(installer.records.read()?.into_iter().flat_map(|it| it.bundle.granted));
    }
    Ok(access)
}

impl FetchedRelease {
    /// Verifies the signatures of the release. Trusted are the signers that the options name and the pinned ones.
    ///
    /// # Errors
    ///
    /// A key cannot be used, the registry does not answer, or the file changed. An invalid signature is no error: it has no
    /// signer.
    pub async fn verify(&mut self, options: &ReleaseOptions, pinned: &[String]) -> anyhow::Result<()> {
        let mut trusted = options.signers.trusted()?;
        trusted.add_pinned(pinned);
        let report = match &self.place {
            Place::File(path) => {
                let path = path.clone();
                Some(tokio::task::spawn_blocking(move || signing::of_file(&path, &[], &trusted)).await??)
            }
            Place::Registry(Some(registry)) => {
                let (client, reference) = registry.as_ref();
                let found = signing::of_reference(client, reference, &trusted).await;
                Some(found.with_context(|| format!("cannot look for signatures of `{reference}`"))?)
            }
            Place::Registry(None) => None,
        };
        report.map_or(Ok(()), |report| self.add(&report))
    }

    fn add(&mut self, report: &SignatureReport) -> anyhow::Result<()> {
        let Release { file, digest, signers, has_other_signers, .. } = &mut self.release;
        ensure!(report.digest.to_string() == *digest, "`{}` changed while it was verified", file.display());
        *has_other_signers = report.has_others();
        *signers = report.signers().iter().map(|signer| signer.pin()).collect();
        Ok(())
    }
}
