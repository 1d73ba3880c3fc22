//! Requests that wait for the answer about their call: a tool gets the status 202, and they are sent after its changes are made.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib::call::{Behavior, HeldEnd};
use toolcrib::policy::{ApprovalAnswer, Permission, Rule, Secret, SecretStore, Secrets};
use toolcrib::staging::{Limits, Stages};
use toolcrib::{Error, Outcome, Policy, ToolResult};

use super::held::{Desk, Person, write};
use crate::crib::Crib;
use crate::gate::servers::Server;
use crate::records::watched::on_threads;

fn hold(pattern: &str) -> Rule {
    Rule::new(Behavior::Ask, pattern.parse().unwrap(), "test").holding_requests()
}

/// Desk with the guest that sends requests as its arguments state, about whose programs this person is asked.
fn desk(page: &Server, person: &Arc<Person>) -> Desk {
    let crib = Crib::with_guests(&["http"]);
    fs::write(crib.path("work/a"), "old").unwrap();
    let policy = Policy::default()
        .allow(Permission::Write(crib.path("work")))
        .allow(Permission::Net(page.url().trim_end_matches('/').parse().unwrap()))
        .rule(hold("run_code"));
    let tools = crib.path("tools.json");
    let desk =
        Desk::over(crib, Vec::new(), Some(person.clone()), |builder| builder.policy(policy).trusted_source(tools));
    on_threads(desk.runtime.prepare("http")).unwrap();
    desk
}

fn request(page: &Server, method: &str, path: &str, body: &str) -> Value {
    let headers = json!([["x-key", path]]);
    json!(["http", {"url": format!("{}{path}", page.url()), "method": method, "body": body, "headers": headers}])
}

/// Statuses that the calls of a program got.
fn statuses(result: &ToolResult) -> Vec<u64> {
    let value: Value = serde_json::from_str(&result.content()).unwrap();
    value["value"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|step| step.as_array().unwrap())
        .filter_map(|result| result["status"].as_u64())
        .collect()
}

#[test]
fn requests_wait_for_the_answer_and_are_sent_in_order_after_the_changes() {
    let page = Arc::new(Server::http(|peer| {
        let text = peer.rest()?;
        peer.answer(&text)
    }));
    let seen = page.clone();
    let person = Person::who(ApprovalAnswer::Once, move || assert_eq!(seen.connections(), 1, "the safe one alone"));
    let desk = desk(&page, &person);
    let steps = json!([
        [request(&page, "GET", "first", "")],
        [write("a", "new"), request(&page, "POST", "one", "{\"n\":1}")],
        [request(&page, "QUERY", "two", "")],
    ]);
    let result = desk.program(&steps);
    assert!(result.outcome.is_ok(), "{result:?}");
    assert_eq!(statuses(&result), [200, 202, 202], "{result:?}");
    let asked = &person.asked()[0];
    let held: Vec<(&str, &str, &[u8])> =
        asked.held.iter().map(|held| (held.method.as_str(), held.url.as_str(), held.body.as_slice())).collect();
    let (one, two) = (format!("{}one", page.url()), format!("{}two", page.url()));
    assert_eq!(held, [("POST", one.as_str(), &b"{\"n\":1}"[..]), ("QUERY", two.as_str(), &b""[..])]);
    assert!(asked.held[0].headers.contains(&("x-key".to_owned(), "one".to_owned())), "{:?}", asked.held[0].headers);
    assert_eq!(asked.sent, [format!("GET {} (1)", page.authority())]);
    let lines: Vec<String> = page.heads().iter().map(|head| head.lines().next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["GET /first HTTP/1.1", "POST /one HTTP/1.1", "QUERY /two HTTP/1.1"]);
    let held = result.receipt.held.unwrap();
    assert_eq!((held.changes, held.requests, held.end), (1, 2, HeldEnd::Committed));
    assert_eq!(held.sent.iter().map(|sent| sent.status).collect::<Vec<_>>(), [Some(200), Some(200)]);
    assert_eq!(held.rule, "hold run_code (test)");
    assert_eq!(desk.text("a").as_deref(), Some("new"));
}

#[test]
fn a_hold_rule_below_a_stage_rule_holds_its_requests() {
    let page = Server::plain("a page");
    let (person, crib) = (Person::agrees(), Crib::with_guests(&["http"]));
    let policy = Policy::default()
        .allow(Permission::Net(page.url().trim_end_matches('/').parse().unwrap()))
        .rule(Rule::new(Behavior::Ask, "run_code".parse().unwrap(), "test").at_end())
        .rule(hold("http(method=POST)"));
    let tools = crib.path("tools.json");
    let desk =
        Desk::over(crib, Vec::new(), Some(person.clone()), |builder| builder.policy(policy).trusted_source(tools));
    on_threads(desk.runtime.prepare("http")).unwrap();
    let result = desk.program(&json!([[request(&page, "POST", "x", "text"), request(&page, "DELETE", "y", "")]]));
    assert_eq!(statuses(&result), [202, 200], "the rule is about one method: {result:?}");
    let asked = person.asked();
    assert_eq!((asked.len(), asked[0].held.len()), (1, 1));
    assert_eq!(asked[0].sent, [format!("DELETE {} (1)", page.authority())]);
}

