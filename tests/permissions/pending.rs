//! Calls that wait for approval: their list, their sheets and the answers of the command line.

use std::fs;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::crib::Crib;

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
    let crib = Crib::new();
    assert_eq!(crib.run(&["approvals", "pending", "--json"]).stdout, "[]\n");
    assert!(!file(&crib).exists(), "a list creates nothing");
    let crib = self::crib();
    let listed = crib.run(&["approvals", "pending"]);
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "one line per call that has not expired: {listed:?}");
    assert!(lines[0].starts_with("ID ") && lines[0].ends_with("RULE"), "{listed:?}");
    assert!(
        lines[1].starts_with("00000-aaaaa  fs_rm  editor ") && lines[1].contains("  waiting  ask fs_rm"),
        "{listed:?}"
    );
    assert!(lines[2].starts_with(r"11111-bbbbb  fs_rm  evil \u{1b}[2J00000-zzzzz get_time  "), "{listed:?}");
    let calls = pending(&crib);
    assert_eq!(calls.as_array().map(Vec::len), Some(2));
    assert_eq!((&calls[0]["id"], &calls[0]["restsOn"]), (&json!(FIRST), &json!("ask fs_rm (toolcrib.toml)")));
    let shown = crib.run(&["approvals", "pending", FIRST, "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap(), calls[0]);

    let sheet = crib.run(&["approvals", "pending", "0000o-AAAAA"]).stdout;
    for row in [
        "      Call | 00000-aaaaa\n",
        "    Client | editor\n",
        "      Tool | fs_rm\n",
        "    Source | /srv/tools.json (tool[9])\n",
        " Arguments | {\n           |   \"path\": \"plan.md\"\n           | }\n",
        "   Granted | write:/srv/work\n",
        "  Asked by | ask fs_rm (toolcrib.toml)\n",
        "    Always | `--always` applies to calls of `fs_rm`",
        "     State | waiting until ",
    ] {
        assert!(sheet.contains(row), "{row:?} in {sheet}");
    }
    let sheet = crib.run(&["approvals", "pending", SECOND]).stdout;
    assert!(sheet.lines().all(|line| line.get(10..13) == Some(" | ")), "every line is marked: {sheet}");
    assert_eq!(sheet.matches("\n     State | ").count(), 1, "{sheet}");
    assert!(sheet.contains("  Left out | 9 more characters") && !sheet.contains(['\u{1b}', '\u{202e}']), "{sheet}");
}

#[test]
fn a_call_is_answered_once_and_an_allowance_can_be_taken_back() {
    let crib = crib();
    let allowed = crib.run(&["approvals", "allow", FIRST]);
    assert_eq!((allowed.code, allowed.stdout.as_str()), (Some(0), ""), "{allowed:?}");
    let confirmation = "allowed `fs_rm` for `editor`: the same call passes once if it is repeated until ";
    assert!(allowed.stderr.starts_with(confirmation) && allowed.stderr.lines().count() == 1, "{allowed:?}");
    assert_eq!(pending(&crib)[0]["answer"]["allowed"], true);
    assert!(crib.run(&["approvals", "pending"]).stdout.contains("  allowed  ask fs_rm"));
    assert!(!crib.path("approvals.json").exists(), "once is not always");

    let again = crib.run(&["approvals", "allow", FIRST]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.starts_with("error: `00000-aaaaa` (`fs_rm`) was allowed at "), "{again:?}");
    assert!(again.stderr.contains("\nhint: the call passes once if it is repeated"), "{again:?}");
    let denied = crib.run(&["approvals", "deny", FIRST]);
    let confirmation = "denied `fs_rm` for `editor`: the same call is denied once if it is repeated until ";
    assert!(denied.code == Some(0) && denied.stderr.contains(confirmation), "{denied:?}");
    assert_eq!(pending(&crib)[0]["answer"]["allowed"], false);
    for answer in ["allow", "deny"] {
        let again = crib.run(&["approvals", answer, FIRST]);
        assert!(again.stderr.starts_with("error: `00000-aaaaa` (`fs_rm`) was denied at "), "{again:?}");
    }
    assert_eq!(pending(&crib)[1].get("answer"), None, "the other call waits");
}

#[test]
fn identifiers_that_cannot_be_answered_have_their_own_errors() {
    let crib = crib();
    let before = fs::read_to_string(file(&crib)).unwrap();
    for (id, message, hint) in [
        ("fs_rm", "`fs_rm` is not the identifier of a call", "`toolcrib approvals pending` lists the calls"),
        ("33333-ddddd", "no call waits under `33333-ddddd`", "`toolcrib approvals pending` lists the calls"),
        (EXPIRED, "the request for `22222-ccccc` (`fs_rm`) has expired", "if the call is repeated"),
    ] {
        for action in ["pending", "allow", "deny"] {
            let ran = crib.run(&["approvals", action, id]);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{action} {id}: {ran:?}");
            assert!(ran.stderr.starts_with(&format!("error: {message}")), "{action}: {ran:?}");
            assert!(ran.stderr.contains(&format!("\nhint: {hint}")), "{action}: {ran:?}");
        }
    }
    assert_eq!(fs::read_to_string(file(&crib)).unwrap(), before);
    assert_eq!(crib.run(&["approvals", "allow"]).code, Some(2));
    assert_eq!(crib.run(&["approvals", "deny", FIRST, "--always"]).code, Some(2));
    for reason in ["", " ", &"x".repeat(1001)] {
        assert_eq!(crib.run(&["approvals", "deny", FIRST, "--reason", reason]).code, Some(2), "{reason}");
    }
}

#[test]
fn always_stores_a_permanent_approval_of_a_call_that_has_a_scope() {
    let crib = crib();
    let refused = crib.run(&["approvals", "allow", SECOND, "--always"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.starts_with("error: `11111-bbbbb` cannot be allowed permanently: "), "{refused:?}");
    assert!(refused.stderr.contains("hint: `toolcrib approvals allow 11111-bbbbb` allows it once"), "{refused:?}");
    assert_eq!(pending(&crib)[1].get("answer"), None, "and it still waits");
    let allowed = crib.run(&["approvals", "allow", FIRST, "--always"]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let confirmation = "allowed permanently: calls of `fs_rm` that `ask fs_rm (toolcrib.toml)` asks about; \
                        `toolcrib approvals remove fs_rm` revokes it\n";
    assert!(allowed.stderr.ends_with(confirmation), "{allowed:?}");
    let stored: Value = serde_json::from_str(&crib.run(&["approvals", "list", "--json"]).stdout).unwrap();
    assert_eq!((&stored[0]["tool"], &stored[0]["definition"]), (&json!("fs_rm"), &json!("sha256:01")));
    assert_eq!(stored[0]["granted"], json!(["write:/srv/work"]));
    assert_eq!(pending(&crib)[0]["answer"]["allowed"], true);
}

#[test]
fn a_file_that_is_not_understood_stops_the_commands_and_stays() {
    let crib = Crib::new();
    prepare(&crib, "{\"pending\":[");
    for arguments in [&["pending"][..], &["pending", FIRST], &["allow", FIRST], &["deny", FIRST]] {
        let ran = crib.run(&[&["approvals"], arguments].concat());
        assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("error: cannot use the pending calls in `"), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("cause: EOF while parsing"), "{arguments:?}: {ran:?}");
    }
    assert_eq!(fs::read_to_string(file(&crib)).unwrap(), "{\"pending\":[");
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
        let ran = call(&["--pending=work/waiting.json", &format!("--allow-{access}=work")]);
        assert_eq!(ran.code, Some(1), "{access}: {ran:?}");
        assert!(ran.stderr.contains("would let a tool reach the pending approvals in"), "{access}: {ran:?}");
    }
    let ran = call(&["--pending=waiting.json", "--allow-write=work"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}
