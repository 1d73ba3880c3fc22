//! Images of scripts: calls that start from the memory of the interpreter after it has read their script. Every call gets
//! the same answer with an image as without, and sees nothing of another call.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wasmtime::component::{Component, Instance, Linker, Val};
use wasmtime::{Engine, Store};

use super::*;
use crate::mcp::Client;

const INTERPRETER: &str = "toolcrib:script/interpreter@0.1.0";

/// Calls of a tool in one program: the first reads the script, the second starts its image, and the others may use it.
const CALLS: usize = 60;

/// Interpreter without any import.
struct Bare {
    engine: Engine,
    component: Component,
}

impl Bare {
    fn new() -> Self {
        let engine = Engine::default();
        let bytes = toolcrib_embedded::interpreter().unwrap();
        let component = Component::new(&engine, bytes).unwrap();
        Self { engine, component }
    }

    /// Calls an export of a fresh instance.
    fn call(&self, export: &str, parameters: &[Val]) -> Result<Val, wasmtime::Error> {
        let mut linker = Linker::<()>::new(&self.engine);
        if export != "read" {
            // An error looks for the variable that asks for a trace.
            let imports = self.component.component_type();
            let (name, _) =
                imports.imports(&self.engine).find(|(name, _)| name.starts_with("wasi:cli/environment@")).unwrap();
            linker.instance(name)?.func_wrap("get-environment", |_, ()| Ok((Vec::<(String, String)>::new(),)))?;
        }
        linker.define_unknown_imports_as_traps(&self.component)?;
        let mut store = Store::new(&self.engine, ());
        let instance: Instance = linker.instantiate(&mut store, &self.component)?;
        let interface = instance.get_export_index(&mut store, None, INTERPRETER).unwrap();
        let export = instance.get_export_index(&mut store, Some(&interface), export).unwrap();
        let mut results = [Val::Bool(false)];
        instance.get_func(&mut store, export).unwrap().call(&mut store, parameters, &mut results)?;
        let [result] = results;
        Ok(result)
    }

