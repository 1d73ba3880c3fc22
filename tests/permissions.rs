//! Permissions: rules by flag and by file, stored approvals, and the messages of refusals.

#[cfg(target_os = "linux")]
mod always;
#[cfg(target_os = "linux")]
mod answering;
#[cfg(target_os = "linux")]
mod asking;
mod dead;
mod elsewhere;
mod hints;
#[cfg(unix)]
mod limited;
#[cfg(target_os = "linux")]
mod mode;
mod pending;
mod program;
mod settings;
#[cfg(target_os = "linux")]
pub(crate) mod terminal;

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

fn crib() -> Crib {
    Crib::with_guests(&["echo", "empty"])
}

/// Decision about a call.
fn decision(crib: &Crib, arguments: &Value, flags: &[&str]) -> Value {
    crib.call("echo", arguments, flags)["receipt"]["decision"].clone()
}

#[test]
fn a_flag_allows_asks_and_denies_and_a_denial_wins() {
    let crib = crib();
    let path = json!({"path": "out/x"});
    let reason = |flags: &[&str]| {
        let decision = decision(&crib, &path, flags);
        format!("{} {}", decision["behavior"].as_str().unwrap(), decision["reason"].as_str().unwrap())
    };
    assert_eq!(reason(&[]), "allow default");
    assert_eq!(reason(&["--ask-tool=echo"]), "deny nobody");
    assert_eq!(reason(&["--ask-tool=echo", "--allow-tool=echo(path=out/*)"]), "allow rule");
    assert_eq!(reason(&["--ask-tool=e*", "--allow-tool=echo(path=in/*)"]), "deny nobody");
    assert_eq!(reason(&["--allow-tool=echo", "--deny-tool=echo(path=out/*)"]), "deny rule");
    assert_eq!(
        reason(&["--deny-tool=empty,echo(path=out/*,n=1)"]),
        "allow default",
        "a comma inside separates nothing"
    );
    assert_eq!(reason(&["--deny-tool=empty,echo(path=out/*)"]), "deny rule");
}

#[test]
fn a_class_asks_about_all_tools_that_write_or_destroy() {
    let page = Page::new();
    let crib = Crib::new();
    let tools = crate::crib::toolbox();
    fs::write(crib.path("work/x"), "text").unwrap();
    let decision = |tool: &str, arguments: Value, flags: &[&str]| {
        let flags = [&["--tools", tools.to_str().unwrap()], flags].concat();
        let line = crib.call(tool, &arguments, &flags);
        line["receipt"]["decision"]["reason"].as_str().unwrap_or("none").to_owned()
    };
    let (read, rm) = (json!({"path": "x"}), json!({"path": "x"}));
    let write = json!({"path": "y", "content": "text"});
    let writes = ["--ask-tool=@writes", "--allow-write=work"];
    assert_eq!(decision("calculate", json!({"expression": "1"}), &writes), "default");
    assert_eq!(decision("fs_read_file", read, &writes), "default", "it is granted nothing to write");
    assert_eq!(decision("fs_write_file", write.clone(), &writes), "nobody");
    let destructive = ["--ask-tool=@destructive", "--allow-write=work"];
    assert_eq!(decision("fs_rm", rm.clone(), &destructive), "nobody");
    assert_eq!(decision("fs_rm", rm.clone(), &["--deny-tool=@destructive", "--allow-write=work"]), "rule");
    assert!(crib.path("work/x").exists());
    let allowed = [&destructive[..], &["--allow-tool=fs_rm"]].concat();
    assert_eq!(decision("fs_rm", rm, &allowed), "rule", "an allowance of the tool answers");
    for (flags, file) in [(&["--allow-tool=@writes"][..], ""), (&[], "[permissions]\nallow = [\"@writes\"]\n")] {
        fs::write(crib.path("toolcrib.toml"), file).unwrap();
        page.text("toolcrib.toml", file);
        page.run(&crib, &[&["call", "calculate", "{}", "--tools", tools.to_str().unwrap()], flags].concat());
    }
    page.matches("permissions/class");
}

