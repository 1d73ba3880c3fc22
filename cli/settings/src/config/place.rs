//! Place of the system's settings file, and the owner and writers of unreviewed settings files and of files that give rights.

pub(super) use system::{OWNER_HINT, check, check_rights, system_folder};

#[cfg(unix)]
mod system {
    use std::fs::{File, Metadata};
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use toolcrib::policy::canonical;
    use toolcrib_base::whole_file::folder_of;

    use crate::config::LayerKind;

    /// Advice about a file that others may change.
    pub(in crate::config) const OWNER_HINT: &str = "the file, and the directory of a system file, must belong to you or the \
         administrator, and no other user may write them: `chmod go-w PATH`";

    const OTHERS_WRITE: u32 = 0o002;
    const GROUP_WRITES: u32 = 0o020;
    /// Files of a folder with this bit can be replaced only by their owners.
    const STICKY: u32 = 0o1000;
    const ROOT: u32 = 0;

    pub(in crate::config) fn system_folder() -> Option<PathBuf> {
        Some("/etc/toolcrib".into())
    }

    /// Checks that only the user and the administrator can change an open file. The group of a user's own file is
    /// mostly the user's own. The system file's group is not, and no other user may replace the system file either.
    pub(in crate::config) fn check(file: &File, path: &Path, kind: LayerKind) -> Result<(), String> {
        let unreadable = |error: io::Error| format!("its owner cannot be read: {error}");
        let about = file.metadata().map_err(unreadable)?;
        if kind != LayerKind::System {
            return judge(&about, OTHERS_WRITE, "file");
        }
        judge(&about, OTHERS_WRITE | GROUP_WRITES, "file")?;
        let real = canonical(path).map_err(unreadable)?;
        let (named, real) = (folder_of(path), folder_of(&real));
        for (folder, exempt) in [(named, 0), (real, STICKY)] {
            let about = folder.metadata().map_err(unreadable)?;
            let writers = if about.mode() & exempt == 0 { OTHERS_WRITE | GROUP_WRITES } else { 0 };
            judge(&about, writers, &format!("folder `{}`", folder.display()))?;
        }
        Ok(())
    }

    /// Checks that only the user and the administrator can change an open file that gives rights. The members of a group would give
    /// rights to themselves.
    pub(in crate::config) fn check_rights(file: &File) -> Result<(), String> {
        let about = file.metadata().map_err(|error| format!("its owner cannot be read: {error}"))?;
        judge(&about, OTHERS_WRITE | GROUP_WRITES, "file")
    }

    /// Refuses what `writers` can change, or what belongs to neither the user nor the administrator.
    fn judge(about: &Metadata, writers: u32, what: &str) -> Result<(), String> {
        let user = rustix::process::geteuid().as_raw();
        match (about.mode() & writers, about.uid()) {
            (mode, _) if mode & OTHERS_WRITE != 0 => Err(format!("every user can write the {what}")),
            (mode, _) if mode & GROUP_WRITES != 0 => Err(format!("its group can write the {what}")),
            (_, owner) if owner == user || owner == ROOT => Ok(()),
            (_, owner) => Err(format!("the {what} belongs to another user ({owner})")),
        }
    }
}

#[cfg(windows)]
mod system {
    use std::fs::File;
    use std::path::{Path, PathBuf};

    use toolcrib_windows_files::access::OtherAccess;
    use toolcrib_windows_files::{final_path, pin};

    use crate::config::LayerKind;

    /// Advice about a file that others may change.
    pub(in crate::config) const OWNER_HINT: &str = "the file must belong to you or the administrators, and no other user may \
         write it";

    /// Folder with the settings for all users. Every user can create it, and files in it, if it does not exist.
    pub(in crate::config) fn system_folder() -> Option<PathBuf> {
        let folder = std::env::var_os("ProgramData").map(PathBuf::from)?;
        Some(folder.join("toolcrib"))
    }

    /// Checks that an open file belongs to the user, the system or the administrators, and that nobody else can write it.
    /// The folder of the system's file is no link, which any user could have created, and the open file is in that folder:
    /// it cannot be moved while it is checked.
    pub(in crate::config) fn check(file: &File, path: &Path, kind: LayerKind) -> Result<(), String> {
        let unreadable = |error: std::io::Error| format!("its owner cannot be read: {error}");
        if let (LayerKind::System, Some(folder)) = (kind, path.parent()) {
            let folder = pin(folder, false).map_err(unreadable)?;
            let found = final_path(file).map_err(unreadable)?;
            if found.parent() != Some(final_path(&folder).map_err(unreadable)?.as_path()) {
                return Err(format!("`{}` is or was behind a link", path.display()));
            }
        }
        check_rights(file)
    }

    /// Checks that an open file that gives rights belongs to the user, the system or the administrators, and that nobody else can
    /// write it.
    pub(in crate::config) fn check_rights(file: &File) -> Result<(), String> {
        toolcrib_windows_files::check(file, OtherAccess::Read).map_err(|error| error.to_string())
    }
}