    /// Reads a script; `None` if it has no image.
    fn image(&self, source: &str, entry: &str, when: Option<&str>) -> Option<Val> {
        let when = Val::Option(when.map(|when| Box::new(text(when))));
        match self.call("read", &[script(source), Val::Enum(entry.to_owned()), when]) {
            Ok(Val::Option(image)) => image.map(|image| *image),
            // It called the host.
            Err(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// Calls `run` with and without an image: both give this result.
    #[track_caller]
    fn run(&self, source: &str, arguments: &str) -> Val {
        let read = self.call("run", &[script(source), text(arguments)]).unwrap();
        let image = self.image(source, "run", None).expect("an image");
        for _ in 0..2 {
            assert_eq!(self.call("run-image", &[image.clone(), text(arguments)]).unwrap(), read);
        }
        read
    }
}

fn text(text: &str) -> Val {
    Val::String(text.to_owned())
}

fn script(source: &str) -> Val {
    Val::Record(vec![("name".to_owned(), text("t")), ("source".to_owned(), text(source))])
}

fn returned(json: &str) -> Val {
    Val::Result(Ok(Some(Box::new(text(json)))))
}

/// Number of bytes of an image.
fn size(image: &Val) -> usize {
    match image {
        Val::List(bytes) => bytes.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_script_that_was_read_goes_on_as_one_that_is_read_now() {
    let bare = Bare::new();

    // Results, errors and their places are the same, and no call sees another.
    let counts = "seen = []\n\ndef run(args):\n    seen.append(args)\n    return {\"seen\": seen, \"of\": len(seen)}";
    assert_eq!(bare.run(counts, r#"{"x":"ä"}"#), returned(r#"{"seen":[{"x":"ä"}],"of":1}"#));
    let long = format!("{{\"x\":\"{}\"}}", "y".repeat(1 << 20));
    assert_eq!(bare.run("def run(args):\n    return len(args['x'])", &long), returned("1048576"));
    let fails = bare.run("def inner(args):\n    return args[\"b\"]\n\ndef run(args):\n    return inner(args)", "{}");
    let Val::Result(Err(Some(problem))) = &fails else { panic!("{fails:?}") };
    let Val::Record(fields) = &**problem else { panic!("{problem:?}") };
    assert_eq!((&fields[0].1, &fields[1].1), (&Val::U32(2), &Val::U32(12)), "{fields:?}");
    let deep = "def f(n):\n    return f(n + 1)\n\ndef run(args):\n    return f(0)";
    assert!(matches!(bare.run(deep, "{}"), Val::Result(Err(_))));
    assert!(matches!(bare.run("def run(args):\n    fail('no')", "[1"), Val::Result(Err(_))));

    // The image of a small script is small: nothing that reading has freed is part of it.
    let small = size(&bare.image(counts, "run", None).expect("an image"));
    assert!((1000..64 << 10).contains(&small), "{small}");

    // A script that calls the host, has a problem or needs much memory while it is read has no image.
    let host = ["print(1)", "log(1)", "env.get('A')", "time.now()", "uuid.v4()", "fs.exists('a')", "cache.get('a')"];
    let problems = ["fail('no')", "x = ][", "load('a', 'b')"];
    let large = ["x = [str(i) for i in range(20000)]", "x = 'y' * (8 << 20)"];
    for start in host.iter().chain(&problems).chain(&large) {
        assert_eq!(bare.image(&format!("{start}\ndef run(args):\n    return 1"), "run", None), None, "{start}");
    }
    for source in ["def run(args)", "run = 1", "x = 1"] {
        assert_eq!(bare.image(source, "run", None), None, "{source}");
    }

    // A hook is asked under its condition.
    let hook = "seen = []\n\ndef handle(event, payload):\n    seen.append(1)\n    return block(event + str(len(seen)))";
    let image = bare.image(hook, "handle", Some("payload['x']")).expect("an image");
    let handled = |payload| bare.call("handle-image", &[image.clone(), text("e"), text(payload)]).unwrap();
    let blocks = Val::Option(Some(Box::new(text(r#"{"action":"block","reason":"e1"}"#))));
    assert_eq!(handled(r#"{"x":true}"#), Val::Result(Ok(Some(Box::new(blocks)))));
    assert_eq!(handled(r#"{"x":false}"#), Val::Result(Ok(Some(Box::new(Val::Option(None))))));
    let read = [script(hook), Val::Option(Some(Box::new(text("payload['x']")))), text("e"), text("{}")];
    assert_eq!(handled("{}"), bare.call("handle", &read).unwrap());
    assert_eq!(bare.image(hook, "handle", Some("1 +")), None);
}

/// Texts that a tool with this script returns, call by call.
fn answers(source: &str) -> Vec<String> {
    let file = format!("---\nparameters: {{x: {{type: number}}}}\nscript: |\n{}---\nA tool.\n", indented(source));
    let crib = project(&[("t.md", &file)]);
    let mut client = Client::initialized(&crib, &["--tools", "t.md"], &json!({}));
    (0..CALLS).map(|_| answer(&client.call("t", &json!({"x": 1})))).collect()
}

fn answer(message: &Value) -> String {
    message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}")).to_owned()
}

#[test]
fn later_calls_do_not_run_the_top_level_again() {
    let source = "def count():\n    n = 0\n    for i in range(60000):\n        n = (n + i) % 7\n    return n\n\nN = count()\n\ndef run(args):\n    return N";
    let crib = project(&[("t.md", &format!("---\nscript: |\n{}---\nA tool.\n", indented(source)))]);
    let mut client = Client::initialized(&crib, &["--tools", "t.md"], &json!({}));
    let mut time = || {
        let message = client.call("t", &json!({}));
        message["result"]["_meta"]["toolcrib/receipt"]["cpuMs"].as_f64().unwrap_or_else(|| panic!("{message}"))
    };
    let (first, until) = (time(), Instant::now() + Duration::from_secs(60));
    while time() * 4.0 > first {
        assert!(Instant::now() < until, "each call takes as long as the first, {first} ms");
    }
}

#[test]
fn a_script_runs_in_the_memory_that_its_file_grants() {
    let source = "def run(args):\n    return len(args[\"x\"])";
    let file = format!(
        "---\nparameters: {{x: {{type: string}}}}\nlimits: {{memoryMb: 5}}\nscript: |\n{}---\nA tool.\n",
        indented(source)
    );
    let crib = project(&[("t.md", &file)]);
    let mut client = Client::initialized(&crib, &["--tools", "t.md"], &json!({}));
    for _ in 0..CALLS {
        assert_eq!(answer(&client.call("t", &json!({"x": "y"}))), "1");
    }
    // With more memory, arguments that are longer than all that is free at first.
    let file = file.replace("memoryMb: 5", "memoryMb: 16");
    fs::write(crib.path("t.md"), file).unwrap();
    let mut client = Client::initialized(&crib, &["--tools", "t.md"], &json!({}));
    for _ in 0..CALLS {
        assert_eq!(answer(&client.call("t", &json!({"x": "y".repeat(2 << 20)}))), "2097152");
    }
}

#[test]
fn every_call_starts_with_fresh_values_of_the_top_level() {
    let source = "seen, counts = [], {\"n\": 0}\n\ndef run(args):\n    seen.append(1)\n    counts[\"n\"] += 1\n    return [len(seen), counts[\"n\"]]";
    for answer in answers(source) {
        assert_eq!(answer, "[1,1]");
    }
}

#[test]
fn a_top_level_that_calls_the_host_runs_in_every_call() {
    let source = "ID = uuid.v4()\nNAME = env.get(\"IMAGE_NAME\", \"nobody\")\n\ndef run(args):\n    return ID + NAME";
    let all = answers(source);
    assert!(all.iter().all(|answer| answer.ends_with("nobody\"")), "{all:?}");
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), CALLS);
}

#[test]
fn errors_of_the_top_level_and_of_the_entry_stay_the_same_from_call_to_call() {
    for (lines, error) in [
        ("fail(\"never read\")\n\ndef run(args):\n    return 1", "never read"),
        ("def run(args):\n    return args[\"y\"]", "Key `\\\"y\\\"` was not found"),
    ] {
        for answer in answers(lines) {
            assert_eq!(answer, format!("{{\"error\":\"tool error: {error}\"}}"));
        }
    }
}

#[test]
fn a_script_that_is_too_large_for_an_image_works_in_every_call() {
    let source =
        "MANY = [str(n) for n in range(20000)]\n\ndef run(args):\n    MANY.append(\"x\")\n    return len(MANY)";
    for answer in answers(source) {
        assert_eq!(answer, "20001");
    }
}

#[test]
fn a_hook_keeps_its_condition_from_call_to_call_and_nothing_else() {
    let crib = project(&[
        (".harness/tools/echo.md", &tool("return args")),
        (
            ".harness/hooks/guard.md",
            "---\nevent: tool.pre\nwhen: payload[\"args\"].get(\"task\") == \"no\"\nscript: |\n  seen = []\n  def handle(event, payload):\n      seen.append(1)\n      return block(\"seen %d\" % len(seen))\n---\nA hook.\n",
        ),
    ]);
    let mut client = Client::initialized(&crib, &[], &json!({}));
    for _ in 0..CALLS / 2 {
        let allowed = client.call("echo", &json!({"task": "yes"}));
        assert_eq!(answer(&allowed), r#"{"task":"yes"}"#);
        let blocked = client.call("echo", &json!({"task": "no"}));
        assert!(answer(&blocked).contains("blocked by hook \\\"guard\\\": seen 1"), "{blocked}");
    }
}

#[test]
fn calls_at_once_with_one_image_do_not_meet() {
    let folder = Crib::new();
    write(
        &folder,
        "t.md",
        "---\nparameters: {n: {type: number}}\nscript: |\n  seen = []\n  def run(args):\n      seen.append(args[\"n\"])\n      return seen\n---\nA tool.\n",
    );
    let builder = toolcrib::Runtime::builder(toolcrib::Audit::off()).source(folder.path("t.md"));
    let runtime = builder.interpreter(toolcrib_embedded::interpreter().unwrap()).build().unwrap();
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    tokio.block_on(async {
        for _ in 0..4 {
            let calls = (0..32).map(|n| {
                let runtime = &runtime;
                async move {
                    let result = runtime.call(toolcrib::ToolCall::new("c", "t", format!("{{\"n\":{n}}}"))).await;
                    assert_eq!(result.content(), format!("[{n}]"));
                }
            });
            futures::future::join_all(calls).await;
        }
    });
}
