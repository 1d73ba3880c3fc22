//! Tests of the pending calls: their bounds, answers that are used once, and processes that share the file.

use std::fs;
use std::thread;

use jiff::SignedDuration;
use tempfile::TempDir;

use super::call::tests::{call, longest};
use super::call::{MAX_ANSWER_AGE, MAX_WAIT};
use super::*;

fn store() -> (TempDir, PendingCalls) {
    let folder = tempfile::tempdir().unwrap();
    let calls = PendingCalls::file(folder.path().join("new/pending.json"));
    (folder, calls)
}

/// Identifier under which a call waits.
#[track_caller]
fn waiting(outcome: PendingOutcome) -> String {
    let PendingOutcome::Waiting { id } = outcome else { panic!("{outcome:?}") };
    id
}

/// Message and hint of an error.
fn advice(error: &anyhow::Error) -> (String, String) {
    (error.to_string(), error.downcast_ref::<Advice>().expect("a hint").hint().to_owned())
}

/// Moves all times of the file into the past.
fn age(calls: &PendingCalls, by: SignedDuration) {
    let change = |all: &mut Vec<PendingCall>| {
        for one in all {
            one.asked -= by;
            one.answer.iter_mut().for_each(|answer| answer.time -= by);
        }
    };
    calls.0.change(change).unwrap();
}

#[test]
fn an_answer_covers_one_repetition_of_the_same_call() {
    let (_folder, calls) = store();
    for (allowed, outcome) in
        [(true, PendingOutcome::Answer(ApprovalAnswer::Once)), (false, PendingOutcome::Answer(ApprovalAnswer::No))]
    {
        let id = waiting(calls.record(call("k", "c")).unwrap());
        assert_eq!(waiting(calls.record(call("k", "c")).unwrap()), id, "the same call keeps its identifier");
        let other = waiting(calls.record(call("l", "c")).unwrap());
        assert_ne!(other, id);
        assert_eq!(calls.answer(&id.to_uppercase(), allowed).unwrap().id, id);
        assert_eq!(waiting(calls.record(call("l", "c")).unwrap()), other, "another call has no answer");
        assert_eq!(calls.record(call("k", "c")).unwrap(), outcome);
        let again = waiting(calls.record(call("k", "c")).unwrap());
        assert_ne!(again, id, "a used answer is used");
        assert!(calls.answer(&id, true).is_err());
        assert_eq!(calls.list().unwrap().len(), 2);
        fs::remove_file(calls.path()).unwrap();
    }
}

#[test]
fn an_unknown_an_expired_and_an_answered_identifier_have_their_own_errors() {
    let (_folder, calls) = store();
    assert!(calls.list().unwrap().is_empty());
    let (message, hint) = advice(&calls.find("x\u{1b}[2J").unwrap_err());
    assert_eq!(message, r"`x\u{1b}[2J` is not the identifier of a call, which is like `7k3md-x0q9a`");
    assert_eq!(hint, LIST_HINT);
    let long = advice(&calls.find(&"x".repeat(1 << 20)).unwrap_err());
    assert!(long.0.len() < 200, "{}", long.0);
    for error in [calls.find("00000-00000").unwrap_err(), calls.answer("0000000000", true).unwrap_err()] {
        assert!(advice(&error).0.starts_with("no call waits under `00000-00000`"), "{error}");
    }
    let id = waiting(calls.record(call("k", "c")).unwrap());
    age(&calls, MAX_WAIT + SignedDuration::from_secs(1));
    for error in [calls.find(&id).unwrap_err(), calls.answer(&id, true).unwrap_err()] {
        assert_eq!(advice(&error).0, format!("the request for `{id}` (`fs_rm`) has expired"));
    }
    assert!(calls.list().unwrap().is_empty());
    let id = waiting(calls.record(call("k", "c")).unwrap());
    calls.answer(&id, true).unwrap();
    let (message, hint) = advice(&calls.answer(&id, true).unwrap_err());
    assert!(message.starts_with(&format!("`{id}` (`fs_rm`) was allowed at ")), "{message}");
    assert!(hint.contains(&format!("`toolcrib approvals deny {id}`")), "{hint}");
    calls.answer(&id, false).unwrap();
    for allowed in [true, false] {
        let (message, _) = advice(&calls.answer(&id, allowed).unwrap_err());
        assert!(message.starts_with(&format!("`{id}` (`fs_rm`) was denied at ")), "{message}");
    }
    assert_eq!(
        calls.record(call("k", "c")).unwrap(),
        PendingOutcome::Answer(ApprovalAnswer::No),
        "the denial replaced the allowance"
    );
}

