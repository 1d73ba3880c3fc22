//! Locks that others wrote, that were edited by hand, or that were lost: nothing is granted that the user did not agree to.

use std::fs;

use serde_json::{Value, json};

use super::{FILE, Release, crib, installed, lines, lock, lock_file, records, stored};
use crate::crib::{Crib, Ran};
use crate::screen::Page;

/// Runs a command as another user, who has a home of their own.
fn as_other(crib: &Crib, args: &[&str]) -> Ran {
    fs::create_dir_all(crib.path("other")).unwrap();
    Ran::from(crib.toolcrib(args).env("HOME", crib.path("other")).output().unwrap())
}

/// Replaces the first digest of a key by zeros.
fn zeroed(text: &str, key: &str) -> String {
    let (before, after) = text.split_once(&format!("\n{key} = \"sha256:")).unwrap();
    format!("{before}\n{key} = \"sha256:{}{}", "0".repeat(64), &after[64..])
}

#[test]
fn a_lock_of_somebody_else_makes_nothing_available() {
    let (crib, _) = installed();
    let entry = crib.entry("echo");
    crib.manifest(&json!({ "tools": [entry] }));
    let ran = as_other(&crib, &["list", "--json"]);
    let tools: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((tools.len(), &tools[0]["name"]), (1, &json!("echo")), "{ran:?}");
    assert!(ran.stderr.contains("bundle `acme/weather` of `toolcrib.lock` is not installed for you"), "{ran:?}");
    assert!(ran.stderr.contains("`toolcrib install`"), "{ran:?}");
}

