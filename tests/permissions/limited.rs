//! Permissions for some tools only, or for the tools of one source: by flag, by settings and for a client.

use std::fs;

use serde_json::{Value, json};

use crate::crib::Crib;
use crate::screen::Page;

/// Crib with two tools that read and write files, and a folder with a note.
fn crib() -> Crib {
    let mut crib = Crib::new();
    crib.trusts = false;
    crib.install(&crate::crib::guest("file_io"), "file_io");
    let tool = |name: &str| {
        json!({
            "name": name, "command": ["./tools/bin/file_io"], "capabilities": {"files": "write", "env": ["LANG"]},
            "interface": {"aliases": [format!("old_{name}")]},
        })
    };
    crib.manifest(&json!({"tools": [tool("one_io"), tool("two_io")]}));
    fs::create_dir(crib.path("docs")).unwrap();
    for folder in ["work", "docs"] {
        fs::write(crib.path(folder).join("note"), folder).unwrap();
    }
    crib
}

/// Permissions that a tool is granted, with the names of folders alone.
fn granted(crib: &Crib, tool: &str, flags: &[&str]) -> Vec<String> {
    let ran = crib.run(&[&["list", "--json"], flags].concat());
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let found = listed.as_array().unwrap().iter().find(|one| one["name"] == tool).unwrap_or_else(|| panic!("{ran:?}"));
    let name = |granted: &Value| {
        let granted = granted.as_str().unwrap();
        let (kind, path) = granted.split_once(':').unwrap();
        format!("{kind}:{}", path.rsplit('/').next().unwrap())
    };
    found["granted"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn a_grant_for_one_tool_is_none_for_others() {
    let crib = crib();
    for (flag, one, two) in [
        ("--allow-write=one_*:docs", &["write:docs"][..], &[][..]),
        ("--allow-read=one_io:docs,work", &["read:docs", "read:work"], &[]),
        ("--allow-read=?wo_io:docs", &[], &["read:docs"]),
        ("--allow-write=@./tools.json:docs", &["write:docs"], &["write:docs"]),
        ("--allow-write=@tools.json:docs", &["write:docs"], &["write:docs"]),
        ("--allow-write=*:docs", &["write:docs"], &["write:docs"]),
        ("--allow-write=@builtin:docs", &[], &[]),
        ("--allow-write=old_one_io:docs", &[], &[]),
    ] {
        assert_eq!(granted(&crib, "one_io", &[flag]), one, "{flag}");
        assert_eq!(granted(&crib, "two_io", &[flag]), two, "{flag}");
    }
    let both = ["--allow-read=work", "--allow-write=two_io:docs", "--allow-write=two_io:work"];
    assert_eq!(granted(&crib, "one_io", &both), ["read:work"]);
    assert_eq!(granted(&crib, "two_io", &both), ["write:work", "write:docs"], "the wider access, and all folders");
    // The tool itself finds what it was granted.
    let read = |tool: &str, flags: &[&str]| crib.call(tool, &json!({"op": "read", "path": "note"}), flags);
    let flags = ["--allow-read=one_io:docs"];
    assert_eq!(read("one_io", &flags)["result"]["ok"], "docs");
    assert_ne!(read("two_io", &flags)["result"]["ok"], "docs");
}

#[test]
fn a_denial_for_one_tool_leaves_the_others_their_grant() {
    let crib = crib();
    let both = |denial: &str| ["one_io", "two_io"].map(|tool| granted(&crib, tool, &["--allow-write=docs", denial]));
    assert_eq!(both("--deny-write=one_io:docs"), [vec!["read:docs"], vec!["write:docs"]]);
    assert_eq!(both("--deny-read=one_io:*"), [vec![], vec!["write:docs"]]);
    assert_eq!(both("--deny-read=old_one_io:docs"), [vec![], vec!["write:docs"]], "an alias is enough to deny");
    assert_eq!(both("--deny-write=@tools.json:docs"), [vec!["read:docs"], vec!["read:docs"]]);
}

#[test]
fn a_permission_without_its_folder_is_refused_and_a_missing_denied_one_named() {
    let crib = crib();
    for flag in
        ["--deny-write=@tools.json", "--deny-read=one_*", "--allow-write=@tools.json", "--deny-call=@tools.json"]
    {
        let ran = crib.run(&["list", flag]);
        let value = flag.split_once('=').unwrap().1;
        assert!(ran.code == Some(2) && ran.stderr.contains(&format!("write `{value}:")), "{ran:?}");
    }
    for flag in ["--allow-write=", "--allow-write=docs,", "--allow-read=,docs", "--allow-write=one_io:docs,"] {
        let ran = crib.run(&["list", flag]);
        assert!(ran.code == Some(2) && ran.stderr.contains("empty"), "{flag}: {ran:?}");
    }
    let ran = crib.run(&["list", "--allow-write=docs", "--deny-write=dosc"]);
    let warning = "warning: `--deny-write=dosc`: no such file or folder, so it denies nothing yet";
    assert!(ran.code == Some(0) && ran.stderr.contains(warning), "{ran:?}");
    // The file of settings is elsewhere, and so is the source that it names.
    fs::create_dir(crib.path("elsewhere")).unwrap();
    let file = crib.path("elsewhere/toolcrib.toml");
    fs::write(&file, "[allow]\nwrite = [\"@./tools.json:.\"]\n").unwrap();
    let other = ["--config", "elsewhere/toolcrib.toml", "--tools", "tools.json"];
    assert_eq!(granted(&crib, "one_io", &other), [""; 0], "another source with the same name");
    fs::write(&file, "[allow]\nwrite = [\"@../tools.json:../docs\"]\n").unwrap();
    assert_eq!(granted(&crib, "one_io", &other), ["write:docs"]);
}

#[test]
fn settings_and_clients_limit_as_flags_do() {
    let mut crib = crib();
    crib.trusts = true;
    fs::write(crib.path("toolcrib.toml"), "[allow]\nwrite = [\"one_io:docs\"]\n[deny]\nenv = [\"two_io:LANG\"]\n")
        .unwrap();
    assert_eq!(granted(&crib, "one_io", &["--allow-env=LANG"]), ["write:docs"]);
    assert_eq!(granted(&crib, "two_io", &[]), [""; 0]);
    fs::write(crib.path("toolcrib.toml"), "[allow]\nwrite = [\"one_io:../docs\"]\n").unwrap();
    let ran = crib.run(&["list"]);
    assert!(ran.code != Some(0) && ran.stderr.contains("`../docs` leads out of the project's folder"), "{ran:?}");
    fs::remove_file(crib.path("toolcrib.toml")).unwrap();
    let ran = crib.run(&["mcp", "token", "new", "ada", "--", "--allow-read=one_io:docs"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn a_limit_that_selects_nothing_is_named() {
    let page = Page::new();
    let crib = crib();
    for flag in [
        "--allow-write=one_oi:docs",
        "--allow-write=@other.json:docs",
        "--allow-write=one_io:",
        "--allow-write=@:docs",
        "--allow-write=one_io:docs,two_io:work",
        "--allow-write=one_io:missing",
        "--deny-env=one_oi:LANG",
    ] {
        page.run(&crib, &["list", flag]);
    }
    page.matches("permissions/limited");
}

#[test]
fn a_denial_by_a_flag_for_tools_that_are_not_loaded_is_an_error_and_nothing_is_run() {
    let crib = crib();
    let write = r#"{"op":"write","path":"note","text":"changed"}"#;
    for denial in ["ONE_IO:docs", "one_oi:docs", "@other.json:docs", "@acme/a:docs"] {
        for command in [&["call", "one_io", write][..], &["list"]] {
            let ran = crib.run(&[command, &["--allow-write=docs", &format!("--deny-write={denial}")]].concat());
            assert!(ran.code == Some(1) && ran.stderr.contains("this denial denies nothing"), "{denial}: {ran:?}");
        }
        assert_eq!(fs::read_to_string(crib.path("docs/note")).unwrap(), "docs", "{denial}");
    }
    let ran = crib.run(&["call", "one_io", write, "--allow-write=docs", "--deny-write=old_one_io:docs"]);
    assert!(fs::read_to_string(crib.path("docs/note")).unwrap() == "docs", "an alias is enough: {ran:?}");
}
