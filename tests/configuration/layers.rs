//! The order of the layers, and the effect of their values.

use std::fs;

use serde_json::json;
use toolcrib::source;

use super::{disagreeing, model, write_project, write_system, write_user};
use crate::crib::{Crib, Ran};
use crate::screen::Page;

#[test]
fn the_strongest_layer_that_has_a_value_decides() {
    let crib = disagreeing();
    let digest = source::digest(&fs::read(crib.path("toolcrib.toml")).unwrap());
    let trust = format!("--trust={digest}");
    let all = [("OAI_MODEL", "from-oai"), ("OPENAI_MODEL", "from-openai")];
    for (flags, variables, name, from) in [
        (&["--model=from-flag", &trust][..], &all[..], "from-flag", "--model"),
        (&[&trust], &all, "from-oai", "OAI_MODEL"),
        (&[&trust], &all[1..], "from-openai", "OPENAI_MODEL"),
        (&[&trust, "--profile=ci"], &[], "from-project", "project settings, toolcrib.toml:2"),
        (&["--profile=ci"], &[], "from-profile", "profile settings, "),
        (&[], &[("TOOLCRIB_PROFILE", "ci")], "from-profile", "profile settings, "),
        (&[], &[], "from-user", "user settings, "),
    ] {
        let (model, origin) = model(&crib, flags, variables);
        assert_eq!(model, name, "{flags:?} {variables:?}");
        assert!(origin.starts_with(from), "{flags:?} {variables:?}: {origin}");
    }
    fs::remove_dir_all(super::user_file(&crib).parent().unwrap()).unwrap();
    let (model, origin) = model(&crib, &[], &[]);
    assert!(model == "from-system" && origin.ends_with("etc/config.toml:3"), "{model} {origin}");
}

#[test]
fn the_environment_names_a_server_by_either_variable() {
    let crib = Crib::new();
    write_user(&crib, "[model]\nbase_url = \"http://127.0.0.1:1/user\"\n");
    let url = |variables: &[(&str, &str)]| {
        let mut command = crib.toolcrib(&["run", "--print-config"]);
        let ran = Ran::from(command.envs(variables.iter().copied()).output().unwrap());
        super::json(&ran)["baseUrl"].as_str().unwrap().to_owned()
    };
    let openai = ("OPENAI_BASE_URL", "http://127.0.0.1:1/openai");
    assert!(url(&[("OAI_BASE_URL", "http://127.0.0.1:1/oai"), openai]).ends_with("/oai"));
    assert!(url(&[openai]).ends_with("/openai"));
    assert!(url(&[("OPENAI_BASE_URL", " ")]).ends_with("/user"), "an empty variable is none");
}

#[test]
fn a_denial_of_any_layer_holds_and_names_its_file() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    write_system(&crib, "[permissions]\ndeny = [\"echo(n=1)\"]\n");
    write_user(&crib, "[permissions]\nallow = [\"echo\"]\n");
    page.run(&crib, &["call", "echo", "{\"n\":1}", "--allow-tool=echo"]);
    assert_eq!(crib.outcome("echo", &json!({"n": 2}), &[]), "ok");
    page.matches("config/denial");
}

#[test]
fn denied_folders_of_the_system_cannot_be_granted() {
    let crib = Crib::with_guests(&["echo"]);
    fs::write(crib.path("work/note.txt"), "hello").unwrap();
    let granted = |flags: &[&str]| {
        let ran = crib.run(&[&["list", "--json"], flags].concat());
        let tools = super::json(&ran);
        tools[0]["granted"].to_string()
    };
    assert!(granted(&["--allow-read=work"]).contains("work"));
    write_system(&crib, &format!("[deny]\nread = [{:?}]\n", crib.path("work")));
    assert!(!granted(&["--allow-read=work"]).contains("work"));
}

