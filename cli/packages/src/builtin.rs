//! Built-in tools: the shipped tools as one bundle inside of the program. The cache keeps a copy of the bundle, which is
//! loaded like a pulled one. The tools are as trusted as the program: the copy has the bundle's manifest, and every read of a
//! program in it compares the digest that the manifest states.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, ensure};
use serde_json::Value;
use toolcrib::cache::{Cache, HeldFile};
use toolcrib_base::render::Advice;
use toolcrib_bundle::{Digest, MAX_BLOB_SIZE, open_bytes};
use toolcrib_embedded::{BUILTIN_DIGEST as DIGEST, BUILTIN_OUTLINE, BUILTIN_SIZE, BUILTIN_TAR_DIGEST};

/// Name of the built-in tools in place of a source path. A path of this name is written `./builtin`.
pub(crate) const NAME: &str = "builtin";
/// Source of the built-in tools in tables.
pub const LABEL: &str = "built in";

/// Manifest of the tools in the bundle.
const MANIFEST: &str = "tools.json";

/// Part of the bundle that a copy is compared in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of it.
    Whole,
    /// Everything except the content of the programs.
    Outline,
}

/// Copy that this process uses. The cache keeps it until the process ends.
static COPY: OnceLock<HeldFile> = OnceLock::new();
/// Copy that replaced a damaged one in this process.
static MENDED: OnceLock<HeldFile> = OnceLock::new();

/// File of the bundle.
pub struct BuiltinFile {
    /// Path relative to the folder of the tools, with `/` between its parts.
    pub path: String,
    /// Content of the file.
    pub bytes: Vec<u8>,
}

/// Returns `true` if a source is the name of the built-in tools.
pub fn is_named(source: &Path) -> bool {
    source.as_os_str() == NAME
}

/// Returns `true` if a path is the copy that this process uses, or leads into it.
pub fn holds(path: &Path) -> bool {
    COPY.get().is_some_and(|copy| path.starts_with(copy.path()))
}

/// Returns the copy of the bundle in the cache, which is written if it is missing or differs from the bundle.
///
/// # Errors
///
/// There is no cache, it cannot be used, or the program was built without the shipped tools.
pub fn copy(cache: Option<Cache>) -> anyhow::Result<&'static Path> {
    compared(cache, Part::Whole)
}

/// Returns the cached bundle copy for one call: all of it is compared except the programs, and the called tool's
/// program when it is read. After a failure of the call, [`mend`] replaces a damaged copy.
///
/// # Errors
///
/// The errors of [`copy`].
pub fn copy_for_call(cache: Option<Cache>) -> anyhow::Result<&'static Path> {
    compared(cache, Part::Outline)
}

fn compared(cache: Option<Cache>, part: Part) -> anyhow::Result<&'static Path> {
    if let Some(copy) = COPY.get() {
        return Ok(copy.path());
    }
    require()?;
    let cache = cache.ok_or_else(|| {
        let hint = "set one with `--set cache.dir=DIR`";
        Advice::new("no directory for the built-in tools: no home directory was found", hint)
    })?;
    let stored = store(&cache, part)?;
    Ok(COPY.get_or_init(|| stored).path())
}

/// Compares the whole copy that this process uses with the bundle, and replaces a damaged one. Returns `true` if it was damaged.
///
/// # Errors
///
/// The copy cannot be read or replaced.
pub fn mend(cache: Option<Cache>) -> anyhow::Result<bool> {
    let (Some(copy), Some(cache)) = (COPY.get(), cache) else { return Ok(false) };
    if is_equal(copy.file(), Part::Whole)? {
        return Ok(false);
    }
    let stored = store(&cache, Part::Whole)?;
    MENDED.get_or_init(|| stored);
    Ok(true)
}

