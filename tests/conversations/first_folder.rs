//! The question of a chat without a granted folder: one key answers it, and nothing that was typed before or pasted.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::permissions::terminal::{Left, Terminal};

const QUESTION: &str = "Let the tools read this folder in this chat? [y]es, [w]rite too, or [N]o? ";

/// Creates a folder with a note, and a scripted model that reads and then writes it.
fn crib() -> Crib {
    let crib = Crib::new();
    fs::create_dir_all(crib.path("work")).unwrap();
    fs::create_dir_all(crib.path("home")).unwrap();
    fs::write(crib.path("work/notes.md"), "kept\n").unwrap();
    let calls = json!([
        {"name": "fs_read_file", "arguments": {"path": "notes.md"}},
        {"name": "fs_append_file", "arguments": {"path": "notes.md", "content": "more\n"}},
    ]);
    let turns = json!([{"tool_calls": calls}, {"content": "It is done."}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    crib
}

/// Returns the command of a chat in a folder.
fn command(crib: &Crib, folder: &str) -> std::process::Command {
    let script = crib.path("script.json").display().to_string();
    let mut command = crib.toolcrib(&["chat", "--script", &script]);
    command.current_dir(crib.path(folder)).env("TERM", "xterm").env("NO_COLOR", "1");
    command
}

/// Ends a chat after its answer, and returns the outcomes of its two calls and what was on the terminal.
fn ended(mut terminal: Terminal, crib: &Crib) -> ([Value; 2], Left) {
    terminal.until("> ");
    terminal.types("/quit\r");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    let records = crib.records();
    // Both run at once.
    let outcome =
        |tool: &str| records.iter().find(|record| record["tool"] == tool).expect("a record")["outcome"].clone();
    (["fs_read_file", "fs_append_file"].map(outcome), left)
}

#[test]
fn one_key_grants_the_folder_for_reading_or_writing_in_this_chat() {
    let cases = [("y", ["ok", "denied"], "--allow-read=."), ("W", ["ok", "ok"], "--allow-write=.")];
    for (key, outcomes, flag) in cases {
        let crib = crib();
        let mut terminal = Terminal::start(command(&crib, "work"));
        terminal.until(QUESTION);
        terminal.types(key);
        terminal.until(&format!("hint: `{flag}` grants this folder without the question"));
        let (found, left) = ended(terminal, &crib);
        let is_refused = |outcome: &Value| outcome != "ok";
        assert_eq!(
            found.each_ref().map(is_refused),
            outcomes.map(|outcome| outcome != "ok"),
            "{key}: {found:?} {left:?}"
        );
        assert!(!crib.path("work/toolcrib.toml").exists() && !crib.path("approvals.json").exists());
    }
}

#[test]
fn typed_ahead_and_pasted_keys_answer_nothing() {
    let crib = crib();
    let mut terminal = Terminal::start_after_typing("y\n", command(&crib, "work"));
    terminal.until(QUESTION);
    terminal.types("y\n");
    terminal.until("Not understood");
    terminal.until(QUESTION);
    terminal.types("\u{1b}[200~y\u{1b}[201~");
    terminal.until("Not understood");
    terminal.until(QUESTION);
    terminal.types("\r");
    let (found, left) = ended(terminal, &crib);
    assert!(found.iter().all(|outcome| outcome != "ok"), "{found:?} {left:?}");
}

#[test]
fn five_keys_that_are_not_offered_are_a_no() {
    let crib = crib();
    let mut terminal = Terminal::start(command(&crib, "work"));
    for _ in 0..5 {
        terminal.until(QUESTION);
        terminal.types("x");
        terminal.until("Not understood");
    }
    let (found, left) = ended(terminal, &crib);
    assert!(found.iter().all(|outcome| outcome != "ok"), "{found:?} {left:?}");
}

#[test]
fn an_interrupt_at_the_question_ends_the_chat_and_restores_the_terminal() {
    let crib = crib();
    let mut terminal = Terminal::start(command(&crib, "work"));
    terminal.until(QUESTION);
    assert!(!terminal.echoes());
    terminal.types("\u{3}");
    terminal.until("^C");
    while !terminal.echoes() {
        std::thread::yield_now();
    }
    assert_eq!(terminal.end().code, Some(130));
}

#[test]
fn nobody_is_asked_about_the_folder_of_a_chat_without_a_model() {
    let crib = crib();
    let mut command = crib.toolcrib(&["chat"]);
    command.current_dir(crib.path("work")).env("TERM", "xterm").env("NO_COLOR", "1");
    let left = Terminal::start(command).end();
    assert_eq!(left.code, Some(2), "{left:?}");
    assert!(left.terminal.contains("no model: ") && !left.terminal.contains("Let the tools"), "{left:?}");
}

#[test]
fn nobody_is_asked_about_the_home_folder_a_named_folder_or_without_a_terminal() {
    let crib = crib();
    let (_, left) = ended(Terminal::start(command(&crib, "home")), &crib);
    assert!(!left.terminal.contains("Let the tools"), "{left:?}");
    let mut named = command(&crib, "work");
    named.arg("--deny-write");
    let (_, left) = ended(Terminal::start(named), &crib);
    assert!(!left.terminal.contains("Let the tools"), "{left:?}");
    let left = Terminal::start_with_input(command(&crib, "work"), Stdio::null()).end();
    assert!(left.code == Some(0) && !left.terminal.contains("Let the tools"), "{left:?}");
}
