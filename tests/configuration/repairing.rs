//! Files with a mistake: the message names the place and the commands that repair it, and these commands work meanwhile.

use std::fs;

use serde_json::json;

use super::{json as parsed, user_file, write_project, write_user};
use crate::crib::{Crib, Ran, guest};
use crate::screen::Page;

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
    let page = Page::new();
    let crib = crib();
    for section in [
        "[limits]\nmax_memry = \"1MiB\"\n",
        "[profile.ci.limits]\nmax_memory = 1\n",
        "[limits\n",
        // Without its list, a rule would take the others with it.
        "[permissions]\ndeny = [\"rm\", \"rm(\"]\n",
        // Without its key, the file would not deny.
        "[deny]\nnet = 1\n",
        "[permissions]\ndney = [\"rm\"]\n",
        // On a command line, the name would mean a table `a`.
        "[limits]\n\"a.b\" = 1\n",
        "[safety]\n",
    ] {
        write_user(&crib, section);
        page.text("settings of the user", section);
        for command in
            [&["list"][..], &["call", "rm"], &["config", "get", "model.name"], &["config", "set", "model.name", "x"]]
        {
            page.run(&crib, command);
        }
        let (detail, fix) = doctor(&crib);
        assert!(detail.starts_with("fail ") && detail.contains("config.toml:"), "{detail}");
        assert!(fix.contains("`toolcrib config edit` opens the file"), "{fix}");
        assert_eq!(text(&crib), section);
    }
    write_user(&crib, "");
    write_project(&crib, "[limits]\nmax_memory = 1\n");
    page.run(&crib, &["list"]);
    page.matches("config/repair");
}

#[test]
fn a_key_with_a_mistake_is_removed_also_beside_another() {
    let page = Page::new();
    let crib = crib();
    write_user(&crib, "[model]\nnam = \"a\" # mine\nname = \"b\"\n[limits]\nfule = 1\n");
    let ran = page.run(&crib, &["config", "unset", "model.nam"]);
    assert_eq!((ran.code, text(&crib).as_str()), (Some(1), "[model]\nname = \"b\"\n[limits]\nfule = 1\n"), "{ran:?}");
    page.run(&crib, &["config", "unset", "limits.fule"]);
    assert_eq!(page.run(&crib, &["config", "get", "model.name"]).stdout, "b\n");
    page.run(&crib, &["config", "unset", "limits.fule"]);
    page.matches("config/unset");
}

#[test]
fn a_section_or_a_profile_is_not_removed_as_a_whole() {
    let page = Page::new();
    let crib = crib();
    let whole = "[permissions]\ndeny = [\"rm\"]\nask = [\"rm\"]\n[profile.ci.deny]\nnet = [\"a.example\"]\n";
    write_user(&crib, whole);
    for arguments in [&["permissions"][..], &["profile"], &["profile.ci"], &["--profile=ci", "deny"]] {
        page.run(&crib, &[&["config", "unset"], arguments].concat());
        assert_eq!(text(&crib), whole);
    }
    page.run(&crib, &["config", "unset", "permissions.ask"]);
    page.matches("config/unset-table");
}

#[test]
fn a_file_that_is_too_large_stops_every_command() {
    let page = Page::new();
    let crib = crib();
    write_project(&crib, &format!("[routes]\n{}", "a = 'b'\n".repeat(1 << 17)));
    page.run(&crib, &["list"]);
    page.matches("config/too-large");
}

#[test]
fn explain_shows_the_layers_without_a_mistake() {
    let page = Page::new();
    let crib = crib();
    write_user(&crib, "[limits]\nfule = 1\n");
    write_project(&crib, "[model]\nname = \"x\"\n");
    let ran = page.run(&crib, &["config", "explain"]);
    let row = ran.stdout.lines().find(|line| line.starts_with("model.name ")).unwrap_or_default();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["model.name", "x", "project", "toolcrib.toml:2:8", "used"]);
    page.matches("config/explain-mistake");
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
    let page = Page::new();
    let crib = crib();
    write_user(&crib, "[permissions]\ndeny = [\"rm(path=x)\"]\n");
    page.run(&crib, &["config", "set", "--add", "permissions.deny", "rm(pth=y)"]);
    assert_eq!(text(&crib), "[permissions]\ndeny = [\"rm(path=x)\"]\n");
    assert!(doctor(&crib).0.starts_with("ok "), "{:?}", doctor(&crib));
    // Of a tool that no source here has, only the name can be judged.
    page.run(&crib, &["config", "set", "--add", "permissions.deny", "rmm(pth=y)"]);
    write_user(&crib, "[permissions]\ndeny = [\n  \"rm(path=x)\",\n  \"rm(pth=y)\",\n]\n");
    let (detail, fix) = doctor(&crib);
    assert!(
        detail.starts_with("fail ") && detail.contains("config.toml:4:3: deny rm(pth=y): it can never"),
        "{detail}"
    );
    assert!(fix.starts_with("`toolcrib config edit` opens the file; no call runs until then"), "{fix}");
    page.run(&crib, &["call", "rm", "{\"path\":\"a\"}"]);
    page.matches("config/dead-rule");
}

