//! Forwarding of the log: a copy elsewhere has every record, and what was lost or changed on either side is found.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
#[cfg(unix)]
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolcrib::{Audit, ToolCall};

use crate::answering::{Answer, Server};
use crate::crib::{Crib, Ran, guest, nesting};
use crate::screen::Page;

/// Creates a crib with three logged calls, one of them with a secret argument.
fn logged() -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    for arguments in ["{\"n\":1}", "{\"n\":2}", "{\"key\":\"sk-abcdef\"}"] {
        crib.run(&["call", "echo", arguments, "--set=records.redact=sk-[a-z]+"]);
    }
    crib
}

fn forward(crib: &Crib, args: &[&str]) -> Ran {
    crib.run(&[&["audit", "forward"], args].concat())
}

fn lines(crib: &Crib) -> Vec<String> {
    let text: String = crib.logs().iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_copy_in_a_folder_agrees_with_the_log_and_each_change_is_named() {
    let page = Page::new();
    let crib = logged();
    fs::create_dir(crib.path("out")).unwrap();
    page.run(&crib, &["audit", "forward", "out"]);
    page.run(&crib, &["audit", "forward", "out"]);
    let [file] = &fs::read_dir(crib.path("out")).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>()[..]
    else {
        panic!("one batch, one file")
    };
    let copy = fs::read_to_string(file).unwrap();
    assert_eq!(copy.lines().collect::<Vec<_>>(), lines(&crib));
    assert!(copy.contains("***REDACTED***") && !copy.contains("sk-abcdef"), "{copy}");
    page.run(&crib, &["audit", "verify", "--against", "out"]);
    fs::write(crib.path("changed.log"), copy.replacen("\"n\":2", "\"n\":3", 1)).unwrap();
    page.note("a record was changed");
    page.run(&crib, &["audit", "verify", "--against", "changed.log"]);
    let less: Vec<_> = copy.lines().enumerate().filter(|(at, _)| *at != 1).map(|(_, line)| line).collect();
    fs::write(crib.path("less.log"), less.join("\n")).unwrap();
    page.note("a record was lost");
    page.run(&crib, &["audit", "verify", "--against", "less.log"]);
    page.note("the log was removed before its last record was sent");
    crib.run(&["call", "echo", "{}"]);
    crib.run(&["call", "echo", "{}"]);
    let log = crib.logs().remove(0);
    let text = fs::read_to_string(&log).unwrap();
    let kept: Vec<_> = text.lines().filter(|line| !line.contains("\"seq\":4")).collect();
    fs::write(&log, kept.join("\n") + "\n").unwrap();
    page.run(&crib, &["audit", "forward", "out"]);
    page.matches("audit/forwarded");
    let report = crib.run(&["audit", "verify", "--against", "out", "--json"]);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!((&report["copy"]["records"], &report["copy"]["differences"]), (&json!(4), &json!(0)), "{report}");
}

#[test]
fn a_collector_gets_the_lines_with_their_place_and_as_many_arguments_as_are_wanted() {
    let crib = logged();
    let server = Server::start().answers("/v1/logs", [Answer::new(503), Answer::new(200).json(json!({}))]);
    let mut command = crib.toolcrib(&["audit", "forward", &server.uri(), "--host=desk", "--json"]);
    let ran = Ran::of(command.env("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abc"));
    let summary: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let last: Value = serde_json::from_str(lines(&crib).last().unwrap()).unwrap();
    assert_eq!((ran.code, &summary["sent"], &summary["head"]), (Some(0), &json!(3), &last["chain"]));
    assert!(ran.stderr.contains("trying again") && ran.stderr.contains("accepts records again"), "{ran:?}");
    let received = server.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[1].header("authorization"), Some("Bearer abc"));
    let request = received[1].json();
    let host = json!({"key": "host.name", "value": {"stringValue": "desk"}});
    assert!(request["resourceLogs"][0]["resource"]["attributes"].as_array().unwrap().contains(&host));
    let records = request["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap();
    assert_eq!(
        records.iter().map(|record| record["body"]["stringValue"].as_str().unwrap()).collect::<Vec<_>>(),
        lines(&crib)
    );
    let said = |name: &str| crate::telemetry::said(&records[2], name);
    assert_eq!((said("toolcrib.seq"), said("gen_ai.tool.name")), (json!(3), json!("echo")));
    assert_eq!((said("log.record.uid"), said("toolcrib.outcome")), (last["chain"].clone(), json!("ok")));
    assert_eq!((&records[2]["severityText"], &records[2]["severityNumber"]), (&json!("INFO"), &json!(9)));
    assert!(records[2]["timeUnixNano"].as_str().unwrap().ends_with("000000"));
    // What the collector has written is a copy, too.
    fs::write(crib.path("collected.json"), request.to_string()).unwrap();
    assert_eq!(crib.run(&["audit", "verify", "--against", "collected.json"]).code, Some(0));

    let server = Server::start().answers("/base/v1/logs", [Answer::new(200)]);
    let ran = forward(&crib, &[&format!("{}/base", server.uri()), "--without-arguments"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let sent = server.received()[0].json();
    assert!(!sent.to_string().contains("arguments") && sent.to_string().contains("chain"), "{sent}");
    fs::write(crib.path("short.json"), sent.to_string()).unwrap();
    let ran = crib.run(&["audit", "verify", "--against", "short.json"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("3 without their arguments"), "{ran:?}");
}

#[test]
fn a_syslog_receiver_gets_framed_messages_whose_lines_are_a_copy() {
    let crib = logged();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("syslog://{}", listener.local_addr().unwrap());
    let receiver = std::thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    let ran = forward(&crib, &[&target, "--host=desk"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let text = receiver.join().unwrap();
    let mut rest = text.as_str();
    let mut file = fs::File::create(crib.path("syslog.log")).unwrap();
    for line in lines(&crib) {
        let (length, after) = rest.split_once(' ').unwrap();
        let (message, next) = after.split_at(length.parse().unwrap());
        assert!(message.starts_with("<110>1 20") && message.ends_with(&format!("Z desk toolcrib - audit - {line}")));
        writeln!(file, "{message}").unwrap();
        rest = next;
    }
    assert_eq!(rest, "");
    assert_eq!(crib.run(&["audit", "verify", "--against", "syslog.log"]).code, Some(0));
}

#[test]
fn a_target_that_cannot_be_meant_is_wrong_use_and_one_that_refuses_an_error() {
    let page = Page::new();
    let crib = logged();
    for target in ["ftp://x", "syslog://", "syslog://x/path"] {
        page.run(&crib, &["audit", "forward", target]);
    }
    page.run(&crib, &["audit", "forward", "nowhere"]);
    page.run(&Crib::new(), &["audit", "forward", "nowhere"]);
    fs::create_dir(crib.path("out")).unwrap();
    crib.run(&["audit", "forward", "out", "--cursor=own.json"]);
    page.run(&crib, &["audit", "forward", ".", "--cursor=own.json"]);
    fs::write(crib.path("own.json"), "{}").unwrap();
    page.run(&crib, &["audit", "forward", "out", "--cursor=own.json"]);
    page.matches("audit/not-forwarded");
    let server = Server::start().answers("/v1/logs", [Answer::new(400).text("no\u{1b}[2J")]);
    let ran = forward(&crib, &[&server.uri()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("record 1 and the following: 400 Bad Request: no"), "{ran:?}");
    assert!(!ran.stderr.contains('\u{1b}') && ran.stderr.contains("hint: nothing is lost"), "{ran:?}");
}

#[test]
fn old_files_are_removed_only_after_they_were_sent() {
    let page = Page::new();
    let crib = Crib::new();
    fs::create_dir(crib.path("out")).unwrap();
    let sign = |day: u64| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_366_400 + day * 86_400);
        let audit = Audit::folder(crib.path("audit")).clock(move || time);
        let runtime = nesting::builder(audit).source(guest("empty")).build().unwrap();
        super::block_on(nesting::call(&runtime, ToolCall::new("", "empty", "{}")));
    };
    sign(0);
    sign(1);
    page.run(&crib, &["audit", "forward", "out"]);
    sign(2);
    page.run(&crib, &["audit", "prune", "--older-than=1d"]);
    page.run(&crib, &["audit", "forward", "out"]);
    page.run(&crib, &["audit", "prune", "--older-than=1d", "--dry-run"]);
    assert_eq!(crib.logs().len(), 2);
    page.run(&crib, &["audit", "prune", "--older-than=1d", "--json"]);
    page.run(&crib, &["audit", "verify", "--against", "out"]);
    page.run(&crib, &["audit", "prune", "--older-than=30"]);
    page.matches("audit/pruned");
}

#[cfg(unix)]
#[test]
fn a_follower_sends_what_others_log_and_ends_when_it_is_told_to() {
    let crib = logged();
    fs::create_dir(crib.path("out")).unwrap();
    let arguments = ["audit", "forward", "out", "--follow"];
    let mut follower = crib.toolcrib(&arguments).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let batches =
        || fs::read_dir(crib.path("out")).unwrap().filter(|entry| !is_hidden(entry.as_ref().unwrap())).count();
    crate::mcp::programs::until(|| batches() == 1);
    crib.run(&["call", "echo", "{}"]);
    crate::mcp::programs::until(|| batches() == 2);
    // It has not looked for this one yet.
    crib.run(&["call", "echo", "{}"]);
    let id = follower.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(follower.wait().unwrap().code(), Some(130));
    let rest = forward(&crib, &["out"]);
    assert!(rest.stdout.starts_with("0 records sent"), "it has sent the last record: {rest:?}");
    let ran = crib.run(&["audit", "verify", "--against", "out"]);
    assert!(ran.code == Some(0) && ran.stdout.contains("copy: 5 records, seq 1 to 5, 0 differences"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_follower_gives_up_on_a_target_that_takes_nothing() {
    for signals in [1, 2] {
        let crib = logged();
        fs::create_dir(crib.path("out")).unwrap();
        let arguments = ["audit", "forward", "out", "--follow", "--cursor=cursor.json"];
        let mut follower = crib.toolcrib(&arguments).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        // A file in the target is written before the follower knows that it arrived.
        let acknowledged =
            || fs::read_to_string(crib.path("cursor.json")).is_ok_and(|cursor| cursor.contains("\"seq\": 3"));
        crate::mcp::programs::until(acknowledged);
        fs::rename(crib.path("out"), crib.path("away")).unwrap();
        crib.run(&["call", "echo", "{}"]);
        let id = follower.id().to_string();
        for _ in 0..signals {
            assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        }
        let mut said = String::new();
        follower.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(follower.wait().unwrap().code(), Some(130), "{said}");
        assert!(signals == 2 || said.contains("interrupted before all records were sent"), "{said}");
        fs::rename(crib.path("away"), crib.path("out")).unwrap();
        let rest = forward(&crib, &["out", "--cursor=cursor.json"]);
        assert!(rest.stdout.starts_with("1 record sent"), "{rest:?}");
    }
}

/// Returns `true` for a file that is being written.
#[cfg(unix)]
fn is_hidden(entry: &fs::DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}
