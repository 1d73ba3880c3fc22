//! Source files, on disk or inside a bundle: a path below a bundle names a file in it. Dialects reach the file system
//! only through this module.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bundle::{self, Kind, OpenBundle};

/// Length of a file's beginning, in bytes.
const MAX_BEGINNING: u64 = 256;

/// Existing file or folder of a source.
enum Entry {
    Disk(Metadata),
    /// File or folder of a bundle, with its path inside.
    Bundled(Arc<OpenBundle>, String, Kind),
}

/// Finds the file or folder at a path.
fn entry(path: &Path) -> io::Result<Entry> {
    let error = match path.metadata() {
        Ok(found) => return Ok(Entry::Disk(found)),
        Err(error) => error,
    };
    match error.kind() {
        // A file has nothing below it, unless it is a bundle.
        ErrorKind::NotFound | ErrorKind::NotADirectory => {}
        _ => return Err(error),
    }
    let Some((bundle, inner)) = bundle::containing(path)? else { return Err(error) };
    match bundle.kind(&inner) {
        Some(kind) => Ok(Entry::Bundled(bundle, inner, kind)),
        None => Err(bundle::missing()),
    }
}

/// Returns `true` if a path is a file, of any kind on disk.
pub(super) fn exists(path: &Path) -> bool {
    entry(path).is_ok()
}

/// Returns `true` if a path is a regular file.
pub(super) fn is_file(path: &Path) -> bool {
    match entry(path) {
        Ok(Entry::Disk(found)) => found.is_file(),
        Ok(Entry::Bundled(_, _, kind)) => kind == Kind::File,
        Err(_) => false,
    }
}

/// Returns `true` if a path is a folder. The root of a bundle counts as its file.
pub(super) fn is_folder(path: &Path) -> bool {
    match entry(path) {
        Ok(Entry::Disk(found)) => found.is_dir(),
        Ok(Entry::Bundled(_, _, kind)) => kind == Kind::Folder,
        Err(_) => false,
    }
}

/// Returns `true` if a path is inside of a bundle, existing or not.
pub(super) fn is_bundled(path: &Path) -> bool {
    bundle::containing(path).is_ok_and(|found| found.is_some())
}

/// Lists the paths in a folder, which may be the root of a bundle.
///
/// # Errors
///
/// The folder cannot be read.
pub(super) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (bundle, inner) = match entry(folder)? {
        Entry::Bundled(bundle, inner, _) => (bundle, inner),
        Entry::Disk(_) => match bundle::at(folder) {
            Some(bundle) => (bundle?, String::new()),
            None => return Ok(folder.read_dir()?.filter_map(|entry| Some(entry.ok()?.path())).collect()),
        },
    };
    Ok(bundle.names(&inner).into_iter().map(|name| folder.join(name)).collect())
}

