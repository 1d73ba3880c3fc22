//! Stored results: results too large for a model are stored whole under an unguessable name, within limits, and read
//! unchanged.

mod command;
mod owners;

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};

use tempfile::TempDir;
use toolcrib::results::StoredResult;
use toolcrib::{Error, Results};

/// Folder that the first result creates, inside one that is removed with the test.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: TempDir::new().expect("a temporary folder") }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("results")
    }

    fn results(&self) -> Results {
        Results::folder(self.folder())
    }

    fn file(&self, kept: &StoredResult) -> PathBuf {
        self.folder().join(&kept.reference)
    }

    /// Names of all files except the lock, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).filter(|name| name != "lock").collect();
        names.sort();
        names
    }
}

fn put(results: &Results, content: impl AsRef<[u8]>) -> StoredResult {
    results.put("tool", "call-1", content.as_ref()).unwrap()
}

fn whole(results: &Results, kept: &StoredResult) -> Vec<u8> {
    results.open(&kept.reference, ..).unwrap().content
}

fn references(kept: &[StoredResult]) -> Vec<&str> {
    kept.iter().map(|kept| kept.reference.as_str()).collect()
}

fn is_absent<T: std::fmt::Debug>(opened: Result<T, Error>) -> bool {
    matches!(opened, Err(Error::NoResult { .. }))
}

