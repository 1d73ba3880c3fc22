//! Markdown tools through the built program: every message of the format that needs no run, with its place.

mod defined;
mod project;

use std::fs;
use std::path::Path;

use crate::crib::Crib;
use crate::screen::Page;

/// Creates a crib with these files.
fn with_files(files: &[(&str, &str)]) -> Crib {
    let crib = Crib::new();
    for (path, text) in files {
        let path = crib.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    crib
}

/// Lines that `validate` prints for an invalid source.
fn errors(crib: &Crib, source: &str) -> Vec<String> {
    let ran = crib.run(&["validate", source]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

/// Problems of a source, each in one line with the name of its file.
fn problems(path: &Path) -> Vec<String> {
    let problems = toolcrib::source::check(path).into_iter().map(|problem| {
        let place = problem.place.map(|place| format!("{}:{}", place.line, place.column)).unwrap_or_default();
        format!("{}:{place}: {}", problem.path.file_name().unwrap().to_string_lossy(), problem.message)
    });
    problems.collect()
}

/// The one line for a file of this name and text.
fn error(file: &str, text: &str) -> String {
    let found = errors(&with_files(&[(file, text)]), file);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn a_tool_that_cannot_be_parsed_is_told_in_the_formats_words() {
    let yaml = "parse tool run.md: parse tool frontmatter: yaml: line";
    for (text, expected) in [
        ("# run\n", "1:1: parse tool run.md: markdown file must start with --- frontmatter delimiter".to_owned()),
        ("---", "1:1: parse tool run.md: no content after opening --- delimiter".to_owned()),
        ("---\na: 1\n", "1:1: parse tool run.md: no closing --- delimiter found for frontmatter".to_owned()),
        (
            "---\nparameters:\n  a: { type: string }\n  b: c: d\n---\n",
            format!("4:7: {yaml} 4: column 7: mapping values are not allowed in this context"),
        ),
        (
            "---\nscript: a\nscript: b\n---\n",
            format!("3:1: {yaml} 3: column 1: duplicate mapping key `script` is not allowed here"),
        ),
        ("---\n- a\n---\n", format!("2:1: {yaml} 2: column 1: front matter must be a map, found a list")),
        ("---\nparameters: [a]\n---\n", format!("2:13: {yaml} 2: column 13: parameters must be a map, found a list")),
        (
            "---\nparameters:\n  a: string\n---\n",
            format!("3:6: {yaml} 3: column 6: parameters.a must be a map, found a string"),
        ),
        ("---\nscript: 1\n---\n", format!("2:9: {yaml} 2: column 9: script must be a string, found 1")),
        ("---\ntimeout_ms: 1.5\n---\n", format!("2:13: {yaml} 2: column 13: timeout_ms must be an integer, found 1.5")),
        ("---\nasync: maybe\n---\n", format!("2:8: {yaml} 2: column 8: async must be true or false, found a string")),
    ] {
        assert_eq!(error("run.md", text), format!("error: run.md:{expected}"), "{text:?}");
    }
}

#[test]
fn a_tool_that_is_invalid_is_told_in_the_formats_words() {
    let types = "string|number|boolean|object|array";
    for (text, told) in [
        ("timeout_ms: -1\n", "2:13: tool \"run\" timeout_ms must be >= 0".to_owned()),
        ("parameters:\n  a: { type: }\n", format!("3:6: tool \"run\" parameters.a.type is required: {types}")),
        (
            "parameters:\n  a:\n    type: strng\n",
            format!("4:11: tool \"run\" parameters.a.type \"strng\" must be {types}; did you mean `string`?"),
        ),
        (
            "capabilities: { file: read }\n",
            "2:23: tool \"run\": capabilities: unknown field `file`, expected one of `files`, `env`, `network`, `secrets`, `cache`, `model`, `tools`, `exec`, `delegate`, `meta`".to_owned(),
        ),
        ("limits: { fuel: 0 }\n", "2:17: tool \"run\": limits.fuel must be a positive whole number, found 0".to_owned()),
    ] {
        assert_eq!(error("run.md", &format!("---\n{text}---\n")), format!("error: run.md:{told}"), "{text:?}");
    }
    let long = "x".repeat(129);
    let told = error(&format!("{long}.md"), "---\n---\n");
    assert!(told.ends_with("name is longer than 128 characters"), "{told}");
}

#[test]
fn each_wrong_field_and_the_script_have_a_line_with_its_place() {
    let text =
        "---\nscript: x = 1\ncapabilities:\n  files: rw\n  env: [TZ, 1]\nlimits:\n  fuel: 0\n  memoryMb: x\n---\n";
    assert_eq!(
        errors(&with_files(&[("run.md", text)]), "run.md"),
        [
            "error: run.md:4:10: tool \"run\": capabilities.files must be `read`, `write` or an object, found \"rw\"",
            "error: run.md:5:13: tool \"run\": capabilities.env[1] must be a string, found a number",
            "error: run.md:7:9: tool \"run\": limits.fuel must be a positive whole number, found 0",
            "error: run.md:8:13: tool \"run\": limits.memoryMb must be a positive whole number, found \"x\"",
            "error: run.md:2:9: tool script \"run\" must define a 'run' function",
        ]
    );
}

#[test]
fn a_tool_without_a_script_and_a_component_is_warned_of() {
    let page = Page::new();
    let expected = "tool \"e\": it has neither `script` nor `component`, so no call can run it";
    let crib = with_files(&[("e.md", "---\nparameters: {}\n---\n")]);
    let ran = page.run(&crib, &["validate", "e.md"]);
    assert_eq!((ran.code, ran.stdout), (Some(0), format!("warning: e.md:1:1: {expected}\n")));
    page.run(&crib, &["list", "--tools", "e.md"]);
    page.matches("markdown/no-script");
}

#[test]
fn a_hook_is_told_in_the_formats_words() {
    let parse = "parse hook h.md: parse hook frontmatter: yaml: line";
    for (text, told) in [
        ("script: x\n", "2:1: hook \"h\": event field is required in frontmatter".to_owned()),
        ("event: tool.pre\n", "1:1: hook \"h\": script is required".to_owned()),
        ("event: tool.per\nscript: x\n", "2:8: hooks[0].event \"tool.per\" is invalid; did you mean `tool.pre`?".to_owned()),
        (
            "event: custom.\nscript: x\n",
            "2:8: hooks[0].event \"custom.\" is invalid; there are `run.start`, `run.end`, `model.pre`, `model.post`, `tool.pre`, `tool.post` and `custom.NAME`".to_owned(),
        ),
        ("event: tool.pre\nscript: x\ntimeout_ms: -1\n", "4:13: hook \"h\" timeout_ms must be >= 0".to_owned()),
        (
            "event: tool.pre\nscript: x\npriority: soon\n",
            format!("4:11: {parse} 4: column 11: priority must be an integer, found a string"),
        ),
        (
            "event: tool.pre\nscript: x\nwhen: true\n",
            format!("4:7: {parse} 4: column 7: when must be an expression in a string, or a map, found true"),
        ),
        (
            "event: tool.pre\nscript: x\nwhen: { tol: a }\n",
            format!("4:9: {parse} 4: column 9: when: unknown field `tol`, expected one of `tool`, `args`"),
        ),
        (
            "event: tool.pre\nscript: x\nwhen: { tool: [a, ''] }\n",
            format!("4:15: {parse} 4: column 15: when.tool[1] is empty"),
        ),
    ] {
        let crib = with_files(&[(".harness/hooks/h.md", &format!("---\n{text}---\n"))]);
        let expected = [format!("error: .harness/hooks/h.md:{told}")];
        assert_eq!(errors(&crib, ".harness"), expected, "{text:?}");
        assert_eq!(errors(&crib, ".harness/hooks/h.md"), expected, "{text:?}");
    }
}

#[test]
fn what_the_project_says_is_told_in_the_formats_words() {
    for (text, expected) in [
        ("tools:\n  - script: x\n", "3:5: tools[0].name cannot be empty"),
        (
            "tools:\n  - { name: a, script: 'def run(args): return 1' }\n  - name: ''\n",
            "4:5: tools[1].name cannot be empty",
        ),
        ("hooks:\n  - event: tool.pre\n    script: x\n", "3:5: hooks[0].name cannot be empty"),
        (
            "hooks:\n  - { name: h, event: x, script: x }\n",
            "3:23: hooks[0].event \"x\" is invalid; there are `run.start`, `run.end`, `model.pre`, `model.post`, `tool.pre`, `tool.post` and `custom.NAME`",
        ),
        ("tools_policy: { mode: x }\n", "2:15: tools_policy.mode \"x\" must be allowlist|denylist"),
        ("tools_policy: { mode: allowlist, allow: [a, ''] }\n", "2:41: tools_policy.allow[1] is empty"),
        ("tools_policy: { mode: denylist, deny: [''] }\n", "2:39: tools_policy.deny[0] is empty"),
    ] {
        let crib = with_files(&[("harness.md", &format!("---\n{text}---\n"))]);
        assert_eq!(errors(&crib, "."), [format!("error: harness.md:{expected}")], "{text:?}");
    }
}

#[test]
fn validate_tells_everything_and_a_load_what_cannot_be_parsed_or_all_that_is_invalid() {
    let page = Page::new();
    let invalid = "---\ntimeout_ms: -1\n---\n";
    let crib = with_files(&[
        ("a.md", invalid),
        ("b.md", invalid),
        ("c.md", "---\na: b: c\n---\n"),
        ("README.md", "# no tool\n"),
    ]);
    let parse = "parse tool c.md: parse tool frontmatter: yaml: line 2: column 5: mapping values are not allowed in this context";
    assert_eq!(
        errors(&crib, "."),
        [
            "error: a.md:2:13: tool \"a\" timeout_ms must be >= 0".to_owned(),
            "error: b.md:2:13: tool \"b\" timeout_ms must be >= 0".to_owned(),
            format!("error: c.md:2:5: {parse}"),
        ]
    );
    let load = || toolcrib::source::load(crib.dir.path()).unwrap_err().to_string();
    assert_eq!(load(), format!("{}: {parse}", crib.path("c.md").display()));
    fs::remove_file(crib.path("c.md")).unwrap();
    let joined = "invalid config: tool \"a\" timeout_ms must be >= 0; tool \"b\" timeout_ms must be >= 0";
    assert_eq!(load(), format!("{}: {joined}", crib.dir.path().display()));
    page.run(&crib, &["list", "--strict", "--tools", "."]);
    page.matches("markdown/validate");
}

#[test]
fn unknown_fields_are_kept_and_warned_about_where_they_stand() {
    let text = "---\nscirpt: x\nparameters:\n  a: { type: string, desc: d }\nx-vendor: { a: [1] }\n---\n";
    let crib = with_files(&[("run.md", text)]);
    assert_eq!(
        problems(&crib.path("run.md")),
        [
            "run.md:1:1: tool \"run\": it has neither `script` nor `component`, so no call can run it",
            "run.md:2:1: tool \"run\": unknown field `scirpt` is ignored; did you mean `script`?",
            "run.md:4:22: tool \"run\": parameters.a: unknown field `desc` is ignored",
            "run.md:5:1: tool \"run\": unknown field `x-vendor` is ignored",
        ]
    );
    let loaded = toolcrib::source::load(&crib.path("run.md")).unwrap();
    assert_eq!(
        serde_json::Value::from(loaded.tools[0].origin.unknown.clone()).to_string(),
        r#"{"scirpt":"x","x-vendor":{"a":[1]}}"#
    );
}

#[test]
fn hostile_front_matter_is_refused_at_once() {
    let mut aliases = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for n in 1..12 {
        aliases += &format!("a{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(","));
    }
    let deep: String = (0..5000).map(|n| format!("{}a:\n", " ".repeat(n % 900))).collect();
    for text in [aliases, deep, format!("a: {}\n", "[".repeat(100_000))] {
        let start = std::time::Instant::now();
        let output = error("run.md", &format!("---\n{text}---\n"));
        assert!(output.contains("parse tool run.md: parse tool frontmatter: yaml: line "), "{output}");
        assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
    }
    let crib = with_files(&[("run.md", &format!("---\n---\n{}", "x".repeat(9 << 20)))]);
    let output = errors(&crib, "run.md");
    assert_eq!(output, ["error: run.md: read tool: larger than the 8388608 bytes allowed"]);
}
