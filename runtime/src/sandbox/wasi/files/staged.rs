//! Files of a call with a stage, which holds its writes back: every folder of the guest is one of the stage, and its files are
//! real ones, or files of the stage. The rules for changes are those of real folders.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rustix::io::Errno;
use toolcrib_staging::{About, EntryKind, FolderId, Mark, Open, Opened, Rules, Stage, StagedCall, StagedFolder};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::{self, Descriptor, Dir, FsPerms, OpenMode};
use wasmtime_wasi::p2::FsResult;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, HostDescriptor, MetadataHashValue, NewTimestamp,
    PathFlags,
};
use wasmtime_wasi::runtime::spawn_blocking;

use crate::policy::{Identity, is_link_out, protects_names_below};

use super::change::Change;
use super::entry::{code, errno};
use super::guard::PathGuard;
use super::listing::{Part, Rest};
use super::quota::Quota;
use super::request::{OpenRequest, refuse_misread};
use super::state::Files;

/// Staged folder behind a guest's descriptor.
pub(super) type Staged = Arc<StagedFolder>;

/// Stage of a call.
pub(super) struct CallStage {
    pub(super) stage: Arc<Stage>,
    /// Call that makes the changes.
    call: Option<Arc<StagedCall>>,
    roots: Vec<FolderId>,
    /// Staged folders by the guest's descriptors.
    folders: HashMap<u32, Staged>,
    /// Descriptors of real files.
    real_files: HashSet<u32>,
}

impl CallStage {
    pub(super) fn new(stage: Arc<Stage>, call: Option<Arc<StagedCall>>) -> Self {
        Self { stage, call, roots: Vec::new(), folders: HashMap::new(), real_files: HashSet::new() }
    }

    /// Opens a granted folder in the stage, or the folder inside it that a script has chosen.
    pub(super) fn grant(
        &mut self,
        path: &Path,
        folder: File,
        inside: Option<&str>,
        until: Option<Instant>,
    ) -> io::Result<Staged> {
        let mut granted = self.stage.attach(path, folder, until)?;
        if let Some(inside) = inside {
            let how = Open { follow: true, folder: true, read: true, ..Open::default() };
            let rules = CallRules { guard: PathGuard::default(), quota: None, roots: Vec::new(), call: None };
            granted = match granted.open(inside, how, &rules)? {
                Opened::Folder(folder) => folder,
                _ => return Err(Errno::NOTDIR.into()),
            };
        }
        self.roots.push(granted.id());
        Ok(Arc::new(granted))
    }

    /// Notes the folder of the stage that a descriptor is for.
    pub(super) fn note(&mut self, fd: &Resource<Descriptor>, folder: Staged) {
        self.folders.insert(fd.rep(), folder);
    }
}

/// Rules for the changes of a call.
struct CallRules {
    guard: PathGuard,
    quota: Option<Quota>,
    roots: Vec<FolderId>,
    call: Option<Arc<StagedCall>>,
}

impl CallRules {
    /// Returns `true` if a file with several names is part of the host's own data.
    fn is_own(&self, file: &About) -> bool {
        self.guard.protected.is_own(Identity::new(file.device, file.inode))
    }
}

impl Rules for CallRules {
    fn entry(&self, folder: Option<&About>, path: &str) -> io::Result<()> {
        let (protected, path) = (&self.guard.protected, Path::new(path));
        let is_protected = match folder {
            Some(folder) => protected.holds_entry(Identity::new(folder.device, folder.inode), path),
            None => protected.is_named(path),
        };
        refuse_if(is_protected)
    }

    /// Refuses a path with protected names, on which the operator may have a link.
    fn request(&self, path: &str) -> io::Result<()> {
        refuse_if(self.guard.protected.is_named(Path::new(path)))
    }

    fn file(&self, file: &About, path: &str) -> io::Result<()> {
        let (protected, identity) = (&self.guard.protected, Identity::new(file.device, file.inode));
        let is_linked = file.names > 1;
        let is_held = protected.holds_file(identity, is_linked, Path::new(path));
        refuse_if(is_held || is_linked && protected.is_own(identity))
    }

