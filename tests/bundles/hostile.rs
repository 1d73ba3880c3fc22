//! Hostile archives through the built program: refused as a whole, nothing written, nothing compiled and nothing cached.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use toolcrib_bundle::MAX_ARCHIVE_SIZE;

use crate::crib::{Crib, Ran};

use super::with_bundle;

/// Size of a block of a tar archive in bytes.
const BLOCK: usize = 512;

/// Creates an entry of a tar archive that states a size.
fn entry(name: &str, kind: u8, link: &str, size: u64, content: &[u8]) -> Vec<u8> {
    let mut header = vec![0; BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(157, link);
    put(257, "ustar\x0000");
    header[156] = kind;
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header.extend(content);
    header.resize(header.len().next_multiple_of(BLOCK), 0);
    header
}

/// Asserts that every command refuses the bundle `x.tar` with these words, and leaves nothing behind.
fn refused(crib: &Crib, words: &str) {
    for args in [
        &["call", "echo", "{}", "--tools", "x.tar"][..],
        &["list", "--tools", "x.tar"],
        &["trust", "x.tar"],
        &["bundle", "inspect", "x.tar"],
        &["validate", "x.tar"],
    ] {
        let mut command = crib.toolcrib(args);
        let ran = Ran::from(command.env("TOOLCRIB_CACHE_DIR", crib.path("cache")).output().unwrap());
        assert_eq!(ran.code, Some(1), "{args:?}: {ran:?}");
        let said = if args[0] == "validate" { &ran.stdout } else { &ran.stderr };
        assert!(said.contains(words), "{words}: {args:?}: {ran:?}");
    }
    let cached = fs::read_dir(crib.path("cache")).into_iter().flatten().flatten();
    let cached: Vec<_> = cached.map(|entry| entry.file_name()).filter(|name| name != "CACHEDIR.TAG").collect();
    assert!(cached.is_empty(), "{cached:?}");
    assert!(!crib.path("evil").exists() && !crib.path("../evil").exists());
}

#[test]
fn entries_that_lead_out_links_devices_and_lies_about_sizes_are_refused() {
    let crib = with_bundle();
    let sound = fs::read(crib.path("x.tar")).unwrap();
    let blob = format!("blobs/sha256/{}", "0".repeat(64));
    for (name, kind, link, size) in [
        ("../evil", b'0', "", 4),
        ("blobs/sha256/../../evil", b'0', "", 4),
        ("/tmp/evil", b'0', "", 4),
        ("evil", b'0', "", 4),
        ("blobs/sha256/evil", b'2', "/etc/passwd", 0),
        (blob.as_str(), b'1', "index.json", 0),
        (blob.as_str(), b'2', "/etc/passwd", 0),
        (blob.as_str(), b'3', "", 0),
        (blob.as_str(), b'4', "", 0),
        (blob.as_str(), b'6', "", 0),
        (blob.as_str(), b'x', "", 4),
        (blob.as_str(), b'L', "", 4),
        (blob.as_str(), b'S', "", 4),
        (blob.as_str(), b'0', "", 0o7777777777),
        ("index.json", b'0', "", 4),
    ] {
        let content = if size == 4 { &b"evil"[..] } else { b"" };
        let archive = [entry(name, kind, link, size, content), sound.clone()].concat();
        fs::write(crib.path("x.tar"), archive).unwrap();
        refused(&crib, "x.tar");
    }
}

#[test]
fn compressed_and_oversized_archives_are_refused_at_once() {
    let crib = with_bundle();
    for (magic, format) in [(&b"\x1f\x8b\x08\0"[..], "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"PK\x03\x04", "zip")] {
        fs::write(crib.path("x.tar"), [magic, &[0; 4096]].concat()).unwrap();
        refused(&crib, &format!("compressed ({format})"));
    }
    let sound = fs::read(with_bundle().path("x.tar")).unwrap();
    fs::write(crib.path("x.tar"), sound).unwrap();
    File::options().write(true).open(crib.path("x.tar")).unwrap().set_len(MAX_ARCHIVE_SIZE + 1).unwrap();
    let since = Instant::now();
    refused(&crib, "at most 2147483648 are allowed");
    assert!(since.elapsed() < Duration::from_secs(30), "{:?}", since.elapsed());
}

#[test]
fn content_that_does_not_match_its_digest_and_short_blobs_are_refused() {
    let crib = with_bundle();
    let sound = fs::read(crib.path("x.tar")).unwrap();
    let files = toolcrib_bundle::Bundle::open(File::open(crib.path("x.tar")).unwrap()).unwrap();
    for read in ["tools.json", "echo.wasm"] {
        let file = files.files().iter().find(|file| file.path.to_string().ends_with(read)).unwrap();
        let header = format!("blobs/sha256/{}", file.digest.hex());
        let header = sound.windows(header.len()).position(|bytes| bytes == header.as_bytes()).unwrap();
        let size = usize::try_from(file.size).unwrap();
        for at in [size / 2, size - 1] {
            let mut damaged = sound.clone();
            damaged[header + BLOCK + at] ^= 1;
            fs::write(crib.path("x.tar"), &damaged).unwrap();
            refused(&crib, "digest");
        }
    }
    for length in [0, 100, BLOCK, sound.len() / 2, sound.len() - 3 * BLOCK] {
        fs::write(crib.path("x.tar"), &sound[..length]).unwrap();
        refused(&crib, "x.tar");
    }
}
