//! Files as the log needs them: their owner's alone, read and written at a place, locked in bound, with room ahead. Here
//! stands what differs between systems, and nothing of what the files hold.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::owner_only;

pub(super) use owner_only::make_folder;
pub(super) use system::{length, read_at, reserve, same_file, write_at};

/// The longest wait for a lock: one that stands still must not stand in every call's way.
const MAX_LOCK: Duration = Duration::from_secs(2);

/// Opens a file that only grows, and makes it where it is missing.
pub(super) fn open_growing(path: &Path) -> io::Result<File> {
    owner_only::options().read(true).append(true).create(true).open(path)
}

/// Opens a file that is written in place, and makes it where it is missing.
pub(super) fn open_in_place(path: &Path) -> io::Result<File> {
    owner_only::options().read(true).write(true).create(true).open(path)
}

/// Takes a file's lock.
pub(super) fn lock(file: &File) -> io::Result<()> {
    owner_only::lock(file, MAX_LOCK)
}

/// Reads from a place on until `bytes` is full or the file ends, and gives what was read.
pub(super) fn read_up_to<'a>(file: &File, bytes: &'a mut [u8], mut place: u64) -> io::Result<&'a [u8]> {
    let mut filled = 0;
    while filled < bytes.len() {
        match read_at(file, &mut bytes[filled..], place)? {
            0 => break,
            more => (filled, place) = (filled + more, place + more as u64),
        }
    }
    Ok(&bytes[..filled])
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::path::Path;

    pub(in crate::audit) use self::kernel::{length, reserve};

    /// Whether an open file is the one at a path.
    pub(in crate::audit) fn same_file(file: &File, path: &Path) -> bool {
        match (file.metadata(), path.metadata()) {
            (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
            _ => false,
        }
    }

    pub(in crate::audit) fn read_at(file: &File, bytes: &mut [u8], place: u64) -> io::Result<usize> {
        file.read_at(bytes, place)
    }

    pub(in crate::audit) fn write_at(file: &File, bytes: &[u8], place: u64) -> io::Result<()> {
        file.write_all_at(bytes, place)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    mod kernel {
        use std::fs::File;
        use std::io::{self, ErrorKind};

        use rustix::fs::{AtFlags, FallocateFlags, StatxFlags};
        use rustix::io::Errno;

        /// The length of a file that still has a name. Times are not asked for: after each look at them the next write
        /// must note them more finely, and costs a microsecond more.
        pub(in crate::audit) fn length(file: &File) -> io::Result<u64> {
            let asked = StatxFlags::SIZE | StatxFlags::NLINK;
            let stat = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, asked)?;
            if stat.stx_nlink == 0 { Err(ErrorKind::NotFound.into()) } else { Ok(stat.stx_size) }
        }

        /// Takes room on the disk beyond the file's end, so that a full disk is seen before a call and not after it. A
        /// file system that cannot is not asked twice.
        pub(in crate::audit) fn reserve(file: &File, from: u64, bytes: u64) -> io::Result<()> {
            match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, bytes) {
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) | Ok(()) => Ok(()),
                Err(error) => Err(error.into()),
            }
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    mod kernel {
        use std::fs::File;
        use std::io::{self, ErrorKind};

        pub(in crate::audit) fn length(file: &File) -> io::Result<u64> {
            let stat = rustix::fs::fstat(file)?;
            if stat.st_nlink == 0 {
                return Err(ErrorKind::NotFound.into());
            }
            u64::try_from(stat.st_size).map_err(io::Error::other)
        }

        pub(in crate::audit) fn reserve(_: &File, _: u64, _: u64) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::File;
    use std::io::{self, Read, Seek, SeekFrom, Write};
    use std::path::Path;

    pub(in crate::audit) fn same_file(_: &File, path: &Path) -> bool {
        path.exists()
    }

    pub(in crate::audit) fn length(file: &File) -> io::Result<u64> {
        Ok(file.metadata()?.len())
    }

    pub(in crate::audit) fn read_at(mut file: &File, bytes: &mut [u8], place: u64) -> io::Result<usize> {
        file.seek(SeekFrom::Start(place))?;
        file.read(bytes)
    }

    pub(in crate::audit) fn write_at(mut file: &File, bytes: &[u8], place: u64) -> io::Result<()> {
        file.seek(SeekFrom::Start(place))?;
        file.write_all(bytes)
    }

    pub(in crate::audit) fn reserve(_: &File, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}