/// Returns the files of the bundle, each compared with its digest.
///
/// # Errors
///
/// The program is damaged, or was built without the shipped tools.
pub fn files() -> anyhow::Result<Vec<BuiltinFile>> {
    require()?;
    let read = || -> anyhow::Result<Vec<BuiltinFile>> {
        let tar = toolcrib_embedded::builtin()?;
        let mut bundle = open_bytes(&tar)?;
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

/// Returns the names of built-in tools that have one of these names, or one that differs in case and separators alone.
pub fn names_like<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let plain = |name: &str| name.to_lowercase().replace(['-', '.', ' '], "_");
    let names: Vec<String> = names.map(plain).collect();
    let manifest = files().ok().and_then(|files| files.into_iter().find(|file| file.path == MANIFEST));
    let manifest: Value = manifest.and_then(|file| serde_json::from_slice(&file.bytes).ok()).unwrap_or_default();
    let own = manifest["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["name"].as_str());
    own.filter(|own| names.contains(&plain(own))).map(str::to_owned).collect()
}

fn require() -> anyhow::Result<()> {
    let hint = "name a source with `--tools PATH`";
    ensure!(!DIGEST.is_empty(), Advice::new("this build of toolcrib has no built-in tools", hint));
    Ok(())
}

/// Returns the stored copy. One that differs from the bundle in this part is replaced.
fn store(cache: &Cache, part: Part) -> anyhow::Result<HeldFile> {
    let store = || -> anyhow::Result<HeldFile> {
        if let Some(stored) = cache.bundle(DIGEST)? {
            if is_equal(stored.file(), part)? {
                return Ok(stored);
            }
            drop(stored);
            cache.remove_bundle(DIGEST)?;
        }
        let mut copy = cache.new_bundle()?;
        copy.file_mut().write_all(&toolcrib_embedded::builtin()?)?;
        let stored = copy.store(DIGEST)?;
        // Another process may have stored it.
        ensure!(is_equal(stored.file(), part)?, "`{}` changed while it was written", stored.path().display());
        Ok(stored)
    };
    store().context("cannot store the built-in tools in the cache")
}

/// Returns `true` if a file has the size of the bundle's tar file, and its bytes in this part.
fn is_equal(mut file: &File, part: Part) -> io::Result<bool> {
    if file.metadata()?.len() != BUILTIN_SIZE as u64 {
        return Ok(false);
    }
    if part == Part::Whole {
        file.rewind()?;
        return Ok(Digest::of_reader(file)?.to_string() == BUILTIN_TAR_DIGEST);
    }
    let mut found = Vec::new();
    for (start, expected) in BUILTIN_OUTLINE {
        file.seek(SeekFrom::Start(*start as u64))?;
        found.resize(expected.len(), 0);
        match file.read_exact(&mut found) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            read => read?,
        }
        if found != *expected {
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
        let bundle = toolcrib_embedded::builtin().unwrap();
        let path = store(&cache, Part::Whole).unwrap().path().to_owned();
        assert!(std::fs::read(&path).unwrap() == bundle);
        let mut flipped = bundle.clone();
        *flipped.last_mut().unwrap() ^= 1;
        for damaged in [&bundle[1..], b"", &flipped] {
            for part in [Part::Whole, Part::Outline] {
                std::fs::write(&path, damaged).unwrap();
                assert_eq!(store(&cache, part).unwrap().path(), path);
                assert!(std::fs::read(&path).unwrap() == bundle, "{} bytes", damaged.len());
            }
        }
    }

    #[test]
    fn a_program_of_a_copy_that_differs_is_written_again_except_for_one_call() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::folder(folder.path().join("cache"));
        let bundle = toolcrib_embedded::builtin().unwrap();
        let path = store(&cache, Part::Whole).unwrap().path().to_owned();
        let mut flipped = bundle.clone();
        flipped[BUILTIN_OUTLINE[0].1.len()] ^= 1;
        std::fs::write(&path, &flipped).unwrap();
        store(&cache, Part::Outline).unwrap();
        assert!(std::fs::read(&path).unwrap() == flipped);
        store(&cache, Part::Whole).unwrap();
        assert!(std::fs::read(&path).unwrap() == bundle);
    }

    #[test]
    fn the_outline_is_all_but_the_content_of_programs() {
        let bundle = toolcrib_embedded::builtin().unwrap();
        let files = files().unwrap();
        let is_program =
            |bytes: &[u8]| files.iter().any(|file| file.path.ends_with(".wasm") && file.bytes.as_slice() == bytes);
        let (mut at, mut left_out) = (0, 0);
        for (start, part) in BUILTIN_OUTLINE {
            assert!(at == *start || is_program(&bundle[at..*start]), "{at} to {start}");
            assert!(bundle[*start..*start + part.len()] == **part, "{start}");
            (left_out, at) = (left_out + start - at, start + part.len());
        }
        assert_eq!((at, bundle.len()), (BUILTIN_SIZE, BUILTIN_SIZE));
        assert!(left_out > BUILTIN_SIZE / 10 * 9, "{left_out} of {BUILTIN_SIZE} bytes");
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
