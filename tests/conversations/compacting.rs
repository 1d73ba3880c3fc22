//! Long conversations: the context is counted and warned of, and a summary of the model replaces its older part. The model of
//! these tests knows nothing but the request that it gets.

use std::io::Write;
use std::process::{Child, Output};

use serde_json::{Value, json};

use super::model::Model;
use super::place::*;

/// Turns of the long conversation, and facts that are stated in its turns from this one on.
const TURNS: usize = 1000;
const FACTS: usize = 50;
const FIRST_FACT: usize = 5;
/// Turn of the first question about a fact.
const FIRST_QUESTION: usize = 941;

fn text_of(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// Facts in a text, such as `FACT-7=blue7`, each once.
fn facts(text: &str) -> Vec<String> {
    let pattern = regex::Regex::new(r"FACT-\d+=\w+").unwrap();
    let mut found: Vec<String> = pattern.find_iter(text).map(|fact| fact.as_str().to_owned()).collect();
    found.sort();
    found.dedup();
    found
}

fn is_compaction(body: &Value) -> bool {
    text_of(&body["messages"][0]).starts_with("You compact a conversation")
}

/// All texts of a request.
fn texts(body: &Value) -> String {
    let messages = body["messages"].as_array().expect("messages");
    messages.iter().map(text_of).collect::<Vec<_>>().join("\n")
}

/// Answers as a model with this memory alone: it sums up the facts of the older part, and answers questions about facts.
fn remembers(body: &Value) -> (String, Value) {
    let known = facts(&texts(body));
    let asked = text_of(body["messages"].as_array().unwrap().last().unwrap());
    let answer = match (is_compaction(body), asked.rsplit_once("what is FACT-")) {
        (true, _) => format!("## Facts\n{}", known.join("\n")),
        (false, Some((_, number))) => {
            let name = format!("FACT-{}=", number.trim_end_matches('?'));
            known.into_iter().find(|fact| fact.starts_with(&name)).unwrap_or_else(|| "unknown".to_owned())
        }
        (false, None) => "I see.".to_owned(),
    };
    let tokens = body["messages"].to_string().len() / 4;
    (answer, json!({ "prompt_tokens": tokens, "completion_tokens": 5, "total_tokens": tokens + 5 }))
}

fn type_lines(mut child: Child, lines: &str) -> Output {
    let mut input = child.stdin.take().unwrap();
    let lines = lines.to_owned();
    let writer = std::thread::spawn(move || {
        // The program may end before it has read everything.
        let _ = input.write_all(lines.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn facts_of_the_first_turns_are_known_after_a_thousand_turns_and_three_compactions() {
    let (place, model) = (Place::new(), Model::answering(remembers));
    let line = |turn: usize| match (turn.checked_sub(FIRST_FACT), turn.checked_sub(FIRST_QUESTION)) {
        (Some(fact), _) if fact < FACTS => format!("Turn {turn}: remember FACT-{fact}=value{fact}, please.\n"),
        (_, Some(question)) if question < FACTS => format!("Turn {turn}: what is FACT-{question}?\n"),
        _ => format!("Turn {turn}: {}\n", "nothing of interest happens here. ".repeat(4)),
    };
    let lines: String = (1..=TURNS).map(line).collect();
    let child = place.start(&model, &["chat", "--quiet", "--set=model.context_window=20000"]);
    let output = type_lines(child, &lines);
    assert!(output.status.success(), "{}", stderr(&output));
    let bodies = model.bodies();
    let compactions = bodies.iter().filter(|body| is_compaction(body)).count();
    assert_eq!((compactions, bodies.len()), (3, TURNS + 3));
    // Each question was asked with its fact in the messages of the request, and answered from there.
    let mut known = 0;
    for body in &bodies {
        let asked = text_of(body["messages"].as_array().unwrap().last().unwrap());
        let Some((_, number)) = asked.rsplit_once("what is FACT-") else { continue };
        let number = number.trim_end_matches('?');
        let fact = format!("FACT-{number}=value{number}");
        known += usize::from(facts(&texts(body)).contains(&fact));
        assert!(!asked.contains(&fact), "the question does not state it");
    }
    assert_eq!(known, FACTS);
    let answers = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!((0..FACTS).all(|fact| answers.lines().any(|line| line == format!("FACT-{fact}=value{fact}"))), "{answers}");
    // No request is larger than the window, and the first messages are gone from the last one.
    assert!(bodies.iter().all(|body| body["messages"].to_string().len() / 4 < 20_000));
    assert!(!texts(bodies.last().unwrap()).contains("Turn 5:"));
    // The run has every message, and goes on from the summary.
    let id = place.id();
    assert_eq!(place.messages(&id).len(), 2 * TURNS);
    let before = model.bodies().len();
    let ran = place.run(&model, &["run", "what is FACT-0?", "--resume", &id, "--quiet"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "FACT-0=value0\n"), "{ran:?}");
    let resumed = &model.bodies()[before];
    assert!(resumed["messages"].as_array().unwrap().len() < 900, "the summary replaces the older part");
    let shown = place.crib.run(&["runs", "show", "last"]);
    assert_eq!(shown.stdout.matches("summary that replaces the messages above for the model: ## Facts").count(), 1);
    // So does a copy of it.
    let ran = place.run(&model, &["run", "what is FACT-49?", "--fork", &id, "--quiet"]);
    assert_eq!(ran.stdout, "FACT-49=value49\n", "{ran:?}");
    assert!(model.bodies().last().unwrap()["messages"].as_array().unwrap().len() < 900);
}

#[test]
fn a_context_that_fills_is_warned_of_once_and_compacted_by_command() {
    let (place, model) = (Place::new(), Model::answering(remembers));
    let long = "x".repeat(2000);
    let lines = format!(
        "FACT-1=a {long}\n{long}\n/cost\n{long}\n{long}\n/compact\n/cost\nwhat is FACT-1?\n/undo\n/undo\n/undo\n/undo\n/undo\nand?\n"
    );
    let args = ["chat", "--set=model.context_window=2500", "--set=model.compact_at=0"];
    let output = type_lines(place.start(&model, &args), &lines);
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    assert_eq!(told.matches("warning: the context of the model fills: ").count(), 1, "{told}");
    assert!(told.contains("; `/compact` makes room"), "{told}");
    let compacted =
        regex::Regex::new(r"compacted: a summary replaces \d+ messages; context \d+ → about \d+ tokens").unwrap();
    assert_eq!(compacted.find_iter(&told).count(), 1, "{told}");
    assert!(told.contains(" of 2500 tokens (") && told.contains("estimated from its size"), "{told}");
    let bodies = model.bodies();
    assert_eq!(bodies.iter().filter(|body| is_compaction(body)).count(), 1, "only by command");
    assert!(String::from_utf8_lossy(&output.stdout).contains("FACT-1=a\n"));
    // With the messages that it is about, the summary is taken back.
    let last = bodies.last().unwrap();
    assert_eq!(
        last["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "user").count(),
        1,
        "{last}"
    );
    assert_eq!(place.messages(&place.id()).len(), 2);
}

#[test]
fn a_summary_that_is_none_leaves_the_conversation_as_it_was() {
    let long = "x".repeat(2000);
    for (summary, wanted) in [
        ("", "the model returned no summary"),
        (&*"y".repeat(20_000), "the summary is not shorter than what it would replace"),
    ] {
        let summary = summary.to_owned();
        let model = Model::answering(move |body| {
            let answer = if is_compaction(body) { summary.clone() } else { "I see.".to_owned() };
            (answer, Value::Null)
        });
        let place = Place::new();
        let args = ["chat", "--quiet", "--set=model.context_window=2500"];
        let output =
            type_lines(place.start(&model, &args), &format!("{long}\n{long}\n{long}\n{long}\n{long}\n{long}\n"));
        let told = stderr(&output);
        assert!(output.status.success(), "{told}");
        let warning = format!("warning: the conversation is not compacted: {wanted}");
        assert_eq!(told.matches(&warning).count(), 1, "it is tried once: {told}");
        assert_eq!(model.last_messages().len(), 11, "every message is sent");
    }
}

#[test]
fn a_chat_shows_and_switches_its_model_and_counts_the_context() {
    let (place, model) = (Place::new(), Model::answering(|body| (format!("I am {}.", body["model"]), Value::Null)));
    let lines = "/cost\nwho?\n/model\n/model other/2\nwho?\n/model a b\n/compact\n/cost\n";
    let output = type_lines(place.start(&model, &["chat"]), lines);
    let told = stderr(&output);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "I am \"m\".\nI am \"other/2\".\n", "{told}");
    for wanted in [
        "model m; `/model NAME` continues with another one",
        "continuing with other/2; price and context window are still those in the settings",
        "a name of a model is one word",
        "error: cannot compact the conversation",
        "cause: the summary is not shorter than what it would replace",
        "tokens, estimated from its size; `model.context_window` is not set",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    let models: Vec<Value> = model.bodies().iter().map(|body| body["model"].clone()).collect();
    assert_eq!(models, [json!("m"), json!("other/2"), json!("other/2")]);
    // The run continues with the model that it had last.
    let mut command = place.crib.toolcrib(&["run", "who?", "-c", "--quiet"]);
    let ran = crate::crib::Ran::of(command.stdin(std::process::Stdio::null()));
    assert_eq!(ran.stdout, "I am \"other/2\".\n", "{ran:?}");
}
