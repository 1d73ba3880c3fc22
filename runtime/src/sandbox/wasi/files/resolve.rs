//! Resolution of a path beneath a folder by the kernel, without leaving the folder by a name or a link.

use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// Reason why nothing was opened.
pub(super) enum OpenError {
    /// This system cannot open beneath a folder.
    Unsupported,
    Refused(ErrorCode),
}

impl From<ErrorCode> for OpenError {
    fn from(code: ErrorCode) -> Self {
        Self::Refused(code)
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{ATTEMPTS, resolve};

#[cfg(target_os = "linux")]
mod linux {
    use rustix::fd::{AsFd, OwnedFd};
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    use rustix::io::Errno;
    use rustix::path::Arg;

    use crate::policy::has_openat2;

    use super::{ErrorCode, OpenError};

    /// Number of attempts to resolve a path while its folders are being renamed.
    pub(in crate::sandbox::wasi::files) const ATTEMPTS: usize = 16;

    impl From<Errno> for OpenError {
        fn from(error: Errno) -> Self {
            Self::Refused(match error {
                // The path leaves the folder.
                Errno::XDEV => ErrorCode::NotPermitted,
                // The file is a socket, or a FIFO without a reader.
                Errno::NXIO => ErrorCode::NotPermitted,
                // The process has no free descriptor.
                Errno::MFILE | Errno::NFILE => ErrorCode::Busy,
                other => std::io::Error::from(other).into(),
            })
        }
    }

    /// Opens a path beneath a folder, without leaving it on the way.
    ///
    /// # Errors
    ///
    /// [`Errno::NOSYS`] if this system cannot, else the error of the system.
    pub(in crate::sandbox::wasi::files) fn resolve(
        folder: impl AsFd,
        path: impl Arg + Copy,
        flags: OFlags,
        mode: Mode,
    ) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        if !has_openat2() {
            return Err(Errno::NOSYS);
        }
        for _ in 0..ATTEMPTS {
            match openat2(&folder, path, flags | OFlags::CLOEXEC, mode, resolve) {
                // A folder was renamed while the path was resolved.
                Err(Errno::AGAIN | Errno::INTR) => {}
                done => return done,
            }
        }
        Err(Errno::BUSY)
    }
}
