//! The cache in a separate folder: its limits, the order of eviction, and the files that it never removes.

use std::fs;
use std::io::Read;

use tempfile::TempDir;

use super::*;

/// Size of an entry in these tests.
const ENTRY_BYTES: u64 = 100;

fn place() -> (TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::folder(folder.path().join("cache"));
    (folder, cache)
}

fn name(number: u64) -> EntryName {
    EntryName::new(&"5a".repeat(32), number, EntryKind::Component)
}

fn put(cache: &Cache, number: u64) {
    cache.put(&name(number), &[&[7; 60], &[9; ENTRY_BYTES as usize - 60]]).unwrap();
}

/// Sets the last use of an entry to this many hours ago.
fn age(cache: &Cache, number: u64, hours: u64) {
    let used = SystemTime::now() - Duration::from_hours(hours);
    let file = File::options().write(true).open(cache.path().join(name(number).as_str())).unwrap();
    file.set_modified(used).unwrap();
}

/// Numbers of the entries among the first hundred, in their order.
fn numbers(cache: &Cache) -> Vec<u64> {
    (0..100).filter(|number| cache.path().join(name(*number).as_str()).exists()).collect()
}

/// Content of an open entry.
fn content(entry: &OpenEntry) -> Vec<u8> {
    let mut bytes = Vec::new();
    entry.rewound().unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

fn removal(entries: usize) -> Removal {
    Removal { entries, bytes: entries as u64 * ENTRY_BYTES }
}

#[test]
fn the_least_recently_used_go_first_and_the_total_is_within_the_limit() {
    let (_folder, cache) = place();
    let cache = cache.max_bytes(4 * ENTRY_BYTES);
    for (number, hours) in [(1, 3), (2, 30), (3, 20), (4, 10)] {
        put(&cache, number);
        age(&cache, number, hours);
    }
    assert_eq!(numbers(&cache), [1, 2, 3, 4], "exactly at the limit");
    let order: Vec<String> = cache.entries().unwrap().into_iter().map(|entry| entry.file).collect();
    assert_eq!(order, [1, 4, 3, 2].map(|number| name(number).as_str().to_owned()));
    put(&cache, 5);
    assert_eq!(numbers(&cache), [1, 3, 4, 5]);
    // A use makes an entry the newest.
    cache.open(&name(3)).unwrap().mark_used();
    put(&cache, 6);
    assert_eq!(numbers(&cache), [1, 3, 5, 6]);
    let total: u64 = cache.entries().unwrap().iter().map(|entry| entry.bytes).sum();
    assert_eq!(total, cache.limit());
    // A limit between two totals is the lower one.
    assert_eq!(cache.prune(3 * ENTRY_BYTES - 1).unwrap(), removal(2));
    assert_eq!(numbers(&cache).len(), 2);
    assert!(numbers(&cache).contains(&6));
    assert_eq!(cache.prune(3 * ENTRY_BYTES).unwrap(), removal(0));
    assert_eq!(cache.clear().unwrap(), removal(2));
    assert_eq!(cache.clear().unwrap(), removal(0));
}

#[test]
fn an_entry_describes_itself() {
    let (_folder, cache) = place();
    put(&cache, 3);
    let entries = cache.entries().unwrap();
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!(entry.digest, format!("sha256:{}", "5a".repeat(32)));
    assert_eq!((entry.kind, entry.bytes), (EntryKind::Component, ENTRY_BYTES));
    let json = serde_json::to_value(entry).unwrap();
    assert_eq!(json["kind"], entry.kind.as_str());
    assert_eq!(json["file"], name(3).as_str());
    assert!(json["used"].as_str().unwrap().ends_with('Z'), "{json}");
}

#[test]
fn an_entry_beyond_the_whole_limit_is_not_stored_and_the_limit_still_holds() {
    let (_folder, cache) = place();
    put(&cache, 1);
    put(&cache, 2);
    let small = cache.clone().max_bytes(ENTRY_BYTES - 1);
    put(&small, 3);
    assert!(numbers(&small).is_empty(), "nor do others exceed it");
    let none = cache.max_bytes(0);
    none.put(&name(4), &[b"x"]).unwrap();
    assert!(numbers(&none).is_empty());
}

#[test]
fn an_entry_beyond_the_largest_is_neither_stored_nor_read() {
    let (_folder, cache) = place();
    let cache = cache.max_bytes(u64::MAX);
    let part = vec![0; 64 << 20];
    let parts = vec![part.as_slice(); (MAX_ENTRY_BYTES >> 26) as usize + 1];
    cache.put(&name(1), &parts).unwrap();
    assert!(numbers(&cache).is_empty());
    put(&cache, 2);
    // A file with holes takes no space.
    let file = File::options().write(true).open(cache.path().join(name(2).as_str())).unwrap();
    file.set_len(MAX_ENTRY_BYTES + 1).unwrap();
    assert!(cache.open(&name(2)).is_none());
    file.set_len(0).unwrap();
    assert!(cache.open(&name(2)).is_some_and(|entry| entry.len() == 0), "truncated: the caller decides");
}

#[test]
fn the_number_of_entries_is_limited() {
    let (_folder, mut cache) = place();
    cache.limits.entries = 3;
    for number in 0..5 {
        put(&cache, number);
        age(&cache, number, 50 - number);
    }
    assert_eq!(numbers(&cache), [2, 3, 4]);
    // Entries without content have no size, and are counted all the same.
    for number in 10..20 {
        cache.put(&name(number), &[]).unwrap();
    }
    assert_eq!(numbers(&cache).len(), 3);
    assert_eq!(cache.clear().unwrap().entries, 3);
}

#[test]
fn entries_beyond_one_scan_are_removed_by_the_next() {
    let (_folder, cache) = place();
    for number in 0..50 {
        put(&cache, number);
    }
    let mut cache = cache.max_bytes(5 * ENTRY_BYTES);
    (cache.limits.entries, cache.limits.scanned) = (5, 20);
    assert_eq!(cache.entries().unwrap().len(), 20);
    put(&cache, 50);
    assert_eq!(numbers(&cache).len(), 36, "20 of 51 are read, and 15 of them removed");
    put(&cache, 51);
    put(&cache, 52);
    put(&cache, 53);
    assert_eq!(numbers(&cache).len(), 5);
    for number in 0..50 {
        cache.write(&name(number), &[b"x"]).unwrap();
    }
    cache.prune(ENTRY_BYTES * 5).unwrap();
    assert_eq!(numbers(&cache).len(), 5, "an explicit removal scans until nothing is left to remove");
    for number in 0..50 {
        cache.write(&name(number), &[]).unwrap();
    }
    cache.clear().unwrap();
    assert!(numbers(&cache).is_empty());
}

#[test]
fn only_files_with_the_name_of_an_entry_are_removed() {
    let (folder, cache) = place();
    put(&cache, 1);
    let entry = name(2).as_str().to_owned();
    let foreign = ["key", "lock", "notes.cwasm", &entry.to_uppercase(), &format!("{entry}.old"), &format!(".{entry}")]
        .map(|name| cache.path().join(name));
    for path in &foreign {
        fs::write(path, "not an entry").unwrap();
    }
    let inner = cache.path().join(name(3).as_str());
    fs::create_dir(&inner).unwrap();
    fs::write(inner.join(name(4).as_str()), "in a folder").unwrap();
    #[cfg(unix)]
    {
        fs::write(folder.path().join("target"), "outside").unwrap();
        std::os::unix::fs::symlink(folder.path().join("target"), cache.path().join(name(5).as_str())).unwrap();
        assert!(cache.open(&name(5)).is_none(), "a link is not followed");
    }
    assert!(cache.open(&name(3)).is_none(), "a folder is not read");
    assert!(cache.put(&name(3), &[b"x"]).is_err(), "nor replaced");
    #[cfg(unix)]
    assert!(cache.put(&name(5), &[b"x"]).is_err(), "nor is a link");
    assert_eq!(cache.entries().unwrap().len(), 1);
    assert_eq!(cache.prune(1).unwrap(), removal(1));
    assert_eq!(cache.clear().unwrap(), removal(0));
    for path in &foreign {
        assert_eq!(fs::read_to_string(path).unwrap(), "not an entry", "{}", path.display());
    }
    assert!(inner.join(name(4).as_str()).exists());
    #[cfg(unix)]
    assert_eq!(fs::read_to_string(cache.path().join(name(5).as_str())).unwrap(), "outside");
    assert!(folder.path().exists());
}

#[test]
fn a_use_is_recorded_at_most_once_an_hour() {
    let (_folder, cache) = place();
    put(&cache, 1);
    let used = || fs::metadata(cache.path().join(name(1).as_str())).unwrap().modified().unwrap();
    let recent = SystemTime::now() - USE_PRECISION / 2;
    let file = File::options().write(true).open(cache.path().join(name(1).as_str())).unwrap();
    file.set_modified(recent).unwrap();
    let before = used();
    cache.open(&name(1)).unwrap().mark_used();
    assert_eq!(used(), before, "it is recent enough");
    for wrong in [SystemTime::now() - 2 * USE_PRECISION, SystemTime::now() + 100 * USE_PRECISION] {
        file.set_modified(wrong).unwrap();
        cache.open(&name(1)).unwrap().mark_used();
        let off = match used().elapsed() {
            Ok(past) => past,
            Err(future) => future.duration(),
        };
        assert!(off < USE_PRECISION / 2, "{off:?}");
    }
}

#[test]
fn an_entry_from_the_far_future_is_the_oldest() {
    let (_folder, cache) = place();
    for number in 1..=3 {
        put(&cache, number);
        age(&cache, number, number);
    }
    let file = File::options().write(true).open(cache.path().join(name(1).as_str())).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_hours(1000)).unwrap();
    assert_eq!(cache.prune(2 * ENTRY_BYTES).unwrap(), removal(1));
    assert_eq!(numbers(&cache), [2, 3]);
}

