//! Answers at the terminal beyond a yes: a reason with a no, keys that are not understood, a prompt from a pipe, and the time
//! that a person takes.

use std::fs;
use std::io::{Seek, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::crib::Crib;

use super::terminal::{Left, Terminal};

/// Number of runs in which the order of the questions is compared.
const RUNS: usize = 4;

fn crib() -> Crib {
    Crib::with_guests(&["echo"])
}

fn call(crib: &Crib, flags: &[&str]) -> Command {
    crib.toolcrib(&[&["call", "echo", "{}", "--json", "--ask-tool=echo"], flags].concat())
}

/// Error that a model gets, and the reason of the decision.
fn result(left: &Left) -> (Value, String) {
    let line: Value = serde_json::from_str(&left.stdout).unwrap_or_else(|error| panic!("{error}: {left:?}"));
    (line["error"].clone(), line["receipt"]["decision"]["reason"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn the_model_gets_the_reason_of_a_no() {
    let crib = crib();
    for (typed, message) in [
        ("use work/plan.md instead\n", "the user denied this call: use work/plan.md instead"),
        ("not\t\u{7}this one\n", "the user denied this call: not this one"),
        ("\n", "the user denied this call"),
        ("\u{4}", "the user denied this call"),
    ] {
        let mut terminal = Terminal::start(call(&crib, &[]));
        terminal.question();
        terminal.types("r");
        terminal.until("Reason that the model gets (Escape: back): ");
        // The answer is a line again.
        assert!(terminal.echoes());
        terminal.types(typed);
        let left = terminal.end();
        let (shown, reason) = result(&left);
        assert_eq!((left.code, reason.as_str()), (Some(1), "refused"), "{typed:?}: {left:?}");
        assert_eq!(shown, message, "{typed:?}: {left:?}");
    }
}

#[test]
fn escape_leads_back_from_the_reason_to_the_question() {
    let crib = crib();
    let mut terminal = Terminal::start(call(&crib, &[]));
    terminal.question();
    terminal.types("r");
    terminal.until("(Escape: back): ");
    terminal.types("half a reason\u{1b}");
    terminal.until("[N]o? ");
    terminal.types("y");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(!left.stdout.contains("half a reason"), "{left:?}");
}

#[test]
fn ctrl_c_at_the_reason_interrupts_the_command() {
    let crib = crib();
    let mut terminal = Terminal::start(call(&crib, &[]));
    terminal.question();
    terminal.types("r");
    terminal.until("(Escape: back): ");
    terminal.types("half\u{3}");
    let left = terminal.end();
    assert_eq!(left.code, Some(130), "{left:?}");
    assert_eq!(result(&left).1, "", "nobody has decided: {left:?}");
}

#[test]
fn keys_without_a_meaning_end_in_a_denial() {
    let crib = crib();
    let mut terminal = Terminal::start(call(&crib, &[]));
    for _ in 0..5 {
        terminal.until("[N]o? ");
        terminal.types("m");
        terminal.until("Not understood: press one");
    }
    terminal.until("[N]o? ");
    terminal.types("p");
    let left = terminal.end();
    assert!(left.terminal.contains("Not understood: the call is denied."), "{left:?}");
    assert_eq!((left.code, result(&left).1.as_str()), (Some(1), "refused"), "{left:?}");
}

#[test]
fn a_person_answers_at_the_terminal_while_the_prompt_comes_from_a_pipe() {
    let crib = crib();
    let turns = json!([{"tool_calls": [{"name": "echo", "arguments": {"n": 1}}]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({ "turns": turns }).to_string()).unwrap();
    let mut pipe = tempfile::tempfile().unwrap();
    pipe.write_all(b"y\ny\n").unwrap();
    pipe.rewind().unwrap();
    let args = ["run", "-", "--script", "script.json", "--json", "--ask-tool=echo", "--save-messages", "talk.json"];
    let mut terminal = Terminal::start_with_input(crib.toolcrib(&args), Stdio::from(pipe));
    terminal.question();
    terminal.types("n ask me first\n");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    let talk: Value = serde_json::from_slice(&fs::read(crib.path("talk.json")).unwrap()).unwrap();
    assert_eq!(talk[0]["content"], "y\ny", "the text of the pipe is the prompt and no answer");
    assert!(talk[2]["content"].as_str().unwrap().contains("the user denied this call: ask me first"), "{talk}");
}

#[test]
fn the_questions_of_one_step_come_in_the_order_of_its_calls() {
    let crib = crib();
    let call = |n: usize| json!({"name": "echo", "arguments": {"n": n}});
    let turns = json!([{"tool_calls": [call(0), call(1), call(2)]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({ "prompt": "go", "turns": turns }).to_string()).unwrap();
    for run in 0..RUNS {
        let args = ["run", "--script", "script.json", "--json", "--quiet", "--ask-tool=echo"];
        let mut terminal = Terminal::start(crib.toolcrib(&args));
        for n in 0..3 {
            let question = terminal.question();
            assert!(question.contains(&format!("\"n\": {n}\n")), "run {run}: {question}");
            terminal.types("y");
        }
        assert_eq!(terminal.end().code, Some(0));
    }
}

#[test]
fn the_time_of_a_person_is_not_that_of_the_tool_or_of_the_step() {
    let crib = crib();
    fs::write(crib.path("toolcrib.toml"), "[scheduler]\nstep_time = \"6s\"\n").unwrap();
    let mut terminal = Terminal::start(call(&crib, &["--set=limits.tool_timeout=6s"]));
    terminal.question();
    thread::sleep(Duration::from_millis(6500));
    terminal.types("y");
    let left = terminal.end();
    assert_eq!((left.code, result(&left).1.as_str()), (Some(0), "once"), "{left:?}");
}

/// Time that a person takes for an answer.
const PERSON: Duration = Duration::from_secs(2);

/// The calls of one step: the question is about the first one, and the second one waits behind it.
#[test]
fn the_time_of_a_person_is_shown_for_no_call() {
    let crib = crib();
    let mut echo = crib.entry("echo");
    echo["interface"] = json!({"is_concurrency_safe": false});
    crib.manifest(&json!({ "tools": [echo] }));
    let call = |n: usize| json!({"name": "echo", "arguments": {"n": n}});
    let turns = json!([{"tool_calls": [call(0), call(1)]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({ "prompt": "go", "turns": turns }).to_string()).unwrap();
    let args = ["run", "--script", "script.json", "--ask-tool=echo(n=0)"];
    let mut terminal = Terminal::start(crib.toolcrib(&args));
    terminal.question();
    // The person needs longer than both calls can take on any machine.
    thread::sleep(PERSON);
    terminal.types("y");
    let left = terminal.end();
    let shown: Vec<&str> = left.terminal.lines().filter(|line| line.starts_with('←')).collect();
    assert_eq!((left.code, shown.len()), (Some(0), 2), "{left:?}");
    for record in crib.records() {
        let (ms, waited) = (record["ms"].as_f64().unwrap(), record["waitedMs"].as_f64().unwrap());
        let person = PERSON.as_secs_f64() * 1e3;
        assert!(waited >= person - 500.0 && ms >= waited, "{record}");
        let own = match ms - waited {
            short if short < 1000.0 => format!("{short:.1} ms"),
            long => format!("{:.1} s", long / 1e3),
        };
        assert!(shown.iter().any(|line| line.contains(&own)), "{own}: {shown:?}");
    }
}

#[test]
fn previews_come_in_the_order_of_the_calls_and_never_after_a_no() {
    let crib = crib();
    let tool = |name: &str| {
        let rendering = json!({"activity_description": format!("doing {name}")});
        json!({"name": name, "command": ["./tools/bin/echo"], "interface": {"rendering": rendering}})
    };
    crib.manifest(&json!({"tools": [tool("one"), tool("two"), tool("three")]}));
    let call = |name: &str| json!({"name": name, "arguments": {}});
    let turns = json!([{"tool_calls": [call("one"), call("two"), call("three")]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({ "prompt": "go", "turns": turns }).to_string()).unwrap();
    for run in 0..RUNS {
        let args = ["run", "--script", "script.json", "--ask-tool=two"];
        let mut terminal = Terminal::start(crib.toolcrib(&args));
        let before = terminal.until("Allow this call?");
        assert!(before.contains("» doing one\n") && !before.contains("» doing t"), "run {run}: {before}");
        let question = terminal.until("or [N]o? ");
        assert!(question.contains("doing two"), "run {run}: {question}");
        terminal.types("n");
        let left = terminal.end();
        let previews: Vec<&str> = left.terminal.lines().filter(|line| line.starts_with('»')).collect();
        assert_eq!((left.code, previews), (Some(0), vec!["» doing one", "» doing three"]), "run {run}: {left:?}");
    }
}
