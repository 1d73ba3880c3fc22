//! Pulls a bundle into the store: the manifest, its blobs, which an interrupted pull continues, and then the archive of both.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use toolcrib::cache::{Cache, HeldFile};
use toolcrib_base::parse::{rounded_size, size_in_words};
use toolcrib_base::progress;
use toolcrib_base::render::{Advice, listed};
use toolcrib_bundle::{
    ArchiveBuilder, Bundle, BundleKind, Descriptor as BundleDescriptor, Digest, MAX_ARCHIVE_SIZE, MAX_DOCUMENT_SIZE,
    Manifest as BundleManifest,
};
use toolcrib_registry::{Client, Content, Descriptor, Error, Manifest, OCI_MANIFEST, Reference, Repository};

use super::store::StoredBundle;
use super::transfer::Transfer;
use super::{BundleStore, MAX_BLOB_BYTES, failed};

/// Annotation that determines the ref name in a bundle archive.
const VERSION: &str = "org.opencontainers.image.version";
/// Maximum wait for another process that downloads the same blob.
const MAX_OTHER_PULL: Duration = Duration::from_secs(30 * 60);
/// Interval at which such a download is looked at.
const OTHER_PULL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum attempts to download a blob that is damaged or removed in the store meanwhile.
const MAX_BLOB_ATTEMPTS: u32 = 5;

/// Bundle that was pulled or was stored before.
#[derive(Debug)]
pub struct Fetched {
    /// Tar file of the bundle.
    pub file: PathBuf,
    /// Size of the tar file in bytes.
    pub bytes: u64,
    /// Digest of the manifest.
    pub digest: Digest,
    /// Reference with the digest.
    pub reference: Reference,
    /// `true` if nothing but the manifest was pulled.
    pub was_stored: bool,
    /// Hold on the bundle: it is not evicted as long as this value exists.
    pub held: Option<Arc<HeldFile>>,
}

/// Manifest of a bundle with its blobs, each once.
struct Plan {
    digest: Digest,
    manifest: Manifest,
    ref_name: Option<String>,
    blobs: Vec<BundleDescriptor>,
    /// Bytes of all blobs.
    total: u64,
}

/// Returns the bundle of a reference: from the store if the reference has a digest and its bundle is stored, else from the
/// registry. With `offline`, only from the store.
///
/// # Errors
///
/// The registry cannot be used or sends something else than a bundle; the store cannot be used.
pub async fn fetch(
    client: &Client,
    store: &BundleStore,
    reference: &Reference,
    offline: bool,
) -> anyhow::Result<Fetched> {
    let pinned = reference.digest().and_then(|digest| digest.to_string().parse::<Digest>().ok());
    if let Some(digest) = pinned
        && let Some(stored) = store.find(digest)?
    {
        return fetched(stored, digest, reference, true);
    }
    if offline {
        return Err(missing_offline(reference));
    }
    let repository = reference.repository();
    let doing = format!("pull `{reference}`");
    let pulled = progress::during("asking the registry", client.pull_manifest(reference)).await;
    let manifest = pulled.map_err(|error| failed(error, &doing, repository.registry()))?;
    let digest = Digest::of(&manifest.bytes);
    if let Some(stored) = store.find(digest)? {
        return fetched(stored, digest, reference, true);
    }
    let plan = Plan::new(manifest, digest, store.cache()).with_context(|| format!("cannot pull `{reference}`"))?;
    let blobs = plan.download(client, repository, store.cache(), &doing).await?;
    let cache = store.cache().clone();
    let stored = tokio::task::spawn_blocking(move || plan.store(&cache, &blobs)).await?;
    fetched(stored.with_context(|| format!("cannot store `{reference}`"))?, digest, reference, false)
}

fn fetched(stored: StoredBundle, digest: Digest, reference: &Reference, was_stored: bool) -> anyhow::Result<Fetched> {
    let StoredBundle { file, bytes, held } = stored;
    let reference = reference.clone().with_digest(digest.to_string().parse()?);
    Ok(Fetched { file, bytes, digest, reference, was_stored, held })
}