#[test]
fn an_answer_that_is_not_used_in_time_is_forgotten() {
    let (_folder, calls) = store();
    let id = waiting(calls.record(call("k", "c")).unwrap());
    age(&calls, MAX_WAIT - SignedDuration::from_secs(10));
    assert_eq!(waiting(calls.record(call("k", "c")).unwrap()), id);
    calls.answer(&id, true).unwrap();
    age(&calls, MAX_ANSWER_AGE - SignedDuration::from_secs(10));
    assert_eq!(calls.list().unwrap().len(), 1, "the time counts from the answer");
    age(&calls, SignedDuration::from_secs(11));
    assert!(advice(&calls.answer(&id, true).unwrap_err()).0.starts_with("the answer to"));
    assert_ne!(waiting(calls.record(call("k", "c")).unwrap()), id);
    assert_eq!(calls.read().unwrap().len(), 1, "expired calls are removed by the next one");
}

#[test]
fn the_oldest_call_without_an_answer_gives_way_and_no_client_displaces_all_others() {
    let (_folder, calls) = store();
    let first = waiting(calls.record(call("first", "quiet")).unwrap());
    let answered = waiting(calls.record(call("answered", "loud")).unwrap());
    calls.answer(&answered, true).unwrap();
    for at in 0..MAX_PER_OWNER + 3 {
        calls.record(call(&format!("loud {at}"), "loud")).unwrap();
    }
    let keys = || calls.list().unwrap().into_iter().map(|call| call.key).collect::<Vec<_>>();
    assert_eq!(keys().len(), 2 + MAX_PER_OWNER);
    assert_eq!(keys()[..3], ["first", "answered", "loud 3"]);
    let fill = |all: &mut Vec<PendingCall>| {
        all.extend((all.len()..MAX_PENDING).map(|at| call(&format!("fill {at}"), &format!("client {at}"))));
    };
    calls.0.change(fill).unwrap();
    calls.record(call("last", "late")).unwrap();
    assert_eq!(keys().len(), MAX_PENDING);
    assert!(calls.find(&first).is_err() && calls.find(&answered).is_ok());
    assert_eq!(calls.record(call("answered", "loud")).unwrap(), PendingOutcome::Answer(ApprovalAnswer::Once));
}

#[test]
fn a_file_full_of_answers_takes_no_further_call_and_keeps_them() {
    let (_folder, calls) = store();
    let fill = |all: &mut Vec<PendingCall>| {
        for at in 0..MAX_PENDING {
            let answer = Some(PendingAnswer { allowed: true, time: Timestamp::now(), reason: None, session: false });
            all.push(PendingCall { answer, ..call(&format!("{at}"), "c") });
        }
    };
    calls.0.change(fill).unwrap();
    let (message, _) = advice(&calls.record(call("one more", "c")).unwrap_err());
    assert_eq!(message, format!("{MAX_PENDING} calls have an answer that was not used"));
    assert_eq!(calls.record(call("0", "c")).unwrap(), PendingOutcome::Answer(ApprovalAnswer::Once));
    waiting(calls.record(call("one more", "c")).unwrap());
}

#[test]
fn the_longest_calls_fit_the_file() {
    let (_folder, calls) = store();
    calls.record(longest()).unwrap();
    let bytes = fs::metadata(calls.path()).unwrap().len();
    assert!(bytes * (MAX_PENDING as u64 + 1) <= MAX_BYTES, "{bytes} bytes a call");
    assert_eq!(calls.list().unwrap()[0].arguments, longest().arguments);
}

