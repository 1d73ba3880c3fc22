//! A run that is killed or interrupted while calls wait, for a person or for the calls before them: none of these has begun,
//! and the resumed run makes each of them once.

use std::io::{BufRead, BufReader};
use std::process::Child;
#[cfg(target_os = "linux")]
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::{Model, Turn};
use super::place::*;
#[cfg(target_os = "linux")]
use crate::crib::Ran;

fn turns() -> Vec<Turn> {
    vec![calls("I write.", "mark", &["a", "b", "c"]), says("It is done.")]
}

/// Resumes the killed run, and checks that every call has been made once.
fn assert_goes_on(place: &Place, model: &Model, pending: &[&str]) {
    assert_goes_on_after("killed", place, model, pending);
}

fn assert_goes_on_after(state: &str, place: &Place, model: &Model, pending: &[&str]) {
    let id = place.id();
    let shown: Value = serde_json::from_str(&place.crib.run(&["runs", "show", &id, "--json"]).stdout).unwrap();
    assert_eq!((&shown["state"], &shown["pending"]), (&json!(state), &json!(pending)), "{shown}");
    assert_whole(&place.messages(&id));
    let resumed = place.run(model, &["run", "--resume", &id]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (Some(0), "It is done.\n"), "{resumed:?}");
    let (messages, made) = (place.messages(&id), place.made());
    assert_whole(&messages);
    assert_whole(&model.last_messages());
    for call in ["a", "b", "c"] {
        assert_eq!(result_of(&messages, call), "{}", "{messages:#?}");
        assert_eq!(made.iter().filter(|line| line.contains(&format!("\"{call}\""))).count(), 1, "{made:?}");
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn calls_behind_a_question_to_a_program_have_not_begun() {
    for (rule, pending) in [("mark", &["a", "b", "c"][..]), ("mark(n=b)", &["b", "c"]), ("mark(n=c)", &["c"])] {
        let place = Place::new();
        let model = Model::start(turns(), None);
        let ask = format!("--ask-tool={rule}");
        let mut child = place.start(&model, &["run", "go", "--json", "--answers", &ask]);
        // Open while the run reads answers from it.
        let _input = child.stdin.take();
        let output = child.stdout.take().expect("standard output");
        let (mut asked, mut ended) = (false, 0);
        let mut lines = BufReader::new(output).lines();
        while !asked || ended < 3 - pending.len() {
            let event: Value = serde_json::from_str(&lines.next().expect("an event").unwrap()).unwrap();
            asked |= event["type"] == "permission_asked";
            ended += usize::from(event["type"] == "tool_result");
        }
        kill(child);
        assert_goes_on(&place, &model, pending);
    }
}

#[cfg(unix)]
#[test]
fn an_interruption_leaves_the_calls_that_wait() {
    for (rule, pending) in [("mark", &["a", "b", "c"][..]), ("mark(n=b)", &["b", "c"])] {
        let place = Place::new();
        let model = Model::start(turns(), None);
        let mut child = place.start(&model, &["run", "go", "--json", "--answers", &format!("--ask-tool={rule}")]);
        let _input = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().expect("standard output")).lines();
        let mut next = || serde_json::from_str::<Value>(&lines.next()?.unwrap()).ok();
        let (mut asked, mut ended) = (false, 0);
        while !asked || ended < 3 - pending.len() {
            let event = next().expect("an event");
            asked |= event["type"] == "permission_asked";
            ended += usize::from(event["type"] == "tool_result");
        }
        let sent = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let events: Vec<_> = std::iter::from_fn(next).collect();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{events:?}");
        let stopped: Vec<_> = events.iter().filter(|event| event["type"] == "tool_result").collect();
        assert_eq!(stopped.len(), pending.len(), "{events:?}");
        assert!(stopped.iter().all(|event| event.to_string().contains("not made: interrupted")), "{events:?}");
        let end = events.last().expect("the end");
        assert_eq!((&end["calls"], &end["failedCalls"]), (&json!(3 - pending.len()), &json!(0)), "{end}");
        assert_goes_on_after("interrupted", &place, &model, pending);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn calls_behind_a_question_at_a_terminal_have_not_begun() {
    use crate::permissions::terminal::Terminal;
    let place = Place::new();
    let model = Model::start(turns(), None);
    let mut terminal = Terminal::start(place.command(&model, &["run", "go", "--ask-tool=mark"]));
    terminal.question();
    assert!(Command::new("kill").args(["-KILL", &terminal.process().to_string()]).status().unwrap().success());
    terminal.end();
    assert_goes_on(&place, &model, &["a", "b", "c"]);
}

#[test]
fn calls_that_wait_for_an_answer_in_another_terminal_have_not_begun() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    let mut child = place.start(&model, &["run", "go", "--ask-tool=mark", "--wait-approval=1h"]);
    drop(child.stdin.take());
    let started = Instant::now();
    loop {
        let listed = place.crib.run(&["approvals", "pending", "--json"]);
        if listed.stdout.contains("\"mark\"") {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "no call waits: {listed:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    kill(child);
    assert_goes_on(&place, &model, &["a", "b", "c"]);
}

#[test]
fn a_call_behind_one_that_runs_has_not_begun() {
    let place = Place::new();
    let turn = Turn {
        parts: vec!["I write."],
        calls: vec![("note", "a", json!({ "n": "a" })), ("mark", "b", json!({ "n": "b" }))],
    };
    let model = Model::start(vec![turn, says("It is done.")], None);
    let mut child = place.start(&model, &["run", "go", "--json"]);
    drop(child.stdin.take());
    let started = Instant::now();
    while place.made().is_empty() {
        assert!(started.elapsed() < Duration::from_secs(60), "no call begins");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(child);
    let made = place.made();
    let resumed = place.run(&model, &["run", "--continue"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(made[0].contains("\"a\"") && place.made().len() == 2, "each was made once: {made:?} {:?}", place.made());
    let messages = place.messages(&place.id());
    assert_whole(&messages);
    // A slow machine lets the first one end before the kill.
    let first = result_of(&messages, "a");
    assert!(first == "{}" || first.contains("may or may not have happened"), "{first}");
}

/// Bytes that a file may have under `ulimit -f BLOCKS`: the size of a block depends on the shell.
#[cfg(target_os = "linux")]
fn limited_to(blocks: &str) -> usize {
    let output =
        Command::new("sh").args(["-c", &format!("ulimit -f {blocks}; cat /proc/self/limits")]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("Max file size")).expect("a limit");
    line.split_whitespace().nth(3).expect("a number").parse().unwrap()
}

/// The file of the run can hold everything up to the beginning of the first call, and not that.
#[cfg(target_os = "linux")]
#[test]
fn a_call_of_which_the_beginning_cannot_be_kept_is_not_made() {
    let run = |place: &Place, model: &Model, prompt: &str, limit: &str| {
        let command = place.command(model, &["run", "-", "--json"]);
        let mut shell = Command::new("sh");
        let script = format!("{limit} exec \"$0\" \"$@\"");
        shell.arg("-c").arg(script).arg(command.get_program()).args(command.get_args());
        shell.current_dir(place.path(".")).env_clear();
        shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        std::fs::write(place.path("prompt.txt"), prompt).unwrap();
        shell.stdin(Stdio::from(std::fs::File::open(place.path("prompt.txt")).unwrap()));
        Ran::from(shell.output().unwrap())
    };
    let limit = limited_to("256");
    // Calls one after the other, and all at once.
    for at_once in [false, true] {
        let place = Place::new();
        let mut tools: Value = serde_json::from_slice(&std::fs::read(place.path("tools.json")).unwrap()).unwrap();
        tools["tools"][1]["interface"] = json!({ "is_concurrency_safe": at_once });
        place.crib.manifest(&tools);
        let model = Model::start(turns(), None);
        assert_eq!(run(&place, &model, &"x".repeat(50_000), "").code, Some(0));
        let file = place.file(&place.id());
        let before: usize =
            file.split_inclusive('\n').take_while(|line| !line.contains("\"begun\"")).map(str::len).sum();
        assert!(before < file.len() && before < limit, "{before} of {}", file.len());
        std::fs::remove_dir_all(place.runs()).unwrap();
        std::fs::remove_file(place.path("work/log.txt")).unwrap();
        // Half of the line that says that `a` begins: the time in the first line is not always equally long.
        let prompt = "x".repeat(50_000 + limit - before - 13);
        let ran = run(&place, &model, &prompt, "ulimit -f 256;");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("cannot keep the run in"), "{ran:?}");
        assert_eq!(place.made().len(), 0, "{ran:?}");
        let records = place.crib.records();
        let cancelled = records.iter().filter(|record| record["outcome"] == "cancelled").count();
        assert_eq!(cancelled, 3, "{records:?}");
        let resumed = place.run(&model, &["run", "--continue"]);
        assert_eq!((resumed.code, place.made().len()), (Some(0), 3), "{resumed:?}");
    }
}
