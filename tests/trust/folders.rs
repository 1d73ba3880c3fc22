//! Many odd folders: whatever happens to a trusted folder or beside it, nothing is granted that was not shown.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::crib::{Crib, guest};

use super::{dump, stranger, trust};

/// Oddity of a folder: its name, and the change that makes it.
type Oddity = (&'static str, fn(&Crib));

/// Ways to name the source, relative to the folder that was trusted.
const SPELLINGS: [&[&str]; 8] = [
    &[],
    &["--tools", "tools.json"],
    &["--tools", "."],
    &["--tools", "./work/../tools.json"],
    &["--tools", "work/.."],
    &["--tools", "link"],
    &["--tools", "TOOLS.JSON"],
    &["--tools", "elsewhere"],
];

fn rewrite(crib: &Crib, change: impl FnOnce(&mut Value)) {
    let text = fs::read_to_string(crib.path("tools.json")).unwrap();
    let mut manifest: Value = serde_json::from_str(&text).unwrap();
    change(&mut manifest["tools"][0]);
    crib.manifest(&manifest);
}

fn copy_of(crib: &Crib, name: &str) {
    let folder = crib.path(name);
    fs::create_dir_all(folder.join("tools/bin")).unwrap();
    fs::create_dir_all(folder.join("work")).unwrap();
    fs::copy(crib.path("tools.json"), folder.join("tools.json")).unwrap();
    fs::copy(guest("env_dump"), folder.join("tools/bin/env_dump.wasm")).unwrap();
}

/// Oddities after which nothing may be granted by any spelling.
const UNTRUSTED: [Oddity; 15] = [
    ("another program", |crib| {
        fs::copy(guest("echo"), crib.path("tools/bin/env_dump.wasm")).unwrap();
    }),
    ("a link in the place of the program", |crib| {
        let program = crib.path("tools/bin/env_dump.wasm");
        fs::copy(guest("rich"), crib.path("other.wasm")).unwrap();
        fs::remove_file(&program).unwrap();
        symlink(crib.path("other.wasm"), program).unwrap();
    }),
    ("another variable", |crib| rewrite(crib, |tool| tool["capabilities"]["env"] = json!(["TOKEN", "HOME"]))),
    ("another folder", |crib| {
        rewrite(crib, |tool| tool["capabilities"]["files"] = json!({"read": ["./work", "./tools"]}));
    }),
    ("a parent folder", |crib| rewrite(crib, |tool| tool["capabilities"]["files"] = json!({"read": [".."]}))),
    ("write access", |crib| rewrite(crib, |tool| tool["capabilities"]["files"] = json!({"write": ["./work"]}))),
    ("a host", |crib| rewrite(crib, |tool| tool["capabilities"]["network"] = json!(["a.example"]))),
    ("a secret", |crib| {
        let secret = json!({"name": "s", "host": "a.example", "header": "Authorization", "format": "{}"});
        rewrite(crib, |tool| tool["capabilities"]["secrets"] = json!([secret]));
    }),
    ("fixed arguments", |crib| rewrite(crib, |tool| tool["command"] = json!(["./tools/bin/env_dump", "x"]))),
    ("another name of the program", |crib| {
        fs::copy(guest("env_dump"), crib.path("tools/bin/other.wasm")).unwrap();
        rewrite(crib, |tool| tool["command"] = json!(["./tools/bin/other"]));
    }),
    ("another description", |crib| rewrite(crib, |tool| tool["description"] = json!("x"))),
    ("a longer deadline", |crib| rewrite(crib, |tool| tool["timeoutSec"] = json!(600))),
    ("more memory", |crib| rewrite(crib, |tool| tool["limits"] = json!({"memoryMb": 2048}))),
    ("a folder that became a link", |crib| {
        fs::remove_dir(crib.path("work")).unwrap();
        symlink(crib.path("home"), crib.path("work")).unwrap();
    }),
    ("a manifest that became a link", |crib| {
        copy_of(crib, "real");
        fs::remove_file(crib.path("tools.json")).unwrap();
        symlink(crib.path("real/tools.json"), crib.path("tools.json")).unwrap();
    }),
];

#[test]
fn no_spelling_of_a_changed_folder_is_granted_anything() {
    let mut checked = 0;
    for (oddity, make) in UNTRUSTED {
        let crib = stranger();
        trust(&crib);
        copy_of(&crib, "elsewhere");
        symlink(crib.path("."), crib.path("link")).unwrap();
        make(&crib);
        for spelling in SPELLINGS {
            checked += usize::from(grants_nothing(&crib, spelling, oddity));
        }
    }
    // Without a case-insensitive file system one spelling names no file.
    assert!(checked >= UNTRUSTED.len() * (SPELLINGS.len() - 1), "{checked}");
}

/// Checks that a call is granted nothing; returns `false` if the spelling names no source.
fn grants_nothing(crib: &Crib, spelling: &[&str], oddity: &str) -> bool {
    if spelling.last().is_some_and(|path| !crib.path(path).exists()) {
        return false;
    }
    let (line, stderr) = dump(crib, spelling);
    assert_eq!(line["receipt"]["granted"], json!([]), "{oddity} {spelling:?}: {line} {stderr}");
    assert!(!line.to_string().contains("canary"), "{oddity} {spelling:?}: {line}");
    true
}

#[test]
fn a_copied_a_renamed_and_an_exchanged_folder_are_other_folders() {
    let crib = stranger();
    trust(&crib);
    for name in ["copy", "Copy ", "copy.", "cöpy", "-copy", "..copy", "copy\u{301}", "a/b/../c"] {
        copy_of(&crib, name);
        let named = format!("./{name}");
        assert!(grants_nothing(&crib, &["--tools", &named], name));
    }
    // The trusted folder gets another name, and another folder gets its name.
    let outer = tempfile::tempdir().unwrap();
    let place = |name: &str| outer.path().join(name);
    let call = |folder: &Path| {
        let tools = folder.join("tools.json").display().to_string();
        dump(&crib, &["--tools", &tools]).0["receipt"]["granted"].clone()
    };
    for name in ["mine", "theirs"] {
        fs::create_dir_all(place(name).join("work")).unwrap();
        fs::create_dir_all(place(name).join("tools/bin")).unwrap();
        fs::copy(crib.path("tools.json"), place(name).join("tools.json")).unwrap();
        fs::copy(guest("env_dump"), place(name).join("tools/bin/env_dump.wasm")).unwrap();
    }
    let manifest = place("mine").join("tools.json");
    let option = format!("--trust={}", super::digest(&manifest));
    assert_eq!(crib.run(&["trust", manifest.to_str().unwrap(), &option]).code, Some(0));
    assert_ne!(call(&place("mine")), json!([]));
    assert_eq!(call(&place("theirs")), json!([]));
    fs::rename(place("mine"), place("renamed")).unwrap();
    assert_eq!(call(&place("renamed")), json!([]));
    // Equal content at the trusted path is what was reviewed; its folders belong to the path.
    fs::copy(guest("echo"), place("theirs").join("tools/bin/env_dump.wasm")).unwrap();
    fs::rename(place("theirs"), place("mine")).unwrap();
    assert_eq!(call(&place("mine")), json!([]));
}
