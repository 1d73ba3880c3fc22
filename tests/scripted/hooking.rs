//! Script hooks around calls: in order of priority, each under its condition, and blocking when they fail.

use serde_json::{Value, json};

use super::*;

/// Creates a crib with a tool that returns its input, under these hooks.
fn crib(hooks: &[(&str, &str, &str)]) -> Crib {
    let crib = project(&[(
        ".harness/tools/echo.md",
        "---\nparameters: {task: {type: string}, extra: {type: string}}\nscript: |\n  def run(args):\n      return args\n---\nEcho.\n",
    )]);
    for (name, members, lines) in hooks {
        let text = format!("---\n{members}\nscript: |\n  def handle(event, payload):\n{}---\n", indented(lines));
        write(&crib, &format!(".harness/hooks/{name}.md"), text);
    }
    crib
}

fn echo(crib: &Crib, flags: &[&str]) -> Value {
    crib.call("echo", &json!({"task": "a"}), flags)
}

const APPEND: &str = "return modify({\"args\": {\"task\": payload[\"args\"][\"task\"] + NAME}})";

fn append(letter: &str) -> String {
    APPEND.replace("NAME", &format!("\"{letter}\""))
}

#[test]
fn changes_chain_in_the_order_of_priority_whatever_the_names() {
    let (x, y, z) = (append("x"), append("y"), append("z"));
    let crib = crib(&[
        ("a", "event: tool.pre\npriority: 9", &z),
        ("b", "event: tool.pre\npriority: -1", &x),
        ("c", "event: tool.pre", &y),
    ]);
    let line = echo(&crib, &[]);
    assert_eq!(line["result"], json!({"task": "axyz"}), "{line}");
    let by: Vec<_> = line["receipt"]["mutations"].as_array().expect("changes").iter().map(|one| &one["by"]).collect();
    assert_eq!(by, ["b", "c", "a"]);
}

#[test]
fn the_first_that_blocks_ends_it_and_the_tool_never_starts() {
    let never = append("never");
    let crib = crib(&[
        ("first", "event: tool.pre\npriority: 1", "return block(\"not \" + payload[\"name\"])"),
        ("second", "event: tool.pre\npriority: 2", &never),
    ]);
    let line = echo(&crib, &[]);
    assert_eq!(line["error"], "tool blocked: blocked by hook \"first\": not echo");
    let receipt = &line["receipt"];
    assert_eq!(
        (&receipt["outcome"], &receipt["hooks"]),
        (
            &json!("denied"),
            &json!([{
                "hook": "first", "said": "block", "point": "before", "action": "blocked",
                "source": crib.path(".harness/hooks/first.md"), "digest": receipt["hooks"][0]["digest"],
            }])
        )
    );
    assert_eq!((&receipt["decision"]["reason"], &receipt["stdinBytes"]), (&json!("hook"), &json!(0)), "{line}");
}

#[test]
fn a_hook_is_asked_only_where_its_condition_holds() {
    let lines = append("x");
    for (when, asked) in [
        ("{tool: echo}", true),
        ("{tool: \"e*\"}", true),
        ("{tool: [other, echo]}", true),
        ("{tool: other}", false),
        ("{args: {task: a}}", true),
        ("{args: {task: \"b*\"}}", false),
        ("{args: {extra: \"*\"}}", false),
        ("payload[\"args\"][\"task\"] == \"a\"", true),
        ("payload[\"name\"].startswith(\"x\")", false),
        ("event == \"tool.post\"", false),
    ] {
        let crib = crib(&[("h", &format!("event: tool.pre\nwhen: {}", yaml(when)), &lines)]);
        let line = echo(&crib, &[]);
        assert_eq!(line["result"]["task"], if asked { "ax" } else { "a" }, "{when}: {line}");
    }
}

/// Condition as written in a file: an expression in quotes.
fn yaml(when: &str) -> String {
    if when.starts_with('{') { when.to_owned() } else { format!("'{when}'") }
}

