//! Problems of scripts and hooks, as `validate` reports them, and the sources that it reads.

use serde_json::{Value, json};

use super::*;
use crate::screen::Page;

#[test]
fn every_problem_of_a_script_is_told_with_its_place_in_the_file() {
    let page = Page::new();
    let crib = project(&[
        (".harness/tools/good.md", &tool("return {\"ok\": True}")),
        (".harness/tools/name.md", &tool("x = 1\nreturn nothing_of_that_name")),
        (".harness/tools/entry.md", "---\nscript: |\n  def go(args):\n      return 1\n---\n"),
        (".harness/tools/syntax.md", &tool("return ][")),
        (
            ".harness/hooks/when.md",
            "---\nevent: tool.pre\nwhen: payload.nope(\nscript: |\n  def handle(event, payload):\n      return None\n---\n",
        ),
        (".harness/hooks/hears.md", &hook("tool.post", "return nobody")),
    ]);
    let ran = page.run(&crib, &["validate"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    for begins in [
        "error: .harness/tools/name.md:6:14: ",
        "error: .harness/tools/syntax.md:5:14: ",
        "error: .harness/hooks/hears.md:5:14: ",
    ] {
        assert!(lines.iter().any(|line| line.starts_with(begins)), "{begins}: {}", ran.stdout);
    }
    let entry = "error: .harness/tools/entry.md:3:3: tool script \"entry\" must define a 'run' function";
    assert!(lines.contains(&entry), "{}", ran.stdout);
    assert!(
        lines.iter().any(|line| line.starts_with("error: .harness/hooks/when.md") && line.contains("when: ")),
        "{}",
        ran.stdout
    );

    let problems: Vec<Value> = serde_json::from_str(&crib.run(&["validate", "--json"]).stdout).expect("JSON");
    let name = problems.iter().find(|problem| problem["path"] == ".harness/tools/name.md").expect("a problem");
    assert_eq!((&name["severity"], &name["line"], &name["column"]), (&json!("error"), &json!(6), &json!(14)));
    page.matches("script/problems");
}

#[test]
fn sound_scripts_are_sound_and_nothing_of_them_is_run() {
    let crib = project(&[(".harness/tools/loud.md", &tool("fs.write(\"made.txt\", \"x\")\nreturn 1"))]);
    let ran = crib.run(&["validate", "--strict"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert_eq!(ran.stderr, "1 source, no problems found\n");
    assert!(crib.records().is_empty(), "nothing was called");
}

#[test]
fn without_a_source_it_is_the_manifest_else_the_harness() {
    let page = Page::new();
    let named = |crib: &Crib| -> Vec<String> {
        let ran = crib.run(&["list", "--json"]);
        let tools: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
    };
    let crib = project(&[(".harness/tools/one.md", &tool("return 1"))]);
    assert_eq!(named(&crib), ["one"]);
    let listed = "---\ntools:\n  - name: two\n    script: |\n      def run(args):\n          return 2\n---\n";
    assert_eq!(named(&project(&[("harness.md", listed)])), ["two"]);
    write(&crib, "tools.json", r#"{"tools":[]}"#);
    page.note("the manifest goes first");
    page.run(&crib, &["list"]);
    page.run(&Crib::new(), &["validate"]);
    page.matches("script/source");
}
