//! The chat at a terminal: messages, commands, interruptions and approvals.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::model::{Model, Pause, Turn};
use super::place::*;
use crate::crib::Ran;
use crate::permissions::terminal::Terminal;
use crate::screen::Page;

fn chat(place: &Place, model: &Model, args: &[&str]) -> Terminal {
    let mut command = place.command(model, &[&["chat"], args].concat());
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    Terminal::start_whole(command)
}

#[test]
fn a_chat_answers_edits_lines_and_is_kept() {
    let place = Place::new();
    let model = Model::start(vec![calls("I look.", "mark", &["a"]), says("It is done.")], None);
    let mut terminal = chat(&place, &model, &["--set", "budgets.price=1/2"]);
    terminal.until("`/help` lists the commands");
    terminal.until("> ");
    // Typed with a mistake that is corrected: backspace, the beginning of the line, and its end.
    terminal.types("ellp\u{7f}o\u{1}h\u{5}!\r");
    terminal.until("It is done.");
    assert_eq!(model.last_messages()[0]["content"], "hello!");
    terminal.types("/cost\r");
    terminal.until("in this process: 2 steps · 1 call · 20 + 10 tokens · cost 0.000040 at your price");
    terminal.types("/tools\r");
    terminal.until("mark");
    terminal.until("leaves a line [write:");
    terminal.types("/nonsense\r");
    terminal.until("unknown command `/nonsense`");
    terminal.types("/allow mrak\r");
    terminal.until("`mrak` matches no tool, so nothing was allowed: did you mean `/allow mark`?");
    terminal.types("/allow zzz*\r");
    terminal.until("`zzz*` matches no tool, so nothing was allowed: `/tools` lists the tools");
    terminal.types("/allow\r");
    terminal.until("no calls are pre-approved");
    terminal.types("/help\r");
    terminal.until("/undo           remove your last message");
    // The first line of this chat comes back.
    terminal.types(&"\u{1b}[A".repeat(8));
    terminal.types("\r");
    terminal.until("It is done.");
    terminal.until("> ");
    terminal.types("\u{4}");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    let id = place.id();
    let users = place.messages(&id).into_iter().filter(|message| message["role"] == "user");
    assert_eq!(users.map(|message| message["content"].clone()).collect::<Vec<_>>(), ["hello!", "hello!"]);

    let mut terminal = chat(&place, &model, &["--resume", &id]);
    terminal.until("> ");
    // The lines of the earlier chat are there too.
    terminal.types("\u{1b}[A\u{1b}[A\r");
    terminal.until("/undo           remove");
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code, Some(0));
}

#[test]
fn an_interrupt_stops_the_answer_and_not_the_chat() {
    let place = Place::new();
    let turn = Turn { parts: vec!["Half of ", "an answer"], calls: Vec::new() };
    let model = Model::start(vec![turn], Some(Pause::AfterText(0)));
    let mut terminal = chat(&place, &model, &[]);
    terminal.until("> ");
    terminal.types("go\r");
    terminal.until("an answer");
    model.until_paused();
    terminal.types("\u{3}");
    terminal.until("info: interrupted; `/go` continues");
    terminal.until("> ");
    terminal.types("and now?\r");
    terminal.until("an answer");
    terminal.until("> ");
    terminal.types("\u{3}");
    terminal.until("> ");
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code, Some(0));
    let messages = model.last_messages();
    assert_eq!(messages[1]["content"], "Half of an answer\n[The answer was interrupted here.]", "{messages:#?}");
    assert_eq!(messages[2]["content"], "and now?");
}