    fn placed(&self, path: &str) -> io::Result<()> {
        refuse_if(protects_names_below(Path::new(path)))
    }

    fn moved(&self, from: &str, to: &str) -> io::Result<()> {
        let protected = &self.guard.protected;
        refuse_if(protected.has_below(Path::new(from)) || protected.has_below(Path::new(to)))
    }

    fn count(&self) -> io::Result<()> {
        match &self.quota {
            Some(quota) => Ok(quota.entry().map_err(|_| Errno::DQUOT)?),
            None => Ok(()),
        }
    }

    fn is_link_out(&self, target: &str, depth: usize) -> bool {
        is_link_out(Path::new(target), depth)
    }

    fn roots(&self) -> &[FolderId] {
        &self.roots
    }

    fn call(&self) -> Option<&Arc<StagedCall>> {
        self.call.as_ref()
    }

    fn until(&self) -> Option<Instant> {
        self.guard.until
    }
}

/// Returns the path that an entry has, or will have.
pub(super) fn staged_path(folder: &Staged, path: &str, follows: bool) -> Option<PathBuf> {
    folder.path_of(path, follows).ok().map(PathBuf::from)
}

/// Returns the path that a folder has, or will have.
pub(super) fn own_staged_path(folder: &Staged) -> PathBuf {
    folder.path().into()
}

fn refuse_if(is_refused: bool) -> io::Result<()> {
    if is_refused { Err(Errno::PERM.into()) } else { Ok(()) }
}

/// Entry of a stage that was opened for a guest.
pub(super) enum StagedEntry {
    /// Folder, and an empty real one for its descriptor.
    Folder(StagedFolder, File),
    /// File of the stage.
    Written(File),
    /// Real file.
    Real(File),
}