#[test]
fn a_file_that_is_too_long_or_not_understood_is_an_error_and_stays() {
    let (_folder, calls) = store();
    calls.record(call("k", "c")).unwrap();
    fs::File::options().write(true).open(calls.path()).unwrap().set_len(1 << 40).unwrap();
    let error = format!("{:#}", calls.record(call("l", "c")).unwrap_err());
    assert!(error.contains("cannot use the pending calls in `") && error.contains("bytes allowed"), "{error}");
    for text in ["", "[]", r#"{"pending":[{"id":"00000-00000"}]}"#, r#"{"pending":[],"more":1}"#] {
        fs::write(calls.path(), text).unwrap();
        assert!(calls.list().is_err() && calls.record(call("l", "c")).is_err(), "{text}");
        assert!(calls.answer("00000-00000", true).is_err(), "{text}");
        assert_eq!(fs::read_to_string(calls.path()).unwrap(), text);
    }
}

#[test]
fn two_stores_of_one_file_use_an_answer_once_and_lose_no_call() {
    let (_folder, calls) = store();
    let stores = [calls.clone(), PendingCalls::file(calls.path())];
    for round in 0..4 {
        let id = waiting(calls.record(call("shared", "c")).unwrap());
        calls.answer(&id, true).unwrap();
        let allowed: usize = thread::scope(|scope| {
            let ask = |at: usize| {
                let store = &stores[at % 2];
                scope.spawn(move || {
                    store.record(call(&format!("own {round} {at}"), &format!("client {at}"))).unwrap();
                    usize::from(
                        store.record(call("shared", "c")).unwrap() == PendingOutcome::Answer(ApprovalAnswer::Once),
                    )
                })
            };
            let asking: Vec<_> = (0..6).map(ask).collect();
            asking.into_iter().map(|one| one.join().unwrap()).sum()
        });
        assert_eq!(allowed, 1, "round {round}");
    }
    assert_eq!(calls.list().unwrap().len(), 4 * 6 + 1, "and the shared call waits again");
}

#[test]
fn a_killed_writer_leaves_the_calls_as_they_were() {
    let (folder, calls) = store();
    let id = waiting(calls.record(call("k", "c")).unwrap());
    fs::write(folder.path().join("new/pending.json.new"), "{\"pending\":[").unwrap();
    assert_eq!(calls.find(&id).unwrap().id, id);
    calls.answer(&id, true).unwrap();
    assert_eq!(calls.record(call("k", "c")).unwrap(), PendingOutcome::Answer(ApprovalAnswer::Once));
}

#[cfg(unix)]
#[test]
fn the_file_belongs_to_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, calls) = store();
    calls.record(call("k", "c")).unwrap();
    assert_eq!(fs::metadata(calls.path()).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(calls.path(), fs::Permissions::from_mode(0o666)).unwrap();
    let error = format!("{:#}", calls.record(call("k", "c")).unwrap_err());
    assert!(error.contains("other users may write it"), "{error}");
}

#[test]
fn the_calls_of_one_owner_leave_room_for_others_among_those_that_servers_share() {
    let mut calls = Vec::new();
    let of = |owner: &str, key: &str| PendingCall {
        owner: owner.to_owned(),
        key: key.to_owned(),
        answer: None,
        ..longest()
    };
    let size = serde_json::to_vec_pretty(&of("ada", "k")).unwrap().len();
    let bob = of("bob", "k");
    calls.push(bob.clone());
    let fits = MAX_SHARED_OWNER_BYTES / size;
    for number in 0..fits + 2 {
        let new = of("ada", &format!("k{number}"));
        make_shared_room(&mut calls, &new);
        calls.push(new);
    }
    assert!(calls[0] == bob && (fits..=fits + 1).contains(&calls.len()), "{} of {fits}", calls.len());
    assert_eq!(calls.last().unwrap().key, format!("k{}", fits + 1), "the oldest of the owner gave way");
    // Many owners together have a limit too.
    for number in 0..=MAX_SHARED_BYTES / size {
        let new = of(&number.to_string(), "k");
        make_shared_room(&mut calls, &new);
        calls.push(new);
    }
    let bytes: usize = calls.iter().map(|call| serde_json::to_vec_pretty(call).unwrap().len()).sum();
    assert!(bytes <= MAX_SHARED_BYTES && !calls.contains(&bob), "{bytes}");
}