#[test]
fn a_rule_of_another_layer_does_not_stop_a_change() {
    let page = Page::new();
    let crib = crib();
    write_user(&crib, "[profile.ci.permissions]\ndeny = [\"rm(pth=y)\"]\n");
    let set =
        |flags: &[&str]| page.run(&crib, &[&["config", "set", "--add"], flags, &["permissions.ask", "rm"]].concat());
    set(&[]);
    set(&["--profile=ci"]);
    // The tools of a profile come from its own sources.
    fs::create_dir(crib.path("other")).unwrap();
    fs::write(crib.path("other/tools.json"), r#"{"tools":[]}"#).unwrap();
    let sources = format!("[profile.ci.sources]\ntools = ['{}']\n", crib.path("other/tools.json").display());
    write_user(&crib, &format!("{}{sources}", text(&crib)));
    set(&["--profile=ci"]);
    page.matches("config/other-layer");
}

#[test]
fn the_sources_of_a_project_that_nobody_trusts_are_not_opened() {
    let page = Page::new();
    let mut crib = crib();
    crib.trusts = false;
    fs::write(crib.path("bait.json"), "{").unwrap();
    let project = "[sources]\ntools = [\"./bait.json\"]\n";
    write_project(&crib, project);
    let set = |rule: &str| page.run(&crib, &["config", "set", "--project", "--add", "permissions.deny", rule]);
    set("rm(pth=y)");
    set("rm");
    crib.trusts = true;
    page.note("the user has reviewed it");
    page.run(&crib, &["config", "set", "--project", "--add", "permissions.deny", "rm(pth=y)"]);
    page.matches("config/bait");
}

#[test]
fn rules_are_set_unchecked_where_the_tools_cannot_be_loaded() {
    let page = Page::new();
    let crib = Crib::new();
    fs::write(crib.path("tools.json"), "{").unwrap();
    page.run(&crib, &["config", "set", "permissions.deny", "rm(pth=y)"]);
    assert!(text(&crib).contains("rm(pth=y)"), "{}", text(&crib));
    page.matches("config/unchecked");
}

#[test]
fn a_folder_of_a_file_that_does_not_exist_names_the_file() {
    let page = Page::new();
    let crib = crib();
    write_user(&crib, "[allow]\nread = [\"./missing\"]\n");
    page.run(&crib, &["list"]);
    let (detail, fix) = doctor(&crib);
    assert!(detail.starts_with("warn ") && fix.contains("`toolcrib config unset allow.read`"), "{detail} {fix}");
    page.matches("config/missing-folder");
}

#[test]
fn a_missing_folder_of_settings_breaks_no_command_and_one_of_an_option_does() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    write_user(&crib, "[allow]\nread = [\"/nope\", \"./work\"]\nwrite = [\"~/none\"]\n");
    page.run(&crib, &["call", "echo", "{}"]);
    assert!(crib.run(&["list"]).stdout.contains("/work"), "the others are granted");
    page.run(&crib, &["call", "echo", "{}", "--allow-write=/nope"]);
    page.matches("config/missing-folders");
}

#[test]
fn an_empty_variable_removes_no_policy_of_the_system() {
    let crib = Crib::with_guests(&["echo"]);
    let explained =
        |value: &str| Ran::of(crib.toolcrib(&["config", "explain"]).env("TOOLCRIB_SYSTEM_CONFIG", value)).stdout;
    let system = |text: &str| text.lines().find(|line| line.starts_with("system")).unwrap_or_default().to_owned();
    assert!(system(&explained("other.toml")).contains("other.toml"));
    let place = system(&explained(""));
    assert!(place.contains("config.toml"), "{place}");
}

#[test]
#[cfg(unix)]
fn a_mark_of_the_home_directory_is_a_path_in_each_option() {
    let crib = Crib::with_guests(&["echo"]);
    fs::create_dir(crib.path("home/docs")).unwrap();
    fs::copy(crib.path("tools.json"), crib.path("home/docs/tools.json")).unwrap();
    fs::create_dir_all(crib.path("home/docs/tools/bin")).unwrap();
    fs::copy(crib.path("tools/bin/echo.wasm"), crib.path("home/docs/tools/bin/echo.wasm")).unwrap();
    let listed = |flags: &[&str]| crib.run(&[&["list", "--json"], flags].concat()).stdout;
    for flag in ["--allow-read=~/docs", "--allow-write=echo:~/docs", "--allow-read=work,~/docs"] {
        assert!(listed(&["--tools=tools.json", flag]).contains("/home/docs\""), "{flag}");
    }
    assert!(listed(&["--tools=~/docs/tools.json"]).contains("/home/docs/tools.json"));
    let ran = crib.run(&["list", "--allow-read=~other"]);
    assert!(ran.stderr.contains("~other"), "the home directory of another user: {ran:?}");
}

#[test]
fn a_model_that_only_an_untrusted_file_names_is_reported() {
    let page = Page::new();
    let mut crib = Crib::with_guests(&["echo"]);
    crib.trusts = false;
    write_project(&crib, "[model]\nname = \"small\"\nbase_url = \"http://127.0.0.1:1/v1\"\n");
    page.run(&crib, &["run", "hi"]);
    write_project(&crib, "[limits]\nmax_memory = \"64MiB\"\n");
    page.run(&crib, &["run", "hi"]);
    page.matches("config/ignored-model");
}

#[test]
fn a_denial_of_a_file_that_cannot_be_kept_names_the_file() {
    let page = Page::new();
    let crib = Crib::with_guests(&["file_io"]);
    fs::create_dir_all(crib.path("work/sub")).unwrap();
    for denied in ["./work/sub", "file_io:./work/sub"] {
        write_user(&crib, &format!("[deny]\nwrite = [\"{denied}\"]\n"));
        let ran = page.run(&crib, &["call", "file_io", r#"{"op":"roots"}"#, "--allow-write=work"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
    }
    page.matches("config/denied-inside");
}
