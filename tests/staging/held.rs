//! Calls that hold back what they and the calls below them write, until somebody agrees once at their end.

use std::fs;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::{BoxFuture, join};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use toolcrib::call::{Behavior, HeldEnd, Reason};
use toolcrib::policy::{ApprovalAnswer, ApprovalRequest, Approver, HeldRequest, Permission, Rule, StagedEffects};
use toolcrib::staging::{ChangeKind, Stages};
use toolcrib::{Audit, Builder, Outcome, Policy, Runtime, ToolCall, ToolResult};

use crate::crib::{Crib, guest, target, toolbox};
use crate::gate::servers::Server;
use crate::records::watched::on_threads;

/// Question about a call: its tool, the kind and name of each change, and the requests. Without effects, `changes` is `None`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) tool: String,
    pub(super) changes: Option<Vec<(ChangeKind, String)>>,
    pub(super) sent: Vec<String>,
    pub(super) held: Vec<HeldRequest>,
    pub(super) flow: Option<String>,
}

/// Person who gives one answer to all questions, after `first`.
pub(super) struct Person {
    answer: ApprovalAnswer,
    first: Box<dyn Fn() + Send + Sync>,
    asked: Mutex<Vec<Asked>>,
}

impl Person {
    pub(super) fn who(answer: ApprovalAnswer, first: impl Fn() + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { answer, first: Box::new(first), asked: Mutex::default() })
    }

    pub(super) fn agrees() -> Arc<Self> {
        Self::who(ApprovalAnswer::Once, || {})
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Approver for Person {
    fn ask<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        (self.first)();
        let name = |path: &std::path::Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let changes =
            |held: &StagedEffects<'_>| held.changes.iter().map(|change| (change.kind, name(&change.path))).collect();
        self.asked.lock().unwrap().push(Asked {
            tool: request.tool.name.clone(),
            changes: request.effects.map(changes),
            sent: request.effects.map(|held| held.sent.to_vec()).unwrap_or_default(),
            held: request.effects.map(|held| held.held.iter().copied().cloned().collect()).unwrap_or_default(),
            flow: request.flow.map(str::to_owned),
        });
        std::future::ready(self.answer.clone()).boxed()
    }
}

/// Shipped tools over the folder `work`, with an interpreter whose programs are lists of calls.
pub(super) struct Desk {
    pub(super) crib: Crib,
    pub(super) runtime: Runtime,
}

impl Desk {
    fn new(rules: Vec<Rule>, person: Option<Arc<Person>>, with: impl FnOnce(Builder) -> Builder) -> Self {
        let crib = Crib::new();
        for name in ["a", "b", "c"] {
            fs::write(crib.path("work").join(name), "old").unwrap();
        }
        Self::over(crib, rules, person, with)
    }

    pub(super) fn over(
        crib: Crib,
        rules: Vec<Rule>,
        person: Option<Arc<Person>>,
        with: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let policy = Policy::default().allow(Permission::Write(crib.path("work")));
        let builder = Runtime::builder(Audit::folder(crib.path("audit")))
            .trusted_source(toolbox())
            .compile_cache(target().join("test-cache"))
            .code_component(&guest("waiting"))
            .unwrap()
            .call_stages(Stages::new(crib.path("stages")))
            .policy(rules.into_iter().fold(policy, Policy::rule));
        let builder = person.into_iter().fold(builder, |builder, person| builder.approver(person));
        let runtime = with(builder).build().unwrap();
        on_threads(async {
            for tool in ["fs_write_file", "fs_read_file", "fs_rm", "fs_move", "fs_mkdirp"] {
                runtime.prepare(tool).await.unwrap();
            }
        });
        Self { crib, runtime }
    }

    pub(super) fn call(&self, name: &str, arguments: &Value) -> ToolResult {
        on_threads(self.runtime.call(ToolCall::new("1", name, arguments.to_string())))
    }

    /// Runs a program: each list of calls is made at once.
    pub(super) fn program(&self, steps: &Value) -> ToolResult {
        self.call("run_code", &program(steps))
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.crib.path("work").join(name)).ok()
    }

    /// Names of the stages that are left.
    fn stages(&self) -> Vec<String> {
        Stages::new(self.crib.path("stages")).names().unwrap()
    }
}

