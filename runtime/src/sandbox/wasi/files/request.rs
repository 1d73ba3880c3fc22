//! Request of a guest to open a path.

use wasmtime_wasi::filesystem::{FsPerms, OpenMode};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags, PathFlags};

use crate::tool::names::NameRules;

/// Path to open, and the mode.
#[derive(Debug, Clone)]
pub(super) struct OpenRequest {
    pub(super) path: String,
    pub(super) link: PathFlags,
    pub(super) open: OpenFlags,
    pub(super) flags: DescriptorFlags,
}

/// Minimum length of a refused path in bytes: the limit of Linux. Elsewhere, each name in it is opened alone.
const MAX_PATH: usize = 4096;

/// Refuses a path that is too long, or that the file system of this system could read as another file than it says.
pub(super) fn refuse_misread(path: &str) -> Result<(), ErrorCode> {
    if path.len() >= MAX_PATH {
        return Err(ErrorCode::NameTooLong);
    }
    match NameRules::HERE.misread(path) {
        Some(_) => Err(ErrorCode::NotPermitted),
        None => Ok(()),
    }
}

impl OpenRequest {
    pub(super) fn follows(&self) -> bool {
        self.link.contains(PathFlags::SYMLINK_FOLLOW)
    }

    pub(super) fn is_folder(&self) -> bool {
        self.open.contains(OpenFlags::DIRECTORY)
    }

    pub(super) fn creates(&self) -> bool {
        self.open.contains(OpenFlags::CREATE)
    }

    pub(super) fn is_exclusive(&self) -> bool {
        self.creates() && self.open.contains(OpenFlags::EXCLUSIVE)
    }

    pub(super) fn truncates(&self) -> bool {
        self.open.contains(OpenFlags::TRUNCATE)
    }

    pub(super) fn writes(&self) -> bool {
        self.creates() || self.truncates() || self.flags.contains(DescriptorFlags::WRITE)
    }

    /// Returns `true` if the file is read. A file without a mode is opened for reading.
    pub(super) fn reads(&self) -> bool {
        self.flags.contains(DescriptorFlags::READ) || !self.flags.contains(DescriptorFlags::WRITE)
    }

    /// Returns `true` if opening would or could change anything.
    pub(super) fn changes(&self) -> bool {
        self.writes() || self.flags.contains(DescriptorFlags::MUTATE_DIRECTORY)
    }

    pub(super) fn mode(&self) -> OpenMode {
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, self.reads());
        mode.set(OpenMode::WRITE, self.writes());
        mode
    }

    /// Refuses a path with names that could be misread, and a mode that folders, or this folder, do not allow.
    pub(super) fn check(&self, perms: FsPerms) -> Result<(), ErrorCode> {
        refuse_misread(&self.path)?;
        let synchronized = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if self.flags.intersects(synchronized) {
            return Err(ErrorCode::Unsupported);
        }
        if self.is_folder() && self.open != OpenFlags::DIRECTORY {
            return Err(ErrorCode::Invalid);
        }
        match perms.write_not_permitted() && self.writes() {
            true => Err(ErrorCode::NotPermitted),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_less_than_4096_bytes() {
        assert!(refuse_misread(&"./".repeat(MAX_PATH / 2 - 1)).is_ok());
        for length in [MAX_PATH / 2, MAX_PATH * 1000] {
            assert!(matches!(refuse_misread(&"./".repeat(length)), Err(ErrorCode::NameTooLong)), "{length}");
        }
    }
}
