//! Metadata of open descriptors, files and paths, in preview 1 types.

use wasmtime_wasi::p1::types::{
    Errno, Fd, Fdflags, Fdstat, Filestat, Filetype, Fstflags, Lookupflags, Rights, Timestamp,
};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorStat, DescriptorType, HostDescriptor, MetadataHashValue, NewTimestamp, PathFlags,
};

use crate::sandbox::wasi::descriptor_table::{Descriptor, borrow};
use crate::sandbox::wasi::state::WasiState;

use super::descriptors::folder;
use super::memory::Result;

/// Device number of every file.
const DEVICE: u64 = 1;
const SECOND: u64 = 1_000_000_000;

/// Returns the type and the rights of a descriptor. Rights are reported and not enforced: every access is checked when
/// it happens. They cannot be reduced, so the right that programs reduce to keep a folder's files from being truncated is not
/// reported.
pub(super) async fn of_descriptor(state: &mut WasiState, fd: Fd) -> Result<Fdstat> {
    let (file, mut fs_flags) = match state.preview1.descriptors.get(fd)? {
        Descriptor::Input(_) => {
            return Ok(fdstat(Filetype::Unknown, Fdflags::empty(), Rights::FD_READ, Rights::FD_READ));
        }
        Descriptor::Output(_) => {
            return Ok(fdstat(Filetype::Unknown, Fdflags::empty(), Rights::FD_WRITE, Rights::FD_WRITE));
        }
        Descriptor::Folder(_) => {
            return Ok(fdstat(Filetype::Directory, Fdflags::empty(), of_folder(), of_folder() | of_file()));
        }
        Descriptor::File(file) => {
            let mut flags = Fdflags::empty();
            flags.set(Fdflags::APPEND, file.append);
            flags.set(Fdflags::NONBLOCK, file.nonblock);
            (borrow(&file.file), flags)
        }
    };
    let opened = state.files().get_flags(file).await?;
    let mut rights = of_file();
    if !opened.contains(DescriptorFlags::READ) {
        rights &= !Rights::FD_READ;
    }
    if !opened.contains(DescriptorFlags::WRITE) {
        rights &= !Rights::FD_WRITE;
    }
    fs_flags.set(Fdflags::SYNC, opened.contains(DescriptorFlags::FILE_INTEGRITY_SYNC));
    fs_flags.set(Fdflags::DSYNC, opened.contains(DescriptorFlags::DATA_INTEGRITY_SYNC));
    fs_flags.set(Fdflags::RSYNC, opened.contains(DescriptorFlags::REQUESTED_WRITE_SYNC));
    Ok(fdstat(Filetype::RegularFile, fs_flags, rights, rights))
}

fn fdstat(fs_filetype: Filetype, fs_flags: Fdflags, fs_rights_base: Rights, fs_rights_inheriting: Rights) -> Fdstat {
    Fdstat { fs_filetype, fs_flags, fs_rights_base, fs_rights_inheriting }
}

fn of_folder() -> Rights {
    Rights::PATH_CREATE_DIRECTORY
        | Rights::PATH_CREATE_FILE
        | Rights::PATH_LINK_SOURCE
        | Rights::PATH_LINK_TARGET
        | Rights::PATH_OPEN
        | Rights::FD_READDIR
        | Rights::PATH_READLINK
        | Rights::PATH_RENAME_SOURCE
        | Rights::PATH_RENAME_TARGET
        | Rights::PATH_SYMLINK
        | Rights::PATH_REMOVE_DIRECTORY
        | Rights::PATH_UNLINK_FILE
        | Rights::PATH_FILESTAT_GET
        | Rights::PATH_FILESTAT_SET_TIMES
        | Rights::FD_FILESTAT_GET
        | Rights::FD_FILESTAT_SET_TIMES
}

fn of_file() -> Rights {
    Rights::FD_DATASYNC
        | Rights::FD_READ
        | Rights::FD_SEEK
        | Rights::FD_FDSTAT_SET_FLAGS
        | Rights::FD_SYNC
        | Rights::FD_TELL
        | Rights::FD_WRITE
        | Rights::FD_ADVISE
        | Rights::FD_ALLOCATE
        | Rights::FD_FILESTAT_GET
        | Rights::FD_FILESTAT_SET_SIZE
        | Rights::FD_FILESTAT_SET_TIMES
        | Rights::POLL_FD_READWRITE
}