fn program(steps: &Value) -> Value {
    json!({"language": "steps", "code": steps.to_string()})
}

pub(super) fn write(path: &str, content: &str) -> Value {
    json!(["fs_write_file", {"path": path, "content": content}])
}

fn stage(pattern: &str) -> Rule {
    Rule::new(Behavior::Ask, pattern.parse().unwrap(), "test").at_end()
}

fn ask(pattern: &str) -> Rule {
    Rule::new(Behavior::Ask, pattern.parse().unwrap(), "test")
}

#[test]
fn a_program_is_asked_about_once_with_all_that_its_calls_changed() {
    let (crib, person) = (Crib::new(), Person::agrees());
    for name in ["a", "b", "c"] {
        fs::write(crib.path("work").join(name), "old").unwrap();
    }
    let work = crib.path("work");
    let seen = Person::who(ApprovalAnswer::Once, move || {
        assert_eq!(fs::read_to_string(work.join("a")).unwrap(), "old", "nothing has changed before the answer");
        assert!(!work.join("new").exists());
    });
    // The rule about each overwriting call does not ask: they are held back.
    let desk = Desk::over(crib, vec![stage("run_code"), ask("@overwrites")], Some(seen.clone()), |builder| builder);
    let steps = json!([
        [write("a", "first")],
        [write("a", "second"), write("new", "n")],
        [["fs_rm", {"path": "b"}], ["fs_move", {"from": "c", "to": "d"}], ["fs_read_file", {"path": "a"}]],
    ]);
    let result = desk.program(&steps);
    let read = serde_json::from_str::<Value>(&result.content()).unwrap()["value"][2][2].clone();
    assert_eq!(read["content"], "second", "the program sees its own writes: {result:?}");
    use ChangeKind::{Added, Modified, Moved, Removed};
    let mut changes = seen.asked()[0].changes.clone().unwrap();
    changes.sort_by(|one, other| one.1.cmp(&other.1));
    let expected = [(Modified, "a"), (Removed, "b"), (Moved, "d"), (Added, "new")];
    assert_eq!(changes, expected.map(|(kind, name)| (kind, name.to_owned())));
    assert_eq!(seen.asked().len(), 1);
    assert_eq!(
        ["a", "b", "c", "d", "new"].map(|name| desk.text(name)),
        [Some("second".to_owned()), None, None, Some("old".to_owned()), Some("n".to_owned()),]
    );
    let held = result.receipt.held.as_ref().unwrap();
    assert_eq!((held.changes, held.end, held.rule.as_str()), (4, HeldEnd::Committed, "stage run_code (test)"));
    assert_eq!(result.receipt.decision.as_ref().unwrap().reason, Reason::Default, "that of the call itself");
    assert_eq!(result.receipt.stage.as_deref(), Some(result.receipt.invocation.as_str()));
    let below = desk.crib.records().into_iter().filter(|record| record["parent"].is_string());
    assert!(below.clone().count() == 6 && below.into_iter().all(|record| record["stage"] == held_stage(&result)));
    assert!(desk.stages().is_empty());
    drop(person);
}

fn held_stage(result: &ToolResult) -> Value {
    result.receipt.stage.clone().into()
}

#[test]
fn a_refusal_and_a_missing_person_drop_all_changes() {
    let because = ApprovalAnswer::NoBecause("only\nb".to_owned());
    let cases = [
        (
            Some(ApprovalAnswer::No),
            HeldEnd::Refused,
            "the user denied the changes of this call, and 2 changes were dropped",
        ),
        (Some(because), HeldEnd::Refused, "and 2 changes were dropped: only b"),
        (Some(ApprovalAnswer::Nobody), HeldEnd::Unanswered, "no one is available to ask: 2 changes were dropped"),
        (Some(ApprovalAnswer::Earlier { is_permanent: true }), HeldEnd::Unanswered, "no one is available"),
        (None, HeldEnd::Unanswered, "no one is available to ask"),
    ];
    for (answer, end, message) in cases {
        let person = answer.map(|answer| Person::who(answer, || {}));
        let desk = Desk::new(vec![stage("run_code")], person, |builder| builder);
        let result = desk.program(&json!([[write("a", "new"), write("x", "new")]]));
        assert_eq!(result.receipt.outcome, Outcome::Denied, "{result:?}");
        assert!(result.content().contains(message), "{}", result.content());
        assert_eq!(result.receipt.held.unwrap().end, end);
        assert_eq!((desk.text("a").as_deref(), desk.text("x")), (Some("old"), None));
        assert!(desk.stages().is_empty());
    }
}

