//! Update cases with bundle files: the screen of each, its code and its cure. The table of all cases with signers is a unit test
//! of the comparison.

use std::fs;

use serde_json::{Value, json};

use super::{FILE, NAME, Release, crib, installed, lines, lock, lock_file, records, stored, tool};
use crate::crib::{Crib, Ran};
use crate::screen::Page;

/// Change of the installed state or of the release.
type Change = fn(&Crib, Release) -> Release;
/// Case: its name, the change, flags, codes of changes, and code of the refusal with the end of its cure.
type Row = (&'static str, Change, &'static [&'static str], &'static [&'static str], (&'static str, &'static str));

const UPDATE: [&str; 2] = ["update", "--min-age=0"];

/// Replaces the pinned signers in the lock and in the user's records, as if the installed release had been signed.
fn sign(crib: &Crib) {
    let text = lock(crib);
    let version = "version = \"1.2.0\"\n";
    fs::write(lock_file(crib), text.replace(version, &format!("{version}signers = [\"key:acme\"]\n"))).unwrap();
    let path = crib.path("home/.local/state/toolcrib/installed.json");
    let mut all: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    all["installed"][0]["bundle"]["signers"] = json!(["key:acme"]);
    fs::write(path, all.to_string()).unwrap();
}

const ROWS: [Row; 10] = [
    (
        "new capability",
        |_, next| next.with(|tool| tool["capabilities"]["env"] = json!(["TOKEN", "REGION"])),
        &UPDATE,
        &["new-capability", "version"],
        ("needs-review", "--trust="),
    ),
    (
        "description only",
        |_, next| next.with(|tool| tool["description"] = json!("Forecasts snow.")),
        &UPDATE,
        &["description-changed", "version"],
        ("needs-review", "--trust="),
    ),
    (
        "schema only",
        |_, next| next.with(|tool| tool["schema"]["properties"]["days"] = json!({"type": "integer"})),
        &UPDATE,
        &["schema-changed", "version"],
        ("needs-review", "--trust="),
    ),
    (
        "dropped signature",
        |crib, next| {
            sign(crib);
            next
        },
        &UPDATE,
        &["version"],
        ("signature-missing", "toolcrib update acme/weather --accept=signature-missing"),
    ),
    (
        "downgrade",
        |_, next| Release { version: "1.1.0", ..next },
        &UPDATE,
        &["version"],
        ("downgrade", "toolcrib update acme/weather --accept=downgrade"),
    ),
    (
        "renamed tool",
        |_, next| next.with(|tool| tool["name"] = json!("outlook")),
        &UPDATE,
        &["renamed-tool", "new-use", "version"],
        ("needs-review", "--trust="),
    ),
    (
        "name taken over",
        |crib, next| {
            next.write(crib, "other.tar");
            Release::new("1.2.0")
        },
        &["install", "./other.tar"],
        &["version"],
        ("name-taken", "toolcrib install ./other.tar --accept=name-taken"),
    ),
    ("too young", |_, next| next, &["update"], &["version"], ("too-young", "toolcrib update acme/weather --min-age=0")),
    ("wrong digest", |_, next| next, &["install"], &["version"], ("wrong-digest", "toolcrib update acme/weather")),
    (
        "tag moved",
        |_, next| Release { version: "1.2.0", padding: b"other".into(), ..next },
        &UPDATE,
        &[],
        ("tag-moved", "toolcrib update acme/weather --accept=tag-moved"),
    ),
];

#[test]
fn every_case_has_its_screen_its_code_and_its_cure() {
    let page = Page::new();
    for (name, change, args, changes, (code, cure)) in ROWS {
        let (crib, digest) = installed();
        let next = change(&crib, Release { version: "1.3.0", ..Release::new("1.3.0") });
        next.write(&crib, FILE);
        let before = (lock(&crib), records(&crib));
        page.note(name);
        page.run(&crib, args);
        let ran = crib.run(&[args, &["--json"]].concat());
        let [line] = &lines(&ran)[..] else { panic!("{name}: {ran:?}") };
        let found: Vec<&str> =
            line["changes"].as_array().unwrap().iter().map(|it| it["code"].as_str().unwrap()).collect();
        assert_eq!((ran.code, found), (Some(1), changes.to_vec()), "{name}: {line}");
        let refusal = &line["refusals"][0];
        assert_eq!((&refusal["code"], &line["verdict"]), (&json!(code), &json!("refused")), "{name}: {line}");
        assert!(refusal["cure"].as_str().unwrap().contains(cure), "{name}: {line}");
        assert_eq!((lock(&crib), records(&crib)), before, "{name}: a refusal changes nothing");
        assert!(stored(&crib, &digest).is_file(), "{name}");
    }
    page.matches("install/cases");
}

/// Name of a flag.
fn flag(word: &str) -> &str {
    word.split('=').next().unwrap_or(word)
}

/// Runs the command that a refusal names, without its `toolcrib`, and with further flags.
fn cure(crib: &Crib, ran: &Ran, flags: &[&str]) -> Ran {
    let line = lines(ran).remove(0);
    let command = line["refusals"][0]["cure"].as_str().unwrap().to_owned();
    crib.run(&command.split(' ').skip(1).chain(flags.iter().copied()).collect::<Vec<_>>())
}

#[test]
fn the_cure_of_a_refusal_leads_to_the_installation() {
    for change in [
        (|release| Release { version: "1.1.0", ..release }) as fn(Release) -> Release,
        |release| Release { version: "1.2.0", padding: b"other".into(), ..release },
        |release| release.with(|tool| tool["description"] = json!("Forecasts snow.")),
    ] {
        let (crib, first) = installed();
        let digest = change(Release::new("1.3.0")).write(&crib, FILE);
        let mut args: Vec<String> = vec!["update".into(), "--min-age=0".into(), "--json".into()];
        for _ in 0..3 {
            let ran = crib.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
            let line = lines(&ran).remove(0);
            if line["verdict"] != "refused" {
                break;
            }
            let cure = line["refusals"][0]["cure"].as_str().unwrap().to_owned();
            let is_new = |word: &&str| word.starts_with("--") && !args.iter().any(|arg| flag(arg) == flag(word));
            args.extend(cure.split(' ').filter(is_new).map(str::to_owned).collect::<Vec<_>>());
        }
        assert!(lock(&crib).contains(&digest), "{args:?}");
        assert!(stored(&crib, &digest).is_file() && !stored(&crib, &first).exists(), "the earlier file is removed");
    }
    let (crib, _) = installed();
    Release { version: "1.3.0", ..Release::new("1.3.0") }.write(&crib, FILE);
    // Pasted one after the other, the cures lead to the end.
    let young = crib.run(&["update", "--json"]);
    let unreviewed = cure(&crib, &young, &["--json"]);
    let ran = cure(&crib, &unreviewed, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(lock(&crib).contains("version = \"1.3.0\""), "{ran:?}");
}

#[test]
fn a_release_gets_old_enough_from_the_time_when_it_was_first_seen() {
    let (crib, _) = installed();
    let digest = Release::new("1.3.0").write(&crib, FILE);
    assert_eq!(crib.run(&["outdated"]).code, Some(0), "which counts as seen");
    let path = crib.path("home/.local/state/toolcrib/releases.json");
    let mut seen: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let all = seen["seen"].as_array_mut().unwrap();
    let release = all.iter_mut().find(|release| release["digest"] == json!(digest)).unwrap();
    release["first"] = json!("2026-01-01T00:00:00Z");
    fs::write(&path, seen.to_string()).unwrap();
    let ran = crib.run(&["update", &format!("--trust={digest}")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(lock(&crib).contains(&digest));
}

#[test]
fn only_named_permissions_are_granted_and_an_update_does_not_ask_for_the_others_again() {
    let page = Page::new();
    let crib = crib();
    let release = Release::new("1.2.0").with(|tool| tool["capabilities"]["env"] = json!(["TOKEN", "REGION"]));
    let digest = release.write(&crib, FILE);
    let trust = format!("--trust={digest}");
    page.run(&crib, &["install", FILE, &trust, "--grant=env:PATH"]);
    page.run(&crib, &["install", FILE, &trust, "--grant=env:REGION"]);
    page.text("toolcrib.lock", lock(&crib));
    assert_eq!(records(&crib)[0]["bundle"]["granted"], json!(["env:REGION"]));
    let next = Release { version: "1.3.0", ..release.clone() };
    let trust = format!("--trust={}", next.write(&crib, FILE));
    page.note("neither is new");
    page.run(&crib, &["update", "--min-age=0", &trust]);
    assert!(lock(&crib).contains("declined = [\n  \"env:TOKEN\",\n]\n"));
    let again = ["install", FILE, "--grant=all", "--json"];
    let line = lines(&page.run(&crib, &again)).remove(0);
    assert_eq!(line["refusals"][0]["code"], "needs-review", "{line}");
    let trust = format!("--trust={}", line["release"]["digest"].as_str().unwrap());
    page.run(&crib, &[&again[..], &[&trust]].concat());
    assert_eq!(records(&crib)[0]["bundle"]["granted"], json!(["env:REGION", "env:TOKEN"]));
    page.matches("install/grant");
}

#[test]
fn a_tool_belongs_to_the_first_bundle_that_has_it_here_or_everywhere() {
    let (crib, _) = installed();
    let tools = vec![tool("clock", "Shows the time.", &[]), tool("now", "Shows another sun.", &[])];
    let digest = Release { name: "acme/clock", tools, ..Release::new("1.0.0") }.write(&crib, "clock.tar");
    let args = ["install", "./clock.tar", &format!("--trust={digest}"), "--json"];
    let line = lines(&crib.run(&args)).remove(0);
    assert_eq!(line["refusals"][0]["code"], "tool-taken", "{line}");
    assert_eq!(line["refusals"][0]["cure"], "toolcrib remove acme/weather");
    assert_eq!(crib.run(&["remove", NAME]).code, Some(0));
    assert_eq!(crib.run(&[&args[..], &["--global"]].concat()).code, Some(0), "for every folder");
    let digest = Release::new("1.2.0").write(&crib, FILE);
    let line = lines(&crib.run(&["install", FILE, &format!("--trust={digest}"), "--json"])).remove(0);
    assert_eq!(line["refusals"][0]["code"], "tool-taken", "{line}");
    assert_eq!(line["refusals"][0]["cure"], "toolcrib remove acme/clock --global");
}

#[test]
fn outdated_bundles_are_listed_and_removed_ones_leave_nothing() {
    let page = Page::new();
    let (crib, digest) = installed();
    page.run(&crib, &["outdated"]);
    Release::new("1.3.0").write(&crib, FILE);
    page.run(&crib, &["outdated"]);
    let list: Value = serde_json::from_str(&crib.run(&["outdated", "--json"]).stdout).unwrap();
    assert_eq!((&list[0]["outdated"], &list[0]["present"]["version"]), (&json!(true), &json!("1.3.0")), "{list}");
    fs::remove_file(crib.path(FILE)).unwrap();
    page.run(&crib, &["outdated"]);
    page.run(&crib, &["remove", "acme/wether"]);
    page.run(&crib, &["remove", NAME]);
    assert!(!stored(&crib, &digest).exists() && records(&crib).is_empty() && !lock(&crib).contains("[[bundle]]"));
    for command in ["outdated", "update"] {
        page.run(&crib, &[command]);
    }
    page.matches("install/outdated");
}
