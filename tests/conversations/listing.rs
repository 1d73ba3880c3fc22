//! `runs list`, `show`, `export` and `remove`.

use serde_json::{Value, json};

use super::model::Model;
use super::place::*;
use crate::screen::Page;

fn place() -> (Place, Model) {
    let place = Place::new();
    let model = Model::start(vec![calls("I look.", "mark", &["a"]), says("It is done.")], None);
    for prompt in ["find the invoice", "count \u{1b}[2J files"] {
        assert_eq!(place.run(&model, &["run", prompt]).code, Some(0));
    }
    (place, model)
}

#[test]
fn runs_are_listed_and_found_by_their_words() {
    let page = Page::new();
    let (place, model) = place();
    page.note("newest first");
    page.run(&place.crib, &["runs", "list"]);
    let found = |args: &[&str]| -> Vec<String> {
        let ran = place.crib.run(&[&["runs", "list", "--json"], args].concat());
        let runs: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        runs.iter().map(|run| run["prompt"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found(&["--search", "INVOICE"]), ["find the invoice"]);
    assert_eq!(found(&["--search", "it is done"]).len(), 2, "in answers too");
    assert_eq!(found(&["--search", "mark"]).len(), 2, "and in calls");
    assert!(found(&["--search", "no such word"]).is_empty());
    assert_eq!(found(&["--last", "1"]).len(), 1);
    assert_eq!(found(&["--here"]).len(), 2);
    std::fs::create_dir(place.path("work/work")).unwrap();
    let elsewhere = place.command(&model, &["run", "elsewhere"]).current_dir(place.path("work")).output().unwrap();
    assert!(elsewhere.status.success(), "{elsewhere:?}");
    assert_eq!((found(&[]).len(), found(&["--here"]).len()), (3, 2));
    page.matches("runs/list");
}

#[test]
fn a_run_is_shown_exported_and_loaded() {
    let page = Page::new();
    let (place, model) = place();
    let id = place.listed()[1]["id"].as_str().unwrap().to_owned();
    page.run(&place.crib, &["runs", "show", &id]);
    let json: Value = serde_json::from_str(&place.crib.run(&["runs", "show", &id, "--json"]).stdout).unwrap();
    assert_eq!((&json["id"], &json["state"], &json["changes"]), (&json!(id), &json!("answer"), &json!(["mark"])));
    page.run(&place.crib, &["runs", "export", &id, "-o", "talk.json"]);
    page.note("a file is not replaced");
    page.run(&place.crib, &["runs", "export", &id, "-o", "talk.json"]);
    let loaded = place.run(&model, &["run", "and now?", "--load-messages", "talk.json"]);
    assert_eq!((loaded.code, loaded.stdout.as_str()), (Some(0), "It is done.\n"), "{loaded:?}");
    page.matches("runs/show");
}

#[test]
fn runs_are_removed_by_name_by_age_and_all() {
    let page = Page::new();
    let (place, _model) = place();
    let ids: Vec<String> = place.listed().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
    page.run(&place.crib, &["runs", "remove", &ids[0]]);
    page.run(&place.crib, &["runs", "remove", &ids[0]]);
    page.run(&place.crib, &["runs", "remove", "--older-than", "1d"]);
    for wrong in ["soon", "5", "0.5", ""] {
        page.run(&place.crib, &["runs", "remove", "--older-than", wrong]);
    }
    page.run(&place.crib, &["runs", "remove"]);
    page.run(&place.crib, &["runs", "remove", "--all"]);
    assert!(place.listed().is_empty());
    page.matches("runs/remove");
}

#[cfg(unix)]
#[test]
fn an_exported_conversation_is_readable_by_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (place, _model) = place();
    let ids: Vec<String> = place.listed().iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect();
    let file = place.path("talk.json");
    let export = |id: &str, args: &[&str]| place.crib.run(&[&["runs", "export", id, "-o", "talk.json"], args].concat());
    let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!((export(&ids[0], &[]).code, mode()), (Some(0), 0o600));
    let before = std::fs::read_to_string(&file).unwrap();
    assert_eq!(export(&ids[1], &[]).code, Some(1));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!((export(&ids[1], &["--force"]).code, mode()), (Some(0), 0o600));
    assert_ne!(std::fs::read_to_string(&file).unwrap(), before);
    assert_eq!(place.crib.run(&["runs", "export", &ids[0], "--force"]).code, Some(2), "without a file");
}
