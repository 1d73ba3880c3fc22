//! Projects of Markdown files: the files that are read, their order, duplicate names, and denials.

use std::fs;

use toolcrib::source::load;
use toolcrib::tool::{Fact, HookPoint, Visibility};

use super::{errors, problems, with_files};
use crate::crib::{Crib, guest};
use crate::screen::Page;

const TOOL: &str = "---\nscript: x\n---\n";

fn list(names: &[&str]) -> String {
    let entries: String = names.iter().map(|name| format!("  - {{ name: {name}, script: x }}\n")).collect();
    format!("---\ntools:\n{entries}---\n")
}

/// Creates a project with a file in each of its folders.
fn project() -> Crib {
    let hook = "---\nevent: tool.post\npriority: -2\nwhen: payload[\"name\"] == \"a\"\nscript: x\n---\nWhy.\n";
    let own = "---\nmodel: m\ntools:\n  - { name: own, description: ' Own. ', script: x }\nhooks:\n  - name: ownhook\n    event: custom.mine\n    when: { tool: 'git_*', args: { path: '/tmp/*' } }\n    script: x\nnetwork: {}\n---\nProse.\n";
    let crib = with_files(&[
        (".harness/tools/b.md", TOOL),
        (".harness/tools/a.md", TOOL),
        (".harness/tools/ReadMe.MD", "not a tool"),
        (".harness/tools/.hidden.md", "not a tool"),
        (".harness/hooks/h.md", hook),
        ("harness.md", own),
        (".harness/harness.md", &list(&["inner"])),
        (".harness/builtins/x.md", &list(&["built"])),
        (".harness/plugins/x.md", &list(&["plug1", "plug2"])),
        (".harness/overrides/x.md", "---\ntools:\n  - { name: a, description: better, script: y }\n---\n"),
        ("notes.md", "not a tool"),
    ]);
    fs::create_dir(crib.path(".harness/bin")).unwrap();
    fs::copy(guest("echo"), crib.path(".harness/bin/echo.wasm")).unwrap();
    crib
}

fn names(crib: &Crib, source: &str) -> Vec<String> {
    let loaded = load(&crib.path(source)).unwrap();
    loaded.tools.into_iter().map(|tool| tool.name).collect()
}

#[test]
fn a_project_is_read_in_its_order_by_either_of_its_names() {
    let page = Page::new();
    let crib = project();
    for source in ["", ".harness"] {
        assert_eq!(names(&crib, source), ["a", "b", "own", "inner", "built", "plug1", "plug2", "echo"], "{source}");
    }
    assert_eq!(names(&crib, ".harness/tools"), ["a", "b"]);
    assert_eq!(names(&crib, "harness.md"), ["own"]);
    assert_eq!(names(&crib, ".harness/plugins/x.md"), ["plug1", "plug2"]);
    assert_eq!(names(&crib, ".harness/tools/b.md"), ["b"]);
    page.run(&crib, &["list", "--tools", "."]);
    let warning = "harness.md:2:1: fields of another system are kept and ignored: `model`, `network`";
    assert_eq!(problems(crib.dir.path()), [warning]);
    page.matches("markdown/project");
}

#[test]
fn an_override_takes_the_place_of_its_name_and_a_program_is_shown_to_no_model() {
    let crib = project();
    let tools = load(crib.dir.path()).unwrap().tools;
    assert_eq!(tools[0].description.as_deref(), Some("better"));
    assert_eq!(tools[2].description.as_deref(), Some("Own."));
    let visibility = Fact::declared(Visibility::Internal);
    assert_eq!(tools[7].interface.discovery.schema_visibility, visibility);
}

#[test]
fn hooks_are_read_with_what_they_hear_and_when() {
    let crib = project();
    let hooks = load(crib.dir.path()).unwrap().hooks;
    assert_eq!(hooks.len(), 2);
    let (first, second) = (&hooks[0], &hooks[1]);
    assert_eq!((first.tool.name.as_str(), &first.event, first.priority), ("h", &HookPoint::ToolPost, -2));
    assert_eq!(first.tool.description.as_deref(), Some("Why."));
    assert_eq!(first.when.expression.as_deref(), Some("payload[\"name\"] == \"a\""));
    assert_eq!((&second.event, second.priority), (&HookPoint::Custom("mine".into()), 0));
    assert_eq!(second.when.tools[0].as_str(), "git_*");
    assert_eq!((second.when.arguments[0].0.as_str(), second.when.arguments[0].1.as_str()), ("path", "/tmp/*"));
    assert!(load(&crib.path(".harness/tools")).unwrap().hooks.is_empty());
}

