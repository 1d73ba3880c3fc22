//! The copy of the built-in tools in the cache: written when it is needed, by one process for all, and mended.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::Stdio;

use crate::crib::{Crib, Ran};
use crate::screen::Page;

use super::{CALL, calculated};

/// Number of processes that start at once.
const PROCESSES: usize = 6;

/// Files in the folder of bundles of a cache of its own.
fn stored(crib: &Crib) -> Vec<PathBuf> {
    let entries = fs::read_dir(crib.path("cache/bundles")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn call(crib: &Crib) -> Ran {
    crib.run(&[&CALL[..], &["--tools", "builtin", "--set", "cache.dir=cache"]].concat())
}

#[test]
fn a_call_of_another_source_stores_nothing() {
    let crib = Crib::with_guests(&["echo"]);
    let ran = crib.run(&["call", "echo", "{}", "--set", "cache.dir=cache"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(stored(&crib).is_empty());
    calculated(&call(&crib));
    assert_eq!(stored(&crib).len(), 1);
}

#[test]
fn a_damaged_copy_is_written_again() {
    let crib = Crib::new();
    calculated(&call(&crib));
    let [copy] = stored(&crib).try_into().unwrap();
    let sound = fs::read(&copy).unwrap();
    for damaged in [&sound[..sound.len() / 2], b"", b"no bundle"] {
        fs::write(&copy, damaged).unwrap();
        calculated(&call(&crib));
        assert_eq!(stored(&crib), [copy.as_path()]);
        assert!(fs::read(&copy).unwrap() == sound, "{} bytes", damaged.len());
    }
    fs::remove_file(&copy).unwrap();
    calculated(&call(&crib));
    assert!(fs::read(&copy).unwrap() == sound);
}

#[test]
fn a_damaged_entry_of_the_copy_is_mended_by_a_call_that_reads_it_and_by_a_list() {
    let crib = Crib::new();
    calculated(&call(&crib));
    let [copy] = stored(&crib).try_into().unwrap();
    let sound = fs::read(&copy).unwrap();
    let mut mended = Vec::new();
    for content in entries(&sound) {
        let mut damaged = sound.clone();
        damaged[content.start + content.len() / 2] ^= 1;
        fs::write(&copy, damaged).unwrap();
        calculated(&call(&crib));
        mended.push(fs::read(&copy).unwrap() == sound);
        let ran = crib.run(&["list", "--tools", "builtin", "--set", "cache.dir=cache"]);
        assert!(ran.code == Some(0) && fs::read(&copy).unwrap() == sound, "{content:?}: {ran:?}");
    }
    let large: Vec<bool> = entries(&sound).iter().map(|content| content.len() > LARGE).collect();
    assert!(mended.iter().zip(&large).all(|(mended, large)| *mended || *large), "no document stays damaged");
    let programs = mended.iter().zip(&large).filter(|(_, large)| **large);
    assert_eq!(programs.filter(|(mended, _)| **mended).count(), 1, "the program of the called tool, and no other");
}

/// Size in bytes that programs exceed and documents do not.
const LARGE: usize = 64 << 10;

/// Positions of the content of the files in a tar file.
fn entries(tar: &[u8]) -> Vec<Range<usize>> {
    let (mut entries, mut at) = (Vec::new(), 0);
    while let Some(header) = tar.get(at..at + 512) {
        let size = std::str::from_utf8(&header[124..135]).unwrap().trim_end_matches('\0');
        let size = usize::from_str_radix(size, 8).unwrap_or_default();
        entries.extend((size > 0).then_some(at + 512..at + 512 + size));
        at += 512 + size.next_multiple_of(512);
    }
    entries
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_the_copy_is_refused() {
    let page = Page::new();
    let crib = Crib::new();
    calculated(&call(&crib));
    let [copy] = stored(&crib).try_into().unwrap();
    fs::rename(&copy, crib.path("elsewhere.tar")).unwrap();
    std::os::unix::fs::symlink(crib.path("elsewhere.tar"), &copy).unwrap();
    let ran = call(&crib);
    page.show(&ran);
    assert!(copy.is_symlink(), "and nothing is replaced");
    page.matches("builtin/link");
}

#[test]
fn processes_that_store_the_copy_at_once_all_use_one() {
    let crib = Crib::new();
    let arguments = [&CALL[..], &["--set", "cache.dir=cache"]].concat();
    let start = |_| {
        let mut command = crib.toolcrib(&arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let started: Vec<_> = (0..PROCESSES).map(start).collect();
    for process in started {
        calculated(&Ran::from(process.wait_with_output().unwrap()));
    }
    assert_eq!(stored(&crib).len(), 1, "{:?}", stored(&crib));
}

#[test]
fn a_cache_that_is_too_small_is_named() {
    let page = Page::new().hide(r"bundle of \d+ bytes", "bundle of [size]");
    let crib = Crib::new();
    page.run(&crib, &[&CALL[..], &["--set", "cache.dir=cache", "--set", "cache.max=1MiB"]].concat());
    page.matches("builtin/small-cache");
}
