//! Changes of a running server's settings, and quotas of tools.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};

use serde_json::json;

use super::http::{Server, token};
use super::operating::window;
use super::programs::{answer, until};
use super::{PATIENCE, text};
use crate::crib::Crib;

/// Starts a server that reads `server.toml`, with the lines that it prints.
fn start(crib: &Crib) -> (Server, Receiver<String>) {
    let mut command = crib.toolcrib(&["mcp", "--http", "--no-token", "--config=server.toml"]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (sender, lines) = channel();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let serving = wait_for(&lines, "serving http").pop().unwrap();
    let address = serving.split("://").nth(1).unwrap().trim_end_matches("/mcp").parse().unwrap();
    (Server { child, address }, lines)
}

/// Returns the next lines up to one with this part.
fn wait_for(lines: &Receiver<String>, part: &str) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let line = lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no line with `{part}`: {all:?}"));
        all.push(line);
        if all.last().is_some_and(|line| line.contains(part)) {
            return all;
        }
    }
}

#[test]
fn changed_settings_hold_for_the_next_requests_and_a_mistake_changes_nothing() {
    let crib = Crib::with_guests(&["echo"]);
    let write = |settings: &str| {
        // Replaced at once: the server may look at any time.
        let next = crib.path("next.toml");
        fs::write(&next, format!("[server]\naddress = \"127.0.0.1:0\"\n{settings}")).unwrap();
        fs::rename(next, crib.path("server.toml")).unwrap();
    };
    write("max_body = \"10KiB\"\n");
    let (server, lines) = start(&crib);
    let call = |length: usize| {
        let large = json!({"name": "echo", "arguments": {"text": "x".repeat(length)}});
        server.request("tools/call", large, "").status
    };
    let of_host = || {
        let request = "GET /metrics HTTP/1.1\r\nhost: tools.example\r\nconnection: close\r\n\r\n";
        server.exchange(request.as_bytes()).status
    };
    assert_eq!((call(20_000), of_host()), (413, 403));

    write("max_body = \"100KiB\"\nhosts = [\"tools.example\"]\nmax_running = 7\n");
    wait_for(&lines, "read again");
    let restart = wait_for(&lines, "next start").pop().unwrap();
    assert!(restart.contains("`server.max_running`") && !restart.contains("max_body"), "{restart}");
    assert_eq!((call(20_000), of_host()), (200, 200));

    write("max_body = \"1KiB\"\nmax_rate = 0\n");
    let warning = wait_for(&lines, "keeps its settings").pop().unwrap();
    assert!(warning.contains("server.max_rate"), "{warning}");
    assert_eq!((call(20_000), of_host()), (200, 200));

    write(&format!("quota_calls = 2\n{}\n", window().trim_start_matches("--set=server.").replace('=', "=\"") + "\""));
    wait_for(&lines, "read again");
    assert_eq!((call(20_000), of_host()), (200, 403), "the default of 4 MiB, and no other host");
    assert_eq!((call(1), call(1)), (200, 429));
    fs::remove_file(crib.path("server.toml")).unwrap();
    let between = wait_for(&lines, "keeps its settings");
    assert!(!between.iter().any(|line| line.contains("next start")), "max_running is as it runs again: {between:?}");
    assert_eq!(call(1), 429);
}

#[test]
fn a_quota_of_a_tool_counts_its_calls_by_programs_too() {
    let crib = Crib::with_guests(&["echo", "empty"]);
    let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
    let server = Server::start(&crib, &["--code", "--set=server.quota_tools=[\"ech*=3\", \"echo=9\"]", window()]);
    let run = |who: &str, code: &str| {
        let arguments = json!({"name": "run_code", "arguments": {"language": "python", "code": code}});
        server.request("tools/call", arguments, who).message()
    };
    let twice = "[tools.echo(x=1), tools.echo(x=2)][1]";
    assert_eq!(answer(&run(&ada, twice))["value"]["x"], 2);
    let caught = "
made = []
for n in range(4):
    try:
        tools.echo(x=n)
        tools.empty()
        made.append(n)
    except ToolError as error:
        made.append(str(error))
made";
    let found = answer(&run(&ada, caught));
    let made = found["value"].as_array().unwrap_or_else(|| panic!("{found}"));
    assert_eq!(made[0], 0);
    let refused = "blocked by hook \"quota\": the quota of 3 calls to `ech*` is used up: call `echo` again in ";
    assert!(made[1..].iter().all(|error| error.as_str().is_some_and(|error| error.contains(refused))), "{found}");
    assert_eq!(answer(&run(&bob, twice))["value"]["x"], 2, "each token has its own");
    let denied = crib.records().into_iter().filter(|record| record["tool"] == "echo" && record["outcome"] == "denied");
    assert_eq!(denied.count(), 3);

    for (wrong, reason) in
        [("echo", "`fetch_page=100`"), ("echo=0", "`fetch_page=100`"), ("a(b=c)=1", "server.quota_tools")]
    {
        let ran =
            crib.run(&["mcp", "--http=127.0.0.1:0", "--no-token", &format!("--set=server.quota_tools=[\"{wrong}\"]")]);
        assert!(ran.code.is_some_and(|code| code > 0) && ran.stderr.contains(reason), "{wrong}: {ran:?}");
    }
}

#[test]
fn a_quota_of_a_tool_counts_direct_calls() {
    let crib = Crib::with_guests(&["echo"]);
    let server = Server::start(&crib, &["--no-token", "--set=server.quota_tools=[\"echo=2\"]", window()]);
    let call = || server.request("tools/call", json!({"name": "echo", "arguments": {}}), "").message();
    let is_error: Vec<_> = (0..3).map(|_| call()["result"]["isError"].clone()).collect();
    assert_eq!(is_error, [false, false, true]);
    assert!(text(&call()).contains("used up"));
    until(|| crib.records().len() == 4);
}
