//! Exports: files with what was filtered, and never a part that looks whole.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::figures::{log, record};
use super::pages::{HOSTILE, keep, message};
use super::{Answer, Console, PATIENCE};
use crate::crib::Crib;

/// Data of an answer that was sent in chunks; `None` if its end is missing.
fn whole(answer: &Answer) -> Option<String> {
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{answer:?}");
    let (mut rest, mut data) = (answer.body.as_str(), String::new());
    loop {
        let (length, after) = rest.split_once("\r\n")?;
        let length = usize::from_str_radix(length, 16).ok()?;
        if length == 0 {
            return Some(data);
        }
        data += after.get(..length)?;
        rest = after.get(length + 2..)?;
    }
}

#[test]
fn filtered_calls_are_exported_as_they_are_in_the_log() {
    let crib = Crib::new();
    let mut records: Vec<Value> =
        (0..5_000).map(|at| record(&format!("tool-{}", at % 2), "ok", f64::from(at), 1)).collect();
    records[3] = record(HOSTILE, "failed", 1.0, 1);
    log(&crib, &records);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let all = browser.get("calls/export");
    assert_eq!((all.status, all.header("content-type")), (200, Some("application/x-ndjson")), "{}", all.head);
    assert_eq!(all.header("content-disposition"), Some("attachment; filename=\"calls.ndjson\""));
    assert_eq!(all.header("x-content-type-options"), Some("nosniff"));
    let lines = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    assert_eq!(lines(&whole(&all).unwrap()), records, "every record, in the order of the log");
    let page = browser.page("calls?tool=tool-1&q=%22ms%22%3A7&sort=duration");
    let (_, link) = page.split_once("calls/export").unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let some = lines(&whole(&browser.get(&format!("calls/export{link}"))).unwrap());
    assert!(some.len() == 56 && some.iter().all(|record| record["tool"] == "tool-1"), "{}", some.len());
    assert_eq!(whole(&browser.get("calls/export?tool=none")).unwrap(), "");
    assert_eq!(browser.get("calls/export?day=never").status, 409);
    assert_eq!(console.get(&format!("{}calls/export", browser.path), "").status, 403);
}

#[cfg(unix)]
#[test]
fn an_export_that_fails_does_not_look_whole() {
    let crib = Crib::new();
    let mut long = record("first", "ok", 1.0, 1);
    long["arguments"] = json!({ "text": "x".repeat(4_000) });
    // More than the parts and the buffers of a connection hold.
    log(&crib, &vec![long; 10_000]);
    let later = crib.path("audit/99991231.log");
    fs::write(&later, format!("{}\n", record("last", "ok", 1.0, 1))).unwrap();
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let mut stream = TcpStream::connect(console.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("host: {}\r\nconnection: close\r\ncookie: {}", console.address, browser.cookie);
    write!(stream, "GET {}calls/export HTTP/1.1\r\n{head}\r\n\r\n", browser.path).unwrap();
    let mut all = vec![0; 1_000];
    stream.read_exact(&mut all).unwrap();
    // The export has begun, and waits. Now the rest of the log can be opened, and not read.
    fs::remove_file(&later).unwrap();
    fs::create_dir(&later).unwrap();
    let _ = stream.read_to_end(&mut all);
    let all = String::from_utf8(all).unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap();
    let answer = Answer { status: 200, head: head.to_owned(), body: body.to_owned() };
    assert!(head.starts_with("HTTP/1.1 200") && body.len() > 40_000_000, "{head} {}", body.len());
    assert_eq!(whole(&answer).map(|whole| whole.len()), None, "without its end");
    // Nothing is held by an export that failed.
    for _ in 0..3 {
        assert_eq!(whole(&browser.get("calls/export?tool=none")).as_deref(), Some(""));
    }
}

#[test]
fn a_run_is_exported_as_by_the_command() {
    let crib = Crib::new();
    let lines = ["user", "assistant"].map(|role| message(json!({ "role": role, "content": HOSTILE })));
    keep(&crib, "7k3md-x0q9a", "m", &lines);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    assert!(browser.page("runs/7k3md-x0q9a").contains("runs/7k3md-x0q9a/export\" download"));
    let answer = browser.get("runs/7k3md-x0q9a/export");
    assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"run-7k3md-x0q9a.json\""));
    let exported: Value = serde_json::from_str(&whole(&answer).unwrap()).unwrap();
    let ran = crib.run(&["runs", "export", "7k3md-x0q9a"]);
    assert_eq!(exported, serde_json::from_str::<Value>(&ran.stdout).unwrap(), "{ran:?}");
    assert_eq!(browser.get("runs/00000-00000/export").status, 404);
}
