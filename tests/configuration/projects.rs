//! The file of a project: keys that it cannot have, empty lists of a stranger, folders outside of the project, and commas in
//! paths.

use std::fs;

use serde_json::json;

use super::{granted, json as parsed, write_project, write_user};
use crate::crib::Crib;
use crate::screen::Page;

/// Keys of the host, each with a value.
const OF_THE_HOST: [(&str, &str); 11] = [
    ("model.api_key_env", "\"PATH\""),
    ("approvals.file", "\"elsewhere\""),
    ("approvals.pending", "\"elsewhere\""),
    ("network.ca", "[\"elsewhere\"]"),
    ("records.audit_dir", "\"elsewhere\""),
    ("records.results_dir", "\"elsewhere\""),
    ("records.keyvalue_dir", "\"elsewhere\""),
    ("cache.dir", "\"elsewhere\""),
    ("cache.max", "\"1MiB\""),
    ("secrets.store", "\"file\""),
    ("secrets.file", "\"elsewhere\""),
];

fn line(key: &str, value: &str) -> String {
    let (section, name) = key.split_once('.').unwrap();
    format!("[{section}]\n{name} = {value}\n")
}

#[test]
fn a_project_decides_on_no_place_of_the_host_no_credential_and_no_approval() {
    let page = Page::new();
    for trusts in [false, true] {
        let mut crib = Crib::with_guests(&["echo"]);
        crib.trusts = trusts;
        for (key, value) in OF_THE_HOST {
            write_project(&crib, &line(key, value));
            page.text("toolcrib.toml", line(key, value));
            page.run(&crib, &["call", "echo", "{}"]);
        }
        assert!(!crib.path("elsewhere").exists() && crib.records().is_empty());
    }
    page.matches("config/host-keys");
}

#[test]
fn a_key_of_the_host_is_refused_by_set_and_named_by_explain_and_schema() {
    let page = Page::new();
    let crib = Crib::new();
    let schema = parsed(&crib.run(&["config", "schema"]));
    for (key, value) in OF_THE_HOST {
        page.run(&crib, &["config", "set", "--project", key, value.trim_matches('"')]);
        page.run(&crib, &["config", "explain", key]);
        let (section, name) = key.split_once('.').unwrap();
        let described = schema["$defs"][section]["properties"][name]["description"].as_str().unwrap();
        assert!(described.contains("not in a project's file"), "{described}");
    }
    assert!(!crib.path("toolcrib.toml").exists());
    write_user(&crib, "[cache]\nmax = \"2GiB\"\n");
    let explained = parsed(&crib.run(&["config", "explain", "cache.max", "--json"]));
    assert_eq!(explained["settings"][0]["layers"], json!(["profile", "user", "system"]));
    page.matches("config/host-keys-set");
}

#[test]
fn a_file_that_the_user_names_may_have_keys_of_the_host() {
    let crib = Crib::with_guests(&["echo"]);
    fs::write(crib.path("mine.toml"), "[records]\nkeyvalue_dir = \"kept\"\n[cache]\nmax = \"2GiB\"\n").unwrap();
    assert_eq!(crib.run(&["call", "echo", "{}", "--config", "mine.toml"]).code, Some(0));
}

#[test]
fn empty_lists_of_a_strangers_file_take_nothing_away() {
    let page = Page::new();
    let mut crib = Crib::with_guests(&["echo"]);
    crib.trusts = false;
    write_user(
        &crib,
        "[allow]\nread = [\"./work\"]\n[sources]\ntools = [\"./tools.json\"]\n[run]\ntags = [\"mine\"]\n",
    );
    let source = toolcrib::policy::review(&crib.path("tools.json")).unwrap().digest;
    let trust = format!("--trust={source}");
    assert_eq!(granted(&crib, &[]), "[]", "settings grant an untrusted source nothing");
    let before = granted(&crib, &[&trust]);
    assert!(before.contains("work"), "{before}");
    write_project(&crib, "[allow]\nread = []\n[sources]\ntools = []\n[run]\ntags = []\n[deny]\nread = []\n");
    assert_eq!(granted(&crib, &[&trust]), before);
    page.run(&crib, &["config", "explain", "allow.read"]);
    page.run(&crib, &["list", &trust]);
    crib.trusts = true;
    assert_eq!(granted(&crib, &[]), "[]", "an empty list of a trusted file takes the grants away");
    page.matches("config/empty-lists");
}

#[test]
#[cfg(unix)]
fn a_folder_with_a_comma_is_granted_and_denied_whole() {
    let crib = Crib::with_guests(&["echo"]);
    fs::create_dir_all(crib.path("a,b/docs")).unwrap();
    crate::crib::link("a,b/docs", &crib.path("plain"));
    fs::write(crib.path("a,b/grants.toml"), "[allow]\nread = [\"docs\"]\n").unwrap();
    let shown = granted(&crib, &["--config=a,b/grants.toml"]);
    assert!(shown.contains("a,b/docs"), "{shown}");
    fs::write(crib.path("a,b/denials.toml"), "[deny]\nread = [\"docs\"]\n").unwrap();
    let shown = granted(&crib, &["--config=a,b/denials.toml", "--allow-read=plain"]);
    assert_eq!(shown, "[]");
}

#[test]
#[cfg(unix)]
fn a_grant_of_a_project_never_leads_out_of_its_folder() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(crib.path("docs")).unwrap();
    write_project(&crib, "[allow]\nread = [\"docs\"]\nwrite = [\"link\"]\n");
    crate::crib::link("work", &crib.path("link"));
    let shown = granted(&crib, &[]);
    assert!(shown.contains("docs") && shown.contains("work"), "a link inside of the project: {shown}");
    // The file and its digest stay as they were trusted.
    fs::remove_dir(crib.path("docs")).unwrap();
    crate::crib::link(outside.path().to_str().unwrap(), &crib.path("docs"));
    page.run(&crib, &["call", "echo", "{}"]);
    for path in ["..", "work/../..", outside.path().to_str().unwrap(), "docs/missing"] {
        write_project(&crib, &format!("[allow]\nwrite = [{path:?}]\n"));
        page.text("toolcrib.toml", format!("[allow]\nwrite = [{path:?}]\n"));
        page.run(&crib, &["call", "echo", "{}"]);
    }
    assert_eq!(crib.records(), [] as [serde_json::Value; 0]);
    fs::write(crib.path("mine.toml"), format!("[allow]\nread = [{:?}]\n", outside.path())).unwrap();
    page.run(&crib, &["call", "echo", "{}", "--config=mine.toml"]);
    page.matches("config/leads-out");
}
