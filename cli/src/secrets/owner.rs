//! Files that are their owner's alone: made so, and refused where they are not. No link is followed in their place.

pub(super) use system::{make_folder, open, options};

#[cfg(unix)]
mod system {
    use std::fs::{self, DirBuilder, File, OpenOptions};
    use std::io::{self, ErrorKind};
    use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
    use std::path::Path;

    use rustix::fs::OFlags;

    /// Makes a folder and those above it that are missing, and refuses one in which others could replace files.
    pub(in super::super) fn make_folder(folder: &Path) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let about = fs::metadata(folder)?;
        let ours = about.uid() == rustix::process::geteuid().as_raw();
        if ours && about.mode() & 0o022 == 0 {
            return Ok(());
        }
        Err(io::Error::other(format!("its folder `{}` belongs to or can be written by someone else", folder.display())))
    }

    /// Options that make a file for the owner alone, follow no link, and wait for nobody at the other end of a FIFO.
    pub(in super::super) fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
        options
    }

    /// Opens a file for reading; `None` where there is none.
    pub(in super::super) fn open(path: &Path) -> io::Result<Option<File>> {
        let file = match options().read(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(_) if path.is_symlink() => return Err(io::Error::other("it is a link, and no link is followed here")),
            opened => opened?,
        };
        let about = file.metadata()?;
        if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("it is no file, or belongs to someone else"));
        }
        if about.mode() & 0o077 != 0 {
            let mode = about.mode() & 0o777;
            return Err(io::Error::other(format!("others may use it (its mode is {mode:04o}): run `chmod 600` on it")));
        }
        Ok(Some(file))
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::{self, File, OpenOptions};
    use std::io::{self, ErrorKind};
    use std::path::Path;

    /// Makes a folder and those above it that are missing. A user's folders are private by inheritance.
    pub(in super::super) fn make_folder(folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)
    }

    /// Options that make a file with the rights of its folder.
    pub(in super::super) fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Opens a file for reading; `None` where there is none. Nothing is told of its rights here.
    pub(in super::super) fn open(path: &Path) -> io::Result<Option<File>> {
        match options().read(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }
}