#[test]
fn a_wrong_pattern_is_wrong_use() {
    let page = Page::new();
    let crib = crib();
    for flag in ["--allow-tool=echo(path", "--deny-tool=", "--ask-tool=echo(path)", "--ask-tool=@all"] {
        page.run(&crib, &["call", "echo", "{}", flag]);
    }
    page.matches("permissions/wrong-pattern");
}

#[test]
fn a_value_that_would_be_a_wider_pattern_is_offered_as_no_flag() {
    let page = Page::new();
    page.run(&crib(), &["call", "echo", "{\"path\":\"out/*\"}", "--ask-tool=echo"]);
    page.matches("permissions/wider-pattern");
}

#[test]
fn a_call_that_needs_a_yes_is_refused_with_the_flag_that_would_allow_it() {
    let crib = crib();
    for arguments in [
        json!({"path": "out/x"}),
        json!({"path": "./out/x", "n": 1.5, "yes": true, "nothing": null}),
        json!({"path": "/out/it's \"here\", (or) there; $HOME `id` \\ \u{1b}[2J\n"}),
        json!({"path": "", "other": " padded "}),
        json!({"text": "long ".repeat(1000), "path": "out/x"}),
        json!({"odd key=(": 1, "list": ["a"], "path": "a,b"}),
        json!({}),
    ] {
        let ran = crib.run(&["call", "echo", &arguments.to_string(), "--ask-tool=echo"]);
        assert_eq!(ran.code, Some(1), "{arguments}: {ran:?}");
        assert!(
            ran.stderr.starts_with("hint: `echo` requires approval: run in a terminal, or pre-approve with `"),
            "{ran:?}"
        );
        let flag = ran.stderr.split("pre-approve with `").nth(1).unwrap().trim_end().trim_end_matches('`');
        let typed = format!("\"$0\" call echo \"$1\" --ask-tool=echo {flag}");
        let mut shell = std::process::Command::new("sh");
        let (program, home) = (crate::crib::TOOLCRIB, crib.toolcrib(&[]));
        shell.args(["-c", &typed, program, &arguments.to_string()]).current_dir(crib.path(".")).env_clear();
        shell.envs(home.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = shell.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{typed} {arguments}: {output:?}");
    }
}

#[test]
fn a_flag_that_is_offered_is_about_this_call_alone() {
    let page = Page::new();
    let crib = crib();
    page.run(&crib, &["call", "echo", r#"{"path":"out/x"}"#, "--ask-tool=echo"]);
    let crib_of_all = crate::crib::toolbox();
    let flags = ["--tools", crib_of_all.to_str().unwrap(), "--ask-tool=*", "--allow-write=work"];
    let write = r#"{"path":"x","content":"text"}"#;
    page.note("what its record names");
    page.run(&crib, &[&["call", "fs_write_file", write][..], &flags].concat());
    page.note("no narrow flag means this path");
    page.run(&crib, &["call", "echo", r#"{"path":"a/../x"}"#, "--ask-tool=echo"]);
    page.matches("permissions/offered-flag");
}

#[test]
fn a_denial_names_its_rule_and_no_flag() {
    let page = Page::new();
    let crib = crib();
    page.run(&crib, &["call", "echo", "{}", "--deny-tool=echo", "--allow-tool=echo"]);
    let turns = json!([{"tool_calls": [{"name": "echo", "arguments": {"n": 1}}]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    page.run(&crib, &["run", "--script", "script.json", "--deny-tool=echo(n=1)"]);
    page.run(&crib, &["run", "--script", "script.json", "--ask-tool=echo"]);
    page.note("who wants quiet gets it");
    page.run(&crib, &["run", "--script", "script.json", "--ask-tool=echo", "--quiet"]);
    page.matches("permissions/denial");
}

#[test]
fn approvals_are_listed_and_taken_back() {
    let page = Page::new();
    let crib = crib();
    assert_eq!(crib.run(&["approvals", "list", "--json"]).stdout, "[]\n");
    let one =
        |tool: &str| json!({"tool": tool, "digest": "sha256:00", "rule": "ask * (x)", "given": "2026-01-31T12:00:00Z"});
    fs::write(crib.path("approvals.json"), json!({"approvals": [one("a"), one("b"), one("c")]}).to_string()).unwrap();
    let listed = page.run(&crib, &["approvals", "list"]);
    assert!(listed.stdout.contains("  2026-01-31T12:00:00Z  "), "{listed:?}");
    page.run(&crib, &["approvals", "remove", "a", "z"]);
    page.run(&crib, &["approvals", "remove", "a"]);
    page.run(&crib, &["approvals", "remove", "--all"]);
    page.run(&crib, &["approvals", "remove"]);
    page.run(&crib, &["approvals", "remove", "a", "--all"]);
    page.matches("permissions/approvals");
}

#[test]
fn the_approvals_of_one_client_are_taken_back_alone() {
    let page = Page::new();
    let crib = crib();
    let one = |tool: &str, holder: Option<(&str, &str)>| {
        let mut one = json!({"tool": tool, "digest": "sha256:00", "definition": "sha256:01", "rule": "ask * (x)"});
        one["given"] = json!("2026-01-31T12:00:00Z");
        if let Some((owner, client)) = holder {
            (one["owner"], one["client"]) = (json!(owner), json!(client));
        }
        one
    };
    let (ada, bob) = (Some(("token 1", "ada: probe 2")), Some(("token 2", "bob: ada: probe 2")));
    let all = [one("a", None), one("a", ada), one("b", ada), one("a", bob), one("c", bob)];
    fs::write(crib.path("approvals.json"), json!({ "approvals": all }).to_string()).unwrap();
    page.run(&crib, &["approvals", "list"]);
    for flags in
        [&["a", "--client", "ada"][..], &["c", "--client", "ada"], &["--client", "adda"], &["--all", "--client", "ada"]]
    {
        page.run(&crib, &[&["approvals", "remove"], flags].concat());
    }
    page.run(&crib, &["approvals", "remove", "a", "--client", "no token"]);
    page.run(&crib, &["approvals", "remove", "--client", "ada: probe 2"]);
    page.note("those of another holder stay");
    page.run(&crib, &["approvals", "list"]);
    page.matches("permissions/approvals-client");
}

#[test]
fn a_file_of_approvals_that_is_not_understood_stops_everything_and_stays() {
    let page = Page::new();
    let crib = crib();
    fs::write(crib.path("approvals.json"), "{\"approvals\":[").unwrap();
    for arguments in [&["call", "echo", "{}"][..], &["approvals", "list"], &["approvals", "remove", "--all"]] {
        page.run(&crib, arguments);
    }
    assert_eq!(fs::read_to_string(crib.path("approvals.json")).unwrap(), "{\"approvals\":[");
    page.matches("permissions/approvals-damaged");
}

#[test]
fn no_tool_may_write_the_rules_or_what_was_agreed_to() {
    let crib = Crib::with_guests(&["file_io"]);
    fs::write(crib.path("work/own.toml"), "").unwrap();
    let call = |op: &str, flags: [&str; 2]| {
        let arguments = json!({"op": op, "path": "own.toml"}).to_string();
        crib.run(&[&["call", "file_io", &arguments, "--json"], &flags[..]].concat())
    };
    let ran = call("roots", ["--allow-write=work", "--set=approvals.file=work/agreed.json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("would let a tool reach the approvals in"), "{ran:?}");
    assert!(ran.stderr.contains("work/agreed.json; grant a narrower folder, or keep the two apart"), "{ran:?}");
    let ran = call("roots", ["--allow-read=work", "--set=approvals.file=work/agreed.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = call("write", ["--allow-write=work", "--config=work/own.toml"]);
    assert!(ran.stdout.contains("not-permitted") && ran.stdout.contains("write:own.toml"), "{ran:?}");
    let ran = call("read", ["--allow-write=work", "--config=work/own.toml"]);
    assert!(ran.stdout.contains(r#"{"ok":""}"#), "reading it is no harm: {ran:?}");
}
