//! Name resolution: once per request, with every address checked and the checked address connected; unsolicited answers
//! are ignored.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;

use super::names::{Names, Says, addresses, at};
use super::servers::Server;
use super::{Gate, allow};

/// Time-outs in milliseconds, longer than any loopback server needs, after which an unanswered address is abandoned.
const BRIEF: [u64; 3] = [500, 500, 500];

#[test]
fn a_granted_name_reaches_the_inside_only_where_the_address_is_granted_too() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let names = Names::new([("api.example.com", at("127.0.0.1"))]);
    let (name, dns) = (format!("api.example.com:{}", server.port()), names.address());
    let request = json!({"url": format!("http://{name}/")});
    let denied = gate.denied(&request, &[&allow(&[&name]), "--dns", &dns]);
    assert_eq!(server.connections(), 0);
    // Each grant alone is insufficient; the denial names the missing flag.
    gate.denied(&request, &[&allow(&[&server.authority()]), "--dns", &dns]);
    let missing = denied["flag"].as_str().expect("a flag").strip_prefix("--allow-net=").expect("a destination");
    assert_eq!(gate.answered(&request, &[&allow(&[&name, missing]), "--dns", &dns])["body"], "hello");
    let host = format!("host: {name}\r\n");
    assert!(server.heads()[0].to_lowercase().contains(&host), "it is asked by its name: {:?}", server.heads());
    gate.ends_well();
}

#[test]
fn localhost_is_granted_by_its_name_alone() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let name = format!("localhost:{}", server.port());
    // No name server is queried, so this one need not exist.
    let (request, dns) = (json!({"url": format!("http://{name}/")}), "--set=network.nameservers=127.0.0.1:1");
    for flags in
        [vec![allow(&[&format!("*:{}", server.port())])], vec![allow(&[&name]), "--deny-net=127.0.0.0/8".to_owned()]]
    {
        let flags: Vec<&str> = flags.iter().map(String::as_str).chain([dns]).collect();
        gate.denied(&request, &flags);
        assert_eq!(server.connections(), 0);
    }
    gate.answered(&request, &[&allow(&[&name]), dns]);
}

#[test]
fn a_name_that_changes_between_the_look_and_the_connection_gains_nothing() {
    let (gate, server) = (Gate::new(), Server::plain("inside"));
    // First a granted address without a server, and from then on one that is not granted.
    let turns = Says::InTurn(vec![addresses(&["127.0.0.2"]), addresses(&["127.0.0.1"])]);
    let names = Names::new([("turn.example.com", turns)]);
    let name = format!("turn.example.com:{}", server.port());
    let first = format!("127.0.0.2:{}", server.port());
    let request = json!({"url": format!("http://{name}/"), "times": BRIEF});
    let flags = [&allow(&[&name, &first])[..], "--dns", &names.address(), "--set=limits.tool_timeout=5s"];
    let line = gate.ask(&request, &flags);
    assert_eq!(line["result"]["error"], "ConnectionRefused", "{line}");
    assert_eq!(names.asked("turn.example.com"), 1, "the answer that was checked is the one that is used");
    gate.denied(&request, &flags);
    assert_eq!(server.connections(), 0);
    gate.ends_well();
}

#[test]
fn the_connection_goes_to_the_address_that_was_checked() {
    let gate = Gate::new();
    let (first, second) = pair();
    let turns = Says::InTurn(vec![addresses(&["127.0.0.1"]), addresses(&["127.0.0.2"])]);
    let names = Names::new([("turn.example.com", turns)]);
    let name = format!("turn.example.com:{}", first.port());
    let both = allow(&[&name, &format!("127.0.0.0/8:{}", first.port())]);
    let request = json!({"url": format!("http://{name}/")});
    assert_eq!(gate.answered(&request, &[&both, "--dns", &names.address()])["body"], "first");
    assert_eq!((names.asked("turn.example.com"), first.connections(), second.connections()), (1, 1, 0));
    assert_eq!(gate.answered(&request, &[&both, "--dns", &names.address()])["body"], "second");
}

