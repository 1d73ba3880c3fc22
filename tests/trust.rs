//! Trust: a file in a folder only requests, until a person has reviewed this very content.

mod changes;
mod command;
#[cfg(unix)]
mod folders;
mod settings;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use toolcrib::policy::review;

use crate::crib::Crib;

/// Crib that nobody trusts, with a tool that requests a variable and a folder.
fn stranger() -> Crib {
    let mut crib = Crib::new();
    crib.trusts = false;
    let mut tool = crib.entry("env_dump");
    tool["capabilities"] = json!({"env": ["TOKEN"], "files": {"read": ["./work"]}});
    crib.manifest(&json!({ "tools": [tool] }));
    crib
}

/// Result of a call of the tool with a variable in the environment.
fn dump(crib: &Crib, flags: &[&str]) -> (Value, String) {
    let args = [&["call", "env_dump", "{}", "--json"], flags].concat();
    let ran = crate::crib::Ran::from(crib.toolcrib(&args).env("TOKEN", "canary").output().unwrap());
    (serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}")), ran.stderr)
}

/// Returns `true` if the tool sees the variable and the folder; they are granted together or not at all.
fn is_granted(crib: &Crib, flags: &[&str]) -> bool {
    let (line, stderr) = dump(crib, flags);
    let result = &line["result"];
    let granted = [result["env"]["TOKEN"] == "canary", result["preopens"].as_array().is_some_and(|it| !it.is_empty())];
    assert_eq!(granted[0], granted[1], "{line} {stderr}");
    granted[0]
}

/// Digest of the content of a source.
fn digest(path: &Path) -> String {
    review(path).unwrap().digest
}

/// Trusts the manifest of a crib through the command.
fn trust(crib: &Crib) {
    let option = format!("--trust={}", digest(&crib.path("tools.json")));
    let ran = crib.run(&["trust", "./tools.json", &option]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_manifest_in_the_current_folder_is_granted_nothing_until_it_is_trusted() {
    let crib = stranger();
    let (line, stderr) = dump(&crib, &[]);
    assert_eq!((&line["receipt"]["granted"], &line["receipt"]["outcome"]), (&json!([]), &json!("ok")), "{line}");
    for words in [
        "hint: `tools.json` is not trusted",
        "1 environment variable, 1 readable folder",
        "`toolcrib trust tools.json`",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    assert!(!is_granted(&crib, &["--tools", "tools.json"]) && !is_granted(&crib, &["--tools", "."]));
    trust(&crib);
    for flags in [&[][..], &["--tools", "tools.json"], &["--tools", "."]] {
        assert!(is_granted(&crib, flags), "{flags:?}");
    }
    assert!(!dump(&crib, &[]).1.contains("hint: "));
    let denied = dump(&crib, &["--deny-env=TOKEN", "--deny-read"]).0;
    assert_eq!(denied["receipt"]["granted"], json!([]), "a denial overrides trust: {denied}");
}

#[test]
fn a_digest_on_the_command_line_trusts_its_content_for_one_run_at_any_path() {
    let crib = stranger();
    let option = format!("--trust={}", digest(&crib.path("tools.json")));
    assert!(is_granted(&crib, &[&option]));
    assert!(!is_granted(&crib, &[]), "for one run");
    assert!(!is_granted(&crib, &["--trust=sha256:0000000000000000000000000000000000000000000000000000000000000000"]));
    let other = stranger();
    assert!(is_granted(&other, &[&option]), "the digest does not depend on the folder");
}

#[test]
fn flags_still_grant_what_an_untrusted_source_requests() {
    let crib = stranger();
    assert!(is_granted(&crib, &["--allow-env=TOKEN", "--allow-read=work"]));
    let (_, stderr) = dump(&crib, &["--allow-env=TOKEN", "--allow-read=work"]);
    assert!(!stderr.contains("not trusted"), "nothing is missing: {stderr}");
}

#[test]
fn a_source_without_requests_needs_no_trust() {
    let mut crib = Crib::with_guests(&["echo"]);
    crib.trusts = false;
    let ran = crib.run(&["call", "echo", "{}"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
fn a_project_of_markdown_is_trusted_as_a_whole() {
    let mut crib = Crib::new();
    crib.trusts = false;
    fs::create_dir_all(crib.path(".harness/tools")).unwrap();
    let tool = "---\nname: look\ndescription: looks\ncapabilities:\n  files: { read: [\"./work\"] }\n---\n\n```starlark\ndef run(args):\n    return {\"files\": fs.list(\".\")}\n```\n";
    fs::write(crib.path(".harness/tools/look.md"), tool).unwrap();
    fs::write(crib.path("work/seen"), "x").unwrap();
    let reviewed = review(&crib.path(".")).unwrap();
    assert_eq!(reviewed.items.len(), 1, "{reviewed:?}");
    let changed = tool.replace("fs.list(\".\")", "fs.list(\"./\")");
    fs::write(crib.path(".harness/tools/look.md"), changed).unwrap();
    assert_ne!(digest(&crib.path(".")), reviewed.digest, "a script is a part of the content");
    fs::write(crib.path(".harness/tools/look.md"), tool).unwrap();
    assert_eq!(digest(&crib.path(".")), reviewed.digest);
    fs::write(crib.path(".harness/tools/more.md"), tool.replace("name: look", "name: more")).unwrap();
    assert_ne!(digest(&crib.path(".")), reviewed.digest, "a new tool changes the content");
}
