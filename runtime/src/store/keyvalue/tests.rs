//! Tests of all backends, with every limit exceeded.

use std::fs;
use std::thread;

use super::*;
use crate::store::shared_entries::memory::MemoryEntries;

/// Creates a store in memory, one in a temporary folder, and one that servers share.
fn stores() -> ([Store; 3], tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let shared = KeyValue::shared(MemoryEntries::shared());
    let all = [KeyValue::folder(folder.path().join("kept")), shared].map(|stores| stores.store(&["tool"], None));
    let [kept, shared] = all;
    ([Store::default(), kept, shared], folder)
}

fn set(store: &Store, key: &str, value: &[u8]) -> Result<(), StoreError> {
    store.set(&[(key.to_owned(), value.to_vec())])
}

fn get(store: &Store, key: &str) -> Option<Vec<u8>> {
    store.get(key).unwrap()
}

#[test]
fn a_value_is_kept_found_and_removed() {
    let (stores, _folder) = stores();
    for store in stores {
        assert!(!store.exists("a").unwrap());
        set(&store, "a", b"1").unwrap();
        set(&store, "a", b"two").unwrap();
        set(&store, "../b\0", b"").unwrap();
        assert_eq!((get(&store, "a").as_deref(), get(&store, "../b\0")), (Some(&b"two"[..]), Some(Vec::new())));
        assert_eq!(store.keys(None, 0).unwrap(), (vec!["../b\0".to_owned(), "a".to_owned()], false));
        assert_eq!(store.get_many(&["a".into(), "x".into()]).unwrap(), [Some(b"two".to_vec()), None]);
        store.delete(&["a".into(), "x".into()]).unwrap();
        assert!(!store.exists("a").unwrap() && store.exists("../b\0").unwrap());
    }
}

#[test]
fn each_bound_holds() {
    let (stores, _folder) = stores();
    for store in stores {
        let refused = |key: &str, value: &[u8]| set(&store, key, value).unwrap_err().to_string();
        assert!(refused(&"k".repeat(MAX_KEY_LEN + 1), b"").contains("more than the 1024 allowed"));
        assert!(refused("k", &vec![0; MAX_VALUE_LEN + 1]).contains("more than the 1048576 allowed"));
        set(&store, &"k".repeat(MAX_KEY_LEN), &vec![7; MAX_VALUE_LEN]).unwrap();
        for n in 0..14 {
            set(&store, &format!("large{n}"), &vec![n; MAX_VALUE_LEN]).unwrap();
        }
        assert!(refused("large14", &vec![0; MAX_VALUE_LEN]).contains("16777216"));
        set(&store, "large0", &vec![9; MAX_VALUE_LEN]).unwrap();
        assert_eq!(get(&store, "large0").unwrap()[0], 9, "one in the place of another fits");
        let again = vec!["large0".to_owned(); 17];
        assert!(store.get_many(&again).unwrap_err().to_string().contains("given at once"));
        let many = vec![("k".to_owned(), Vec::new()); MAX_KEYS + 1];
        assert!(store.set(&many).unwrap_err().to_string().contains("1001 keys at once"));
        assert!(
            store.delete(&vec!["k".to_owned(); MAX_KEYS + 1]).unwrap_err().to_string().contains("1001 keys at once")
        );
        assert!(
            store.get_many(&vec!["k".to_owned(); MAX_KEYS + 1]).unwrap_err().to_string().contains("1001 keys at once")
        );
    }
}

#[test]
fn so_many_keys_are_kept_and_listed_page_by_page() {
    let (stores, _folder) = stores();
    for store in stores {
        let pairs: Vec<_> = (0..MAX_KEYS).map(|n| (format!("k{n:04}"), vec![1])).collect();
        store.set(&pairs).unwrap();
        assert!(set(&store, "one more", b"").unwrap_err().to_string().contains("1000"));
        set(&store, "k0000", b"22").unwrap();
        let (mut listed, mut after, mut pages) = (Vec::new(), None::<String>, 0);
        loop {
            let (keys, more) = store.keys(after.as_deref(), 0).unwrap();
            assert_eq!(store.keys(None, listed.len()).unwrap().0, keys, "by number as by name");
            after = keys.last().cloned();
            listed.extend(keys);
            pages += 1;
            if !more {
                break;
            }
        }
        assert_eq!((listed.len(), pages), (MAX_KEYS, MAX_KEYS / PAGE_LEN));
        assert!(store.keys(None, usize::MAX).unwrap().0.is_empty());
    }
}