impl Files<'_> {
    /// Returns the staged folder behind a descriptor; `None` if the call's writes are not held back.
    pub(super) fn staged(&self, fd: &Resource<Descriptor>) -> Option<Staged> {
        self.state.stage.as_ref()?.folders.get(&fd.rep()).cloned()
    }

    fn rules(&self) -> CallRules {
        let (guard, quota) = (self.state.guard.clone(), Some(self.state.quota.clone()));
        let (roots, call) = match &self.state.stage {
            Some(stage) => (stage.roots.clone(), stage.call.clone()),
            None => (Vec::new(), None),
        };
        CallRules { guard, quota, roots, call }
    }

    /// Opens an entry.
    pub(super) async fn open_staged(&mut self, folder: Staged, request: OpenRequest) -> FsResult<StagedEntry> {
        let rules = self.rules();
        let stage = self.state.stage.as_ref().map(|stage| stage.stage.clone());
        let opened = spawn_blocking(move || {
            let how = Open {
                follow: request.follows(),
                folder: request.is_folder(),
                create: request.creates(),
                exclusive: request.is_exclusive(),
                truncate: request.truncates(),
                read: request.reads(),
                write: request.writes(),
            };
            match folder.open(&request.path, how, &rules).map_err(code)? {
                Opened::Folder(folder) => {
                    let nothing = stage.ok_or(ErrorCode::NoEntry)?.nothing().map_err(code)?;
                    Ok(StagedEntry::Folder(folder, nothing))
                }
                Opened::Written(file) => Ok(StagedEntry::Written(file)),
                // Another hard link may belong to the host's own files.
                Opened::Real(_, about) if about.names > 1 && rules.is_own(&about) => Err(ErrorCode::NotPermitted),
                Opened::Real(file, _) => {
                    // Reads of a regular file need no flags.
                    rustix::fs::fcntl_setfl(&file, rustix::fs::OFlags::empty()).map_err(errno)?;
                    Ok(StagedEntry::Real(file))
                }
            }
        });
        Ok(opened.await?)
    }

    /// Gives the guest a descriptor of an opened entry.
    pub(super) fn push_staged(
        &mut self,
        entry: StagedEntry,
        perms: FsPerms,
        mode: OpenMode,
    ) -> FsResult<Resource<Descriptor>> {
        let (folder, is_real, descriptor) = match entry {
            StagedEntry::Folder(folder, nothing) => {
                (Some(folder), false, Descriptor::Dir(Dir::new(nothing, perms, mode, false)))
            }
            StagedEntry::Written(file) => {
                (None, false, Descriptor::File(filesystem::File::new(file, perms, mode, false)))
            }
            StagedEntry::Real(file) => (None, true, Descriptor::File(filesystem::File::new(file, perms, mode, false))),
        };
        let fd = self.inner.table.push(descriptor)?;
        if let Some(stage) = &mut self.state.stage {
            stage.folders.extend(folder.map(|folder| (fd.rep(), Arc::new(folder))));
            stage.real_files.extend(is_real.then(|| fd.rep()));
        }
        Ok(fd)
    }

    /// Describes an entry, held back or not.
    pub(super) async fn stat_named(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        match self.staged(&fd) {
            Some(folder) => Ok(stat_of(&about(folder, flags, path).await?)),
            None => self.inner.stat_at(fd, flags, path).await,
        }
    }

    /// Returns the number of an entry, held back or not.
    pub(super) async fn hash_named(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        match self.staged(&fd) {
            Some(folder) => Ok(hash_of(&about(folder, flags, path).await?)),
            None => self.inner.metadata_hash_at(fd, flags, path).await,
        }
    }

    /// Describes the folder itself.
    pub(super) async fn own_stat_staged(&mut self, folder: Staged) -> FsResult<About> {
        Ok(spawn_blocking(move || folder.own_about().map_err(code)).await?)
    }

    /// Reads the target of a link.
    pub(super) async fn read_link_staged(&mut self, folder: Staged, path: String) -> FsResult<String> {
        let target = spawn_blocking(move || folder.read_link(&path).map_err(code)).await?;
        // The engine refuses a link out of its folder too.
        if target.starts_with('/') { Err(ErrorCode::NotPermitted.into()) } else { Ok(target) }
    }

    /// Changes an entry, and for a second name or a move, one in another folder.
    pub(super) async fn change_staged(
        &mut self,
        folder: Staged,
        path: &str,
        change: Change,
        into: Option<Staged>,
    ) -> FsResult<()> {
        let (rules, path) = (self.rules(), path.to_owned());
        let changed = spawn_blocking(move || {
            let into = into.as_ref().unwrap_or(&folder);
            match &change {
                Change::MakeFolder => folder.make_folder(&path, &rules),
                Change::Link(target) => folder.make_link(&path, target, &rules),
                Change::Name(_, to) => folder.make_name(&path, into, to, &rules),
                Change::Move(_, to) => folder.rename(&path, into, to, &rules),
                Change::RemoveFile => folder.remove_file(&path, &rules),
                Change::RemoveFolder => folder.remove_folder(&path, &rules),
            }
            .map_err(code)
        });
        Ok(changed.await?)
    }

    /// Sets the times of a file by its path.
    pub(super) async fn set_times_staged(
        &mut self,
        folder: Staged,
        path: &str,
        follows: bool,
        (accessed, modified): (NewTimestamp, NewTimestamp),
    ) -> FsResult<()> {
        refuse_misread(path)?;
        let (rules, path) = (self.rules(), path.to_owned());
        let set = spawn_blocking(move || {
            let (last_access, last_modification) = (timespec(&accessed)?, timespec(&modified)?);
            let times = rustix::fs::Timestamps { last_access, last_modification };
            folder.set_times(&path, follows, &times, &rules).map_err(code)
        });
        Ok(set.await?)
    }

    /// Refuses to set the times of a staged folder or a real file.
    pub(super) fn check_times_staged(&self, fd: &Resource<Descriptor>) -> FsResult<()> {
        let is_held = self
            .state
            .stage
            .as_ref()
            .is_some_and(|stage| stage.folders.contains_key(&fd.rep()) || stage.real_files.contains(&fd.rep()));
        if is_held { Err(ErrorCode::Unsupported.into()) } else { Ok(()) }
    }

    /// Forgets a descriptor.
    pub(super) fn forget_staged(&mut self, fd: &Resource<Descriptor>) {
        if let Some(stage) = &mut self.state.stage {
            stage.folders.remove(&fd.rep());
            stage.real_files.remove(&fd.rep());
        }
    }
}

