//! The `toolcrib.toml` of a folder: it may ask and deny; everything else counts once it is trusted.

use std::fs;

use serde_json::json;
use toolcrib::source;

use crate::crib::Crib;
use crate::screen::Page;

/// Crib that nobody trusts, with a settings file.
fn crib(settings: &str) -> Crib {
    let mut crib = Crib::with_guests(&["echo", "empty"]);
    crib.trusts = false;
    fs::write(crib.path("toolcrib.toml"), settings).unwrap();
    crib
}

#[test]
fn an_untrusted_file_allows_nothing_and_silences_no_question() {
    let page = Page::new();
    let crib = crib("[permissions]\nallow = [\"*\"]\n");
    let call = |flags: &[&str]| crib.outcome("echo", &json!({}), flags);
    assert_eq!(call(&["--ask-tool=echo"]), "denied", "nobody is there to answer");
    let digest = source::digest(&fs::read(crib.path("toolcrib.toml")).unwrap());
    page.run(&crib, &["call", "echo", "{}"]);
    page.run(&crib, &["trust", "toolcrib.toml", &format!("--trust={digest}")]);
    assert_eq!(page.run(&crib, &["call", "echo", "{}"]).stderr, "");
    page.matches("trust/settings");
}

#[test]
fn an_untrusted_file_still_asks_and_denies() {
    let page = Page::new();
    let crib = crib("[permissions]\nask = [\"echo\"]\ndeny = [\"empty\"]\n");
    for tool in ["echo", "empty"] {
        assert_eq!(crib.outcome(tool, &json!({}), &[]), "denied", "{tool}");
    }
    page.note("it requests nothing");
    page.run(&crib, &["call", "echo", "{}"]);
    page.matches("trust/asks");
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
    let page = Page::new();
    let crib = crib("[permissions]\nallow = [\"echo\"]\n");
    let digest = source::digest(&fs::read(crib.path("toolcrib.toml")).unwrap());
    page.run(&crib, &["trust", "toolcrib.toml", &format!("--trust={digest}")]);
    fs::write(crib.path("toolcrib.toml"), "# mine\n[permissions]\nallow = [ \"echo\" ]\n").unwrap();
    page.run(&crib, &["trust", "toolcrib.toml"]);
    let described = crib.run(&["trust", "toolcrib.toml", "--json"]).stdout;
    assert!(described.contains(r#""changes":[{"name":"toolcrib.toml","kind":"text"}]"#), "{described}");
    page.matches("trust/comment");
}

#[test]
fn a_review_names_the_denials_that_are_gone() {
    let page = Page::new();
    let allow = "[permissions]\nallow = [\"echo\"]\n";
    let crib = crib(&format!("{allow}ask = [\"echo\"]\ndeny = [\"empty\", \"other\"]\n[deny]\nmodel = true\n"));
    let file = crib.path("toolcrib.toml");
    let digest = source::digest(&fs::read(&file).unwrap());
    page.run(&crib, &["trust", "toolcrib.toml", &format!("--trust={digest}")]);
    let review = |rest: &str, flags: &[&str]| {
        fs::write(&file, format!("{allow}{rest}")).unwrap();
        page.text("toolcrib.toml", fs::read_to_string(&file).unwrap());
        page.run(&crib, &[&["trust", "toolcrib.toml"], flags].concat());
    };
    page.text("toolcrib.toml", fs::read_to_string(&file).unwrap());
    review("ask = [\"echo\"]\ndeny = [\"other\", \"new\"]\n[deny]\nmodel = false\n", &[]);
    review("", &[]);
    review("", &["--json"]);
    page.matches("trust/denials-gone");
}

#[test]
fn a_file_that_the_user_names_is_their_own() {
    let crib = crib("[permissions]\nallow = [\"*\"]\n");
    let ran = crib.run(&["call", "echo", "{}", "--config", "toolcrib.toml"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
}

/// Permissions that settings grant a tool of the manifest.
fn granted(crib: &Crib, flags: &[&str]) -> usize {
    let ran = crib.run(&[&["list", "--json"], flags].concat());
    let listed: serde_json::Value =
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    listed[0]["granted"].as_array().unwrap().len()
}

#[test]
fn what_settings_allow_reaches_no_source_that_changed_after_its_trust() {
    let page = Page::new();
    let crib = crib("[allow]\nread = [\"work\"]\nenv = [\"LANG\"]\n");
    let trust = |path: &str, digest: &str| {
        let ran = crib.run(&["trust", path, &format!("--trust={digest}")]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    };
    let source_digest = || toolcrib::policy::review(&crib.path("tools.json")).unwrap().digest;
    trust("toolcrib.toml", &source::digest(&fs::read(crib.path("toolcrib.toml")).unwrap()));
    assert_eq!(granted(&crib, &[]), 0, "nobody trusts the source");
    assert_eq!(granted(&crib, &["--tools=tools.json"]), 1, "the command line names it");
    assert_eq!(granted(&crib, &["--tools=./work/../tools.json"]), 1);
    trust("tools.json", &source_digest());
    assert_eq!(granted(&crib, &[]), 1);
    // A program, an entry or a description: each change ends it until the next review.
    let manifest = fs::read_to_string(crib.path("tools.json")).unwrap();
    for change in ["program", "entry"] {
        match change {
            "program" => crib.install(&crate::crib::guest("empty"), "echo"),
            _ => fs::write(crib.path("tools.json"), manifest.replace("\"echo\",", "\"echo2\",")).unwrap(),
        }
        assert_eq!(granted(&crib, &[]), 0, "{change}");
        page.run(&crib, &["list"]);
        assert_eq!(granted(&crib, &["--allow-read=work"]), 1, "{change}: a flag is for this command");
        trust("tools.json", &source_digest());
        assert_eq!(granted(&crib, &[]), 1, "{change}");
    }
    page.matches("trust/bound-to-content");
}

#[test]
fn settings_of_the_user_reach_no_stranger_and_a_named_file_does() {
    let crib = crib("");
    fs::create_dir_all(crib.path("home/.config/toolcrib")).unwrap();
    fs::write(crib.path("home/.config/toolcrib/config.toml"), "[allow]\nread = [\"./work\"]\n").unwrap();
    assert_eq!(granted(&crib, &[]), 0);
    fs::remove_file(crib.path("home/.config/toolcrib/config.toml")).unwrap();
    fs::write(crib.path("mine.toml"), "[allow]\nread = [\"work\"]\n").unwrap();
    assert_eq!(granted(&crib, &["--config=mine.toml"]), 1);
}
