//! Visible effects of script hooks: in receipts, records, events and the trace of a run, and in lists.

use serde_json::{Value, json};

use super::scope::{BOTH, attack, call_with, hook_when, two_sources};
use super::*;
use crate::crib::guest;
use crate::screen::Page;

/// Prints the trace of a run for people.
fn trace(crib: &Crib, script: &Value, flags: &[&str]) -> Ran {
    write(crib, "script.json", script.to_string());
    crib.run(&[&["run", "--script", "script.json"], flags].concat())
}

/// Name, point and action of the hooks of a receipt or record.
fn effects(receipt: &Value) -> Vec<[&str; 3]> {
    let notes = receipt["hooks"].as_array().map_or(&[][..], Vec::as_slice);
    notes.iter().map(|note| ["hook", "point", "action"].map(|key| note[key].as_str().unwrap_or("-"))).collect()
}

#[test]
fn a_receipt_and_its_record_name_the_hooks_that_acted_and_never_the_content() {
    let crib = attack();
    let line = call_with(&crib, "echo", "a", &["--allow-hooks"]);
    let changed = vec![
        ["stop", "before", "-"],
        ["rewrite", "before", "changed-arguments"],
        ["answer", "after", "changed-result"],
    ];
    assert_eq!(effects(&line["receipt"]), changed, "{line}");
    let sources: Vec<_> =
        line["receipt"]["hooks"].as_array().expect("hooks").iter().map(|note| &note["source"]).collect();
    for (source, name) in sources.iter().zip(["stop", "rewrite", "answer"]) {
        let file = format!("/alien/.harness/hooks/{name}.md");
        assert!(source.as_str().is_some_and(|source| source.ends_with(&file)), "{line}");
    }
    let mut record = crib.records().pop().expect("a record");
    assert_eq!(record["hooks"], line["receipt"]["hooks"]);
    let arguments = record.as_object_mut().and_then(|record| record.remove("arguments"));
    assert_eq!(arguments, Some(json!({"json": {"task": "stolen"}})), "the arguments that the tool got");
    assert!(!record.to_string().contains("stolen") && !record.to_string().contains("forged"), "{record}");

    let line = call_with(&crib, "echo", "secret", &["--allow-hooks"]);
    assert_eq!(effects(&line["receipt"]), [["stop", "before", "blocked"]], "{line}");
    assert_eq!(crib.records().pop().expect("a record")["hooks"], line["receipt"]["hooks"]);
}

#[test]
fn each_effect_has_its_name_and_a_hook_without_one_has_none() {
    for (event, lines, expected) in [
        ("tool.pre", "return None", ["before", "-"]),
        ("tool.pre", "return allow()", ["before", "-"]),
        ("tool.pre", "return modify({\"args\": payload[\"args\"]})", ["before", "-"]),
        ("tool.pre", "return modify({\"args\": {\"task\": \"b\"}})", ["before", "changed-arguments"]),
        ("tool.pre", "return modify({\"args\": {\"task\": 7}})", ["before", "blocked"]),
        ("tool.pre", "fail(\"broken\")", ["before", "blocked"]),
        ("tool.post", "return modify({\"result\": payload[\"result\"]})", ["after", "-"]),
        ("tool.post", "return modify({\"result\": 7})", ["after", "changed-result"]),
        ("tool.post", "return block(\"no\")", ["after", "blocked"]),
        ("tool.post", "fail(\"broken\")", ["after", "blocked"]),
    ] {
        let crib = two_sources(&[("h", hook(event, lines))]);
        let line = call_with(&crib, "theirs", "a", &[]);
        assert_eq!(effects(&line["receipt"]), [["h", expected[0], expected[1]]], "{lines}: {line}");
    }
    let crib = project(&[
        (".harness/tools/wrong.md", &tool("fail(\"broken\")")),
        (".harness/hooks/h.md", &hook("tool.post", "return modify({\"result\": {\"sorry\": 1}})")),
    ]);
    let line = crib.call("wrong", &json!({}), &[]);
    assert_eq!(effects(&line["receipt"]), [["h", "after", "changed-result"]], "of a failed call too: {line}");
}

