//! Files with a mistake: the message names the place and the commands that repair it, and these commands work meanwhile.

use std::fs;

use serde_json::json;

use super::{json as parsed, user_file, write_project, write_user};
use crate::crib::{Crib, Ran, guest};

/// Crib with a tool `rm` that takes a `path` and nothing else.
fn crib() -> Crib {
    let crib = Crib::new();
    crib.install(&guest("echo"), "rm");
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": false});
    crib.manifest(&json!({"tools": [{"name": "rm", "command": ["./tools/bin/rm"], "schema": schema}]}));
    crib
}

fn text(crib: &Crib) -> String {
    fs::read_to_string(user_file(crib)).unwrap()
}

/// Line `config` of `doctor`, with its fix.
fn doctor(crib: &Crib) -> (String, String) {
    let findings = parsed(&crib.run(&["doctor", "--json"]));
    let of_config = findings.as_array().unwrap().iter().find(|finding| finding["check"] == "config").unwrap();
    let fix = of_config["cure"].as_str().unwrap_or_default().to_owned();
    (format!("{} {}", of_config["status"].as_str().unwrap(), of_config["detail"].as_str().unwrap()), fix)
}

#[test]
fn a_mistake_names_the_commands_that_repair_its_file() {
    let crib = crib();
    for (section, hint) in [
        (
            "[limits]\nmax_memry = \"1MiB\"\n",
            "hint: did you mean `max_memory`? `toolcrib config unset limits.max_memry` removes the key, and `toolcrib config \
             edit` opens the file\n",
        ),
        (
            "[profile.ci.limits]\nmax_memory = 1\n",
            "hint: `toolcrib config unset --profile=ci limits.max_memory` removes the key, and `toolcrib config edit` opens the file\n",
        ),
        ("[limits\n", "hint: `toolcrib config edit` opens the file\n"),
        // Without its list, a rule would take the others with it.
        ("[permissions]\ndeny = [\"rm\", \"rm(\"]\n", "missing\nhint: `toolcrib config edit` opens the file\n"),
        // Without its key, the file would not deny.
        ("[deny]\nnet = 1\n", "\nhint: `toolcrib config edit` opens the file\n"),
        ("[permissions]\ndney = [\"rm\"]\n", "did you mean `deny`? `toolcrib config edit` opens the file\n"),
        // On a command line, the name would be that of a table `a`.
        ("[limits]\n\"a.b\" = 1\n", "; `toolcrib config edit` opens the file\n"),
        (
            "[safety]\n",
            "`secrets`, `display`; `toolcrib config unset safety` removes the key, and `toolcrib config edit` opens the \
             file\n",
        ),
    ] {
        write_user(&crib, section);
        for command in
            [&["list"][..], &["call", "rm"], &["config", "get", "model.name"], &["config", "set", "model.name", "x"]]
        {
            let ran = crib.run(command);
            assert!(ran.code == Some(1) && ran.stderr.contains("config.toml:"), "{section} {command:?}: {ran:?}");
            assert!(ran.stderr.ends_with(hint), "{section} {command:?}: {ran:?}");
        }
        let (detail, fix) = doctor(&crib);
        assert!(detail.starts_with("fail ") && detail.contains("config.toml:"), "{detail}");
        assert!(fix.contains("`toolcrib config edit` opens the file"), "{fix}");
        assert_eq!(text(&crib), section);
    }
    write_user(&crib, "");
    write_project(&crib, "[limits]\nmax_memory = 1\n");
    let ran = crib.run(&["list"]);
    assert!(ran.stderr.contains("`toolcrib config unset --project limits.max_memory` removes the key"), "{ran:?}");
}

