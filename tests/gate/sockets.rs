//! Raw sockets, datagrams and look-ups: refused to every guest under every grant.

use serde_json::json;

use super::names::{Names, at};
use super::servers::Server;
use super::{Gate, ROUND, allow};
use crate::crib::Crib;

#[test]
fn no_grant_gives_a_socket_a_datagram_or_a_lookup() {
    let crib = Crib::with_guests(&[&ROUND[..], &["echo"]].concat());
    let server = Server::plain("hello");
    let names = Names::new([("api.example.com", at("127.0.0.1"))]);
    let flags = [
        &allow(&["*", &server.authority(), &names.address(), "0.0.0.0/0:443", "[::/0]:443"])[..],
        "--dns",
        &names.address(),
    ];
    let arguments = [
        json!({"address": server.authority()}),
        json!({"address": names.address()}),
        json!({"name": "api.example.com"}),
    ];
    for (guest, arguments) in ROUND.into_iter().zip(arguments) {
        for flags in [&flags[..], &[]] {
            let line = crib.call(guest, &arguments, flags);
            let output = line["result"].as_object().unwrap_or_else(|| panic!("{guest}: {line}"));
            assert!(output["error"].is_string() && !output.values().any(|value| value == true), "{guest}: {line}");
            let denied = line["receipt"]["denied"].as_array().unwrap();
            let refused = |denial: &serde_json::Value| denial["capability"].as_str().unwrap().starts_with("sockets:");
            assert!(denied.iter().any(refused), "{guest}: {line}");
        }
    }
    assert_eq!((server.connections(), names.all_asked().len()), (0, 0));
    assert_eq!(crib.outcome("echo", &json!({}), &[]), "ok");
    assert_eq!(crib.records().len(), 7);
}

#[test]
fn a_tool_that_may_send_requests_is_open_to_the_world_and_not_proven_harmless() {
    let gate = Gate::new();
    let ran = gate.crib.run(&["inspect", "http", "--json", "--allow-net=api.example.com"]);
    let output: serde_json::Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    assert!(output.to_string().contains("wasi:http/outgoing-handler"), "{output}");
    for (part, name, harmless) in
        [("safety", "is_open_world", false), ("safety", "is_read_only", true), ("safety", "is_concurrency_safe", true)]
    {
        let fact = &output["interface"][part][name];
        assert!(fact["basis"].is_string() && fact["value"] != json!(harmless), "{name}: {fact}");
    }
}