#[test]
fn the_trace_has_one_line_for_each_call_that_hooks_acted_on() {
    let page = Page::new();
    let crib = attack();
    let turns = [calls("theirs", json!({"task": "a"})), calls("echo", json!({"task": "a"})), json!({"content": "x"})];
    let script = json!({"prompt": "go", "turns": turns});
    let ran = trace(&crib, &script, &BOTH);
    let lines: Vec<_> = ran.stderr.lines().filter(|line| line.contains('↪')).collect();
    let wanted = "↪ theirs: hook rewrite (alien/.harness/hooks/rewrite.md) changed the arguments; hook answer \
                  (alien/.harness/hooks/answer.md) changed the result";
    assert_eq!(lines, [wanted], "{ran:?}");
    let ran = trace(&crib, &script, &[&BOTH[..], &["--allow-hooks"]].concat());
    assert_eq!(ran.stderr.matches('↪').count(), 2, "{ran:?}");
    let secret = json!({"prompt": "go", "turns": [calls("theirs", json!({"task": "secret"})), {"content": "x"}]});
    let ran = trace(&crib, &secret, &BOTH);
    page.show(&ran);
    assert!(!trace(&crib, &secret, &[&BOTH[..], &["--quiet"]].concat()).stderr.contains('↪'));
    page.run(&crib, &[&["call", "theirs", "{\"task\":\"secret\"}"], &BOTH[..]].concat());
    page.matches("script/trace");
}

#[test]
fn events_name_the_hooks_before_the_result_of_the_call() {
    let crib = attack();
    let script = json!({"prompt": "go", "turns": [calls("theirs", json!({"task": "a"})), {"content": "x"}]});
    let ran = play(&crib, &script, &BOTH);
    let all = events(&ran);
    let place =
        |kind: &str| all.iter().position(|event| event["type"] == kind).unwrap_or_else(|| panic!("{kind}: {ran:?}"));
    let (hooks, result) = (&all[place("tool_hooks")], &all[place("tool_result")]);
    assert!(place("tool_call") < place("tool_hooks") && place("tool_hooks") < place("tool_result"), "{ran:?}");
    assert_eq!((&hooks["name"], &hooks["id"], &hooks["step"]), (&json!("theirs"), &result["id"], &json!(1)), "{hooks}");
    let acted = [["rewrite", "before", "changed-arguments"], ["answer", "after", "changed-result"]];
    assert_eq!(effects(hooks), acted, "{hooks}");
    assert_eq!(effects(&result["receipt"])[1..], acted, "{result}");
    assert!(!hooks.to_string().contains("stolen"), "{hooks}");
    let passes = two_sources(&[("h", hook("tool.pre", "return None"))]);
    let ran = play(&passes, &script, &BOTH);
    assert!(events(&ran).iter().all(|event| event["type"] != "tool_hooks"), "{ran:?}");
}

#[test]
fn a_nested_call_and_a_background_task_are_named_too() {
    let page = Page::new();
    let crib = attack();
    fs::copy(guest("rich"), crib.path("rich.wasm")).expect("the guest was built");
    let inner = calls("calls", json!({"name": "theirs", "arguments": {"task": "a"}}));
    let script = json!({"prompt": "go", "turns": [inner, {"content": "x"}]});
    let flags = ["--tools", "rich.wasm", "--tools", "alien", "--allow-call"];
    let ran = trace(&crib, &script, &flags);
    page.show(&ran);
    page.matches("script/nested");
    let ran = play(&crib, &script, &flags);
    let nested: Vec<_> = events(&ran).into_iter().filter(|event| event["type"] == "tool_hooks").collect();
    assert_eq!((nested.len(), &nested[0]["name"]), (1, &json!("theirs")), "{ran:?}");

    let slow = "---\nasync: true\nscript: |\n  def run(args): return 7\n---\nSlow.\n";
    write(&crib, "alien/.harness/tools/slow.md", slow);
    fs::remove_file(crib.path("alien/.harness/hooks/rewrite.md")).expect("a hook");
    let awaits = calls("task_await", json!({"task_id": "task_1", "timeout_ms": 30_000}));
    let script = json!({"prompt": "go", "turns": [calls("slow", json!({})), awaits, {"content": "x"}]});
    let ran = trace(&crib, &script, &["--tools", "alien", "--tools", "own"]);
    // The task may end before or after the result of the call that starts it is shown.
    let line = "↪ slow: hook answer (alien/.harness/hooks/answer.md) changed the result\n";
    assert_eq!((ran.code, ran.stderr.matches(line).count()), (Some(0), 1), "{ran:?}");
}

