//! Worked examples in Python, JavaScript, C and Go, if `guest-sdk/examples/build` has built them: the same contract, and the same
//! answers.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::crib::{Crib, guest, target};

use super::content;

mod projects;

const LANGUAGES: [&str; 4] = ["python", "javascript", "c", "go"];

/// Path of a built example; prints a message if it is missing.
fn example(name: &str) -> Option<PathBuf> {
    let path = target().join("examples").join(format!("{name}.wasm"));
    if !path.exists() {
        eprintln!("skipped: `guest-sdk/examples/build` has not built {}", path.display());
        return None;
    }
    Some(path)
}

fn call(crib: &Crib, path: &Path, name: &str, arguments: &Value, flags: &[&str]) -> (String, Value) {
    let tools = path.to_str().unwrap();
    let output = crib.call(name, arguments, &[&["--tools", tools], flags].concat());
    (output["receipt"]["outcome"].as_str().unwrap().to_owned(), content(&output))
}

#[test]
fn each_language_gives_the_same_answers() {
    let crib = Crib::new();
    fs::write(crib.path("work/note.txt"), "The the cät").unwrap();
    for language in LANGUAGES {
        let Some(path) = example(&format!("words_{language}")) else { continue };
        let ok = |name: &str, arguments: Value| {
            let (outcome, answer) = call(&crib, &path, name, &arguments, &["--allow-read=work"]);
            assert_eq!(outcome, "ok", "{language}: {answer}");
            answer
        };
        let text = "The the  cät\tthe";
        let lowered = json!({"text": text, "options": {"letters": "lowered"}});
        assert_eq!(ok("count", lowered), json!({"words": 4, "distinct": 2}), "{language}");
        let long = json!({"text": text, "options": {"letters": "as-written", "shortest": 4}});
        let (outcome, answer) = call(&crib, &path, "count", &long, &[]);
        assert_eq!((outcome.as_str(), answer), ("failed", json!({"error": "no-words"})), "{language}");
        let most = ok("most_frequent", json!({"text": text, "limit": 1}));
        assert_eq!(most, json!([{"word": "the", "times": 3}]), "{language}");
        assert_eq!(ok("checksum", json!({"data": "MTIzNDU2Nzg5"})), json!(0xcbf4_3926_u32), "{language}");
        assert_eq!(ok("read", json!({"path": "note.txt"})), json!("The the cät"), "{language}");
        let (outcome, answer) = call(&crib, &path, "read", &json!({"path": "note.txt"}), &[]);
        assert!(outcome != "ok" && answer["error"].as_str().unwrap().starts_with("note.txt"), "{language}: {answer}");
        let (_, answer) = call(&crib, &path, "most_frequent", &json!({"text": "", "limit": 256}), &[]);
        assert_eq!(answer["error"], "invalid arguments: $.limit: 256 does not fit u8", "{language}");
    }
}

#[test]
fn a_plain_program_in_go_runs_as_it_is() {
    let Some(path) = example("count_go") else { return };
    let crib = Crib::new();
    let (outcome, answer) = call(&crib, &path, "count_go", &json!({"text": "The the cat", "lower": true}), &[]);
    assert_eq!(outcome, "ok", "{answer}");
    assert_eq!(answer["words"], 3, "{answer}");
    // Enough for its allocator to grow the memory many times while it reads.
    let many: Vec<_> = (0..40_000).map(|number| format!("w{number}")).collect();
    fs::write(crib.path("many.json"), json!({"text": many.join(" "), "lower": true}).to_string()).unwrap();
    let mut command = crib.toolcrib(&["call", "count_go", "-", "--json", "--tools", path.to_str().unwrap()]);
    command.stdin(fs::File::open(crib.path("many.json")).unwrap());
    let line: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(
        (&line["receipt"]["outcome"], &line["result"]),
        (&json!("ok"), &json!({"words": 40_000, "distinct": 40_000}))
    );
}

#[test]
fn a_model_calls_three_languages_in_one_step() {
    let crib = Crib::new();
    let mut tools = Vec::new();
    for (name, function) in [("python", "most_frequent"), ("javascript", "checksum")] {
        let Some(path) = example(&format!("words_{name}")) else { return };
        crib.install(&path, name);
        tools.push(json!({"name": name, "command": [format!("./tools/bin/{name}"), function]}));
    }
    tools.push(json!({"name": "count", "command": ["./tools/bin/python", "count"]}));
    crib.install(&guest("typed"), "rust");
    tools.push(json!({"name": "rust", "command": ["./tools/bin/rust", "add"], "description": "Add."}));
    crib.manifest(&json!({ "tools": tools }));
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let calls = [
        call("python", json!({"text": "a b a", "limit": 1})),
        call("javascript", json!({"data": "MTIzNDU2Nzg5"})),
        call("rust", json!({"a": 40, "b": 2})),
    ];
    let script = json!({"turns": [{"tool_calls": calls}, {"content": "done"}]});
    fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json", "--json", "Go."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for answer in [r#"[{\"word\":\"a\",\"times\":2}]"#, "3421780262", r#""42""#] {
        assert!(ran.stdout.contains(answer), "{answer}: {}", ran.stdout);
    }
    assert_eq!(crib.records().iter().filter(|record| record["outcome"] == "ok").count(), 3);
    // The interpreter looks for folders at each start, and the error is about something else.
    let failed = crib.run(&["call", "count", r#"{"text":"","options":{"letters":"lowered"}}"#]);
    assert!(failed.code == Some(1) && failed.stdout.contains("no-words"), "{failed:?}");
    assert!(!failed.stderr.contains("--allow-read"), "{failed:?}");
}