#[test]
fn a_chat_is_listed_with_the_end_of_its_last_exchange() {
    let place = Place::new();
    let turn = Turn { parts: vec!["Half of ", "an answer"], calls: Vec::new() };
    let model = Model::start(vec![turn], Some(Pause::AfterText(0)));
    let mut terminal = chat(&place, &model, &[]);
    terminal.until("> ");
    terminal.types("go\r");
    model.until_paused();
    terminal.types("\u{3}");
    terminal.until("info: interrupted; `/go` continues");
    terminal.until("> ");
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code, Some(0));
    let state = || place.listed()[0]["state"].clone();
    assert_eq!(state(), "interrupted");
    // The text of the interrupted answer is still the last of the conversation.
    let end = |args: &[&str], lines: &str| {
        let mut child = place.start(&model, &[&["chat", "--quiet"], args].concat());
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.as_bytes()).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        state()
    };
    assert_eq!(end(&["--continue"], "/quit\n"), "interrupted");
    assert_eq!(end(&["--continue"], "and now?\n"), "answer");
    assert_eq!(end(&["--continue", "--max-tokens", "1"], "one\ntwo\n"), "budget");
    assert_eq!((end(&[], ""), place.listed().len()), (json!("budget"), 1), "nothing was said");
    assert_eq!(end(&[], "hello\n/undo\n"), "ended", "nothing is left");
}

#[test]
fn undo_drops_the_last_exchange_and_names_what_stays() {
    let place = Place::new();
    let model = Model::start(vec![calls("I write.", "mark", &["a"]), says("It is done.")], None);
    let mut child = place.start(&model, &["chat"]);
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"write it\n/undo\n/undo\n").unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    for words in [
        "dropped `write it` and everything after it",
        "these calls are not undone; their effects remain",
        "  mark",
        "` takes back what all calls of this chat have changed in files",
        "nothing to undo",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_eq!(place.made().len(), 1, "nobody was asked");
}

#[test]
#[cfg(target_os = "linux")]
fn undo_puts_back_the_files_of_the_dropped_exchange_alone() {
    let place = Place::new();
    let turns = ["a", "b", "c", "d"].map(|id| [calls("I write.", "mark", &[id]), says("It is done.")]);
    let model = Model::by_exchange(turns.into_iter().flatten().collect());
    let mut terminal = chat(&place, &model, &[]);
    terminal.until("> ");
    for words in ["one\r", "two\r", "three\r"] {
        terminal.types(words);
        terminal.until("It is done.");
        terminal.until("> ");
    }
    terminal.types("/undo\r");
    terminal.until("dropped `three` and everything after it");
    terminal.until("Take the changes back? [y/N] ");
    terminal.types("y\n");
    terminal.until("took back 1 change: 1 modified (work/log.txt)");
    terminal.until("> ");
    assert_eq!(place.made().len(), 2);
    terminal.types("/undo\r");
    terminal.until("dropped `two` and everything after it");
    terminal.until("[y/N] ");
    terminal.types("\n");
    terminal.until("files stay: 1 modified");
    terminal.until("these calls are not undone; their effects remain");
    terminal.until("> ");
    terminal.types("again\r");
    terminal.until("It is done.");
    terminal.until("> ");
    assert_eq!(place.made().len(), 3);
    std::fs::write(place.path("work/log.txt"), "changed by another\n").unwrap();
    terminal.types("/undo\r");
    terminal.until("`work/log.txt` stays: it has changed since");
    terminal.until("these calls are not undone; their effects remain");
    terminal.types("/quit\r");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(place.made(), ["changed by another"]);
    let messages = place.messages(&place.id());
    let prompts = messages.iter().filter(|message| message["role"] == "user").map(|message| &message["content"]);
    assert_eq!(prompts.collect::<Vec<_>>(), ["one"]);
}

