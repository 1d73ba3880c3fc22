//! Projects of `toolcrib new tool --lang`, if `guest-sdk/examples/build` has installed their compilers: a request with a secret,
//! progress, another tool, and what a model and an author see of each way to fail.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::answering::{Answer, Server};
use crate::crib::{Crib, Ran, target};

/// Language, its code, and the folder of its compiler.
const PYTHON: (&str, &str, &str) = ("python", "app.py", "python/bin");
const JAVASCRIPT: (&str, &str, &str) = ("javascript", "app.js", "javascript/node_modules/.bin");
const SECRET: &str = "canary~7f/Q+3=x&9Zk";

/// A built project with the tools `issues` and `fail`, and the server that they may call.
struct Project {
    crib: Crib,
    server: Server,
    flags: [String; 3],
}

impl Project {
    /// Creates and builds the project; prints a message if its compiler is missing.
    fn build((language, code, compiler): (&str, &str, &str)) -> Option<Self> {
        let compiler = target().join("examples/tools").join(compiler);
        if !compiler.exists() {
            eprintln!("skipped: `guest-sdk/examples/build` has not installed {}", compiler.display());
            return None;
        }
        let crib = Crib::new();
        let server = Server::start().replies("/issues", |request| {
            let titles = json!({"titles": [format!("über {}", request.json()["page"])]});
            Answer::new(200).json(titles)
        });
        assert_eq!(crib.run(&["new", "tool", "demo", "--lang", language]).code, Some(0));
        let fixture = fs::read_to_string(format!("{}/../tests/fixtures/languages/{code}", env!("CARGO_MANIFEST_DIR")));
        fs::write(crib.path("demo").join(code), fixture.unwrap()).unwrap();
        let host = server.uri();
        let secret = json!({"name": "tracker", "host": host, "header": "Authorization", "format": "Bearer {}"});
        let descriptors = json!([
            {"name": "issues", "capabilities": {"network": [host], "secrets": [secret]}},
            {"name": "fail", "capabilities": {"network": [host], "tools": ["no_such_tool"]}, "limits": {"memoryMb": 128}},
        ]);
        fs::write(crib.path("demo/descriptor.json"), descriptors.to_string()).unwrap();
        let mut script = crib.toolcrib(&[]);
        let own: Vec<_> =
            script.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect();
        let program = std::path::Path::new(script.get_program()).parent().unwrap().to_owned();
        script = Command::new(crib.path("demo/build"));
        let others = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
        let path = std::env::join_paths([vec![compiler, program], others].concat()).unwrap();
        let ran = Ran::of(script.env_clear().envs(own).env("PATH", path).current_dir(crib.path("demo")));
        assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (Some(0), "demo.wasm\n", ""), "{language}");
        let stored = Ran::with_input(&mut crib.toolcrib(&["secret", "set", "tracker"]), SECRET);
        assert_eq!(stored.code, Some(0), "{stored:?}");
        let flags = [
            "--tools=demo/demo.wasm".to_owned(),
            format!("--allow-net={host}"),
            format!("--allow-secret=tracker@{host}#header:authorization"),
        ];
        Some(Self { crib, server, flags })
    }

    fn call(&self, name: &str, arguments: &Value) -> Value {
        self.crib.call(name, arguments, &self.flags.each_ref().map(String::as_str))
    }

    /// Fails in some way; returns the outcome, and the error as a model sees it.
    fn fail(&self, way: &str) -> (String, Value) {
        let line = self.call("fail", &json!({"way": way, "url": self.server.uri()}));
        assert!(!line["receipt"]["denied"].to_string().contains("read"), "{way}: {line}");
        (line["receipt"]["outcome"].as_str().unwrap().to_owned(), line["error"].clone())
    }

    /// Checks the requests, the secret and the progress of a call.
    fn lists_issues(&self) {
        let line = self.call("issues", &json!({"url": self.server.uri()}));
        let pages = json!([{"number": 1, "titles": ["über 1"]}, {"number": 2, "titles": ["über 2"]}]);
        assert_eq!((&line["result"], &line["receipt"]["secrets"]), (&pages, &json!(["tracker"])), "{line}");
        assert_eq!(line["receipt"]["parts"], 4, "two texts and two measures: {line}");
        let received = self.server.received();
        assert_eq!(received.len(), 2);
        for request in received {
            assert_eq!(request.header("authorization"), Some(&*format!("Bearer {SECRET}")));
            assert_eq!(request.header("content-type"), Some("application/json"));
        }
        let line = self.call("issues", &json!({"url": self.server.uri(), "pages": 0}));
        assert_eq!(line["receipt"]["outcome"], "bad-arguments", "{line}");
    }

    /// Checks the errors that have a kind, and those that the host reports.
    fn fails_with_kinds(&self) {
        let missing = format!("{}/missing answered with status 404", self.server.uri());
        for (way, outcome, error) in [
            (
                "invalid",
                "bad-arguments",
                json!({"error": "the title is too long", "kind": "invalid", "details": {"longest": 80}}),
            ),
            ("not-found", "failed", json!({"error": "no issue 7", "kind": "not-found"})),
            ("conflict", "failed", json!({"error": "issue 7 was closed", "kind": "conflict"})),
            ("unavailable", "upstream", json!({"error": "the tracker rests", "kind": "unavailable"})),
            ("failed", "failed", json!("no luck")),
            ("tool", "failed", json!("unknown tool: no_such_tool")),
            ("status", "failed", json!({"error": missing, "kind": "not-found", "details": {"status": 404}})),
        ] {
            assert_eq!(self.fail(way), (outcome.to_owned(), error), "{way}");
        }
        let flags = [&self.flags.each_ref().map(String::as_str)[..], &["--tool-timeout=1s"]].concat();
        assert_eq!(self.crib.outcome("fail", &json!({"way": "loop", "url": ""}), &flags), "deadline");
        let (outcome, error) = self.fail("denied");
        assert_eq!(outcome, "denied", "{error}");
    }

    /// Checks the message of each crash.
    fn crashes(&self, crashes: &[(&str, &str)]) {
        for (way, message) in crashes {
            let (outcome, error) = self.fail(way);
            assert_eq!((&*outcome, error.as_str()), ("failed", Some(*message)), "{way}: {error}");
        }
    }
}

