//! Output of a running call: in order, bounded, and nothing after its end.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib::Outcome;

use crate::crib::Crib;
use crate::records::watched::on_threads;

use super::{Shown, call, crib, runtime, watched};

#[test]
fn parts_are_told_in_their_order_before_the_end() {
    let crib = crib();
    let (runtime, shown) = watched(&crib);
    let result = call(&runtime, "stream", json!({}));
    assert_eq!(result.content(), "done");
    assert_eq!(
        shown.all(),
        ["started", "1 one", "2 two", "3 three", "4 Progress { done: 3, total: Some(3) }", "ended ok"]
    );
    assert_eq!((result.receipt.parts, result.receipt.dropped_parts), (4, 0));
    assert_eq!(result.log, "info: all is shown\n");
}

#[test]
fn a_flood_of_parts_is_bounded_and_counted() {
    let crib = crib();
    let (runtime, shown) = watched(&crib);
    let result = call(&runtime, "flood", json!({"count": 5000}));
    assert_eq!(result.content(), "5000 shown");
    assert_eq!((result.receipt.parts, result.receipt.dropped_parts), (1000, 4000));
    let output = shown.all();
    assert_eq!(output.len(), 1002, "started, a thousand parts, ended");
    assert!((0..1000).all(|n| output[n + 1] == format!("{} {n}", n + 1)), "in their order");
}

#[test]
fn the_bytes_of_parts_are_bounded_too() {
    let crib = crib();
    let (runtime, _) = watched(&crib);
    let result = call(&runtime, "flood", json!({"count": 3, "bytes": 400 << 10}));
    assert_eq!((result.receipt.parts, result.receipt.dropped_parts), (2, 1));
}

#[test]
fn a_part_after_the_end_is_dropped_and_counted() {
    let crib = crib();
    let (runtime, shown) = watched(&crib);
    let result = call(&runtime, "part_after_end", json!({}));
    assert_eq!(result.content(), "over");
    assert_eq!((result.receipt.parts, result.receipt.dropped_parts), (0, 1));
    assert_eq!(shown.all(), ["started", "ended ok"]);
}

#[test]
fn a_conversation_has_a_watcher_of_its_own() {
    let crib = crib();
    let runtime = runtime(&crib, |builder| builder);
    let (one, other) = (Arc::new(Shown::default()), Arc::new(Shown::default()));
    let (first, second) = (runtime.session(), runtime.session());
    first.watched_by(one.clone());
    second.watched_by(other.clone());
    let stream = || toolcrib::ToolCall::new("c", "stream", "{}");
    on_threads(async {
        assert_eq!(first.call(stream()).await.receipt.outcome, Outcome::Ok);
        assert!(other.all().is_empty());
        assert_eq!(second.call(stream()).await.receipt.outcome, Outcome::Ok);
    });
    assert_eq!(one.all(), other.all());
    assert_eq!(one.all().len(), 6);
}

#[test]
fn the_program_shows_parts_as_they_come() {
    let crib = crib();
    let ran = crib.run(&["call", "stream", "--tools", "rich.wasm"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "\"done\"\n"), "{ran:?}");
    let shown: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with('┊')).collect();
    assert_eq!(shown.len(), 4, "{ran:?}");
    assert!(shown[0].ends_with("one") && shown[3].ends_with("3 of 3"), "{ran:?}");
    let ran = crib.run(&["call", "stream", "--tools", "rich.wasm", "--json", "--stream"]);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let parts: Vec<_> = lines.iter().filter(|line| line["type"] == "part").collect();
    assert_eq!(
        parts.iter().map(|part| part["part"]["text"].clone()).take(3).collect::<Vec<_>>(),
        ["one", "two", "three"]
    );
    assert_eq!(parts[3]["part"], json!({"type": "progress", "done": 3, "total": 3}));
    assert!(parts.windows(2).all(|pair| pair[0]["ms"].as_f64() <= pair[1]["ms"].as_f64()), "{parts:?}");
    assert_eq!(lines.last().unwrap()["result"], "done");
}

#[test]
fn a_run_tells_parts_previews_and_what_people_are_shown() {
    let crib = crib();
    let calls = json!([
        {"name": "echo", "arguments": {"value": "x"}},
        {"name": "stream", "arguments": {}},
        {"name": "picture", "arguments": {}},
    ]);
    let script = json!({"prompt": "go", "turns": [{"tool_calls": calls}, {"content": "done"}]});
    std::fs::write(crib.path("script.json"), script.to_string()).unwrap();
    let events = |crib: &Crib, more: &[&str]| {
        let mut args = vec!["run", "--script", "script.json", "--tools", "rich.wasm", "--json"];
        args.extend(more);
        let ran = crib.run(&args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>()
    };
    let events = events(&crib, &[]);
    let kinds = |kind: &str| events.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    assert_eq!(kinds("tool_preview")[0]["text"], "echo value='x'");
    assert_eq!(kinds("tool_part").iter().map(|part| part["number"].clone()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let results = kinds("tool_result");
    assert_eq!(results[0]["content"], "x", "text is told as it is");
    assert_eq!(results[0]["plugin"], "toolcrib-test-rich");
    assert_eq!(results[2]["shown"][0]["mimeType"], "image/png");
    let place = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap();
    let of_stream = |kind: &str| {
        let is = |event: &Value| event["type"] == kind && event["name"] == "stream";
        events.iter().position(is).unwrap()
    };
    assert!(place("tool_part") == of_stream("tool_part") && of_stream("tool_part") < of_stream("tool_result"));
    let ran = crib.run(&["run", "--script", "script.json", "--tools", "rich.wasm", "--set", "records.media_dir=seen"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(&std::fs::read(crib.path("seen/dot.png")).unwrap()[1..4], b"PNG");
    assert!(ran.stderr.contains("» echo value='x'") && ran.stderr.contains("┊"), "{ran:?}");
}
