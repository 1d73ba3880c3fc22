//! Labels of results, and rules about where their bytes may go.

mod injections;
mod runs;
mod withheld;

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use toolcrib::call::Behavior;
use toolcrib::flow::{LabelPlace, Labels, Meaning};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, Permission, Rule};
use toolcrib::{Audit, Builder, Policy, Runtime, Session, ToolCall, ToolResult};

use crate::crib::{Crib, target, toolbox};
use crate::gate::servers::Server;

/// Rule that applies without one of the user.
const PRESET: &str = "flow private + untrusted -> net";

/// Tools that the tests call.
const TOOLS: [&str; 10] = [
    "calculate",
    "fetch_page",
    "fs_append_file",
    "fs_edit_range",
    "fs_list_dir",
    "fs_mkdirp",
    "fs_move",
    "fs_read_file",
    "fs_rm",
    "fs_write_file",
];

/// Person who gives one answer to all questions.
struct Person {
    answer: ApprovalAnswer,
    /// Tool, rule and explanation of each question.
    asked: Mutex<Vec<[String; 3]>>,
}

impl Person {
    fn new(answer: ApprovalAnswer) -> Arc<Self> {
        Arc::new(Self { answer, asked: Mutex::default() })
    }

    fn take_asked(&self) -> Vec<[String; 3]> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        let question = [&request.tool.name, request.rests_on, request.flow.unwrap_or_default()];
        self.asked.lock().unwrap().push(question.map(str::to_owned));
        std::future::ready(self.answer.clone()).boxed()
    }
}

/// Folder with notes, a page by somebody else, and the shipped tools over both.
struct Desk {
    crib: Crib,
    page: Server,
    runtime: Runtime,
}

impl Desk {
    /// Opens a desk with these rules, each with its behavior.
    fn new(rules: &[(Behavior, &str)], page: &'static str, with: impl FnOnce(Builder) -> Builder) -> Self {
        Self::labelled(rules, page, |_| Labels::default(), with)
    }

    /// The same with labels of places.
    fn labelled(
        rules: &[(Behavior, &str)],
        page: &'static str,
        labels: impl FnOnce(&Crib) -> Labels,
        with: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        Self::stored(rules, page, labels, |builder, _| with(builder))
    }

    /// The same with more that lies in its folders.
    fn stored(
        rules: &[(Behavior, &str)],
        page: &'static str,
        labels: impl FnOnce(&Crib) -> Labels,
        with: impl FnOnce(Builder, &Crib) -> Builder,
    ) -> Self {
        let (crib, page) = (Crib::new(), Server::plain(page));
        fill(&crib);
        let mut policy = Policy::default()
            .labels(labels(&crib))
            .allow(Permission::Write(crib.path("work")))
            .allow(Permission::Net(page.url().trim_end_matches('/').parse().unwrap()));
        for (behavior, pattern) in rules {
            policy = policy.rule(Rule::new(*behavior, pattern.parse().unwrap(), "test"));
        }
        let builder = Runtime::builder(Audit::off()).trusted_source(toolbox()).policy(policy);
        let runtime = with(builder.compile_cache(target().join("test-cache")), &crib).build().unwrap();
        // On a busy machine, a call would wait for longer than it may take.
        for tool in TOOLS {
            wait(runtime.prepare(tool)).unwrap();
        }
        Self { runtime, crib, page }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.page.url())
    }

    /// Makes the folder as it was in the beginning.
    fn reset(&self) {
        for entry in fs::read_dir(self.crib.path("work")).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() { fs::remove_dir_all(entry).unwrap() } else { fs::remove_file(entry).unwrap() }
        }
        fill(&self.crib);
    }

    /// Files of the folder with their texts, and folders.
    fn files(&self) -> BTreeMap<String, Option<String>> {
        let entries = fs::read_dir(self.crib.path("work")).unwrap().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).ok())).collect()
    }

    /// Returns `true` if a request had this text in its head.
    fn has_got(&self, text: &str) -> bool {
        self.page.heads().iter().any(|head| head.contains(text))
    }
}

fn fill(crib: &Crib) {
    fs::write(crib.path("work/notes.md"), "a quiet note").unwrap();
    fs::write(crib.path("work/customers.csv"), "CANARY-7f3a,ann@example.com").unwrap();
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(future)
}

