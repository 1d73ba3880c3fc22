//! Shipped tools: each case of `tests/cases/toolbox` in a separate sandbox.

use std::fs;
use std::path::Path;

use serde_json::Value;
use toolcrib::policy::{Permission, Policy};
use toolcrib::{Runtime, ToolCall};

use crate::crib::{Crib, target, toolbox};

pub(crate) mod layout;

use layout::{OUTSIDE, lay, repeated};

#[test]
fn every_case_holds() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases/toolbox");
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut failed = Vec::new();
    let mut counted = 0;
    let mut tools = Vec::new();
    for entry in fs::read_dir(cases).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let file: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let tool = file["tool"].as_str().unwrap();
        tools.push(tool.to_owned());
        for case in file["cases"].as_array().unwrap() {
            counted += 1;
            if let Err(why) = tokio.block_on(hold(tool, case)) {
                failed.push(format!("{tool}: {}: {why}", case["claim"]));
            }
        }
    }
    assert!(failed.is_empty(), "{} of {counted} cases failed:\n{}", failed.len(), failed.join("\n"));
    let runtime = Runtime::builder(toolcrib::Audit::off()).source(toolbox()).build().unwrap();
    // Cases of an older name call the tool by its alias.
    let mut tools: Vec<_> = tools.iter().map(|name| runtime.tool(name).unwrap().name.clone()).collect();
    tools.sort();
    tools.dedup();
    let mut shipped: Vec<_> = runtime.tools().map(|tool| tool.name.clone()).collect();
    shipped.sort();
    assert_eq!(tools, shipped, "every shipped tool has cases");
    eprintln!("{counted} cases");
}

async fn hold(tool: &str, case: &Value) -> Result<(), String> {
    let crib = Crib::new();
    let work = crib.path("work");
    lay(crib.dir.path(), case);
    let policy = match case["grant"].as_str() {
        Some("read") => Policy::default().allow(Permission::Read(work.clone())),
        Some("write") => Policy::default().allow(Permission::Write(work.clone())),
        _ => Policy::default(),
    };
    let runtime = Runtime::builder(toolcrib::Audit::off())
        .trusted_source(toolbox())
        .policy(policy)
        .compile_cache(target().join("test-cache"))
        .concurrency(1)
        .build()
        .map_err(|error| error.to_string())?;
    let result = runtime.call(ToolCall::new("case", tool, repeated(&case["arguments"]).to_string())).await;
    let content: Value = serde_json::from_str(&result.line()).map_err(|error| error.to_string())?;
    let expect = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}, got {content}")) };
    if let Some(part) = case["error"].as_str() {
        let error = content["error"].as_str().unwrap_or_default();
        expect(result.is_error() && error.contains(part), &format!("expected the error {part:?}"))?;
    } else {
        expect(!result.is_error(), "expected success")?;
    }
    if let Some(exact) = case.get("result") {
        expect(content == *exact, &format!("expected {exact}"))?;
    }
    if let Some(part) = case.get("result_has") {
        expect(has(&content, part), &format!("expected at least {part}"))?;
    }
    for (path, text) in case["after"].as_object().into_iter().flatten() {
        let found = fs::read(work.join(path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let gone = text.is_null() && !work.join(path).exists();
        expect(
            gone || found.as_deref() == text.as_str() && !text.is_null(),
            &format!("{path} holds {found:?} after it"),
        )?;
    }
    for (path, expected) in case["modes_after"].as_object().into_iter().flatten() {
        let mode = layout::mode(&work.join(path));
        let holds = mode.as_deref().is_none_or(|mode| Some(mode) == expected.as_str());
        expect(holds, &format!("{path} has the mode {mode:?} after it"))?;
    }
    let outside = fs::read_to_string(crib.path("outside.txt")).ok();
    expect(outside.as_deref() == Some(OUTSIDE), "a file outside the grant was changed")?;
    expect(!content.to_string().contains(OUTSIDE), "a file outside the grant was read")?;
    expect(!leftovers(&work), "a temporary file was left behind")
}

/// `true` if `whole` contains all of `part`: an object may hold more keys, at any depth.
fn has(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, part)| whole.get(key).is_some_and(|whole| has(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| has(whole, part))
        }
        (whole, part) => whole == part,
    }
}

fn leftovers(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let entry = entry.unwrap();
        let folder = entry.file_type().unwrap().is_dir();
        entry.file_name().to_string_lossy().starts_with(".toolcrib-") || folder && leftovers(&entry.path())
    })
}
