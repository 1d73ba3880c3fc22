//! Operation of a server over HTTP: settings in a file, tokens with ends and scopes, quotas, figures and readiness.

use std::collections::BTreeSet;
use std::fs;
use std::time::SystemTime;

use serde_json::{Value, json};

use super::http::{Server, token};
use crate::crib::Crib;

/// Option that names the settings file.
const CONFIG: &str = "--config=server.toml";

fn crib() -> Crib {
    Crib::with_guests(&["echo"])
}

fn call(server: &Server, tool: &str, headers: &str) -> u16 {
    server.request("tools/call", json!({"name": tool, "arguments": {}}), headers).status
}

#[test]
fn the_settings_of_a_server_come_from_a_file() {
    let crib = crib();
    let settings = "[server]\naddress = \"127.0.0.1:0\"\nmax_body = \"10KiB\"\nhosts = [\"tools.example\"]\n";
    fs::write(crib.path("server.toml"), settings).unwrap();
    let server = Server::of(crib.toolcrib(&["mcp", "--http", "--no-token", CONFIG]));
    let large = json!({"name": "echo", "arguments": {"text": "x".repeat(20_000)}});
    assert_eq!(server.request("tools/call", large, "").status, 413);
    let of_host = |host: &str| {
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        server.exchange(request.as_bytes()).status
    };
    assert_eq!((of_host("tools.example"), of_host("other.example")), (200, 403));
    let explained = crib.run(&["config", "explain", CONFIG]);
    assert!(explained.stdout.contains("server.max_body"), "{explained:?}");

    // None of them turns a server over standard streams into one over HTTP.
    let mut client = super::Client::initialized(&crib, &[CONFIG], &json!({}));
    assert!(super::text(&client.call("echo", &json!({"x": 1}))).contains("\"x\":1"));
    assert_eq!(client.leave(), Some(0));

    for (settings, reason) in [
        ("[server]\nmax_rate = 0\n", "server.max_rate"),
        ("[server]\naddress = \"nowhere\"\n", "server.address"),
        ("[server]\ntls_cert = \"own.pem\"\n", "a certificate needs its private key"),
        ("[server]\nhosts = [\"a b\"]\n", "`server.hosts[0]`: expected a host"),
        ("[server]\nmax_bodies = 1\n", "max_bodies"),
    ] {
        fs::write(crib.path("server.toml"), settings).unwrap();
        let ran = crib.run(&["mcp", "--http=127.0.0.1:0", "--no-token", CONFIG]);
        assert!(ran.code.is_some_and(|code| code > 0) && ran.stderr.contains(reason), "{settings}: {ran:?}");
    }
    // A project, trusted or not, decides nothing about a server.
    fs::write(crib.path("toolcrib.toml"), "[server]\nmax_rate = 1\n").unwrap();
    let ran = crib.run(&["mcp", "--http=127.0.0.1:0", "--no-token"]);
    assert!(ran.code.is_some_and(|code| code > 0) && ran.stderr.contains("a project cannot set this"), "{ran:?}");
}