#[test]
fn numbers_are_added_and_stay_in_their_range() {
    let (stores, _folder) = stores();
    let (small, large) = (i128::from(i64::MIN)..=i128::from(i64::MAX), 0..=i128::from(u64::MAX));
    for store in stores {
        assert_eq!(store.increment("n", -5, small.clone()).unwrap(), -5);
        assert_eq!(get(&store, "n").as_deref(), Some(&b"-5"[..]));
        assert!(
            store.increment("n", 1, large.clone()).unwrap_err().to_string().contains("not a whole number in the range")
        );
        assert!(
            store
                .increment("n", i128::from(i64::MIN), small.clone())
                .unwrap_err()
                .to_string()
                .contains("outside the range")
        );
        set(&store, "n", b"seven").unwrap();
        assert!(store.increment("n", 1, large.clone()).unwrap_err().to_string().contains("not a whole number"));
    }
}

#[test]
fn a_swap_needs_what_was_seen() {
    let (stores, _folder) = stores();
    for store in stores {
        let missing = Version::of(None);
        store.swap("k", &missing, b"1").unwrap().unwrap();
        let now = store.swap("k", &missing, b"2").unwrap().unwrap_err();
        assert_eq!(get(&store, "k").as_deref(), Some(&b"1"[..]));
        store.swap("k", &now, b"2").unwrap().unwrap();
        assert_eq!(get(&store, "k").as_deref(), Some(&b"2"[..]));
    }
}

#[test]
fn whoever_adds_at_once_loses_nothing_and_whoever_comes_later_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let open = |owner: &str| KeyValue::folder(folder.path().join("kept")).store(&[owner], None);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..25).for_each(|_| assert!(open("a").increment("n", 1, 0..=1000).unwrap() > 0)));
        }
    });
    assert_eq!(get(&open("a"), "n").as_deref(), Some(&b"100"[..]));
    assert_eq!(get(&open("b"), "n"), None, "another's store is another");
    let one = KeyValue::folder(folder.path()).store(&["a", "b"], None);
    set(&one, "n", b"1").unwrap();
    assert_eq!(get(&KeyValue::folder(folder.path()).store(&["ab"], None), "n"), None);
}

#[test]
fn servers_that_share_values_lose_no_change_and_an_error_names_no_place() {
    let entries = MemoryEntries::shared();
    let servers = [(); 3].map(|()| KeyValue::shared(entries.clone()));
    let owner: Arc<str> = "ada".into();
    thread::scope(|scope| {
        for server in &servers {
            let store = server.store(&["tool", "ada"], Some(&owner));
            scope.spawn(move || (0..30).for_each(|_| assert!(store.increment("n", 1, 0..=1000).unwrap() > 0)));
        }
    });
    let store = servers[0].store(&["tool", "ada"], Some(&owner));
    assert_eq!(get(&store, "n").as_deref(), Some(&b"90"[..]));
    assert_eq!(get(&servers[1].store(&["tool", "bob"], None), "n"), None);
    *entries.is_gone.lock().unwrap() = true;
    for error in [store.get("n").unwrap_err(), set(&store, "n", b"1").unwrap_err()] {
        assert_eq!(error.to_string(), "the store cannot be used now: not connected");
    }
}

#[test]
fn damage_is_found_and_can_be_mended_and_no_key_is_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = KeyValue::folder(folder.path().join("kept")).store(&["tool"], None);
    set(&store, "canary", b"value").unwrap();
    let own = fs::read_dir(folder.path().join("kept")).unwrap().next().unwrap().unwrap().path();
    let files = || fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().path());
    assert!(files().all(|path| !path.to_string_lossy().contains("canary")));
    let file = files().find(|path| !path.ends_with("lock")).unwrap();
    let whole = fs::read(&file).unwrap();
    for damage in [whole[..whole.len() - 1].to_vec(), Vec::new(), [&whole[..], b"x"].concat(), vec![0xff; 40]] {
        fs::write(&file, damage).unwrap();
        assert!(store.get("canary").unwrap_err().to_string().contains("is damaged"));
        assert!(store.exists("canary").unwrap());
    }
    assert!(store.keys(None, 0).unwrap().0.is_empty());
    set(&store, "canary", b"again").unwrap();
    assert_eq!(get(&store, "canary").as_deref(), Some(&b"again"[..]));
}

#[cfg(unix)]
#[test]
fn the_folder_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let store = KeyValue::folder(&kept).store(&["tool"], None);
    set(&store, "a", b"1").unwrap();
    let own = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&kept), mode(&own)), (0o700, 0o700));
    assert!(fs::read_dir(&own).unwrap().all(|entry| mode(&entry.unwrap().path()) == 0o600));
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o777)).unwrap();
    let refused = store.get("a").unwrap_err().to_string();
    assert!(refused.contains("cannot be used now") && !refused.contains("kept"), "{refused}");
}
