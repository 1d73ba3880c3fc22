//! Reload of programs: a broken one keeps the last good tools, a repaired one is served, and no grant reaches the server's own
//! files.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, PATIENCE, text};
use crate::configuration::write_user;
use crate::crib::{Crib, guest};
use crate::screen::Page;

/// Calls the echo until its answer is `expected`.
fn becomes(client: &mut Client, expected: bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = client.call("echo", &json!({"a": 1}));
        let is_answered = answer["result"]["isError"] == false && text(&answer) == r#"{"a":1}"#;
        if is_answered == expected {
            return;
        }
        assert!(Instant::now() < until, "{answer}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_broken_program_keeps_the_last_good_tools() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &[], &json!({}));
    becomes(&mut client, true);
    let program = crib.path("tools/bin/echo.wasm");
    fs::write(&program, "broken").unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(client.tools(), ["echo", "read_result"]);
    becomes(&mut client, true);
    fs::copy(guest("spin"), &program).unwrap();
    let is_running = |client: &mut Client| {
        let id = client.request("tools/call", &json!({"name": "echo", "arguments": {}}));
        let until = Instant::now() + Duration::from_secs(1);
        while let Ok(message) = client.messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if message["id"] == id {
                return false;
            }
        }
        true
    };
    let until = Instant::now() + PATIENCE;
    while !is_running(&mut client) {
        assert!(Instant::now() < until, "the next good program is served");
    }
}

#[test]
fn a_program_that_was_broken_at_the_start_is_served_once_it_is_repaired() {
    let crib = Crib::with_guests(&["echo"]);
    let program = crib.path("tools/bin/echo.wasm");
    fs::write(&program, "broken").unwrap();
    let mut client = Client::initialized(&crib, &[], &json!({}));
    becomes(&mut client, false);
    fs::copy(guest("echo"), &program).unwrap();
    client.wait(|message: &Value| message["method"] == "notifications/tools/list_changed");
    becomes(&mut client, true);
}

/// Says that the manifest changed.
fn touch(crib: &Crib) {
    let manifest = crib.path("tools.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}\n")).unwrap();
}

#[test]
fn a_reload_has_the_denials_that_the_settings_hold_by_then() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &[], &json!({}));
    becomes(&mut client, true);
    for (text, is_allowed) in [("[permissions]\ndeny = [\"echo\"]\n", false), ("", true)] {
        write_user(&crib, text);
        touch(&crib);
        becomes(&mut client, is_allowed);
    }
}

#[test]
fn no_grant_reaches_the_states_of_waiting_calls_or_the_key_of_the_server() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo", "file_io"]);
    fs::create_dir_all(crib.path("work/states")).unwrap();
    page.run(&crib, &["mcp", "--http=0", "--no-token", "--allow-read=work", "--state-dir=work/states"]);
    for file in ["work/cert.pem", "work/key.pem"] {
        fs::write(crib.path(file), "").unwrap();
    }
    let tls = ["--tls-cert=work/cert.pem", "--tls-key=work/key.pem"];
    page.run(&crib, &[&["mcp", "--http=0", "--no-token", "--allow-read=work"], &tls[..]].concat());
    page.matches("mcp/reached");
}
