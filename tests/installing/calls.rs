//! Calls of installed tools: they have exactly the permissions that were granted, in the place where they were granted.

use std::fs;

use serde_json::{Value, json};

use super::{FILE, Release, crib, lock_file, stored};
use crate::crib::{Crib, Ran};

/// Crib with an installed bundle and these permissions.
fn granting(grant: &str) -> Crib {
    let crib = crib();
    let digest =
        Release::new("1.2.0").with(|tool| tool["capabilities"]["env"] = json!(["TOKEN", "KEY"])).write(&crib, FILE);
    let ran = crib.run(&["install", FILE, &format!("--trust={digest}"), &format!("--grant={grant}")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(stored(&crib, &digest).is_file());
    crib
}

/// Variables that the installed tool sees.
fn seen(crib: &Crib, flags: &[&str]) -> Vec<String> {
    let args = [&["call", "forecast", "{}", "--json"], flags].concat();
    let ran = Ran::from(crib.toolcrib(&args).env("TOKEN", "one").env("KEY", "two").output().unwrap());
    let line: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let all = line["result"]["env"].as_object().unwrap_or_else(|| panic!("{line}"));
    ["KEY", "TOKEN"].into_iter().filter(|name| all.contains_key(*name)).map(str::to_owned).collect()
}

#[test]
fn an_installed_tool_has_the_permissions_that_were_granted() {
    for (grant, wanted) in [("all", &["KEY", "TOKEN"][..]), ("none", &[]), ("env:KEY", &["KEY"])] {
        let crib = granting(grant);
        assert_eq!(seen(&crib, &[]), wanted, "{grant}");
        assert!(!seen(&crib, &["--deny-env=KEY"]).contains(&"KEY".to_owned()), "a denial overrides a grant");
    }
}

#[test]
fn an_edited_and_a_removed_lock_make_nothing_available() {
    let crib = granting("env:KEY");
    let text = fs::read_to_string(lock_file(&crib)).unwrap();
    fs::write(lock_file(&crib), text.replace("\"env:KEY\",", "\"env:KEY\",\n  \"env:TOKEN\",")).unwrap();
    assert_eq!(crib.run(&["call", "forecast", "{}"]).code, Some(1));
    fs::write(lock_file(&crib), text).unwrap();
    assert_eq!(seen(&crib, &[]), ["KEY"]);
    fs::remove_file(lock_file(&crib)).unwrap();
    let ran = crib.run(&["call", "forecast", "{}"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

#[test]
fn a_bundle_of_the_user_is_available_in_every_folder() {
    let crib = granting("all");
    assert_eq!(crib.run(&["remove", "acme/weather"]).code, Some(0));
    let digest = Release::new("1.2.0").write(&crib, FILE);
    assert_eq!(crib.run(&["install", FILE, &format!("--trust={digest}"), "--global"]).code, Some(0));
    let ran = Ran::from(crib.toolcrib(&["list", "--json"]).current_dir(crib.path("work")).output().unwrap());
    let tools: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let own = tools.iter().filter(|tool| tool["source"]["builtin"] != true);
    assert_eq!(own.map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), ["forecast", "now"]);
    assert_eq!(tools[0]["granted"], json!([]), "a variable that is not set is not granted");
}

#[test]
fn a_stored_file_that_was_replaced_is_not_granted_anything() {
    let crib = granting("all");
    let other = Release::new("1.2.0").with(|tool| tool["capabilities"]["env"] = json!(["TOKEN", "KEY", "PATH"]));
    let digest = other.write(&crib, "other.tar");
    assert_ne!(stored(&crib, &digest), stored(&crib, ""));
    let folder = crib.path("home/.local/share/toolcrib/bundles");
    let file = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    fs::copy(crib.path("other.tar"), file).unwrap();
    assert_eq!(seen(&crib, &[]), [] as [&str; 0]);
}
