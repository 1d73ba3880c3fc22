//! Trust by a click: exactly the content that was shown, by the records of `toolcrib trust`.

use serde_json::json;

use super::pages::HOSTILE;
use super::{Browser, Console};
use crate::crib::Crib;

/// Crib that nobody trusts, with a tool that requests a variable.
fn stranger(name: &str) -> Crib {
    let mut crib = Crib::new();
    crib.trusts = false;
    request(&crib, name);
    crib
}

fn request(crib: &Crib, name: &str) {
    let mut tool = crib.entry("env_dump");
    tool["capabilities"] = json!({ "env": [name] });
    crib.manifest(&json!({ "tools": [tool] }));
}

/// Value of a hidden field of the first form with it.
fn field(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{name}: {page}"));
    rest.split('"').next().unwrap().to_owned()
}

fn send(browser: &Browser<'_>, page: &str, button: &str) -> super::Answer {
    let (path, token) = (field(page, "path"), field(page, "token"));
    let digest = if button == "trust" { field(page, "digest") } else { String::new() };
    let own = format!("origin: http://{}\r\n", browser.console.address);
    let fields = [("token", token.as_str()), ("path", &path), ("digest", &digest), ("do", button)];
    browser.post("decisions/trust", &fields, &own)
}

#[test]
fn a_click_trusts_what_was_shown_and_ends_it() {
    let crib = stranger("TOKEN");
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let page = browser.page("decisions");
    let shown = crib.run(&["trust", "./tools.json"]).stdout;
    for line in shown.lines().filter(|line| !line.is_empty()) {
        assert!(page.contains(line.trim()), "{line} in {page}");
    }
    assert!(!browser.page("tool?name=env_dump").contains("reviewed: everything"), "nothing is trusted yet");
    let answer = send(&browser, &page, "trust");
    assert_eq!(answer.status, 303, "{answer:?}");
    assert!(browser.page("tool?name=env_dump").contains("reviewed: everything"), "the tools are read again");
    assert!(crib.run(&["trust", "./tools.json"]).stdout.contains("is trusted"));
    // Another content is shown with its difference.
    request(&crib, "OTHER");
    let page = browser.page("decisions");
    for part in
        ["has changed since it was trusted", "the definition changed", "new: read the environment variable OTHER"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    // A content that is not the one that was shown is not trusted.
    request(&crib, "THIRD");
    let stale = send(&browser, &page, "trust");
    assert!(stale.status == 409 && stale.body.contains("has changed since it was shown"), "{stale:?}");
    assert_eq!(crib.run(&["trust", "./tools.json"]).code, Some(1));
    let page = browser.page("decisions");
    assert_eq!(send(&browser, &page, "trust").status, 303);
    let page = browser.page("decisions");
    assert_eq!(send(&browser, &page, "end").status, 303);
    assert!(crib.run(&["trust", "./tools.json"]).stdout.contains("is not trusted"));
}

#[test]
fn more_than_a_page_shows_is_not_trusted_there() {
    let mut crib = Crib::new();
    crib.trusts = false;
    let tools: Vec<_> = (0..201)
        .map(|at| {
            let mut tool = crib.entry("env_dump");
            tool["name"] = json!(format!("tool_{at}"));
            tool["capabilities"] = json!({ "env": [format!("NAME_{at}")] });
            tool
        })
        .collect();
    crib.manifest(&json!({ "tools": tools }));
    let console = Console::start(&crib, &[]);
    let page = console.browser().page("decisions");
    assert!(page.contains("and 1 more") && page.contains("toolcrib trust --json"), "{page}");
    assert!(!page.contains("Trust this content"), "{page}");
}

#[cfg(unix)]
#[test]
fn unreadable_trust_hides_no_call_that_waits() {
    let crib = Crib::new();
    super::decisions::prepare(&crib);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let file = crib.path("home/.local/state/toolcrib/trusted.json");
    std::fs::write(&file, "{}").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let page = browser.page("decisions");
    assert!(page.contains("plan.md") && page.contains("Allow once") && page.contains("trusted.json"), "{page}");
}

#[test]
fn requests_with_hostile_names_are_inert_and_those_who_look_trust_nothing() {
    let crib = stranger(&format!("TOKEN{}", HOSTILE.replace('\u{1b}', "")));
    let console = Console::start(&crib, &["--share-read"]);
    let (browser, looks) = (console.browser(), console.open(&console.tokens[1]));
    let page = super::live::without_own_script(&browser.page("decisions"));
    for part in ["<script", "<svg", "\u{202e}", "\u{200b}"] {
        assert!(!page.contains(part), "{part:?} in {page}");
    }
    let shared = looks.page("decisions");
    assert!(!shared.contains("Trust this content") && !shared.contains("End trust"), "{shared}");
    request(&crib, "TOKEN");
    let page = browser.page("decisions");
    assert_eq!(send(&looks, &page, "trust").status, 403);
}
