//! Several servers over one database: keys and quotas that all of them know, the end of a server amid a call, and a database that
//! stops and starts again.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::OnceLock;

use serde_json::{Value, json};

use super::http::{Answer, Server, token};
use super::programs::{crib, outcomes, until};
use super::shared_tenants::without_file;
use super::text;
use crate::crib::{Crib, Ran};
use crate::postgres::{PASSWORD, Postgres};

/// Permissions of the guest that sleeps, which shows that it has begun.
const FLAGS: [&str; 3] = ["--allow-write=work", "--timeout=600s", "--stateless"];

/// Database of all tests here that do not stop it; each uses servers of another name.
pub(super) fn shared() -> Option<&'static Postgres> {
    static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
    SHARED.get_or_init(Postgres::start).as_ref()
}

/// Settings of servers with this name.
pub(super) fn settings(postgres: &Postgres, crib: &Crib, name: &str, more: &str) -> &'static str {
    let (store, file) = (postgres.address(), postgres.password_file());
    let text = format!(
        "[server]\nstore = \"{store}\"\nstore_name = \"{name}\"\nstore_password_file = \"{}\"\n{more}",
        file.display()
    );
    fs::write(crib.path("server.toml"), text).unwrap();
    "--config=server.toml"
}

fn servers(crib: &Crib, number: usize, config: &str) -> Vec<Server> {
    let flags = [&FLAGS[..], &[config]].concat();
    (0..number).map(|_| Server::start(crib, &flags)).collect()
}

fn nap(server: &Server, headers: &str, ms: u64) -> Answer {
    server.exchange(&server.requested("tools/call", json!({"name": "nap", "arguments": {"ms": ms}}), headers))
}

fn is_repeated(answer: &Value) -> bool {
    answer["result"]["_meta"]["toolcrib/repeated"] == true
}

fn retry_after(answer: &Answer) -> Option<u64> {
    answer.head.to_lowercase().lines().find_map(|line| line.strip_prefix("retry-after: ")?.parse().ok())
}