/// Calls a tool in a session.
fn call(session: &Session, name: &str, arguments: Value) -> ToolResult {
    wait(session.call(ToolCall::new("c", name, arguments.to_string())))
}

#[track_caller]
fn done(session: &Session, name: &str, arguments: Value) -> Value {
    let result = call(session, name, arguments);
    assert!(result.outcome.is_ok(), "{result:?}");
    serde_json::to_value(&result.receipt).unwrap()["label"].clone()
}

#[test]
fn each_result_has_the_label_of_all_that_it_depends_on() {
    let desk = Desk::new(&[], "a page", |builder| builder);
    let session = desk.runtime.session();
    let notes = format!("file:{}", desk.crib.path("work/notes.md").canonicalize().unwrap().display());
    assert_eq!(done(&session, "calculate", json!({"expression": "1+1"})), Value::Null);
    assert_eq!(
        done(&session, "fetch_page", json!({"url": desk.url("")})),
        json!({"integrity": "untrusted", "confidentiality": [], "sources": {"untrusted": ["host:127.0.0.1"]}})
    );
    let label = done(&session, "fs_read_file", json!({"path": "notes.md"}));
    assert_eq!(label["sources"], json!({"untrusted": ["host:127.0.0.1"], "private": [notes]}));
    // The model has seen both by now.
    let label = done(&session, "calculate", json!({"expression": "1+1"}));
    assert_eq!((&label["integrity"], &label["confidentiality"]), (&json!("untrusted"), &json!(["private"])));
    let other = desk.runtime.session();
    assert_eq!(done(&other, "calculate", json!({"expression": "1+1"})), Value::Null);
    other.add_label(&session.label());
    assert_eq!(other.label(), session.label());
    let listed = done(&desk.runtime.session(), "fs_list_dir", json!({"path": "."}));
    assert_eq!(listed["confidentiality"], json!(["private"]), "names are data too");
    // Calls outside of a conversation have nothing in common.
    let open = desk.runtime.open_session();
    done(&open, "fs_read_file", json!({"path": "notes.md"}));
    assert_eq!(done(&open, "calculate", json!({"expression": "1+1"})), Value::Null);
}

#[test]
fn a_person_is_asked_only_when_private_data_untrusted_text_and_a_way_out_meet() {
    let person = Person::new(ApprovalAnswer::No);
    let desk = Desk::new(&[(Behavior::Ask, PRESET)], "a page", |builder| builder.approver(person.clone()));
    let (read, fetch) = (json!({"path": "customers.csv"}), json!({"url": desk.url("?x=CANARY")}));
    let session = desk.runtime.session();
    done(&session, "fs_read_file", read.clone());
    done(&session, "fetch_page", json!({"url": desk.url("")}));
    done(&session, "fs_read_file", read.clone());
    assert!(person.take_asked().is_empty());
    let refused = call(&session, "fetch_page", fetch.clone());
    assert_eq!(refused.receipt.outcome.as_str(), "denied", "{refused:?}");
    let asked = person.take_asked();
    let [tool, rule, flow] = &asked[0];
    assert_eq!((tool.as_str(), rule.as_str()), ("fetch_page", "ask flow private + untrusted -> net (test)"));
    for part in ["customers.csv` to `http://127.0.0.1", "after `host:127.0.0.1` was read"] {
        assert!(flow.contains(part), "{flow}");
    }
    assert!(!desk.has_got("CANARY"));
    for order in [["fs_read_file", "fs_read_file"], ["fetch_page", "fetch_page"]] {
        let session = desk.runtime.session();
        order.iter().for_each(|name| {
            drop(done(&session, name, if *name == "fetch_page" { fetch.clone() } else { read.clone() }))
        });
    }
    assert!(person.take_asked().is_empty(), "two of the three never ask");
}

#[test]
fn an_answer_for_the_session_covers_the_tool_and_no_allow_rule_does() {
    let person = Person::new(ApprovalAnswer::Session);
    let rules = [(Behavior::Ask, PRESET), (Behavior::Allow, "fetch_page")];
    let desk = Desk::new(&rules, "a page", |builder| builder.approver(person.clone()));
    let session = desk.runtime.session();
    done(&session, "fs_read_file", json!({"path": "notes.md"}));
    for _ in 0..3 {
        done(&session, "fetch_page", json!({"url": desk.url("")}));
    }
    assert_eq!(person.take_asked().len(), 1);
}

