//! `toolcrib new tool` and `toolcrib build`: from a name to a component, with the machine's own Rust.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran};

use super::{described, give_rust, with_rust, write};

/// Writes a package without dependencies: a command with a constant answer and a descriptor.
fn package(crib: &Crib, name: &str) {
    let manifest = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n");
    write(crib, &format!("{name}/Cargo.toml"), &manifest);
    let said = format!(r#"{{"name":"{name}","description":"Says hello"}}"#);
    let source = format!(
        "#[used]\n#[unsafe(link_section = \"toolcrib:tool\")]\nstatic SAID: [u8; {}] = *b{said:?};\n\
         fn main() {{ println!(\"\\\"hello\\\"\") }}\n",
        said.len()
    );
    write(crib, &format!("{name}/src/main.rs"), &source);
}

#[test]
fn a_package_becomes_a_component_that_says_what_it_is_at_its_top_level() {
    let crib = Crib::new();
    package(&crib, "plainly_built");
    let ran = with_rust(&crib, &["build", "plainly_built"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines[0].starts_with("plainly_built/plainly_built.wasm (") && lines[0].ends_with(" KiB)"),
        "{}",
        ran.stdout
    );
    assert!(lines[1].starts_with("  tool     plainly_built"), "{}", ran.stdout);
    assert!(lines.iter().any(|line| line.starts_with("  imports  wasi:cli/stdout@0.2.")), "{}", ran.stdout);
    assert!(ran.stderr.contains("Finished"), "cargo's messages pass through: {}", ran.stderr);

    let component = fs::read(crib.path("plainly_built/plainly_built.wasm")).expect("a component");
    let said = json!([{ "name": "plainly_built", "description": "Says hello" }]);
    assert_eq!(described(&crib, "plainly_built/plainly_built.wasm"), said);
    assert!(component.ends_with(b"\"Says hello\"}\n"), "the last section of all is the descriptor");
    let answer = crib.call("plainly_built", &json!({}), &["--tools", "plainly_built/plainly_built.wasm"]);
    assert_eq!(answer["result"], "hello", "{answer}");
    write(&crib, "plainly_built/tests.json", r#"{"cases":[{"name":"says it","expect":{"answer":"hello"}}]}"#);
    let ran = crib.run(&["test", "plainly_built"]);
    assert!(ran.code == Some(0) && ran.stdout.starts_with("ok      says it  "), "{ran:?}");
    let ran = with_rust(&crib, &["build", "plainly_built", "--json"]);
    let built: Value = serde_json::from_str(&ran.stdout).expect("an array");
    assert_eq!((&built[0]["bytes"], &built[0]["tools"][0]["name"]), (&json!(component.len()), &json!("plainly_built")));
}

#[test]
fn what_cannot_be_built_leaves_the_last_component_as_it_was() {
    let crib = Crib::new();
    package(&crib, "badly_built");
    write(&crib, "badly_built/badly_built.wasm", "the last one");
    let kept = || fs::read_to_string(crib.path("badly_built/badly_built.wasm")).expect("the file") == "the last one";
    let source = fs::read_to_string(crib.path("badly_built/src/main.rs")).expect("the source");
    write(&crib, "badly_built/src/main.rs", "fn main() { no_such_function() }");
    let ran = with_rust(&crib, &["build", "badly_built"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("no_such_function"), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: building `badly_built` failed (exit status: 101)\nhint: "), "{}", ran.stderr);
    assert!(kept());
    write(&crib, "badly_built/src/main.rs", &source.replace("b\"{", "b\"["));
    let ran = with_rust(&crib, &["build", "badly_built"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.contains("badly_built/badly_built.wasm: `toolcrib:tool`: "), "{}", ran.stderr);
    assert!(kept());
}

#[test]
fn what_is_missing_is_named_with_its_cure() {
    let crib = Crib::new();
    package(&crib, "greet");
    let output = crib.toolcrib(&["build", "greet"]).env("PATH", crib.path("home")).output();
    let ran = Ran::from(output.expect("the program starts"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    let expected = "error: `rustc` not found\nhint: install Rust from https://rustup.rs";
    // A line before it says that another test's build is waited for.
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    let ran = crib.run(&["build", "home"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("error: `home/Cargo.toml` not found\nhint: "), "{}", ran.stderr);
}

#[test]
fn a_new_tool_is_whole_or_not_there() {
    let crib = Crib::new();
    let ran = crib.run(&["new", "tool", "my-tool", "--dir", "own"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "own/my-tool\n"), "{ran:?}");
    assert!(
        ran.stderr.contains("Next:\n  toolcrib build own/my-tool\n  toolcrib test own/my-tool\n"),
        "{}",
        ran.stderr
    );
    let text = |name: &str| fs::read_to_string(crib.path("own/my-tool").join(name)).expect(name);
    assert!(text("Cargo.toml").contains("name = \"my-tool\""));
    assert!(text("src/lib.rs").contains("#[tool(name = \"my-tool\")]\nfn my_tool("), "{}", text("src/lib.rs"));
    assert!(text("sdk/guest-sdk/src/lib.rs").starts_with("//!"));
    let count = || fs::read_dir(crib.path("own")).expect("the folder").count();
    assert_eq!(count(), 1, "nothing unfinished is left");
    write(&crib, "own/my-tool/src/lib.rs", "mine");
    let ran = crib.run(&["new", "tool", "my-tool", "--dir", "own"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("error: `own/my-tool` already exists\nhint: "), "{}", ran.stderr);
    assert_eq!(text("src/lib.rs"), "mine");
    for name in ["fn", "Greet", "2x"] {
        let ran = crib.run(&["new", "tool", name, "--dir", "own"]);
        assert!(
            ran.code == Some(1) && ran.stderr.contains("is not a valid Rust crate and function name"),
            "{name}: {ran:?}"
        );
    }
    assert_eq!(count(), 1);
}

#[test]
fn a_default_that_does_not_fit_fails_the_build_at_its_place() {
    let crib = Crib::new();
    assert_eq!(crib.run(&["new", "tool", "wrong-default"]).code, Some(0));
    let source = "use toolcrib_guest::{Result, Schema, tool, tools};\n\
        #[derive(serde::Deserialize, Schema)]\n#[serde(rename_all = \"lowercase\")]\nenum Mode { Fast, Slow }\n\
        /// Runs.\n#[tool(name = \"wrong-default\")]\nfn wrong_default(\n#[arg(default = \"fats\")] mode: Mode,\n\
        #[arg(default = 300)] times: u8,\n#[arg(default = \"x\")] deep: bool,\n) -> Result<String> {\n\
        Ok(format!(\"{} {times} {deep}\", matches!(mode, Mode::Fast)))\n}\ntools!(wrong_default);\n";
    write(&crib, "wrong-default/src/lib.rs", source);
    let manifest = fs::read_to_string(crib.path("wrong-default/Cargo.toml")).expect("the manifest");
    let manifest =
        manifest.replace("[dependencies]", "[dependencies]\nserde = { version = \"1\", features = [\"derive\"] }");
    write(&crib, "wrong-default/Cargo.toml", &manifest);
    let ran = with_rust(&crib, &["build", "wrong-default"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{ran:?}");
    for (mistake, place) in [
        ("the default is none of the values of its argument", "src/lib.rs:8:"),
        ("the default is above the maximum of its argument", "src/lib.rs:9:"),
        ("the default is not of the type of its argument", "src/lib.rs:10:"),
    ] {
        let (_, after) = ran.stderr.split_once(mistake).unwrap_or_else(|| panic!("{mistake}: {}", ran.stderr));
        assert!(after.lines().nth(1).is_some_and(|line| line.contains(place)), "{place}: {}", ran.stderr);
    }
    let sound = source.replace("fats", "fast").replace("300", "30").replace("\"x\"", "true");
    write(&crib, "wrong-default/src/lib.rs", &sound);
    let ran = with_rust(&crib, &["build", "wrong-default"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let answer = crib.call("wrong-default", &json!({}), &["--tools", "wrong-default/wrong_default.wasm"]);
    assert_eq!(answer["result"], "true 30 true", "{answer}");
}

#[test]
fn a_new_tool_is_built_tested_and_called_as_it_is() {
    let crib = Crib::new();
    assert_eq!(crib.run(&["new", "tool", "newly-made"]).code, Some(0));
    let ran = with_rust(&crib, &["build", "newly-made"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("  tool     newly-made: Greet someone by name"), "{}", ran.stdout);
    assert!(!ran.stderr.contains("path override"), "{}", ran.stderr);
    let component = "newly-made/newly_made.wasm";
    let said = described(&crib, component);
    assert_eq!((&said[0]["name"], &said[0]["schema"]["required"]), (&json!("newly-made"), &json!(["name"])), "{said}");
    let ran = crib.run(&["test", "newly-made"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("2 cases, 0 failed, "), "{ran:?}");
    let answer = crib.call("newly-made", &json!({ "name": "Ada" }), &["--tools", component]);
    assert_eq!(answer["result"], "hello, Ada", "{answer}");
    // Its own test runs natively, without a sandbox.
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--lib"]).current_dir(crib.path("newly-made")).env_clear();
    let ran = Ran::from(give_rust(cargo).output().expect("cargo starts"));
    assert!(ran.code == Some(0) && ran.stdout.contains("1 passed"), "{ran:?}");
}

/// A daemon that cargo starts, such as a compiler cache's daemon, may hold cargo's standard error for ever.
#[cfg(unix)]
#[test]
fn a_process_that_cargo_leaves_behind_is_not_waited_for() {
    use std::os::unix::fs::PermissionsExt;

    let crib = Crib::new();
    assert_eq!(crib.run(&["new", "tool", "left-behind"]).code, Some(0));
    let cargo = "sleep 300 >/dev/null &\necho $! >\"$HOME/daemon\"\necho the last message >&2\nexit 7";
    for (name, script) in [("rustc", "echo /usr"), ("cargo", cargo)] {
        let path = format!("programs/{name}");
        write(&crib, &path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(crib.path(&path), fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    let mut build = crib.toolcrib(&["build", "left-behind"]);
    build.env("PATH", format!("{}:/usr/bin:/bin", crib.path("programs").display()));
    build.env("TOOLCRIB_CACHE_DIR", crib.path("cache"));
    let ran = Ran::from(build.output().expect("the program starts"));
    let daemon = fs::read_to_string(crib.path("home/daemon")).expect("the daemon");
    let ended = Command::new("kill").arg(daemon.trim()).status().expect("`kill` starts");
    assert!(ended.success(), "the daemon had ended before: {ran:?}");
    let expected = "the last message\nerror: building `left-behind` failed (exit status: 7)\n";
    assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{ran:?}");
}