#[test]
fn beside_a_stage_for_all_calls_a_call_whose_requests_must_wait_is_refused() {
    let page = Server::plain("a page");
    let crib = Crib::with_guests(&["http"]);
    let policy =
        Policy::default().allow(Permission::Net(page.url().trim_end_matches('/').parse().unwrap())).rule(hold("http"));
    let stage = Stages::new(crib.path("whole")).open("all", Limits::default()).unwrap();
    let tools = crib.path("tools.json");
    let desk = Desk::over(crib, Vec::new(), Some(Person::agrees()), |builder| {
        builder.policy(policy).trusted_source(tools).stage(stage)
    });
    let result = desk.call("http", &json!({"url": page.url(), "method": "POST"}));
    assert_eq!((result.receipt.outcome, page.connections()), (Outcome::Denied, 0), "{result:?}");
}

#[test]
fn a_refusal_or_a_failure_sends_nothing() {
    let page = Server::plain("a page");
    let person = Person::who(ApprovalAnswer::No, || {});
    let desk = desk(&page, &person);
    let post = request(&page, "POST", "x", "text");
    let refused = desk.program(&json!([[post.clone(), post.clone(), write("a", "new")]]));
    let message = "the user denied the changes of this call, and 1 change and 2 requests were dropped";
    assert!(refused.content().contains(message), "{refused:?}");
    // A call that only sends is asked about too.
    let sends = desk.program(&json!([[post.clone()]]));
    assert!(sends.content().contains("and 1 request was dropped"), "{sends:?}");
    assert_eq!(person.asked().len(), 2);
    // A program that fails is not asked about.
    let failed = desk.program(&json!([[post], []]));
    assert!(failed.content().contains(r#""changes":"1 request was dropped""#), "{failed:?}");
    assert_eq!((person.asked().len(), page.connections()), (2, 0));
    assert_eq!(desk.text("a").as_deref(), Some("old"));
}

#[test]
fn the_first_request_that_fails_is_the_last_and_the_call_says_so() {
    let page = Server::http(|peer| match peer.head.contains("/bad") {
        true => peer.say("HTTP/1.1 500 Oh\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        false => peer.answer("fine"),
    });
    let person = Person::agrees();
    let desk = desk(&page, &person);
    let post = |path: &str| request(&page, "POST", path, "text");
    let result = desk.program(&json!([[post("one"), post("bad"), post("two"), post("three"), write("a", "new")]]));
    assert_eq!(result.receipt.outcome, Outcome::Failed, "{result:?}");
    let message = format!(
        "the changes of this call were made, and then request 2 of 4 failed: `POST {}bad`: the server answered with the status 500; \
         2 after it were not sent",
        page.url()
    );
    assert!(result.content().contains(&message), "{}", result.content());
    let held = result.receipt.held.unwrap();
    assert_eq!((held.end, held.sent.len(), page.connections()), (HeldEnd::Unsent, 2, 2));
    assert_eq!(desk.text("a").as_deref(), Some("new"));
}

#[test]
fn what_the_grant_denies_is_denied_at_once_and_a_request_too_large_is_not_held() {
    let (page, other) = (Server::plain("a page"), Server::plain("another"));
    let person = Person::agrees();
    let desk = desk(&page, &person);
    let large = json!(["http", {"url": page.url(), "method": "POST", "body_bytes": 64 << 20}]);
    let result = desk.program(&json!([[request(&other, "POST", "x", "text")], [large]]));
    let value: Value = serde_json::from_str(&result.content()).unwrap();
    assert_eq!(value["value"][0][0]["error"], "HttpRequestDenied", "{value}");
    assert_eq!(
        value["value"][1][0]["error"].as_str().map(|error| error.starts_with("HttpRequestBodySize")),
        Some(true)
    );
    assert_eq!((person.asked().len(), page.connections(), other.connections()), (0, 0, 0));
}

#[test]
fn a_secret_is_inserted_when_its_request_is_sent_and_the_question_does_not_show_it() {
    let page = Server::http(|peer| {
        let text = peer.rest()?;
        peer.answer(&text)
    });
    let person = Person::agrees();
    let crib = Crib::with_guests(&["http"]);
    let mut entry = crib.entry("http");
    let host = page.url().trim_end_matches('/').to_owned();
    entry["capabilities"]["network"] = json!([host]);
    entry["capabilities"]["secrets"] = json!([{"name": "token", "host": host, "header": "authorization"}]);
    crib.manifest(&json!({"tools": [entry]}));
    let policy =
        Policy::default().allow(Permission::Net(page.url().trim_end_matches('/').parse().unwrap())).rule(hold("http"));
    let secrets = Secrets::new(OneSecret);
    let tools = crib.path("tools.json");
    let desk = Desk::over(crib, Vec::new(), Some(person.clone()), |builder| {
        builder.policy(policy).trusted_source(tools).secrets(&secrets)
    });
    on_threads(desk.runtime.prepare("http")).unwrap();
    let result = desk.call("http", &json!({"url": page.url(), "method": "POST", "body": "text"}));
    assert_eq!(serde_json::from_str::<Value>(&result.content()).unwrap()["status"], 202, "{result:?}");
    assert!(!format!("{:?}", person.asked()).contains("s3cret-value"), "{:?}", person.asked());
    assert!(page.heads()[0].contains("s3cret-value"), "{:?}", page.heads());
    assert_eq!(result.receipt.secrets, ["token"]);
}

/// Store with one secret.
struct OneSecret;

impl SecretStore for OneSecret {
    fn value(&self, name: &str) -> Result<Option<Secret>, Error> {
        Secret::new(name, "s3cret-value").map(Some)
    }
}
