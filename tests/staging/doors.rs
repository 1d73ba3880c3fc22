//! The question at the end of a call, wherever a person is asked: at a terminal, by a client of MCP of both revisions, and from another
//! terminal.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::gate::servers::Server;
use crate::mcp::{Client, modern};
use crate::permissions::terminal::Terminal;

/// Tool flags: the shipped tools over the folder `work`, with programs that are asked about at their end.
const FLAGS: [&str; 3] = ["--tools=builtin", "--allow-write=work", "--stage-tool=run_code"];

fn crib() -> Crib {
    let crib = Crib::new();
    for name in ["a", "b"] {
        fs::write(crib.path("work").join(name), "old\n").unwrap();
    }
    crib
}

fn text(crib: &Crib, name: &str) -> Option<String> {
    fs::read_to_string(crib.path("work").join(name)).ok()
}

/// Program that writes these files.
fn program(names: &[&str]) -> Value {
    let code: Vec<String> =
        names.iter().map(|name| format!("tools.fs_write_file(path=\"{name}\", content=\"new\\n\")")).collect();
    json!({ "code": format!("{}\n\"done\"", code.join("\n")) })
}

#[test]
fn at_a_terminal_all_changes_are_shown_and_one_answer_makes_them() {
    let crib = crib();
    let arguments = program(&["a", "b", "c"]).to_string();
    let start = || {
        let call = ["call", "run_code", &arguments, "--json"];
        let mut terminal = Terminal::start(crib.toolcrib(&[&call[..], &FLAGS].concat()));
        terminal.until("Make these changes?");
        let question = terminal.until("Make them: [y]es, [d]etails, no with [r]eason, or [N]o? ");
        for line in [
            "    Action | Make the changes of the call, which has ended: 2 modified, 1 added",
            "           | -old",
            "           | +new",
            "  Asked by | stage run_code (--stage-tool)",
        ] {
            assert!(question.lines().any(|shown| shown.trim_end() == line), "{line:?} in {question}");
        }
        assert!(question.contains("   Folders | /") && !question.contains("Granted"), "{question}");
        assert!(!question.contains("Held back") && !question.contains("[s]ession"), "{question}");
        terminal
    };
    let mut terminal = start();
    terminal.types("r");
    terminal.until("Reason that the model gets (Escape: back): ");
    terminal.types("only b\n");
    let left = terminal.end();
    let denied = "the user denied the changes of this call, and 3 changes were dropped: only b";
    assert!(left.code == Some(1) && left.stdout.contains(denied), "{left:?}");
    assert_eq!((text(&crib, "a").as_deref(), text(&crib, "c")), (Some("old\n"), None));
    let mut terminal = start();
    terminal.types("y");
    let left = terminal.end();
    assert_eq!(left.code, Some(0), "{left:?}");
    assert_eq!(["a", "b", "c"].map(|name| text(&crib, name).unwrap()), ["new\n"; 3]);
    let line: Value = serde_json::from_str(&left.stdout).unwrap();
    assert_eq!(line["receipt"]["held"]["end"], "committed", "{line}");
    let invocation = line["receipt"]["invocation"].as_str().unwrap();
    let way_back = format!("hint: `toolcrib undo {invocation}` takes 3 changes of this call back");
    assert!(left.terminal.contains(&way_back), "{left:?}");
    let undone = crib.run(&["undo", invocation, "--yes"]);
    assert!(undone.code == Some(0) && undone.stderr.contains("took back 3 changes"), "{undone:?}");
    assert_eq!((text(&crib, "a").as_deref(), text(&crib, "c")), (Some("old\n"), None));
    assert_eq!(crib.run(&["stage", "list", "--json"]).stdout, "[]\n");
}

