//! Texts of `--redact` and sensitive arguments in every encoding, in everything that is kept of a run, on the pages of the
//! console, and in the records of errors that a client of MCP gets.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::crib::Crib;
use crate::{console, mcp};

/// Text that nothing may keep.
const CANARY: &str = r#"canary"/+9 0017"#;

/// The text in its encodings, each once with text around it.
fn encodings() -> Vec<String> {
    let bytes = |between: &str, prefix: &str| {
        CANARY.bytes().map(|byte| format!("{prefix}{byte:02x}")).collect::<Vec<_>>().join(between)
    };
    let percent: String = CANARY.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let base64 = BASE64_STANDARD.encode(CANARY);
    let spaced: Vec<&str> = base64.as_bytes().chunks(5).map(|part| std::str::from_utf8(part).unwrap()).collect();
    let json = Value::from(CANARY).to_string();
    vec![
        CANARY.to_owned(),
        json.clone(),
        Value::from(json).to_string(),
        percent.clone(),
        percent.replace('%', "%25"),
        percent.replace('%', "%2525"),
        CANARY.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect(),
        CANARY.chars().map(|c| format!("&#x{:x};", u32::from(c))).collect(),
        bytes("", ""),
        bytes(":", ""),
        bytes(" ", "").to_uppercase(),
        bytes(", ", "0x"),
        base64.clone(),
        spaced.join(" "),
        spaced.join("\r\n"),
        BASE64_STANDARD.encode(format!("x{CANARY}")),
        BASE64_STANDARD.encode(format!("xy{CANARY}")),
    ]
}

/// Text of all files below a folder.
fn kept(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else { return String::new() };
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    entries
        .flatten()
        .map(|entry| if entry.path().is_dir() { kept(&entry.path()) } else { text(&entry.path()) })
        .collect()
}

/// Runs a script whose calls have these arguments; returns everything that is kept of it.
fn ran(calls: &[Value], flags: &[&str]) -> String {
    let crib = Crib::new();
    let mut entry = crib.entry("echo");
    entry["schema"] = json!({"properties": {"token": {"type": "string", "format": "password"}}});
    crib.manifest(&json!({"tools": [entry]}));
    let calls: Vec<_> = calls.iter().map(|arguments| json!({"name": "echo", "arguments": arguments})).collect();
    let turns = json!([{"tool_calls": calls}, {"content": "done"}]);
    fs::write(crib.path("script.json"), json!({"prompt": "go", "turns": turns}).to_string()).unwrap();
    let ran = crib.run(&[&["run", "--script", "script.json", "--quiet"], flags].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let kept = kept(&crib.path("audit")) + &kept(&crib.path("home/.local/state/toolcrib/runs"));
    assert!(kept.contains("\"tool\":\"echo\"") && kept.contains("tool_calls"), "{kept}");
    kept + &console::history(&crib)
}

/// Calls a tool that fails with its argument as a client of MCP; returns the log and the pages of the console.
fn failed(calls: &[Value], flags: &[&str]) -> String {
    let crib = Crib::new();
    let mut entry = crib.entry("exit_code");
    entry["schema"] = json!({"properties": {"token": {"type": "string", "format": "password"}}});
    crib.manifest(&json!({"tools": [entry]}));
    let mut client = mcp::Client::initialized(&crib, flags, &json!({}));
    for arguments in calls {
        let arguments = json!({"code": 1, "stderr": arguments["note"], "token": arguments["token"]});
        let answer = client.call("exit_code", &arguments);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    drop(client);
    kept(&crib.path("audit")) + &console::history(&crib)
}

/// Spellings of an encoding inside JSON text of two levels.
fn is_in(encoding: &str, kept: &str) -> bool {
    let once = Value::from(encoding).to_string();
    let twice = Value::from(once.trim_matches('"')).to_string();
    [encoding, once.trim_matches('"'), twice.trim_matches('"')].iter().any(|spelling| kept.contains(spelling))
}

#[test]
fn a_text_to_redact_is_kept_in_no_encoding() {
    let calls: Vec<Value> = encodings().iter().map(|text| json!({"note": format!("<{text}>")})).collect();
    let open = ran(&calls, &[]);
    let masked = ran(&calls, &["--redact", CANARY]);
    for encoding in encodings() {
        assert!(is_in(&encoding, &open), "the test finds it: {encoding}");
        assert!(!is_in(&encoding, &masked), "{encoding}");
    }
    let open = failed(&calls[..1], &[]);
    assert!(is_in(CANARY, &open), "the test finds it");
    let errors = failed(&calls, &["--redact", CANARY]);
    for encoding in encodings() {
        assert!(!is_in(&encoding, &errors), "{encoding}");
    }
    let numbers = ["4111111111", "4111111111.0", "4.111111111e9"];
    let calls: Vec<Value> = numbers.map(|number| serde_json::from_str(&format!(r#"{{"n":{number}}}"#)).unwrap()).into();
    let masked = ran(&calls, &["--set=records.redact=4111111111"]);
    assert!(!masked.contains("4111111111") && !masked.contains("4.111111111"), "{masked}");
}

#[test]
fn a_sensitive_argument_that_is_repeated_is_kept_in_no_encoding() {
    let calls: Vec<Value> =
        encodings().iter().map(|text| json!({"token": CANARY, "note": format!("<{text}>")})).collect();
    let masked = ran(&calls, &[]) + &failed(&calls, &[]);
    for encoding in encodings() {
        assert!(!is_in(&encoding, &masked), "{encoding}");
    }
}
