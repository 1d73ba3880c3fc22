//! Pages that stay current: the script, and the events of changes, within limits and until the program ends.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{Browser, Console, PATIENCE};
use crate::crib::Crib;

/// The script of every page of a session.
const SCRIPT: &str = "<script src=\"/live.js\" defer></script>";

/// A page without the script of the console.
pub(super) fn without_own_script(page: &str) -> String {
    page.replacen(SCRIPT, "", 1)
}

/// Events of a page that is open.
struct Events {
    stream: TcpStream,
    text: String,
}

impl Events {
    /// Listens for a page.
    fn of(browser: &Browser<'_>, page: &str) -> Self {
        let (path, host) = (&browser.path, browser.console.address);
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head =
            format!("GET {path}events?page={page} HTTP/1.1\r\nhost: {host}\r\ncookie: {}\r\n\r\n", browser.cookie);
        stream.write_all(head.as_bytes()).unwrap();
        let mut events = Self { stream, text: String::new() };
        while !events.text.contains("\r\n\r\n") {
            assert!(events.read(), "{}", events.text);
        }
        events
    }

    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let length = self.stream.read(&mut bytes).unwrap();
        self.text += &String::from_utf8_lossy(&bytes[..length]);
        length > 0
    }

    fn status(&self) -> u16 {
        self.text.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Waits for the next state.
    fn state(&mut self) -> Value {
        loop {
            let start = self.text.find("event: state\ndata: ").map(|at| at + "event: state\ndata: ".len());
            let end = start.and_then(|start| Some(start + self.text[start..].find("\n\n")?));
            if let (Some(start), Some(end)) = (start, end) {
                let state = serde_json::from_str(&self.text[start..end]).unwrap();
                self.text.drain(..end);
                return state;
            }
            assert!(self.read(), "{}", self.text);
        }
    }
}

/// Revision that a page states.
fn revision(page: &str) -> &str {
    let (_, rest) = page.split_once("data-revision=\"").unwrap_or_else(|| panic!("{page}"));
    rest.split('"').next().unwrap()
}

#[test]
fn every_page_of_a_session_has_the_script_and_no_other() {
    let crib = Crib::new();
    let console = Console::start(&crib, &["--tools=builtin"]);
    let browser = console.browser();
    for page in ["runs", "calls", "figures", "verify", "tools", "decisions", "tool?name=fs_read_file"] {
        let text = browser.page(page);
        assert_eq!((text.matches("<script").count(), text.matches(SCRIPT).count()), (1, 1), "{page}: {text}");
        assert!(text.contains("id=\"spoken\" role=\"status\""), "{page}: {text}");
    }
    assert!(!console.get("/", "").body.contains("<script"));
    let script = console.get("/live.js", "");
    assert_eq!(script.header("content-type"), Some("text/javascript; charset=utf-8"), "{script:?}");
    assert!(script.body.len() < 12_000, "{}", script.body.len());
    for sink in ["innerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "DOMParser", "createPolicy"]
    {
        assert!(!script.body.contains(sink), "no text becomes markup or a script: {sink}");
    }
}

#[test]
fn a_page_hears_of_a_new_call_and_then_states_the_same_revision() {
    let crib = Crib::with_guests(&["echo"]);
    crib.call("echo", &json!({ "n": 1 }), &[]);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let page = browser.page("calls");
    let mut events = Events::of(&browser, "calls");
    assert_eq!(events.status(), 200, "{}", events.text);
    assert!(events.text.contains("content-type: text/event-stream"), "{}", events.text);
    let first = events.state();
    assert_eq!(first, json!({ "revision": revision(&page), "waiting": 0 }), "nothing has changed");
    crib.call("echo", &json!({ "n": 2 }), &[]);
    let second = events.state();
    assert_ne!(second["revision"], first["revision"]);
    let page = browser.page("calls");
    assert_eq!(second["revision"], revision(&page));
    assert!(page.contains("<div id=\"list\" data-live>"), "{page}");
}

#[test]
fn every_page_hears_how_many_calls_wait_and_only_its_own_changes() {
    let crib = Crib::with_guests(&["echo"]);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let (mut runs, mut decisions) = (Events::of(&browser, "runs"), Events::of(&browser, "decisions"));
    let (first, before) = (runs.state(), decisions.state());
    assert_eq!((&first["waiting"], &before["waiting"]), (&json!(0), &json!(0)));
    super::decisions::prepare(&crib);
    let (second, mut after) = (runs.state(), decisions.state());
    while after["waiting"] == 0 {
        // The file was not written whole yet.
        after = decisions.state();
    }
    assert_eq!(second, json!({ "revision": first["revision"], "waiting": 2 }));
    assert_eq!(after["waiting"], 2);
    assert_ne!(after["revision"], before["revision"]);
    assert!(browser.page("runs").contains("id=\"waiting\" data-count=\"2\">2 waiting"));
    browser.send("decisions", &[("id", super::decisions::FIRST), ("answer", "no")]);
    assert_eq!(runs.state()["waiting"], 1);
    super::pages::keep(&crib, "7k3md-x0q9a", "m", &[super::pages::message(json!({ "role": "user", "content": "go" }))]);
    assert_ne!(runs.state()["revision"], first["revision"]);
}

#[test]
fn events_need_a_session_and_their_number_is_limited() {
    let console = Console::start(&Crib::new(), &["--share-read"]);
    let browser = console.browser();
    assert_eq!(console.get(&format!("{}events?page=runs", browser.path), "").status, 403, "without the cookie");
    let shared: Vec<Browser<'_>> = (0..5).map(|_| console.open(&console.tokens[1])).collect();
    let mut open: Vec<Events> = shared.iter().take(4).flat_map(|one| (0..4).map(|_| Events::of(one, "runs"))).collect();
    assert!(open.iter().all(|events| events.status() == 200));
    assert_eq!(Events::of(&shared[0], "runs").status(), 503, "a session has four");
    assert_eq!(Events::of(&shared[4], "runs").status(), 503, "and those that only look sixteen");
    let mut own = Events::of(&browser, "runs");
    assert_eq!((own.status(), &own.state()["waiting"]), (200, &json!(0)), "but one that decides is never kept out");
    assert!(browser.page("runs").contains("<h1>Runs</h1>"), "pages are made beside them");
    // A page that leaves makes room, as soon as the console has noticed.
    drop(open.pop());
    let until = std::time::Instant::now() + PATIENCE;
    while Events::of(&shared[3], "runs").status() != 200 {
        assert!(std::time::Instant::now() < until, "no room");
    }
}

#[cfg(unix)]
#[test]
fn an_interruption_ends_events_at_once() {
    use rustix::process::{Pid, Signal, kill_process};

    let console = Console::start(&Crib::new(), &[]);
    let browser = console.browser();
    let mut events = Events::of(&browser, "runs");
    events.state();
    kill_process(Pid::from_child(&console.child), Signal::INT).unwrap();
    while events.read() {}
    assert!(events.text.ends_with("0\r\n\r\n"), "the answer ends, and is not cut: {}", events.text);
    assert_eq!(console.end().code(), Some(130));
}