#[test]
fn grants_and_limits_of_a_file_are_those_of_their_options() {
    let crib = Crib::with_guests(&["echo"]);
    let granted = |flags: &[&str]| {
        let ran = crib.run(&[&["list", "--json"], flags].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        super::json(&ran)[0]["granted"].to_string()
    };
    write_user(&crib, "[allow]\nread = [\"./work\"]\n");
    assert!(granted(&[]).contains("work"), "{}", granted(&[]));
    fs::create_dir(crib.path("other")).unwrap();
    let narrowed = granted(&["--allow-read=other"]);
    assert!(!narrowed.contains("work"), "a flag replaces the list of its key: {narrowed}");
    let crib = Crib::with_guests(&["spin"]);
    write_user(&crib, "[limits]\nmax_timeout = \"300ms\"\n");
    assert_eq!(crib.outcome("spin", &json!({}), &[]), "deadline");
}

#[test]
fn a_strangers_file_acts_only_once_it_is_trusted() {
    let page = Page::new();
    let mut crib = Crib::with_guests(&["echo"]);
    crib.trusts = false;
    write_project(
        &crib,
        "[model]\nbase_url = \"http://127.0.0.1:9\"\nname = \"x\"\n[allow]\nread = [\".\"]\n[sources]\ntools = [\"builtin\"]\n\
         [display]\ncolor = \"always\"\n[records]\nlog_arguments = false\n",
    );
    let ran = crib.run(&["list", "--json"]);
    assert!(ran.stdout.contains("\"echo\"") && !ran.stdout.contains("fs_read_file"), "{ran:?}");
    assert!(ran.stderr.contains("`toolcrib.toml` is not trusted"), "{ran:?}");
    let tools = super::json(&ran);
    assert_eq!(tools[0]["granted"], json!([]), "{tools}");
    page.run(&crib, &["call", "echo", "{}"]);
    let records = crib.records();
    assert!(records.len() == 1 && records[0]["arguments"]["json"].is_object(), "{records:?}");
    let shown = super::json(&crib.run(&["run", "--print-config"]));
    assert!(shown["baseUrl"] != "http://127.0.0.1:9" && shown["model"].is_null(), "{shown}");
    crib.trusts = true;
    let shown = super::json(&crib.run(&["run", "--print-config"]));
    assert_eq!(shown["model"], "x", "{shown}");
    page.matches("config/stranger");
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_write_stops_every_command() {
    let page = Page::new();
    use std::os::unix::fs::PermissionsExt;
    let crib = Crib::with_guests(&["echo"]);
    write_user(&crib, "[allow]\nmodel = true\n");
    fs::set_permissions(super::user_file(&crib), fs::Permissions::from_mode(0o666)).unwrap();
    page.run(&crib, &["call", "echo", "{}"]);
    assert_eq!(crib.records(), [] as [serde_json::Value; 0]);
    page.matches("config/writable");
}

#[test]
fn no_tool_gets_the_settings_of_all_folders() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let folder = super::user_file(&crib).parent().unwrap().to_owned();
    fs::create_dir_all(&folder).unwrap();
    let write = format!("--allow-write={}", folder.display());
    let arguments = r#"{"path":"config.toml","content":"[allow]"}"#;
    page.run(&crib, &["call", "fs_write_file", arguments, "--tools=builtin", &write]);
    page.matches("config/reached");
}

#[test]
fn a_profile_that_does_not_exist_is_an_error_with_the_nearest() {
    let page = Page::new();
    let crib = disagreeing();
    page.run(&crib, &["list", "--profile=cii"]);
    page.run(&crib, &["list", "--profile=other"]);
    page.matches("config/profile");
}

#[test]
fn a_mistake_in_any_layer_is_told_with_its_place_also_as_json() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    write_user(&crib, "[limits]\nmax_memry = \"1MiB\"\n");
    let ran = crib.run(&["call", "echo", "{}", "--json"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("config.toml:2:1: unknown key `limits.max_memry`"), "{ran:?}");
    assert!(ran.stderr.contains("hint: did you mean `max_memory`?"), "{ran:?}");
    assert!(super::json(&ran)["error"].as_str().unwrap().contains("config.toml:2:1: unknown key"), "{ran:?}");
    page.run(&crib, &["doctor"]);
    page.matches("config/mistake");
}

#[test]
fn a_misspelt_argument_in_a_rule_of_any_layer_is_refused() {
    let page = Page::new();
    let crib = Crib::new();
    crib.install(&crate::crib::guest("echo"), "rm");
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": false});
    crib.manifest(&json!({"tools": [{"name": "rm", "command": ["./tools/bin/rm"], "schema": schema}]}));
    for write in [write_user, write_system] {
        write(&crib, "[permissions]\ndeny = [\"rm(pth=*)\"]\n");
        page.run(&crib, &["call", "rm", "{\"path\":\"x\"}"]);
    }
    assert_eq!(crib.records(), [] as [serde_json::Value; 0], "nothing has run");
    page.matches("config/misspelt-rule");
}
