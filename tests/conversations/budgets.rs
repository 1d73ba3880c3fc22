//! Budgets of a run: at each of them it stops, is kept, and goes on with another one.

use serde_json::{Value, json};

use super::model::{Counted, Model, Turn};
use super::place::*;
use crate::crib::{Ran, guest};
use crate::screen::Page;

fn turns() -> Vec<Turn> {
    vec![calls("First.", "note", &["a", "b"]), calls("Then.", "note", &["c"]), says("It is done.")]
}

/// Last event of a run.
fn end(ran: &Ran) -> Value {
    let last = ran.stdout.lines().last().unwrap_or_else(|| panic!("{ran:?}"));
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn a_run_stops_at_each_budget_with_its_own_code_and_can_be_resumed() {
    for (flags, budget, words, made) in [
        (&["--max-steps", "1"][..], "steps", "stopped after 1 step without a final answer", 2),
        (&["--max-tokens", "15"], "tokens", "the budget of 15 tokens is used up", 2),
        (&["--set", "budgets.calls=2"], "calls", "the budget of 2 calls is used up", 2),
        (&["--set", "budgets.calls=1"], "calls", "the budget of 1 call is used up", 0),
        (&["--set", "budgets.calls=0"], "calls", "the budget of 0 calls is used up", 0),
        (&["--set", "budgets.cpu=0.01ms"], "processor_time", "of processor time is used up", 2),
        (&["--set", "budgets.bytes=10"], "bytes", "the budget of 10 bytes is used up", 2),
        (&["--max-cost", "0.00001", "--set", "budgets.price=1/2"], "cost", "of money is used up", 2),
    ] {
        let place = Place::new();
        let model = Model::start(turns(), None);
        let ran = place.run(&model, &[&["run", "go", "--json"], flags].concat());
        assert_eq!(ran.code, Some(4), "{flags:?}: {ran:?}");
        let (last, id) = (end(&ran), place.id());
        assert_eq!(
            (&last["type"], &last["budget"], &last["exitCode"]),
            (&json!("end"), &json!(budget), &json!(4)),
            "{last}"
        );
        assert_eq!(last["run"], json!(id), "{last}");
        assert!(ran.stderr.contains(words), "{flags:?}: {ran:?}");
        assert!(ran.stderr.contains(&format!("`toolcrib run --resume {id}`")), "{ran:?}");
        assert_eq!(place.made().len(), made, "{flags:?}: {:?}", place.made());
        let resumed = place.run(&model, &["run", "--resume", &id]);
        assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "It is done.\n"), "{flags:?}: {resumed:?}");
        assert_eq!(place.made().len(), 3, "each call once: {:?}", place.made());
        let messages = place.messages(&id);
        assert_whole(&messages);
        assert!(["a", "b", "c"].iter().all(|call| result_of(&messages, call) == "{}"), "{messages:#?}");
    }
}

