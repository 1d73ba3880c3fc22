//! A bundle as a source: every command takes it where it takes a manifest, and nothing of it is unpacked.

use std::fs;

use serde_json::{Value, json};
use toolcrib::{Audit, Runtime, ToolCall};
use toolcrib_bundle::{ArchiveBuilder, BundleBuilder, Descriptor, Manifest, MediaType, Metadata, WASM_CONFIG};

use crate::crib::{Crib, guest};
use crate::screen::Page;

use super::{crib, packed, with_bundle};

#[test]
fn a_bundle_is_a_source_wherever_a_manifest_is() {
    let crib = with_bundle();
    let ran = crib.run(&["call", "echo", r#"{"a":1}"#, "--tools", "x.tar"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), r#"{"a":1}"#), "{ran:?}");
    for args in [
        &["list", "--tools", "x.tar"][..],
        &["schema", "--tools", "x.tar"],
        &["inspect", "echo", "--tools", "./x.tar"],
        &["validate", "x.tar"],
        &["trust", "x.tar", "--json"],
        &["export", "--tools", "x.tar"],
        &["describe", "x.tar/tools/bin/echo.wasm"],
        &["inspect", "x.tar/tools/bin/echo.wasm"],
    ] {
        let ran = crib.run(args);
        let expected = if args[0] == "trust" { 1 } else { 0 };
        assert_eq!(ran.code, Some(expected), "{args:?}: {ran:?}");
        let quiet = ["validate", "describe"].contains(&args[0]);
        assert!(quiet || ran.stdout.contains("echo"), "{args:?}: {ran:?}");
    }
    let several = crib.run(&["inspect", "x.tar"]);
    assert!(several.stderr.contains("defines 2 tools"), "{several:?}");
    let names = fs::read_dir(crib.dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names
        .filter(|name| !["home", "work", "audit", "tools", "results", "secrets", "approvals.json"].contains(&&**name))
        .collect();
    names.sort();
    assert_eq!(names, ["x.tar"], "nothing is unpacked");
    assert!(!crib.path("tools/bin").read_dir().unwrap().any(|_| true), "nothing is unpacked");
}

#[test]
fn every_dialect_works_in_a_bundle_as_in_a_folder() {
    let crib = crib();
    let record = json!({
        "schema_version": "0.2.0", "tool_id": "acme.shout", "component": "./bin/shout.wasm",
        "model_input_schema": {"type": "object"},
    });
    let hook = "---\nevent: tool.pre\nscript: |\n  def handle(event, payload):\n      return None\n---\n";
    fs::create_dir_all(crib.path("records/bin")).unwrap();
    fs::write(crib.path("records/shout.tool.json"), record.to_string()).unwrap();
    fs::copy(guest("echo"), crib.path("records/bin/shout.wasm")).unwrap();
    fs::copy(guest("echo"), crib.path("records/plain.wasm")).unwrap();
    fs::create_dir_all(crib.path("project/.harness/tools")).unwrap();
    fs::create_dir_all(crib.path("project/.harness/hooks")).unwrap();
    fs::write(crib.path("project/.harness/hooks/watch.md"), hook).unwrap();
    let lists = "---\ntools:\n  - name: one\n    description: one\n    script: |\n      def run(args):\n          return 1\n---\n";
    fs::write(crib.path("project/harness.md"), lists).unwrap();
    for source in ["records", "project", "tools.json"] {
        let file = format!("{source}.tar");
        packed(&crib, source, &file);
        let listed = |tools: &str| -> Value {
            let ran = crib.run(&["list", "--all", "--json", "--tools", tools]);
            let mut listed: Value =
                serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
            listed.as_array_mut().unwrap().iter_mut().for_each(|tool| {
                for path in ["/source/path", "/program"] {
                    if let Some(path) = tool.pointer_mut(path).filter(|path| path.is_string()) {
                        let name = std::path::Path::new(path.as_str().unwrap()).file_name().unwrap().to_owned();
                        *path = json!(name.to_str().unwrap());
                    }
                }
                tool.as_object_mut().unwrap().remove("hooks");
            });
            listed
        };
        assert_eq!(listed(&file), listed(source), "{source}");
    }
    for (tool, file) in [("shout", "records.tar"), ("plain", "records.tar"), ("one", "project.tar")] {
        let ran = crib.run(&["call", tool, "{}", "--tools", file]);
        assert_eq!(ran.code, Some(0), "{tool}: {ran:?}");
    }
}

#[test]
fn an_artifact_of_another_tool_with_one_program_is_a_component() {
    let page = Page::new().hide(super::SIZE, "${1}[size]");
    let crib = Crib::new();
    let program = fs::read(guest("echo")).unwrap();
    let config = br#"{"architecture":"wasm","os":"wasip2"}"#;
    let mut archive = ArchiveBuilder::new();
    let layer = Descriptor::new(MediaType::WASM, archive.add_bytes(program.clone()).unwrap(), program.len() as u64);
    let config = Descriptor::new(WASM_CONFIG.parse().unwrap(), archive.add_bytes(config).unwrap(), config.len() as u64);
    let mut manifest = Manifest::new(WASM_CONFIG, config, vec![layer]);
    manifest.artifact_type = None;
    archive.add_manifest(manifest.to_json().unwrap(), None).unwrap();
    archive.write_to(fs::File::create(crib.path("a.tar")).unwrap()).unwrap();
    let ran = page.run(&crib, &["call", "component", r#"{"b":2}"#, "--tools", "a.tar"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), r#"{"b":2}"#), "{ran:?}");
    page.run(&crib, &["bundle", "inspect", "a.tar"]);
    page.matches("bundle/foreign");
}

#[test]
fn a_definition_in_a_bundle_names_nothing_outside_of_it() {
    let page = Page::new();
    let crib = Crib::new();
    crib.install(&guest("echo"), "echo");
    let program = crib.path("tools/bin/echo.wasm");
    let tool = |command: &str, files: Value| json!({"tools": [{"name": "x", "command": [command], "capabilities": {"files": files}}]});
    let absolute = program.to_string_lossy();
    for manifest in [
        tool(&absolute, Value::Null),
        tool("../tools/bin/echo", Value::Null),
        tool("./tools/bin/../../../echo", Value::Null),
        tool("./tools/bin/echo", json!({"read": ["./work"]})),
        tool("./tools/bin/absent", Value::Null),
    ] {
        let mut builder = BundleBuilder::new(Metadata::new("x", "1.0.0")).unwrap();
        builder.add_bytes("tools.json", MediaType::TOOLS_JSON, manifest.to_string()).unwrap();
        builder.add_bytes("tools/bin/echo.wasm", MediaType::WASM, fs::read(&program).unwrap()).unwrap();
        builder.write_to(fs::File::create(crib.path("x.tar")).unwrap()).unwrap();
        page.run(&crib, &["validate", "x.tar"]);
        assert_ne!(page.run(&crib, &["call", "x", "{}", "--tools", "x.tar"]).code, Some(0));
    }
    page.matches("bundle/names-outside");
}

#[test]
fn a_bundle_that_changes_after_the_load_runs_nothing_else() {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let crib = with_bundle();
    let original = fs::read(crib.path("x.tar")).unwrap();
    let other = super::crib();
    fs::copy(guest("exit_code"), other.path("tools/bin/echo.wasm")).unwrap();
    packed(&other, "tools.json", "x.tar");
    let replaced = fs::read(other.path("x.tar")).unwrap();
    let mut flipped = original.clone();
    let program = fs::read(guest("echo")).unwrap();
    let at = original.windows(program.len()).position(|bytes| bytes == program).unwrap();
    flipped[at + program.len() - 1] ^= 1;
    fs::write(crib.path("x.tar"), &original).unwrap();
    let runtime = Runtime::builder(Audit::off()).source(crib.path("x.tar")).build().unwrap();
    fs::remove_file(crib.path("x.tar")).unwrap();
    let result = tokio.block_on(runtime.call(ToolCall::new("1", "echo", r#"{"a":1}"#)));
    assert_eq!(result.outcome.as_deref().ok(), Some(r#"{"a":1}"#), "removed: {:?}", result.fault);
    // Another file takes the name, or the file itself is written.
    let cases =
        [("replaced", &replaced), ("flipped", &flipped), ("truncated", &original[..700].to_vec()), ("same", &original)];
    for (case, content) in cases {
        for in_place in [true, false] {
            fs::write(crib.path("x.tar"), &original).unwrap();
            let runtime = Runtime::builder(Audit::off()).source(crib.path("x.tar")).build().unwrap();
            fs::write(crib.path(if in_place { "x.tar" } else { "y.tar" }), content).unwrap();
            if !in_place {
                fs::rename(crib.path("y.tar"), crib.path("x.tar")).unwrap();
            }
            let result = tokio.block_on(runtime.call(ToolCall::new("1", "echo", r#"{"a":1}"#)));
            let runs = (case == "same").then_some(r#"{"a":1}"#);
            assert_eq!(result.outcome.as_deref().ok(), runs, "{case}, in place: {in_place}: {:?}", result.fault);
        }
    }
}
