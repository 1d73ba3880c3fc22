//! The SDK for tools in Rust that the program embeds: the sources of this version.

use std::fs;
use std::io;
use std::path::Path;

use toolcrib_embedded::SDK;

/// Lock file of the SDK, used as the initial lock file of a package.
const LOCK: &str = "Cargo.lock";
/// Folder with the output of builds, and nothing that they read.
const OUTPUT: &str = "target";
/// Folder of the SDK in a package.
pub const FOLDER: &str = "sdk";
/// Folder of the crate that tools depend on, in the SDK folder.
pub(crate) const CRATE: &str = "guest-sdk";

/// Returns `true` if the program has no SDK.
pub fn is_empty() -> bool {
    SDK.is_empty()
}

/// Returns the lock file with its name.
pub fn lock_file() -> Option<(&'static str, &'static str)> {
    SDK.iter().copied().find(|(path, _)| *path == LOCK)
}

/// Returns the sources with their paths in the folder of the SDK.
pub(crate) fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    SDK.iter().copied().filter(|(path, _)| *path != LOCK)
}

/// Returns `true` if a folder holds the sources of this version, unchanged and without others in the folders of the crates.
pub(crate) fn is_unchanged(folder: &Path) -> bool {
    let is_same = |(path, text): (&str, &str)| fs::read_to_string(folder.join(path)).is_ok_and(|own| own == text);
    !is_empty() && sources().all(is_same) && has_no_others(folder, Path::new(""))
}

/// Returns `true` if all files below a folder of the SDK are sources of this version, except for the output of builds.
fn has_no_others(folder: &Path, below: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder.join(below)) else { return false };
    entries.flatten().all(|entry| {
        let path = below.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => entry.file_name() == OUTPUT || has_no_others(folder, &path),
            Ok(_) => path == Path::new(LOCK) || sources().any(|(source, _)| Path::new(source) == path),
            Err(_) => false,
        }
    })
}

/// Writes the sources to a folder.
///
/// # Errors
///
/// A file cannot be written.
pub fn write(folder: &Path) -> io::Result<()> {
    for (path, text) in sources() {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sdk_stands_alone() {
        let text = |path: &str| SDK.iter().find(|(name, _)| *name == path).expect(path).1;
        for (path, text) in SDK.iter().filter(|(path, _)| path.ends_with("Cargo.toml")) {
            assert!(text.contains("version = \"") && !text.contains("workspace"), "{path}: {text}");
        }
        assert!(
            text("guest-sdk/src/lib.rs").starts_with("//!") && text("wit/tool/tool.wit").contains("interface call")
        );
        let lock = text("Cargo.lock");
        assert!(lock.contains("name = \"toolcrib-guest\"") && lock.contains("name = \"serde_json\""), "{lock}");
        assert!(!lock.contains("name = \"starlark\""), "only what the SDK needs");
    }

    #[test]
    fn a_changed_sdk_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_unchanged(folder.path()));
        write(folder.path()).unwrap();
        assert!(is_unchanged(folder.path()));
        fs::write(folder.path().join("guest-sdk/src/lib.rs"), "//! mine").unwrap();
        assert!(!is_unchanged(folder.path()));
        write(folder.path()).unwrap();
        fs::create_dir_all(folder.path().join("guest-sdk/target/debug")).unwrap();
        fs::write(folder.path().join("guest-sdk/target/debug/x"), "").unwrap();
        assert!(is_unchanged(folder.path()));
        fs::write(folder.path().join("guest-sdk/build.rs"), "fn main() {}").unwrap();
        assert!(!is_unchanged(folder.path()), "a file of the author");
    }
}