#[test]
fn one_address_of_the_inside_spoils_the_name() {
    let (gate, server) = (Gate::new(), Server::plain("inside"));
    let names = Names::new([
        ("last.example.com", Says::Addresses(addresses(&["192.0.2.1", "127.0.0.1"]))),
        ("first.example.com", Says::Addresses(addresses(&["127.0.0.1", "192.0.2.1"]))),
        ("other.example.com", Says::Addresses(addresses(&["192.0.2.1", "::1"]))),
        ("mapped.example.com", Says::Addresses(addresses(&["192.0.2.1", "::ffff:127.0.0.1"]))),
        ("alias.example.com", Says::Alias("inside.example.net", addresses(&["127.0.0.1"]))),
        ("granted.example.com", Says::Addresses(addresses(&["127.0.0.1", "10.0.0.1"]))),
    ]);
    let port = server.port();
    // Granted addresses for documentation, so that only the inner address counts against the name. No packet is sent.
    let outside = allow(&[&format!("*.example.com:{port}"), &format!("192.0.2.0/24:{port}")]);
    let one = allow(&[&format!("*.example.com:{port}"), &server.authority()]);
    for (name, flag) in [
        ("last", &outside),
        ("first", &outside),
        ("other", &outside),
        ("mapped", &outside),
        ("alias", &outside),
        ("granted", &one),
    ] {
        let url = format!("http://{name}.example.com:{port}/");
        gate.denied(&json!({"url": url, "times": BRIEF}), &[flag, "--dns", &names.address()]);
        assert_eq!(server.connections(), 0, "{name}");
    }
    gate.ends_well();
}

#[test]
fn many_addresses_hide_none() {
    let (gate, server) = (Gate::new(), Server::plain("inside"));
    let outside = (0..20).map(|last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)));
    let many: Vec<_> = outside.chain([Ipv4Addr::LOCALHOST.into()]).collect();
    let names = Names::new([("many.example.com", Says::Addresses(many))]);
    let name = format!("many.example.com:{}", server.port());
    let grant = allow(&[&name, &format!("192.0.2.0/24:{}", server.port())]);
    let flags = [&grant[..], "--dns", &names.address(), "--set=limits.tool_timeout=5s"];
    gate.denied(&json!({"url": format!("http://{name}/"), "times": BRIEF}), &flags);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_name_server_that_says_nothing_or_nonsense_ends_in_an_error() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let names = Names::new([
        ("garbage.example.com", Says::Garbage(b"\xc0\x0c\xc0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")),
        ("loop.example.com", Says::Garbage(b"\xc0\x2e\x00\x05\x00\x01\x00\x00\x00\x00\x00\x02\xc0\x2e")),
        ("empty.example.com", Says::Addresses(Vec::new())),
        ("silent.example.com", Says::Silence),
    ]);
    let port = server.port();
    let grant = allow(&[&format!("*.example.com:{port}"), &server.authority()]);
    for name in ["garbage", "loop", "empty", "absent"] {
        let request = json!({"url": format!("http://{name}.example.com:{port}/"), "times": BRIEF});
        let flags = [&grant[..], "--dns", &names.address(), "--set=limits.tool_timeout=10s"];
        let line = gate.ask(&request, &flags);
        assert_eq!(line["receipt"]["outcome"], "ok", "{name}: {line}");
        assert!(line["result"]["error"].is_string(), "{name}: {line}");
        assert_eq!(line["receipt"]["denied"], json!([]), "nobody denied it: {line}");
    }
    let request = json!({"url": format!("http://silent.example.com:{port}/")});
    let line = gate.ask(&request, &[&grant, "--dns", &names.address(), "--set=limits.tool_timeout=700ms"]);
    assert_eq!(line["receipt"]["outcome"], "deadline", "{line}");
    assert_eq!(server.connections(), 0);
    gate.ends_well();
}

#[test]
fn an_answer_that_nobody_asked_for_is_not_believed() {
    let gate = Gate::new();
    let (first, second) = pair();
    let says = Says::Forged(addresses(&["127.0.0.2"]), addresses(&["127.0.0.1"]));
    let names = Names::new([("api.example.com", says)]);
    let name = format!("api.example.com:{}", first.port());
    let both = allow(&[&name, &format!("127.0.0.0/8:{}", first.port())]);
    let line = gate.ask(&json!({"url": format!("http://{name}/")}), &[&both, "--dns", &names.address()]);
    assert_ne!(line["result"]["body"], "second", "{line}");
    assert_eq!(second.connections(), 0);
    gate.ends_well();
}

#[test]
fn no_name_is_tried_with_an_end_that_nobody_wrote() {
    let gate = Gate::new();
    let names = Names::new([("api", at("127.0.0.1"))]);
    let flags = ["--allow-net=http://api:8080,http://absent:8080", "--dns", &names.address()];
    gate.denied(&json!({"url": "http://api:8080/"}), &flags);
    gate.rejected(&json!({"url": "http://absent:8080/"}), &flags);
    let mut asked = names.all_asked();
    asked.sort();
    asked.dedup();
    assert_eq!(asked, ["absent", "api"]);
}

/// Two servers on one port of two addresses.
fn pair() -> (Server, Server) {
    loop {
        let first = Server::plain("first");
        if let Some(second) = Server::plain_at(Ipv4Addr::new(127, 0, 0, 2), first.port(), "second") {
            return (first, second);
        }
    }
}
