//! Canary in a whole run: a secret is used, returned, put into an error and into a panic, and afterwards everything
//! that was written or printed is searched for it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::echo::{Echo, WAYS, base64, found};
use super::{CANARY, crib, entry};
use crate::crib::{Crib, Ran};

/// Files in a folder and below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Fails if anything in the crib or in `printed` contains the secret.
fn search(crib: &Crib, printed: &[(&str, &[u8])]) {
    let folder = crib.path(".");
    let kept = files(&folder);
    let names: Vec<_> = kept.iter().map(|path| path.strip_prefix(&folder).unwrap().display().to_string()).collect();
    for path in &kept {
        assert_eq!(found(&fs::read(path).unwrap(), CANARY), None, "{}", path.display());
        assert_eq!(found(path.as_os_str().as_encoded_bytes(), CANARY), None);
    }
    for (what, bytes) in printed {
        assert_eq!(found(bytes, CANARY), None, "{what}: {}", String::from_utf8_lossy(bytes));
    }
    for wanted in ["audit/", "secrets/secrets.enc"] {
        assert!(names.iter().any(|name| name.starts_with(wanted)), "{wanted} was searched: {names:?}");
    }
}

/// Collector that accepts everything.
fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let taken = Arc::new(Mutex::new(Vec::new()));
    let taking = taken.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut all, mut part) = (Vec::new(), [0; 4096]);
            while let Ok(count @ 1..) = stream.read(&mut part) {
                all.extend_from_slice(&part[..count]);
                let text = String::from_utf8_lossy(&all).to_ascii_lowercase();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() >= length.and_then(|length| length.parse().ok()).unwrap_or(0) {
                    break;
                }
            }
            taking.lock().unwrap().extend_from_slice(&all);
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}"
            );
        }
    });
    (url, taken)
}

/// Script that uses the secret in every way, and a call that is denied.
fn script(echo: &Echo) -> Value {
    let call = |arguments: Value| json!({"name": "canary", "arguments": arguments});
    let mut turns = vec![
        json!({"tool_calls": [call(json!({"url": echo.url("quiet"), "tell": ["stderr"]}))]}),
        json!({"tool_calls": [
            call(json!({"url": echo.url("quiet"), "times": 200})),
            call(json!({"url": echo.url("quiet"), "tell": ["fail"]})),
            call(json!({"url": echo.url("quiet"), "tell": ["panic"]})),
            call(json!({"url": format!("http://127.0.0.1:1/{}", "x")})),
            call(json!({"wrong": true})),
            json!({"name": "refused", "arguments": {"url": echo.url("plain")}}),
            json!({"name": "absent", "arguments": {}}),
        ]}),
    ];
    for way in WAYS {
        turns.push(json!({"tool_calls": [call(json!({"url": echo.url(way), "tell": ["stderr", "file"]}))]}));
        turns.push(json!({"tool_calls": [call(json!({"url": echo.url(way), "tell": ["stderr", "fail"]}))]}));
    }
    turns.push(json!({"content": "done"}));
    json!({"prompt": "go", "turns": turns})
}

#[test]
fn a_run_leaves_no_trace_of_a_secret_anywhere() {
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    let mut tool = entry(&crib, &echo.host());
    tool["envPassthrough"] = json!(["PLANTED", "PLANTED_TOO"]);
    let mut refused = tool.clone();
    refused["name"] = json!("refused");
    crib.manifest(&json!({ "tools": [tool, refused] }));
    fs::write(crib.path("script.json"), script(&echo).to_string()).unwrap();
    let (collector, taken) = collector();
    for further in [&["--json"][..], &["--verbose"], &["--debug"]] {
        let args = [
            "run",
            "--script",
            "script.json",
            "--allow-write=work",
            "--deny-tool=refused",
            "--records",
            "records",
            "--save-messages",
            "talk.json",
            "--otlp",
            &collector,
            "--set=results.max_inline=300",
            "--set=records.redact=nothing-of-it",
            "--max-steps=100",
            "--set=approvals.flows=never",
        ];
        let mut command = crib.toolcrib(&[&args[..], further].concat());
        // A tool that has the value from another source cannot reveal it either.
        command.env("PLANTED", CANARY).env("PLANTED_TOO", base64(format!("x{CANARY}").as_bytes()));
        let ran = Ran::from(command.output().unwrap());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let planted = crib.path("work/seen");
        let seen = fs::read_to_string(&planted).unwrap();
        assert!(seen.contains(CANARY), "the guest had what was planted");
        // Files that a tool writes to its own folder belong to the tool.
        fs::remove_file(planted).unwrap();
        let sent = taken.lock().unwrap().clone();
        assert!(sent.starts_with(b"POST /v1/traces"), "{}", String::from_utf8_lossy(&sent));
        search(&crib, &[("stdout", ran.stdout.as_bytes()), ("stderr", ran.stderr.as_bytes()), ("traces", &sent[..])]);
    }
    let names: Vec<_> = files(&crib.path(".")).iter().map(|path| path.display().to_string()).collect();
    for wanted in ["records/", "talk.json", "results/"] {
        assert!(names.iter().any(|name| name.contains(wanted)), "{wanted}: {names:?}");
    }
    let told = fs::read_to_string(crib.path("talk.json")).unwrap();
    assert!(told.contains("***REDACTED***") && told.contains("a response held the secret `canary`"), "{told}");
    assert!(echo.heard().len() > 60 && echo.heard().iter().all(|head| head.contains(CANARY)));
}