#[test]
fn a_key_that_goes_to_all_servers_at_once_has_one_effect_for_each_token() {
    let Some(postgres) = shared() else { return };
    let crib = crib();
    let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
    let servers = servers(&crib, 3, settings(postgres, &crib, "keys", ""));
    let key = format!("{ada}idempotency-key: order-1\r\n");
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..12)
            .map(|number| {
                scope.spawn({
                    let (servers, key) = (&servers, &key);
                    move || nap(&servers[number % 3], key, 50)
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let made = answers.iter().filter(|answer| answer.message()["result"]["isError"] == false);
    assert_eq!(made.filter(|answer| !is_repeated(&answer.message())).count(), 1, "{answers:?}");
    for server in &servers {
        let again = nap(server, &key, 50).message();
        assert!(is_repeated(&again) && again["result"]["isError"] == false, "{again}");
    }
    assert_eq!(outcomes(&crib, "nap"), ["ok"]);
    // The key of another token is of another call, and reaches no result.
    let other = nap(&servers[0], &format!("{bob}idempotency-key: order-1\r\n"), 50).message();
    assert!(other["result"]["isError"] == false && !is_repeated(&other), "{other}");
    assert_eq!(outcomes(&crib, "nap").len(), 2);
}

#[test]
fn a_quota_is_exact_over_three_servers() {
    let Some(postgres) = shared() else { return };
    let crib = Crib::with_guests(&["echo"]);
    let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
    let window = super::operating::window().trim_start_matches("--set=server.quota_window=");
    let more = format!("quota_calls = 50\nquota_running = 200\nquota_window = \"{window}\"\n");
    let servers = servers(&crib, 3, settings(postgres, &crib, "quotas", &more));
    let echo = |server: &Server, headers: &str| {
        server.request("tools/call", json!({"name": "echo", "arguments": {}}), headers)
    };
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> = servers
            .iter()
            .flat_map(|server| (0..4).map(move |_| server))
            .map(|server| scope.spawn(|| (0..10).map(|_| echo(server, &ada).status).collect::<Vec<_>>()))
            .collect();
        all.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    let number = |status| statuses.iter().filter(|found| **found == status).count();
    assert_eq!((number(200), number(429)), (50, 70), "{statuses:?}");
    let refused = echo(&servers[1], &ada);
    assert!(refused.status == 429 && retry_after(&refused).is_some_and(|seconds| seconds > 600), "{refused:?}");
    assert_eq!((echo(&servers[1], &bob).status, servers[2].list(&ada).status), (200, 200));
    assert_eq!(outcomes(&crib, "echo").len(), 51);
}

#[test]
fn a_long_result_is_read_at_each_server_by_the_token_that_it_belongs_to() {
    let Some(postgres) = shared() else { return };
    let crib = Crib::with_guests(&["echo"]);
    let (ada, bob) = (token(&crib, "ada", &[]), token(&crib, "bob", &[]));
    let config = settings(postgres, &crib, "results", "");
    let server = |folder| Server::start(&crib, &[config, "--set=results.max_inline=2000", folder]);
    let servers = ["--results-dir=one", "--results-dir=two"].map(server);
    let long = json!({"name": "echo", "arguments": {"text": "y".repeat(5000)}});
    let long = servers[0].request("tools/call", long, &ada).message();
    let content = long["result"]["content"].as_array().unwrap();
    let uri = content.iter().find_map(|block| block["uri"].as_str()).unwrap_or_else(|| panic!("{long}"));
    assert!(!crib.path("one").join(uri.rsplit('/').next().unwrap()).exists(), "it is in the database alone");
    let read = |server: &Server, token: &str| server.request("resources/read", json!({ "uri": uri }), token).message();
    let part = |server: &Server, token: &str| {
        let part = json!({"reference": uri.rsplit('/').next(), "offset": 4000, "limit": 50});
        server.request("tools/call", json!({"name": "read_result", "arguments": part}), token).message()
    };
    for server in &servers {
        assert!(read(server, &ada).to_string().contains(&"y".repeat(5000)));
        assert!(text(&part(server, &ada)).contains(&"y".repeat(50)));
        assert!(read(server, &bob)["error"].is_object() && part(server, &bob)["result"]["isError"] == true);
    }
}

#[test]
fn a_token_of_the_database_is_known_and_revoked_at_each_server() {
    let Some(postgres) = shared() else { return };
    let crib = Crib::with_guests(&["echo"]);
    let config = settings(postgres, &crib, "tokens", "");
    let run = |args: &[&str]| {
        let ran = crib.run(&[&["mcp", "token"], args, &[config]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.trim().to_owned()
    };
    let none = crib.run(&["mcp", "--http=127.0.0.1:0", config]);
    assert!(none.code == Some(1) && none.stderr.contains("no client has a token"), "{none:?}");
    let ada = run(&["new", "ada", "--for=1d"]);
    assert!(!crib.path("home/.local/state/toolcrib/tokens.json").exists());
    let stored = "SELECT string_agg(convert_from(value, 'UTF8'), '') FROM toolcrib.entry WHERE space = 'tokens' AND kind = 'token'";
    let stored = postgres.query(stored);
    assert!(stored.contains("\"ada\"") && stored.contains("sha256:") && !stored.contains(&ada), "{stored}");
    let servers = servers(&crib, 2, config);
    let ada = format!("authorization: Bearer {ada}\r\n");
    assert!(servers.iter().all(|server| server.list(&ada).status == 200));
    // Names are taken in the database and in the file of before.
    token(&crib, "local", &[]);
    for name in ["ada", "local"] {
        let twice = crib.run(&["mcp", "token", "new", name, config]);
        assert!(twice.code == Some(1) && twice.stderr.contains("exists"), "{twice:?}");
    }
    let reader = format!("authorization: Bearer {}\r\n", run(&["new", "reader", "--scope=metrics"]));
    until(|| servers[1].get("/metrics", &reader).status == 200);
    assert_eq!(servers[1].list(&reader).status, 403);
    let listed: Value = serde_json::from_str(&run(&["list", "--json"])).unwrap();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|token| token["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["local", "ada", "reader"]);
    run(&["revoke", "ada"]);
    until(|| servers.iter().all(|server| server.list(&ada).status == 401));
    // A new token of the name is another one.
    let again = format!("authorization: Bearer {}\r\n", run(&["new", "ada"]));
    until(|| servers.iter().all(|server| server.list(&again).status == 200));
    assert!(servers.iter().all(|server| server.list(&ada).status == 401));
}

#[test]
fn a_server_that_was_killed_amid_a_call_loses_it_for_the_others_to_say() {
    let Some(postgres) = shared() else { return };
    let crib = crib();
    let ada = token(&crib, "ada", &[]);
    let mut servers = servers(&crib, 2, settings(postgres, &crib, "killed", ""));
    let key = format!("{ada}idempotency-key: order-1\r\n");
    let mut killed = servers.remove(0);
    let other = servers.remove(0);
    let request = killed.requested("tools/call", json!({"name": "nap", "arguments": {"ms": 300_000}}), &key);
    let mut stream = TcpStream::connect(killed.address).unwrap();
    stream.write_all(&request).unwrap();
    let begun =
        || postgres.query("SELECT count(*) FROM toolcrib.entry WHERE space = 'killed' AND kind = 'call'") == "1";
    until(begun);
    let running = nap(&other, &key, 300_000).message();
    assert!(text(&running).contains("still runs"), "{running}");
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    // Its last sign of life is over in ten seconds; those of the other servers come again.
    postgres.query("UPDATE toolcrib.server SET alive_until = now() - interval '1s'");
    let lost = nap(&other, &key, 300_000).message();
    assert!(lost["result"]["isError"] == true && text(&lost).contains("effect is unknown"), "{lost}");
}

#[test]
fn while_the_database_is_gone_only_what_needs_it_is_refused() {
    let Some(mut postgres) = Postgres::start() else { return };
    let crib = crib();
    let ada = token(&crib, "ada", &[]);
    let config = settings(&postgres, &crib, "gone", "");
    let plain = servers(&crib, 1, config).remove(0);
    let limited = Server::start(&crib, &[&FLAGS[..], &[config, "--set=server.quota_calls=1000"]].concat());
    let asking = [&["mcp", "--http=127.0.0.1:0"], &FLAGS[..], &[config, "--ask-tool=nap"]].concat();
    let asking = Server::of(without_file(crib.toolcrib(&asking)));
    let key = |number: u32| format!("{ada}idempotency-key: order-{number}\r\n");
    let first = nap(&plain, &key(1), 1).message();
    assert!(first["result"]["isError"] == false, "{first}");
    let id = super::approvals::identifier(&nap(&asking, &ada, 1).message()).to_owned();
    let allow = crib.toolcrib(&["approvals", "allow", &id, "--always", config]);
    let allowed = Ran::of(&mut without_file(allow));
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    let is_allowed = || nap(&asking, &ada, 1).message()["result"]["isError"] == false;
    assert!(is_allowed());
    let ready = |server: &Server| server.get("/readyz", "").status;
    assert_eq!((ready(&plain), nap(&limited, &ada, 1).status), (200, 200));
    let kept = crib.run(&["mcp", "token", "new", "kept", "--config=server.toml"]);
    let kept = format!("authorization: Bearer {}\r\n", kept.stdout.trim());
    until(|| plain.list(&kept).status == 200);
    postgres.stop();
    until(|| ready(&plain) == 503 && ready(&limited) == 503);
    for refused in [nap(&plain, &key(2), 2), nap(&plain, &key(1), 1), nap(&limited, &ada, 1)] {
        assert!(refused.status == 503 && retry_after(&refused) == Some(2), "{refused:?}");
    }
    assert_eq!((nap(&plain, &ada, 1).status, plain.get("/healthz", "").status), (200, 200));
    // Nobody knows if a token of the database, or a permanent approval, was revoked meanwhile.
    assert!(!is_allowed());
    until(|| plain.list(&kept).status == 503);
    assert_eq!(retry_after(&plain.list(&kept)), Some(2));
    postgres.resume();
    until(|| ready(&plain) == 200 && ready(&limited) == 200);
    until(|| plain.list(&kept).status == 200);
    until(is_allowed);
    let again = nap(&limited, &key(1), 1).message();
    assert!(is_repeated(&again), "{again}");
    let second = nap(&plain, &key(2), 2).message();
    assert!(second["result"]["isError"] == false && !is_repeated(&second), "{second}");
    let reader = crib.run(&["mcp", "token", "new", "reader", "--scope=metrics"]);
    let reader = format!("authorization: Bearer {}\r\n", reader.stdout.trim());
    let figures = plain.get("/metrics", &reader).body;
    for figure in [
        "toolcrib_store_seconds_count{operation=\"claim\"}",
        "toolcrib_store_failures_total{operation=\"live\",reason=\"unavailable\"}",
    ] {
        assert!(figures.contains(figure), "{figure}: {figures}");
    }
}

#[test]
fn the_address_of_a_database_is_the_hosts_and_has_no_password() {
    let crib = Crib::with_guests(&["echo"]);
    let start = |set: &str| crib.run(&["mcp", "--http=127.0.0.1:0", "--no-token", &format!("--set=server.{set}")]);
    for (set, reason) in [
        ("store=postgres://a:hunter2@127.0.0.1/b", "a password does not belong here"),
        ("store=postgres://a@127.0.0.1/b?password=hunter2", "expected no parameters but"),
        ("store=mysql://a@127.0.0.1/hunter2", "expected an address such as"),
        // Nothing listens at this port.
        (
            "store=postgres://a@127.0.0.1:1/b?connect_timeout=1",
            "cannot use the shared store postgres://a@127.0.0.1:1/b",
        ),
    ] {
        let ran = start(set);
        assert!(ran.code.is_some_and(|code| code > 0) && ran.stderr.contains(reason), "{set}: {ran:?}");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
    fs::write(crib.path("toolcrib.toml"), "[server]\nstore = \"postgres://a@127.0.0.1/b\"\n").unwrap();
    let ran = crib.run(&["mcp", "--http=127.0.0.1:0", "--no-token"]);
    assert!(ran.code.is_some_and(|code| code > 0) && ran.stderr.contains("a project cannot set this"), "{ran:?}");
    fs::remove_file(crib.path("toolcrib.toml")).unwrap();

    let Some(postgres) = shared() else { return };
    let config = settings(postgres, &crib, "doctor", "");
    let checked = crib.run(&["doctor", config]);
    assert!(checked.stdout.contains("for the servers `doctor`"), "{checked:?}");
    for ran in [checked, crib.run(&["config", "explain", config])] {
        assert!(!format!("{ran:?}").contains(PASSWORD), "{ran:?}");
        assert!(ran.stdout.contains(&postgres.address()) || ran.stdout.contains("store"), "{ran:?}");
    }
}
