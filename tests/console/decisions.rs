//! Decisions: a click lets a waiting run go on, the model gets the reason of a no, and a permanent approval is given and revoked.

use std::fs;
use std::process::{Child, Stdio};
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Browser, Console, PATIENCE};
use crate::crib::{Crib, Ran};
use crate::mcp::Client;

/// Identifiers of the prepared calls.
pub(super) const FIRST: &str = "00000-aaaaa";
const SECOND: &str = "11111-bbbbb";

/// Writes two calls that wait: one with a scope for a permanent approval, and one with hostile texts.
pub(super) fn prepare(crib: &Crib) {
    let call = |id: &str| {
        json!({
            "id": id, "tool": "fs_rm", "client": "editor", "arguments": "{\"path\":\"plan.md\"}",
            "granted": ["write:/srv/work"], "restsOn": "ask fs_rm (toolcrib.toml)",
            "source": "/srv/tools.json (tool[9])", "properties": "destructive (declared)",
            "asked": Timestamp::now() - SignedDuration::from_mins(2), "key": format!("sha256:{id}"),
        })
    };
    let (mut first, mut second) = (call(FIRST), call(SECOND));
    first["approval"] = json!({"tool": "fs_rm", "digest": "sha256:00", "definition": "sha256:01",
        "rule": "ask fs_rm (toolcrib.toml)", "granted": ["write:/srv/work"]});
    for field in ["tool", "client", "arguments", "preview", "restsOn", "reason", "source", "fixed", "properties"] {
        second[field] = json!(format!("{}{field}", super::pages::HOSTILE));
    }
    second["granted"] = json!([super::pages::HOSTILE]);
    let file = crib.path("home/.local/state/toolcrib/pending.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, json!({ "pending": [first, second] }).to_string()).unwrap();
}

/// Output of `approvals pending --json`.
pub(super) fn pending(crib: &Crib) -> Value {
    let ran = crib.run(&["approvals", "pending", "--json"]);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

/// Starts a run whose model makes one call of `echo`, about which a rule asks.
fn start(crib: &Crib) -> Child {
    start_with(crib, &json!([{"tool_calls": [{"name": "echo", "arguments": {"n": 1}}]}, {"content": "done"}]))
}

fn start_with(crib: &Crib, turns: &Value) -> Child {
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let args = ["run", "--script", "script.json", "--json", "--ask-tool=echo", "--wait-approval=60s"];
    let mut command = crib.toolcrib(&args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Waits until a page shows a call that waits, and returns its identifier.
fn waiting(browser: &Browser<'_>) -> String {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let page = browser.page("decisions");
        if let Some((_, rest)) = page.split_once("name=\"id\" value=\"") {
            assert!(page.contains("1 waiting"), "{page}");
            return rest.split('"').next().unwrap().to_owned();
        }
    }
    panic!("no call waits");
}

/// Waits for the end of a run, and returns the result of its call.
fn end(run: Child) -> (Ran, Value) {
    let ran = Ran::from(run.wait_with_output().unwrap());
    let mut events = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let result = events.find(|event| event["type"] == "tool_result").unwrap_or_else(|| panic!("{ran:?}"));
    (ran, result)
}

#[test]
fn a_click_lets_a_waiting_run_go_on() {
    let crib = Crib::with_guests(&["echo"]);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let run = start(&crib);
    let id = waiting(&browser);
    let runs = browser.page("runs");
    let (_, rest) = runs.split_once(&format!("{}runs/", browser.path)).unwrap_or_else(|| panic!("{runs}"));
    let page = browser.page(&format!("runs/{}", rest.split('"').next().unwrap()));
    assert_eq!(page.matches("waits for an approval").count(), 1, "{page}");
    assert!(!page.contains("has no record of this call"), "{page}");
    // From the list and from the run, one click leads to the decision.
    let decision = format!("href=\"{}decisions#call-{id}\"", browser.path);
    assert!(runs.contains(&decision) && runs.contains("waits for you") && page.contains(&decision), "{runs} {page}");
    assert!(browser.page("runs?state=waiting").contains(&decision));
    let card = browser.page("decisions");
    let details = card.find("<details").unwrap_or_else(|| panic!("{card}"));
    for part in ["Allow once", ">Deny<", "<span class=\"name\">&quot;n&quot;</span>", "runs/"] {
        assert!(card.find(part).is_some_and(|at| at < details), "{part} is above the details: {card}");
    }
    assert!(
        card.find("Asked by").is_some_and(|at| at < details) && card[details..].contains("<dt>Granted</dt>"),
        "{card}"
    );
    let answer = browser.send("decisions", &[("id", &id), ("answer", "once"), ("reason", "")]);
    assert_eq!(answer.status, 303, "{answer:?}");
    assert_eq!(answer.header("location"), Some(format!("{}decisions?answered={id}", browser.path).as_str()));
    let (ran, result) = end(run);
    assert_eq!((ran.code, &result["receipt"]["decision"]["reason"]), (Some(0), &json!("once")), "{ran:?}");
    let page = browser.page(&format!("decisions?answered={id}"));
    assert!(page.contains("Your answer to") && page.contains("No call waits"), "{page}");
    // The run and its call are shown with what the log says.
    let runs = browser.page("runs");
    let (_, rest) = runs.split_once(&format!("{}runs/", browser.path)).unwrap_or_else(|| panic!("{runs}"));
    let run = browser.page(&format!("runs/{}", rest.split('"').next().unwrap()));
    for part in ["Call of ", ">echo<", "<span class=\"word good\">", "allow", "ask echo (--ask-tool)", ">record<"] {
        assert!(run.contains(part), "{part} in {run}");
    }
}

#[test]
fn a_click_allows_the_further_calls_of_a_run_for_its_session() {
    let crib = Crib::with_guests(&["echo"]);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let call = |n: u32| json!({"tool_calls": [{"name": "echo", "arguments": {"n": n}}]});
    let turns = json!([call(1), call(2), {"content": "done"}]);
    let run = start_with(&crib, &turns);
    let id = waiting(&browser);
    assert!(browser.page("decisions").contains("Allow for the session"));
    assert_eq!(browser.send("decisions", &[("id", &id), ("answer", "session")]).status, 303);
    let ran = Ran::from(run.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(crib.records().iter().all(|record| record["decision"]["reason"] == "session"), "{:?}", crib.records());
    assert!(browser.page("decisions").contains("There are no permanent approvals"));
}

#[test]
fn a_click_lets_a_waiting_call_of_an_mcp_client_go_on() {
    let crib = Crib::with_guests(&["echo"]);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let flags = ["--ask-tool=echo", "--wait-approval=10m"];
    let mut client = Client::initialized(&crib, &flags, &json!({}));
    let request = client.request("tools/call", &json!({"name": "echo", "arguments": {"n": 1}}));
    let id = waiting(&browser);
    assert_eq!(browser.send("decisions", &[("id", &id), ("answer", "once")]).status, 303);
    let answer = client.answer(request);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    // Without the option nobody waits, so there is no session to allow more for.
    let mut client = Client::initialized(&crib, &flags[..1], &json!({}));
    assert_eq!(client.call("echo", &json!({"n": 2}))["result"]["isError"], true);
    waiting(&browser);
    assert!(!browser.page("decisions").contains("Allow for the session"));
}

#[test]
fn the_model_gets_the_reason_of_a_no() {
    let crib = Crib::with_guests(&["echo"]);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let run = start(&crib);
    let id = waiting(&browser);
    let answer = browser.send("decisions", &[("id", &id), ("answer", "no"), ("reason", "use work/plan.md\ninstead")]);
    assert_eq!(answer.status, 303, "{answer:?}");
    let (ran, result) = end(run);
    assert_eq!(result["receipt"]["decision"]["reason"], "refused", "{ran:?}");
    assert!(result.to_string().contains("the user denied this call: use work/plan.md instead"), "{result}");
    let again = browser.send("decisions", &[("id", &id), ("answer", "once")]);
    assert!(again.status == 409 && again.body.contains("no call waits under"), "{again:?}");
}

#[test]
fn always_is_offered_with_its_scope_and_can_be_taken_back() {
    let crib = Crib::new();
    prepare(&crib);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let page = browser.page("decisions");
    assert_eq!(page.matches("Always allow").count(), 1, "only the call with a scope: {page}");
    assert!(page.contains("every `fs_rm` call that `ask fs_rm (toolcrib.toml)` asks about"), "{page}");
    for form in page.split("<form").filter(|form| form.contains("name=\"reason\"")) {
        let form = form.split("</form>").next().unwrap();
        assert!(form.contains("value=\"no\"") && !form.contains("value=\"once\""), "Enter in it denies: {form}");
    }
    let refused = browser.send("decisions", &[("id", SECOND), ("answer", "always")]);
    assert!(refused.status == 409 && refused.body.contains("cannot be allowed permanently"), "{refused:?}");
    assert_eq!(browser.send("decisions", &[("id", FIRST), ("answer", "maybe")]).status, 404);
    assert_eq!(pending(&crib)[0].get("answer"), None);
    assert_eq!(browser.send("decisions", &[("id", FIRST), ("answer", "always")]).status, 303);
    let stored = || crib.run(&["approvals", "list", "--json"]).stdout;
    assert!(stored().contains("sha256:01"), "{}", stored());
    let page = browser.page("decisions");
    let (_, rest) = page.split_once("name=\"approval\" value=\"").unwrap_or_else(|| panic!("{page}"));
    let approval = rest.split('"').next().unwrap();
    assert_eq!(browser.send("decisions/revoke", &[("approval", approval)]).status, 303);
    assert_eq!(stored().trim(), "[]");
    assert_eq!(browser.send("decisions/revoke", &[("approval", approval)]).status, 404);
    // An allowance that was not used can be taken back, and then has a reason.
    assert_eq!(browser.send("decisions", &[("id", FIRST), ("answer", "no"), ("reason", "late")]).status, 303);
    assert_eq!(pending(&crib)[0]["answer"]["reason"], "late");
    let page = browser.page("decisions");
    assert!(page.contains("<dt>Your reason</dt><dd><bdi>late</bdi></dd>"), "{page}");
}

#[test]
fn the_command_line_denies_with_a_reason_too() {
    let crib = Crib::with_guests(&["echo"]);
    let run = start(&crib);
    let until = Instant::now() + PATIENCE;
    let id = loop {
        match pending(&crib)[0]["id"].as_str() {
            Some(id) => break id.to_owned(),
            None => assert!(Instant::now() < until, "no call waits"),
        }
    };
    assert_eq!(crib.run(&["approvals", "deny", &id, "--reason", "not today"]).code, Some(0));
    let (_, result) = end(run);
    assert!(result.to_string().contains("the user denied this call: not today"), "{result}");
}

#[test]
fn a_file_that_is_not_understood_is_reported_on_the_page() {
    let crib = Crib::new();
    prepare(&crib);
    let file = crib.path("home/.local/state/toolcrib/pending.json");
    fs::write(&file, "{\"pending\":[").unwrap();
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let page = browser.get("decisions");
    assert!(page.status == 409 && page.body.contains("cannot use the pending calls in `"), "{page:?}");
    assert_eq!(browser.get("runs").status, 200, "the other pages are shown");
    assert_eq!(fs::read_to_string(file).unwrap(), "{\"pending\":[");
}
