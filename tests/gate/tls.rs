//! TLS: the certificate must prove the requested name, at any address.

use std::fs;

use serde_json::json;

use super::certificates::Authority;
use super::names::{Names, at};
use super::servers::Server;
use super::{Gate, allow};
use crate::screen::Page;

/// Creates a gate with the authority's certificate at `ca.pem`, and a name server that knows two names at the loopback
/// address.
fn gate() -> (Gate, Authority, Names) {
    let (gate, authority) = (Gate::new(), Authority::new());
    authority.write(&gate.crib.path("ca.pem"));
    (gate, authority, Names::new([("api.example.com", at("127.0.0.1")), ("other.example.com", at("127.0.0.1"))]))
}

#[test]
fn a_server_that_proves_its_name_is_believed_and_no_other() {
    let (gate, authority, names) = gate();
    let dns = names.address();
    let good = Server::https(authority.serves("api.example.com"), |peer| peer.answer("proven"));
    let wrong = Server::https(authority.serves("other.example.com"), |peer| peer.answer("wrong name"));
    let old = Server::https(authority.served("api.example.com"), |peer| peer.answer("long ago"));
    let foreign = Server::https(Authority::new().serves("api.example.com"), |peer| peer.answer("untrusted"));
    let by_number = Server::https(authority.serves("127.0.0.1"), |peer| peer.answer("an address"));
    let request = |server: &Server| json!({"url": format!("https://api.example.com:{}/", server.port())});
    let grant = |server: &Server| allow(&[&format!("https://api.example.com:{}", server.port()), &server.authority()]);
    let trusted = ["--dns", &dns, "--set", "network.ca=ca.pem"];
    let answer = gate.answered(&request(&good), &[&[&grant(&good)[..]], &trusted[..]].concat());
    assert_eq!(answer["body"], "proven");
    for server in [&wrong, &old, &foreign, &by_number] {
        let error = gate.rejected(&request(server), &[&[&grant(server)[..]], &trusted[..]].concat());
        assert!(error.starts_with("Tls"), "{error}");
        assert!(server.heads().is_empty(), "not a byte of the request is sent");
    }
    let error = gate.rejected(&request(&good), &[&grant(&good), "--dns", &dns]);
    // A host without any authorities cannot even start.
    assert!(error.starts_with("Tls") || error == "ConfigurationError", "nobody trusts it untold: {error}");
    assert_eq!(good.heads().len(), 1);
    let number = json!({"url": format!("https://{}/", by_number.authority())});
    assert_eq!(
        gate.answered(&number, &[&allow(&[&by_number.authority()]), "--set=network.ca=ca.pem"])["body"],
        "an address"
    );
    gate.ends_well();
}

#[test]
fn a_refused_name_gets_no_handshake() {
    let (gate, authority, names) = gate();
    let server = Server::https(authority.serves("other.example.com"), |peer| peer.answer("hello"));
    let url = format!("https://other.example.com:{}/", server.port());
    let granted = allow(&[&format!("api.example.com:{}", server.port()), &server.authority()]);
    gate.denied(&json!({"url": url}), &[&granted, "--dns", &names.address(), "--set=network.ca=ca.pem"]);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_server_that_speaks_no_tls_is_an_error() {
    let gate = Gate::new();
    let hello = b"\x16\x03\x03";
    let garbage = Server::raw(move |peer| peer.flood(&hello.repeat(1000)));
    let plain = Server::raw(|peer| peer.say("HTTP/1.1 400 Bad Request\r\n\r\n"));
    let closed = Server::raw(|_| Ok(()));
    let alert = Server::raw(|peer| peer.say([0x15, 3, 3, 0, 2, 2, 40]));
    for server in [&garbage, &plain, &closed, &alert] {
        let url = format!("https://{}/", server.authority());
        gate.rejected(&json!({"url": url}), &[&allow(&[&server.authority()]), "--timeout=18s"]);
        assert!(server.is_left_alone());
        assert!(server.sent() < 8 << 20, "it took {} bytes", server.sent());
    }
    gate.ends_well();
}

#[test]
fn an_authority_that_cannot_be_read_ends_before_anything_runs() {
    let page = Page::new();
    let gate = Gate::new();
    fs::write(gate.crib.path("empty.pem"), "").unwrap();
    fs::write(gate.crib.path("words.pem"), "no certificate\n").unwrap();
    fs::write(gate.crib.path("broken.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    for file in ["absent.pem", "empty.pem", "words.pem", "broken.pem", "work"] {
        let ran = page.run(&gate.crib, &["call", "http", "{}", &format!("--set=network.ca={file}")]);
        assert!(matches!(ran.code, Some(1 | 2)), "{file}: {ran:?}");
        assert!(ran.stderr.contains(file), "{file}: {ran:?}");
    }
    assert!(gate.crib.logs().is_empty(), "nothing was called");
    page.matches("network/authority");
}

#[test]
fn a_name_server_that_is_none_is_wrong_use() {
    let page = Page::new();
    let gate = Gate::new();
    for written in ["", "ns.example.com:53", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536"] {
        let ran = page.run(&gate.crib, &["call", "http", "{}", &format!("--set=network.nameservers={written}")]);
        assert!(ran.code == Some(2) && ran.stderr.contains("`network.nameservers[0]`"), "{written:?}: {ran:?}");
    }
    page.matches("network/name-server");
}
