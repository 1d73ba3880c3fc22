//! The first installation and the time after it: the built-in tools stay, a removal leaves the folder as it was, references need
//! no scheme, and newer versions of a release are found under their own tags.

use std::fs;

use serde_json::{Value, json};

use super::{FILE, NAME, Release, crib, installed, lines, lock, lock_file, tool};
use crate::crib::{Crib, Ran};
use crate::registries::Registry;
use crate::screen::Page;

/// Names and sources of the listed tools.
fn listed(crib: &Crib) -> Vec<(String, bool)> {
    let ran = crib.run(&["list", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let tools: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let row = |tool: &Value| (tool["name"].as_str().unwrap().to_owned(), tool["source"]["builtin"] == true);
    tools.iter().map(row).collect()
}

/// Installs a release that the command line agrees to.
fn install(crib: &Crib, release: &Release) -> Ran {
    let digest = release.write(crib, FILE);
    let ran = crib.run(&["install", FILE, &format!("--trust={digest}")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

#[test]
fn the_builtin_tools_stay_beside_an_installed_bundle_and_after_its_removal() {
    let crib = crib();
    let before = listed(&crib);
    assert!(before.len() > 10 && before.iter().all(|(_, is_builtin)| *is_builtin), "{before:?}");
    install(&crib, &Release::new("1.2.0"));
    let mut own: Vec<_> = listed(&crib);
    own.retain(|tool| !before.contains(tool));
    assert_eq!(own, [("forecast".to_owned(), false), ("now".to_owned(), false)]);
    assert_eq!(listed(&crib).len(), before.len() + 2);
    let calculated = crib.run(&["call", "calculate", r#"{"expression":"6*7"}"#]);
    assert!(calculated.stdout.contains("42"), "{calculated:?}");
    assert_eq!(crib.run(&["call", "now", "{}"]).code, Some(0));
    let removed = crib.run(&["remove", NAME]);
    assert!(removed.code == Some(0) && !lock_file(&crib).exists(), "{removed:?}");
    assert_eq!(listed(&crib), before);
    assert_eq!(crib.run(&["init"]).code, Some(0), "a folder without a project");
}

#[test]
fn a_removal_keeps_the_lock_of_the_other_bundles() {
    let (crib, _) = installed();
    let clock =
        Release { name: "acme/clock", tools: vec![tool("clock", "Shows the time.", &[])], ..Release::new("1.0.0") };
    install(&crib, &clock);
    assert_eq!(crib.run(&["remove", NAME]).code, Some(0));
    assert!(lock(&crib).contains("acme/clock") && !lock(&crib).contains(NAME), "{}", lock(&crib));
    assert_eq!(crib.run(&["remove", "acme/clock"]).code, Some(0));
    assert!(!lock_file(&crib).exists());
}

#[test]
fn a_bundle_replaces_the_builtin_tools_of_its_names_and_no_others() {
    let crib = crib();
    let before = listed(&crib);
    for (name, replaced) in [("calculate", "calculate"), ("Fs-Read_Lines", "fs_read_lines"), ("ca1culate", "calculate")]
    {
        let tools = vec![tool(name, "Calculates.", &[])];
        install(&crib, &Release { tools, ..Release::new("1.2.0") });
        let mut expected: Vec<_> = before.iter().filter(|(builtin, _)| builtin != replaced).cloned().collect();
        expected.insert(0, (name.to_owned(), false));
        assert_eq!(listed(&crib), expected, "{name}");
        let ran = crib.run(&["call", name, r#"{"expression":"6*7"}"#, "--json"]);
        assert!(ran.code == Some(0) && !ran.stdout.contains(r#""result":"42""#), "{name}: {ran:?}");
        let other = crib.run(&["call", "get_time", r#"{"timezone":"UTC"}"#]);
        assert_eq!(other.code, Some(0), "{name}: {other:?}");
        assert_eq!(crib.run(&["remove", NAME]).code, Some(0));
        assert_eq!(listed(&crib), before, "{name}");
    }
    let page = Page::new();
    page.note("sources that are named share no names");
    install(&crib, &Release { tools: vec![tool("calculate", "Calculates.", &[])], ..Release::new("1.2.0") });
    let ran = crib.run(&["list", "--tools=builtin", "--tools", FILE]);
    assert!(ran.code == Some(1) && ran.stderr.contains("`calculate`"), "{ran:?}");
}

#[test]
fn a_lock_that_nobody_agreed_to_leaves_the_builtin_tools() {
    let (crib, _) = installed();
    let text = lock(&crib);
    let other = super::crib();
    fs::write(lock_file(&other), text).unwrap();
    let tools = listed(&other);
    assert!(tools.len() > 10 && tools.iter().all(|(_, is_builtin)| *is_builtin), "{tools:?}");
    let ran = other.run(&["list"]);
    assert!(ran.stderr.contains("is not installed for you"), "{ran:?}");
}

/// Registry with releases under their versions.
fn published(crib: &Crib, versions: &[&'static str]) -> Registry {
    let registry = Registry::start();
    for version in versions {
        push(crib, &registry, version, version);
    }
    registry
}

/// Pushes a release under a tag, and returns its digest.
fn push(crib: &Crib, registry: &Registry, version: &'static str, tag: &str) -> String {
    let digest = Release::new(version).write(crib, FILE);
    let ran = crib.run(&["push", FILE, &registry.reference(&format!("weather:{tag}"))]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    digest
}

#[test]
fn a_reference_is_installed_as_it_is_pushed() {
    let crib = crib();
    let registry = Registry::start();
    let digest = push(&crib, &registry, "1.2.0", "1.2.0");
    let whole = registry.reference("weather:1.2.0");
    let bare = whole.strip_prefix("oci://").unwrap();
    for reference in [bare.to_owned(), format!("{}@{digest}", bare.trim_end_matches(":1.2.0")), whole.clone()] {
        let ran = crib.run(&["install", &reference, &format!("--trust={digest}")]);
        assert_eq!(ran.code, Some(0), "{reference}: {ran:?}");
        assert!(lock(&crib).contains("source = \"oci://"), "{}", lock(&crib));
        assert_eq!(crib.run(&["remove", NAME]).code, Some(0));
    }
    let ran = crib.run(&["install", bare.trim_end_matches(":1.2.0")]);
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot read the bundle"), "{ran:?}");
}

#[test]
fn a_tag_that_is_a_version_is_updated_to_the_newest_one() {
    let crib = crib();
    let registry = published(&crib, &["1.1.0", "1.2.0"]);
    let first = push(&crib, &registry, "1.0.0", "1.0.0");
    for tag in ["latest", "2", "2.0.0-rc.1", "v3.0.0"] {
        push(&crib, &registry, "9.0.0", tag);
    }
    let reference = registry.reference("weather:1.0.0");
    assert_eq!(crib.run(&["install", &reference, &format!("--trust={first}")]).code, Some(0));
    let outdated = || -> Value { serde_json::from_str(&crib.run(&["outdated", "--json"]).stdout).unwrap() };
    let found = outdated();
    assert_eq!(found[0]["outdated"], true, "{found}");
    assert_eq!(found[0]["present"]["version"], "1.2.0", "{found}");
    assert_eq!(found[0]["present"]["source"], registry.reference("weather:1.2.0"), "{found}");
    let ran = crib.run(&["update", "--min-age=0", "--json"]);
    let line = lines(&ran).remove(0);
    let digest = line["release"]["digest"].as_str().unwrap();
    let ran = crib.run(&["update", "--min-age=0", &format!("--trust={digest}")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(lock(&crib).contains("weather:1.2.0\"") && lock(&crib).contains("version = \"1.2.0\""), "{}", lock(&crib));
    assert_eq!(outdated()[0]["outdated"], false);
    // A tag that lies about its version is found by the comparison of releases.
    push(&crib, &registry, "0.9.0", "1.3.0");
    let line = lines(&crib.run(&["update", "--min-age=0", "--json"])).remove(0);
    assert_eq!(line["refusals"][0]["code"], "downgrade", "{line}");
}

#[test]
fn a_tag_of_one_number_and_a_digest_stay_and_a_registry_without_lists_is_a_warning() {
    let crib = crib();
    let registry = published(&crib, &["1.0.0", "2.0.0"]);
    let first = push(&crib, &registry, "1.0.0", "1");
    push(&crib, &registry, "2.0.0", "2");
    let pinned = format!("{}@{first}", registry.reference("weather:1.0.0"));
    for reference in [registry.reference("weather:1"), pinned] {
        assert_eq!(crib.run(&["install", &reference, &format!("--trust={first}")]).code, Some(0), "{reference}");
        let ran = crib.run(&["outdated", "--json"]);
        let found: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(found[0]["outdated"], false, "{found}");
        assert_eq!(crib.run(&["remove", NAME]).code, Some(0));
    }
    let reference = registry.reference("weather:1.0.0");
    assert_eq!(crib.run(&["install", &reference, &format!("--trust={first}")]).code, Some(0));
    registry.without_lists();
    let ran = crib.run(&["outdated", "--json"]);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, &found[0]["outdated"]), (Some(1), &json!(false)));
    assert!(found[0]["problem"].as_str().unwrap().ends_with("newer versions are not known"), "{found}");
    let ran = crib.run(&["outdated"]);
    assert!(ran.code == Some(1) && !ran.stderr.contains("up to date"), "{ran:?}");
    let ran = crib.run(&["update", "--min-age=0", "--json"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("newer versions are not known"), "{ran:?}");
}
