//! Runs that a page starts: only by the link for it, with the options of the console, and no longer than the console.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use super::{Browser, Console, PATIENCE};
use crate::answering::{Answer, Server};
use crate::crib::Crib;

/// Options of a console whose calls of `echo` need an approval.
const OPTIONS: [&str; 2] = ["--start-runs", "--ask-tool=echo"];

/// Starts a console in a folder whose settings name a model of a server.
fn start(crib: &Crib, server: &Server) -> Console {
    let settings = format!("[model]\nname = \"m\"\nbase_url = \"{}/v1\"\n", server.uri());
    fs::write(crib.path("toolcrib.toml"), settings).unwrap();
    Console::start(crib, &OPTIONS)
}

fn says(message: Value) -> Answer {
    Answer::new(200).json(json!({ "choices": [{ "message": message, "finish_reason": "stop" }] }))
}

fn calls_echo() -> Answer {
    let function = json!({ "name": "echo", "arguments": "{\"n\":1}" });
    says(json!({ "content": null, "tool_calls": [{ "id": "c1", "type": "function", "function": function }] }))
}

/// Waits until a page has a part, and returns the page.
fn until(browser: &Browser<'_>, page: &str, part: &str) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let shown = browser.page(page);
        if shown.contains(part) {
            return shown;
        }
        assert!(Instant::now() < until, "{part} in {shown}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Form token on a page.
fn token(page: &str) -> String {
    let (_, rest) = page.split_once("name=\"token\" value=\"").unwrap_or_else(|| panic!("no form: {page}"));
    rest.split('"').next().unwrap().to_owned()
}

/// Begins the session that starts runs.
fn starter(console: &Console) -> Browser<'_> {
    let browser = console.open(&console.tokens[1]);
    browser.form_token.set(token(&browser.page("runs"))).unwrap();
    browser
}

/// Page to which an answer leads.
fn led(browser: &Browser<'_>, answer: &super::Answer) -> String {
    let to = answer.header("location").unwrap_or_else(|| panic!("{answer:?}"));
    to.strip_prefix(&browser.path).unwrap().to_owned()
}

#[test]
fn a_run_is_started_decided_about_and_resumed_from_the_page() {
    let crib = Crib::with_guests(&["echo"]);
    let done = |text: &str| says(json!({ "content": text }));
    let server = Server::start().answers("/v1/chat/completions", [calls_echo(), done("first done"), done("more done")]);
    let console = start(&crib, &server);
    let browser = starter(&console);
    assert!(browser.page("runs").contains("Start a run"));
    let run = led(&browser, &browser.send("runs/start", &[("prompt", "--version"), ("model", "")]));
    let waiting = until(&browser, &run, "This run waits for your decision");
    assert!(waiting.contains("Stop the run") && !waiting.contains("Resume the run"), "{waiting}");
    let id = waiting.split("decisions#call-").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(browser.send("decisions", &[("id", &id), ("answer", "once")]).status, 303);
    let ended = until(&browser, &run, "first done");
    assert!(ended.contains("--version"), "the prompt is no option: {ended}");
    let ended = until(&browser, &run, "Resume the run");
    assert!(!ended.contains("Stop the run"), "{ended}");
    let id = run.trim_start_matches("runs/");
    assert_eq!(led(&browser, &browser.send("runs/resume", &[("id", id), ("prompt", "and more")])), run);
    assert!(until(&browser, &run, "more done").contains("and more"));
    assert_eq!(crib.records().len(), 1);
}

#[test]
fn only_the_link_for_it_starts_runs_and_errors_are_shown() {
    let crib = Crib::with_guests(&["echo"]);
    let server = Server::start();
    let console = start(&crib, &server);
    let decides = console.browser();
    assert!(!decides.page("runs").contains("Start a run"));
    for form in ["runs/start", "runs/resume", "runs/stop"] {
        let token = token(&decides.page("tool/call?name=echo"));
        let origin = format!("origin: http://{}\r\nsec-fetch-site: same-origin\r\n", console.address);
        let answer = decides.post(form, &[("token", &token), ("prompt", "go")], &origin);
        assert!(answer.status == 403 && answer.body.contains("starts no runs"), "{answer:?}");
    }
    let starts = starter(&console);
    assert_eq!(starts.post("runs/start", &[("prompt", "go")], "").status, 403, "a form without its token");
    let long = "x".repeat(8_001);
    let cases = [
        ("runs/start", [("prompt", " "), ("id", "")], "the prompt is empty"),
        ("runs/start", [("prompt", &long), ("id", "")], "more than 8000 characters"),
        ("runs/resume", [("prompt", "go"), ("id", "--config=x")], "is not a run ID"),
        ("runs/resume", [("prompt", "go"), ("id", "00000-00000")], "the run did not begin: no run"),
        ("runs/stop", [("prompt", ""), ("id", "00000-00000")], "not one of this console"),
    ];
    for (form, fields, message) in cases {
        let answer = starts.send(form, &fields);
        assert!(answer.status >= 400 && answer.body.contains(message), "{message}: {answer:?}");
    }
    assert_eq!(server.received().len(), 0);
}

#[cfg(unix)]
#[test]
fn at_most_four_runs_are_under_way_and_they_end_with_the_console() {
    let crib = Crib::with_guests(&["echo"]);
    let server = Server::start().replies("/v1/chat/completions", |_| calls_echo());
    let console = start(&crib, &server);
    let browser = starter(&console);
    let runs: Vec<String> = (0..4).map(|_| led(&browser, &browser.send("runs/start", &[("prompt", "go")]))).collect();
    let refused = browser.send("runs/start", &[("prompt", "go")]);
    assert!(refused.status == 409 && refused.body.contains("4 runs of this console are under way"), "{refused:?}");
    let id = runs[0].trim_start_matches("runs/");
    assert_eq!(browser.send("runs/stop", &[("id", id)]).status, 303);
    until(&browser, &runs[0], "Resume the run");
    let pid = console.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert_eq!(console.end().code(), Some(130));
    let listed = crib.run(&["runs", "list", "--json"]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let states: Vec<_> = listed.as_array().unwrap().iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["interrupted"; 4], "{listed}");
}