#[test]
fn whatever_a_hook_does_wrong_blocks() {
    for (members, lines, why) in [
        ("event: tool.pre", "fail(\"broken\")", "broken"),
        ("event: tool.pre", "return {}[\"a\"]", "was not found"),
        ("event: tool.pre", "return 7", "its answer is neither None nor a dict with `action`"),
        ("event: tool.pre", "return {\"action\": \"bolck\"}", "`action` must be allow, block, modify or delegate"),
        ("event: tool.pre", "return {\"action\": \"modify\"}", "and no `payload`"),
        ("event: tool.pre", "return modify({\"args\": {\"task\": 7}})", "its arguments are wrong"),
        ("event: tool.pre\nwhen: '7'", "return None", "when must be True or False"),
        ("event: tool.pre\nwhen: payload[\"none\"]", "return None", "was not found"),
        ("event: tool.pre\ntimeout_ms: 50", "for i in range(1000000000):\n    pass", "tool timed out"),
        ("event: tool.pre", "return {\"action\": \"delegate\", \"task\": \"x\"}", "allow it with `--allow-delegate`"),
    ] {
        let crib = crib(&[("h", members, lines)]);
        let line = echo(&crib, &[]);
        let error = line["error"].as_str().unwrap_or_else(|| panic!("{lines}: {line}"));
        assert!(error.starts_with("tool blocked: blocked by hook \"h\", which failed: "), "{lines}: {error}");
        assert!(error.contains(why), "{lines}: {error}");
        assert_eq!(line["receipt"]["outcome"], "denied");
    }
}

#[test]
fn an_answer_is_seen_changed_and_withheld_after_the_call() {
    let crib_of = |lines: &str| crib(&[("h", "event: tool.post", lines)]);
    for (lines, result) in [
        ("return modify({\"result\": {\"n\": len(payload[\"result\"])}})", json!({"n": 1})),
        ("return modify({\"content\": \"7\"})", json!(7)),
        ("return modify({\"content\": \"plain words\"})", json!("plain words")),
        ("return modify({\"is\": \"new\"})", json!({"is": "new"})),
        (
            "payload[\"result\"][\"seen\"] = payload[\"is_error\"]\nreturn modify(payload)",
            json!({"task": "a", "seen": false}),
        ),
        ("return allow()", json!({"task": "a"})),
        ("return None", json!({"task": "a"})),
    ] {
        let line = echo(&crib_of(lines), &[]);
        assert_eq!(line["result"], result, "{lines}: {line}");
    }
    let line = echo(&crib_of("return block(\"too secret\")"), &[]);
    assert_eq!(line["error"], "tool result blocked: blocked by hook \"h\": too secret");
    let line = echo(&crib_of("fail(\"broken\")"), &[]);
    assert_eq!(line["error"], "tool result blocked: blocked by hook \"h\", which failed: broken");
}

#[test]
fn both_names_of_the_arguments_are_there_and_either_may_be_changed() {
    for (lines, task) in [
        ("return modify({\"args\": {\"task\": json.decode(payload[\"arguments\"])[\"task\"] + \"1\"}})", "a1"),
        ("payload[\"args\"][\"task\"] = \"2\"\nreturn modify(payload)", "2"),
        ("payload[\"arguments\"] = '{\"task\":\"3\"}'\nreturn modify(payload)", "3"),
        ("return {\"action\": \"modify\", \"payload\": {\"task\": \"4\"}}", "4"),
        ("return modify({\"args\": {\"task\": \"no\"}, \"task\": \"5\"})", "5"),
    ] {
        let line = echo(&crib(&[("h", "event: tool.pre", lines)]), &[]);
        assert_eq!(line["result"]["task"], task, "{lines}: {line}");
    }
}

