//! Hostile sources and programs: each is an error or proves nothing, and the host survives.

use std::fs;

use serde_json::json;
use toolcrib::tool::Basis;

use super::{field, load, validate};
use crate::crib::{Crib, guest};
use crate::screen::Page;

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// Encodes a number as LEB128.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = (number & 0x7f) as u8;
        number >>= 7;
        bytes.push(if number == 0 { byte } else { byte | 0x80 });
        if number == 0 {
            return bytes;
        }
    }
}

fn section(id: u8, body: &[u8]) -> Vec<u8> {
    [&[id][..], &leb(body.len()), body].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&leb(text.len()), text.as_bytes()].concat()
}

/// `true` if the imports of these bytes are reported; reading them must not crash.
fn tells(crib: &Crib, bytes: &[u8]) -> bool {
    fs::write(crib.path("tools/bin/n.wasm"), bytes).unwrap();
    let tool = load(crib, "tools/bin/n.wasm").remove(0);
    let output = tool.imports.is_some();
    assert!(output || field(&tool, "is_read_only").1 == Basis::Default);
    output
}

#[test]
fn a_record_that_is_no_record_is_told() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let deep = format!("{{\"tool_id\":\"t\",\"x\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let huge = format!("{{\"tool_id\":\"t\",\"x\":\"{}\"}}", "x".repeat(9 << 20));
    for (name, content) in [
        ("nothing", ""),
        ("a list", "[]"),
        ("cut", "{\"tool_id\":\"t\""),
        ("a field twice", r#"{"tool_id":"t","tool_id":"u"}"#),
        ("a part twice", r#"{"tool_id":"t","rendering":{"ui_summary":"a","ui_summary":"b"}}"#),
        ("too deep", &deep),
        ("too large", &huge),
    ] {
        fs::write(crib.path("n.tool.json"), content).unwrap();
        let (code, output) = validate(&crib, "n.tool.json");
        assert_eq!(code, Some(1), "{output}");
        page.text(name, &output);
    }
    fs::write(crib.path("n.tool.json"), b"{\"tool_id\":\"\xff\"}").unwrap();
    page.text("not UTF-8", validate(&crib, "n.tool.json").1);
    page.matches("record/no-record");
}

#[test]
fn a_text_from_a_source_has_no_power_over_a_terminal() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    let record = json!({"schema_version": "0.2.0", "tool_id": "t", "component": "tools/bin/echo", "\u{1b}[2J\n": 1});
    fs::write(crib.path("n.tool.json"), record.to_string()).unwrap();
    let (_, output) = validate(&crib, "n.tool.json");
    page.text("validate", &output);
    page.matches("record/hostile-text");
}

#[test]
fn a_truncated_program_proves_nothing() {
    let crib = Crib::new();
    let whole = fs::read(guest("echo")).unwrap();
    assert!(tells(&crib, &whole));
    let cuts = (8..400).chain((400..whole.len()).step_by(whole.len() / 60));
    for cut in cuts {
        // A cut between two sections leaves a valid program: its remaining imports are reported, and it cannot run.
        let _ = tells(&crib, &whole[..cut]);
    }
    assert!(!tells(&crib, &whole[..whole.len() - 1]));
}

#[test]
fn random_bytes_prove_nothing_and_bring_nothing_down() {
    let crib = Crib::new();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    // Alone, and as the body of each section that is read, so that more than the framing is tested.
    let kinds = [(COMPONENT, None), (COMPONENT, Some(7)), (COMPONENT, Some(10)), (COMPONENT, Some(6))];
    let kinds = kinds.into_iter().chain([(COMPONENT, Some(11)), (MODULE, None), (MODULE, Some(2))]);
    for (round, (header, id)) in kinds.cycle().take(700).enumerate() {
        let body: Vec<u8> = (0..200).map(|_| random()).collect();
        let body = id.map_or(body.clone(), |id| section(id, &body));
        assert!(!tells(&crib, &[header, &body].concat()), "round {round}");
    }
}

#[test]
fn a_hundred_thousand_imports_prove_nothing() {
    let crib = Crib::new();
    let one = [text("wasi_snapshot_preview1"), text("fd_write"), vec![0, 0]].concat();
    let functions = section(1, &[1, 0x60, 0, 0]);
    let many = |count: usize| {
        let imports = section(2, &[leb(count), one.repeat(count)].concat());
        [MODULE, &functions, &imports].concat()
    };
    assert!(tells(&crib, &many(10)));
    assert!(!tells(&crib, &many(100_000)));
    let one = [&[0][..], &text("a:b/c@0.2.0"), &[5, 0]].concat();
    let imports = section(10, &[leb(100_000), one.repeat(100_000)].concat());
    assert!(!tells(&crib, &[COMPONENT, &section(7, &[1, 0x42, 0]), &imports].concat()));
}

#[test]
fn a_size_that_lies_is_not_believed() {
    let crib = Crib::new();
    for size in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], &[0x80, 0x80], &[9]] {
        for id in [1, 7, 10] {
            assert!(!tells(&crib, &[COMPONENT, &[id], size, &[0; 8]].concat()));
        }
    }
    let sections = [COMPONENT, &[0, 1, 0].repeat(200_000)].concat();
    assert!(!tells(&crib, &sections), "more sections than any program has");
}

#[test]
fn types_and_components_nested_without_end_are_refused_and_the_host_stands() {
    let deep = |levels: usize| {
        let body = [&[1, 0x42, 1][..], &[1, 0x42, 1].repeat(levels), &[1, 0x42, 0]].concat();
        [COMPONENT, &section(7, &body)].concat()
    };
    let mut nested = COMPONENT.to_vec();
    for _ in 0..500 {
        nested = [COMPONENT, &section(4, &nested)].concat();
    }
    let world = [text("component-type:x"), deep(100_000)].concat();
    let crib = Crib::new();
    let command = wat::parse_str(r#"(module (memory (export "memory") 1) (func (export "_start")))"#).unwrap();
    let too_deep = "its types or components are nested deeper than 100 levels";
    for (bytes, read, why) in [
        (deep(100_000), false, too_deep),
        // Nothing more is read: it cannot be called in any way.
        (nested, true, "not a tool: it exports nothing"),
        ([&command[..], &section(0, &world)].concat(), true, too_deep),
    ] {
        assert_eq!(tells(&crib, &bytes), read);
        let (code, output) = validate(&crib, "tools/bin/n.wasm");
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains(why), "{output}");
    }
    assert!(tells(&crib, &deep(20)));
}
