//! Approvals by a program: `run --json --answers` asks with events on standard output and reads answers on standard input.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

/// Maximum wait for an event: tests share the machine.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A run, and the program that reads its events and answers.
struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    arriving: Receiver<Value>,
    events: Vec<Value>,
}

impl Program {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (arrived, arriving) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if arrived.send(event).is_err() {
                    break;
                }
            }
        });
        Self { child, stdin, arriving, events: Vec::new() }
    }

    /// Waits for the next event of a type.
    fn next(&mut self, kind: &str) -> Value {
        loop {
            let event = self.arriving.recv_timeout(MAX_WAIT);
            let event = event.unwrap_or_else(|_| panic!("no `{kind}` after {:?}", self.events));
            self.events.push(event.clone());
            if event["type"] == kind {
                return event;
            }
        }
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).unwrap();
    }

    fn answer(&mut self, question: &Value, answer: &str) {
        self.write(&json!({"type": "permission_answer", "id": question["id"], "answer": answer}).to_string());
    }

    /// Ends the input, and waits for the end of the run; returns its exit code and the results of its calls.
    fn end(mut self) -> (Option<i32>, Vec<Value>) {
        self.stdin = None;
        self.next("end");
        let code = self.child.wait().unwrap().code();
        let results = self.events.iter().filter(|event| event["type"] == "tool_result");
        (code, results.cloned().collect())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A test that panicked leaves no program behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Run with a model that makes these calls of `echo`, one number per step.
fn run(crib: &Crib, steps: &[usize]) -> Program {
    let call = |n: usize| json!({"name": "echo", "arguments": {"n": n}});
    let mut turns: Vec<_> =
        steps.iter().map(|calls| json!({"tool_calls": (0..*calls).map(call).collect::<Vec<_>>()})).collect();
    turns.push(json!({"content": "done"}));
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    Program::start(crib.toolcrib(&["run", "--script", "script.json", "--json", "--answers", "--ask-tool=echo"]))
}

/// Reason of the decision about a call.
fn reason(result: &Value) -> &str {
    result["receipt"]["decision"]["reason"].as_str().unwrap_or("none")
}

#[test]
fn a_question_has_the_lines_that_the_call_would_change() {
    let crib = Crib::new();
    fs::write(crib.path("work/a.md"), "one\ntwo\n").unwrap();
    let call = |name: &str, content: &str| json!({"name": name, "arguments": {"path": "a.md", "content": content}});
    let calls = [call("fs_write_file", "one\nthree\n"), call("fs_append_file", "four\n")];
    let script = json!({"prompt": "go", "turns": [{"tool_calls": calls}, {"content": "done"}]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let mut program = Program::start(crib.toolcrib(&[
        "run",
        "--script=script.json",
        "--json",
        "--answers",
        "--tools=builtin",
        "--allow-write=work",
        "--ask-tool=fs_*",
    ]));
    let written = program.next("permission_asked");
    assert_eq!(written["changes"], "a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+three");
    program.answer(&written, "once");
    let appended = program.next("permission_asked");
    assert_eq!((&appended["name"], appended.get("changes")), (&json!("fs_append_file"), None));
    program.answer(&appended, "once");
    assert_eq!(program.end().0, Some(0));
    assert_eq!(fs::read_to_string(crib.path("work/a.md")).unwrap(), "one\nthree\nfour\n");
}

#[test]
fn a_program_approves_and_refuses_the_calls_of_a_step_in_their_order() {
    let crib = Crib::with_guests(&["echo"]);
    let mut program = run(&crib, &[3]);
    let calls: Vec<Value> = (0..3).map(|_| program.next("tool_call")["id"].clone()).collect();
    let first = program.next("permission_asked");
    for (member, value) in [
        ("version", json!(1)),
        ("id", json!("q1")),
        ("callId", calls[0].clone()),
        ("name", json!("echo")),
        ("arguments", json!("{\"n\":0}")),
        ("granted", json!([])),
        ("restsOn", json!("ask echo (--ask-tool)")),
        ("answers", json!(["once", "session", "always", "no"])),
    ] {
        assert_eq!(first[member], value, "{member}: {first}");
    }
    assert!(first["source"].as_str().unwrap().contains("tools.json"), "{first}");
    assert!(first["properties"].as_str().unwrap().contains("not destructive"), "{first}");
    program.answer(&first, "once");
    let second = program.next("permission_asked");
    assert_eq!((&second["id"], &second["callId"]), (&json!("q2"), &calls[1]));
    program.write(r#"{"type": "permission_answer", "id": "q2", "answer": "no", "reason": "use\n the\u001b other"}"#);
    let third = program.next("permission_asked");
    assert_eq!(third["callId"], calls[2]);
    program.answer(&third, "no");
    let (code, results) = program.end();
    assert_eq!(code, Some(0));
    assert_eq!(results.iter().map(reason).collect::<Vec<_>>(), ["once", "refused", "refused"]);
    assert_eq!(results[0]["receipt"]["invocation"], first["invocation"]);
    let refused: Value = serde_json::from_str(results[1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(refused["error"], "the user denied this call: use the other");
}

#[test]
fn lines_that_answer_nothing_are_rejected_with_their_number() {
    let crib = Crib::with_guests(&["echo"]);
    let mut program = run(&crib, &[2]);
    let first = program.next("permission_asked");
    let too_long = "x".repeat(70_000);
    let answer = |id: &str, word: &str| json!({"type": "permission_answer", "id": id, "answer": word}).to_string();
    for (number, (line, id, message)) in [
        ("yes", json!(null), "not an answer: "),
        (too_long.as_str(), json!(null), "longer than the 65536 bytes allowed"),
        (answer("q2", "once").as_str(), json!("q2"), "`q2` was not asked"),
        (answer("q1", "yes").as_str(), json!("q1"), "not an answer: unknown variant `yes`"),
    ]
    .into_iter()
    .enumerate()
    {
        program.write(line);
        let rejected = program.next("answer_rejected");
        assert_eq!((&rejected["version"], &rejected["line"]), (&json!(1), &json!(number + 1)), "{rejected}");
        assert_eq!(rejected["id"], id, "{rejected}");
        assert!(rejected["message"].as_str().unwrap().contains(message), "{message}: {rejected}");
    }
    program.answer(&first, "once");
    let second = program.next("permission_asked");
    program.answer(&first, "no");
    let rejected = program.next("answer_rejected");
    assert_eq!((&rejected["id"], &rejected["line"]), (&json!("q1"), &json!(6)), "{rejected}");
    assert!(rejected["message"].as_str().unwrap().contains("`q1` is closed"), "{rejected}");
    program.answer(&second, "once");
    let (code, results) = program.end();
    assert_eq!((code, results.iter().map(reason).collect::<Vec<_>>()), (Some(0), vec!["once"; 2]));
}

#[test]
fn at_the_end_of_the_input_nobody_answers() {
    let crib = Crib::with_guests(&["echo"]);
    let mut program = run(&crib, &[1, 1]);
    program.next("permission_asked");
    let (code, results) = program.end();
    assert_eq!((code, results.iter().map(reason).collect::<Vec<_>>()), (Some(0), vec!["nobody"; 2]));
}

#[test]
fn an_answer_for_the_session_or_for_always_covers_further_calls() {
    let crib = Crib::with_guests(&["echo"]);
    let mut program = run(&crib, &[2, 1]);
    let question = program.next("permission_asked");
    program.answer(&question, "session");
    let (_, results) = program.end();
    assert_eq!(results.iter().map(reason).collect::<Vec<_>>(), ["session"; 3]);
    assert!(!crib.path("approvals.json").exists());
    let mut program = run(&crib, &[1]);
    let question = program.next("permission_asked");
    program.answer(&question, "always");
    assert_eq!(program.end().1.iter().map(reason).collect::<Vec<_>>(), ["always"]);
    assert_eq!(run(&crib, &[1]).end().1.iter().map(reason).collect::<Vec<_>>(), ["always"], "without a question");
}

#[test]
fn standard_input_holds_either_answers_or_text() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let ran = crib.run(&["run", "-", "--json", "--answers", "--model", "m"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("standard input holds the answers (--answers)"), "{ran:?}");
    page.run(&crib, &["run", "go", "--answers", "--model", "m"]);
    page.matches("permissions/answers");
}
