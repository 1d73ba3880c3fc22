//! Trust in bundles: one grants nothing until a person trusts it, and another file of the name is another bundle.

use std::fs;

use serde_json::{Value, json};
use toolcrib::policy::review;

use crate::crib::{Crib, Ran};
use crate::screen::Page;

use super::{crib, packed, with_bundle};

/// Result of a call of the tool that requests a variable.
fn dump(crib: &Crib, flags: &[&str]) -> (bool, String) {
    let args = [&["call", "env_dump", "{}", "--json"], flags].concat();
    let ran = Ran::from(crib.toolcrib(&args).env("TOKEN", "canary").output().unwrap());
    let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    (line["result"]["env"]["TOKEN"] == "canary", ran.stderr)
}

#[test]
fn a_bundle_is_granted_nothing_until_it_is_trusted() {
    let page = Page::new();
    let crib = with_bundle();
    let (is_granted, stderr) = dump(&crib, &["--tools", "x.tar"]);
    assert!(!is_granted && stderr.contains("`x.tar` is not trusted"), "{stderr}");
    let digest = review(&crib.path("x.tar")).unwrap().digest;
    assert!(dump(&crib, &["--tools", "x.tar", &format!("--trust={digest}")]).0, "for one run");
    page.run(&crib, &["trust", "x.tar"]);
    page.run(&crib, &["trust", "x.tar", &format!("--trust={digest}")]);
    assert!(dump(&crib, &["--tools", "x.tar"]).0 && dump(&crib, &["--tools", "./work/../x.tar"]).0);
    fs::rename(crib.path("x.tar"), crib.path("y.tar")).unwrap();
    assert!(!dump(&crib, &["--tools", "y.tar"]).0, "another path");
    let option = format!("--trust={digest}");
    assert!(dump(&crib, &["--tools", "y.tar", &option]).0, "the digest does not depend on the path");
    page.note("the path of a bundle that is gone");
    page.run(&crib, &["trust", "--remove", "x.tar"]);
    page.matches("bundle/trusted");
}

#[test]
fn every_other_content_is_another_bundle() {
    let crib = with_bundle();
    let digest = review(&crib.path("x.tar")).unwrap().digest;
    assert_eq!(crib.run(&["trust", "x.tar", &format!("--trust={digest}")]).code, Some(0));
    let changed = super::crib();
    for change in ["licence", "description", "program"] {
        match change {
            "licence" => fs::write(changed.path("LICENSE"), "Ask first.\n").unwrap(),
            "description" => {
                let text = fs::read_to_string(changed.path("tools.json")).unwrap();
                fs::write(changed.path("tools.json"), text.replace("Prints", "Shows")).unwrap();
            }
            _ => changed.install(&crate::crib::guest("echo"), "env_dump"),
        }
        packed(&changed, "tools.json", "x.tar");
        fs::copy(changed.path("x.tar"), crib.path("x.tar")).unwrap();
        assert_ne!(review(&crib.path("x.tar")).unwrap().digest, digest, "{change}");
        let (is_granted, stderr) = dump(&crib, &["--tools", "x.tar"]);
        assert!(!is_granted && stderr.contains("`x.tar` has changed since it was trusted"), "{change}: {stderr}");
    }
}

#[test]
fn tools_cannot_change_the_bundle_that_they_come_from() {
    let page = Page::new();
    let from = crib();
    let manifest =
        json!({"tools": [{"name": "file_io", "command": ["./tools/bin/file_io"], "capabilities": {"files": "write"}}]});
    from.install(&crate::crib::guest("file_io"), "file_io");
    from.manifest(&manifest);
    packed(&from, "tools.json", "work/x.tar");
    let before = fs::read(from.path("work/x.tar")).unwrap();
    let write = |path: &str| {
        let arguments = json!({"op": "write", "path": path, "text": "changed"}).to_string();
        page.run(&from, &["call", "file_io", &arguments, "--tools", "work/x.tar", "--allow-write=work"]).stdout
    };
    assert_eq!(write("other").trim(), r#"{"ok":7}"#);
    let refused = write("x.tar");
    assert!(refused.contains("error") && fs::read(from.path("work/x.tar")).unwrap() == before, "{refused}");
    page.matches("bundle/reached");
}
