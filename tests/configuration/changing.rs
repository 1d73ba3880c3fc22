//! `toolcrib config set`, `unset` and `edit`: comments stay, a mistake changes nothing, and a trusted project stays trusted.

use std::fs;

use super::{user_file, write_project, write_user};
use crate::crib::{Crib, Ran};

#[test]
fn set_keeps_comments_and_refuses_a_wrong_value() {
    let crib = Crib::new();
    write_user(&crib, "# mine\n[model]\nname = \"a\" # for now\n");
    let text = || fs::read_to_string(user_file(&crib)).unwrap();
    assert_eq!(crib.run(&["config", "set", "model.name", "b"]).code, Some(0));
    assert_eq!(text(), "# mine\n[model]\nname = \"b\" # for now\n");
    let ran = crib.run(&["config", "set", "limits.max_memory", "large"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("is not a size such as `64MiB`"), "{ran:?}");
    assert!(ran.stderr.contains("nothing was changed"), "{ran:?}");
    assert_eq!(text(), "# mine\n[model]\nname = \"b\" # for now\n");
    assert_eq!(crib.run(&["config", "set", "--add", "permissions.deny", "fs_rm(path=*.git*)"]).code, Some(0));
    assert_eq!(crib.run(&["config", "set", "--profile=ci", "limits.concurrency", "2"]).code, Some(0));
    assert!(
        text().contains("deny = [\"fs_rm(path=*.git*)\"]") && text().contains("[profile.ci.limits]\nconcurrency = 2")
    );
    assert_eq!(crib.run(&["config", "unset", "model.name"]).code, Some(0));
    assert!(!text().contains("name ="), "{}", text());
    let ran = crib.run(&["config", "unset", "model.name"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("`model.name` is not set in "), "{ran:?}");
    let ran = crib.run(&["config", "set", "model.nam", "x"]);
    assert_eq!(ran.stderr, "error: unknown key `model.nam`\nhint: did you mean `model.name`?\n");
}

#[test]
fn a_first_value_creates_the_file() {
    let crib = Crib::new();
    let ran = crib.run(&["config", "set", "model.name", "x"]);
    assert!(ran.code == Some(0) && ran.stderr.starts_with("set `model.name` in "), "{ran:?}");
    assert_eq!(fs::read_to_string(user_file(&crib)).unwrap(), "[model]\nname = \"x\"\n");
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
    let crib = Crib::new();
    write_user(&crib, "[model]\nname = \"a\"\n");
    let edit = |script: &str| {
        fs::write(crib.path("editor.sh"), format!("#!/bin/sh\n{script}\n")).unwrap();
        let editor = format!("/bin/sh {}", crib.path("editor.sh").display());
        let mut command = crib.toolcrib(&["config", "edit"]);
        Ran::from(command.env("EDITOR", editor).env("PATH", "/usr/bin:/bin").output().unwrap())
    };
    let text = || fs::read_to_string(user_file(&crib)).unwrap();
    let ran = edit("echo 'nam = 1' >> \"$1\"");
    assert!(ran.code == Some(1) && ran.stderr.contains("config.toml:3:1: unknown key `model.nam`"), "{ran:?}");
    assert!(ran.stderr.contains("error: nothing was changed\nhint: correct the edited text"), "{ran:?}");
    assert_eq!(text(), "[model]\nname = \"a\"\n");
    let ran = edit("echo 'api = \"chat\"' >> \"$1\"");
    assert_eq!((ran.code, text().as_str()), (Some(0), "[model]\nname = \"a\"\napi = \"chat\"\n"), "{ran:?}");
    assert_eq!(edit("exit 3").code, Some(1));
    let ran = crib.run(&["config", "edit"]);
    assert!(ran.stderr.starts_with("error: no editor: neither VISUAL nor EDITOR is set\n"), "{ran:?}");
}

#[test]
fn an_editor_that_cannot_be_started_is_named_with_its_variable() {
    let crib = Crib::new();
    let ran = Ran::from(crib.toolcrib(&["config", "edit"]).env("EDITOR", "no-such-editor -w").output().unwrap());
    let message = "error: cannot start the editor `no-such-editor`, which EDITOR names: ";
    assert!(ran.code == Some(1) && ran.stderr.starts_with(message), "{ran:?}");
    assert!(ran.stderr.contains("hint: set it to a program that is installed"), "{ran:?}");
}
