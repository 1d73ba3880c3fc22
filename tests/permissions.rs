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
        let ran = crib.run(&[&["call", "calculate", "{}", "--tools", tools.to_str().unwrap()], flags].concat());
        assert!(
            ran.code != Some(0) && ran.stderr.contains("`@writes`: a class of tools can be asked about"),
            "{ran:?}"
        );
    }
}

#[test]
fn a_wrong_pattern_is_wrong_use() {
    let crib = crib();
    for (flag, said) in [
        ("--allow-tool=echo(path", "the last `)` is missing"),
        ("--deny-tool=", "write it like `fs_*` or `fs_write_file(path=out/*)`"),
        ("--ask-tool=echo(path)", "`path` is not like `path=out/*`"),
        ("--ask-tool=@all", "the classes of tools are `@destructive`, `@overwrites` and `@writes`"),
    ] {
        let ran = crib.run(&["call", "echo", "{}", flag]);
        assert_eq!(ran.code, Some(2), "{flag}: {ran:?}");
        assert!(ran.stderr.contains(said), "{flag}: {ran:?}");
    }
}

#[test]
fn a_value_that_would_be_a_wider_pattern_is_offered_as_no_flag() {
    let ran = crib().run(&["call", "echo", "{\"path\":\"out/*\"}", "--ask-tool=echo"]);
    assert_eq!(ran.stderr, "hint: `echo` requires approval: run in a terminal\n");
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
    let crib = crib();
    let ran = crib.run(&["call", "echo", r#"{"path":"out/x"}"#, "--ask-tool=echo"]);
    assert!(ran.stderr.contains("`--allow-tool='echo(path=out/x)'`"), "{ran:?}");
    let crib_of_all = crate::crib::toolbox();
    let flags = ["--tools", crib_of_all.to_str().unwrap(), "--ask-tool=*", "--allow-write=work"];
    let write = r#"{"path":"x","content":"text"}"#;
    let ran = crib.run(&[&["call", "fs_write_file", write][..], &flags].concat());
    assert!(ran.stderr.contains("`--allow-tool='fs_write_file(path=x)'`"), "what its record names: {ran:?}");
    let ran = crib.run(&["call", "echo", r#"{"path":"a/../x"}"#, "--ask-tool=echo"]);
    assert_eq!(ran.stderr, "hint: `echo` requires approval: run in a terminal\n", "no narrow flag means this path");
}

#[test]
fn a_denial_names_its_rule_and_no_flag() {
    let crib = crib();
    let said = "hint: `deny echo (--deny-tool)` denies this call, and no flag overrides a denial: change the rule\n";
    let ran = crib.run(&["call", "echo", "{}", "--deny-tool=echo", "--allow-tool=echo"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), said), "{ran:?}");
    let turns = json!([{"tool_calls": [{"name": "echo", "arguments": {"n": 1}}]}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let ran = crib.run(&["run", "--script", "script.json", "--deny-tool=echo(n=1)"]);
    assert!(ran.stderr.contains("hint: `deny echo(n=1) (--deny-tool)` denies this call"), "{ran:?}");
    let ran = crib.run(&["run", "--script", "script.json", "--ask-tool=echo"]);
    assert!(ran.stderr.contains("or pre-approve with `--allow-tool='echo(n=1)'`"), "{ran:?}");
    let ran = crib.run(&["run", "--script", "script.json", "--ask-tool=echo", "--quiet"]);
    assert_eq!(ran.stderr, "", "who wants quiet gets it");
}

#[test]
fn approvals_are_listed_and_taken_back() {
    let crib = crib();
    assert_eq!(crib.run(&["approvals", "list", "--json"]).stdout, "[]\n");
    let one =
        |tool: &str| json!({"tool": tool, "digest": "sha256:00", "rule": "ask * (x)", "given": "2026-01-31T12:00:00Z"});
    fs::write(crib.path("approvals.json"), json!({"approvals": [one("a"), one("b"), one("c")]}).to_string()).unwrap();
    let listed = crib.run(&["approvals", "list"]);
    assert!(listed.stdout.contains("a     ask * (x)  2026-01-31T12:00:00Z  sha256:00\n"), "{listed:?}");
    let wrong = crib.run(&["approvals", "remove", "a", "z"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("no approval of `z`: nothing was revoked"), "{wrong:?}");
    assert_eq!(crib.run(&["approvals", "remove", "a"]).stderr, "revoked 1 approval\n");
    assert_eq!(crib.run(&["approvals", "remove", "--all"]).stderr, "revoked 2 approvals\n");
    assert_eq!(crib.run(&["approvals", "remove"]).code, Some(2));
    assert_eq!(crib.run(&["approvals", "remove", "a", "--all"]).code, Some(2));
}

#[test]
fn a_file_of_approvals_that_is_not_understood_stops_everything_and_stays() {
    let crib = crib();
    fs::write(crib.path("approvals.json"), "{\"approvals\":[").unwrap();
    for arguments in [&["call", "echo", "{}"][..], &["approvals", "list"], &["approvals", "remove", "--all"]] {
        let ran = crib.run(arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("approvals.json: EOF while parsing"), "{arguments:?}: {ran:?}");
    }
    assert_eq!(fs::read_to_string(crib.path("approvals.json")).unwrap(), "{\"approvals\":[");
}

#[test]
fn no_tool_may_write_the_rules_or_what_was_agreed_to() {
    let crib = Crib::with_guests(&["file_io"]);
    fs::write(crib.path("work/own.toml"), "").unwrap();
    let call = |op: &str, flags: [&str; 2]| {
        let arguments = json!({"op": op, "path": "own.toml"}).to_string();
        crib.run(&[&["call", "file_io", &arguments, "--json"], &flags[..]].concat())
    };
    let ran = call("roots", ["--allow-write=work", "--approvals=work/agreed.json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("would let a tool reach the approvals in"), "{ran:?}");
    assert!(ran.stderr.contains("work/agreed.json; grant a narrower folder, or keep the two apart"), "{ran:?}");
    let ran = call("roots", ["--allow-read=work", "--approvals=work/agreed.json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let ran = call("write", ["--allow-write=work", "--config=work/own.toml"]);
    assert!(ran.stdout.contains("not-permitted") && ran.stdout.contains("write:own.toml"), "{ran:?}");
    let ran = call("read", ["--allow-write=work", "--config=work/own.toml"]);
    assert!(ran.stdout.contains(r#"{"ok":""}"#), "reading it is no harm: {ran:?}");
}
