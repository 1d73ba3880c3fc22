//! Rules that can never match are reported before anything runs, so that nobody relies on a denial without effect.

use std::fs;

use serde_json::{Value, json};

use crate::crib::{Crib, guest};

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
    let crib = crib();
    let near = "it can never match: `rm` has no argument `pth`; did you mean `path`?\n";
    assert_eq!(refused(&crib, "rm(pth=*)"), near);
    assert_eq!(refused(&crib, "r?(pth=secrets/*)"), near);
    assert_eq!(refused(&crib, "rm(path=x, pth=y)"), near, "all conditions of a rule have to hold");
    assert!(
        refused(&crib, "rm(/options/deph=3)").ends_with("has no argument `/options/deph`; did you mean `depth`?\n")
    );
    assert!(refused(&crib, "rm(/path/0=x)").contains("`rm` has no argument `/path/0`"));
    assert!(refused(&crib, "rm(recursive=true)").ends_with("`recursive`; it has `path`, `mode`, `options`\n"));
}

#[test]
fn a_rule_over_a_value_that_no_argument_takes_is_an_error() {
    let crib = crib();
    let said = "it can never match: the argument `mode` of `rm` takes no value like `fast`\n";
    assert_eq!(refused(&crib, "rm(mode=fast)"), said);
    assert!(refused(&crib, "rm(/options/depth=deep)").contains("takes no value like `deep`"));
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
    let crib = crib();
    let by_file = |rule: &str| {
        fs::write(crib.path("toolcrib.toml"), format!("[permissions]\ndeny = ['{rule}']\n")).unwrap();
        let ran = crib.run(&["list"]);
        fs::remove_file(crib.path("toolcrib.toml")).unwrap();
        ran
    };
    for rule in ["opne(pth=*)", "opn*"] {
        let ran = by_file(rule);
        let words = format!("`deny {rule} (toolcrib.toml)` matches no loaded tool; did you mean `open`?");
        assert!(ran.code == Some(0) && ran.stderr.contains(&words), "{ran:?}");
        if rule.starts_with("opn*") {
            let ran = crib.run(&["list", &format!("--deny-tool={rule}")]);
            let words = format!("`deny {rule} (--deny-tool)` matches no loaded tool; did you mean `open`?");
            assert!(ran.code == Some(0) && ran.stderr.contains(&words), "a pattern may be meant: {ran:?}");
            continue;
        }
        for flag in ["allow", "ask", "deny"] {
            let ran = crib.run(&["call", "rm", "{\"path\":\"x\"}", &format!("--{flag}-tool={rule}")]);
            let message = format!("error: `{flag} {rule} (--{flag}-tool)` matches no loaded tool: nothing was run\n");
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), (message + "hint: did you mean `open`?\n").as_str()));
        }
    }
    let ran = crib.run(&["list", "--deny-tool=absent_*"]);
    assert!(ran.code == Some(0), "{ran:?}");
    assert!(ran.stderr.contains("`deny absent_* (--deny-tool)` matches no loaded tool\n"), "{ran:?}");
    assert_eq!(crib.records().len(), 0, "nothing has run");
}

#[test]
fn tools_that_are_searched_for_are_judged_like_others() {
    let crib = crib();
    fs::write(crib.path("toolcrib.toml"), "[scheduler]\ndefer_above = 1\n[permissions]\ndeny = ['rm(pth=*)']\n")
        .unwrap();
    let ran = crib.run(&["list"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("did you mean `path`?"), "{ran:?}");
}

#[test]
fn a_hook_over_an_argument_that_its_tools_do_not_have_is_an_error() {
    let crib = crib();
    fs::create_dir_all(crib.path(".harness/hooks")).unwrap();
    let write = |when: &str| {
        let text = format!(
            "---\nevent: tool.pre\nwhen: {when}\nscript: |\n  def handle(event, payload):\n      return block(\"no\")\n---\n"
        );
        fs::write(crib.path(".harness/hooks/guard.md"), text).unwrap();
        crib.run(&["list", "--tools", "."])
    };
    let ran = write("{tool: rm, args: {pth: \"*\"}}");
    assert!(ran.code == Some(1) && ran.stderr.contains("hook \"guard\": when.args: it can never match"), "{ran:?}");
    assert!(ran.stderr.contains("did you mean `path`?"), "{ran:?}");
    for when in ["{tool: rm, args: {path: \"*\"}}", "{tool: \"*\", args: {pth: \"*\"}}", "{args: {pth: \"*\"}}"] {
        let ran = write(when);
        assert_eq!(ran.code, Some(0), "{when}: {ran:?}");
    }
}

#[test]
fn a_dead_rule_is_told_by_every_command_that_changes_or_explains_its_file() {
    let crib = crib();
    let user = crib.path("home/.config/toolcrib/config.toml");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    let text = "[permissions]\ndeny = ['rm(pth=*)']\n[limits]\nmax_memory = \"32MiB\"\nfuel = 9\n";
    fs::write(&user, text).unwrap();
    let dead = "deny rm(pth=*): it can never match: `rm` has no argument `pth`; did you mean `path`?";
    let set = crib.run(&["config", "set", "model.name", "m"]);
    assert!(set.code == Some(1) && set.stderr.starts_with("error: nothing was changed\n"), "{set:?}");
    assert!(
        set.stderr.contains(dead) && set.stderr.contains("hint: ") && set.stderr.contains("config edit"),
        "{set:?}"
    );
    assert_eq!(fs::read_to_string(&user).unwrap(), text);
    let explained = crib.run(&["config", "explain"]);
    assert!(explained.code == Some(1) && explained.stderr.contains(dead), "{explained:?}");
    assert!(explained.stdout.contains("config.toml: has a mistake, which stops every command"), "{explained:?}");
    let unset = crib.run(&["config", "unset", "limits.fuel"]);
    assert!(unset.stderr.contains("error: the file has another mistake") && unset.stderr.contains(dead), "{unset:?}");
    assert!(unset.code == Some(1) && !fs::read_to_string(&user).unwrap().contains("fuel"), "it is removed: {unset:?}");
    assert_eq!(crib.run(&["config", "set", "permissions.deny", "rm(path=*)"]).code, Some(0));
    assert!(crib.run(&["config", "explain"]).stdout.contains("config.toml: used"));
    assert_eq!(crib.run(&["config", "set", "model.name", "m"]).code, Some(0));
}