#[test]
fn a_name_twice_names_both_files() {
    let crib = with_files(&[
        (".harness/tools/a.md", TOOL),
        ("harness.md", &list(&["b", "a"])),
        (".harness/plugins/p.md", &list(&["b"])),
    ]);
    let output = errors(&crib, ".");
    let path = |file: &str| crib.dir.path().canonicalize().unwrap().join(file).display().to_string();
    let twice = |name: &str, first: &str, second: &str| {
        format!("tool {name:?} is defined more than once: in {} and in {}", path(first), path(second))
    };
    let of_a = twice("a", ".harness/tools/a.md:1:1", "harness.md:4:5");
    let of_b = twice("b", "harness.md:3:5", ".harness/plugins/p.md:3:5");
    assert_eq!(output, [format!("error: harness.md:4:5: {of_a}"), format!("error: .harness/plugins/p.md:3:5: {of_b}")]);
    let two = list(&["o"]);
    let crib = with_files(&[(".harness/overrides/x.md", &two), (".harness/overrides/y.md", &two)]);
    let output = errors(&crib, ".harness");
    assert!(
        output[0].starts_with("error: .harness/overrides/y.md:3:5: tool \"o\" is defined more than once: in "),
        "{output:?}"
    );
}

#[test]
fn a_manifest_stands_before_the_artifacts_beside_it_and_keeps_its_names() {
    let crib = Crib::with_guests(&["echo"]);
    fs::write(crib.path("harness.md"), list(&["a"])).unwrap();
    assert_eq!(names(&crib, ""), ["echo", "a"]);
    fs::write(crib.path("harness.md"), list(&["echo"])).unwrap();
    let output = errors(&crib, ".");
    assert!(
        output[0].contains("tool \"echo\" is defined more than once: in ") && output[0].contains("(tool[0])"),
        "{output:?}"
    );
}

#[test]
fn artifacts_lie_beside_components_in_a_plain_folder() {
    let crib = with_files(&[("lib/z.md", TOOL), ("lib/README.md", "# no tool"), ("lib/b.md", TOOL)]);
    fs::copy(guest("echo"), crib.path("lib/echo.wasm")).unwrap();
    assert_eq!(names(&crib, "lib"), ["echo", "b", "z"]);
}

#[test]
fn what_the_policy_denies_stays_known_and_is_closed() {
    let policy = |policy: &str| format!("---\ntools:\n  - {{ name: own, script: x }}\ntools_policy: {policy}\n---\n");
    for (stated, denied) in [
        ("{ mode: allowlist, allow: [git_*, own], deny: [git_push] }", vec!["git_push", "run"]),
        ("{ mode: denylist, deny: [git_*] }", vec!["git_diff", "git_push"]),
    ] {
        let crib = with_files(&[
            (".harness/tools/git_diff.md", TOOL),
            (".harness/tools/git_push.md", TOOL),
            (".harness/tools/run.md", TOOL),
            ("harness.md", &policy(stated)),
        ]);
        let tools = load(crib.dir.path()).unwrap().tools;
        assert_eq!(tools.len(), 4);
        let closed = tools.iter().filter(|tool| tool.disabled.is_some()).map(|tool| tool.name.as_str());
        assert_eq!(closed.collect::<Vec<_>>(), denied);
        for name in denied {
            let called = crib.run(&["call", name, "{}", "--tools", "."]);
            assert_eq!(called.stdout, format!("{{\"error\":\"tool \\\"{name}\\\" denied by policy\"}}\n"));
        }
    }
}

#[test]
fn an_empty_project_says_so() {
    let crib = Crib::new();
    fs::create_dir(crib.path(".harness")).unwrap();
    let output = toolcrib::source::check(crib.dir.path());
    assert_eq!(output[0].message, "this project has no tools and no hooks");
}
