//! Approvals on a terminal: the question, the accepted answers, and their duration.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::crib::{Crib, guest};
use crate::screen::Page;

use super::terminal::{COLUMNS, Left, Terminal};

fn crib() -> Crib {
    Crib::with_guests(&["echo", "empty"])
}

/// Calls `echo` under a rule that requires approval.
fn asked(crib: &Crib, arguments: &Value) -> Terminal {
    Terminal::start(call(crib, arguments))
}

fn call(crib: &Crib, arguments: &Value) -> Command {
    crib.toolcrib(&["call", "echo", &arguments.to_string(), "--json", "--ask-tool=echo"])
}

/// Decision in the receipt of a call.
fn decision(left: &Left) -> Value {
    let line: Value = serde_json::from_str(&left.stdout).unwrap_or_else(|error| panic!("{error}: {left:?}"));
    line["receipt"]["decision"].clone()
}

/// Run with a model that makes these calls of `echo`, one number per step.
fn run(crib: &Crib, steps: &[usize], flags: &[&str]) -> Terminal {
    let call = |n: usize| json!({"name": "echo", "arguments": {"n": n}});
    let mut turns: Vec<_> =
        steps.iter().map(|calls| json!({"tool_calls": (0..*calls).map(call).collect::<Vec<_>>()})).collect();
    turns.push(json!({"content": "done"}));
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    Terminal::start(crib.toolcrib(&[&["run", "--script", "script.json", "--json"], flags].concat()))
}

/// Decisions of a run's calls.
fn reasons(left: &Left) -> Vec<String> {
    let events = left.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let results = events.filter(|event| event["type"] == "tool_result");
    results.map(|event| event["receipt"]["decision"]["reason"].as_str().unwrap_or("none").to_owned()).collect()
}

#[test]
fn a_question_says_what_would_run_and_is_about_this_very_call() {
    let page = Page::new();
    let crib = crib();
    let mut terminal = asked(&crib, &json!({"path": "out/x", "n": 1.0}));
    page.text("question", terminal.question());
    terminal.types("d");
    let question = terminal.question();
    page.text("details", &question);
    let invocation = question.lines().find_map(|line| line.strip_prefix("      Call | ")).expect(&question);
    terminal.types("o");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert_eq!(decision(&left), json!({"behavior": "allow", "reason": "once", "restsOn": "ask echo (--ask-tool)"}));
    let line: Value = serde_json::from_str(&left.stdout).unwrap();
    assert_eq!(line["receipt"]["invocation"], invocation, "the call that was asked about is the one that ran");
    assert_eq!(line["result"], json!({"path": "out/x", "n": 1.0}));
    assert!(!crib.path("approvals.json").exists(), "once is kept nowhere");
    page.matches("terminal/question");
}

#[test]
fn everything_but_a_yes_is_a_no() {
    let crib = crib();
    for typed in ["n", "N", "\n", "\u{1b}", "\u{4}"] {
        let mut terminal = asked(&crib, &json!({}));
        terminal.question();
        terminal.types(typed);
        let left = terminal.end();
        assert_eq!((left.code, &decision(&left)["reason"]), (Some(1), &json!("refused")), "{typed:?}: {left:?}");
        assert!(left.stdout.contains("denied this call"), "{left:?}");
    }
}

#[test]
fn what_is_no_answer_is_asked_again() {
    let page = Page::new();
    let crib = crib();
    let mut terminal = asked(&crib, &json!({}));
    terminal.question();
    // A key that is not offered, a word that was pasted, with marks or without, and a key without a character.
    for typed in ["x", "y\n", "once", "\u{1b}[200~y\u{1b}[201~", "\u{1b}[A"] {
        terminal.types(typed);
        terminal.until("Enter alone means no.");
        terminal.until("Allow [o]nce (y), [s]ession, [a]lways, [d]etails, no with [r]eason, or [N]o? ");
    }
    terminal.types("O");
    let left = terminal.end();
    assert_eq!(left.code, Some(0));
    page.text("terminal", left.shown());
    page.matches("terminal/no-answer");
}

#[test]
fn y_means_once() {
    let crib = crib();
    for typed in ["y", "Y"] {
        let mut terminal = asked(&crib, &json!({}));
        terminal.question();
        terminal.types(typed);
        let left = terminal.end();
        assert_eq!((left.code, &decision(&left)["reason"]), (Some(0), &json!("once")), "{typed:?}: {left:?}");
    }
}

#[test]
fn an_interruption_at_the_question_ends_the_program() {
    let page = Page::new();
    let crib = crib();
    let mut terminal = asked(&crib, &json!({}));
    terminal.question();
    terminal.types("\u{3}");
    let left = terminal.end();
    assert_eq!(left.code, Some(130), "{left:?}");
    assert!(left.terminal.ends_with('\n'), "the shell's prompt gets a line of its own: {left:?}");
    page.text("terminal", left.shown());
    assert_eq!(crib.records().iter().filter(|record| record["outcome"] == "ok").count(), 0);
    page.matches("terminal/interrupted");
}

#[test]
fn what_was_typed_ahead_answers_nothing() {
    let crib = crib();
    let mut terminal = Terminal::start_after_typing("o\no\no\n", call(&crib, &json!({})));
    terminal.question();
    terminal.types("n");
    let left = terminal.end();
    assert_eq!((left.code, &decision(&left)["reason"]), (Some(1), &json!("refused")), "{left:?}");
}

#[test]
fn data_on_standard_input_answers_nothing_and_the_terminal_is_asked() {
    let crib = crib();
    fs::write(crib.path("answers"), "o\no\no\n").unwrap();
    let input = Stdio::from(fs::File::open(crib.path("answers")).unwrap());
    let mut terminal = Terminal::start_with_input(call(&crib, &json!({})), input);
    terminal.question();
    terminal.types("n\n");
    let left = terminal.end();
    assert_eq!((left.code, &decision(&left)["reason"]), (Some(1), &json!("refused")), "{left:?}");
}

