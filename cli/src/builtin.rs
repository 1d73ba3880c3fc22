//! Built-in tools: the shipped tools as one bundle inside of the program. The cache keeps a copy of the bundle, which is
//! loaded like a pulled one. The tools are as trusted as the program.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, ensure};
use toolcrib::cache::{Cache, HeldFile};
use toolcrib_bundle::{MAX_BLOB_SIZE, open_bytes};

use crate::render::Advice;

/// Name of the built-in tools in place of the path of a source. A path of this name is written `./builtin`.
pub(crate) const NAME: &str = "builtin";
/// Source of the built-in tools in tables.
pub(crate) const LABEL: &str = "built in";

/// Tar file of the bundle; empty in a build without the shipped tools.
static BUNDLE: &[u8] = include_bytes!(env!("TOOLCRIB_BUILTIN"));
/// Digest of the bundle.
const DIGEST: &str = env!("TOOLCRIB_BUILTIN_DIGEST");
/// Size of the parts in which a copy is compared with the bundle.
const PART: usize = 64 << 10;

/// Copy that this process uses. The cache keeps it until the process ends.
static COPY: OnceLock<HeldFile> = OnceLock::new();

/// File of the bundle.
pub(crate) struct BuiltinFile {
    /// Path relative to the folder of the tools, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

/// Returns `true` if a source is the name of the built-in tools.
pub(crate) fn is_named(source: &Path) -> bool {
    source.as_os_str() == NAME
}

/// Returns `true` if a path is the copy that this process uses, or leads into it.
pub(crate) fn holds(path: &Path) -> bool {
    COPY.get().is_some_and(|copy| path.starts_with(copy.path()))
}

/// Returns the copy of the bundle in the cache, which is written if it is missing or differs from the bundle.
///
/// # Errors
///
/// There is no cache, it cannot be used, or the program was built without the shipped tools.
pub(crate) fn copy(cache: Option<Cache>) -> anyhow::Result<&'static Path> {
    if let Some(copy) = COPY.get() {
        return Ok(copy.path());
    }
    require()?;
    let cache = cache.ok_or_else(|| {
        let hint = "set one with `--cache-dir DIR`";
        Advice::new("no folder for the built-in tools: no home directory was found", hint)
    })?;
    let stored = store(&cache).context("cannot store the built-in tools in the cache")?;
    Ok(COPY.get_or_init(|| stored).path())
}

/// Returns the files of the bundle, each compared with its digest.
///
/// # Errors
///
/// The program is damaged, or was built without the shipped tools.
pub(crate) fn files() -> anyhow::Result<Vec<BuiltinFile>> {
    require()?;
    let read = || -> anyhow::Result<Vec<BuiltinFile>> {
        let mut bundle = open_bytes(BUNDLE)?;
        ensure!(bundle.digest().to_string() == DIGEST, "the bundle has the digest {}", bundle.digest());
        let paths: Vec<String> = bundle.files().iter().map(|file| file.path.to_string()).collect();
        let file = |path: String| -> anyhow::Result<BuiltinFile> {
            let bytes = bundle.read_file(&path)?.into_vec(MAX_BLOB_SIZE)?;
            Ok(BuiltinFile { path, bytes })
        };
        paths.into_iter().map(file).collect()
    };
    read().context("this program is damaged: its built-in tools cannot be read")
}

fn require() -> anyhow::Result<()> {
    let hint = "name a source with `--tools PATH`";
    ensure!(!BUNDLE.is_empty(), Advice::new("this build of toolcrib has no built-in tools", hint));
    Ok(())
}

/// Returns the stored copy. A damaged one is replaced.
fn store(cache: &Cache) -> anyhow::Result<HeldFile> {
    if let Some(stored) = cache.bundle(DIGEST)? {
        if is_equal(stored.file())? {
            return Ok(stored);
        }
        drop(stored);
        cache.remove_bundle(DIGEST)?;
    }
    let mut copy = cache.new_bundle()?;
    copy.file_mut().write_all(BUNDLE)?;
    let stored = copy.store(DIGEST)?;
    // It may be that of another process.
    ensure!(is_equal(stored.file())?, "`{}` changed while it was written", stored.path().display());
    Ok(stored)
}

/// Returns `true` if a file has the bytes of the bundle.
fn is_equal(mut file: &File) -> io::Result<bool> {
    if file.metadata()?.len() != BUNDLE.len() as u64 {
        return Ok(false);
    }
    file.rewind()?;
    let mut part = vec![0; PART];
    for expected in BUNDLE.chunks(PART) {
        let part = &mut part[..expected.len()];
        match file.read_exact(part) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if part != expected {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_alone_is_the_built_in_tools() {
        assert!(is_named(Path::new("builtin")));
        for path in ["./builtin", "builtin/", "Builtin", "builtin/tools.json", ""] {
            assert!(!is_named(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn a_copy_that_differs_in_any_way_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::folder(folder.path().join("cache"));
        let path = store(&cache).unwrap().path().to_owned();
        assert_eq!(std::fs::read(&path).unwrap(), BUNDLE);
        let mut flipped = BUNDLE.to_vec();
        *flipped.last_mut().unwrap() ^= 1;
        for damaged in [&BUNDLE[1..], b"", &flipped] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(store(&cache).unwrap().path(), path);
            assert!(std::fs::read(&path).unwrap() == BUNDLE, "{} bytes", damaged.len());
        }
    }

    #[test]
    fn the_bundle_has_a_manifest_and_the_programs_that_it_names() {
        let files = files().unwrap();
        let manifest = files.iter().find(|file| file.path == "tools.json").unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest.bytes).unwrap();
        let named = manifest["tools"].as_array().unwrap().iter().map(|tool| tool["command"][0].as_str().unwrap());
        let mut named: Vec<_> = named.map(|program| format!("{}.wasm", program.trim_start_matches("./"))).collect();
        named.sort();
        named.dedup();
        let programs = files.iter().filter(|file| file.path != "tools.json");
        let mut programs: Vec<_> = programs.map(|file| file.path.clone()).collect();
        programs.sort();
        assert_eq!(programs, named);
        assert!(!named.is_empty());
    }
}
