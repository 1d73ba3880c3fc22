//! The `toolcrib.toml` of a folder: it may ask and deny; everything else counts once it is trusted.

use std::fs;

use serde_json::json;
use toolcrib::source;

use crate::crib::Crib;

/// Crib that nobody trusts, with a settings file.
fn crib(settings: &str) -> Crib {
    let mut crib = Crib::with_guests(&["echo", "empty"]);
    crib.trusts = false;
    fs::write(crib.path("toolcrib.toml"), settings).unwrap();
    crib
}

#[test]
fn an_untrusted_file_allows_nothing_and_silences_no_question() {
    let crib = crib("[permissions]\nallow = [\"*\"]\n");
    let call = |flags: &[&str]| crib.outcome("echo", &json!({}), flags);
    assert_eq!(call(&["--ask-tool=echo"]), "denied", "nobody is there to answer");
    let digest = source::digest(&fs::read(crib.path("toolcrib.toml")).unwrap());
    let ran = crib.run(&["call", "echo", "{}"]);
    assert!(ran.stderr.contains("`toolcrib.toml` is not trusted") && ran.stderr.contains("1 setting"), "{ran:?}");
    assert_eq!(crib.run(&["trust", "toolcrib.toml", &format!("--trust={digest}")]).code, Some(0));
    assert_eq!(crib.run(&["call", "echo", "{}"]).stderr, "");
}

#[test]
fn an_untrusted_file_still_asks_and_denies() {
    let crib = crib("[permissions]\nask = [\"echo\"]\ndeny = [\"empty\"]\n");
    for tool in ["echo", "empty"] {
        assert_eq!(crib.outcome(tool, &json!({}), &[]), "denied", "{tool}");
    }
    let ran = crib.run(&["call", "echo", "{}"]);
    assert!(!ran.stderr.contains("not trusted"), "it requests nothing: {}", ran.stderr);
}

#[test]
fn routes_of_an_untrusted_file_reroute_nothing() {
    let crib = crib("[routes]\necho = \"empty\"\n");
    fs::write(
        crib.path("script.json"),
        json!({"prompt": "go", "turns": [{"tool_calls": [{"name": "echo", "arguments": {}}]}, {"content": "done"}]})
            .to_string(),
    )
    .unwrap();
    let called = |flags: &[&str]| {
        let ran = crib.run(&[&["run", "--script", "script.json"], flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        crib.records().last().unwrap()["tool"].clone()
    };
    assert_eq!(called(&[]), "echo");
    let digest = source::digest(&fs::read(crib.path("toolcrib.toml")).unwrap());
    assert_eq!(called(&[&format!("--trust={digest}")]), "empty");
}

#[test]
fn a_comment_ends_trust_and_the_review_says_that_no_setting_changed() {
    let crib = crib("[permissions]\nallow = [\"echo\"]\n");
    let digest = source::digest(&fs::read(crib.path("toolcrib.toml")).unwrap());
    assert_eq!(crib.run(&["trust", "toolcrib.toml", &format!("--trust={digest}")]).code, Some(0));
    fs::write(crib.path("toolcrib.toml"), "# mine\n[permissions]\nallow = [ \"echo\" ]\n").unwrap();
    let ran = crib.run(&["trust", "toolcrib.toml"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let words = "\nChanges:\n  the text of toolcrib.toml changed, and no setting, tool or program in it\n";
    assert!(ran.stdout.contains(words), "{ran:?}");
    let described = crib.run(&["trust", "toolcrib.toml", "--json"]).stdout;
    assert!(described.contains(r#""changes":[{"name":"toolcrib.toml","kind":"text"}]"#), "{described}");
}

#[test]
fn a_review_names_the_denials_that_are_gone() {
    let allow = "[permissions]\nallow = [\"echo\"]\n";
    let crib = crib(&format!("{allow}ask = [\"echo\"]\ndeny = [\"empty\", \"other\"]\n[deny]\nmodel = true\n"));
    let file = crib.path("toolcrib.toml");
    let digest = source::digest(&fs::read(&file).unwrap());
    assert_eq!(crib.run(&["trust", "toolcrib.toml", &format!("--trust={digest}")]).code, Some(0));
    let review = |rest: &str, flags: &[&str]| {
        fs::write(&file, format!("{allow}{rest}")).unwrap();
        crib.run(&[&["trust", "toolcrib.toml"], flags].concat()).stdout
    };
    let changed = review("ask = [\"echo\"]\ndeny = [\"other\", \"new\"]\n[deny]\nmodel = false\n", &[]);
    let wanted = "\nChanges:\n  permissions.deny has another value\n    no longer: permissions.deny = empty\n  deny.model has \
                  another value\n    no longer: deny.model = true\n\nTrust would allow:\n";
    assert!(changed.contains(wanted), "{changed}");
    let removed = review("", &[]);
    for line in [
        "  permissions.ask was removed\n    no longer: permissions.ask = echo\n",
        "  permissions.deny was removed\n    no longer: permissions.deny = empty\n    no longer: permissions.deny = other\n",
        "  deny.model was removed\n    no longer: deny.model = true\n",
    ] {
        assert!(removed.contains(line), "{line}: {removed}");
    }
    assert!(!removed.contains("the text of"), "{removed}");
    let described = review("", &["--json"]);
    assert!(
        described.contains(r#"{"name":"permissions.ask","kind":"removed","lifted":["permissions.ask = echo"]}"#),
        "{described}"
    );
}

#[test]
fn a_file_that_the_user_names_is_their_own() {
    let crib = crib("[permissions]\nallow = [\"*\"]\n");
    let ran = crib.run(&["call", "echo", "{}", "--config", "toolcrib.toml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}