#[test]
fn a_denied_flow_is_denied_whoever_agrees_and_a_stage_is_no_way_out() {
    let person = Person::new(ApprovalAnswer::Once);
    let rules = [(Behavior::Deny, "flow untrusted -> write"), (Behavior::Allow, "fs_write_file")];
    let desk = Desk::new(&rules, "a page", |builder| builder.approver(person.clone()));
    let (session, write) = (desk.runtime.session(), json!({"path": "new", "content": "x"}));
    done(&session, "fs_write_file", write.clone());
    done(&session, "fetch_page", json!({"url": desk.url("")}));
    let refused = call(&session, "fs_write_file", json!({"path": "other", "content": "x"}));
    assert!(refused.content().contains("denied by an operator rule: `flow untrusted -> write`"), "{refused:?}");
    assert!(!desk.crib.path("work/other").exists() && desk.crib.path("work/new").exists());
    assert!(person.take_asked().is_empty());
    done(&session, "fs_read_file", json!({"path": "new"}));
    if cfg!(target_os = "linux") {
        let stages = toolcrib::staging::Stages::new(desk.crib.path("stages"));
        let stage = stages.open("one", toolcrib::staging::Limits::default()).unwrap();
        let staged = Desk::new(&rules, "a page", |builder| builder.stage(stage));
        let session = staged.runtime.session();
        done(&session, "fetch_page", json!({"url": staged.url("")}));
        done(&session, "fs_write_file", write);
    }
}

#[test]
fn a_move_takes_the_labels_along() {
    let labels = Labels::default();
    let place = |crib: &Crib, name: &str| LabelPlace::Path(crib.path(name).canonicalize().unwrap());
    let crib = Crib::new();
    fs::create_dir(crib.path("work/crm")).unwrap();
    fs::write(crib.path("work/crm/x"), "x").unwrap();
    let labels = labels
        .with(place(&crib, "work"), Meaning::Public)
        .with(place(&crib, "work/crm"), Meaning::parse("customers").unwrap());
    let policy = Policy::default().allow(Permission::Write(crib.path("work"))).labels(labels);
    let builder = Runtime::builder(Audit::off()).trusted_source(toolbox()).policy(policy);
    let runtime = builder.compile_cache(target().join("test-cache")).build().unwrap();
    for tool in ["fs_move", "fs_read_file", "fs_write_file"] {
        wait(runtime.prepare(tool)).unwrap();
    }
    let session = runtime.session();
    assert_eq!(done(&session, "fs_write_file", json!({"path": "y", "content": "y"})), Value::Null);
    assert_eq!(done(&session, "fs_read_file", json!({"path": "y"})), Value::Null);
    let moved = done(&session, "fs_move", json!({"from": "crm", "to": "docs"}));
    assert_eq!(moved["confidentiality"], json!(["customers"]));
    let read = done(&session, "fs_read_file", json!({"path": "docs/x"}));
    assert_eq!(read["confidentiality"], json!(["customers"]), "the conversation has it by now");
}

/// Approver that remembers an answer to the first rule, and refuses the rest.
struct Remembering(Mutex<Vec<String>>);

impl Approver for Remembering {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.0.lock().unwrap().push(request.rests_on.to_owned());
        let is_first = request.rests_on.contains("flow untrusted -> net");
        std::future::ready(if is_first { ApprovalAnswer::Earlier { is_permanent: false } } else { ApprovalAnswer::No })
            .boxed()
    }
}

#[test]
fn an_answer_that_an_approver_remembers_covers_one_rule_and_not_the_others() {
    let approver = Arc::new(Remembering(Mutex::default()));
    let rules = [(Behavior::Ask, "flow untrusted -> net"), (Behavior::Ask, PRESET)];
    let desk = Desk::new(&rules, "a page", |builder| builder.approver(approver.clone()));
    let session = desk.runtime.session();
    done(&session, "fetch_page", json!({"url": desk.url("")}));
    done(&session, "fetch_page", json!({"url": desk.url("again")}));
    done(&session, "fs_read_file", json!({"path": "customers.csv"}));
    let sent = call(&session, "fetch_page", json!({"url": desk.url("?CANARY")}));
    assert_eq!(sent.receipt.decision.unwrap().behavior, Behavior::Deny);
    assert!(!desk.has_got("CANARY"));
    let asked = approver.0.lock().unwrap();
    assert!(asked.len() == 3 && asked[2].contains("private"), "{asked:?}");
}

