//! Results of several owners, in a folder and in a store that servers share.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use toolcrib::results::SharedResults;

use super::{Place, is_absent, put, reason, references, whole};

#[test]
fn an_owner_has_the_results_of_no_other() {
    let place = Place::new();
    let all = place.results();
    let [ada, bob] = ["ada", "bob"].map(|owner| place.results().of_owner(Some(owner.into())));
    let (without, of_ada) = (put(&all, "local"), put(&ada, "private"));
    let nobody = place.results().of_owner(None);
    assert_eq!(whole(&ada, &of_ada), b"private");
    for other in [&bob, &nobody] {
        assert!(is_absent(other.open(&of_ada.reference, ..)) && is_absent(other.remove(&of_ada.reference)));
    }
    assert!(is_absent(ada.open(&without.reference, ..)) && whole(&nobody, &without) == b"local");
    assert_eq!(references(&ada.list().unwrap()), [of_ada.reference.as_str()]);
    assert_eq!((bob.clear().unwrap(), all.list().unwrap().len()), (0, 2));
    // The answer does not say if there was one.
    let expired = bob.clone().clock(|| SystemTime::now() + Duration::from_hours(24 * 30));
    let texts = [&bob, &expired].map(|results| results.open(&of_ada.reference, ..).unwrap_err().to_string());
    assert_eq!(texts[0], texts[1]);
    assert_eq!((ada.clear().unwrap(), whole(&all, &without)), (1, b"local".to_vec()));
}

#[test]
fn a_result_whose_description_no_reader_takes_is_not_stored() {
    let place = Place::new();
    let results = place.results().of_owner(Some("o".repeat(17 << 10).into()));
    let refused = results.put("t", "i", b"content").unwrap_err().to_string();
    assert!(refused.contains("its description exceeds 16384 bytes"), "{refused}");
    assert!(place.results().list().unwrap().is_empty());
}

/// Owner and reference of a result.
type ResultKey = (Option<String>, String);

/// Store of servers, which can be gone.
#[derive(Debug, Default)]
struct SharedPlace {
    results: Mutex<HashMap<ResultKey, Vec<u8>>>,
    is_gone: AtomicBool,
}

impl SharedResults for SharedPlace {
    fn max_len(&self) -> u64 {
        1000
    }

    fn put(&self, owner: Option<&str>, reference: &str, result: Vec<u8>) -> io::Result<()> {
        if self.is_gone.load(Relaxed) {
            return Err(io::Error::other("gone"));
        }
        self.results.lock().unwrap().insert((owner.map(str::to_owned), reference.to_owned()), result);
        Ok(())
    }

    fn get(&self, owner: Option<&str>, reference: &str) -> io::Result<Option<Vec<u8>>> {
        match self.is_gone.load(Relaxed) {
            true => Err(io::Error::other("gone")),
            false => Ok(self.results.lock().unwrap().get(&(owner.map(str::to_owned), reference.to_owned())).cloned()),
        }
    }
}

#[test]
fn servers_read_the_results_of_one_another_and_keep_those_that_are_too_long() {
    let (shared, places) = (Arc::new(SharedPlace::default()), [Place::new(), Place::new()]);
    let of = |place: &Place, owner: &str| place.results().shared_in(shared.clone()).of_owner(Some(owner.into()));
    let [one, two] = places.each_ref().map(|place| of(place, "ada"));
    let kept = put(&one, "aä日💻z");
    assert!(!kept.is_local && !places[0].folder().exists());
    assert_eq!(whole(&two, &kept), "aä日💻z".as_bytes());
    let part = two.open(&kept.reference, 1..4).unwrap();
    assert_eq!((part.text(), part.offset, part.next), ("ä".into(), 1, Some(3)));
    assert!(is_absent(of(&places[1], "bob").open(&kept.reference, ..)));
    // A result that is too long, or that the store does not take, is at its server alone, and says so.
    let long = put(&one, "x".repeat(1000));
    assert!(long.is_local && is_absent(two.open(&long.reference, ..)));
    assert_eq!(whole(&one, &long).len(), 1000);
    shared.is_gone.store(true, Relaxed);
    let late = put(&one, "late");
    assert!(late.is_local && whole(&one, &late) == b"late");
    assert_eq!(reason(two.open(&kept.reference, ..)), "gone");
    shared.is_gone.store(false, Relaxed);
    // Neither the servers nor the store trust its content.
    for (_, bytes) in shared.results.lock().unwrap().iter_mut() {
        *bytes.last_mut().unwrap() ^= 1;
    }
    assert!(reason(two.open(&kept.reference, ..)).contains("was changed"));
}