fn missing_offline(reference: &Reference) -> anyhow::Error {
    let hint = match reference.digest() {
        Some(_) => format!("pull it with `toolcrib pull {reference}`"),
        None => "with --offline, name the digest: `oci://HOST/PATH@sha256:…`; `toolcrib pull` prints it".to_owned(),
    };
    Advice::new(format!("`{reference}` is not stored, and --offline connects to no registry"), hint).into()
}

impl Plan {
    /// Examines a manifest before any of its blobs is pulled.
    fn new(manifest: Manifest, digest: Digest, cache: &Cache) -> anyhow::Result<Self> {
        let media_type = manifest.descriptor.media_type.as_str();
        match manifest.parse()? {
            Content::Index(index) => return Err(refuse_index(&index.manifests)),
            Content::Image(_) if media_type == OCI_MANIFEST => {}
            _ => {
                let hint = "tools are bundles of `toolcrib push` or components; container images are not";
                return Err(Advice::new(format!("it is a Docker image (`{media_type}`)"), hint).into());
            }
        }
        let parsed = BundleManifest::parse("the manifest", &manifest.bytes)?;
        BundleKind::of(digest, &parsed).map_err(|error| {
            let hint = "toolcrib reads its own bundles, and components with a config of the type \
                        `application/vnd.wasm.config.v0+json` and one layer of the type `application/wasm`";
            anyhow::Error::new(error).context(Advice::new("it is neither a bundle nor a component", hint))
        })?;
        ensure!(parsed.subject.is_none(), "it is not a bundle: it is attached to another artifact, as signatures are");
        ensure!(parsed.config.size <= MAX_DOCUMENT_SIZE, "its config has more than {MAX_DOCUMENT_SIZE} bytes");
        let mut blobs: BTreeMap<Digest, BundleDescriptor> = BTreeMap::new();
        for blob in std::iter::once(&parsed.config).chain(&parsed.layers) {
            ensure!(blob.size <= MAX_BLOB_BYTES, "blob {} has more than {MAX_BLOB_BYTES} bytes", blob.digest);
            let known = blobs.entry(blob.digest).or_insert_with(|| blob.clone());
            ensure!(known.size == blob.size, "blob {} has two sizes", blob.digest);
        }
        let total = blobs.values().map(|blob| blob.size).fold(0, u64::saturating_add);
        ensure!(total <= MAX_ARCHIVE_SIZE, "it has {}, more than a bundle can have", rounded_size(total));
        if total > cache.limit() {
            let limit = size_in_words(cache.limit() as usize);
            let message = format!("it has {}, more than the limit of the cache ({limit})", rounded_size(total));
            return Err(Advice::new(message, "raise the limit with `--set cache.max=SIZE`").into());
        }
        let ref_name = parsed.annotations.get(VERSION).map(|version| version.replace('+', "_"));
        Ok(Self { digest, manifest, ref_name, blobs: blobs.into_values().collect(), total })
    }

    /// Downloads all blobs, or finds those that an earlier pull has downloaded.
    async fn download(
        &self,
        client: &Client,
        repository: &Repository,
        cache: &Cache,
        doing: &str,
    ) -> anyhow::Result<Vec<HeldFile>> {
        let mut transfer = Transfer::new("pulling", self.total);
        let bar = transfer.bar.clone();
        let all = async {
            let mut held = Vec::new();
            for blob in &self.blobs {
                let on_progress = transfer.next(blob.size);
                let descriptor = registry_descriptor(blob)?;
                held.push(download(client, repository, cache, &descriptor, on_progress, doing).await?);
            }
            anyhow::Ok(held)
        };
        progress::shown(&bar, all).await
    }

