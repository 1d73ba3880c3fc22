//! Calls that wait for approval: their list, their sheets and the answers of the command line.

use std::fs;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

/// Identifiers of the prepared calls.
const FIRST: &str = "00000-aaaaa";
const SECOND: &str = "11111-bbbbb";
const EXPIRED: &str = "22222-ccccc";

fn file(crib: &Crib) -> PathBuf {
    crib.path("home/.local/state/toolcrib/pending.json")
}

/// Call that was asked about some minutes ago.
fn call(id: &str, minutes: i64) -> Value {
    json!({
        "id": id,
        "tool": "fs_rm",
        "client": "editor",
        "arguments": "{\"path\":\"plan.md\"}",
        "granted": ["write:/srv/work"],
        "restsOn": "ask fs_rm (toolcrib.toml)",
        "source": "/srv/tools.json (tool[9])",
        "properties": "destructive (declared)",
        "asked": Timestamp::now() - SignedDuration::from_mins(minutes),
        "key": format!("sha256:{id}"),
    })
}

/// Creates a crib with calls that wait: one with a scope for a permanent approval, one with hostile texts, and one that has
/// expired.
fn crib() -> Crib {
    let crib = Crib::with_guests(&["file_io"]);
    let mut first = call(FIRST, 5);
    first["approval"] = json!({"tool": "fs_rm", "digest": "sha256:00", "definition": "sha256:01",
        "rule": "ask fs_rm (toolcrib.toml)", "granted": ["write:/srv/work"]});
    let mut second = call(SECOND, 3);
    second["client"] = json!("evil\n\u{1b}[2J00000-zzzzz  get_time");
    second["preview"] = json!("reads a file\n     State | allowed\u{202e}");
    second["leftOut"] = json!(9);
    prepare(&crib, &json!({ "pending": [first, second, call(EXPIRED, 61)] }).to_string());
    crib
}

fn prepare(crib: &Crib, text: &str) {
    fs::create_dir_all(file(crib).parent().unwrap()).unwrap();
    fs::write(file(crib), text).unwrap();
}

/// Output of `approvals pending --json`.
fn pending(crib: &Crib) -> Value {
    let ran = crib.run(&["approvals", "pending", "--json"]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn waiting_calls_are_listed_and_shown_with_all_that_an_answer_needs() {
    let page = Page::new();
    let crib = Crib::new();
    assert_eq!(crib.run(&["approvals", "pending", "--json"]).stdout, "[]\n");
    assert!(!file(&crib).exists(), "a list creates nothing");
    let crib = self::crib();
    page.note("one line per call that has not expired");
    page.run(&crib, &["approvals", "pending"]);
    let calls = pending(&crib);
    assert_eq!(calls.as_array().map(Vec::len), Some(2));
    assert_eq!((&calls[0]["id"], &calls[0]["restsOn"]), (&json!(FIRST), &json!("ask fs_rm (toolcrib.toml)")));
    let shown = crib.run(&["approvals", "pending", FIRST, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap(), calls[0]);

    page.run(&crib, &["approvals", "pending", "0000o-AAAAA"]);
    let sheet = page.run(&crib, &["approvals", "pending", SECOND]).stdout;
    assert!(sheet.lines().all(|line| line.get(10..13) == Some(" | ")), "every line is marked: {sheet}");
    assert_eq!(sheet.matches("\n     State | ").count(), 1, "{sheet}");
    page.matches("permissions/pending");
}

#[test]
fn a_call_is_answered_once_and_an_allowance_can_be_taken_back() {
    let page = Page::new();
    let crib = crib();
    let allowed = page.run(&crib, &["approvals", "allow", FIRST]);
    assert!(allowed.stderr.lines().count() == 1, "{allowed:?}");
    assert_eq!(pending(&crib)[0]["answer"]["allowed"], true);
    page.run(&crib, &["approvals", "pending"]);
    assert!(!crib.path("approvals.json").exists(), "once is not always");

    page.run(&crib, &["approvals", "allow", FIRST]);
    page.run(&crib, &["approvals", "deny", FIRST]);
    assert_eq!(pending(&crib)[0]["answer"]["allowed"], false);
    for answer in ["allow", "deny"] {
        page.run(&crib, &["approvals", answer, FIRST]);
    }
    assert_eq!(pending(&crib)[1].get("answer"), None, "the other call waits");
    page.matches("permissions/answered");
}

#[test]
fn identifiers_that_cannot_be_answered_have_their_own_errors() {
    let page = Page::new();
    let crib = crib();
    let before = fs::read_to_string(file(&crib)).unwrap();
    for id in ["fs_rm", "33333-ddddd", EXPIRED] {
        for action in ["pending", "allow", "deny"] {
            page.run(&crib, &["approvals", action, id]);
        }
    }
    assert_eq!(fs::read_to_string(file(&crib)).unwrap(), before);
    page.run(&crib, &["approvals", "allow"]);
    page.run(&crib, &["approvals", "deny", FIRST, "--always"]);
    for reason in ["", " ", &"x".repeat(1001)] {
        page.run(&crib, &["approvals", "deny", FIRST, "--reason", reason]);
    }
    page.matches("permissions/identifiers");
}

#[test]
fn always_stores_a_permanent_approval_of_a_call_that_has_a_scope() {
    let page = Page::new();
    let crib = crib();
    page.run(&crib, &["approvals", "allow", SECOND, "--always"]);
    assert_eq!(pending(&crib)[1].get("answer"), None, "and it still waits");
    page.run(&crib, &["approvals", "allow", FIRST, "--always"]);
    let stored: Value = serde_json::from_str(&crib.run(&["approvals", "list", "--json"]).stdout).unwrap();
    assert_eq!((&stored[0]["tool"], &stored[0]["definition"]), (&json!("fs_rm"), &json!("sha256:01")));
    assert_eq!(stored[0]["granted"], json!(["write:/srv/work"]));
    assert_eq!(pending(&crib)[0]["answer"]["allowed"], true);
    page.matches("permissions/always");
}

#[test]
fn a_file_that_is_not_understood_stops_the_commands_and_stays() {
    let page = Page::new();
    let crib = Crib::new();
    prepare(&crib, "{\"pending\":[");
    for arguments in [&["pending"][..], &["pending", FIRST], &["allow", FIRST], &["deny", FIRST]] {
        page.run(&crib, &[&["approvals"], arguments].concat());
    }
    assert_eq!(fs::read_to_string(file(&crib)).unwrap(), "{\"pending\":[");
    page.matches("permissions/pending-damaged");
}

#[test]
fn no_tool_reaches_the_calls_that_wait() {
    let crib = crib();
    let call = |flags: &[&str]| {
        let arguments = json!({"op": "roots", "path": "."}).to_string();
        crib.run(&[&["call", "file_io", &arguments, "--json"], flags].concat())
    };
    for flag in ["--allow-read=home/.local/state/toolcrib", "--allow-write=home"] {
        let ran = call(&[flag]);
        assert!(ran.code == Some(1) && ran.stderr.contains("would let a tool reach the "), "{flag}: {ran:?}");
    }
    for access in ["read", "write"] {
        let ran = call(&["--set=approvals.pending=work/waiting.json", &format!("--allow-{access}=work")]);
        assert_eq!(ran.code, Some(1), "{access}: {ran:?}");
        assert!(ran.stderr.contains("would let a tool reach the pending approvals in"), "{access}: {ran:?}");
    }
    let ran = call(&["--set=approvals.pending=waiting.json", "--allow-write=work"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
