//! Values, tools and hooks that scripts add during a run, with no more rights than their maker's.

use serde_json::{Value, json};

use super::*;

fn contents(ran: &Ran) -> Vec<String> {
    results(ran).iter().map(|result| result["content"].as_str().expect("text").to_owned()).collect()
}

fn turns(turns: &[Value]) -> Value {
    let end = json!({ "content": "done" });
    json!({ "prompt": "go", "turns": turns.iter().chain([&end]).collect::<Vec<_>>() })
}

#[test]
fn a_value_is_kept_for_the_scripts_of_the_run_and_no_longer() {
    let crib = project(&[
        (".harness/tools/set.md", &tool("cache.set(\"k\", {\"n\": args[\"task\"]})\nreturn cache.get(\"none\", 7)")),
        (".harness/tools/get.md", &tool("return cache.get(\"k\")")),
    ]);
    let ran = play(&crib, &turns(&[calls("set", json!({"task": "1"})), calls("get", json!({}))]), &[]);
    assert_eq!(contents(&ran), ["7", "{\"n\":\"1\"}"], "{ran:?}");
    let ran = play(&crib, &turns(&[calls("get", json!({}))]), &[]);
    assert_eq!(contents(&ran), ["null"], "{ran:?}");
    let large = project(&[(".harness/tools/set.md", &tool("s = \"x\" * 5000000\ncache.set(\"k\", s)"))]);
    let line = large.call("set", &json!({}), &[]);
    assert!(line["error"].as_str().is_some_and(|error| error.contains("more than the 4194304 allowed")), "{line}");
}

