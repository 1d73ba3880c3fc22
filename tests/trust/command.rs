//! `toolcrib trust`: the review, the question, the records.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
#[cfg(unix)]
use crate::permissions::terminal::Terminal;
use crate::screen::Page;

use super::{digest, is_granted, stranger, trust};

#[test]
fn a_review_shows_requests_in_plain_words_and_grants_nothing_by_itself() {
    let page = Page::new();
    let crib = stranger();
    page.note("no one answered");
    let ran = page.run(&crib, &["trust", "tools.json"]);
    let folder = crib.path("work").canonicalize().unwrap();
    for line in [
        "tools.json is not trusted.",
        "  env_dump",
        "    read the environment variable TOKEN",
        &format!("    read files in {}", folder.display()),
        &format!("Digest: {}", digest(&crib.path("tools.json"))),
    ] {
        assert!(ran.stdout.lines().any(|found| found == line), "{line}\n{}", ran.stdout);
    }
    assert!(!is_granted(&crib, &[]) && !crib.trusted_file().exists());
    page.matches("trust/review");
}

#[cfg(unix)]
#[test]
fn a_person_at_the_terminal_is_asked_and_only_yes_trusts() {
    for (typed, trusts) in [("yes\n", true), ("y\n", true), ("\n", false), ("no\n", false), ("yess\n", false)] {
        let crib = stranger();
        let mut terminal = Terminal::start(crib.toolcrib(&["trust", "tools.json"]));
        terminal.until("Trust `tools.json`? Type yes: ");
        terminal.types(typed);
        let left = terminal.end();
        assert_eq!((left.code, is_granted(&crib, &[])), (Some(i32::from(!trusts)), trusts), "{typed:?} {left:?}");
    }
}

#[cfg(unix)]
#[test]
fn content_that_changes_during_the_review_is_not_trusted() {
    let page = Page::new();
    let crib = stranger();
    let mut terminal = Terminal::start(crib.toolcrib(&["trust", "tools.json"]));
    terminal.until("Type yes: ");
    let text = fs::read_to_string(crib.path("tools.json")).unwrap().replace("TOKEN", "OTHER");
    fs::write(crib.path("tools.json"), text).unwrap();
    terminal.types("yes\n");
    let left = terminal.end();
    assert_eq!(left.code, Some(1), "{left:?}");
    page.text("terminal", &left.terminal);
    assert!(!crib.trusted_file().exists());
    page.matches("trust/changed");
}

#[test]
fn a_wrong_digest_trusts_nothing_and_names_the_right_one() {
    let page = Page::new();
    let crib = stranger();
    page.run(&crib, &["trust", "tools.json", "--trust=sha256:00"]);
    assert!(!is_granted(&crib, &[]));
    page.matches("trust/wrong-digest");
}

#[test]
fn records_are_listed_removed_and_described_in_json() {
    let page = Page::new();
    let crib = stranger();
    let describe = || -> Value { serde_json::from_str(&crib.run(&["trust", "tools.json", "--json"]).stdout).unwrap() };
    let before = describe();
    assert_eq!((&before["state"], &before["items"][0]["name"]), (&json!("unknown"), &json!("env_dump")), "{before}");
    trust(&crib);
    assert_eq!(describe()["state"], "trusted");
    page.run(&crib, &["trust", "--list"]);
    let records: Value = serde_json::from_str(&crib.run(&["trust", "--list", "--json"]).stdout).unwrap();
    assert_eq!(records[0]["digest"], json!(digest(&crib.path("tools.json"))), "{records}");
    let text = fs::read_to_string(crib.path("tools.json")).unwrap().replace("TOKEN", "OTHER");
    fs::write(crib.path("tools.json"), text).unwrap();
    let changed = describe();
    assert_eq!(changed["state"], "changed");
    assert_eq!(changed["changes"], json!([{"name": "env_dump", "kind": "definition", "requests": ["env:OTHER"]}]));
    page.run(&crib, &["trust", "--remove", "tools.json"]);
    page.run(&crib, &["trust", "--remove", "tools.json"]);
    assert_eq!(describe()["state"], "unknown");
    page.matches("trust/records");
}

#[cfg(unix)]
#[test]
fn damaged_or_shared_records_trust_nothing() {
    let page = Page::new();
    use std::os::unix::fs::PermissionsExt;
    let crib = stranger();
    trust(&crib);
    let file = crib.trusted_file();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    page.run(&crib, &["call", "env_dump", "{}"]);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(is_granted(&crib, &[]));
    fs::write(&file, "{\"trusted\": [").unwrap();
    page.run(&crib, &["call", "env_dump", "{}"]);
    page.matches("trust/damaged");
}

#[test]
fn a_project_that_the_program_creates_is_trusted_and_one_beside_files_of_others_is_not() {
    let state = |crib: &Crib| -> Value {
        let text = crib.run(&["trust", ".", "--json"]).stdout;
        serde_json::from_str::<Value>(&text).unwrap()["state"].clone()
    };
    let mut own = Crib::new();
    own.trusts = false;
    assert_eq!(own.run(&["new", "tool", "first", "--markdown"]).code, Some(0));
    assert_eq!(own.run(&["new", "hook", "guard"]).code, Some(0));
    assert_eq!(state(&own), "trusted");
    let mut other = Crib::new();
    other.trusts = false;
    fs::create_dir_all(other.path(".harness/tools")).unwrap();
    fs::write(other.path(".harness/tools/theirs.md"), "---\nscript: return 1\n---\n").unwrap();
    assert_eq!(other.run(&["new", "tool", "mine", "--markdown"]).code, Some(0));
    assert_eq!(state(&other), "unknown");
}

#[test]
fn a_new_tool_of_the_program_leaves_a_trusted_project_trusted() {
    let crib = stranger();
    fs::create_dir_all(crib.path(".harness")).unwrap();
    fs::write(crib.path("harness.md"), "---\n---\nA project.\n").unwrap();
    let state = || -> Value {
        let text = crib.run(&["trust", ".", "--json"]).stdout;
        serde_json::from_str::<Value>(&text).unwrap()["state"].clone()
    };
    let create = |name: &str| assert_eq!(crib.run(&["new", "tool", name, "--markdown"]).code, Some(0));
    create("first");
    assert_eq!(state(), "unknown", "what nobody trusted stays so");
    let option = format!("--trust={}", digest(&crib.path(".")));
    assert_eq!(crib.run(&["trust", ".", &option]).code, Some(0));
    create("second");
    assert_eq!(state(), "trusted");
    fs::copy(crib.path(".harness/tools/first.md"), crib.path(".harness/tools/third.md")).unwrap();
    assert_eq!(state(), "changed", "a file of somebody else");
}
