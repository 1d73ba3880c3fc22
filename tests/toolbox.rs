//! Shipped tools: each case of `tests/cases/toolbox` in a separate sandbox.

use std::fs;
use std::path::Path;

use serde_json::Value;
use toolcrib::policy::{Permission, Policy};
use toolcrib::{Runtime, ToolCall};

use crate::crib::{Crib, target, toolbox};

const OUTSIDE: &str = "canary outside the grant";

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
    tools.sort();
    let runtime = Runtime::builder(toolcrib::Audit::off()).source(toolbox()).build().unwrap();
    let mut shipped: Vec<_> = runtime.tools().map(|tool| tool.name.clone()).collect();
    shipped.sort();
    assert_eq!(tools, shipped, "every shipped tool has cases");
    eprintln!("{counted} cases");
}

async fn hold(tool: &str, case: &Value) -> Result<(), String> {
    let crib = Crib::new();
    let work = crib.path("work");
    lay(&crib, case);
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
    let outside = fs::read_to_string(crib.path("outside.txt")).ok();
    expect(outside.as_deref() == Some(OUTSIDE), "a file outside the grant was changed")?;
    expect(!content.to_string().contains(OUTSIDE), "a file outside the grant was read")?;
    expect(!leftovers(&work), "a temporary file was left behind")
}

/// Creates the files, folders and links of a case.
fn lay(crib: &Crib, case: &Value) {
    let work = crib.path("work");
    fs::write(crib.path("outside.txt"), OUTSIDE).unwrap();
    let at = |path: &str| {
        let path = work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    for (path, content) in case["files"].as_object().into_iter().flatten() {
        let bytes = match content {
            Value::String(text) => text.clone().into_bytes(),
            Value::Object(_) if content["base64"].is_string() => base64(content["base64"].as_str().unwrap()),
            content => repeated(content).as_str().expect("a text").as_bytes().to_vec(),
        };
        fs::write(at(path), bytes).unwrap();
    }
    for folder in case["folders"].as_array().into_iter().flatten() {
        fs::create_dir_all(work.join(folder.as_str().unwrap())).unwrap();
    }
    for (path, to) in case["links"].as_object().into_iter().flatten() {
        crate::crib::link(to.as_str().unwrap(), &at(path));
    }
}

/// Expands each `{"text": …, "times": N}` in a value.
fn repeated(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.len() == 2 && value["times"].is_u64() && value["text"].is_string() => {
            let times = usize::try_from(value["times"].as_u64().unwrap()).unwrap();
            value["text"].as_str().unwrap().repeat(times).into()
        }
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), repeated(value))).collect(),
        Value::Array(items) => items.iter().map(repeated).collect(),
        other => other.clone(),
    }
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

fn base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sextets = text.bytes().filter_map(|byte| ALPHABET.iter().position(|known| *known == byte));
    let bits: Vec<u8> = sextets.flat_map(|sextet| (0..6).rev().map(move |bit| (sextet >> bit & 1) as u8)).collect();
    bits.chunks_exact(8).map(|byte| byte.iter().fold(0, |sum, bit| sum << 1 | bit)).collect()
}