#[test]
fn a_failed_call_leaves_nothing_and_a_call_without_changes_asks_nothing() {
    let person = Person::agrees();
    let desk = Desk::new(vec![stage("run_code")], Some(person.clone()), |builder| builder);
    // The interpreter ends with an error after its first calls.
    let result = desk.program(&json!([[write("a", "new")], []]));
    assert!(result.outcome.is_err() && result.content().contains(r#""changes":"1 change was dropped""#), "{result:?}");
    assert_eq!(result.receipt.held.unwrap().end, HeldEnd::Dropped);
    let result = desk.program(&json!([[["fs_read_file", {"path": "a"}]], [write("a", "new"), write("a", "old")]]));
    assert!(result.outcome.is_ok(), "{result:?}");
    assert_eq!(desk.text("a").as_deref(), Some("old"));
    let reading = desk.program(&json!([[["fs_read_file", {"path": "a"}]]]));
    assert!(reading.outcome.is_ok() && reading.receipt.held.is_none(), "{reading:?}");
    assert!(desk.stages().is_empty());
}

#[test]
fn what_others_change_meanwhile_is_a_conflict_and_stays_theirs() {
    let crib = Crib::new();
    fs::write(crib.path("work/a"), "old").unwrap();
    let work = crib.path("work");
    let others = move || fs::write(work.join("a"), "theirs, and longer").unwrap();
    let person = Person::who(ApprovalAnswer::Once, others);
    let desk = Desk::over(crib, vec![stage("run_code")], Some(person), |builder| builder);
    let result = desk.program(&json!([[write("a", "new"), write("b", "new")]]));
    assert_eq!(result.receipt.outcome, Outcome::Failed, "{result:?}");
    let message = "others have changed `a` since this call read or wrote it: nothing was changed; call the tool again";
    assert!(result.content().contains(message), "{}", result.content());
    assert_eq!(result.receipt.held.unwrap().end, HeldEnd::Conflict);
    assert_eq!((desk.text("a").as_deref(), desk.text("b")), (Some("theirs, and longer"), None));
    assert!(desk.stages().is_empty());
}

#[test]
fn what_is_written_after_the_question_was_asked_is_not_committed() {
    let crib = Crib::new();
    fs::write(crib.path("work/a"), "old").unwrap();
    let stages = crib.path("stages");
    // A write that the system has begun can end after its call.
    let late = move || {
        let stage = fs::read_dir(&stages).unwrap().next().unwrap().unwrap().path();
        for content in fs::read_dir(stage.join("contents")).unwrap() {
            fs::write(content.unwrap().path(), "late").unwrap();
        }
    };
    let person = Person::who(ApprovalAnswer::Once, late);
    let desk = Desk::over(crib, vec![stage("run_code")], Some(person), |builder| builder);
    let result = desk.program(&json!([[write("a", "new")]]));
    assert!(
        result.content().contains("the call still wrote while it was asked about: nothing was changed"),
        "{result:?}"
    );
    assert_eq!((result.receipt.held.unwrap().end, desk.text("a").as_deref()), (HeldEnd::Conflict, Some("old")));
    assert!(desk.stages().is_empty());
}

#[test]
fn a_call_below_changes_what_its_own_rule_holds_back_before_the_next_one() {
    let person = Person::agrees();
    let desk = Desk::new(vec![stage("fs_write_file(path=a)"), ask("fs_rm")], Some(person.clone()), |builder| builder);
    let steps = json!([[write("a", "new")], [write("b", "new")], [["fs_rm", {"path": "c"}]]]);
    let result = desk.program(&steps);
    assert!(result.outcome.is_ok(), "{result:?}");
    let asked: Vec<(String, Option<usize>)> =
        person.asked().into_iter().map(|asked| (asked.tool, asked.changes.map(|changes| changes.len()))).collect();
    assert_eq!(asked, [("fs_write_file".to_owned(), Some(1)), ("fs_rm".to_owned(), None)]);
    assert_eq!(["a", "b"].map(|name| desk.text(name).unwrap()), ["new", "new"]);
}

#[test]
fn a_denial_wins_and_an_allowance_does_not_answer_for_the_end() {
    let person = Person::who(ApprovalAnswer::No, || {});
    let allow = Rule::new(Behavior::Allow, "fs_*".parse().unwrap(), "test");
    let deny = Rule::new(Behavior::Deny, "fs_rm".parse().unwrap(), "test");
    let desk = Desk::new(vec![stage("@writes"), allow, deny], Some(person.clone()), |builder| builder);
    let denied = desk.call("fs_rm", &json!({"path": "a"}));
    assert!(denied.receipt.outcome == Outcome::Denied && person.asked().is_empty(), "{denied:?}");
    let refused = desk.call("fs_write_file", &json!({"path": "a", "content": "new"}));
    assert_eq!((refused.receipt.outcome, person.asked().len()), (Outcome::Denied, 1), "{refused:?}");
    assert_eq!(desk.text("a").as_deref(), Some("old"));
    assert!(desk.stages().is_empty());
}

#[test]
fn without_a_place_for_stages_nothing_is_written() {
    let blocked = Crib::new();
    fs::write(blocked.path("stages"), "no folder").unwrap();
    let desk = Desk::over(blocked, vec![stage("fs_write_file")], Some(Person::agrees()), |builder| builder);
    let result = desk.call("fs_write_file", &json!({"path": "a", "content": "new"}));
    assert_eq!(result.receipt.outcome, Outcome::Denied, "{result:?}");
    assert!(result.content().contains("must be held back, and that is not possible here"), "{result:?}");
    assert_eq!(desk.text("a"), None);
}

/// Person who agrees to both of two questions, once both are asked.
struct Both(Barrier);

impl Approver for Both {
    fn ask<'a>(&'a self, _: ApprovalRequest<'a>) -> BoxFuture<'a, ApprovalAnswer> {
        self.0.wait().map(|_| ApprovalAnswer::Once).boxed()
    }
}

#[test]
fn two_programs_at_once_do_not_see_each_other_and_the_later_commit_is_a_conflict() {
    let both = Arc::new(Both(Barrier::new(2)));
    let desk = Desk::new(vec![stage("run_code")], None, |builder| builder.approver(both));
    let call = |content: &str| {
        let steps = json!([[["fs_read_file", {"path": "a"}]], [write("a", content)]]);
        desk.runtime.call(ToolCall::new(content, "run_code", program(&steps).to_string()))
    };
    let results = on_threads(async { join(call("one"), call("other")).await });
    let mut ends = [&results.0, &results.1].map(|result| {
        assert!(result.outcome.is_err() || result.content().contains(r#""content":"old""#), "{result:?}");
        format!("{:?}", result.receipt.held.as_ref().unwrap().end)
    });
    ends.sort();
    assert_eq!(ends, ["Committed", "Conflict"]);
    let committed = if results.0.outcome.is_ok() { "one" } else { "other" };
    assert_eq!(desk.text("a").as_deref(), Some(committed));
    assert!(desk.stages().is_empty());
}

#[test]
fn a_program_whose_caller_goes_away_leaves_no_stage() {
    let desk = Desk::new(vec![stage("run_code")], Some(Person::agrees()), |builder| builder);
    let steps = json!([[write("a", "new")], "spin"]);
    on_threads(async {
        let call = desk.runtime.call(ToolCall::new("1", "run_code", program(&steps).to_string()));
        let opened = async {
            while desk.stages().is_empty() || fs::read_dir(stage_contents(&desk)).map_or(0, Iterator::count) == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = call => panic!("{ended:?}"),
            () = opened => {}
        }
    });
    assert!(desk.stages().is_empty(), "{:?}", desk.stages());
    assert_eq!(desk.text("a").as_deref(), Some("old"));
}

#[test]
fn a_commit_that_has_begun_is_finished_if_its_caller_goes_away() {
    const FILES: usize = 300;
    let desk = Desk::new(vec![stage("run_code")], Some(Person::agrees()), |builder| builder);
    let writes: Vec<Value> = (0..FILES).map(|number| write(&format!("f{number}"), "new")).collect();
    let steps = json!([writes]);
    on_threads(async {
        let call = desk.runtime.call(ToolCall::new("1", "run_code", program(&steps).to_string()));
        let begun = async {
            while !stage_contents(&desk).with_file_name("steps").exists() {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        // On a fast disk, it can end before anybody sees its begin.
        tokio::select! {
            ended = call => assert!(ended.outcome.is_ok(), "{ended:?}"),
            () = begun => {}
        }
        while !desk.stages().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    assert!((0..FILES).all(|number| desk.text(&format!("f{number}")).as_deref() == Some("new")));
}

/// Folder with the files that the calls of the only stage have written.
fn stage_contents(desk: &Desk) -> std::path::PathBuf {
    desk.crib.path("stages").join(desk.stages().first().cloned().unwrap_or_default()).join("contents")
}

#[test]
fn requests_of_all_calls_are_listed_with_the_question() {
    let (person, page) = (Person::agrees(), Server::plain("a page"));
    let crib = Crib::new();
    let policy = Policy::default()
        .allow(Permission::Write(crib.path("work")))
        .allow(Permission::Net(page.url().trim_end_matches('/').parse().unwrap()))
        .rule(stage("run_code"));
    let desk = Desk::over(crib, Vec::new(), Some(person.clone()), |builder| builder.policy(policy));
    on_threads(desk.runtime.prepare("fetch_page")).unwrap();
    let fetch = json!(["fetch_page", {"url": page.url()}]);
    let result = desk.program(&json!([[fetch.clone()], [fetch, write("a", "new")]]));
    assert!(result.outcome.is_ok(), "{result:?}");
    assert_eq!(person.asked()[0].sent, [format!("GET {} (2)", page.authority())]);
}

#[test]
fn rules_about_flows_into_files_hold_below_a_program_too() {
    let page = Server::plain("a page of somebody");
    for behavior in [Behavior::Ask, Behavior::Deny] {
        let person = Person::agrees();
        let crib = Crib::new();
        let policy = Policy::default()
            .allow(Permission::Write(crib.path("work")))
            .allow(Permission::Net(page.url().trim_end_matches('/').parse().unwrap()))
            .rule(stage("run_code"))
            .rule(Rule::new(behavior, "flow untrusted -> write".parse().unwrap(), "test"));
        let desk = Desk::over(crib, Vec::new(), Some(person.clone()), |builder| builder.policy(policy));
        on_threads(desk.runtime.prepare("fetch_page")).unwrap();
        let steps = json!([[write("a", "before")], [["fetch_page", {"url": page.url()}]], [write("b", "after")]]);
        let result = desk.program(&steps);
        let asked = person.asked();
        assert_eq!(asked.len(), 1, "once, at the end: {result:?}");
        let flow = asked[0].flow.as_deref();
        match behavior {
            Behavior::Ask => {
                assert!(flow.is_some_and(|flow| flow.contains("write")), "{flow:?}");
                assert_eq!(
                    ["a", "b"].map(|name| desk.text(name)),
                    ["before", "after"].map(|text| Some(text.to_owned()))
                );
            }
            _ => {
                assert_eq!(flow, None);
                assert!(result.content().contains("denied by an operator rule"), "{result:?}");
                assert_eq!((desk.text("a").as_deref(), desk.text("b")), (Some("before"), None));
            }
        }
    }
}

#[test]
fn a_stage_of_all_calls_stays_the_only_one() {
    let person = Person::agrees();
    let crib = Crib::new();
    let whole = Stages::new(crib.path("whole")).open("all", toolcrib::staging::Limits::default()).unwrap();
    let staged = whole.clone();
    let desk = Desk::over(crib, vec![stage("run_code")], Some(person.clone()), |builder| builder.stage(staged));
    let result = desk.program(&json!([[write("a", "new")]]));
    assert!(result.outcome.is_ok() && person.asked().is_empty(), "{result:?}");
    assert_eq!((desk.text("a"), whole.changes().unwrap().len()), (None, 1));
}
