//! `--continue` with the model and the permissions of the run: shown before they are used, and never without somebody who sees
//! them.

use std::fs;
use std::process::Command;

use super::model::Model;
use super::place::*;
use crate::crib::Ran;
use crate::permissions::terminal::Terminal;

/// Command with no other options than these.
fn bare(place: &Place, args: &[&str]) -> Command {
    let mut command = place.crib.toolcrib(args);
    command.env("TERM", "dumb").stdin(std::process::Stdio::null());
    command
}

fn model() -> Model {
    Model::start(vec![calls("One.", "mark", &["a"]), calls("Two.", "mark", &["b"]), says("It is done.")], None)
}

#[test]
fn the_model_and_the_permissions_come_along_and_are_shown_first() {
    let (place, model) = (Place::new(), model());
    let first = place.run(&model, &["run", "go", "--max-steps=1", "--deny-tool=note", "--allow-tool=mark"]);
    assert_eq!((first.code, place.made().len()), (Some(4), 1), "{first:?}");
    let mut terminal = Terminal::start(bare(&place, &["run", "-c"]));
    terminal.until(&format!("run {} continues with --model=m --base-url={}", place.id(), model.address));
    terminal.until("continues with its permissions: --allow-write=work --allow-tool=mark");
    terminal.until("--deny-tool=note");
    terminal.until("→ mark");
    let left = terminal.end();
    assert_eq!((left.code, place.made().len()), (Some(0), 2), "{left:?}");
    assert_eq!(left.stdout, "It is done.\n");
    // What was taken along is taken along again.
    let mut terminal = Terminal::start(bare(&place, &["run", "more", "--continue"]));
    terminal.until("continues with its permissions: --allow-write=work --allow-tool=mark");
    terminal.until("--deny-tool=note");
    assert_eq!(terminal.end().code, Some(0));
    assert_eq!(model.bodies().last().unwrap()["model"], "m");
}

#[test]
fn without_a_terminal_no_permission_comes_along() {
    let (place, model) = (Place::new(), model());
    assert_eq!(place.run(&model, &["run", "go", "--max-steps=1"]).code, Some(4));
    let ran = Ran::of(&mut bare(&place, &["run", "-c"]));
    assert_eq!((ran.code, place.made().len()), (Some(0), 1), "the call has no permission: {ran:?}");
    let hint =
        "hint: without a terminal, the permissions of the run are not taken along; repeat them: --allow-write=work";
    assert!(ran.stderr.contains(hint) && !ran.stderr.contains("continues with its permissions"), "{ran:?}");
    // A run that had none has none to take along.
    let ran = Ran::of(&mut bare(&place, &["run", "more", "-c"]));
    assert!(ran.code == Some(0) && !ran.stderr.contains("hint: without a terminal"), "{ran:?}");
}

#[test]
fn typed_permissions_take_the_place_of_all_of_the_run() {
    let (place, model) = (Place::new(), model());
    fs::create_dir_all(place.path("other")).unwrap();
    assert_eq!(place.run(&model, &["run", "go", "--max-steps=1"]).code, Some(4));
    for typed in ["--allow-read=other", "--set=deny.net=*"] {
        let left = Terminal::start(bare(&place, &["run", "more", "-c", typed])).end();
        assert!(left.code == Some(0) && !left.terminal.contains("with its permissions"), "{typed}: {left:?}");
    }
    assert_eq!(place.made().len(), 1);
}

#[test]
fn permissions_with_rules_of_elsewhere_do_not_come_along() {
    let (place, model) = (Place::new(), model());
    let ran = place.run(&model, &["run", "go", "--max-steps=1", "--set=permissions.deny=note"]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let left = Terminal::start(bare(&place, &["run", "-c"])).end();
    assert!(!left.terminal.contains("with its permissions"), "a denial would be lost: {left:?}");
    assert_eq!(place.made().len(), 1, "{left:?}");
}

#[test]
fn the_last_run_is_shown_with_the_tools_of_its_results() {
    let (place, model) = (Place::new(), model());
    assert_eq!(place.run(&model, &["run", "go"]).code, Some(0));
    let shown = place.crib.run(&["runs", "show", "last"]);
    assert!(shown.stdout.contains("\n  ← mark: {}\n") && shown.stdout.starts_with(&place.id()), "{shown:?}");
    let empty = Place::new();
    let none = empty.crib.run(&["runs", "show", "last"]);
    assert!(none.code == Some(1) && none.stderr.contains("no saved run for this directory"), "{none:?}");
}
