//! Kept runs: what is kept and how, what is not, and how others go on with them.

use std::fs;

use serde_json::{Value, json};

use super::model::{Model, Turn};
use super::place::*;
use crate::screen::Page;

fn turns() -> Vec<Turn> {
    vec![calls("I look.", "mark", &["a"]), says("It is done.")]
}

#[test]
fn a_run_is_continued_resumed_and_forked() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    place.run(&model, &["run", "first", "--system", "be kind"]);
    let id = place.id();
    let before = place.messages(&id);
    let continued = place.run(&model, &["run", "second", "--continue"]);
    assert_eq!((continued.code, continued.stdout.as_str()), (Some(0), "It is done.\n"), "{continued:?}");
    let resumed = place.run(&model, &["run", "third", "--resume", &id.to_uppercase().replace('-', "")]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    let messages = place.messages(&id);
    assert_eq!(messages[..before.len()], before[..]);
    let users: Vec<&Value> =
        messages.iter().filter(|message| message["role"] == "user").map(|one| &one["content"]).collect();
    assert_eq!(users, ["first", "second", "third"]);

    let forked = place.run(&model, &["run", "aside", "--fork", &id]);
    assert_eq!(forked.code, Some(0), "{forked:?}");
    assert_eq!(place.messages(&id), messages, "the first run stays as it was");
    let listed = place.listed();
    let fork = listed.iter().find(|run| run["parent"] == json!(id)).expect("a fork");
    let copy = place.messages(fork["id"].as_str().unwrap());
    assert_eq!(copy[..messages.len()], messages[..]);
    assert_eq!(copy.len(), messages.len() + 2);
}

#[test]
fn a_run_that_has_its_answer_needs_a_prompt_and_the_wrong_use_is_explained() {
    let page = Page::new();
    let place = Place::new();
    let model = Model::start(turns(), None);
    page.command(&mut place.command(&model, &["run", "go"]));
    let id = place.id();
    for (args, code) in [
        (&["run", "--resume", &id][..], 2),
        (&["run", "go", "--resume", "nonsense"], 1),
        (&["run", "go", "--resume", "00000-00000"], 1),
        (&["run", "go", "--resume", &id, "--system", "x"], 2),
        (&["run", "go", "--resume", &id, "--no-keep"], 2),
        (&["run", "go", "--resume", &id, "--set=records.log_arguments=false"], 2),
    ] {
        let ran = page.command(&mut place.command(&model, args));
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
    }
    page.matches("run/resume-wrong");
}

#[test]
fn no_file_is_written_where_nothing_may_be_kept() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    for args in [
        &["run", "go", "--no-keep"][..],
        &["run", "go", "--set=records.log_arguments=false"],
        &["run", "go", "--dry-run"],
    ] {
        assert_eq!(place.run(&model, args).code, Some(0), "{args:?}");
    }
    assert!(!place.runs().exists());
    let ran =
        crate::crib::Ran::from(place.command(&model, &["run", "go"]).env("TOOLCRIB_NO_KEEP", "1").output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!place.runs().exists());
}

#[test]
fn nothing_that_the_audit_log_masks_is_kept() {
    let place = Place::new();
    let key = "sk-canary-0123456789";
    let word = "patterned-4711";
    let turn = Turn {
        parts: vec!["The key is sk-canary-0123456789 and the word ", "patterned-4711 ", "too."],
        calls: vec![("mark", "a", json!({ "key": key, "word": word }))],
    };
    let model = Model::start(vec![turn, says("patterned-4711 and sk-canary-0123456789")], None);
    let prompt = format!("use {key} and {word}");
    let mut command = place.command(&model, &["run", &prompt, "--stream", "--set", "records.redact=patterned-[0-9]+"]);
    let ran = crate::crib::Ran::from(command.env("OAI_API_KEY", key).output().unwrap());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(place.made()[0].contains(key), "the tool gets the argument as the model wrote it");
    let kept = place.file(&place.id());
    assert!(!kept.contains(key) && !kept.contains(word), "{kept}");
    assert!(kept.contains("***REDACTED***"), "{kept}");
    let arguments = &place.messages(&place.id())[1]["tool_calls"][0]["function"]["arguments"];
    serde_json::from_str::<Value>(arguments.as_str().unwrap()).expect("masked arguments stay JSON");
}

#[test]
fn sensitive_arguments_are_not_kept_and_a_masked_call_is_never_made() {
    let place = Place::new();
    let schema = json!({ "type": "object", "properties": { "password": { "type": "string", "writeOnly": true } } });
    place.crib.manifest(&json!({ "tools": [{ "name": "mark", "description": "d", "schema": schema,
        "command": ["./tools/bin/mark"], "capabilities": { "files": "write" } }] }));
    let turn = Turn { parts: vec![], calls: vec![("mark", "a", json!({ "password": "hunter22" }))] };
    let model = Model::start(vec![turn, says("logged in with hunter22")], None);
    assert_eq!(place.run(&model, &["run", "go"]).code, Some(0));
    let id = place.id();
    let kept = place.file(&id);
    assert!(!kept.contains("hunter22") && kept.contains("logged in with ***"), "{kept}");
    // As a kill leaves it between the answer and the beginning of its call.
    let lines: Vec<&str> = kept.split_inclusive('\n').collect();
    let begun = lines.iter().position(|line| line.contains("\"calls\",")).expect("a beginning of calls");
    fs::write(place.runs().join(format!("{id}.ndjson")), lines[..begun].concat()).unwrap();
    fs::remove_file(place.path("work/log.txt")).unwrap();
    assert_eq!(place.run(&model, &["run", "--resume", &id]).code, Some(0));
    assert!(result_of(&place.messages(&id), "a").contains("not made"), "{}", place.file(&id));
    assert!(place.made().is_empty(), "{:?}", place.made());
}