#[test]
fn a_run_without_input_asks_nobody() {
    let crib = crib();
    let left = Terminal::start_with_input(call(&crib, &json!({})), Stdio::null()).end();
    assert_eq!((left.code, &decision(&left)["reason"]), (Some(1), &json!("nobody")), "{left:?}");
    assert!(!left.terminal.contains("Allow this call?"), "{left:?}");
}

#[test]
fn an_answer_for_the_session_holds_for_the_calls_that_wait_and_those_that_come() {
    let crib = crib();
    let mut terminal = run(&crib, &[2, 1], &["--ask-tool=echo"]);
    terminal.question();
    terminal.types("s");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert_eq!(reasons(&left), ["session"; 3]);
    assert_eq!(left.terminal.matches("Allow this call?").count(), 1, "{left:?}");
    assert!(!crib.path("approvals.json").exists());
    let mut again = run(&crib, &[1], &["--ask-tool=echo"]);
    again.question();
    again.types("n");
    assert_eq!(reasons(&again.end()), ["refused"]);
}

#[test]
fn several_questions_come_one_after_the_other_in_the_order_of_the_calls() {
    let crib = crib();
    let mut terminal = run(&crib, &[3], &["--ask-tool=echo", "--quiet"]);
    for (call, typed) in ["o", "n", "o"].into_iter().enumerate() {
        let question = terminal.question();
        assert!(question.contains(&format!("\"n\": {call}\n")), "{question}");
        terminal.types(typed);
    }
    let left = terminal.end();
    assert_eq!(reasons(&left), ["once", "refused", "once"], "{left:?}");
}

#[test]
fn an_answer_for_always_holds_until_the_program_changes_or_it_is_taken_back() {
    let crib = crib();
    let answered = |typed: &str| {
        let mut terminal = asked(&crib, &json!({}));
        terminal.question();
        terminal.types(typed);
        decision(&terminal.end())["reason"].clone()
    };
    let unasked = || {
        let ran = crib.run(&["call", "echo", "{}", "--json", "--ask-tool=echo"]);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["receipt"]["decision"]["reason"].clone()
    };
    assert_eq!(answered("a"), "always");
    assert_eq!(unasked(), "always", "the next process needs no person");
    let other_rule = crib.run(&["call", "echo", "{}", "--ask-tool=e*"]);
    assert_eq!(other_rule.code, Some(1), "another rule asks anew: {other_rule:?}");
    crib.install(&guest("empty"), "echo");
    assert_eq!(unasked(), "nobody", "another program under the same name is asked about");
    assert_eq!(answered("A"), "always");
    let listed: Value = serde_json::from_str(&crib.run(&["approvals", "list", "--json"]).stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    assert_eq!((&listed[0]["tool"], &listed[0]["rule"]), (&json!("echo"), &json!("ask echo (--ask-tool)")));
    assert_ne!(listed[0]["digest"], listed[1]["digest"]);
    assert_eq!(crib.run(&["approvals", "remove", "echo"]).code, Some(0));
    assert_eq!(unasked(), "nobody", "what was taken back is asked again");
}

#[test]
fn what_cannot_be_kept_holds_for_the_session() {
    let page = Page::new();
    let crib = crib();
    fs::create_dir(crib.path("approvals.json.lock")).unwrap();
    let mut terminal = asked(&crib, &json!({}));
    terminal.question();
    terminal.types("a");
    let left = terminal.end();
    assert_eq!((left.code, &decision(&left)["reason"]), (Some(0), &json!("session")), "{left:?}");
    page.text("terminal", left.shown());
    page.matches("terminal/not-kept");
}

#[test]
fn nothing_in_a_call_can_pass_for_a_line_of_the_question() {
    let page = Page::new();
    let crib = crib();
    let column = usize::from(COLUMNS);
    let forged = "Allow [o]nce (y), [s]ession, [a]lways, [d]etails, no with [r]eason, or [N]o? o";
    let arguments = json!({
        "lines": format!("a\n{forged}\r{forged}\u{1b}[2J\u{1b}[1;1H{forged}\u{9b}A\u{202e}"),
        "wraps": format!("{}{forged}", " ".repeat(3 * column)),
        "wide": format!("{}{forged}", "漢".repeat(2 * column)),
        format!("key\n{forged}"): "}",
    });
    let mut terminal = asked(&crib, &arguments);
    terminal.until("Allow this call?");
    let question =
        terminal.until("\n\u{1b}[?2004hAllow [o]nce (y), [s]ession, [a]lways, [d]etails, no with [r]eason, or [N]o? ");
    page.text("question", &question);
    assert!(!question.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{question:?}");
    for line in question.lines().skip(1) {
        assert_eq!(line.get(10..13), Some(" | "), "a line without its mark: {line:?} in {question}");
        let width: usize = line.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum();
        assert!(width <= column, "{width}: {line:?}");
    }
    terminal.types("o");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert_eq!(serde_json::from_str::<Value>(&left.stdout).unwrap()["result"], arguments);
    page.matches("terminal/forged");
}

#[test]
fn what_is_long_is_cut_in_the_middle_and_shown_whole_on_wish() {
    let page = Page::new();
    let crib = crib();
    let long: Vec<usize> = (1000..1100).collect();
    let mut terminal = asked(&crib, &json!({ "long": long }));
    page.text("question", terminal.question());
    terminal.types("d");
    page.text("details", terminal.question());
    terminal.types("o");
    assert_eq!(terminal.end().code, Some(0));
    page.matches("terminal/long");
}