#[test]
fn a_token_ends_and_is_for_its_scopes_alone() {
    let crib = crib();
    let new = |args: &[&str]| {
        let ran = crib.run(&[&["mcp", "token", "new"], args].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        format!("authorization: Bearer {}\r\n", ran.stdout.trim())
    };
    let (ada, figures) = (new(&["ada", "--for=90d"]), new(&["figures", "--scope=metrics"]));
    let both = new(&["both", "--scope=calls,metrics"]);
    let server = Server::start(&crib, &[]);
    let statuses = |headers: &str| (server.list(headers).status, server.get("/metrics", headers).status);
    assert_eq!((statuses(&ada), statuses(&figures), statuses(&both)), ((200, 403), (403, 200), (200, 200)));
    let answer = server.list(&figures);
    let challenge = "www-authenticate: bearer error=\"insufficient_scope\", scope=\"calls\"";
    assert!(answer.head.to_lowercase().contains(challenge) && answer.body.contains("--scope=calls"), "{answer:?}");

    // Its end passes.
    let file = crib.path("home/.local/state/toolcrib/tokens.json");
    let mut tokens: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let stored = tokens.as_object_mut().and_then(|root| root.values_mut().next()).expect("the list of tokens");
    stored[0]["expires"] = "2026-01-01T00:00:00Z".into();
    fs::write(&file, tokens.to_string()).unwrap();
    let answer = server.list(&ada);
    assert!(answer.status == 401 && answer.body.contains("has expired"), "{answer:?}");
    assert_eq!(server.list(&both).status, 200);
    let listed = crib.run(&["mcp", "token", "list"]).stdout;
    assert!(listed.contains("ended") && listed.contains("calls, metrics"), "{listed}");
    fs::write(&file, "no list").unwrap();
    let answer = server.list(&both);
    assert!(answer.status == 503 && answer.body.contains("cannot read its tokens"), "{answer:?}");
    fs::write(&file, tokens.to_string()).unwrap();
    assert_eq!(server.list(&both).status, 200);
    let wrong = crib.run(&["mcp", "token", "new", "x", "--for=30"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("`12h`, `30d` or `4w`"), "{wrong:?}");
}

#[test]
fn the_figures_name_tools_and_outcomes_and_tokens_if_the_operator_wants_it() {
    let crib = crib();
    let ada = token(&crib, "ada", &[]);
    for (flag, label) in [(None, ""), (Some("--set=server.metrics_by_token=true"), ",token=\"ada\"")] {
        let flags = ["--set=server.max_rate=1000"].into_iter().chain(flag).collect::<Vec<_>>();
        let server = Server::start(&crib, &flags);
        assert_eq!((call(&server, "echo", &ada), call(&server, "made_up", &ada)), (200, 200));
        let reader = crib.run(&["mcp", "token", "new", &format!("reader{}", label.len()), "--scope=metrics"]);
        let reader = format!("authorization: Bearer {}\r\n", reader.stdout.trim());
        let answer = server.get("/metrics", &reader);
        assert!(answer.head.contains("application/openmetrics-text; version=1.0.0"), "{answer:?}");
        let line = format!("toolcrib_calls_total{{tool=\"echo\",outcome=\"ok\",door=\"mcp\"{label}}} 1");
        assert!(answer.body.lines().any(|shown| shown == line), "{line}: {}", answer.body);
        assert!(
            answer.body.contains("toolcrib_call_seconds_bucket{le=\"300.0\",tool=\"echo\"} 1\n"),
            "{}",
            answer.body
        );
        assert!(!answer.body.contains("made_up"), "a name of a client is no label: {}", answer.body);
        assert_eq!(server.list("").status, 401);
        let answer = server.get("/metrics", &reader);
        assert!(answer.body.contains("toolcrib_http_refused_total{status=\"401\"} 1\n"), "{}", answer.body);
        // What the library of the protocol refuses counts too.
        let head = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{ada}", server.address);
        let head = format!("{head}content-type: application/json\r\naccept: application/json, text/event-stream\r\n");
        assert_eq!(server.exchange(format!("{head}content-length: 1\r\n\r\n{{").as_bytes()).status, 400);
        let figures = server.get("/metrics", &reader).body;
        assert!(figures.contains("toolcrib_http_refused_total{status=\"400\"} 1\n"), "{figures}");
    }
}

#[test]
fn the_dashboard_shows_the_figures_that_exist() {
    let crib = crib();
    let server = Server::start(&crib, &["--no-token"]);
    assert_eq!((call(&server, "echo", ""), server.get("/elsewhere", "").status), (200, 404));
    let figures = server.get("/metrics", "").body;
    let dashboard = include_str!("../../cli/docs/src/dashboard.json");
    serde_json::from_str::<Value>(dashboard).expect("JSON");
    let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let named: BTreeSet<&str> =
        dashboard.split(|letter| !is_of_name(letter)).filter(|word| word.starts_with("toolcrib_")).collect();
    let missing: Vec<_> =
        named.iter().filter(|name| !figures.lines().any(|line| line.split([' ', '{']).next() == Some(name))).collect();
    assert!(missing.is_empty() && named.len() == 16, "{missing:?} of {named:?}: {figures}");
}

/// Setting of a window that does not end within the next minutes.
pub(super) fn window() -> &'static str {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let is_safe = |hours: u64| hours * 3600 - now % (hours * 3600) > 1200;
    if is_safe(24) { "--set=server.quota_window=24h" } else { "--set=server.quota_window=23h" }
}

#[test]
fn a_token_over_its_quota_is_told_when_to_come_back_and_others_notice_nothing() {
    let crib = Crib::with_guests(&["echo", "spin"]);
    let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
    let window = window();
    let server = Server::start(&crib, &["--set=server.quota_calls=3", window]);
    let statuses: Vec<u16> = (0..5).map(|_| call(&server, "echo", &ada)).collect();
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    let answer = server.request("tools/call", json!({"name": "echo", "arguments": {}}), &ada);
    assert!(answer.body.contains("the quota of calls is used up: repeat the request in "), "{answer:?}");
    let after = answer.head.to_lowercase();
    let after = after.lines().find_map(|line| line.strip_prefix("retry-after: ")?.parse::<u64>().ok());
    assert!(after.is_some_and(|seconds| (1..=86_400).contains(&seconds)), "{answer:?}");
    assert_eq!((server.list(&ada).status, call(&server, "echo", &bob)), (200, 200));
    // Two members of one name are no way around.
    let twice =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}";
    let head = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{ada}", server.address);
    let head = format!("{head}content-type: application/json\r\naccept: application/json, text/event-stream\r\n");
    let request = format!("{head}content-length: {}\r\n\r\n{twice}", twice.len());
    assert_eq!(server.exchange(request.as_bytes()).status, 429);

    let server = Server::start(&crib, &["--set=server.quota_running=1", window, "--timeout=600s"]);
    let mut endless = std::net::TcpStream::connect(server.address).unwrap();
    let spin = server.requested("tools/call", json!({"name": "spin", "arguments": {}}), &ada);
    std::io::Write::write_all(&mut endless, &spin).unwrap();
    let reader = crib.run(&["mcp", "token", "new", "reader", "--scope=metrics"]);
    let reader = format!("authorization: Bearer {}\r\n", reader.stdout.trim());
    super::programs::until(|| server.get("/metrics", &reader).body.contains("toolcrib_http_running 1\n"));
    assert_eq!((call(&server, "echo", &ada), call(&server, "echo", &bob)), (429, 200));
    drop(endless);
    super::programs::until(|| call(&server, "echo", &ada) == 200);
    let figures = server.get("/metrics", &reader).body;
    assert!(
        figures.contains("toolcrib_calls_total{tool=\"spin\",outcome=\"cancelled\",door=\"mcp\"} 1\n"),
        "{figures}"
    );

    for (setting, part) in [("quota_bytes=1", "bytes"), ("quota_cpu=1ms", "processor time")] {
        let server = Server::start(&crib, &[&format!("--set=server.{setting}"), window]);
        let used = || {
            let answer = server.request("tools/call", json!({"name": "echo", "arguments": {"text": "x"}}), &ada);
            answer.body.contains(&format!("the quota of {part} is used up"))
        };
        super::programs::until(used);
    }
}