#[test]
fn a_tool_that_is_allowed_ahead_is_not_asked_about() {
    let place = Place::new();
    let model =
        Model::start(vec![calls("One.", "mark", &["a"]), calls("Two.", "mark", &["b"]), says("It is done.")], None);
    let mut terminal = chat(&place, &model, &["--ask-tool=mark"]);
    terminal.until("> ");
    terminal.types("/allow\r");
    terminal.until("no calls are pre-approved");
    terminal.types("go\r");
    terminal.question();
    terminal.types("n");
    terminal.question();
    terminal.types("n");
    terminal.until("It is done.");
    assert!(place.made().is_empty());
    terminal.types("/undo\r");
    terminal.until("none of the dropped calls can have changed anything");
    terminal.types("/allow ma*\r");
    terminal.until("`ma*` calls are allowed without asking in this chat");
    terminal.types("go\r");
    terminal.until("It is done.");
    terminal.types("/quit\r");
    let left = terminal.end();
    assert_eq!((left.code, place.made().len()), (Some(0), 2), "{left:?}");
}

#[test]
fn what_is_allowed_ahead_answers_no_question_about_a_flow() {
    let place = Place::new();
    fs::write(place.path("notes.md"), "private").unwrap();
    let model = Model::start(vec![calls("One.", "mark", &["a"]), says("It is done.")], None);
    let mut terminal = chat(&place, &model, &["--ask-tool=flow private -> write", "--system-file=notes.md"]);
    terminal.until("> ");
    terminal.types("/allow mark\r");
    terminal.until("`mark` calls are allowed without asking in this chat");
    terminal.types("go\r");
    terminal.question();
    terminal.types("n");
    terminal.until("It is done.");
    terminal.types("/quit\r");
    assert!(terminal.end().code == Some(0) && place.made().is_empty());
}

#[test]
fn a_tool_that_a_script_has_added_can_be_allowed_ahead() {
    let place = Place::new();
    let maker = "---
script: |
  def run(args):
      meta.tool_register(name=\"reader\", description=\"made\", parameters={}, script=\"def run(args):\\n    return 7\")
---
Makes a tool.
";
    fs::write(place.path("maker.md"), maker).unwrap();
    let calls = |name: &str| json!({ "tool_calls": [{ "name": name, "arguments": {} }] });
    let turns = json!([calls("maker"), { "content": "It is made." }, calls("reader"), { "content": "It is done." }]);
    fs::write(place.path("script.json"), json!({ "prompt": "go", "turns": turns }).to_string()).unwrap();
    let args = ["chat", "--script", "script.json", "--tools=maker.md", "--allow-meta", "--ask-tool=reader"];
    let mut command = place.crib.toolcrib(&args);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    let mut terminal = Terminal::start_whole(command);
    terminal.until("It is made.");
    terminal.until("> ");
    terminal.types("/allow raeder\r");
    terminal.until("`raeder` matches no tool, so nothing was allowed: did you mean `/allow reader`?");
    terminal.types("/allow reader\r");
    terminal.until("`reader` calls are allowed without asking in this chat");
    terminal.types("use it\r");
    terminal.until("It is done.");
    terminal.types("/quit\r");
    let left = terminal.end();
    assert!(left.code == Some(0) && !left.terminal.contains("Allow this call?"), "{left:?}");
}

#[test]
fn a_chat_that_is_terminated_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let model = Model::start(vec![says("It is done.")], None);
    let mut terminal = chat(&place, &model, &[]);
    terminal.until("> ");
    terminal.types("hello\r");
    terminal.until("It is done.");
    terminal.until("> ");
    assert!(!terminal.echoes(), "a line is edited");
    let process = terminal.process().to_string();
    assert!(Command::new("kill").args(["-TERM", &process]).status().unwrap().success());
    let started = Instant::now();
    while !terminal.echoes() {
        assert!(started.elapsed() < Duration::from_secs(10), "the terminal is not restored");
        thread::sleep(Duration::from_millis(10));
    }
    let left = terminal.end();
    assert_eq!(left.code, Some(143), "{left:?}");
    assert_eq!(place.listed()[0]["state"], "interrupted");
    assert!(fs::metadata(place.runs().join("chat-history")).is_ok());
}

