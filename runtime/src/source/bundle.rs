//! Bundles as sources. A bundle is one archive that is read without unpacking: it is opened once for all of its readers, and
//! every read checks a digest.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use toolcrib_bundle::{ARCHIVE_PREFIX, Bundle, BundleKind, Error, MediaType, looks_like_archive};

/// Ending of archive names.
const ENDING: &str = "tar";

/// Open bundles of the process. Sources and runtimes hold them; this list only finds them again.
static OPEN: Mutex<Vec<Weak<OpenBundle>>> = Mutex::new(Vec::new());

/// Bundle that is open.
#[derive(Debug)]
pub(crate) struct OpenBundle {
    path: PathBuf,
    state: FileState,
    digest: String,
    kind: BundleKind,
    /// Paths that define tools, with `/` between their parts; the empty path is the root.
    sources: Vec<String>,
    files: BTreeMap<String, FileFacts>,
    folders: BTreeSet<String>,
    content: Mutex<Bundle<File>>,
    fault: OnceLock<String>,
}

/// Facts about a file of a bundle that its manifest states.
#[derive(Debug)]
struct FileFacts {
    digest: String,
    bytes: u64,
    is_program: bool,
}

/// Kind of a path inside a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
}

/// Returns `true` if a path is a regular file that is meant as an archive, by its name or its first bytes.
pub fn is_bundle(path: &Path) -> bool {
    if !path.metadata().is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut prefix = Vec::with_capacity(ARCHIVE_PREFIX);
    let mut read = || File::open(path)?.take(ARCHIVE_PREFIX as u64).read_to_end(&mut prefix);
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(ENDING))
        || (read().is_ok() && looks_like_archive(&prefix))
}

/// Opens the bundle at a path; `None` if the path is no bundle.
pub(super) fn at(path: &Path) -> Option<io::Result<Arc<OpenBundle>>> {
    is_bundle(path).then(|| OpenBundle::open(path))
}

/// Finds the bundle that a path leads into, and the path inside of it. The nearest existing part of the path decides.
///
/// # Errors
///
/// The bundle cannot be opened, or the path leads out of it.
pub(super) fn containing(path: &Path) -> io::Result<Option<(Arc<OpenBundle>, String)>> {
    let path = std::path::absolute(path)?;
    if let Some(found) = unchanged(&path) {
        return Ok(Some(found));
    }
    let Some((outer, found)) = path.ancestors().find_map(|outer| Some((outer, outer.metadata().ok()?))) else {
        return Ok(None);
    };
    if !found.is_file() {
        return Ok(held(&path));
    }
    if !is_bundle(outer) {
        return Ok(None);
    }
    let inner = inner(&path, outer).ok_or_else(missing)?;
    Ok(Some((OpenBundle::open(outer)?, inner)))
}

/// Returns the part of a path inside a bundle; `None` if it leads out.
fn inner(path: &Path, outer: &Path) -> Option<String> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().map(str::to_owned),
        _ => None,
    };
    let parts = path.strip_prefix(outer).ok()?.components().map(part).collect::<Option<Vec<_>>>()?;
    Some(parts.join("/"))
}

/// Finds the open bundle that a path leads into, if its file is the one that was opened: nothing deeper on the path exists then.
fn unchanged(path: &Path) -> Option<(Arc<OpenBundle>, String)> {
    let (bundle, inner) = held(path)?;
    let found = bundle.path.metadata().ok()?;
    (found.is_file() && FileState::of(&found) == bundle.state).then_some((bundle, inner))
}

/// Finds the open bundle that a path leads into, although its file was removed: a runtime goes on with what it loaded.
fn held(path: &Path) -> Option<(Arc<OpenBundle>, String)> {
    let open = lock(&OPEN);
    open.iter().filter_map(Weak::upgrade).find_map(|bundle| Some((bundle.clone(), inner(path, &bundle.path)?)))
}

impl OpenBundle {
    /// Opens a bundle, or returns the open one if the file is the same.
    fn open(path: &Path) -> io::Result<Arc<Self>> {
        let path = std::path::absolute(path)?;
        let file = File::open(&path)?;
        let state = FileState::of(&file.metadata()?);
        let mut open = lock(&OPEN);
        open.retain(|bundle| bundle.strong_count() > 0);
        let known = open.iter().filter_map(Weak::upgrade).find(|bundle| bundle.path == path && bundle.state == state);
        if let Some(known) = known {
            return Ok(known);
        }
        let content = Bundle::open(file).map_err(io::Error::other)?;
        let bundle = Arc::new(Self::new(path, state, content));
        open.push(Arc::downgrade(&bundle));
        Ok(bundle)
    }

