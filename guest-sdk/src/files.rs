//! File access: bounded reads, and writes that replace a file as a whole. Knows no tool and decides no grant.

mod tree;

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Component, Path, PathBuf};

use crate::{Error, PathContext, error};

pub use tree::Tree;

/// Maximum symbolic links that [`replace`] follows to the file.
const MAX_LINKS: usize = 8;

/// Reads a file of at most `limit` bytes.
///
/// # Errors
///
/// If the file cannot be read, is a folder, or is larger than `limit`.
pub fn read(path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, Error> {
    let path = path.as_ref();
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).at("read", path)?;
    if bytes.len() as u64 > limit {
        return Err(error!("read `{}`: the file is over the limit of {limit} bytes", path.display()));
    }
    Ok(bytes)
}

/// Returns the folder of a file if the folder does not exist. Without a granted folder, no folder is missing.
pub fn missing_parent(path: &Path) -> Option<&Path> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty())?;
    let found = fs::metadata(parent).err().map(|error| error.kind());
    (fs::metadata("/").is_ok() && found == Some(ErrorKind::NotFound)).then_some(parent)
}

/// Normalizes a path by its text alone: the working folder is the root, so `x`, `./x`, `/x` and `y/../x` are the same path.
pub fn from_root(path: &str) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => drop(normal.pop()),
            _ => {}
        }
    }
    normal
}

/// Reads a UTF-8 text file of at most `limit` bytes.
///
/// # Errors
///
/// As for [`read`], and if the file is not UTF-8.
pub fn read_text(path: impl AsRef<Path>, limit: u64) -> Result<String, Error> {
    let path = path.as_ref();
    String::from_utf8(read(path, limit)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        error!("read `{}`: the file is not UTF-8 text (byte {at})", path.display())
    })
}

/// Opens a regular file for reading. A folder is refused, and so is a pipe or a device, which could block the call.
///
/// # Errors
///
/// If the file cannot be opened or is not a regular one.
pub fn open(path: impl AsRef<Path>) -> Result<File, Error> {
    let path = path.as_ref();
    let found = fs::metadata(path).at("read", path)?;
    if found.is_dir() {
        return Err::<File, _>(io::Error::from(ErrorKind::IsADirectory)).at("read", path);
    }
    if !found.is_file() {
        return Err(error!("read `{}`: it is not a regular file", path.display()));
    }
    File::open(path).at("read", path)
}

/// Replaces a file as a whole: writes the bytes to a new file in the same folder, and renames it.
///
/// A symbolic link is followed, and its target is replaced. The host gives the new file the mode of the replaced one, where it
/// can, and refuses to replace a read-only file. Where the folder takes no new file, because only this one is granted, the file is
/// written in its place.
///
/// # Errors
///
/// If the file cannot be written; its previous content is then unchanged, unless it was written in its place.
pub fn replace(path: impl AsRef<Path>, bytes: &[u8]) -> Result<(), Error> {
    let path = path.as_ref();
    replace_with(path, |file| {
        file.write_all(bytes)?;
        file.sync_all()
    })
    .at("write", path)
}

/// Copies the bytes of a regular file to a path, and returns their number. The file at the path is replaced as by [`replace`], or
/// created; it does not get the mode of the copied file.
///
/// # Errors
///
/// If the file cannot be read, is larger than `limit` bytes, or cannot be written; the file at the path is then unchanged, as for
/// [`replace`].
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>, limit: u64) -> Result<u64, Error> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let mut source = open(from)?.take(limit.saturating_add(1));
    let replaces = fs::metadata(to).is_ok();
    let mut bytes = 0;
    replace_with(to, |file| {
        bytes = io::copy(&mut source, file)?;
        match bytes > limit {
            true => Err(io::Error::other(format!("`{}` is over the limit of {limit} bytes", from.display()))),
            // Only a replaced file has content that a crash of the system could lose.
            false if replaces => file.sync_all(),
            false => Ok(()),
        }
    })
    .at("write", to)?;
    Ok(bytes)
}

/// Replaces a file by one that a function writes.
fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let target = follow(path)?;
    let (temporary, mut file) = match create_beside(&target) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && target.is_file() => {
            return write(&mut OpenOptions::new().write(true).truncate(true).open(&target)?);
        }
        created => created?,
    };
    let written = write(&mut file);
    drop(file);
    let written = written.and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        // The first failure is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Creates an empty file in the folder of `target`.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let name = format!(".toolcrib-{:016x}.tmp", RandomState::new().hash_one(target));
        let temporary = target.with_file_name(name);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Resolves the symbolic links at the end of `path`. The sandbox checks every step as it checks any path.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    for _ in 0..=MAX_LINKS {
        match fs::symlink_metadata(&target) {
            Ok(found) if found.is_symlink() => {
                let link = fs::read_link(&target)?;
                target.pop();
                target.push(link);
            }
            _ => return Ok(target),
        }
    }
    Err(io::Error::other(format!("more than {MAX_LINKS} symbolic links in a row")))
}
