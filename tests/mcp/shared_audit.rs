//! Heads of the audit log in the database of several servers: a log that was cut back, or removed, is not the one that the servers
//! have noted.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::http::{Server, token};
use super::shared::{settings, shared};
use crate::crib::Crib;

/// Makes a call at a server, and lets the server end, which notes the last record.
fn call(crib: &Crib, token: &str, config: &str) {
    let mut server = Server::start(crib, &[config]);
    let answer = server.request("tools/call", json!({"name": "echo", "arguments": {}}), token).message();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let id = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    server.child.wait().unwrap();
}

#[test]
fn a_log_that_was_cut_back_or_removed_is_not_the_one_that_its_servers_have_noted() {
    let Some(postgres) = shared() else { return };
    let crib = Crib::with_guests(&["echo"]);
    let ada = token(&crib, "ada", &[]);
    let config = settings(postgres, &crib, "audit", "");
    let verified = |more: &[&str]| crib.run(&[&["audit", "verify"], more].concat());
    call(&crib, &ada, config);
    let files =
        || fs::read_dir(crib.path("audit")).unwrap().map(|file| file.unwrap().path()).filter(|file| file.is_file());
    let before: Vec<_> = files().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    call(&crib, &ada, config);
    let sound = verified(&[config]);
    assert!(
        sound.code == Some(0) && sound.stdout.contains("shared store: 2 heads of this log, the last one of record 2"),
        "{sound:?}"
    );
    // The shorter log is sound by itself.
    let is_new = |path: &PathBuf| before.iter().all(|(earlier, _)| earlier != path);
    files().filter(is_new).for_each(|path| fs::remove_file(path).unwrap());
    before.iter().for_each(|(path, content)| fs::write(path, content).unwrap());
    assert_eq!(verified(&[]).code, Some(0));
    let cut = verified(&[config, "--json"]);
    let report: Value = serde_json::from_str(&cut.stdout).unwrap();
    let problems = report["problems"].as_array().unwrap();
    assert!(cut.code == Some(1) && problems.len() == 1, "{cut:?}");
    assert_eq!((&report["sound"], &report["noted"][1]["seq"], &report["last"]), (&json!(false), &json!(2), &json!(1)));
    // A server that goes on with it takes the notes for the truth.
    call(&crib, &ada, config);
    let noted = "SELECT convert_from(value, 'UTF8') FROM toolcrib.entry WHERE space = 'audit' AND kind = 'audit-head'";
    let heads: Value = serde_json::from_str(&postgres.query(noted)).unwrap();
    assert_eq!(heads, report["noted"]);
    // Also once the log is longer than it was.
    call(&crib, &ada, config);
    let heads: Value = serde_json::from_str(&postgres.query(noted)).unwrap();
    assert_eq!(heads, report["noted"]);
    assert_eq!(verified(&[config]).code, Some(1));
    fs::remove_dir_all(crib.path("audit")).unwrap();
    let removed = verified(&[config]);
    assert!(removed.code == Some(1) && !removed.stderr.is_empty(), "{removed:?}");
}
