//! Markdown tools after loading: the tool as the model sees it, its script with its place, its limits and its requests.

use std::time::Duration;

use serde_json::Value;
use toolcrib::source::load;
use toolcrib::tool::{Basis, Body, Format, Place};

use super::{problems, with_files};

/// Example of the format's own documentation, with a byte order mark and the line ends of Windows.
const EXAMPLE: &str = "\u{feff}---\r\nparameters:\r\n  command: { type: string, required: true }\r\n  timeout_ms: { type: number, required: false }\r\nscript: |\r\n  def run(args):\r\n    return 1\r\ntimeout_ms: 30000\r\n---\r\n\r\n# run_command\r\n\r\n```starlark\r\ndef run(args): fail()\r\n```\r\n\r\n";

#[test]
fn the_name_is_the_files_and_the_description_the_body() {
    let crib = with_files(&[("run_command.md", EXAMPLE), ("Bare-Name.md", "---\n---\n \n")]);
    let ran = crib.run(&["schema", "Bare-Name", "run_command", "--tools", "."]);
    let schema: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error} {ran:?}"));
    let expected = r##"[{"type":"function","function":{"name":"Bare-Name","description":"Bare-Name","parameters":{"type":"object","properties":{}}}},{"type":"function","function":{"name":"run_command","description":"# run_command\r\n\r\n```starlark\r\ndef run(args): fail()\r\n```","parameters":{"type":"object","properties":{"command":{"type":"string"},"timeout_ms":{"type":"number"}},"required":["command"]}}}]"##;
    assert_eq!(schema.to_string(), expected);
}

#[test]
fn a_sound_artifact_is_told_nothing_of() {
    let crib = with_files(&[("run_command.md", EXAMPLE)]);
    let ran = crib.run(&["validate", "run_command.md", "--strict"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
}

#[test]
fn a_script_keeps_its_text_its_digest_and_its_place() {
    let crib = with_files(&[("run_command.md", EXAMPLE), ("bare.md", "---\nscript: \" \"\n---\n")]);
    let tools = load(crib.dir.path()).unwrap().tools;
    let Body::Script(script) = &tools[1].body else { panic!("{:?}", tools[1].body) };
    assert_eq!(&*script.source, "def run(args):\n  return 1\n");
    assert_eq!(script.place, Some(Place { line: 6, column: 3 }));
    assert_eq!(script.in_file(Place { line: 2, column: 3 }), Some(Place { line: 7, column: 5 }));
    assert_eq!(script.digest, "sha256:82b33af8fc7598a180c51ff40504c4453161e6abc19d08bdaf2a5bcd9586cb65");
    assert_eq!(tools[1].limits.deadline, Some(Duration::from_secs(30)));
    let origin = &tools[1].origin;
    assert_eq!((origin.format, origin.text.as_deref()), (Format::Markdown, Some(EXAMPLE)));
    assert_eq!(tools[0].body, Body::Absent);
    let closed = tools[0].disabled.as_ref().unwrap();
    assert_eq!(closed.field, "script");
    assert_eq!(closed.reason, "tool \"bare\" is configured but no handler has been registered");
}

#[test]
fn a_timeout_of_nothing_is_no_timeout_and_an_async_tool_says_that_it_goes_on() {
    let crib = with_files(&[
        ("a.md", "---\nscript: x\ntimeout_ms: 0\nasync: true\n---\n"),
        ("b.md", "---\nscript: x\ntimeout_ms:\nasync: false\n---\n"),
    ]);
    let tools = load(crib.dir.path()).unwrap().tools;
    for (tool, background) in tools.iter().zip([true, false]) {
        let Body::Script(script) = &tool.body else { panic!("{:?}", tool.body) };
        assert_eq!((tool.limits.deadline, script.background), (None, background));
        assert_eq!(tool.interface.safety.is_concurrency_safe.value, background);
        assert_eq!(tool.interface.safety.is_read_only.basis, Basis::Default);
    }
    assert_eq!(problems(crib.dir.path()), Vec::<String>::new());
}

#[test]
fn a_script_asks_by_its_capabilities_and_says_nothing_without_them() {
    let stated = "---\nscript: x\ncapabilities:\n  files: { read: [data] }\n  env: [tz]\n  network: [api.example.com]\n  exec: [git, j?]\n  delegate: true\nlimits: { memoryMb: 2 }\n---\n";
    let crib = with_files(&[("a.md", stated), ("b.md", "---\nscript: x\n---\n")]);
    let tools = load(crib.dir.path()).unwrap().tools;
    let asked = &tools[0].requested;
    assert_eq!(
        (asked.declared, asked.delegate, asked.meta, asked.env.as_slice()),
        (true, true, false, &["TZ".to_owned()][..])
    );
    assert_eq!(asked.exec.iter().map(|glob| glob.as_str()).collect::<Vec<_>>(), ["git", "j?"]);
    assert_eq!(tools[0].limits.memory, Some(2 << 20));
    assert_eq!(tools[1].requested, Default::default());
}

#[test]
fn arguments_that_no_parameter_names_are_passed_through_and_the_others_checked() {
    let crib = with_files(&[("n.md", "---\nparameters: { a: { type: number, required: true } }\nscript: x\n---\n")]);
    let called = |arguments: &str| crib.run(&["call", "n", arguments, "--tools", "n.md"]).stdout;
    assert!(called("{}").contains("invalid arguments"), "{}", called("{}"));
    assert!(called(r#"{"a":"1"}"#).contains("invalid arguments"));
    for sound in [r#"{"a":1}"#, r#"{"a":1.5,"b":[2]}"#] {
        assert!(!called(sound).contains("invalid arguments"), "{}", called(sound));
    }
}
