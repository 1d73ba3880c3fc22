//! Place of the system's settings file, and the owner of settings files that nobody reviews.

/// Advice about a file that others may change.
pub(super) const OWNER_HINT: &str = "let the file belong to you or to the administrator, and let nobody else write it: \
                                     `chmod go-w FILE`";

pub(super) use system::{check_owner, system_folder};

#[cfg(unix)]
mod system {
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    /// Permission of everybody to write.
    const OTHERS_WRITE: u32 = 0o002;
    const ROOT: u32 = 0;

    pub(in crate::config) fn system_folder() -> Option<PathBuf> {
        Some("/etc/toolcrib".into())
    }

    /// Returns the reason why others may change a file. An unreadable file has none: reading it reports the error.
    pub(in crate::config) fn check_owner(path: &Path) -> Result<(), String> {
        let Ok(file) = path.metadata() else { return Ok(()) };
        let user = rustix::process::geteuid().as_raw();
        match file.uid() {
            _ if file.mode() & OTHERS_WRITE != 0 => Err("every user can write the file".to_owned()),
            owner if owner == user || owner == ROOT => Ok(()),
            owner => Err(format!("the file belongs to another user ({owner})")),
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::path::{Path, PathBuf};

    /// Folder of the settings of all users; only administrators write there.
    pub(in crate::config) fn system_folder() -> Option<PathBuf> {
        let folder = std::env::var_os("ProgramData").map(PathBuf::from)?;
        Some(folder.join("toolcrib"))
    }

    /// Access lists of Windows are not read.
    #[expect(clippy::unnecessary_wraps, reason = "the other systems refuse files")]
    pub(in crate::config) fn check_owner(_: &Path) -> Result<(), String> {
        Ok(())
    }
}