#[test]
fn a_project_in_python_calls_an_api_and_fails_in_plain_words() {
    let Some(project) = Project::build(PYTHON) else { return };
    project.lists_issues();
    project.fails_with_kinds();
    project.crashes(&[
        ("key", "app.py:37: KeyError: 'key'"),
        ("exit", "app.py:39: SystemExit: enough"),
        ("recursion", "app.py:31: RecursionError: maximum recursion depth exceeded"),
        ("memory", "app.py:43: MemoryError"),
        ("import", "app.py:45: ModuleNotFoundError: No module named 'wave'; import it at the top of the file"),
        ("answer", "app.py:60: the answer is not JSON: a value of the type `object`"),
    ]);
    let url = project.server.uri();
    let arguments = json!({"way": "key", "url": url}).to_string();
    let ran = project.crib.run(&["call", "fail", &arguments, &project.flags[0]]);
    let end = "|   File \"/0/app.py\", line 37, in crash\n|     return {\"a\": 1}[way]\n";
    assert!(ran.stderr.contains(end) && ran.stderr.contains("| KeyError: 'key'\n"), "{ran:?}");
    assert!(!ran.stderr.contains("--allow-read") && !ran.stderr.contains("`files`"), "{ran:?}");
}

#[test]
fn a_project_in_javascript_calls_an_api_and_fails_in_plain_words() {
    let Some(project) = Project::build(JAVASCRIPT) else { return };
    project.lists_issues();
    project.fails_with_kinds();
    project.crashes(&[
        ("key", "app.js:28: TypeError: cannot read property 'key' of undefined"),
        ("memory", "app.js:32: InternalError: out of memory"),
        ("import", "app.js:34: ReferenceError: require is not defined"),
        ("answer", "the answer of `fail` is not JSON: a function"),
        ("number", "the answer of `fail` is not JSON: NaN in `mean`"),
        ("map", "the answer of `fail` is not JSON: a value of the type Map in `totals`"),
        ("thrown", "threw {\"code\":7}"),
    ]);
    let rounded = json!({"way": "failed", "url": "9007199254740993", "id": 9_007_199_254_740_993_u64});
    let line = project.call("fail", &rounded);
    let error = "9007199254740993 is no exact number in JavaScript; pass it as a text";
    assert_eq!(
        (&line["receipt"]["outcome"], &line["error"]["error"]),
        (&json!("bad-arguments"), &json!(error)),
        "{line}"
    );
    let (outcome, error) = project.fail("recursion");
    assert_eq!((&*outcome, error), ("stack", json!("tool recursed too deeply")));
}
