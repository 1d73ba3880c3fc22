//! Stores of bundles, each a tar file under its manifest's digest: the cache for those that were pulled, which may be
//! evicted, and a folder for those that are installed, which stay.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolcrib::cache::{Cache, HeldFile};
use toolcrib::owner_only;
use toolcrib_base::folders::bundles_folder;
use toolcrib_base::render::Advice;
use toolcrib_base::whole_file::folder_of;
use toolcrib_bundle::{Bundle, Digest};

/// Name prefix of temporary files.
const UNFINISHED: &str = ".unfinished-";

/// Stores of bundles.
#[derive(Debug, Clone)]
pub struct BundleStore {
    cache: Cache,
    installed: Option<PathBuf>,
}

/// Bundle in a store.
#[derive(Debug)]
pub(crate) struct StoredBundle {
    /// The tar file.
    pub(crate) file: PathBuf,
    /// Size of the tar file in bytes.
    pub(crate) bytes: u64,
    /// Hold on a bundle of the cache.
    pub(crate) held: Option<Arc<HeldFile>>,
}

impl BundleStore {
    /// Uses a cache and the user's folder of installed bundles.
    ///
    /// # Errors
    ///
    /// There is no cache.
    pub fn new(cache: Option<Cache>) -> anyhow::Result<Self> {
        let cache = cache.ok_or_else(|| {
            Advice::new("no directory for bundles: no home directory was found", "set one with `--set cache.dir=DIR`")
        })?;
        Ok(Self { cache, installed: bundles_folder() })
    }

    /// Returns the cache of pulled bundles.
    pub(super) fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Returns the bundle with this digest, installed or pulled. A file that is not that bundle counts as missing, and is
    /// removed from the cache.
    ///
    /// # Errors
    ///
    /// A store belongs to or can be written by another user, or cannot be read.
    pub(crate) fn find(&self, digest: Digest) -> anyhow::Result<Option<StoredBundle>> {
        if let Some(file) = self.installed_file(digest).filter(|file| is_bundle(file, digest)) {
            let bytes = fs::metadata(&file)?.len();
            return Ok(Some(StoredBundle { file, bytes, held: None }));
        }
        let digest_text = digest.to_string();
        let Some(held) = self.cache.bundle(&digest_text)? else { return Ok(None) };
        if is_bundle(held.path(), digest) {
            return Ok(Some(StoredBundle::new(held)?));
        }
        drop(held);
        self.cache.remove_bundle(&digest_text)?;
        Ok(None)
    }

    fn installed_file(&self, digest: Digest) -> Option<PathBuf> {
        Some(self.installed.as_ref()?.join(format!("sha256-{}.tar", digest.hex())))
    }
}

impl StoredBundle {
    /// Describes a bundle of the cache.
    ///
    /// # Errors
    ///
    /// The metadata cannot be read.
    pub(super) fn new(held: HeldFile) -> io::Result<Self> {
        let bytes = held.file().metadata()?.len();
        Ok(Self { file: held.path().to_owned(), bytes, held: Some(Arc::new(held)) })
    }
}

/// Copies a file to a path in one step, replacing a file that is there.
///
/// # Errors
///
/// The copy cannot be written, or the path belongs to a folder.
pub fn copy_to(file: &Path, target: &Path) -> io::Result<()> {
    let mut copy = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder_of(target))?;
    io::copy(&mut File::open(file)?, copy.as_file_mut())?;
    copy.as_file().sync_all()?;
    owner_only::persist(copy, target).map(drop)
}

/// `true` if a file is an archive with the bundle of this digest. Its blobs are checked when they are read.
fn is_bundle(file: &Path, digest: Digest) -> bool {
    let opened = owner_only::options().read(true).open(file).ok();
    opened.and_then(|file| Bundle::open(file).ok()).is_some_and(|bundle| bundle.digest() == digest)
}

#[cfg(test)]
mod tests {
    use toolcrib_bundle::{BundleBuilder, MediaType, Metadata};

    use super::*;

    fn bundle(folder: &Path) -> (PathBuf, Digest) {
        let mut builder = BundleBuilder::new(Metadata::new("acme/weather", "1.2.0")).unwrap();
        builder.add_bytes("tools.json", MediaType::TOOLS_JSON, b"{\"tools\":[]}").unwrap();
        let path = folder.join("bundle.tar");
        let written = builder.write_to(File::create(&path).unwrap()).unwrap();
        (path, written.manifest)
    }

    fn place() -> (tempfile::TempDir, BundleStore) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::folder(folder.path().join("cache"));
        let installed = Some(folder.path().join("data/bundles"));
        (folder, BundleStore { cache, installed })
    }

    #[test]
    fn an_installed_bundle_is_found_and_survives_the_cache() {
        let (folder, store) = place();
        let (path, digest) = bundle(folder.path());
        assert!(store.find(digest).unwrap().is_none());
        let mut new = store.cache.new_bundle().unwrap();
        io::copy(&mut File::open(&path).unwrap(), new.file_mut()).unwrap();
        let held = new.store(&digest.to_string()).unwrap();
        assert_eq!(store.find(digest).unwrap().unwrap().file, held.path());
        let kept = store.installed_file(digest).unwrap();
        owner_only::create_folder(kept.parent().unwrap()).unwrap();
        fs::copy(held.path(), &kept).unwrap();
        drop(held);
        assert_eq!(store.cache.clear().unwrap().entries, 1);
        let found = store.find(digest).unwrap().unwrap();
        assert_eq!((found.file, found.bytes), (kept, fs::metadata(&path).unwrap().len()));
    }

    #[test]
    fn a_damaged_bundle_counts_as_missing() {
        let (folder, store) = place();
        let (path, digest) = bundle(folder.path());
        let whole = fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() / 3], b"", b"not a bundle"] {
            fs::write(&path, damaged).unwrap();
            let mut new = store.cache.new_bundle().unwrap();
            io::Write::write_all(new.file_mut(), damaged).unwrap();
            drop(new.store(&digest.to_string()).unwrap());
            assert!(store.find(digest).unwrap().is_none());
            assert!(store.cache.entries().unwrap().is_empty());
        }
        assert!(store.find(Digest::of(b"another")).unwrap().is_none());
    }
}