    fn new(path: PathBuf, state: FileState, content: Bundle<File>) -> Self {
        let file = |file: &toolcrib_bundle::BundledFile| {
            let is_program = file.media_type == MediaType::WASM;
            let facts = FileFacts { digest: file.digest.to_string(), bytes: file.size, is_program };
            (file.path.to_string(), facts)
        };
        let files: BTreeMap<_, _> = content.files().iter().map(file).collect();
        let above = |path: &String| path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect::<Vec<_>>();
        let folders = files.keys().flat_map(above).chain([String::new()]).collect();
        let mut sources: Vec<_> = content.sources().iter().map(ToString::to_string).collect();
        if sources.is_empty() {
            sources.push(String::new());
        }
        let (digest, kind) = (content.digest().to_string(), content.kind());
        let (content, fault) = (Mutex::new(content), OnceLock::new());
        Self { path, state, digest, kind, sources, files, folders, content, fault }
    }

    /// Digest of the manifest, as `sha256:HEX`, which covers the bundle's content.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// `true` for one program that another tool published, without definitions.
    pub(super) fn is_program(&self) -> bool {
        self.kind == BundleKind::WasmArtifact
    }

    /// Lists the paths that define the tools, in the order in which they are read.
    pub(super) fn sources(&self) -> impl Iterator<Item = PathBuf> {
        self.sources.iter().map(|source| self.join(source))
    }

    /// Returns the path of a file or folder in the bundle.
    pub(super) fn join(&self, inner: &str) -> PathBuf {
        if inner.is_empty() { self.path.clone() } else { self.path.join(inner) }
    }

    /// Returns the kind of a path inside the bundle; `None` if there is nothing.
    pub(super) fn kind(&self, inner: &str) -> Option<Kind> {
        match self.files.contains_key(inner) {
            true => Some(Kind::File),
            false => self.folders.contains(inner).then_some(Kind::Folder),
        }
    }

    /// Lists the names in a folder.
    pub(super) fn names(&self, folder: &str) -> BTreeSet<&str> {
        let below = self.files.keys().filter_map(|path| below(path, folder));
        below.map(|rest| rest.split('/').next().unwrap_or(rest)).collect()
    }

    /// Returns `true` if the manifest lists a file as a program.
    pub(super) fn lists_program(&self, inner: &str) -> bool {
        self.files.get(inner).is_some_and(|file| file.is_program)
    }

    /// Returns the digest and size of a file, which every read checks.
    pub(super) fn facts(&self, inner: &str) -> Option<(&str, u64)> {
        self.files.get(inner).map(|file| (file.digest.as_str(), file.bytes))
    }

    /// Reads a file of at most `max` bytes and checks its digest.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], [`ErrorKind::FileTooLarge`], or the fault of the archive, which is kept.
    pub(super) fn read(&self, inner: &str, max: u64) -> io::Result<Vec<u8>> {
        let mut content = lock(&self.content);
        match content.read_file(inner).and_then(|file| file.into_vec(max)) {
            Ok(bytes) => Ok(bytes),
            Err(Error::FileMissing { .. }) => Err(missing()),
            Err(Error::TooLarge { .. }) => Err(ErrorKind::FileTooLarge.into()),
            Err(error) => {
                let fault = self.fault.get_or_init(|| error.to_string()).clone();
                Err(io::Error::new(ErrorKind::InvalidData, fault))
            }
        }
    }

    /// Returns the reason why the content read so far cannot be used: a read that failed, or another bundle at the path.
    pub(super) fn fault(&self) -> Option<String> {
        let changed = || (!self.is_in_place()).then(|| "it changed while it was read".to_owned());
        self.fault.get().cloned().or_else(changed)
    }

    /// Returns `true` if the path still leads to this bundle. Another process that uses the bundle may change the times of
    /// the file, so the digest decides.
    fn is_in_place(&self) -> bool {
        let is_same = self.path.metadata().is_ok_and(|found| FileState::of(&found) == self.state);
        is_same || at(&self.path).is_some_and(|found| found.is_ok_and(|found| found.digest == self.digest))
    }
}

/// Returns the part of a path below a folder.
fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    if folder.is_empty() { Some(path) } else { path.strip_prefix(folder)?.strip_prefix('/') }
}

/// Returns the error for a path that leads to nothing.
pub(super) fn missing() -> io::Error {
    io::Error::new(ErrorKind::NotFound, "no such file or folder")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// State of a file. Equal states mean the same content, as far as the system shows; digests decide.
#[derive(Debug, PartialEq)]
struct FileState {
    bytes: u64,
    modified: Option<SystemTime>,
    identity: [u64; 4],
}

impl FileState {
    fn of(found: &Metadata) -> Self {
        Self { bytes: found.len(), modified: found.modified().ok(), identity: system::identity(found) }
    }
}

#[cfg(unix)]
mod system {
    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt;

    /// Returns the device and inode of a file, and the time when its metadata last changed.
    pub(super) fn identity(found: &Metadata) -> [u64; 4] {
        [found.dev(), found.ino(), found.ctime().cast_unsigned(), found.ctime_nsec().cast_unsigned()]
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::Metadata;

    /// Not supported here.
    pub(super) fn identity(_: &Metadata) -> [u64; 4] {
        [0; 4]
    }
}
