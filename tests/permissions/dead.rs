//! Rules that can never match are reported before anything runs, so that nobody relies on a denial without effect.

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, guest};
use crate::screen::Page;

/// Creates a crib with `rm`, which has a closed schema, and `open`, which has an open one.
fn crib() -> Crib {
    let crib = Crib::new();
    crib.install(&guest("echo"), "rm");
    let closed = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "mode": {"enum": ["slow", "safe"]},
            "options": {"type": "object", "properties": {"depth": {"type": "integer"}}, "additionalProperties": false},
        },
        "additionalProperties": false,
    });
    let entry = |name: &str, schema: Value| json!({"name": name, "command": ["./tools/bin/rm"], "schema": schema});
    crib.manifest(&json!({"tools": [entry("rm", closed), entry("open", json!({"properties": {"path": {}}}))]}));
    crib
}

/// Message about a rule, by a flag and by a file, that stops the program.
#[track_caller]
fn refused(crib: &Crib, rule: &str) -> String {
    let mut said = Vec::new();
    for (behavior, flag) in [("allow", "--allow-tool"), ("ask", "--ask-tool"), ("deny", "--deny-tool")] {
        let ran = crib.run(&["list", &format!("{flag}={rule}")]);
        assert!(ran.code == Some(1) && ran.stdout.is_empty(), "{ran:?}");
        assert!(ran.stderr.starts_with(&format!("error: {behavior} {rule} ({flag}): ")), "{ran:?}");
        fs::write(crib.path("toolcrib.toml"), format!("[permissions]\n{behavior} = ['{rule}']\n")).unwrap();
        let by_file = crib.run(&["call", "rm", "{\"path\":\"x\"}"]);
        fs::remove_file(crib.path("toolcrib.toml")).unwrap();
        let place = format!("error: toolcrib.toml:2:{}: {behavior} {rule}: it can", behavior.len() + 5);
        assert!(by_file.stderr.starts_with(&place), "{by_file:?}");
        assert!(by_file.stderr.contains("\nhint: `toolcrib config edit --project` opens the file\n"), "{by_file:?}");
        assert_eq!((by_file.code, crib.records().len()), (Some(1), 0), "nothing has run");
        said.push(ran.stderr.split_once("): ").unwrap().1.to_owned());
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
    said.remove(0)
}

#[test]
fn a_rule_over_an_argument_that_no_tool_has_is_an_error() {
    let page = Page::new();
    let crib = crib();
    let refused = |rule: &str| {
        let said = refused(&crib, rule);
        page.text(rule, &said);
        said
    };
    let near = refused("rm(pth=*)");
    assert_eq!(refused("r?(pth=secrets/*)"), near);
    assert_eq!(refused("rm(path=x, pth=y)"), near, "all conditions of a rule have to hold");
    for rule in ["rm(/options/deph=3)", "rm(/path/0=x)", "rm(recursive=true)"] {
        refused(rule);
    }
    page.matches("permissions/dead-argument");
}

#[test]
fn a_rule_over_a_value_that_no_argument_takes_is_an_error() {
    let page = Page::new();
    let crib = crib();
    for rule in ["rm(mode=fast)", "rm(/options/depth=deep)"] {
        page.text(rule, refused(&crib, rule));
    }
    page.matches("permissions/dead-value");
}

#[test]
fn a_rule_that_can_match_is_none() {
    let crib = crib();
    for rule in
        ["rm(path=x)", "rm(mode=s*)", "open(pth=*)", "*(pth=*)", "rm(/options/depth=3)", "rm(argv=--force)", "rm"]
    {
        let ran = crib.run(&["list", &format!("--deny-tool={rule}")]);
        assert_eq!((ran.code, ran.stderr.contains("match")), (Some(0), false), "{rule}: {ran:?}");
    }
}

#[test]
fn a_rule_for_no_loaded_tool_is_a_warning_and_a_misspelt_flag_an_error_with_the_tool_that_was_meant() {
    let page = Page::new();
    let crib = crib();
    let by_file = |rule: &str| {
        fs::write(crib.path("toolcrib.toml"), format!("[permissions]\ndeny = ['{rule}']\n")).unwrap();
        page.text("toolcrib.toml", format!("[permissions]\ndeny = ['{rule}']\n"));
        let ran = page.run(&crib, &["list"]);
        fs::remove_file(crib.path("toolcrib.toml")).unwrap();
        ran
    };
    for rule in ["opne(pth=*)", "opn*"] {
        by_file(rule);
        if rule.starts_with("opn*") {
            page.note("a pattern may be meant");
            page.run(&crib, &["list", &format!("--deny-tool={rule}")]);
            continue;
        }
        for flag in ["allow", "ask", "deny"] {
            let ran = page.run(&crib, &["call", "rm", "{\"path\":\"x\"}", &format!("--{flag}-tool={rule}")]);
            let message = format!("error: `{flag} {rule} (--{flag}-tool)` matches no loaded tool: nothing was run\n");
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), (message + "hint: did you mean `open`?\n").as_str()));
        }
    }
    page.run(&crib, &["list", "--deny-tool=absent_*"]);
    assert_eq!(crib.records().len(), 0, "nothing has run");
    page.matches("permissions/no-loaded-tool");
}

#[test]
fn tools_that_are_searched_for_are_judged_like_others() {
    let page = Page::new();
    let crib = crib();
    fs::write(crib.path("toolcrib.toml"), "[scheduler]\ndefer_above = 1\n[permissions]\ndeny = ['rm(pth=*)']\n")
        .unwrap();
    page.run(&crib, &["list"]);
    page.matches("permissions/dead-deferred");
}

#[test]
fn a_hook_over_an_argument_that_its_tools_do_not_have_is_an_error() {
    let page = Page::new();
    let crib = crib();
    fs::create_dir_all(crib.path(".harness/hooks")).unwrap();
    let write = |when: &str| {
        let text = format!(
            "---\nevent: tool.pre\nwhen: {when}\nscript: |\n  def handle(event, payload):\n      return block(\"no\")\n---\n"
        );
        fs::write(crib.path(".harness/hooks/guard.md"), &text).unwrap();
        page.text(".harness/hooks/guard.md", text);
        page.run(&crib, &["list", "--tools", "."])
    };
    write("{tool: rm, args: {pth: \"*\"}}");
    for when in ["{tool: rm, args: {path: \"*\"}}", "{tool: \"*\", args: {pth: \"*\"}}", "{args: {pth: \"*\"}}"] {
        write(when);
    }
    page.matches("permissions/dead-hook");
}

#[test]
fn a_dead_rule_is_told_by_every_command_that_changes_or_explains_its_file() {
    let page = Page::new();
    let crib = crib();
    let user = crib.path("home/.config/toolcrib/config.toml");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    let text = "[permissions]\ndeny = ['rm(pth=*)']\n[limits]\nmax_memory = \"32MiB\"\nfuel = 9\n";
    fs::write(&user, text).unwrap();
    page.run(&crib, &["config", "set", "model.name", "m"]);
    assert_eq!(fs::read_to_string(&user).unwrap(), text);
    page.run(&crib, &["config", "explain"]);
    page.note("it is removed");
    let unset = page.run(&crib, &["config", "unset", "limits.fuel"]);
    assert!(!fs::read_to_string(&user).unwrap().contains("fuel"), "it is removed: {unset:?}");
    page.run(&crib, &["config", "set", "permissions.deny", "rm(path=*)"]);
    page.run(&crib, &["config", "explain"]);
    page.run(&crib, &["config", "set", "model.name", "m"]);
    page.matches("permissions/dead-file");
}