#[test]
fn a_call_leaves_no_trace_of_a_secret_that_its_caller_knows() {
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    let arguments = json!({"url": format!("{}?q={CANARY}", echo.url("quiet")), "headers": [["x-known", CANARY]]});
    let ran = crib.run(&["call", "canary", &arguments.to_string(), "--json", "--verbose"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("x-known: ***REDACTED***"), "{ran:?}");
    assert_eq!(crib.records()[0]["arguments"]["json"]["headers"], json!([["x-known", "***REDACTED***"]]));
    search(&crib, &[("stdout", ran.stdout.as_bytes()), ("stderr", ran.stderr.as_bytes())]);
}

#[test]
fn a_receipt_does_not_tell_a_secret_as_the_name_of_a_host() {
    const PLAIN: &str = "canary0123456789";
    let crib = crib("http://127.0.0.1:9");
    assert_eq!(super::keep(&crib, "canary", PLAIN).code, Some(0));
    let arguments = json!({"url": format!("http://{PLAIN}.example:8080/")}).to_string();
    let ran = crib.run(&["call", "canary", &arguments, "--json", "--verbose"]);
    let line: Value = serde_json::from_str(&ran.stdout).unwrap();
    let request = &line["receipt"]["network"]["requests"][0];
    assert_eq!((&request["host"], &request["error"]), (&json!("***REDACTED***.example"), &json!("denied")), "{line}");
    for (what, bytes) in [("stdout", ran.stdout.as_bytes()), ("stderr", ran.stderr.as_bytes())] {
        assert_eq!(found(bytes, PLAIN), None, "{what}: {ran:?}");
    }
    assert_eq!(found(json!(crib.records()).to_string().as_bytes(), PLAIN), None);
}

#[test]
fn an_answer_stays_json_and_one_that_no_mask_fits_is_withheld() {
    let crib = crib("http://127.0.0.1:9");
    let mut tools = vec![];
    for (name, secret, answer) in [
        ("digits", "12345678", r"{\22n\22:12345678,\22t\22:\22 12345678 \22}"),
        ("across", "ab\",\"cd12", r"[\22ab\22,\22cd12\22]"),
    ] {
        assert_eq!(super::keep(&crib, name, secret).code, Some(0));
        crib.install_wat(name, &writes(answer));
        let mut tool = entry(&crib, "http://127.0.0.1:9");
        (tool["name"], tool["command"]) = (json!(name), json!([format!("./tools/bin/{name}")]));
        tool["capabilities"]["secrets"][0]["name"] = json!(name);
        tools.push(tool);
    }
    crib.manifest(&json!({ "tools": tools }));
    let line = crib.call("digits", &json!({}), &[]);
    assert_eq!(line["result"], json!({"n": "***REDACTED***", "t": " ***REDACTED*** "}), "{line}");
    let line = crib.call("across", &json!({}), &[]);
    assert_eq!(line["receipt"]["outcome"], "denied", "{line}");
    assert_eq!(line["error"], "the answer held the secret `across`, so it is withheld");
}

/// Program that writes this text.
fn writes(text: &str) -> String {
    let length = text.replace("\\22", "\"").len();
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 64) "{text}")
  (func (export "_start")
    (i32.store (i32.const 0) (i32.const 64))
    (i32.store (i32.const 4) (i32.const {length}))
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))))"#
    )
}