#[test]
fn who_does_not_get_the_lock_stores_and_evicts_nothing() {
    let (_folder, cache) = place();
    let cache = cache.max_bytes(2 * ENTRY_BYTES);
    put(&cache, 1);
    put(&cache, 2);
    let lock = owner_only::lock_folder(cache.path(), Duration::ZERO).unwrap();
    put(&cache, 3);
    assert_eq!(numbers(&cache), [1, 2, 3]);
    drop(lock);
    put(&cache, 4);
    assert_eq!(numbers(&cache).len(), 2);
    assert!(numbers(&cache).contains(&4));
}

#[test]
fn a_lock_that_cannot_be_taken_does_not_end_the_limit() {
    let (_folder, cache) = place();
    let cache = cache.max_bytes(ENTRY_BYTES);
    owner_only::create_folder(cache.path()).unwrap();
    fs::create_dir(cache.path().join("lock")).unwrap();
    put(&cache, 1);
    put(&cache, 2);
    assert_eq!(numbers(&cache).len(), 1);
    assert!(cache.prune(1).is_err(), "an explicit removal reports it");
}

#[test]
fn temporary_files_of_killed_processes_are_removed_after_an_hour() {
    let (_folder, cache) = place();
    put(&cache, 1);
    let create = |name: &str, hours: u64| {
        let path = cache.path().join(format!("{TEMPORARY_PREFIX}{name}"));
        let file = File::create(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_hours(hours)).unwrap();
        path
    };
    for remove in [
        |cache: &Cache| put(cache, 2),
        |cache: &Cache| drop(cache.prune(u64::MAX)),
        |cache: &Cache| drop(cache.clear()),
    ] {
        let (killed, alive) = (create("Killed", 2), create("Alive1", 0));
        remove(&cache);
        assert!(!killed.exists() && alive.exists());
    }
}