#[test]
fn a_budget_that_suffices_changes_nothing() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    let flags = [
        "--max-steps=3",
        "--max-tokens=45",
        "--set=budgets.calls=3",
        "--set=budgets.cpu=10m",
        "--set=budgets.bytes=1MiB",
        "--max-cost=1",
        "--set=budgets.price=1/2",
    ];
    let ran = place.run(&model, &[&["run", "go", "--json"], &flags[..]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let cost = end(&ran)["cost"].as_f64().expect("a cost");
    assert!((cost - 3.0 * (10.0 + 2.0 * 5.0) / 1e6).abs() < 1e-12, "{cost}");
}

#[test]
fn money_needs_a_price() {
    let page = Page::new();
    let place = Place::new();
    let model = Model::start(turns(), None);
    page.command(&mut place.command(&model, &["run", "go", "--max-cost", "1"]));
    assert!(
        end(&place.run(&model, &["run", "go", "--json"])).get("cost").is_none(),
        "without a price no money is stated"
    );
    let ran = Ran::from(place.command(&model, &["run", "go", "--json"]).env("TOOLCRIB_PRICE", "1/2").output().unwrap());
    assert!(end(&ran)["cost"].is_number(), "{ran:?}");
    page.matches("run/price");
}

/// Place with a tool that asks the model three times, and the turns of a model that calls it.
fn asking() -> (Place, Vec<Turn>) {
    let place = Place::new();
    place.crib.install(&guest("rich"), "rich");
    let asks = ("asks", "a", json!({ "prompt": "how?", "times": 3 }));
    (place, vec![Turn { parts: vec!["I ask."], calls: vec![asks] }, says("It is done.")])
}

const ASKING: [&str; 6] = ["run", "go", "--json", "--allow-model", "--tools", "tools/bin/rich.wasm"];

#[test]
fn a_tool_asks_the_model_no_more_once_a_budget_is_used_up() {
    let (place, turns) = asking();
    let model = Model::start(turns, None);
    let ran = place.run(&model, &[&ASKING[..], &["--max-tokens", "40"]].concat());
    assert_eq!((ran.code, &end(&ran)["budget"]), (Some(4), &json!("tokens")), "{ran:?}");
    assert_eq!(model.bodies().len(), 3, "45 tokens are used after the second question of the tool: {ran:?}");
    let result = result_of(&place.messages(&place.id()), "a");
    assert!(result.contains("the budget of 40 tokens is used up"), "{result}");
}

#[test]
fn an_answer_whose_tokens_are_not_counted_is_the_last_one_within_a_budget_of_tokens() {
    let words = "the server does not count tokens";
    let (place, turns) = asking();
    let model = Model::counting(turns, None, Counted::WithTools);
    let ran = place.run(&model, &[&ASKING[..], &["--max-tokens", "400"]].concat());
    assert!(ran.code == Some(1) && ran.stderr.contains(words), "{ran:?}");
    assert_eq!(model.bodies().len(), 2, "one question of the tool: {ran:?}");
    assert!(result_of(&place.messages(&place.id()), "a").contains(words), "{ran:?}");
    assert_eq!(place.run(&model, &ASKING).code, Some(0), "without such a budget nothing is missing");

    let place = Place::new();
    let model = Model::counting(vec![says("yes")], None, Counted::None);
    let mut child = place.start(&model, &["chat", "--quiet", "--max-tokens", "400"]);
    std::io::Write::write_all(&mut child.stdin.take().expect("standard input"), b"one\ntwo\n").unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert_eq!((ran.stdout.as_str(), model.bodies().len()), ("yes\n", 1), "{ran:?}");
    assert!(ran.stderr.contains(words), "{ran:?}");
}

#[test]
fn calls_that_an_error_prevents_stay_answered_or_pending() {
    let place = Place::new();
    let model = Model::counting(turns(), None, Counted::None);
    let ran = place.run(&model, &["run", "go", "--max-tokens", "400", "--save-messages", "talk.json"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("does not count tokens"), "{ran:?}");
    assert!(place.made().is_empty());
    let saved = std::fs::read_to_string(place.path("talk.json")).unwrap();
    assert_whole(&serde_json::from_str::<Vec<Value>>(&saved).unwrap());
    let loaded = place.run(&model, &["run", "and now?", "--load-messages", "talk.json", "--no-keep"]);
    assert_eq!(loaded.code, Some(0), "{loaded:?}");
    let resumed = place.run(&model, &["run", "--resume", &place.id()]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "It is done.\n"), "{resumed:?}");
    assert_whole(&place.messages(&place.id()));
}

#[cfg(target_os = "linux")]
mod at_a_terminal {
    use super::*;
    use crate::permissions::terminal::Terminal;

    #[test]
    fn a_person_is_asked_to_go_on_at_a_budget() {
        let place = Place::new();
        let model = Model::start(turns(), None);
        let mut terminal = Terminal::start(place.command(&model, &["run", "go", "--set", "budgets.calls=2"]));
        terminal.until("the budget of 2 calls is used up.");
        let question = "Raise the budget by 2 calls and continue? [y]es, or [N]o? ";
        terminal.until(question);
        terminal.types("maybe\n");
        terminal.until("Not understood: press one of the letters in brackets.");
        terminal.until(question);
        terminal.types("y");
        let left = terminal.end();
        assert_eq!((left.code, left.stdout.as_str()), (Some(0), "It is done.\n"), "{left:?}");
        assert_eq!(place.made().len(), 3);
    }

    #[test]
    fn a_person_who_stops_at_a_budget_is_told_how_to_go_on() {
        let place = Place::new();
        let model = Model::start(turns(), None);
        let mut terminal = Terminal::start(place.command(&model, &["run", "go", "--max-steps", "1"]));
        terminal.until("Raise the budget by 1 step and continue? [y]es, or [N]o? ");
        terminal.types("n");
        let left = terminal.end();
        assert_eq!(left.code, Some(4), "{left:?}");
        assert!(
            left.terminal.contains(&format!("run saved; continue: `toolcrib run --resume {}`", place.id())),
            "{left:?}"
        );
    }

    #[test]
    fn an_interrupted_answer_keeps_its_text() {
        use crate::conversations::model::Pause;
        let place = Place::new();
        let turn = Turn { parts: vec!["Half of ", "an answer"], calls: Vec::new() };
        let model = Model::start(vec![turn], Some(Pause::AfterText(0)));
        let mut command = place.command(&model, &["run", "go", "--stream"]);
        command.stdin(std::process::Stdio::null());
        let mut terminal = Terminal::start_whole(command);
        terminal.until("an answer");
        model.until_paused();
        terminal.types("\u{3}");
        let left = terminal.end();
        assert_eq!(left.code, Some(130), "{left:?}");
        let id = place.id();
        assert!(left.terminal.contains(&format!("`toolcrib run --resume {id}`")), "{left:?}");
        let messages = place.messages(&id);
        assert_eq!(messages[1]["content"], "Half of an answer\n[The answer was interrupted here.]", "{messages:#?}");
        assert_eq!(place.run(&model, &["run", "--resume", &id]).code, Some(0));
        assert_eq!(place.messages(&id)[2], json!({ "role": "user", "content": "Go on." }));
    }
}
