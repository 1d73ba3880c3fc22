//! A file of a run that ends after any line, or within any line: a kill or a crash can leave each of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::model::{Model, Turn};
use super::place::*;

fn turns() -> Vec<Turn> {
    vec![calls("First.", "mark", &["a", "b"]), calls("Then.", "mark", &["c"]), says("It is done.")]
}

#[test]
fn every_beginning_of_a_run_goes_on_to_the_same_end() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    let ran = place.run(&model, &["run", "go"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It is done.\n"), "{ran:?}");
    assert_eq!(place.made().len(), 3);
    let id = place.id();
    let whole = place.file(&id);
    let mut checked = 0;
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    // The first line and the prompt are written before the model is asked.
    for count in 2..lines.len() {
        for torn in [false, true] {
            let mut beginning = lines[..count].concat();
            if torn {
                beginning += &lines[count][..lines[count].len() / 2];
            }
            let kinds: Vec<Value> = lines[..count].iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            fs::write(place.runs().join(format!("{id}.ndjson")), &beginning).unwrap();
            fs::remove_file(place.path("work/log.txt")).unwrap_or_default();
            let ran = place.run(&model, &["run", "--resume", &id]);
            let is_ended = kinds.last().is_some_and(|last| last["type"] == "end");
            let place_of = || format!("after {count} lines, torn: {torn}");
            if is_ended {
                assert_eq!(ran.code, Some(2), "{}: {ran:?}", place_of());
                continue;
            }
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "It is done.\n"), "{}: {ran:?}", place_of());
            let messages = place.messages(&id);
            assert_whole(&messages);
            let begun: Vec<&str> =
                kinds.iter().filter(|line| line["type"] == "begun").filter_map(|line| line["id"].as_str()).collect();
            let made = place.made();
            for call in ["a", "b", "c"] {
                let count = made.iter().filter(|line| line.contains(&format!("\"{call}\""))).count();
                let wanted = usize::from(!begun.contains(&call));
                assert_eq!(count, wanted, "{}: {call} in {made:?}", place_of());
                let kept = kinds.iter().any(|line| line["message"]["tool_call_id"] == call);
                let is_kept = result_of(&messages, call) == "{}";
                assert_eq!(is_kept, kept || wanted == 1, "{}: {call} in {messages:#?}", place_of());
            }
            checked += 1;
        }
    }
    assert!(checked >= 20, "{checked}");
    let mode = fs::metadata(place.runs().join(format!("{id}.ndjson"))).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_damaged_line_is_named_and_nothing_is_changed() {
    let place = Place::new();
    let model = Model::start(turns(), None);
    place.run(&model, &["run", "go"]);
    let id = place.id();
    let damaged = place.file(&id).replacen("\"message\"", "\"massage\"", 2);
    fs::write(place.runs().join(format!("{id}.ndjson")), &damaged).unwrap();
    for args in [&["runs", "show", &id][..], &["runs", "export", &id]] {
        let ran = place.crib.run(args);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(&format!("{id}.ndjson`: line 2")), "{ran:?}");
    }
    assert_eq!(place.run(&model, &["run", "--resume", &id]).code, Some(1));
    assert_eq!(place.file(&id), damaged);
    let listed = place.crib.run(&["runs", "list"]);
    assert!(listed.code == Some(0) && listed.stderr.contains("line 2"), "{listed:?}");
}
