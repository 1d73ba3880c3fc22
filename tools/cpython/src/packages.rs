//! Archive of the packages of whoever builds the interpreter.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::steps::read;

/// Maximum bytes of all packages: they are a part of every instance's memory.
const MAX_BYTES: u64 = 16 << 20;
/// Maximum depth of folders.
const MAX_DEPTH: usize = 32;

/// Returns the archive of a folder with packages; an empty one without a folder.
///
/// # Errors
///
/// The folder cannot be read, has a module in native code, or too many bytes.
pub(crate) fn archive(folder: Option<&Path>) -> Result<Vec<u8>, String> {
    let mut files = Vec::new();
    let mut left = MAX_BYTES;
    if let Some(folder) = folder {
        collect(folder, "", MAX_DEPTH, &mut left, &mut files)?;
    }
    // The same folder gives the same bytes.
    files.sort();
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in files {
        let written = archive.start_file(&name, options).map_err(|error| error.to_string());
        written.and_then(|()| archive.write_all(&bytes).map_err(|error| error.to_string()))?;
    }
    archive.finish().map(Cursor::into_inner).map_err(|error| error.to_string())
}

fn collect(
    folder: &Path,
    prefix: &str,
    depth: usize,
    left: &mut u64,
    files: &mut Vec<(String, Vec<u8>)>,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read `{}`: {error}", folder.display());
    let depth = depth.checked_sub(1).ok_or_else(|| format!("`{}` is nested too deeply", folder.display()))?;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let metadata = entry.metadata().map_err(failed)?;
        if metadata.is_dir() && name != "__pycache__" {
            collect(&path, &format!("{prefix}{name}/"), depth, left, files)?;
        } else if metadata.is_symlink() {
            return Err(format!("`{}` is a symbolic link", path.display()));
        } else if metadata.is_file() {
            if [".so", ".pyd", ".dylib"].iter().any(|native| name.ends_with(native)) {
                return Err(format!("`{}` is native code, which this interpreter cannot load", path.display()));
            }
            let more = format!("the packages have more than {MAX_BYTES} bytes");
            *left = left.checked_sub(metadata.len()).ok_or(more)?;
            files.push((format!("{prefix}{name}"), read(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn refused(fill: impl FnOnce(&Path)) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("good.py"), "x = 1").expect("a file");
        assert!(archive(Some(folder.path())).is_ok());
        fill(folder.path());
        archive(Some(folder.path())).expect_err("packages that are refused")
    }

    #[test]
    fn a_folder_is_an_archive_with_the_same_bytes_each_time() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("pack/__pycache__")).expect("a folder");
        for name in ["pack/b.py", "pack/a.py", "pack/__pycache__/a.pyc"] {
            fs::write(folder.path().join(name), name).expect("a file");
        }
        let bytes = archive(Some(folder.path())).expect("an archive");
        assert_eq!(archive(Some(folder.path())).expect("an archive"), bytes);
        let names = |wanted: &str| bytes.windows(wanted.len()).any(|part| part == wanted.as_bytes());
        assert!(names("pack/a.py") && names("pack/b.py") && !names("a.pyc"));
    }

    #[test]
    fn native_code_links_and_too_much_of_everything_are_refused() {
        let native = refused(|folder| fs::write(folder.join("fast.cpython-314.so"), "").expect("a file"));
        assert!(native.contains("native code"), "{native}");
        let large = refused(|folder| {
            let file = File::create(folder.join("large.py")).expect("a file");
            file.set_len(MAX_BYTES).expect("a length");
        });
        assert!(large.contains("more than 16777216 bytes"), "{large}");
        let deep = refused(|folder| {
            fs::create_dir_all(folder.join("d/".repeat(MAX_DEPTH))).expect("folders");
        });
        assert!(deep.contains("nested too deeply"), "{deep}");
        #[cfg(unix)]
        {
            let link = refused(|folder| {
                std::os::unix::fs::symlink("good.py", folder.join("link.py")).expect("a link");
            });
            assert!(link.contains("symbolic link"), "{link}");
        }
    }
}