#[test]
fn a_machine_installs_exactly_the_lock_or_fails() {
    let (crib, digest) = installed();
    let before = lock(&crib);
    let ran = as_other(&crib, &["install", "--frozen", "--json"]);
    let line = lines(&ran).remove(0);
    assert_eq!((ran.code, &line["refusals"][0]["code"]), (Some(1), &json!("needs-review")), "{line}");
    let cure = format!("toolcrib install --frozen --trust={digest}");
    assert_eq!(line["refusals"][0]["cure"], cure);
    let trust = format!("--trust={digest}");
    let ran = as_other(&crib, &["install", "--frozen", &trust]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(as_other(&crib, &["install", "--frozen"]).code, Some(0), "again, without the digest");
    assert_eq!(lock(&crib), before);
    Release::new("1.3.0").write(&crib, FILE);
    let line = lines(&as_other(&crib, &["install", "--frozen", "--json"])).remove(0);
    assert_eq!(line["refusals"][0]["code"], "wrong-digest", "{line}");
    assert_eq!(lock(&crib), before);
}

#[test]
fn an_edited_lock_grants_nothing_and_is_refused() {
    type Edit = (&'static str, fn(&str) -> String, &'static str);
    let edits: [Edit; 5] = [
        (
            "a grant that nobody asked for",
            |text| text.replace("\"env:TOKEN\",", "\"env:TOKEN\",\n  \"env:PATH\","),
            "lock-differs",
        ),
        (
            "no grant",
            |text| text.replace("granted = [\n  \"env:TOKEN\",\n]\n", "declined = [\"env:TOKEN\"]\n"),
            "lock-differs",
        ),
        ("version", |text| text.replace("version = \"1.2.0\"", "version = \"1.1.0\""), "lock-differs"),
        ("description", |text| zeroed(text, "description"), "lock-differs"),
        ("digest", |text| zeroed(text, "digest"), "wrong-digest"),
    ];
    for (name, edit, code) in edits {
        let (crib, digest) = installed();
        let text = lock(&crib);
        let edited = edit(&text);
        assert_ne!(edited, text, "{name}");
        fs::write(lock_file(&crib), &edited).unwrap();
        let before = records(&crib);
        let ran = crib.run(&["install", "--frozen", "--json"]);
        assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
        assert_eq!(lines(&ran)[0]["refusals"][0]["code"], code, "{name}: {ran:?}");
        assert_eq!((lock(&crib), records(&crib)), (edited, before.clone()), "{name}");
        if code == "lock-differs" {
            // A grant that somebody else wrote counts for nothing: the reviewed ones stay.
            assert_eq!(crib.run(&["install", &format!("--trust={digest}")]).code, Some(0), "{name}");
            assert_eq!(
                (lock(&crib), records(&crib)[0]["bundle"].clone()),
                (text, before[0]["bundle"].clone()),
                "{name}"
            );
        }
    }
}

#[test]
fn a_mistake_in_a_lock_is_an_error_of_every_command_that_reads_it() {
    let page = Page::new();
    let (crib, _) = installed();
    let text = lock(&crib);
    let edits = [
        ("another key", text.replace("granted", "grant")),
        ("no version", text.replace("version = 1\n", "")),
        ("a bundle twice", format!("{text}{}", text.split_once("version = 1\n").unwrap().1)),
        ("no TOML", format!("{text}[[")),
    ];
    for (name, edited) in edits {
        page.note(name);
        fs::write(lock_file(&crib), edited).unwrap();
        for args in [&["list"][..], &["update"], &["install", FILE], &["remove", "acme/weather"], &["outdated"]] {
            page.run(&crib, args);
        }
    }
    page.matches("install/lock-mistake");
}

#[test]
fn a_new_lock_keeps_the_pins_of_the_records() {
    let (crib, digest) = installed();
    let before = lock(&crib);
    fs::remove_file(lock_file(&crib)).unwrap();
    let ran = crib.run(&["install", FILE]);
    assert_eq!(ran.code, Some(0), "the same release was agreed to: {ran:?}");
    assert_eq!(lock(&crib), before);
    fs::remove_file(lock_file(&crib)).unwrap();
    let next = Release { version: "1.1.0", ..Release::new("1.1.0") }.write(&crib, FILE);
    let line = lines(&crib.run(&["install", FILE, &format!("--trust={next}"), "--json"])).remove(0);
    assert_eq!(line["refusals"][0]["code"], "downgrade", "{line}");
    assert!(!lock_file(&crib).exists() && stored(&crib, &digest).is_file());
}

#[test]
fn the_lock_of_a_colleague_is_reviewed_like_an_update() {
    let (crib, first) = installed();
    let next = Release::new("1.3.0").with(|tool| tool["capabilities"]["env"] = json!(["TOKEN", "REGION"]));
    let digest = next.write(&crib, FILE);
    let trust = format!("--trust={digest}");
    assert_eq!(as_other(&crib, &["install"]).code, Some(1), "the file has another content than the lock");
    let ran = as_other(&crib, &["update", "--min-age=0", &trust]);
    assert_eq!(ran.code, Some(0), "a lock without records is the base of an update: {ran:?}");
    assert!(lock(&crib).contains(&digest));
    let line = lines(&crib.run(&["install", "--json"])).remove(0);
    let refusal = &line["refusals"][0];
    assert_eq!(
        (&refusal["code"], &line["requests"][0]["request"]),
        (&json!("needs-review"), &json!("env:REGION")),
        "{line}"
    );
    assert_eq!(records(&crib)[0]["bundle"]["digest"], json!(first));
    let line = lines(&crib.run(&["update", "--json", "--min-age=0"])).remove(0);
    assert_eq!(
        (&line["refusals"][0]["code"], &line["refusals"][0]["cure"]),
        (&json!("wrong-digest"), &json!("toolcrib install --min-age=0s"))
    );
    assert_eq!(crib.run(&["install", &trust]).code, Some(0));
    assert_eq!(records(&crib)[0]["bundle"]["granted"], json!(["env:REGION", "env:TOKEN"]));
}

#[test]
fn a_folder_and_the_records_of_another_have_nothing_in_common() {
    let page = Page::new();
    let (crib, _) = installed();
    fs::create_dir(crib.path("copy")).unwrap();
    fs::copy(lock_file(&crib), crib.path("copy/toolcrib.lock")).unwrap();
    fs::copy(crib.path(FILE), crib.path("copy/weather.tar")).unwrap();
    page.command(crib.toolcrib(&["install", "--frozen"]).current_dir(crib.path("copy")));
    page.matches("install/copied");
}

#[cfg(unix)]
#[test]
fn a_link_to_a_folder_has_the_records_of_the_folder() {
    let (crib, _) = installed();
    let link = crib.path("link");
    std::os::unix::fs::symlink(crib.path("."), &link).unwrap();
    assert_eq!(crib.toolcrib(&["install", "--frozen"]).current_dir(link).output().unwrap().status.code(), Some(0));
}

#[test]
fn a_source_that_is_no_bundle_is_an_error_with_its_name() {
    let page = Page::new();
    let crib = crib();
    fs::write(crib.path("x.tar"), "nothing").unwrap();
    for source in ["./x.tar", "./none.tar", "oci://"] {
        page.run(&crib, &["install", source]);
    }
    page.run(&crib, &["install"]);
    page.matches("install/no-bundle");
}

#[test]
fn a_bundle_that_does_not_fit_into_a_lock_is_refused_and_changes_nothing() {
    let page = Page::new();
    let names = |tool: usize| (0..1000).map(|name| format!("V{tool}_{name}")).collect::<Vec<_>>();
    for tools in [17, 5] {
        page.note(format!("{tools} tools of 1000 variables each"));
        let crib = crib();
        let entry = |tool: usize| {
            let names = names(tool);
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            super::tool(&format!("tool_{tool}"), "Asks for much.", &names)
        };
        let release = Release { tools: (0..tools).map(entry).collect(), ..Release::new("1.0.0") };
        let trust = format!("--trust={}", release.write(&crib, FILE));
        let ran = crib.run(&["install", FILE, &trust, "--grant=none"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        page.text("standard error", &ran.stderr);
        assert!(!lock_file(&crib).exists() && records(&crib).is_empty());
    }
    page.matches("install/too-many");
}

#[test]
fn a_lock_of_somebody_else_hides_no_bundle_of_the_user() {
    let page = Page::new();
    let crib = crib();
    let digest = Release::new("1.2.0").write(&crib, FILE);
    let trust = format!("--trust={digest}");
    page.run(&crib, &["install", FILE, &trust, "--global"]);
    let text = fs::read_to_string(crib.path("home/.config/toolcrib/toolcrib.lock")).unwrap();
    fs::write(lock_file(&crib), zeroed(&text, "digest")).unwrap();
    page.run(&crib, &["list"]);
    page.matches("install/hidden");
}
