//! Recipes: published programs, fetched by their package managers and checked by their digests.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran};
use crate::screen::Page;

/// Program that writes `42` and a line end.
const PROGRAM: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\08\00\00\00\03\00\00\0042\n")
    (func (export "_start")
        (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)) (then unreachable))))"#;

/// Creates a crib with the recipe `answer.recipe.json` for a package of this registry.
fn crib(registry: &str, change: impl FnOnce(&mut Value)) -> Crib {
    let crib = Crib::new();
    let program = wat::parse_str(PROGRAM).expect("valid text");
    let mut recipe = json!({
        "name": "answer", "version": "4.2.0", "description": "Answer questions", "licenses": "MIT",
        "package": { "registry": registry, "name": "answer-wasi", "version": "4.2.0" },
        "programs": [{ "name": "answer", "file": "dist/answer.wasm", "digest": toolcrib::source::digest(&program) }],
        "tools": [{
            "name": "answer", "description": "Answer a question", "command": ["./tools/bin/answer"],
            "argv": ["{question}"], "output": "text", "capabilities": {},
        }],
    });
    change(&mut recipe);
    fs::write(crib.path("answer.recipe.json"), recipe.to_string()).unwrap();
    fs::create_dir_all(crib.path("package/dist")).unwrap();
    fs::write(crib.path("package/dist/answer.wasm"), &program).unwrap();
    crib
}