#[test]
fn what_a_hook_did_to_an_event_is_in_its_record() {
    let crib = two_sources(&[("h", hook("model.post", "return modify({\"content\": \"new\"})"))]);
    let script = json!({"prompt": "go", "turns": [{"content": "old"}]});
    let ran = play(&crib, &script, &[&BOTH[..], &["--allow-hooks"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let record = crib.records().pop().expect("a record");
    assert_eq!((&record["tool"], &record["callId"]), (&json!("h"), &json!("model.post")), "{record}");
    assert_eq!(effects(&record), [["h", "-", "changed-event"]], "{record}");
    let all = events(&ran);
    let output = all.iter().find(|event| event["type"] == "event_hooks").unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(
        (&output["event"], effects(output)),
        (&json!("model.post"), vec![["h", "-", "changed-event"]]),
        "{output}"
    );
    let flags = [&BOTH[..], &["--allow-hooks"]].concat();
    let line = "↪ model.post: hook h (alien/.harness/hooks/h.md) changed the text\n";
    assert!(trace(&crib, &script, &flags).stderr.contains(line), "{:?}", trace(&crib, &script, &flags));
    let same = json!({"prompt": "go", "turns": [{"content": "new"}]});
    assert!(!trace(&crib, &same, &flags).stderr.contains('↪'), "nothing was changed");
}

#[test]
fn a_receipt_lists_a_bounded_number_of_hooks_and_those_that_acted_first() {
    let crib = two_sources(&[]);
    for n in 0..36 {
        write(&crib, &format!("alien/.harness/hooks/h{n}.md"), hook("tool.pre", "return None"));
    }
    let late = hook("tool.pre", "return block(\"late\")").replacen("---\n", "---\npriority: 9\n", 1);
    write(&crib, "alien/.harness/hooks/late.md", late);
    let line = call_with(&crib, "theirs", "a", &[]);
    let receipt = &line["receipt"];
    let listed = effects(receipt);
    assert_eq!((listed.len(), &receipt["omittedHooks"]), (32, &json!(5)), "{line}");
    assert_eq!(listed.last(), Some(&["late", "before", "blocked"]));
}

#[test]
fn a_list_names_hooks_with_their_matchers_and_scopes() {
    let crib = two_sources(&[
        ("one", hook_when("tool.pre", "{tool: \"e*\", args: {task: \"*.md\"}}", "return None")),
        ("two", hook("run.start", "return None")),
    ]);
    let list = |flags: &[&str]| crib.run(&[&["list"], flags, &BOTH[..]].concat()).stdout;
    let table = list(&[]);
    let section = table.split("\n\n").last().expect("a section");
    let lines: Vec<Vec<&str>> =
        section.lines().map(|line| line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect()).collect();
    let file = |name: &str| format!("alien/.harness/hooks/{name}.md");
    assert_eq!(lines[0], ["HOOK", "EVENT", "MATCHES", "SCOPE", "SOURCE"], "{table}");
    assert_eq!(lines[1], ["one", "tool.pre", "e*(task=*.md)", "own source", file("one").as_str()], "{table}");
    assert_eq!(lines[2], ["two", "run.start", "-", "own source", file("two").as_str()], "{table}");
    assert!(list(&["--allow-hooks=alien"]).contains("e*(task=*.md)  all sources  "), "{table}");

    let json =
        |flags: &[&str]| -> Vec<Value> { serde_json::from_str(&list(&[&["--json"], flags].concat())).expect("JSON") };
    let (narrow, wide) = (json(&[]), json(&["--allow-hooks"]));
    assert_eq!((narrow.len(), narrow[0]["name"].as_str()), (2, Some("echo")), "hooks are no tools: {narrow:?}");
    assert_eq!((&narrow[0]["hooks"], &narrow[1]["hooks"]), (&json!([]), &json!([])));
    let named = &wide[0]["hooks"][0];
    assert_eq!(
        (&named["name"], &named["event"], &named["scope"]),
        (&json!("one"), &json!("tool.pre"), &json!("all-sources"))
    );
    let all = json(&["--all"]);
    assert_eq!((all.len(), &all[2]["scope"], &all[3]["event"]), (4, &json!("own-source"), &json!("run.start")));
    assert_eq!(all[2]["when"], json!({"tools": ["e*"], "args": {"task": "*.md"}, "expression": null}));

    let sheet = |flags: &[&str]| crib.run(&[&["inspect", "echo"], flags, &BOTH[..]].concat()).stdout;
    assert!(!sheet(&[]).contains("one (tool.pre)") && sheet(&["--allow-hooks"]).contains("one (tool.pre)"));
}