/// Reads a regular file of at most `max` bytes.
///
/// # Errors
///
/// [`ErrorKind::NotFound`], [`ErrorKind::FileTooLarge`], or another reason why the file cannot be read.
pub(super) fn read(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let found = match entry(path)? {
        Entry::Disk(found) => found,
        Entry::Bundled(bundle, inner, Kind::File) => return bundle.read(&inner, max),
        Entry::Bundled(..) => return Err(not_regular()),
    };
    let mut file = open(path, &found, max)?;
    // Its size is known, so that the bytes of a large program do not move while they are read. One more finds the end.
    let mut bytes = Vec::with_capacity(usize::try_from(found.len() + 1).map_err(io::Error::other)?);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

/// Returns the digest and size of a regular file with at most `max` bytes, read without keeping it in memory.
///
/// # Errors
///
/// As for [`read`].
pub(super) fn facts(path: &Path, max: u64) -> io::Result<(String, u64)> {
    let found = match entry(path)? {
        Entry::Disk(found) => found,
        Entry::Bundled(bundle, inner, _) => return bundled(&bundle, &inner).ok_or_else(not_regular),
    };
    let (digest, bytes) = toolcrib_component::digest_of(open(path, &found, max)?)?;
    if bytes > max { Err(ErrorKind::FileTooLarge.into()) } else { Ok((digest, bytes)) }
}

/// Returns the digest and size of a file in a bundle, which every read checks; `None` for a file on disk.
pub(super) fn bundled_facts(path: &Path) -> Option<(String, u64)> {
    match entry(path).ok()? {
        Entry::Disk(_) => None,
        Entry::Bundled(bundle, inner, _) => bundled(&bundle, &inner),
    }
}

fn bundled(bundle: &OpenBundle, inner: &str) -> Option<(String, u64)> {
    bundle.facts(inner).map(|(digest, bytes)| (digest.to_owned(), bytes))
}

/// Opens a regular file on disk. At most one byte more than `max` can be read from it.
fn open(path: &Path, found: &Metadata, max: u64) -> io::Result<io::Take<File>> {
    match found.is_file() {
        true if found.len() > max => Err(ErrorKind::FileTooLarge.into()),
        true => Ok(File::open(path)?.take(max + 1)),
        false => Err(not_regular()),
    }
}

/// Returns `true` if a file begins as WebAssembly.
///
/// # Errors
///
/// The file cannot be read, or is no regular file.
pub(super) fn is_wasm(path: &Path) -> io::Result<bool> {
    match entry(path)? {
        // Every read of a listed program checks its first bytes.
        Entry::Bundled(bundle, inner, Kind::File) => return Ok(bundle.lists_program(&inner)),
        Entry::Disk(found) if found.is_file() => {}
        _ => return Err(not_regular()),
    }
    let mut magic = [0; 4];
    match File::open(path)?.read_exact(&mut magic) {
        Ok(()) => Ok(magic == *b"\0asm"),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the first bytes of a file on disk, enough to tell its format.
///
/// # Errors
///
/// The file cannot be read.
pub(super) fn beginning(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BEGINNING).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the size of a file in bytes.
pub(super) fn size(path: &Path) -> Option<u64> {
    match entry(path).ok()? {
        Entry::Disk(found) => Some(found.len()),
        Entry::Bundled(bundle, inner, _) => bundle.facts(&inner).map(|(_, bytes)| bytes),
    }
}

/// Returns the one absolute path of a file without links.
///
/// # Errors
///
/// The file does not exist.
pub(super) fn canonical(path: &Path) -> io::Result<PathBuf> {
    match entry(path)? {
        Entry::Disk(_) => crate::tool::names::canonical(path),
        Entry::Bundled(bundle, inner, _) => Ok(bundle.join(&inner)),
    }
}

fn not_regular() -> io::Error {
    io::Error::other("not a regular file")
}

#[cfg(test)]
mod tests {
    use toolcrib_bundle::{BundleBuilder, MediaType, Metadata};

    use super::*;

    const MODULE: &[u8] = b"\0asm\x01\0\0\0";

    /// Creates a bundle with a manifest and a program.
    fn bundle(folder: &Path, manifest: &[u8]) -> PathBuf {
        let mut builder = BundleBuilder::new(Metadata::new("sample", "1.0.0")).unwrap();
        builder.add_bytes("tools.json", MediaType::TOOLS_JSON, manifest).unwrap();
        builder.add_bytes("tools/bin/x.wasm", MediaType::WASM, MODULE).unwrap();
        let path = folder.join("x.tar");
        builder.write_to(File::create(&path).unwrap()).unwrap();
        path
    }

    #[test]
    fn a_path_below_a_bundle_is_a_file_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let tar = bundle(folder.path(), b"{}");
        assert!(is_file(&tar.join("tools.json")) && is_folder(&tar.join("tools/bin")) && is_file(&tar));
        assert!(!is_folder(&tar) && !exists(&tar.join("tools/other")) && is_bundled(&tar.join("tools/other")));
        assert_eq!(list(&tar).unwrap(), ["tools", "tools.json"].map(|name| tar.join(name)));
        assert_eq!(list(&tar.join("tools")).unwrap(), [tar.join("tools/bin")]);
        assert_eq!(read(&tar.join("tools.json"), 2).unwrap(), b"{}");
        assert_eq!(read(&tar.join("tools.json"), 1).unwrap_err().kind(), ErrorKind::FileTooLarge);
        assert!(is_wasm(&tar.join("tools/./bin/x.wasm")).unwrap() && !is_wasm(&tar.join("tools.json")).unwrap());
        assert_eq!(canonical(&tar.join("tools/./bin/x.wasm")).unwrap(), tar.join("tools/bin/x.wasm"));
        assert!(!is_bundled(folder.path()) && bundled_facts(&tar).is_none());
    }

    #[cfg(unix)]
    #[test]
    fn no_path_leads_out_of_a_bundle_and_none_into_another_file() {
        let folder = tempfile::tempdir().unwrap();
        let tar = bundle(folder.path(), b"{}");
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        for path in ["../secret", "tools/../../secret", "..", "tools/../tools.json"] {
            assert!(read(&tar.join(path), 9).is_err(), "{path}");
        }
        assert!(read(&folder.path().join("secret/tools.json"), 9).is_err());
    }

    #[test]
    fn a_bundle_is_open_once_as_long_as_somebody_holds_it_and_a_changed_one_is_opened_anew() {
        let folder = tempfile::tempdir().unwrap();
        let tar = bundle(folder.path(), b"{}");
        let held = bundle::at(&tar).unwrap().unwrap();
        File::options().write(true).open(&tar).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(held.fault(), None, "the time of the last use is not content");
        let held = bundle::at(&tar).unwrap().unwrap();
        assert!(Arc::ptr_eq(&held, &bundle::containing(&tar.join("tools.json")).unwrap().unwrap().0));
        assert_eq!(held.fault(), None);
        bundle(folder.path(), b"{ }");
        assert!(held.fault().is_some());
        assert_ne!(bundle::at(&tar).unwrap().unwrap().digest(), held.digest());
    }
}