#[test]
fn without_anybody_to_ask_a_hint_names_the_ways() {
    let crib = crib();
    let ran = crib.run(&[&["call", "run_code", &program(&["a"]).to_string()], &FLAGS[..]].concat());
    assert!(ran.code == Some(1) && ran.stdout.contains("no one is available to ask: 1 change was dropped"), "{ran:?}");
    assert!(ran.stderr.contains("keep it with --stage until `toolcrib stage commit`"), "{ran:?}");
    let by_setting = ["--tools=builtin", "--allow-write=work", "--set=permissions.stage=[\"fs_*\"]"];
    let line = crib.call("fs_write_file", &json!({"path": "a", "content": "x"}), &by_setting);
    assert_eq!(line["receipt"]["held"]["end"], "unanswered", "{line}");
    assert_eq!(text(&crib, "a").as_deref(), Some("old\n"));
    let arguments = program(&["a"]).to_string();
    let misspelt = crib.run(&["call", "run_code", &arguments, "--tools=builtin", "--stage-tool=run_cod"]);
    assert!(misspelt.code == Some(1) && misspelt.stderr.contains("did you mean `run_code`?"), "{misspelt:?}");
    let beside = crib.run(&[&["call", "fs_mkdirp", r#"{"path":"x"}"#, "--stage=one"], &FLAGS[..]].concat());
    assert!(beside.stderr.contains("changes nothing beside a stage for all calls"), "{beside:?}");
    crib.run(&["stage", "drop", "one"]);
    let flow = crib.run(&["list", "--tools=builtin", "--stage-tool=flow untrusted -> write"]);
    assert!(flow.code == Some(2) && flow.stderr.contains("a flow is allowed, asked about or denied"), "{flow:?}");
}

/// Abilities of a client that can ask its user.
fn asking() -> Value {
    json!({"elicitation": {"form": {}}})
}

fn yes() -> Value {
    json!({"action": "accept", "content": {"allow": true}})
}

fn code_call(names: &[&str]) -> Value {
    json!({"name": "run_code", "arguments": program(names)})
}

#[test]
fn a_client_of_the_earlier_revision_asks_its_user_while_the_call_waits() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &[&["--code"], &FLAGS[..]].concat(), &asking());
    let id = client.request("tools/call", &code_call(&["a", "c"]));
    let question = client.wait(|message| message["method"] == "elicitation/create");
    let shown = question["params"]["message"].as_str().unwrap();
    assert!(shown.starts_with("Make the changes of this call?\n"), "{shown}");
    assert!(shown.contains("1 modified, 1 added") && shown.contains("| +new"), "{shown}");
    let listed: Value = serde_json::from_str(&crib.run(&["stage", "list", "--json"]).stdout).unwrap();
    let stage = listed[0]["name"].as_str().unwrap();
    assert!(crib.run(&["stage", "diff", stage]).stdout.contains("+new"), "its changes can be read meanwhile");
    assert_eq!(text(&crib, "a").as_deref(), Some("old\n"));
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": yes()}));
    let result = client.answer(id);
    assert_eq!(result["result"]["isError"], false, "{result}");
    assert_eq!(["a", "c"].map(|name| text(&crib, name).unwrap()), ["new\n"; 2]);
}

#[test]
fn of_many_changes_a_client_gets_the_entries_alone() {
    let crib = crib();
    let code = "for n in range(60):\n    tools.fs_write_file(path=f\"many/{n}\", content=\"x\" * 4000 + \"\\n\", create_parents=True)";
    let mut client = Client::initialized(&crib, &[&["--code"], &FLAGS[..]].concat(), &asking());
    let id = client.request("tools/call", &json!({"name": "run_code", "arguments": {"code": code}}));
    let question = client.wait(|message| message["method"] == "elicitation/create");
    let shown = question["params"]["message"].as_str().unwrap();
    assert!(shown.contains("added work/many/59 (3.9 KiB)") && !shown.contains("+xxx"), "{shown}");
    assert!(shown.contains("shows the lines while"), "{shown}");
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    assert_eq!(client.answer(id)["result"]["isError"], true);
    assert!(!crib.path("work/many").exists());
}

#[test]
fn a_client_of_the_later_revision_comes_back_with_the_answer_and_the_program_runs_once() {
    let crib = crib();
    let mut client = Client::start(&crib, &[&["--code"], &FLAGS[..]].concat());
    let params = code_call(&["a", "c"]);
    let paused = client.ask("tools/call", &modern(params.clone(), &asking()));
    assert_eq!(paused["result"]["resultType"], "input_required", "{paused}");
    let shown = paused["result"]["inputRequests"]["approval"]["params"]["message"].as_str().unwrap();
    assert!(shown.starts_with("Make the changes of this call?\n"), "{shown}");
    assert_eq!(text(&crib, "a").as_deref(), Some("old\n"));
    let mut again = params;
    again["requestState"] = paused["result"]["requestState"].clone();
    again["inputResponses"] = json!({"approval": yes()});
    let result = client.ask("tools/call", &modern(again, &asking()));
    assert_eq!(result["result"]["isError"], false, "{result}");
    assert_eq!(["a", "c"].map(|name| text(&crib, name).unwrap()), ["new\n"; 2]);
    let writes = crib.records().iter().filter(|record| record["tool"] == "fs_write_file").count();
    assert_eq!(writes, 2, "the program ran once");
}

#[test]
fn a_repeated_call_is_agreed_to_only_with_the_same_changes() {
    let crib = crib();
    let flags = ["--tools=builtin", "--allow-write=work", "--stage-tool=fs_append_file"];
    let mut client = Client::start(&crib, &flags);
    let params = json!({"name": "fs_append_file", "arguments": {"path": "a", "content": "new\n"}});
    let ask = |client: &mut Client, state: Option<&Value>| {
        let mut params = params.clone();
        if let Some(state) = state {
            params["requestState"] = state["result"]["requestState"].clone();
            params["inputResponses"] = json!({"approval": yes()});
        }
        client.ask("tools/call", &modern(params, &asking()))
    };
    let first = ask(&mut client, None);
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    fs::write(crib.path("work/a"), "other\n").unwrap();
    let second = ask(&mut client, Some(&first));
    assert_eq!(second["result"]["resultType"], "input_required", "another change: {second}");
    assert_eq!(text(&crib, "a").as_deref(), Some("other\n"));
    let third = ask(&mut client, Some(&second));
    assert_eq!(third["result"]["isError"], false, "{third}");
    assert_eq!(text(&crib, "a").as_deref(), Some("other\nnew\n"));
}

#[test]
fn another_file_of_the_same_size_is_another_change() {
    let crib = crib();
    let flags = ["--tools=builtin", "--allow-write=work", "--stage-tool=fs_rm"];
    let mut client = Client::start(&crib, &flags);
    let mut params = json!({"name": "fs_rm", "arguments": {"path": "a"}});
    let first = client.ask("tools/call", &modern(params.clone(), &asking()));
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    fs::write(crib.path("work/a"), "NEW\n").unwrap();
    params["requestState"] = first["result"]["requestState"].clone();
    params["inputResponses"] = json!({"approval": yes()});
    let second = client.ask("tools/call", &modern(params, &asking()));
    assert_eq!(second["result"]["resultType"], "input_required", "{second}");
    assert_eq!(text(&crib, "a").as_deref(), Some("NEW\n"));
}

#[test]
fn an_interruption_at_the_question_drops_the_changes() {
    let crib = crib();
    let arguments = program(&["a"]).to_string();
    let mut terminal = Terminal::start(crib.toolcrib(&[&["call", "run_code", &arguments], &FLAGS[..]].concat()));
    terminal.until("or [N]o? ");
    terminal.types("\u{3}");
    let left = terminal.end();
    assert_eq!(left.code, Some(130), "{left:?}");
    assert_eq!(text(&crib, "a").as_deref(), Some("old\n"));
    assert_eq!(crib.run(&["stage", "list", "--json"]).stdout, "[]\n");
}

#[test]
fn of_very_many_changes_the_full_question_lists_some_and_says_so() {
    let crib = crib();
    let code = "for n in range(510):\n    tools.fs_write_file(path=f\"new{n}\", content=\"x\\n\")\n\
                tools.fs_write_file(path=\"b\", content=\"changed\\n\")";
    let arguments = json!({ "code": code }).to_string();
    let mut terminal = Terminal::start(crib.toolcrib(&[&["call", "run_code", &arguments], &FLAGS[..]].concat()));
    let short = terminal.until("or [N]o? ");
    terminal.types("d");
    let full = terminal.until("or [N]o? ");
    // The one file that was there is not hidden among the new ones.
    for question in [&short, &full] {
        assert!(question.contains("Changes | modified work/b"), "{question}");
    }
    assert!(full.contains("… 11 more changes: `toolcrib stage diff inv_"), "{full}");
    terminal.types("n");
    assert_eq!(terminal.end().code, Some(1));
}

#[test]
fn a_request_too_long_to_be_shown_is_not_asked_about_by_a_client() {
    let (crib, page) = (Crib::with_guests(&["http"]), Server::plain("a page"));
    let allow = format!("--allow-net=http://{}", page.authority());
    let flags = ["--code", "--set=permissions.hold=[\"run_code\"]", &allow, "--set=approvals.flows=never"];
    let mut client = Client::initialized(&crib, &flags, &asking());
    let send = |bytes: usize| {
        let code = format!("tools.http(url=\"{}\", method=\"POST\", body=\"x\" * {bytes})", page.url());
        json!({"name": "run_code", "arguments": {"code": code}})
    };
    let id = client.request("tools/call", &send(2000));
    let question = client.wait(|message| message["method"] == "elicitation/create");
    assert!(question["params"]["message"].as_str().unwrap().contains("POST http://"), "{question}");
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    assert_eq!(client.answer(id)["result"]["isError"], true);
    let refused = client.ask("tools/call", &send((64 << 10) + 7));
    assert_eq!(refused["result"]["isError"], true, "nobody was asked: {refused}");
    let pending: Value = serde_json::from_str(&crib.run(&["approvals", "pending", "--json"]).stdout).unwrap();
    let shown = crib.run(&["approvals", "pending", pending[0]["id"].as_str().unwrap()]).stdout;
    assert!(shown.contains("POST http://"), "{shown}");
    assert_eq!(page.connections(), 0);
}