#[test]
fn a_removed_or_replaced_entry_stays_the_same_for_its_reader() {
    let (_folder, cache) = place();
    put(&cache, 1);
    let read = cache.open(&name(1)).unwrap();
    let before = content(&read);
    cache.put(&name(1), &[b"replaced"]).unwrap();
    read.mark_used();
    assert_eq!((content(&read), before.len() as u64), (before, ENTRY_BYTES));
    cache.clear().unwrap();
    read.mark_used();
    assert!(cache.open(&name(1)).is_none(), "it is made again");
    assert_eq!(cache.entries().unwrap(), []);
}

#[test]
fn many_threads_store_read_and_evict_at_once() {
    let (_folder, cache) = place();
    let cache = cache.max_bytes(3 * ENTRY_BYTES);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let cache = &cache;
            scope.spawn(move || {
                for round in 0..40 {
                    let number = (thread + round) % 8;
                    if let Some(entry) = cache.open(&name(number)) {
                        assert_eq!(content(&entry).len() as u64, ENTRY_BYTES, "whole or absent");
                        entry.mark_used();
                    }
                    put(cache, number);
                    if round % 10 == 0 {
                        cache.prune(ENTRY_BYTES).unwrap();
                    }
                }
            });
        }
    });
    put(&cache, 1);
    assert!(numbers(&cache).len() <= 3);
}

#[test]
fn a_missing_folder_is_empty_and_a_shared_one_is_refused() {
    let (_folder, cache) = place();
    assert_eq!(cache.entries().unwrap(), []);
    assert_eq!((cache.prune(0).unwrap(), cache.clear().unwrap()), (removal(0), removal(0)));
    assert!(!cache.path().exists(), "nothing is created");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        put(&cache, 1);
        fs::set_permissions(cache.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let refused = |error: Error| matches!(error, Error::Cache { path, .. } if path == cache.path());
        assert!(cache.entries().is_err_and(refused));
        assert!(cache.prune(0).is_err() && cache.clear().is_err());
        assert!(cache.put(&name(2), &[b"x"]).is_err());
        assert_eq!(numbers(&cache), [1]);
    }
}