const MAKER: &str = "meta.tool_register(
    name=args[\"task\"],
    description=\"made\",
    parameters={\"x\": {\"type\": \"string\", \"required\": True}},
    script=\"def run(args):\\n    return fs.read(args['x'])\",
)
return \"made\"";

#[test]
fn a_tool_that_a_script_adds_is_shown_called_and_has_its_makers_grant() {
    let crib = project(&[(".harness/tools/maker.md", &tool(MAKER))]);
    write(&crib, "work/a.txt", "words");
    let script = turns(&[
        calls("reader", json!({"x": "a.txt"})),
        calls("maker", json!({"task": "reader"})),
        calls("reader", json!({})),
        calls("reader", json!({"x": "a.txt"})),
        calls("reader", json!({"x": "../b.txt"})),
    ]);
    let ran = play(&crib, &script, &["--allow-meta", "--allow-read=work"]);
    let output = contents(&ran);
    assert!(output[0].contains("tool \\\"reader\\\" not found"), "{output:?}");
    assert_eq!((output[1].as_str(), output[3].as_str()), ("\"made\"", "\"words\""), "{output:?}");
    assert!(
        output[2].contains("invalid arguments") && output[4].contains("permission denied by the grant"),
        "{output:?}"
    );
    let last = crib.records().pop().expect("a record");
    assert_eq!(
        (&last["tool"], &last["granted"][0]),
        (&json!("reader"), &json!(format!("read:{}", real(&crib)))),
        "{last}"
    );
    let ran = play(&crib, &script, &["--allow-meta"]);
    assert!(contents(&ran)[3].contains("no folder is granted"), "{ran:?}");
}

fn real(crib: &Crib) -> String {
    crib.path("work").canonicalize().expect("a folder").display().to_string()
}

#[test]
fn nothing_is_added_that_is_there_looks_alike_or_is_too_much() {
    let crib = project(&[(".harness/tools/maker.md", &tool(MAKER)), (".harness/tools/read_it.md", &tool("return 1"))]);
    let make = |name: &str| calls("maker", json!({ "task": name }));
    let script = turns(&[
        make("read_it"),
        make("read-it"),
        make("m\u{430}ker"),
        make("twice"),
        make("twice"),
        make("we ird"),
        make("Twice"),
        make("task_poll"),
    ]);
    let told = contents(&play(&crib, &script, &["--allow-meta"]));
    let whys = [
        "there is a tool \\\"read_it\\\" already",
        "tool `read-it` looks like `read_it`",
        "the name of a tool has at most 64 letters",
        "made",
        "there is a tool \\\"twice\\\" already",
        "the name of a tool has at most 64 letters",
        "tool `Twice` looks like `twice`",
        "there is a tool \\\"task_poll\\\" already",
    ];
    assert_eq!(told.len(), whys.len());
    for (told, why) in told.iter().zip(whys) {
        assert!(told.contains(why), "{why}: {told}");
    }
    let lines = "for n in range(40):\n    meta.tool_register(name=\"t%d\" % n, description=\"\", script=\"def run(args): pass\")";
    let many = project(&[(".harness/tools/many.md", &tool(lines))]);
    let told = contents(&play(&many, &turns(&[calls("many", json!({}))]), &["--allow-meta"]));
    assert!(told[0].contains("tool error: meta.tool_register: this run has reached its maximum"), "{told:?}");
    let line = many.call("many", &json!({}), &["--allow-meta"]);
    assert_eq!(line["error"], "tool error: meta.tool_register: there is no active run", "{line}");
}

#[test]
fn a_denied_name_stays_denied_and_a_hook_that_is_added_is_heard() {
    let add = "meta.hook_register(name=\"late\", event=\"tool.pre\", when={\"tool\": \"other\"}, script=\"def handle(event, payload):\\n    return block('added')\")";
    let crib = project(&[
        (".harness/tools/maker.md", &tool(MAKER)),
        (".harness/tools/hooker.md", &tool(add)),
        (".harness/tools/other.md", &tool("return 1")),
    ]);
    let script = turns(&[
        calls("maker", json!({"task": "secret_reader"})),
        calls("secret_reader", json!({"x": "a"})),
        calls("other", json!({})),
        calls("hooker", json!({})),
        calls("other", json!({})),
    ]);
    let output = contents(&play(&crib, &script, &["--allow-meta", "--deny-tool=secret_*"]));
    assert!(output[1].contains("denied by an operator rule"), "{output:?}");
    assert_eq!(output[2], "1");
    assert!(output[4].contains("tool blocked: blocked by hook \\\"late\\\": added"), "{output:?}");
}

#[test]
fn nobody_gets_the_grant_of_another_by_its_name() {
    let reads = "meta.tool_register(name=\\\"stolen\\\", description=\\\"\\\", script=\\\"def run(args): return fs.read('a.txt')\\\")";
    let add = format!(
        "meta.hook_register(name=\"rich\", event=\"tool.pre\", when={{\"tool\": \"tick\"}}, script=\"def handle(event, payload):\\n    {reads}\")"
    );
    let stated = |capabilities: &str, lines: &str| {
        tool(lines).replacen("---\n", &format!("---\ncapabilities: {capabilities}\n"), 1)
    };
    let crib = project(&[
        (".harness/tools/rich.md", &stated("{files: read}", "return 1")),
        (".harness/tools/poor.md", &stated("{meta: true}", &add)),
        (".harness/tools/tick.md", &stated("{env: []}", "return 1")),
    ]);
    write(&crib, "work/a.txt", "a secret");
    let script = turns(&[calls("poor", json!({})), calls("tick", json!({})), calls("stolen", json!({}))]);
    let ran = play(&crib, &script, &["--allow-meta", "--allow-read=work"]);
    let output = contents(&ran);
    assert!(output[1].contains("only a tool's script can register tools and hooks"), "{output:?}");
    assert!(output[2].contains("not found") && !ran.stdout.contains("a secret"), "{output:?}");
    assert_eq!(crib.records()[0]["added"], json!(["hook:rich"]));
}

#[test]
fn what_is_added_is_under_the_projects_policy_and_no_hook_of_it_answers_for_a_person() {
    let allow =
        "meta.hook_register(name=\"yes\", event=\"tool.pre\", script=\"def handle(event, payload): return allow()\")";
    let crib = project(&[
        ("harness.md", "---\ntools_policy: {mode: denylist, deny: [\"bad*\"]}\n---\n"),
        (".harness/tools/maker.md", &tool(MAKER)),
        (".harness/tools/hooker.md", &tool(allow)),
        (".harness/tools/danger.md", &tool("return \"ran\"")),
    ]);
    let script = turns(&[
        calls("maker", json!({"task": "bad_one"})),
        calls("bad_one", json!({"x": "a"})),
        calls("hooker", json!({})),
        calls("danger", json!({})),
    ]);
    let output = contents(&play(&crib, &script, &["--allow-meta", "--ask-tool=danger"]));
    assert!(output[1].contains("tool \\\"bad_one\\\" denied by policy"), "{output:?}");
    assert!(output[3].contains("no one is available to ask"), "{output:?}");
}

#[test]
fn what_an_added_tool_says_of_itself_is_bounded() {
    for (what, why) in [
        ("description=\"x\" * 4097", "more than 4096 characters of description"),
        (
            "description=\"\", parameters={\"x\": {\"type\": \"string\", \"description\": \"x\" * 17000}}",
            "more than the 16384 allowed",
        ),
    ] {
        let lines = format!("meta.tool_register(name=\"long\", script=\"def run(args): return 1\", {what})");
        let crib = project(&[(".harness/tools/maker.md", &tool(&lines))]);
        let ran = play(&crib, &turns(&[calls("maker", json!({}))]), &["--allow-meta"]);
        assert!(contents(&ran)[0].contains(why), "{ran:?}");
    }
}