    /// Writes the archive into the store, checks it as a whole, and removes the downloads.
    fn store(&self, cache: &Cache, blobs: &[HeldFile]) -> anyhow::Result<StoredBundle> {
        let mut new = cache.new_bundle()?;
        self.write(blobs, new.file_mut())?;
        let mut file = new.file_mut().try_clone()?;
        file.rewind()?;
        let mut bundle = Bundle::open(file)?;
        ensure!(bundle.digest() == self.digest, "the archive has another digest");
        bundle.verify()?;
        let stored = StoredBundle::new(new.store(&self.digest.to_string())?)?;
        for blob in blobs {
            // Another process may have removed it.
            let _ = fs::remove_file(blob.path());
        }
        Ok(stored)
    }

    fn write(&self, blobs: &[HeldFile], file: &mut File) -> anyhow::Result<()> {
        let bytes = || self.manifest.bytes.to_vec();
        let mut archive = ArchiveBuilder::new();
        // The ref name is not part of the digest. With the author's ref name, the archive is the one that was pushed.
        if archive.add_manifest(bytes(), self.ref_name.as_deref()).is_err() {
            archive.add_manifest(bytes(), None)?;
        }
        for (blob, held) in self.blobs.iter().zip(blobs) {
            let found = archive.add_source(blob.size, held.file());
            if !found.as_ref().is_ok_and(|found| *found == blob.digest) {
                // A file that is not the blob would be found again by each pull.
                let _ = fs::remove_file(held.path());
                let hint = "pull again: the damaged file was removed";
                return Err(Advice::new(format!("the downloaded blob {} is damaged", blob.digest), hint).into());
            }
        }
        archive.write_to(BufWriter::new(file))?;
        Ok(())
    }
}

/// Downloads one blob into the store, continuing an earlier download.
async fn download(
    client: &Client,
    repository: &Repository,
    cache: &Cache,
    blob: &Descriptor,
    on_progress: toolcrib_registry::OnProgress,
    doing: &str,
) -> anyhow::Result<HeldFile> {
    let files = cache.download_files(&blob.digest.to_string())?;
    let (mut attempts, began) = (0, Instant::now());
    loop {
        if let Some(held) = cache.downloaded(&files)? {
            return Ok(held);
        }
        let (partial, complete) = (&files.partial, &files.complete);
        let pulled =
            client.pull_blob_to_file(repository, blob, partial, complete, Some(Arc::clone(&on_progress))).await;
        attempts += 1;
        match pulled {
            // Another process downloads the blob.
            Err(Error::PartialInUse { .. }) if began.elapsed() < MAX_OTHER_PULL => {
                attempts = 0;
                tokio::time::sleep(OTHER_PULL_INTERVAL).await;
            }
            // Another process has completed or removed the file.
            Ok(()) | Err(Error::File { .. }) if attempts < MAX_BLOB_ATTEMPTS => {
                if let Err(Error::File { source, .. }) = &pulled
                    && source.kind() != io::ErrorKind::NotFound
                {
                    pulled.map_err(|error| failed(error, doing, repository.registry()))?;
                }
            }
            Ok(()) => anyhow::bail!("another process removes each blob from the cache at once"),
            Err(error) => return Err(failed(error, doing, repository.registry())),
        }
    }
}

fn registry_descriptor(blob: &BundleDescriptor) -> anyhow::Result<Descriptor> {
    Ok(Descriptor::new(blob.media_type.as_str(), blob.digest.to_string().parse()?, blob.size))
}

/// Error for an index, with the digests of its first manifests.
fn refuse_index(manifests: &[Descriptor]) -> anyhow::Error {
    let name = |manifest: &Descriptor| match &manifest.platform {
        Some(platform) => format!("{} ({}/{})", manifest.digest, platform.os, platform.architecture),
        None => manifest.digest.to_string(),
    };
    let shown = listed(&manifests.iter().map(name).collect::<Vec<_>>());
    let hint = match manifests.is_empty() {
        true => "it lists no manifest".to_owned(),
        false => format!("name one of its manifests by digest, as in `oci://HOST/PATH@sha256:…`: {shown}"),
    };
    Advice::new("it is an index of several manifests, not one bundle", hint).into()
}