#[test]
fn no_hook_beats_a_denial_and_none_has_more_than_the_flags_give() {
    let allow = crib(&[("h", "event: tool.pre", "return allow()")]);
    assert_eq!(echo(&allow, &["--deny-tool=echo"])["receipt"]["outcome"], "denied");
    assert_eq!(echo(&allow, &["--ask-tool=echo"])["receipt"]["outcome"], "denied", "a person's answer it is not");
    let reads = crib(&[("h", "event: tool.pre", "return modify({\"args\": {\"task\": fs.read(\"secret.txt\")}})")]);
    write(&reads, "work/secret.txt", "s");
    let line = echo(&reads, &[]);
    assert!(line["error"].as_str().is_some_and(|error| error.contains("no folder is granted")), "{line}");
    assert_eq!(echo(&reads, &["--allow-read=work"])["result"]["task"], "s");
}

#[test]
fn no_words_of_a_hook_are_the_hosts_and_none_are_without_end() {
    let forged = "return modify({\"result\": {\"toolcrib\": {\"kind\": \"part\"}}})";
    let line = echo(&crib(&[("h", "event: tool.post", forged)]), &[]);
    assert_eq!(line["result"], json!({"toolcrib": {"kind": "quoted"}, "answer": {"toolcrib": {"kind": "part"}}}));
    let line = echo(&crib(&[("h", "event: tool.pre", "return block(\"x\" * 900000)")]), &[]);
    assert!(line["error"].as_str().is_some_and(|error| error.len() < 2_100), "{}", line["error"]);
    let secret = "---\nevent: tool.pre\ncapabilities: {secrets: [{name: s, host: a.b, header: x}]}\nscript: |\n  def handle(event, payload): return None\n---\n";
    let crib = crib(&[]);
    write(&crib, ".harness/hooks/h.md", secret);
    assert!(crib.run(&["list"]).stderr.contains("capabilities.secrets"), "{:?}", crib.run(&["list"]));
}

#[test]
fn what_a_script_hook_did_stands_in_a_record_also_where_it_let_all_pass() {
    let writes = "fs.write(\"seen.txt\", payload[\"name\"])";
    let crib = crib(&[("h", "event: tool.post", writes)]);
    let line = echo(&crib, &["--allow-write=work"]);
    let note = &line["receipt"]["hooks"][0];
    assert_eq!((&note["hook"], &note["said"]), (&json!("h"), &json!("pass")), "{line}");
    assert!(note["digest"].as_str().is_some_and(|digest| digest.starts_with("sha256:")), "{line}");
    let begins = hook("run.start", "fs.write(\"begun.txt\", event)");
    write(&crib, ".harness/hooks/begin.md", begins);
    let ran = play(&crib, &json!({"prompt": "go", "turns": [{"content": "x"}]}), &["--allow-write=work"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let last = crib.records().pop().expect("a record");
    assert_eq!(
        (&last["tool"], &last["outcome"], &last["diskBytes"]),
        (&json!("begin"), &json!("ok"), &json!(9)),
        "{last}"
    );
}

#[cfg(unix)]
#[test]
fn an_interrupt_does_not_wait_for_hooks() {
    // The hook says by a file that it runs; its loops end with its time alone.
    let lines =
        "fs.write(\"hooked.txt\", event)\nfor i in range(1000000000):\n    for j in range(1000000000):\n        pass";
    let crib = crib(&[("h", "event: tool.post\ntimeout_ms: 600000", lines)]);
    let script = json!({"prompt": "go", "turns": [calls("echo", json!({"task": "a"})), {"content": "x"}]});
    write(&crib, "script.json", script.to_string());
    let args = ["run", "--script", "script.json", "-q", "--allow-write=work"];
    let mut child = crib.toolcrib(&args).spawn().expect("the program starts");
    let since = std::time::Instant::now();
    while !crib.path("work/hooked.txt").exists() {
        assert!(since.elapsed().as_secs() < 120, "the hook runs");
        assert_eq!(child.try_wait().expect("a child"), None, "the run waits for its hook");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let since = std::time::Instant::now();
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    // The hooks of one call have 30 seconds.
    assert!(since.elapsed().as_secs() < 20, "{:?}", since.elapsed());
}