#[test]
fn a_run_that_cannot_be_kept_says_so_and_makes_no_call() {
    let page = Page::new();
    let place = Place::new();
    let model = Model::start(turns(), None);
    fs::create_dir_all(place.runs().parent().unwrap()).unwrap();
    fs::write(place.runs(), "not a folder").unwrap();
    let ran = page.command(&mut place.command(&model, &["run", "go"]));
    assert!(place.made().is_empty(), "{ran:?}");
    page.command(&mut place.command(&model, &["run", "go", "--no-keep"]));
    page.matches("run/not-kept");
}

#[test]
fn no_tool_reaches_the_kept_runs() {
    let page = Page::new();
    let place = Place::new();
    let model = Model::start(turns(), None);
    let runs = place.path("work/runs").display().to_string();
    let ran = page.command(&mut place.command(&model, &["run", "go", "--runs-dir", &runs]));
    assert_ne!(ran.code, Some(0), "a granted folder cannot hold the runs: {ran:?}");
    page.matches("run/reached");
}

#[test]
fn a_copy_never_makes_the_calls_of_its_origin() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    assert_eq!(place.run(&model, &["run", "go", "--set", "budgets.calls=0"]).code, Some(4));
    let id = place.id();
    let forked = place.run(&model, &["run", "--fork", &id]);
    assert_eq!((forked.code, forked.stdout.as_str()), (Some(0), "It is done.\n"), "{forked:?}");
    assert!(place.made().is_empty(), "{:?}", place.made());
    let copy = place.listed()[0]["id"].as_str().unwrap().to_owned();
    let messages = place.messages(&copy);
    assert_whole(&messages);
    assert!(result_of(&messages, "a").contains("not made"), "{messages:#?}");
    assert_eq!(place.run(&model, &["run", "--resume", &id]).code, Some(0));
    assert_eq!((place.made().len(), result_of(&place.messages(&id), "a").as_str()), (1, "{}"), "by its own run");
}

#[test]
fn a_variable_that_keeps_runs_allows_to_go_on_with_one() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    place.run(&model, &["run", "first"]);
    let run = |value: &str, args: &[&str]| {
        crate::crib::Ran::from(place.command(&model, args).env("TOOLCRIB_NO_KEEP", value).output().unwrap())
    };
    let id = place.id();
    for args in [["run", "more", "--resume", &id].as_slice(), &["run", "more", "--continue"]] {
        assert_eq!(run("0", args).code, Some(0), "{args:?}");
        let refused = run("1", args);
        assert!(refused.code == Some(2) && refused.stderr.contains("cannot be used with"), "{args:?}: {refused:?}");
    }
}

#[test]
fn the_latest_run_is_named_if_it_is_damaged_and_no_other_takes_its_place() {
    let page = Page::new();
    let place = Place::new();
    let model = Model::start(turns(), None);
    page.command(&mut place.command(&model, &["run", "first"]));
    let first = place.id();
    page.command(&mut place.command(&model, &["run", "second"]));
    let second = place.listed()[0]["id"].as_str().unwrap().to_owned();
    let file = place.runs().join(format!("{second}.ndjson"));
    let whole = place.file(&second);
    for damaged in [whole.replacen("\"type\"", "\"kind\"", 1), whole.replacen("\"message\"", "\"massage\"", 2)] {
        fs::write(&file, &damaged).unwrap();
        page.command(&mut place.command(&model, &["run", "more", "--continue"]));
    }
    // Killed before its first line was complete: a run without a conversation.
    fs::write(&file, "").unwrap();
    page.command(&mut place.command(&model, &["run", "more", "--continue"]));
    assert_eq!(place.messages(&first).len(), 6);
    page.matches("run/damaged");
}

#[test]
fn nothing_of_a_masked_text_is_kept_while_it_arrives() {
    let place = Place::new();
    let long = "BEGIN canary one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen";
    let model = Model::start(vec![Turn { parts: vec![long, " sixteen END, ", "done."], calls: Vec::new() }], None);
    let ran = place.run(&model, &["run", "go", "--stream", "--set", "records.redact=BEGIN[^.]*END"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let kept = place.file(&place.id());
    assert!(!kept.contains("canary") && kept.contains("***REDACTED***, done."), "{kept}");
}

#[test]
fn a_chat_without_a_message_is_not_kept() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    for args in [&["chat"][..], &["chat", "--system", "Be kind."]] {
        let ran = place.run(&model, args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stderr.contains("saved; continue"), "{ran:?}");
        assert_eq!(place.listed().len(), 0, "{ran:?}");
        let files = fs::read_dir(place.runs()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = files.filter(|name| !name.starts_with("chat-history")).collect();
        assert!(left.is_empty(), "no lock file stays: {left:?}");
    }
}