#[test]
fn the_calls_of_a_program_are_charged_and_a_stream_is_no_call() {
    let crib = crib();
    let window = window();
    let server = Server::start(&crib, &["--no-token", "--code", "--set=server.quota_bytes=100KB", window]);
    let code = "for n in range(4):\n    tools.echo(text=\"x\" * 30000)";
    let run = || server.request("tools/call", json!({"name": "run_code", "arguments": {"code": code}}), "").status;
    assert_eq!((run(), run()), (200, 429));

    let server = Server::start(&crib, &["--no-token", "--set=server.quota_calls=1", window]);
    let (session, _) = server.conversation("").unwrap();
    assert_eq!((call(&server, "echo", ""), call(&server, "echo", "")), (200, 429));
    let end = format!("DELETE /mcp HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{session}\r\n", server.address);
    assert_eq!(server.exchange(end.as_bytes()).status, 204);
}

#[cfg(unix)]
#[test]
fn a_server_that_ends_is_not_ready_and_still_answers_for_a_while() {
    let crib = crib();
    let mut server = Server::start(&crib, &["--no-token", "--set=server.drain_delay=10m"]);
    let ready = |server: &Server| server.get("/readyz", "").status;
    assert_eq!((ready(&server), server.get("/healthz", "").status), (200, 200));
    let signal = |server: &Server| {
        let id = server.child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    };
    signal(&server);
    super::programs::until(|| ready(&server) == 503);
    assert_eq!((server.get("/healthz", "").status, call(&server, "echo", "")), (200, 200));
    // An answer ends the connection, also one that the client would keep.
    let kept = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", server.address);
    let answer = server.exchange(kept.as_bytes());
    assert!(answer.status == 200 && answer.head.to_lowercase().contains("connection: close"), "{}", answer.head);
    signal(&server);
    assert_eq!(server.child.wait().unwrap().code(), Some(143), "the second signal waits for nothing");
}
