//! Agents that receive tasks from scripts and hooks in a run.

#[cfg(unix)]
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::process::{Command, Stdio};
#[cfg(unix)]
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::answering::{Answer, Server};
#[cfg(unix)]
use crate::crib::until_started;

const ALLOWED: &[&str] = &["--allow-delegate"];

/// Creates a crib in which `ask` delegates a task, `echo` repeats its task, and `spin` ends at its deadline.
fn crib() -> Crib {
    project(&[
        (
            ".harness/tools/ask.md",
            &tool(
                "return {\"said\": delegate(args[\"task\"], context=args.get(\"context\"), max_steps=args.get(\"max_steps\"))}",
            ),
        ),
        (".harness/tools/echo.md", &tool("return args[\"task\"]")),
        // A tool that can change nothing is stopped at the first interruption.
        (
            ".harness/tools/spin.md",
            &tool("for a in range(1000000000):\n    pass\nreturn 1").replace("script:", "capabilities: {}\nscript:"),
        ),
    ])
}

#[test]
fn a_task_is_worked_on_with_the_same_tools_and_its_answer_is_the_scripts() {
    let crib = crib();
    let script = json!({
        "prompt": "go",
        "turns": [calls("ask", json!({ "task": "find out" })), { "content": "the end" }],
        "agents": [{ "turns": [calls("echo", json!({ "task": "deep" })), { "content": "found" }] }],
    });
    let ran = play(&crib, &script, ALLOWED);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let events = events(&ran);
    let output: Vec<_> =
        events.iter().map(|event| (event["depth"].as_u64(), event["type"].as_str().unwrap())).collect();
    let below = Some(1);
    assert_eq!(
        output,
        [
            (None, "start"),
            (None, "tool_call"),
            (below, "start"),
            (below, "tool_call"),
            (below, "tool_result"),
            (below, "message"),
            (below, "end"),
            (None, "tool_result"),
            (None, "message"),
            (None, "end"),
        ]
    );
    assert!(events.iter().all(|event| event["depth"].is_null() == event["agent"].is_null()));
    assert_eq!((&events[2]["agent"], &events[2]["maxSteps"]), (&json!(1), &json!(8)));
    assert_eq!(events[7]["content"], "{\"said\":\"found\"}");
    let audited: Vec<Value> = crib.records();
    let tools: Vec<_> = audited.iter().map(|record| record["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["echo", "ask"], "both are signed for");
    assert_eq!(audited[0]["arguments"], json!({"json": {"task": "deep"}}));
    assert!(audited.iter().all(|record| record["run"] == audited[0]["run"] && record["door"] == "run"), "{audited:?}");
    assert_ne!(audited[0]["session"], audited[1]["session"], "an agent has a session of its own");

    // Each line names its agent for a person, and standard output holds only the run's answer.
    let ran = crib.run(&["run", "--script", "script.json", "--allow-delegate"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "the end\n"), "{ran:?}");
    for line in [
        "→ ask {",
        "│ → echo {\"task\":\"deep\"}",
        "│ ← ok ",
        "│ · found",
        "│ 2 steps · 1 call · ",
        "← ok ",
        "2 steps · 1 call · ",
    ] {
        assert!(ran.stderr.lines().any(|said| said.starts_with(line)), "{line}: {}", ran.stderr);
    }
}

#[test]
fn tasks_get_the_next_agents_of_the_script_and_their_own_steps() {
    let crib = crib();
    let again = calls("echo", json!({ "task": "again" }));
    let script = json!({
        "prompt": "go",
        "turns": [
            calls("ask", json!({ "task": "one" })),
            calls("ask", json!({ "task": "two", "max_steps": 2 })),
            calls("ask", json!({ "task": "three" })),
            calls("ask", json!({ "task": "four", "max_steps": 0 })),
            { "content": "the end" },
        ],
        "agents": [{ "turns": [{ "content": "first" }] }, { "turns": [again, again, { "content": "late" }] }],
    });
    let ran = play(&crib, &script, ALLOWED);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let own: Vec<Value> = results(&ran).into_iter().filter(|event| event["depth"].is_null()).collect();
    assert_eq!(own[0]["content"], "{\"said\":\"first\"}");
    for (result, why) in own[1..].iter().zip([
        "the agent did not answer within 2 steps",
        "the model script has no more `agents`",
        "`max_steps` must be a whole number from 1",
    ]) {
        assert!(result["isError"] == true && result["content"].as_str().unwrap().contains(why), "{why}: {result}");
    }
}

#[test]
fn agents_hand_on_three_deep_and_no_deeper() {
    let crib = crib();
    let on = || json!({ "turns": [calls("ask", json!({ "task": "on" })), { "content": "done" }] });
    let script = json!({ "prompt": "go", "turns": on()["turns"], "agents": [on(), on(), on(), on()] });
    let ran = play(&crib, &script, ALLOWED);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let depths: Vec<_> =
        events(&ran).iter().filter(|event| event["type"] == "start").map(|event| event["depth"].clone()).collect();
    assert_eq!(depths, [Value::Null, json!(1), json!(2), json!(3)]);
    let deepest = results(&ran).into_iter().find(|event| event["depth"] == 3).expect("a result");
    assert!(
        deepest["isError"] == true
            && deepest["content"].as_str().unwrap().contains("delegation is already 3 agents deep"),
        "{deepest}"
    );
}

#[test]
fn a_hook_hands_a_call_to_an_agent_whose_answer_takes_its_place() {
    let crib = crib();
    write(
        &crib,
        ".harness/hooks/instead.md",
        "---\nevent: tool.pre\nwhen: {tool: echo}\nscript: |\n  def handle(event, payload):\n      return {\"action\": \"delegate\", \"task\": \"instead of \" + payload[\"args\"][\"task\"]}\n---\n",
    );
    let script = json!({
        "prompt": "go",
        "turns": [calls("echo", json!({ "task": "this" })), { "content": "the end" }],
        "agents": [{ "turns": [{ "content": "that" }] }],
    });
    let ran = play(&crib, &script, ALLOWED);
    assert_eq!(results(&ran)[0]["content"], "\"that\"", "{ran:?}");
    let refused = play(&crib, &script, &[]);
    assert_eq!(results(&refused)[0]["receipt"]["outcome"], "denied", "{refused:?}");
}

#[test]
fn an_agent_is_asked_with_its_task_alone_and_a_script_is_told_nothing_of_the_server() {
    let message = |message: Value| Answer::new(200).json(json!({ "choices": [{ "message": message }] }));
    let ask = json!({ "tool_calls": [{ "id": "a", "function": { "name": "ask", "arguments": "{\"task\":\"find out\",\"context\":{\"where\":\"here\"}}" } }] });
    let answers = [
        message(ask.clone()),
        message(json!({ "content": "found" })),
        message(ask),
        Answer::new(403).text("your key is known"),
        message(json!({ "content": "the end" })),
    ];
    let server = Server::start().answers("/v1/chat/completions", answers);
    let crib = crib();
    let uri = format!("{}/v1", server.uri());
    let ran = crib.run(&[
        "run",
        "a secret prompt",
        "--base-url",
        &uri,
        "--model",
        "m",
        "--json",
        "--allow-delegate",
        "--http-retries",
        "0",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let own: Vec<Value> = results(&ran).into_iter().filter(|event| event["depth"].is_null()).collect();
    assert_eq!(own[0]["content"], "{\"said\":\"found\"}");
    let failed = own[1]["content"].as_str().expect("text");
    assert!(failed.contains("the agent failed") && !failed.contains("key"), "{failed}");
    let below = events(&ran).into_iter().find(|event| event["type"] == "error").expect("the agent's own error");
    assert!(below["depth"] == 1 && below["message"].as_str().expect("text").contains("your key is known"), "{below}");
    let requests = server.received();
    let body = requests[1].json();
    let messages = body["messages"].as_array().expect("messages");
    assert_eq!(messages.len(), 2, "{body}");
    assert_eq!((&messages[0]["role"], &messages[1]["role"]), (&json!("system"), &json!("user")));
    assert_eq!(messages[1]["content"], "find out\n\nContext of the task, as JSON:\n{\"context\":{\"where\":\"here\"}}");
    assert!(!body.to_string().contains("a secret prompt"), "{body}");
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_agents_too() {
    let crib = crib();
    let script = json!({
        "prompt": "go",
        "turns": [calls("ask", json!({ "task": "turn" })), { "content": "the end" }],
        "agents": [{ "turns": [calls("spin", json!({})), { "content": "never" }] }],
    });
    write(&crib, "script.json", script.to_string());
    // The interpreter is prepared before the clock runs.
    crib.run(&["call", "echo", "{\"task\":\"\"}"]);
    let mut child = crib
        .toolcrib(&[
            "run",
            "--script",
            "script.json",
            "--json",
            "--allow-delegate",
            "--timeout",
            "10m",
            "--records",
            "kept",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut last = None;
    for line in lines.by_ref() {
        let event: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let spins = event["type"] == "tool_call" && event["depth"] == 1;
        last = Some(event);
        if spins {
            break;
        }
    }
    assert_eq!(last.expect("an event")["name"], "spin");
    until_started(&crib.path("kept"), 2);
    let since = Instant::now();
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON")).collect();
    let code = child.wait().expect("it ends").code();
    assert!(since.elapsed() < Duration::from_secs(60), "{:?}", since.elapsed());
    assert_eq!(code, Some(130), "{rest:?}");
    let ends: Vec<_> =
        rest.iter().filter(|event| event["type"] == "end").map(|event| (&event["depth"], &event["reason"])).collect();
    assert_eq!(ends, [(&json!(1), &json!("interrupted")), (&Value::Null, &json!("interrupted"))], "{rest:?}");
    let mut outcomes: Vec<_> = crib.records().iter().skip(1).map(|record| record["outcome"].clone()).collect();
    outcomes.sort_by_key(Value::to_string);
    assert_eq!(outcomes, ["cancelled", "failed"], "both calls are signed for");
}