/// Writes a package manager, a shell script, into a folder that is the only one with programs besides the system's.
fn manager(crib: &Crib, name: &str, script: &str) {
    let file = crib.path(format!("managers/{name}"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let package = crib.path("package");
    fs::write(&file, format!("#!/bin/sh\nPACKAGE={}\n{script}\n", package.display())).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs a command with the package managers of the crib.
fn run(crib: &Crib, args: &[&str]) -> Ran {
    let mut command = crib.toolcrib(args);
    let path = format!("{}:/bin:/usr/bin", crib.path("managers").display());
    Ran::of(command.env("PATH", path))
}

/// Installs by the digest that a first attempt shows, and returns the second attempt.
fn install(crib: &Crib, source: &str, flags: &[&str]) -> Ran {
    let review = run(crib, &[&["install", source, "--json"], flags].concat());
    let review: Value = serde_json::from_str(&review.stdout).unwrap_or_else(|_| panic!("{review:?}"));
    let trust = format!("--trust={}", review["release"]["digest"].as_str().unwrap());
    run(crib, &[&["install", source, &trust], flags].concat())
}

/// Script of npm: packs the package as npm does, and notes its arguments and its folder.
const NPM: &str = r#"printf '%s\n' "$@" > "$PACKAGE/../arguments"; pwd > "$PACKAGE/../folder"
tar -czf answer-wasi-4.2.0.tgz -C "$PACKAGE/.." package"#;

#[test]
fn a_package_of_npm_becomes_a_tool() {
    let page = Page::new();
    let crib = crib("npm", |_| ());
    manager(&crib, "npm", NPM);
    let installed = install(&crib, "answer.recipe.json", &[]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    page.text("review", installed.stdout.clone() + &installed.stderr);
    page.run(&crib, &["call", "answer", r#"{"question":"6*7"}"#]);
    page.run(&crib, &["outdated"]);
    page.text("arguments of npm", fs::read_to_string(crib.path("arguments")).unwrap());
    let folder = fs::read_to_string(crib.path("folder")).unwrap();
    assert!(
        !folder.contains(&*crib.path("").to_string_lossy()),
        "settings of the current folder do not apply: {folder}"
    );
    assert!(!std::path::Path::new(folder.trim()).exists(), "the fetched package is removed");
    page.matches("recipes/npm");
}

#[test]
fn a_package_of_pypi_becomes_a_tool() {
    let crib = crib("pypi", |_| ());
    manager(&crib, "python3", r#"printf '%s\n' "$@" > "$PACKAGE/../arguments"; cp -R "$PACKAGE" files"#);
    let installed = install(&crib, "answer.recipe.json", &[]);
    assert_eq!(installed.code, Some(0), "{installed:?}");
    assert_eq!(crib.call("answer", &json!({"question": "6*7"}), &[])["result"], json!("42\n"));
    let arguments = fs::read_to_string(crib.path("arguments")).unwrap();
    assert!(arguments.contains("--only-binary=:all:\n") && arguments.ends_with("answer-wasi==4.2.0\n"), "{arguments}");
}

#[test]
fn another_program_than_the_recipe_names_is_not_installed() {
    let page = Page::new();
    for changed in ["file", "recipe"] {
        let digest = format!("sha256:{}", "0".repeat(64));
        let crib = crib("npm", |recipe| {
            if changed == "recipe" {
                recipe["programs"][0]["digest"] = json!(digest);
            }
        });
        if changed == "file" {
            fs::write(crib.path("package/dist/answer.wasm"), "(module)").unwrap();
        }
        manager(&crib, "npm", NPM);
        let ran = run(&crib, &["install", "answer.recipe.json", "--trust=sha256:00"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("is not the program `answer` of the recipe `answer`"), "{ran:?}");
        assert!(!crib.path("toolcrib.lock").exists());
        let local = ["install", "answer.recipe.json", "--from=package/dist/answer.wasm", "--trust=sha256:00"];
        page.run(&crib, &local);
    }
    page.matches("recipes/another");
}

#[test]
fn files_of_a_package_stand_in_for_its_registry() {
    let crib = crib("npm", |_| ());
    for from in ["--from=package", "--from=package/dist/answer.wasm"] {
        let installed = install(&crib, "answer.recipe.json", &[from, "--offline"]);
        assert_eq!(installed.code, Some(0), "{installed:?}");
    }
    assert_eq!(crib.call("answer", &json!({"question": "6*7"}), &[])["result"], json!("42\n"));
}

#[test]
fn a_package_that_cannot_be_fetched_is_an_error_with_the_reason() {
    let page = Page::new();
    let crib = crib("npm", |_| ());
    page.run(&crib, &["install", "answer.recipe.json", "--offline"]);
    page.run(&crib, &["install", "answer.recipe.json", "--from=nowhere"]);
    page.run(&crib, &["install", "esbuidl"]);
    page.run(&crib, &["install", "nowhere.recipe.json"]);
    fs::write(crib.path("bad.recipe.json"), "{\"name\": 1}").unwrap();
    page.run(&crib, &["install", "bad.recipe.json"]);
    page.run(&crib, &["install", "nothing"]);
    fs::create_dir(crib.path("ripgrep")).unwrap();
    page.run(&crib, &["install", "ripgrep", "--offline"]);
    fs::write(crib.path("bundle.tar"), "").unwrap();
    page.run(&crib, &["install", "bundle.tar", "--from=package"]);
    manager(&crib, "npm", "exit 0");
    page.text("npm fetches nothing", run(&crib, &["install", "answer.recipe.json"]).stderr);
    manager(&crib, "npm", "echo 'npm error 404 no such package' >&2; printf '\\033[2J' >&2; exit 1");
    let ran = run(&crib, &["install", "answer.recipe.json"]);
    assert!(ran.stderr.contains("npm error 404 no such package") && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    page.matches("recipes/failures");
}

#[test]
fn the_recipes_are_listed() {
    let page = Page::new();
    let crib = Crib::new();
    page.run(&crib, &["install", "--list"]);
    let listed: Value = serde_json::from_str(&crib.run(&["install", "--list", "--json"]).stdout).unwrap();
    let programs = listed.as_array().unwrap().iter().flat_map(|recipe| recipe["programs"].as_array().unwrap());
    assert!(programs.clone().count() >= 14 && programs.clone().all(|program| program["digest"].is_string()));
    page.matches("recipes/list");
}

#[test]
fn a_recipe_of_tools_that_cannot_be_used_is_refused() {
    let page = Page::new();
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 4] = [
        ("another program", |recipe| recipe["tools"][0]["command"] = json!(["./tools/bin/other"])),
        ("a program of the host", |recipe| recipe["tools"][0]["command"] = json!(["/bin/ls"])),
        ("a faulty text", |recipe| recipe["tools"][0]["argv"] = json!(["{"])),
        ("a name with a folder", |recipe| recipe["name"] = json!("acme/answer")),
    ];
    for (name, change) in changes {
        let crib = crib("npm", change);
        let ran = crib.run(&["install", "answer.recipe.json", "--from=package", "--trust=sha256:00"]);
        page.text(name, ran.stdout.lines().take(1).collect::<String>() + &ran.stderr);
        assert!(!crib.path("toolcrib.lock").exists());
    }
    page.matches("recipes/tools");
}

#[test]
fn a_package_manager_is_never_given_an_address_or_a_path() {
    for (field, value) in [
        ("name", "/tmp/evil"),
        ("name", "./evil"),
        ("name", "user/repo"),
        ("name", "--config=x"),
        ("version", "user/repo"),
        ("version", "/tmp/evil.tgz"),
        ("version", "git+file:///tmp/evil"),
        ("version", "latest"),
    ] {
        for registry in ["npm", "pypi"] {
            let crib = crib(registry, |recipe| recipe["package"][field] = json!(value));
            for name in ["npm", "python3"] {
                manager(&crib, name, "touch \"$PACKAGE/../started\"");
            }
            let ran = run(&crib, &["install", "answer.recipe.json"]);
            assert!(ran.stderr.contains(&format!("package.{field} must be")), "{ran:?}");
            let lock = json!({"version": 1, "bundles": [{"name": "answer", "source": "recipe:./answer.recipe.json"}]});
            fs::write(crib.path("toolcrib.lock"), lock.to_string()).unwrap();
            run(&crib, &["install"]);
            assert!(!crib.path("started").exists(), "{registry} {field} {value}");
        }
    }
}