#[test]
fn an_answer_holds_for_data_of_the_same_names_alone() {
    let person = Person::new(ApprovalAnswer::Session);
    let crib_labels = |crib: &Crib| {
        let customers = crib.path("work/customers.csv").canonicalize().unwrap();
        Labels::default().with(LabelPlace::Path(customers), Meaning::parse("customers").unwrap())
    };
    let desk =
        Desk::labelled(&[(Behavior::Ask, PRESET)], "a page", crib_labels, |builder| builder.approver(person.clone()));
    let (session, fetch) = (desk.runtime.session(), json!({"url": desk.url("")}));
    done(&session, "fs_read_file", json!({"path": "notes.md"}));
    (0..3).for_each(|_| drop(done(&session, "fetch_page", fetch.clone())));
    assert_eq!(person.take_asked().len(), 1);
    done(&session, "fs_read_file", json!({"path": "customers.csv"}));
    (0..3).for_each(|_| drop(done(&session, "fetch_page", fetch.clone())));
    assert_eq!(person.take_asked().len(), 1);
}

#[test]
fn an_answer_about_text_of_others_holds_whatever_the_call_reads() {
    let person = Person::new(ApprovalAnswer::Once);
    let rules = [(Behavior::Ask, "flow untrusted -> write")];
    let desk = Desk::new(&rules, "a page", |builder| builder.approver(person.clone()));
    let session = desk.runtime.session();
    done(&session, "fetch_page", json!({"url": desk.url("")}));
    // It reads the file first, which is private.
    done(&session, "fs_edit_range", json!({"path": "notes.md", "start": 1, "end": 1, "content": "edited"}));
    assert_eq!(person.take_asked().len(), 1);
    assert_eq!(fs::read_to_string(desk.crib.path("work/notes.md")).unwrap().trim_end(), "edited");
}

#[test]
fn a_stored_answer_of_another_conversation_keeps_its_label_and_is_of_an_unknown_source_without() {
    let folder = tempfile::tempdir().unwrap();
    let results = toolcrib::Results::folder(folder.path());
    let unknown = results.put("t", "c", b"1").unwrap().reference;
    let desk = Desk::new(&[], "a page", |builder| builder.results(results).max_inline(20));
    let session = desk.runtime.session();
    let long = call(&session, "calculate", json!({"expression": "2^100"}));
    let reference = long.receipt.persisted.clone().and_then(|persisted| persisted.reference).unwrap();
    let open = json!({"reference": reference});
    assert_eq!(done(&session, "read_result", open.clone()), Value::Null);
    assert_eq!(done(&desk.runtime.session(), "read_result", open), Value::Null);
    let page = call(&session, "fetch_page", json!({"url": desk.url("")})).receipt.persisted.unwrap().reference;
    let other = desk.runtime.session();
    let label = done(&other, "read_result", json!({"reference": page}));
    assert_eq!((&label["integrity"], &label["confidentiality"]), (&json!("untrusted"), &json!([])));
    let label = done(&other, "read_result", json!({"reference": unknown}));
    assert_eq!((&label["integrity"], &label["confidentiality"]), (&json!("untrusted"), &json!(["private"])));
}

#[test]
fn the_requests_of_a_call_are_judged_by_all_that_it_has_read() {
    let crib = Crib::with_guests(&["http"]);
    let server = Server::plain("text of somebody");
    let allow = format!("--allow-net=http://{}", server.authority());
    let asked = json!({"url": server.url(), "repeat": 3});
    let line = crib.call("http", &asked, &[&allow, "--deny-tool=flow untrusted -> net"]);
    assert_eq!(server.connections(), 1, "{line}");
    let denied = &line["receipt"]["denied"];
    assert_eq!(*denied, json!([{"capability": "flow untrusted -> net"}]), "{line}");
    // A redirect, or an answer in parts, ends no call that could only be asked about.
    let line = crib.call("http", &asked, &[&allow, "--ask-tool=flow untrusted -> net"]);
    assert_eq!((server.connections(), &line["receipt"]["outcome"]), (4, &json!("ok")), "{line}");
}