/// Error of the store about itself or one of its files.
fn reason<T: std::fmt::Debug>(opened: Result<T, Error>) -> String {
    match opened {
        Err(Error::Results { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_result_comes_back_byte_for_byte_with_all_that_is_known_of_it() {
    let place = Place::new();
    let results = place.results();
    for content in [&b""[..], b"\n", b"{\"a\":1}\n", b"\0\xff\xfe binary \x80", "日本語".as_bytes()] {
        let kept = results.put("fs_read_file", "call_7", content).unwrap();
        let part = results.open(&kept.reference, ..).unwrap();
        assert_eq!((part.content.as_slice(), part.offset, part.next), (content, 0, None));
        assert_eq!(part.stored, kept);
        assert_eq!((kept.tool.as_str(), kept.invocation.as_str()), ("fs_read_file", "call_7"));
        assert_eq!(kept.bytes, content.len() as u64);
        assert!(SystemTime::from(kept.created).elapsed().unwrap() < Duration::from_secs(60));
    }
    let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(put(&results, "abc").sha256, known, "FIPS 180-4, the example of one block");
}

#[test]
fn parts_are_cut_between_characters_and_together_are_the_whole() {
    let place = Place::new();
    let results = place.results();
    let text = "aä日💻\n".repeat(50);
    let kept = put(&results, &text);
    for limit in [0, 1, 2, 3, 5, 64, 10_000] {
        let (mut read, mut offset) = (String::new(), 0);
        loop {
            let part = results.open(&kept.reference, offset..offset + limit).unwrap();
            assert_eq!(part.offset, offset);
            assert!(!part.content.is_empty() && part.content.len() as u64 <= limit.max(4));
            read += std::str::from_utf8(&part.content).expect("whole characters");
            match part.next {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert_eq!(read, text, "{limit}");
    }
    let inside = results.open(&kept.reference, 5..8).unwrap();
    assert_eq!((inside.offset, inside.text().as_ref(), inside.next), (3, "日", Some(6)));
    let beyond = results.open(&kept.reference, 9_999..).unwrap();
    assert_eq!((beyond.content.len(), beyond.offset, beyond.next), (0, kept.bytes, None));
}

#[test]
fn content_that_is_no_text_is_cut_where_it_was_asked() {
    let place = Place::new();
    let kept = put(&place.results(), [0x80; 64]);
    let part = place.results().open(&kept.reference, 7..20).unwrap();
    assert_eq!((part.offset, part.content.len(), part.next), (7, 13, Some(20)));
}

#[test]
fn the_oldest_go_where_there_would_be_too_many() {
    let place = Place::new();
    let results = place.results().max_results(3);
    let kept: Vec<_> = (0..5).map(|n| put(&results, n.to_string())).collect();
    let left = results.list().unwrap();
    assert_eq!(references(&left), [4, 3, 2].map(|n| kept[n].reference.as_str()), "newest first");
    assert_eq!(place.names().len(), 3);
    assert!(is_absent(results.open(&kept[1].reference, ..)));
}

#[test]
fn the_oldest_go_where_there_would_be_too_much() {
    let place = Place::new();
    let results = place.results().max_bytes(10_000);
    let [first, second] = ["a", "b"].map(|letter| put(&results, letter.repeat(4_000)));
    assert_eq!(results.list().unwrap().len(), 2);
    let third = put(&results, "c".repeat(2_000));
    assert_eq!(references(&results.list().unwrap()), [&third.reference, &second.reference]);
    assert!(is_absent(results.open(&first.reference, ..)));
    let used: u64 = place.names().iter().map(|name| place.folder().join(name).metadata().unwrap().len()).sum();
    assert!(used <= 10_000, "{used}");
}

#[test]
fn what_is_too_old_cannot_be_opened_and_goes() {
    let place = Place::new();
    let seconds = Arc::new(AtomicU64::new(1_772_323_200));
    let clock = seconds.clone();
    let results = place
        .results()
        .max_age(Duration::from_secs(60))
        .clock(move || SystemTime::UNIX_EPOCH + Duration::from_secs(clock.load(Relaxed)));
    let old = put(&results, "old");
    assert_eq!(old.created.to_string(), "2026-03-01T00:00:00Z");
    seconds.fetch_add(60, Relaxed);
    assert_eq!(whole(&results, &old), b"old");
    seconds.fetch_add(1, Relaxed);
    let error = results.open(&old.reference, ..).unwrap_err();
    assert_eq!(error.to_string(), format!("no result `{}`: it has expired", old.reference));
    assert!(results.list().unwrap().is_empty());
    let new = put(&results, "new");
    assert_eq!(place.names(), [new.reference.as_str()]);
    // A clock that is set back makes nothing old.
    seconds.fetch_sub(3600, Relaxed);
    assert_eq!(whole(&results, &new), b"new");
}

#[test]
fn a_result_larger_than_all_may_be_is_refused_and_removes_nothing() {
    let place = Place::new();
    let results = place.results().max_bytes(1_000);
    let kept = put(&results, "small");
    let said = reason(results.put("tool", "call-1", &[b'x'; 1_000]));
    assert_eq!(said, "1000 bytes exceed the limit of 1000 for all results");
    assert_eq!(place.names(), [kept.reference.as_str()]);
}

#[test]
fn what_is_no_reference_never_reaches_the_files() {
    let place = Place::new();
    let results = place.results();
    let kept = put(&results, "secret");
    fs::write(place.dir.path().join("x"), "outside").unwrap();
    let absolute = place.file(&kept).display().to_string();
    for bad in [
        "../x",
        "/x",
        "",
        ".",
        "lock",
        &absolute,
        &format!("./{}", kept.reference),
        &format!("{}/", kept.reference),
        &format!("{}\0", kept.reference),
        &kept.reference[..35],
        &format!("{}0", kept.reference),
        &kept.reference.to_uppercase(),
        &kept.reference.replace("res_", "RES_"),
        "res_../../../../../../../../x/abcdef",
    ] {
        assert!(is_absent(results.open(bad, ..)), "{bad}");
        assert!(is_absent(results.remove(bad)), "{bad}");
    }
    assert_eq!(whole(&results, &kept), b"secret");
}

#[test]
fn a_reference_of_nothing_says_so_in_one_sentence() {
    let place = Place::new();
    let results = place.results();
    let foreign = format!("res_{:032x}", 1);
    let said = "it was removed, was replaced by newer results, or never existed";
    for _ in 0..2 {
        let error = results.open(&foreign, ..).unwrap_err();
        assert_eq!(error.to_string(), format!("no result `{foreign}`: {said}"));
        assert!(is_absent(results.remove(&foreign)));
        put(&results, "now there is a folder");
    }
}

#[test]
fn a_link_in_the_folder_is_not_followed() {
    let place = Place::new();
    let results = place.results();
    let kept = put(&results, "mine");
    let outside = place.dir.path().join("outside");
    fs::rename(place.file(&kept), &outside).unwrap();
    symlink(&outside, place.file(&kept)).unwrap();
    assert_eq!(reason(results.open(&kept.reference, ..)), "it is a link, and no link is followed here");
    assert!(results.list().unwrap().is_empty());
    put(&results.clone().max_results(1), "another");
    results.remove(&kept.reference).unwrap();
    assert!(outside.exists() && !place.file(&kept).is_symlink(), "the link goes, its target stays");
    // A link at the path of the lock is refused too: it would be written through.
    fs::remove_file(place.folder().join("lock")).unwrap();
    symlink(place.dir.path().join("made"), place.folder().join("lock")).unwrap();
    assert!(results.put("tool", "", b"x").is_err());
    assert!(!place.dir.path().join("made").exists());
}

#[test]
fn a_folder_that_is_a_link_or_open_to_others_is_refused() {
    let place = Place::new();
    let kept = put(&place.results(), "mine");
    let link = place.dir.path().join("link");
    symlink(place.folder(), &link).unwrap();
    let linked = Results::folder(&link);
    fs::set_permissions(place.folder(), fs::Permissions::from_mode(0o770)).unwrap();
    for results in [linked, place.results()] {
        let said = "it is a link, or belongs to or can be written by someone else";
        assert_eq!(reason(results.put("tool", "", b"x")), said);
        assert_eq!(reason(results.open(&kept.reference, ..)), said);
        assert_eq!(reason(results.list()), said);
        assert_eq!(reason(results.remove(&kept.reference)), said);
        assert_eq!(reason(results.clear()), said);
    }
}

#[test]
fn a_file_that_was_torn_changed_or_renamed_is_told_and_not_passed_on() {
    let place = Place::new();
    let results = place.results();
    let kept = put(&results, "the content");
    let sound = fs::read(place.file(&kept)).unwrap();
    let line = sound.len() - "the content".len();
    let damaged = |bytes: &[u8]| {
        fs::write(place.file(&kept), bytes).unwrap();
        reason(results.open(&kept.reference, ..))
    };
    assert_eq!(damaged(&sound[..sound.len() - 3]), "it has 8 of 11 bytes of content");
    assert_eq!(damaged(&[&sound[..], b"more"].concat()), "it has 15 of 11 bytes of content");
    for cut in [0, 1, line / 2, line - 2] {
        assert_eq!(damaged(&sound[..cut]), "its first line does not describe a result", "{cut}");
    }
    assert_eq!(damaged(&[b' '; 1 << 20]), "its first line does not describe a result");
    let changed = [&sound[..line], b"THE content"].concat();
    assert_eq!(damaged(&changed), "its content was changed: its SHA-256 is not the one recorded");
    let huge = String::from_utf8(sound.clone()).unwrap().replace("\"bytes\":11", &format!("\"bytes\":{}", u64::MAX));
    assert!(damaged(huge.as_bytes()).starts_with("it has 11 of "));
    let other = put(&results, "another");
    fs::copy(place.file(&other), place.file(&kept)).unwrap();
    assert_eq!(reason(results.open(&kept.reference, ..)), "it describes another result");
    assert_eq!(references(&results.list().unwrap()), [&other.reference]);
    assert_eq!(results.clear().unwrap(), 2, "what cannot be opened can be removed");
}

#[test]
fn what_a_crash_left_is_swept_by_the_next_put() {
    let place = Place::new();
    let results = place.results();
    put(&results, "before");
    fs::write(place.folder().join(".res-AbCdEf.new"), "half a resu").unwrap();
    fs::write(place.folder().join("notes"), "not ours").unwrap();
    assert_eq!(results.list().unwrap().len(), 1);
    put(&results, "after");
    assert!(place.names().iter().all(|name| name == "notes" || name.starts_with("res_")), "{:?}", place.names());
    assert_eq!((results.clear().unwrap(), place.names()), (2, vec!["notes".to_owned()]));
}

#[test]
fn eight_threads_keep_all_they_put_within_the_bounds() {
    let place = Place::new();
    let results = place.results().max_results(60);
    let kept: Vec<StoredResult> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                // Each has its own store, as another process would.
                let results = place.results().max_results(60);
                scope.spawn(move || (0..10).map(|m| put(&results, format!("{n} {m}").repeat(999))).collect::<Vec<_>>())
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(kept.iter().map(|kept| &kept.reference).collect::<HashSet<_>>().len(), 80);
    let left = results.list().unwrap();
    assert_eq!((left.len(), place.names().len()), (60, 60));
    for kept in left {
        assert_eq!(whole(&results, &kept).len() as u64, kept.bytes);
    }
}

#[test]
fn a_folder_that_somebody_holds_locked_is_refused_in_bound() {
    let place = Place::new();
    put(&place.results(), "first");
    let held = File::open(place.folder().join("lock")).unwrap();
    held.lock().unwrap();
    let started = Instant::now();
    assert_eq!(reason(place.results().put("tool", "", b"x")), "another process holds its lock");
    assert!(started.elapsed() < Duration::from_secs(60));
    held.unlock().unwrap();
    put(&place.results(), "second");
}

#[test]
fn results_are_their_owners_alone() {
    let place = Place::new();
    let results = Results::folder(place.folder().join("deep/er"));
    let kept = put(&results, "x");
    for folder in ["", "deep", "deep/er"] {
        assert_eq!(place.folder().join(folder).metadata().unwrap().mode() & 0o777, 0o700, "{folder}");
    }
    for name in [kept.reference.as_str(), "lock"] {
        assert_eq!(results.path().join(name).metadata().unwrap().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn looking_makes_no_folder() {
    let place = Place::new();
    let results = place.results();
    assert_eq!((results.list().unwrap(), results.clear().unwrap()), (Vec::new(), 0));
    assert!(is_absent(results.open(&format!("res_{:032x}", 7), ..)));
    assert!(!place.folder().exists());
}

#[test]
fn endless_names_are_cut_and_odd_ones_stay_in_their_line() {
    let place = Place::new();
    let results = place.results();
    let kept = results.put(&"é\n".repeat(1 << 20), &"\u{1}".repeat(1 << 20), b"x").unwrap();
    assert_eq!((kept.tool.chars().count(), kept.invocation.chars().count()), (256, 256));
    assert_eq!(results.list().unwrap(), [kept]);
}
