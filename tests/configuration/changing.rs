//! `toolcrib config set`, `unset` and `edit`: comments stay, a mistake changes nothing, and a trusted project stays trusted.

use std::fs;

use super::{user_file, write_project, write_user};
use crate::crib::{Crib, Ran};
use crate::screen::Page;

#[test]
fn set_keeps_comments_and_refuses_a_wrong_value() {
    let page = Page::new();
    let crib = Crib::new();
    write_user(&crib, "# mine\n[model]\nname = \"a\" # for now\n");
    let text = || fs::read_to_string(user_file(&crib)).unwrap();
    page.run(&crib, &["config", "set", "model.name", "b"]);
    assert_eq!(text(), "# mine\n[model]\nname = \"b\" # for now\n");
    page.run(&crib, &["config", "set", "limits.max_memory", "large"]);
    assert_eq!(text(), "# mine\n[model]\nname = \"b\" # for now\n");
    page.run(&crib, &["config", "set", "--add", "permissions.deny", "fs_rm(path=*.git*)"]);
    page.run(&crib, &["config", "set", "--profile=ci", "limits.concurrency", "2"]);
    assert!(
        text().contains("deny = [\"fs_rm(path=*.git*)\"]") && text().contains("[profile.ci.limits]\nconcurrency = 2")
    );
    page.run(&crib, &["config", "unset", "model.name"]);
    assert!(!text().contains("name ="), "{}", text());
    page.run(&crib, &["config", "unset", "model.name"]);
    page.run(&crib, &["config", "set", "model.nam", "x"]);
    page.matches("config/set");
}

#[test]
fn a_first_value_creates_the_file() {
    let page = Page::new();
    let crib = Crib::new();
    page.run(&crib, &["config", "set", "model.name", "x"]);
    assert_eq!(fs::read_to_string(user_file(&crib)).unwrap(), "[model]\nname = \"x\"\n");
    page.matches("config/first-value");
}

#[test]
fn the_users_own_change_keeps_the_trust_in_a_project_and_gives_none() {
    let mut crib = Crib::with_guests(&["echo"]);
    crib.trusts = false;
    assert_eq!(crib.run(&["config", "set", "--project", "run.tags", "ci"]).code, Some(0));
    let state = || crib.run(&["config", "explain"]).stdout.lines().next().unwrap().to_owned();
    assert_eq!(state(), "project  toolcrib.toml: used", "a file that the user made");
    assert_eq!(crib.run(&["config", "set", "--project", "model.name", "x"]).code, Some(0));
    assert_eq!(state(), "project  toolcrib.toml: used");
    for change in [
        &["set", "--project", "model.name", "y"][..],
        &["set", "--project", "--add", "run.tags", "more"],
        &["set", "--project", "limits.fuel", "7"],
        &["unset", "--project", "limits.fuel"],
        &["set", "--project", "run.tags", "[]"],
    ] {
        assert_eq!(crib.run(&[&["config"], change].concat()).code, Some(0), "{change:?}");
        assert_eq!(state(), "project  toolcrib.toml: used", "{change:?}");
    }
    write_project(&crib, "[run]\ntags = [\"other\"]\n");
    assert!(state().contains("not trusted"), "{}", state());
    assert_eq!(crib.run(&["config", "set", "--project", "model.name", "x"]).code, Some(0));
    assert!(state().contains("not trusted"), "a change gives no trust: {}", state());
}

#[cfg(unix)]
#[test]
fn the_users_own_edit_keeps_the_trust_in_a_project_and_gives_none() {
    let mut crib = Crib::with_guests(&["echo"]);
    crib.trusts = false;
    let edit = |script: &str| {
        fs::write(crib.path("editor.sh"), format!("#!/bin/sh\n{script}\n")).unwrap();
        let editor = format!("/bin/sh {}", crib.path("editor.sh").display());
        let mut command = crib.toolcrib(&["config", "edit", "--project"]);
        let ran = Ran::from(command.env("EDITOR", editor).env("PATH", "/usr/bin:/bin").output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        crib.run(&["config", "explain"]).stdout.lines().next().unwrap().to_owned()
    };
    assert_eq!(edit("printf '[run]\\ntags = [\"a\"]\\n' > \"$1\""), "project  toolcrib.toml: used");
    let two = "printf '[model]\\nname = \"x\"\\napi = \"chat\"\\n' > \"$1\"";
    assert_eq!(edit(two), "project  toolcrib.toml: used", "other settings, and more of them");
    write_project(&crib, "[run]\ntags = [\"other\"]\n");
    assert!(
        edit("echo '[model]' > \"$1\"; echo 'name = \"y\"' >> \"$1\"").contains("not trusted"),
        "an edit gives no trust"
    );
}

#[cfg(unix)]
#[test]
fn a_text_with_a_mistake_does_not_replace_the_file() {
    let page = Page::new();
    let crib = Crib::new();
    write_user(&crib, "[model]\nname = \"a\"\n");
    let edit = |script: &str| {
        fs::write(crib.path("editor.sh"), format!("#!/bin/sh\n{script}\n")).unwrap();
        let editor = format!("/bin/sh {}", crib.path("editor.sh").display());
        let mut command = crib.toolcrib(&["config", "edit"]);
        page.command(command.env("EDITOR", editor).env("PATH", "/usr/bin:/bin"))
    };
    let text = || fs::read_to_string(user_file(&crib)).unwrap();
    edit("echo 'nam = 1' >> \"$1\"");
    assert_eq!(text(), "[model]\nname = \"a\"\n");
    let ran = edit("echo 'api = \"chat\"' >> \"$1\"");
    assert_eq!((ran.code, text().as_str()), (Some(0), "[model]\nname = \"a\"\napi = \"chat\"\n"), "{ran:?}");
    assert_eq!(edit("exit 3").code, Some(1));
    page.run(&crib, &["config", "edit"]);
    page.matches("config/edit");
}

#[test]
fn an_editor_that_cannot_be_started_is_named_with_its_variable() {
    let page = Page::new();
    let crib = Crib::new();
    page.command(crib.toolcrib(&["config", "edit"]).env("EDITOR", "no-such-editor -w"));
    page.matches("config/editor");
}

#[test]
fn a_value_that_would_stop_later_commands_is_not_stored() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    write_project(&crib, "[allow]\nread = [\"./work\"]\n");
    for (target, key, value) in [
        ("--project", "allow.write", "../.."),
        ("", "allow.env", "x y"),
        ("", "deny.env", "1A"),
        ("", "allow.exec", "@src:"),
        ("", "allow.read", "~/src/*"),
        ("", "allow.net", "host:99999"),
        ("--project", "deny.write", "a,b"),
    ] {
        let arguments = ["config", "set", target, key, value];
        let arguments: Vec<&str> = arguments.into_iter().filter(|argument| !argument.is_empty()).collect();
        let ran = page.run(&crib, &arguments);
        assert_eq!(ran.code, Some(1), "{arguments:?}: {ran:?}");
        assert_eq!(crib.run(&["list"]).code, Some(0), "{arguments:?}");
    }
    for (key, value) in [("allow.env", "LANG"), ("allow.write", "echo:~/none"), ("model.name", "m"), ("deny.read", "*")]
    {
        let ran = crib.run(&["config", "set", key, value]);
        assert_eq!(ran.code, Some(0), "{key} {value}: {ran:?}");
        assert_eq!(crib.run(&["list"]).code, Some(0), "{key}");
    }
    page.matches("config/refused-values");
}
