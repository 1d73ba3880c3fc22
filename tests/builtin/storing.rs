//! The copy of the built-in tools in the cache: written when it is needed, by one process for all, and mended.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use crate::crib::{Crib, Ran};

use super::{CALL, calculated};

/// Number of processes that start at once.
const PROCESSES: usize = 6;

/// Files in the folder of bundles of a cache of its own.
fn stored(crib: &Crib) -> Vec<PathBuf> {
    let entries = fs::read_dir(crib.path("cache/bundles")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn call(crib: &Crib) -> Ran {
    crib.run(&[&CALL[..], &["--tools", "builtin", "--cache-dir", "cache"]].concat())
}

#[test]
fn a_call_of_another_source_stores_nothing() {
    let crib = Crib::with_guests(&["echo"]);
    let ran = crib.run(&["call", "echo", "{}", "--cache-dir", "cache"]);
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
    let mut flipped = sound.clone();
    flipped[sound.len() / 2] ^= 1;
    for damaged in [&flipped[..], &sound[..sound.len() / 2], b"", b"no bundle"] {
        fs::write(&copy, damaged).unwrap();
        calculated(&call(&crib));
        assert_eq!(stored(&crib), [copy.as_path()]);
        assert!(fs::read(&copy).unwrap() == sound, "{} bytes", damaged.len());
    }
    fs::remove_file(&copy).unwrap();
    calculated(&call(&crib));
    assert!(fs::read(&copy).unwrap() == sound);
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_the_copy_is_refused() {
    let crib = Crib::new();
    calculated(&call(&crib));
    let [copy] = stored(&crib).try_into().unwrap();
    fs::rename(&copy, crib.path("elsewhere.tar")).unwrap();
    std::os::unix::fs::symlink(crib.path("elsewhere.tar"), &copy).unwrap();
    let ran = call(&crib);
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot store the built-in tools in the cache"), "{ran:?}");
    assert!(copy.is_symlink(), "and nothing is replaced");
}

#[test]
fn processes_that_store_the_copy_at_once_all_use_one() {
    let crib = Crib::new();
    let arguments = [&CALL[..], &["--cache-dir", "cache"]].concat();
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
    let crib = Crib::new();
    let ran = crib.run(&[&CALL[..], &["--cache-dir", "cache", "--max-cache", "1MiB"]].concat());
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot store the built-in tools in the cache"), "{ran:?}");
    assert!(ran.stderr.contains("exceeds its limit of 1048576 bytes"), "{ran:?}");
}
