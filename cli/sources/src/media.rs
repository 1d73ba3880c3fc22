//! Folder for media shown by tools: opened once, held by its handle, and reserved so that no tool can write it.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use toolcrib::Builder;
use toolcrib::call::Media;
use toolcrib::tool::Access;
use toolcrib_base::render::Advice;

/// Maximum number of files with the same name.
const MAX_NUMBER: usize = 1000;

/// A folder for media.
#[derive(Debug)]
pub struct MediaFolder {
    path: PathBuf,
    handle: File,
}

impl MediaFolder {
    /// Opens the folder, creating it if needed. A symbolic link is rejected: a tool could have created it.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        // Removes a trailing slash or dot, which would make the path refer to the link's target.
        let path: PathBuf = path.components().collect();
        let context = || format!("cannot save media in `{}`", path.display());
        if path.is_symlink() {
            let hint = "pass its target folder with `--set records.media_dir=DIR`";
            return Err(
                Advice::new(format!("{}: it is a link, which a tool could have created", context()), hint).into()
            );
        }
        std::fs::create_dir_all(&path).with_context(context)?;
        let handle = system::open(&path).with_context(context)?;
        Ok(Self { path, handle })
    }

    /// Reserves the folder so that no grant covers it.
    pub fn keep_apart(&self, builder: Builder) -> Builder {
        builder.reserve("saved media", &self.path, Access::Write)
    }

    /// Saves media under their name, with a number if it is taken. Never overwrites a file.
    pub fn save(&self, media: &Media) -> anyhow::Result<PathBuf> {
        let context = || format!("cannot save media in `{}`", self.path.display());
        let ending = media.mime_type.split('/').nth(1).unwrap_or("bin").split('+').next().unwrap_or("bin").to_owned();
        let own = media.name.clone().unwrap_or_else(|| format!("media.{ending}"));
        let names = std::iter::once(own.clone()).chain((2..MAX_NUMBER).map(|number| format!("{number}-{own}")));
        for name in names {
            match system::create(&self.handle, &self.path, &name) {
                Ok(mut file) => {
                    file.write_all(&media.data).with_context(context)?;
                    return Ok(self.path.join(name));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(context),
            }
        }
        anyhow::bail!("{}: a thousand files with that name already exist", context())
    }
}

#[cfg(unix)]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use rustix::fs::{Mode, OFlags, openat};

    /// Opens a folder; fails on a symbolic link.
    pub(super) fn open(path: &Path) -> io::Result<File> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::open(path, flags, Mode::empty()).map(File::from)?)
    }

    /// Creates a file in the opened folder, even if its path was replaced.
    pub(super) fn create(folder: &File, _: &Path, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(folder, name, flags, Mode::from_raw_mode(0o666)).map(File::from)?)
    }
}

#[cfg(windows)]
mod system {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use toolcrib_windows_files::{create_in, is_reparse_point, pin};

    /// Opens a folder, which stays at its path until it is closed; fails on a link.
    pub(super) fn open(path: &Path) -> io::Result<File> {
        let folder = pin(path, false)?;
        match folder.metadata()? {
            about if about.is_dir() && !is_reparse_point(&about) => Ok(folder),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Creates a file in the opened folder.
    pub(super) fn create(folder: &File, _: &Path, name: &str) -> io::Result<File> {
        create_in(folder, name)
    }
}