#[test]
fn a_key_with_a_mistake_is_removed_also_beside_another() {
    let crib = crib();
    write_user(&crib, "[model]\nnam = \"a\" # mine\nname = \"b\"\n[limits]\nfule = 1\n");
    let ran = crib.run(&["config", "unset", "model.nam"]);
    assert_eq!((ran.code, text(&crib).as_str()), (Some(1), "[model]\nname = \"b\"\n[limits]\nfule = 1\n"), "{ran:?}");
    assert!(ran.stderr.starts_with("removed `model.nam` in "), "{ran:?}");
    assert!(ran.stderr.contains("error: the file has another mistake\ncause: "), "{ran:?}");
    assert!(ran.stderr.contains("config.toml:4:1: unknown key `limits.fule`"), "{ran:?}");
    assert_eq!(crib.run(&["config", "unset", "limits.fule"]).code, Some(0));
    assert_eq!(crib.run(&["config", "get", "model.name"]).stdout, "b\n");
    let ran = crib.run(&["config", "unset", "limits.fule"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("unknown key `limits.fule`"), "{ran:?}");
}

#[test]
fn a_section_or_a_profile_is_not_removed_as_a_whole() {
    let crib = crib();
    let whole = "[permissions]\ndeny = [\"rm\"]\nask = [\"rm\"]\n[profile.ci.deny]\nnet = [\"a.example\"]\n";
    write_user(&crib, whole);
    for (arguments, keys) in [
        (&["permissions"][..], ": `permissions.deny`, `permissions.ask`"),
        (&["profile"], ": `profile.ci`"),
        (&["profile.ci"], ": `profile.ci.deny`"),
        (&["--profile=ci", "deny"], ": `deny.net`"),
    ] {
        let ran = crib.run(&[&["config", "unset"], arguments].concat());
        let end = format!("hint: `toolcrib config unset KEY` removes one key{keys}\n");
        assert!(ran.code == Some(1) && ran.stderr.ends_with(&end), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("is a table, which is not removed as a whole: nothing was changed"), "{ran:?}");
        assert_eq!(text(&crib), whole);
    }
    assert_eq!(crib.run(&["config", "unset", "permissions.ask"]).code, Some(0));
}

#[test]
fn a_file_that_is_too_large_stops_every_command() {
    let crib = crib();
    write_project(&crib, &format!("[routes]\n{}", "a = 'b'\n".repeat(1 << 17)));
    let ran = crib.run(&["list"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot read the settings in `toolcrib.toml`"), "{ran:?}");
    assert!(ran.stderr.contains("larger than the 1048576 bytes allowed"), "{ran:?}");
}

#[test]
fn explain_shows_the_layers_without_a_mistake() {
    let crib = crib();
    write_user(&crib, "[limits]\nfule = 1\n");
    write_project(&crib, "[model]\nname = \"x\"\n");
    let ran = crib.run(&["config", "explain"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let row = ran.stdout.lines().find(|line| line.starts_with("model.name ")).unwrap_or_default();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["model.name", "x", "project", "toolcrib.toml:2:8", "used"]);
    assert!(ran.stdout.contains("config.toml: has a mistake, which stops every command"), "{ran:?}");
    assert!(ran.stderr.contains("config.toml:2:1: unknown key `limits.fule`"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn an_editor_opens_a_file_with_a_mistake() {
    let crib = crib();
    write_user(&crib, "[limits\n");
    fs::write(crib.path("editor.sh"), "#!/bin/sh\nprintf '[limits]\\n' > \"$1\"\n").unwrap();
    let editor = format!("/bin/sh {}", crib.path("editor.sh").display());
    let mut command = crib.toolcrib(&["config", "edit"]);
    let ran = Ran::from(command.env("EDITOR", editor).env("PATH", "/usr/bin:/bin").output().unwrap());
    assert_eq!((ran.code, text(&crib).as_str()), (Some(0), "[limits]\n"), "{ran:?}");
}

#[test]
fn a_rule_that_can_never_match_is_not_set_and_a_present_one_is_a_problem_for_doctor() {
    let crib = crib();
    write_user(&crib, "[permissions]\ndeny = [\"rm(path=x)\"]\n");
    let ran = crib.run(&["config", "set", "--add", "permissions.deny", "rm(pth=y)"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.starts_with("error: nothing was changed\ncause: "), "{ran:?}");
    let place =
        "config.toml:2:23: deny rm(pth=y): it can never match: `rm` has no argument `pth`; did you mean `path`?\n";
    assert!(ran.stderr.ends_with(place), "{ran:?}");
    assert_eq!(text(&crib), "[permissions]\ndeny = [\"rm(path=x)\"]\n");
    assert!(doctor(&crib).0.starts_with("ok "), "{:?}", doctor(&crib));
    // Of a tool that no source here has, only the name can be judged.
    let ran = crib.run(&["config", "set", "--add", "permissions.deny", "rmm(pth=y)"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("matches no loaded tool"), "{ran:?}");
    write_user(&crib, "[permissions]\ndeny = [\n  \"rm(path=x)\",\n  \"rm(pth=y)\",\n]\n");
    let (detail, fix) = doctor(&crib);
    assert!(
        detail.starts_with("fail ") && detail.contains("config.toml:4:3: deny rm(pth=y): it can never"),
        "{detail}"
    );
    assert!(fix.starts_with("`toolcrib config edit` opens the file; no call runs until then"), "{fix}");
    let ran = crib.run(&["call", "rm", "{\"path\":\"a\"}"]);
    assert!(ran.stderr.contains("config.toml:4:3: deny rm(pth=y): it can never match"), "{ran:?}");
    assert!(ran.stderr.ends_with("hint: `toolcrib config edit` opens the file\n"), "{ran:?}");
}

#[test]
fn a_rule_of_another_layer_does_not_stop_a_change() {
    let crib = crib();
    write_user(&crib, "[profile.ci.permissions]\ndeny = [\"rm(pth=y)\"]\n");
    let set = |flags: &[&str]| crib.run(&[&["config", "set", "--add"], flags, &["permissions.ask", "rm"]].concat());
    let ran = set(&[]);
    assert_eq!(ran.code, Some(0), "a rule of a profile that is not chosen: {ran:?}");
    let ran = set(&["--profile=ci"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("deny rm(pth=y): it can never match"), "{ran:?}");
    // The tools of a profile are those of its own sources.
    fs::create_dir(crib.path("other")).unwrap();
    fs::write(crib.path("other/tools.json"), r#"{"tools":[]}"#).unwrap();
    let sources = format!("[profile.ci.sources]\ntools = ['{}']\n", crib.path("other/tools.json").display());
    write_user(&crib, &format!("{}{sources}", text(&crib)));
    let ran = set(&["--profile=ci"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn the_sources_of_a_project_that_nobody_trusts_are_not_opened() {
    let mut crib = crib();
    crib.trusts = false;
    fs::write(crib.path("bait.json"), "{").unwrap();
    let project = "[sources]\ntools = [\"./bait.json\"]\n";
    write_project(&crib, project);
    let set = |rule: &str| crib.run(&["config", "set", "--project", "--add", "permissions.deny", rule]);
    let ran = set("rm(pth=y)");
    assert!(ran.code == Some(1) && ran.stderr.contains("`rm` has no argument `pth`"), "the source here: {ran:?}");
    let ran = set("rm");
    assert!(ran.code == Some(0) && !ran.stderr.contains("bait.json"), "{ran:?}");
    crib.trusts = true;
    let ran = crib.run(&["config", "set", "--project", "--add", "permissions.deny", "rm(pth=y)"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("the rules were not checked"), "{ran:?}");
    assert!(ran.stderr.contains("bait.json"), "the user has reviewed it: {ran:?}");
}

#[test]
fn rules_are_set_unchecked_where_the_tools_cannot_be_loaded() {
    let crib = Crib::new();
    fs::write(crib.path("tools.json"), "{").unwrap();
    let ran = crib.run(&["config", "set", "permissions.deny", "rm(pth=y)"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains("hint: the rules were not checked, since the tools cannot be loaded here: "),
        "{ran:?}"
    );
    assert!(text(&crib).contains("rm(pth=y)"), "{}", text(&crib));
}

#[test]
fn a_folder_of_a_file_that_does_not_exist_names_the_file() {
    let crib = crib();
    write_user(&crib, "[allow]\nread = [\"./missing\"]\n");
    let ran = crib.run(&["list"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--allow-read=./missing: the folder does not exist"), "{ran:?}");
    assert!(ran.stderr.contains("config.toml:2; `toolcrib config unset allow.read` removes the key"), "{ran:?}");
    let (detail, fix) = doctor(&crib);
    assert!(detail.starts_with("fail ") && fix.contains("`toolcrib config unset allow.read`"), "{detail} {fix}");
}
