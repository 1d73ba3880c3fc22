//! Targets for stored files: a result and the approvals, with any content. Invalid content is reported, not used, and not
//! changed.

use std::fs;
use std::path::Path;

use toolcrib::Results;
use toolcrib::policy::{Approval, Approvals, StoredApproval};

use super::Act;

const REFERENCE: &str = "res_0123456789abcdef0123456789abcdef";

/// Target for results. Input: the content of a result's file, which is also tried as a reference.
pub(super) fn results(folder: &Path) -> Act {
    let folder = folder.join("results");
    let results = Results::folder(&folder);
    results.put("t", "c", b"the first").expect("a result");
    results.clear().expect("an empty folder");
    Box::new(move |input| {
        if let Ok(text) = std::str::from_utf8(input) {
            assert!(results.open(text, ..).is_err(), "nothing is kept under {text:?}");
        }
        fs::write(folder.join(REFERENCE), input).expect("a file");
        let listed = results.list().expect("a list");
        let whole = results.open(REFERENCE, ..);
        match &whole {
            Ok(whole) => {
                assert!(input.ends_with(&whole.content) && whole.next.is_none());
                assert_eq!(whole.stored.bytes, whole.content.len() as u64);
                assert_eq!(listed.as_slice(), std::slice::from_ref(&whole.stored));
                let mut joined = Vec::new();
                let mut next = Some(0);
                while let Some(from) = next {
                    let part = results.open(REFERENCE, from..from + 7).expect("a part of a valid result");
                    assert!(part.offset == from && part.next.is_none_or(|next| next > from));
                    joined.extend(part.content);
                    next = part.next;
                }
                assert_eq!(joined, whole.content, "the parts are not the whole");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        let kept = results.put("t", "c", input).expect("there is room");
        assert_eq!(results.open(&kept.reference, ..).expect("the stored result").content, input);
        assert!(results.clear().expect("an empty folder") >= 1);
        assert!(results.list().expect("a list").is_empty());
    })
}

/// Target for approvals. Input: the content of the file.
pub(super) fn approvals(folder: &Path) -> Act {
    let file = Approvals::file(folder.join("approvals.json"));
    let mut approval = Approval::new("t", "sha256:00", "ask * (here)");
    approval.definition = Some("sha256:01".into());
    Box::new(move |input| {
        fs::write(file.path(), input).expect("a file");
        match file.read() {
            Ok(given) => {
                file.add(&approval).expect("it can be added to");
                let now = file.read().expect("it can be read again");
                // The new approval replaces one that an earlier version stored for the same tool and rule.
                let replaced =
                    |one: &StoredApproval| one.definition.is_none() && one.tool == "t" && one.rule == approval.rule;
                let kept: Vec<_> = given.iter().filter(|one| !replaced(one)).cloned().collect();
                assert!(now.starts_with(&kept) && now.iter().any(|one| one.approval() == approval));
                file.remove(|one| one.approval() == approval).expect("it can be taken from");
                let left = file.read().expect("it can be read again");
                assert!(left.iter().all(|one| given.contains(one)));
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                assert!(file.add(&approval).is_err(), "an invalid file was extended");
                assert_eq!(fs::read(file.path()).expect("the file"), input, "it was changed");
            }
        }
    })
}
