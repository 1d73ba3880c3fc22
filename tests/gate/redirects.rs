//! Redirects: the host follows none; if the guest follows one, each hop is a separate request.

use serde_json::json;

use super::names::{Names, at};
use super::servers::Server;
use super::{Gate, allow};

#[test]
fn a_redirect_is_an_answer_like_any_other() {
    let (gate, other) = (Gate::new(), Server::plain("other"));
    let server = Server::redirect(other.url());
    let line = gate.ask(&json!({"url": server.url()}), &[&allow(&[&server.authority(), &other.authority()])]);
    assert_eq!((&line["result"]["status"], other.connections()), (&json!(302), 0), "{line}");
}

#[test]
fn each_hop_is_checked() {
    let (gate, target) = (Gate::new(), Server::plain("inside"));
    let port = target.port();
    let names = Names::new([("evil.example.com", at("127.0.0.1")), ("localhost", at("127.0.0.1"))]);
    for to in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://evil.example.com:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        format!("http://[::1]:{port}/"),
    ] {
        let server = Server::redirect(&to);
        let flags = [&allow(&[&server.authority()])[..], "--dns", &names.address()];
        let line = gate.ask(&json!({"url": server.url(), "follow": 5}), &flags);
        assert_eq!(line["result"]["hops"], 1, "{to}: {line}");
        assert!(line["result"]["error"].is_string(), "{to}: {line}");
        assert_eq!(line["receipt"]["denied"].as_array().map(Vec::len), Some(1), "{to}: {line}");
        assert_eq!((server.connections(), target.connections()), (1, 0), "{to}");
    }
    for to in [
        format!("http://2130706433:{port}/"),
        format!("http://x@127.0.0.1:{port}/"),
        format!("gopher://127.0.0.1:{port}/"),
    ] {
        let server = Server::redirect(&to);
        let line = gate.ask(&json!({"url": server.url(), "follow": 5}), &[&allow(&[&server.authority()])]);
        assert!(line["result"]["error"].is_string(), "{to}: {line}");
        assert_eq!(target.connections(), 0, "{to}");
    }
    gate.ends_well();
}

#[test]
fn a_grant_of_an_address_is_none_of_a_name_that_leads_there() {
    let (gate, target) = (Gate::new(), Server::plain("inside"));
    let names = Names::new([("evil.example.com", at("127.0.0.1"))]);
    let server = Server::redirect(format!("http://evil.example.com:{}/", target.port()));
    let flags = [&allow(&[&server.authority(), &target.authority()])[..], "--dns", &names.address()];
    let line = gate.ask(&json!({"url": server.url(), "follow": 1}), &flags);
    assert_eq!(line["result"]["error"], "HttpRequestDenied", "{line}");
    assert_eq!((target.connections(), names.asked("evil.example.com")), (0, 0));
}

#[test]
fn a_granted_hop_is_answered_and_no_path_is_ever_noted() {
    let (gate, target) = (Gate::new(), Server::plain("there"));
    let server = Server::redirect(format!("{}next?token=canary-77", target.url()));
    let flag = allow(&[&server.authority(), &target.authority()]);
    let line = gate.ask(&json!({"url": server.url(), "follow": 1}), &[&flag]);
    assert_eq!((&line["result"]["body"], &line["result"]["hops"]), (&json!("there"), &json!(1)), "{line}");
    assert!(target.heads()[0].contains("canary-77"), "{:?}", target.heads());
    let noted = line["receipt"]["network"]["requests"].as_array().unwrap_or_else(|| panic!("{line}"));
    let of = |place: usize, name: &str| noted[place][name].clone();
    assert_eq!(noted.len(), 2, "{line}");
    assert_eq!((of(0, "host"), of(0, "port"), of(0, "status")), (json!("127.0.0.1"), json!(server.port()), json!(302)));
    assert_eq!((of(1, "method"), of(1, "port"), of(1, "status")), (json!("GET"), json!(target.port()), json!(200)));
    assert_eq!(of(1, "bytes"), 5, "{line}");
    let records = gate.crib.records();
    assert_eq!(records[0]["network"], line["receipt"]["network"]);
    assert!(!json!(records).to_string().contains("canary-77"), "{records:?}");
    assert!(!line["receipt"].to_string().contains("canary-77"), "{line}");
}

#[test]
fn a_loop_of_redirects_ends_at_the_count_of_requests() {
    let gate = Gate::new();
    let server = Server::redirect("/again");
    let line = gate.ask(&json!({"url": server.url(), "follow": 1000}), &[&allow(&[&server.authority()])]);
    assert!(line["error"].is_string() || line["result"]["error"].is_string(), "{line}");
    assert_eq!(server.connections(), 64);
    gate.ends_well();
}
