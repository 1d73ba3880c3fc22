//! Answers of a person at the terminal: all, some or none of the permissions, or no installation.

use serde_json::json;

use super::{FILE, Release, crib, lock, records};
use crate::permissions::terminal::Terminal;
use crate::screen::Page;

#[test]
fn a_person_grants_all_some_or_none_or_installs_nothing() {
    let page = Page::new();
    let question = "acme/weather: Install with [a]ll, [s]ome or [w]ithout these permissions, or do [N]ot install? ";
    for (answers, granted) in [
        (&["all\n"][..], Some(json!(["env:REGION", "env:TOKEN"]))),
        (&["s\n", "no\n", "yes\n"], Some(json!(["env:TOKEN"]))),
        (&["w\n"], Some(json!(null))),
        (&["n\n"], None),
        (&["none\n"], None),
        (&["\n"], None),
        (&["q\n"], None),
        (&["yes\n"], None),
    ] {
        let crib = crib();
        Release::new("1.2.0").with(|tool| tool["capabilities"]["env"] = json!(["TOKEN", "REGION"])).write(&crib, FILE);
        let mut terminal = Terminal::start(crib.toolcrib(&["install", FILE]));
        terminal.until(question);
        terminal.types(answers[0]);
        for answer in &answers[1..] {
            terminal.until("Type yes: ");
            terminal.types(answer);
        }
        let left = terminal.end();
        assert_eq!(left.code, Some(i32::from(granted.is_none())), "{answers:?}: {left:?}");
        let found = records(&crib).first().map(|record| record["bundle"]["granted"].clone());
        assert_eq!(found, granted, "{answers:?}: {left:?}");
        assert_eq!(lock(&crib).contains("[[bundle]]"), granted.is_some());
        page.note(format!("answers: {answers:?}"));
        page.text("standard output", &left.stdout);
        page.text("terminal", &left.terminal);
    }
    page.matches("install/answers");
}

#[test]
fn a_bundle_that_changes_during_the_question_is_not_installed() {
    let page = Page::new();
    let crib = crib();
    Release::new("1.2.0").write(&crib, FILE);
    let mut terminal = Terminal::start(crib.toolcrib(&["install", FILE]));
    terminal.until("do [N]ot install? ");
    Release::new("1.2.0").with(|tool| tool["description"] = json!("Other.")).write(&crib, FILE);
    terminal.types("all\n");
    let left = terminal.end();
    assert_eq!(left.code, Some(1), "{left:?}");
    page.text("terminal", &left.terminal);
    assert!(records(&crib).is_empty() && lock(&crib).is_empty());
    page.matches("install/changed");
}

#[test]
fn an_update_without_new_permissions_asks_for_a_yes() {
    let page = Page::new();
    let (crib, _) = super::installed();
    for (answer, code) in [("no\n", 1), ("yes\n", 0)] {
        Release::new("1.3.0").with(|tool| tool["description"] = json!("Forecasts snow.")).write(&crib, FILE);
        let mut terminal = Terminal::start(crib.toolcrib(&["update", "--min-age=0"]));
        terminal.until("Install this release of `acme/weather`? Type yes: ");
        terminal.types(answer);
        let left = terminal.end();
        assert_eq!((left.code, lock(&crib).contains("1.3.0")), (Some(code), code == 0), "{left:?}");
        page.text("standard output", &left.stdout);
        page.text("terminal", &left.terminal);
    }
    page.matches("install/update");
}
