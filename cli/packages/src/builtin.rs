//! Built-in tools: the shipped tools as one bundle inside of the program. The cache keeps a copy of the bundle, which is
//! loaded like a pulled one. The tools are as trusted as the program: the copy has the bundle's manifest, and every read of a
//! program in it compares the digest that the manifest states.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, ensure};
use serde_json::Value;
use toolcrib::cache::{Cache, HeldFile};
use toolcrib_base::render::Advice;
use toolcrib_bundle::{MAX_BLOB_SIZE, open_bytes};
use toolcrib_embedded::{BUILTIN as BUNDLE, BUILTIN_DIGEST as DIGEST};

/// Name of the built-in tools in place of the path of a source. A path of this name is written `./builtin`.
pub(crate) const NAME: &str = "builtin";
/// Source of the built-in tools in tables.
pub const LABEL: &str = "built in";

/// Manifest of the tools in the bundle.
const MANIFEST: &str = "tools.json";

/// Size of the parts in which a copy is compared with the bundle.
const PART: usize = 64 << 10;
/// Size of a block of a tar file: entries begin at its multiples, each with a header of one block.
const BLOCK: usize = 512;
/// Position of the size of an entry in its header, in octal digits.
const SIZE: Range<usize> = 124..135;
/// Maximum size of an entry that is compared for one call: the documents of the bundle are smaller, nearly all programs larger.
const MAX_COMPARED: usize = 64 << 10;

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
    compared(cache, &whole())
}

/// Returns the cached bundle copy for one call: all of it is compared except the programs, and the called tool's
/// program when it is read. After a failure of the call, [`mend`] replaces a damaged copy.
///
/// # Errors
///
/// The errors of [`copy`].
pub fn copy_for_call(cache: Option<Cache>) -> anyhow::Result<&'static Path> {
    compared(cache, &without_programs(BUNDLE))
}

fn compared(cache: Option<Cache>, ranges: &[Range<usize>]) -> anyhow::Result<&'static Path> {
    if let Some(copy) = COPY.get() {
        return Ok(copy.path());
    }
    require()?;
    let cache = cache.ok_or_else(|| {
        let hint = "set one with `--cache-dir DIR`";
        Advice::new("no folder for the built-in tools: no home directory was found", hint)
    })?;
    let stored = store(&cache, ranges)?;
    Ok(COPY.get_or_init(|| stored).path())
}

/// Compares the whole copy that this process uses with the bundle, and replaces a damaged one. Returns `true` if it was damaged.
///
/// # Errors
///
/// The copy cannot be read or replaced.
pub fn mend(cache: Option<Cache>) -> anyhow::Result<bool> {
    let whole = whole();
    let (Some(copy), Some(cache)) = (COPY.get(), cache) else { return Ok(false) };
    if is_equal(copy.file(), &whole)? {
        return Ok(false);
    }
    let stored = store(&cache, &whole)?;
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

/// Returns the names of the built-in tools that have one of these names, or one that differs in case and separators alone.
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
    ensure!(!BUNDLE.is_empty(), Advice::new("this build of toolcrib has no built-in tools", hint));
    Ok(())
}

/// Returns the stored copy. One that differs from the bundle in these ranges is replaced.
fn store(cache: &Cache, ranges: &[Range<usize>]) -> anyhow::Result<HeldFile> {
    let store = || -> anyhow::Result<HeldFile> {
        if let Some(stored) = cache.bundle(DIGEST)? {
            if is_equal(stored.file(), ranges)? {
                return Ok(stored);
            }
            drop(stored);
            cache.remove_bundle(DIGEST)?;
        }
        let mut copy = cache.new_bundle()?;
        copy.file_mut().write_all(BUNDLE)?;
        let stored = copy.store(DIGEST)?;
        // Another process may have stored it.
        ensure!(is_equal(stored.file(), ranges)?, "`{}` changed while it was written", stored.path().display());
        Ok(stored)
    };
    store().context("cannot store the built-in tools in the cache")
}

/// Returns the one range of the whole bundle.
fn whole() -> Vec<Range<usize>> {
    std::iter::once(0..BUNDLE.len()).collect()
}

/// Returns the ranges of a tar file without the content of its large entries.
fn without_programs(tar: &[u8]) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut at) = (Vec::new(), 0, 0);
    while let Some(header) = tar.get(at..at + BLOCK) {
        let digits = std::str::from_utf8(&header[SIZE]).unwrap_or_default();
        let size = usize::from_str_radix(digits.trim_end_matches('\0'), 8).unwrap_or_default();
        let content = at + BLOCK;
        if size > MAX_COMPARED {
            ranges.push(start..content);
            start = content + size;
        }
        at = content + size.next_multiple_of(BLOCK);
    }
    ranges.push(start..tar.len());
    ranges
}

/// Returns `true` if a file has the size of the bundle, and its bytes in these ranges.
fn is_equal(mut file: &File, ranges: &[Range<usize>]) -> io::Result<bool> {
    if file.metadata()?.len() != BUNDLE.len() as u64 {
        return Ok(false);
    }
    let mut part = vec![0; PART];
    for range in ranges {
        file.seek(SeekFrom::Start(range.start as u64))?;
        for expected in BUNDLE[range.clone()].chunks(PART) {
            let part = &mut part[..expected.len()];
            match file.read_exact(part) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
                read => read?,
            }
            if part != expected {
                return Ok(false);
            }
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
        let whole = whole();
        let path = store(&cache, &whole).unwrap().path().to_owned();
        assert_eq!(std::fs::read(&path).unwrap(), BUNDLE);
        let mut flipped = BUNDLE.to_vec();
        *flipped.last_mut().unwrap() ^= 1;
        for damaged in [&BUNDLE[1..], b"", &flipped] {
            for ranges in [&whole, &without_programs(BUNDLE)] {
                std::fs::write(&path, damaged).unwrap();
                assert_eq!(store(&cache, ranges).unwrap().path(), path);
                assert!(std::fs::read(&path).unwrap() == BUNDLE, "{} bytes", damaged.len());
            }
        }
    }

    #[test]
    fn for_one_call_all_but_the_content_of_programs_is_compared() {
        let ranges = without_programs(BUNDLE);
        let left_out: Vec<&[u8]> = ranges.windows(2).map(|pair| &BUNDLE[pair[0].end..pair[1].start]).collect();
        let files = files().unwrap();
        let is_program =
            |bytes: &[u8]| files.iter().any(|file| file.path.ends_with(".wasm") && file.bytes.as_slice() == bytes);
        assert!(left_out.len() > 1 && left_out.iter().all(|bytes| is_program(bytes)));
        assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, BUNDLE.len()));
        let compared: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        assert!(compared < BUNDLE.len() / 10, "{compared} of {} bytes", BUNDLE.len());
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
