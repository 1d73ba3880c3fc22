//! Bundles in a separate cache: the shared limit, the lock of those in use, and downloads.

use std::io::{Read, Write};

use tempfile::TempDir;

use crate::store::cache::EntryKind;

use super::*;

/// Size of a bundle in these tests.
const BUNDLE_BYTES: u64 = 100;

fn place() -> (TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::folder(folder.path().join("cache"));
    (folder, cache)
}

fn digest(number: u8) -> String {
    format!("sha256:{}", format!("{number:02x}").repeat(32))
}

fn store(cache: &Cache, number: u8) -> HeldFile {
    let mut bundle = cache.new_bundle().unwrap();
    bundle.file_mut().write_all(&[number; BUNDLE_BYTES as usize]).unwrap();
    bundle.store(&digest(number)).unwrap()
}

fn is_stored(cache: &Cache, number: u8) -> bool {
    cache.entries().unwrap().iter().any(|entry| entry.digest == digest(number))
}

/// Sets the last use of a file to this many hours ago.
fn age(path: &Path, hours: u64) {
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(SystemTime::now() - Duration::from_hours(hours))
        .unwrap();
}

#[test]
fn a_bundle_is_stored_whole_under_its_digest_and_found_again() {
    let (_folder, cache) = place();
    assert!(cache.bundle(&digest(1)).unwrap().is_none(), "a missing folder has none");
    drop(cache.new_bundle().unwrap());
    assert_eq!(cache.entries().unwrap(), [], "a bundle that was not stored leaves nothing");
    let held = store(&cache, 1);
    assert_eq!(held.path(), cache.path().join(format!("bundles/sha256-{}.tar", "01".repeat(32))));
    let mut bytes = Vec::new();
    cache.bundle(&digest(1)).unwrap().unwrap().file().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, [1; BUNDLE_BYTES as usize]);
    let entries = cache.entries().unwrap();
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((entry.kind, entry.bytes, entry.digest.clone()), (EntryKind::Bundle, BUNDLE_BYTES, digest(1)));
    assert_eq!(cache.path().join(&entry.file), held.path());
    for wrong in ["", "sha256:..", "sha512:00", &digest(1)[1..]] {
        assert!(cache.bundle(wrong).is_err() && cache.download_files(wrong).is_err(), "{wrong}");
        assert!(cache.new_bundle().unwrap().store(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn bundles_and_compiled_code_share_one_limit() {
    let (_folder, cache) = place();
    let cache = cache.max_bytes(3 * BUNDLE_BYTES);
    let code = EntryName::new(&digest(9), 1, EntryKind::Component);
    cache.put(&code, &[&[9; BUNDLE_BYTES as usize]]).unwrap();
    age(&cache.path().join(code.as_str()), 5);
    let first = store(&cache, 1).path().to_owned();
    store(&cache, 2);
    age(&first, 9);
    assert_eq!(cache.entries().unwrap().len(), 3, "exactly at the limit");
    cache.put(&EntryName::new(&digest(8), 1, EntryKind::Module), &[&[8; BUNDLE_BYTES as usize]]).unwrap();
    assert!(!is_stored(&cache, 1) && is_stored(&cache, 9), "the bundle was used least recently");
    store(&cache, 3);
    assert!(!is_stored(&cache, 9), "then the code");
    assert_eq!(cache.entries().unwrap().iter().map(|entry| entry.bytes).sum::<u64>(), cache.limit());
    let mut large = cache.new_bundle().unwrap();
    large.file_mut().set_len(cache.limit() + 1).unwrap();
    let refused = large.store(&digest(4)).unwrap_err().to_string();
    assert!(refused.contains("301 bytes exceeds its limit of 300 bytes"), "{refused}");
    assert_eq!(cache.entries().unwrap().len(), 3, "and nothing was removed for it");
}

#[test]
fn a_bundle_in_use_is_not_removed() {
    let (_folder, cache) = place();
    let held = store(&cache, 1);
    let another = cache.bundle(&digest(1)).unwrap().unwrap();
    store(&cache, 2);
    age(held.path(), 50);
    assert_eq!(cache.prune(BUNDLE_BYTES).unwrap().entries, 0, "the newest fits, the other is in use");
    assert_eq!(cache.clear().unwrap().entries, 1);
    assert!(held.path().exists());
    drop(held);
    assert_eq!(cache.clear().unwrap().entries, 0, "it is in use twice");
    drop(another);
    assert_eq!(cache.clear().unwrap().entries, 1);
}

#[test]
fn a_download_counts_is_removed_after_a_day_and_stays_while_it_is_written() {
    let (_folder, cache) = place();
    let create = |number, hours| {
        let files = cache.download_files(&digest(number)).unwrap();
        owner_only::options().write(true).create(true).open(&files.partial).unwrap().set_len(BUNDLE_BYTES).unwrap();
        age(&files.partial, hours);
        files.partial
    };
    let (old, young, written) = (create(1, 25), create(2, 23), create(3, 25));
    let writer = File::open(&written).unwrap();
    writer.try_lock().unwrap();
    assert_eq!(cache.entries().unwrap().iter().filter(|entry| entry.kind == EntryKind::Download).count(), 3);
    assert_eq!(cache.prune(u64::MAX).unwrap().entries, 1);
    assert!(!old.exists() && young.exists() && written.exists());
    assert_eq!(cache.clear().unwrap().entries, 1);
    assert!(!young.exists() && written.exists());
    drop(writer);
    let again = create(1, 25);
    store(&cache, 4);
    assert!(!again.exists() && !written.exists(), "and when a bundle is stored");
    let files = cache.download_files(&digest(5)).unwrap();
    assert!(cache.downloaded(&files).unwrap().is_none());
    fs::rename(create(5, 0), &files.complete).unwrap();
    let held = cache.downloaded(&files).unwrap().unwrap();
    assert_eq!((cache.clear().unwrap().entries, held.path()), (1, files.complete.as_path()));
}

#[test]
fn unfinished_bundles_of_killed_processes_are_removed_soon() {
    let (_folder, cache) = place();
    store(&cache, 1);
    let path = cache.path().join(BUNDLES).join(format!("{TEMPORARY_PREFIX}Killed"));
    fs::write(&path, "half").unwrap();
    cache.prune(u64::MAX).unwrap();
    assert!(path.exists());
    age(&path, 1);
    let mut written = cache.new_bundle().unwrap();
    assert!(!path.exists() && is_stored(&cache, 1));
    written.file_mut().set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
    cache.clear().unwrap();
    written.store(&digest(2)).unwrap();
    assert!(is_stored(&cache, 2), "one that is being written stays");
}

#[cfg(unix)]
#[test]
fn links_and_shared_folders_are_refused() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let (folder, cache) = place();
    let path = store(&cache, 1).path().to_owned();
    let outside = folder.path().join("outside");
    fs::rename(&path, &outside).unwrap();
    symlink(&outside, &path).unwrap();
    assert!(cache.bundle(&digest(1)).is_err());
    assert!(cache.new_bundle().unwrap().store(&digest(1)).is_err(), "a link is not replaced");
    cache.clear().unwrap();
    assert!(outside.exists() && path.is_symlink());
    let bundles = cache.path().join(BUNDLES);
    fs::set_permissions(&bundles, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(cache.bundle(&digest(2)).is_err() && cache.new_bundle().is_err() && cache.entries().is_err());
    fs::rename(&bundles, folder.path().join("elsewhere")).unwrap();
    symlink(folder.path().join("elsewhere"), &bundles).unwrap();
    assert!(cache.bundle(&digest(2)).is_err() && cache.new_bundle().is_err() && cache.clear().is_err());
}

#[test]
fn threads_store_hold_and_remove_at_once() {
    let (_folder, cache) = place();
    let cache = cache.max_bytes(3 * BUNDLE_BYTES);
    std::thread::scope(|scope| {
        for thread in 0..6_u8 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..30 {
                    let number = (thread + round) % 5;
                    let held = cache.bundle(&digest(number)).unwrap().unwrap_or_else(|| store(cache, number));
                    let mut bytes = Vec::new();
                    File::open(held.path()).unwrap().read_to_end(&mut bytes).unwrap();
                    assert_eq!(bytes, [number; BUNDLE_BYTES as usize], "whole, and there while it is held");
                    if round % 7 == 0 {
                        cache.clear().unwrap();
                    }
                }
            });
        }
    });
    store(&cache, 1);
    assert!(cache.entries().unwrap().len() <= 3);
}
