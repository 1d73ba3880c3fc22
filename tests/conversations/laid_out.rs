//! Answers at a terminal: Markdown is laid out for its width, also while it arrives, and a pipe gets it as it is.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::model::{Model, Pause, Turn};
use super::place::*;
use crate::permissions::terminal::Terminal;
use crate::screen::Page;

const ANSWER: &str = "# Two jobs\n\nOnly **two** of the jobs can start now, since `fs_read_lines` shows that the others wait \
for them:\n\n1. Paint the desk, as [the plan](https://plan.example/desk \"Plan\") says\n   - first the legs\n   - then the top\n2. \
Order wood\n\n> Note: the wood is *late*.\n\n| Job | State | Hours |\n|:--|:-:|--:|\n| Paint the desk and its four legs | ready | 4 \
|\n| Order wood | ready, as soon as the shop opens | 12 |\n\n```sh\nls   desk\n```\n\n---\n\nESC: \u{1b}[2J&#27;[31m <b>end</b>\n";

/// Returns the lines of the answer at a terminal.
fn answer_at(place: &Place, columns: &str, args: &[&str]) -> String {
    let mut command = place.crib.toolcrib(&[&["run", "--script=script.json", "--quiet"], args].concat());
    command.env("TERM", "xterm").env("COLUMNS", columns);
    let left = Terminal::start_whole(command).end();
    assert_eq!(left.code, Some(0), "{left:?}");
    left.terminal
}

fn scripted() -> Place {
    let place = Place::new();
    let script = json!({ "prompt": "which jobs?", "turns": [{ "content": ANSWER }] });
    fs::write(place.path("script.json"), script.to_string()).unwrap();
    place
}

/// Returns what a terminal shows after the lines that were erased.
fn without_previews(shown: &str) -> String {
    let erased = regex::Regex::new(r"\r?[^\n]*\u{1b}\[2K|\r\u{1b}\[2K|\u{1b}\[\d*A").unwrap();
    erased.replace_all(shown, "").replace('\r', "")
}

#[test]
fn an_answer_is_laid_out_for_every_width() {
    let page = Page::new();
    let place = scripted();
    for columns in ["40", "80", "200"] {
        let lines = answer_at(&place, columns, &["--set=display.stream=false"]);
        let most: usize = columns.parse().unwrap();
        assert!(lines.lines().all(|line| line.chars().count() <= most), "{lines}");
        assert!(!lines.contains('\u{1b}'), "no sequence of the model: {lines:?}");
        page.text(&format!("{columns} columns"), lines.replace('\r', ""));
    }
    page.matches("chat/laid-out");
}

#[test]
fn a_text_that_streams_is_laid_out_as_the_whole_one() {
    let place = scripted();
    let whole = answer_at(&place, "80", &["--set=display.stream=false"]).replace('\r', "");
    let streamed = without_previews(&answer_at(&place, "80", &[]));
    assert_eq!(streamed, whole);
}

#[test]
fn a_pipe_and_plain_lines_get_the_text_as_it_is() {
    let place = scripted();
    let text = ANSWER.replace('\u{1b}', "\\u{1b}");
    assert_eq!(answer_at(&place, "80", &["--plain"]).replace('\r', ""), text);
    let ran = place.crib.run(&["run", "--script=script.json", "--quiet"]);
    assert_eq!(ran.stdout, text, "{ran:?}");
}

#[test]
fn colors_are_used_only_where_they_are_wanted() {
    let place = scripted();
    let lines = answer_at(&place, "80", &["--set=display.stream=false", "--color=always"]);
    assert!(
        lines.contains("\u{1b}[1mTwo jobs\u{1b}[0m") && lines.contains("\u{1b}[36mfs_read_lines\u{1b}[0m"),
        "{lines:?}"
    );
    assert!(lines.contains(r"ESC: \u{1b}[2J\u{1b}[31m"), "the model sends nothing: {lines:?}");
    assert!(
        answer_at(&place, "80", &["--set=display.stream=false"]).contains("# Two jobs"),
        "marks stay without colors"
    );
}

#[test]
fn a_block_that_breaks_off_is_shown() {
    let place = Place::new();
    let turn = Turn { parts: vec!["# Title\n\nHalf of **an", " answer"], calls: Vec::new() };
    let model = Model::start(vec![turn], Some(Pause::AfterText(0)));
    let mut command: Command = place.command(&model, &["run", "go"]);
    command.env("TERM", "xterm");
    let mut terminal = Terminal::start_whole(command);
    terminal.until("# Title");
    terminal.until("Half of **an answer");
    model.until_paused();
    terminal.types("\u{3}");
    let left = terminal.end();
    let shown = without_previews(&left.terminal);
    assert!(shown.contains("\n\nHalf of **an answer\n"), "{left:?}");
    assert_ne!(left.code, Some(0));
}