/// Sets the flags of an open file. Streams accept any flags: they never block.
pub(super) fn set_flags(state: &mut WasiState, fd: Fd, flags: Fdflags) -> Result<()> {
    if flags.intersects(Fdflags::DSYNC | Fdflags::SYNC | Fdflags::RSYNC) {
        return Err(Errno::Notsup.into());
    }
    match state.preview1.descriptors.get_mut(fd)? {
        Descriptor::File(file) => {
            file.append = flags.contains(Fdflags::APPEND);
            file.nonblock = flags.contains(Fdflags::NONBLOCK);
            Ok(())
        }
        Descriptor::Folder(_) => Err(Errno::Badf.into()),
        Descriptor::Input(_) | Descriptor::Output(_) => Ok(()),
    }
}

/// Returns the metadata of an open descriptor.
pub(super) async fn of_open(state: &mut WasiState, fd: Fd) -> Result<Filestat> {
    if let Descriptor::Input(_) | Descriptor::Output(_) = state.preview1.descriptors.get(fd)? {
        let filetype = Filetype::Unknown;
        return Ok(Filestat { dev: 0, ino: 0, filetype, nlink: 0, size: 0, atim: 0, mtim: 0, ctim: 0 });
    }
    let file = state.preview1.descriptors.any(fd)?;
    let stat = state.files().stat(borrow(&file)).await?;
    let hash = state.files().metadata_hash(file).await?;
    Ok(filestat(&stat, &hash))
}

/// Returns the metadata of a path.
pub(super) async fn of_path(state: &mut WasiState, fd: Fd, flags: Lookupflags, path: String) -> Result<Filestat> {
    let folder = folder(state, fd)?;
    let stat = state.files().stat_at(borrow(&folder), follow(flags), path.clone()).await?;
    let hash = state.files().metadata_hash_at(folder, follow(flags), path).await?;
    Ok(filestat(&stat, &hash))
}

fn filestat(stat: &DescriptorStat, hash: &MetadataHashValue) -> Filestat {
    Filestat {
        dev: DEVICE,
        ino: hash.lower,
        filetype: filetype(stat.type_),
        nlink: stat.link_count,
        size: stat.size,
        atim: nanoseconds(stat.data_access_timestamp),
        mtim: nanoseconds(stat.data_modification_timestamp),
        ctim: nanoseconds(stat.status_change_timestamp),
    }
}

/// Converts the type of a file.
pub(super) fn filetype(kind: DescriptorType) -> Filetype {
    match kind {
        DescriptorType::RegularFile => Filetype::RegularFile,
        DescriptorType::Directory => Filetype::Directory,
        DescriptorType::SymbolicLink => Filetype::SymbolicLink,
        DescriptorType::BlockDevice => Filetype::BlockDevice,
        DescriptorType::CharacterDevice => Filetype::CharacterDevice,
        DescriptorType::Socket => Filetype::SocketStream,
        DescriptorType::Fifo | DescriptorType::Unknown => Filetype::Unknown,
    }
}

/// Returns the path flags: whether a link at the end is followed.
pub(super) fn follow(flags: Lookupflags) -> PathFlags {
    match flags.contains(Lookupflags::SYMLINK_FOLLOW) {
        true => PathFlags::SYMLINK_FOLLOW,
        false => PathFlags::empty(),
    }
}

/// Returns a time in nanoseconds since 1970, saturating.
pub(super) fn nanoseconds(time: Option<Datetime>) -> Timestamp {
    time.map_or(0, |time| time.seconds.saturating_mul(SECOND).saturating_add(time.nanoseconds.into()))
}

/// Returns the times of access and modification to set.
pub(super) fn times(accessed: Timestamp, changed: Timestamp, flags: Fstflags) -> Result<(NewTimestamp, NewTimestamp)> {
    let one = |time: Timestamp, explicit: Fstflags, now: Fstflags| match (flags.contains(explicit), flags.contains(now))
    {
        (true, true) => Err(Errno::Inval),
        (true, false) => {
            let nanoseconds = u32::try_from(time % SECOND).map_err(|_| Errno::Inval)?;
            Ok(NewTimestamp::Timestamp(Datetime { seconds: time / SECOND, nanoseconds }))
        }
        (false, true) => Ok(NewTimestamp::Now),
        (false, false) => Ok(NewTimestamp::NoChange),
    };
    let accessed = one(accessed, Fstflags::ATIM, Fstflags::ATIM_NOW)?;
    Ok((accessed, one(changed, Fstflags::MTIM, Fstflags::MTIM_NOW)?))
}
