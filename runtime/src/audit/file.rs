//! File operations of the log: owner-only files, reads and writes at an offset, bounded locks, and reserved space.
//! Everything that differs between systems is here.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::store::owner_only;

pub(super) use system::{append_at, length, read_at, reserve, write_at};

/// Maximum wait for a lock, so that a process that hangs does not block every call.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);

/// Opens a file for [`append_at`], and creates it if it is missing.
pub(super) fn open_growing(path: &Path) -> io::Result<File> {
    system::growing(&mut owner_only::options()).read(true).create(true).open(path)
}

/// Opens a file for writing in place, and creates it if it is missing.
pub(super) fn open_in_place(path: &Path) -> io::Result<File> {
    owner_only::options().read(true).write(true).create(true).open(path)
}

/// Locks a file.
pub(super) fn lock(file: &File) -> io::Result<()> {
    owner_only::lock(file, MAX_LOCK_WAIT)
}

/// Reads from an offset until `bytes` is full or the file ends, and returns the bytes that were read.
pub(super) fn read_up_to<'a>(file: &File, bytes: &'a mut [u8], mut offset: u64) -> io::Result<&'a [u8]> {
    let mut filled = 0;
    while filled < bytes.len() {
        match read_at(file, &mut bytes[filled..], offset)? {
            0 => break,
            more => (filled, offset) = (filled + more, offset + more as u64),
        }
    }
    Ok(&bytes[..filled])
}

#[cfg(unix)]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io::{self, Write};
    use std::os::unix::fs::FileExt;

    pub(in crate::audit) use self::kernel::{length, reserve};

    /// Lets the system put each write at the end of the file.
    pub(super) fn growing(options: &mut OpenOptions) -> &mut OpenOptions {
        options.append(true)
    }

    /// Appends bytes to a file that [`growing`] opened.
    pub(in crate::audit) fn append_at(mut file: &File, bytes: &[u8], _: u64) -> io::Result<()> {
        file.write_all(bytes)
    }

    pub(in crate::audit) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(bytes, offset)
    }

    pub(in crate::audit) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    mod kernel {
        use std::fs::File;
        use std::io::{self, ErrorKind};

        use rustix::fs::{AtFlags, FallocateFlags, StatxFlags};
        use rustix::io::Errno;

        /// Returns the length of a file that still has a name. Times are not requested: after each query of them the
        /// kernel records the time of the next write at a finer resolution, which costs a microsecond.
        pub(in crate::audit) fn length(file: &File) -> io::Result<u64> {
            let mask = StatxFlags::SIZE | StatxFlags::NLINK;
            let stat = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, mask)?;
            if stat.stx_nlink == 0 { Err(ErrorKind::NotFound.into()) } else { Ok(stat.stx_size) }
        }

        /// Allocates space beyond the end of a file, so that a full disk is detected before a call and not after it.
        /// File systems without this operation are skipped.
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

#[cfg(windows)]
mod system {
    use std::fs::File;
    use std::io::{self, ErrorKind};
    use std::os::windows::fs::FileExt;

    use toolcrib_windows_files::PrivateOptions;
    use winapi_util::file::information;

    /// A file that is only appended to can be neither locked nor shortened here, so it is written in place.
    pub(super) fn growing(options: &mut PrivateOptions) -> &mut PrivateOptions {
        options.write(true)
    }

    /// Appends bytes to a file with this end. The holder of the lock of the log is the only writer.
    pub(in crate::audit) fn append_at(file: &File, bytes: &[u8], end: u64) -> io::Result<()> {
        write_at(file, bytes, end)
    }

    /// Returns the length of a file that still has a name.
    pub(in crate::audit) fn length(file: &File) -> io::Result<u64> {
        let about = information(file)?;
        if about.number_of_links() == 0 { Err(ErrorKind::NotFound.into()) } else { Ok(about.file_size()) }
    }

    pub(in crate::audit) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match file.seek_read(bytes, offset) {
            // An offset at the end is an error here.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }

    pub(in crate::audit) fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match file.seek_write(bytes, offset)? {
                0 => return Err(ErrorKind::WriteZero.into()),
                written => (bytes, offset) = (&bytes[written..], offset + written as u64),
            }
        }
        Ok(())
    }

    pub(in crate::audit) fn reserve(_: &File, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}