/// Returns `true` if both are the same folder.
pub(super) fn is_same(one: &StagedFolder, other: &StagedFolder) -> bool {
    one.id() == other.id()
}

/// Opens the listing of the real folder under one; `None` if only the stage has it.
pub(super) fn list_below(folder: &StagedFolder) -> io::Result<Option<Rest>> {
    folder.below()?.as_ref().map(Rest::of).transpose()
}

/// Listing of a staged folder: its entries of the stage first, then those of the real folder.
#[derive(Clone)]
pub(super) struct StagedListing {
    folder: Staged,
    state: ListingState,
}

#[derive(Clone)]
enum ListingState {
    /// Entries of the stage after a name.
    Staged(String),
    /// Entries of the real folder, after those of the stage were listed.
    Below(Mark),
}

impl StagedListing {
    pub(super) fn new(folder: Staged) -> Self {
        Self { folder, state: ListingState::Staged(String::new()) }
    }

    /// Reads the next entries of the stage, at most so many; `None` once all of them are read.
    pub(super) fn next_staged(&mut self, most: usize) -> Option<Part> {
        let ListingState::Staged(after) = &self.state else { return None };
        let names = self.folder.staged_after(after, most);
        self.state = match names.last() {
            Some((last, _)) => ListingState::Staged(last.clone()),
            None => ListingState::Below(self.folder.mark()),
        };
        Some(names.into_iter().map(|(name, kind)| Ok(DirectoryEntry { type_: kind_of(kind), name })).collect())
    }

    /// Keeps the entries of the real folder that the folder shows.
    pub(super) fn retain_shown(&self, part: &mut Part) {
        if let ListingState::Below(mark) = self.state {
            self.folder.retain_shown(part, mark, |entry| entry.as_ref().ok().map(|entry| entry.name.as_str()));
        }
    }
}

/// Describes an entry of the stage.
async fn about(folder: Staged, flags: PathFlags, path: String) -> FsResult<About> {
    let follows = flags.contains(PathFlags::SYMLINK_FOLLOW);
    Ok(spawn_blocking(move || folder.about(&path, follows).map_err(code)).await?)
}

/// Describes an entry for a guest.
pub(super) fn stat_of(about: &About) -> DescriptorStat {
    let time = |nanoseconds: i128| {
        let seconds = u64::try_from(nanoseconds.div_euclid(1_000_000_000)).ok()?;
        let nanoseconds = u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).ok()?;
        Some(Datetime { seconds, nanoseconds })
    };
    DescriptorStat {
        type_: kind_of(about.kind),
        link_count: about.names,
        size: about.size,
        data_access_timestamp: time(about.accessed),
        data_modification_timestamp: time(about.modified),
        status_change_timestamp: time(about.changed),
    }
}

/// Returns the kind of an entry for a guest.
pub(super) fn kind_of(kind: EntryKind) -> DescriptorType {
    match kind {
        EntryKind::File => DescriptorType::RegularFile,
        EntryKind::Folder => DescriptorType::Directory,
        EntryKind::Link => DescriptorType::SymbolicLink,
        EntryKind::Other => DescriptorType::Unknown,
    }
}

/// Difference between the two halves of an entry's number, as the engine has it.
const HALVES: u64 = 0x4009_21fb_5444_2d18;

/// Returns the number of an entry. For an open file, the engine returns the same one.
pub(super) fn hash_of(about: &About) -> MetadataHashValue {
    let mut hasher = DefaultHasher::new();
    (about.device, about.inode).hash(&mut hasher);
    let lower = hasher.finish();
    MetadataHashValue { lower, upper: lower ^ HALVES }
}

/// Converts a time that is to be set.
fn timespec(time: &NewTimestamp) -> Result<rustix::fs::Timespec, ErrorCode> {
    use rustix::fs::{Timespec, UTIME_NOW, UTIME_OMIT};

    Ok(match time {
        NewTimestamp::NoChange => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        NewTimestamp::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        NewTimestamp::Timestamp(at) => Timespec {
            tv_sec: i64::try_from(at.seconds).map_err(|_| ErrorCode::Overflow)?,
            tv_nsec: at.nanoseconds.into(),
        },
    })
}