#[test]
fn a_recalled_line_does_not_control_the_terminal() {
    let place = Place::new();
    let model = Model::start(vec![says("It is done.")], None);
    assert_eq!(place.run(&model, &["run", "go"]).code, Some(0));
    let lines = "\"one\\ntwo \\u001b[31mred\\u009b2J\"\n";
    let mut history = fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(history.write(true).create_new(true), 0o600);
    std::io::Write::write_all(&mut history.open(place.runs().join("chat-history")).unwrap(), lines.as_bytes()).unwrap();
    let mut terminal = chat(&place, &model, &[]);
    terminal.until("> ");
    terminal.types("\u{1b}[A");
    terminal.until("one↵two \\u{1b}[31mred\\u{9b}2J");
    terminal.types("\r");
    terminal.until("It is done.");
    terminal.types("/quit\r");
    let left = terminal.end();
    assert!(!left.terminal.contains("\u{1b}[31m") && !left.terminal.contains('\u{9b}'), "{left:?}");
    assert_eq!(model.last_messages()[0]["content"], "one\ntwo \u{1b}[31mred\u{9b}2J", "the text itself stays");
}

#[test]
fn pasted_lines_are_one_message() {
    let place = Place::new();
    let model = Model::start(vec![says("It is done.")], None);
    let mut terminal = chat(&place, &model, &[]);
    terminal.until("\u{1b}[?2004h");
    terminal.until("> ");
    terminal.types("see \u{1b}[200~one\rtwo\r\r\tthree\u{1b}[A\u{1b}[201~!");
    terminal.until("see one↵two↵↵");
    terminal.until("!");
    assert!(model.bodies().is_empty(), "nothing is sent before Enter");
    terminal.types("\r");
    terminal.until("It is done.");
    assert_eq!(model.last_messages()[0]["content"], "see one\ntwo\n\n\tthree!");
    terminal.until("> ");
    // More than a line may hold: nothing of it is taken, and what was typed stays.
    terminal.types("ab");
    let pasted = format!("\u{1b}[200~{}\u{1b}[201~", "paste ".repeat(11_000));
    pasted.as_bytes().chunks(1000).for_each(|part| terminal.types(std::str::from_utf8(part).unwrap()));
    terminal.until("the pasted text is longer than the 65536 characters allowed in a message");
    terminal.types("c\r");
    terminal.until("It is done.");
    assert_eq!(model.last_messages()[2]["content"], "abc");
    terminal.types("/quit\r");
    let left = terminal.end();
    assert!(left.code == Some(0) && left.terminal.contains("\u{1b}[?2004l"), "{left:?}");
}

#[test]
fn a_line_of_standard_input_has_a_limit_with_the_lines_that_it_continues() {
    let page = Page::new();
    let place = Place::new();
    let model = Model::start(vec![says("yes")], None);
    let line = "x".repeat(700_000);
    for input in [format!("{line}{line}\n"), format!("{line}\\\n{line}\n")] {
        // The chat may end before it has read everything.
        page.show(&Ran::with_input(&mut place.command(&model, &["chat", "--quiet"]), input));
    }
    assert!(model.bodies().is_empty());
    page.matches("chat/too-long");
}

#[test]
fn plain_output_has_words_in_place_of_arrows_and_colors_and_says_what_it_waits_for() {
    let page = Page::new();
    let place = Place::new();
    let model = Model::start(vec![calls("I look.", "mark", &["a"]), says("It is done.")], None);
    let inner = place.command(&model, &["run", "go", "--plain"]);
    let mut command = Command::new("env");
    command.args(["-u", "NO_COLOR"]).arg(inner.get_program()).args(inner.get_args());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(inner.get_current_dir().unwrap()).env("TERM", "xterm");
    let left = Terminal::start(command).end();
    assert_eq!(left.code, Some(0), "{left:?}");
    page.text("standard output", &left.stdout);
    page.text("terminal", &left.terminal);
    assert!(!left.terminal.contains(['\u{1b}', '→', '←']), "{left:?}");
    page.matches("chat/plain");
}
