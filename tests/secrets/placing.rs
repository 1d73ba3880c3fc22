//! Requests that carry a secret, and the handling of a response that contains it.

use std::fs;

use serde_json::{Value, json};

use super::echo::{Echo, WAYS, found};
use super::{CANARY, crib, entry, keep};
use crate::crib::Crib;
use crate::screen::Page;

/// Lines of a request's head that begin with a name.
fn sent<'h>(head: &'h str, name: &str) -> Vec<&'h str> {
    head.lines().filter(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:"))).collect()
}

#[test]
fn the_host_gets_the_secret_and_the_tool_never_sees_it() {
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    let headers = json!([
        ["authorization", "mine"],
        ["Authorization", "mine too"],
        ["accept-encoding", "gzip"],
        ["range", "bytes=0-3"],
        ["x-other", "stays"]
    ]);
    let line = crib.call("canary", &json!({"url": echo.url("quiet"), "headers": headers}), &[]);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    assert_eq!(line["receipt"]["secrets"], json!(["canary"]), "{line}");
    let granted = format!("secret:canary@{}#header:authorization", echo.host());
    assert!(line["receipt"]["granted"].as_array().unwrap().contains(&json!(granted)), "{line}");
    assert!(line["result"].to_string().contains("nothing to see"), "{line}");
    assert_eq!(found(line.to_string().as_bytes(), CANARY), None, "{line}");
    let [head] = &echo.heard()[..] else { panic!("one request") };
    assert_eq!(
        sent(head, "authorization"),
        [format!("authorization: Bearer {CANARY}")],
        "what the guest put there is replaced"
    );
    assert!(sent(head, "accept-encoding").is_empty() && sent(head, "range").is_empty(), "{head}");
    assert_eq!(sent(head, "x-other").len(), 1);
    let record = &crib.records()[0];
    assert_eq!(record["secrets"], json!(["canary"]));
}

#[test]
fn a_parameter_of_the_query_carries_it_too() {
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    let mut tool = entry(&crib, &echo.host());
    tool["capabilities"]["secrets"] = json!([{"name": "canary", "host": echo.host(), "query": "key"}]);
    crib.manifest(&json!({ "tools": [tool] }));
    let line = crib.call("canary", &json!({"url": echo.url("quiet?a=1&key=mine&k%65y=mine")}), &[]);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    let heard = echo.heard().join("");
    assert!(heard.starts_with("GET /quiet?a=1&key=canary~7f%2FQ%2B3%3Dx%269Zk HTTP/1.1\r\n"), "{heard}");
    let line = crib.call("canary", &json!({"url": echo.url("percent")}), &[]);
    assert_eq!(line["receipt"]["outcome"], "denied", "{line}");
}

#[test]
fn another_host_gets_nothing() {
    let (echo, other) = (Echo::start(CANARY), Echo::start("nothing of the kind"));
    let crib = crib(&echo.host());
    let mut tool = entry(&crib, &echo.host());
    tool["capabilities"]["network"] = json!([echo.host(), other.host()]);
    crib.manifest(&json!({ "tools": [tool] }));
    let line = crib.call("canary", &json!({"url": other.url("quiet")}), &[]);
    assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
    assert_eq!(line["receipt"].get("secrets"), None, "{line}");
    let [head] = &other.heard()[..] else { panic!("one request") };
    assert!(sent(head, "authorization").is_empty(), "{head}");
}

#[test]
fn a_response_that_holds_it_is_cut_in_every_encoding() {
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    for way in WAYS {
        let arguments = json!({"url": echo.url(way), "tell": ["file", "stderr"]});
        let line = crib.call("canary", &arguments, &["--allow-write=work"]);
        assert_eq!(line["receipt"]["outcome"], "denied", "{way}: {line}");
        assert_eq!(line["error"], "a response held the secret `canary`, so the answer is withheld", "{way}: {line}");
        assert_eq!(line["receipt"]["network"]["requests"][0]["error"], "secret", "{way}: {line}");
        assert_eq!(found(line.to_string().as_bytes(), CANARY), None, "{way}: {line}");
        // The guest's own view, before anything was masked.
        let seen = fs::read(crib.path("work/seen")).unwrap();
        assert_eq!(found(&seen, CANARY), None, "{way}: {}", String::from_utf8_lossy(&seen));
        let text = String::from_utf8_lossy(&seen).into_owned();
        // A head fails with a code, a body with an error that has none.
        let failed = text.lines().any(|line| line == "None" || line.contains("the response held a secret"));
        assert!(failed && !text.contains("canary~7f"), "{way}: {text}");
        fs::remove_file(crib.path("work/seen")).unwrap();
    }
    assert!(echo.heard().iter().all(|head| head.contains(CANARY)), "it was there to be given back");
}

#[test]
fn a_response_that_could_hide_it_is_not_taken_and_another_is_whole() {
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    let line = crib.call("canary", &json!({"url": echo.url("packed")}), &[]);
    assert!(line["result"].to_string().contains("HttpProtocolError"), "{line}");
    let line = crib.call("canary", &json!({"url": echo.url("long")}), &[]);
    assert!(line["result"]["seen"].to_string().contains(&"no secret here ".repeat(2000)), "it is handed on whole");
    assert_eq!(line["receipt"]["network"]["receivedBytes"], 30_000, "{}", line["receipt"]);
}

#[test]
fn a_record_asks_and_a_flag_allows() {
    let page = Page::new();
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    fs::remove_file(crib.path("tools.json")).unwrap();
    let record = json!({
        "schema_version": "0.2.0", "tool_id": "test.canary", "component": "tools/bin/canary.wasm",
        "capabilities": {"network": [echo.host()], "secrets": [{"name": "canary", "host": echo.host(), "header": "X-Key"}]},
    });
    fs::write(crib.path("canary.tool.json"), record.to_string()).unwrap();
    let net = format!("--allow-net={}", echo.host());
    let call = |flags: &[&str]| {
        let flags = [&["--tools=canary.tool.json", net.as_str()][..], flags].concat();
        let before = echo.heard().len();
        let line = crib.call("canary", &json!({"url": echo.url("quiet")}), &flags);
        assert_eq!(line["receipt"]["outcome"], "ok", "{line}");
        let heard = echo.heard()[before..].join("");
        (heard.contains(CANARY), line)
    };
    let (carried, line) = call(&[]);
    let host = echo.host();
    let flag = format!("--allow-secret=canary@{host}#header:x-key");
    let denied = json!([{"capability": format!("secret:canary@{host}#header:x-key"), "flag": flag}]);
    assert!(!carried && line["receipt"]["denied"] == denied, "{line}");
    for allowed in [flag.clone(), format!("--allow-secret=canary@{host}#header:X-KEY")] {
        assert!(call(&[&allowed]).0, "{allowed}");
        for denial in
            ["", "=canary", "=other,canary", &format!("=canary@{host}"), &format!("=canary@{host}#header:X-Key")]
        {
            assert!(!call(&[&allowed, &format!("--deny-secret{denial}")]).0, "{allowed} {denial}");
        }
        let others = format!("--deny-secret=other,canary@other.example,canary@{host}#query:x-key");
        assert!(call(&[&allowed, &others]).0);
    }
    // A flag for another name, host or place allows nothing.
    for other in [
        "other@a.example#header:x-key",
        "canary@other.example#header:x-key",
        "canary@127.0.0.1:443#header:x-key",
        &format!("canary@{host}#header:authorization"),
        &format!("canary@{host}#query:x-key"),
    ] {
        let (carried, line) = call(&[&format!("--allow-secret={other}")]);
        assert!(!carried && line["receipt"]["denied"] == denied, "{other}: {line}");
    }
    for wrong in [
        "--allow-secret=canary",
        &format!("--allow-secret=canary@{host}"),
        "--allow-secret=A",
        "--allow-secret=*",
        "--allow-secret=a@*.b",
        "--allow-secret=a@http://b.example",
        "--allow-secret=a#header:x",
        "--allow-secret=a@b.c#",
        "--allow-secret=a@b.c#body",
        "--allow-secret=a@b.c#header:Host",
        "--allow-secret=a@b.c#header:x`y`",
        "--allow-secret=a@b.c#query:",
    ] {
        page.run(&crib, &["call", "canary", "--tools=canary.tool.json", wrong]);
    }
    page.matches("secret/flags");
}

#[test]
fn a_call_without_its_secret_and_a_flag_without_a_tool_are_reported() {
    let page = Page::new();
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    fs::remove_file(crib.path("tools.json")).unwrap();
    let record = json!({
        "schema_version": "0.2.0", "tool_id": "test.canary", "component": "tools/bin/canary.wasm",
        "capabilities": {"network": [echo.host()], "secrets": [{"name": "canary", "host": echo.host(), "header": "X-Key"}]},
    });
    fs::write(crib.path("canary.tool.json"), record.to_string()).unwrap();
    let (host, arguments) = (echo.host(), json!({"url": echo.url("quiet")}).to_string());
    let call = |flags: &[&str]| {
        let net = format!("--allow-net={host}");
        let ran =
            page.run(&crib, &[&["call", "canary", &arguments, "--tools=canary.tool.json", &net][..], flags].concat());
        ran.stderr
    };
    let flag = format!("canary@{host}#header:x-key");
    let hint = format!("hint: `secret:{flag}` is not allowed; use --allow-secret={flag}\n");
    let output = call(&[]);
    assert_eq!(output.matches(&hint).count(), 1, "{output}");
    call(&[&format!("--allow-secret=canari@{host}#header:x-key")]);
    call(&[&format!("--allow-secret={flag}")]);
    call(&[&format!("--allow-secret={flag}"), "--deny-secret=canary"]);
    page.matches("secret/reported");
}

#[test]
fn a_manifest_of_ones_own_can_be_denied_its_secret() {
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    let line = crib.call("canary", &json!({"url": echo.url("quiet")}), &["--deny-secret"]);
    let capability = format!("secret:canary@{}#header:authorization", echo.host());
    assert!(line["receipt"]["denied"].as_array().unwrap().contains(&json!({ "capability": capability })), "{line}");
    assert!(!echo.heard().join("").contains(CANARY));
}

#[test]
fn a_secret_that_cannot_be_had_refuses_the_call_and_says_what_to_do() {
    let page = Page::new();
    let echo = Echo::start(CANARY);
    let crib = crib(&echo.host());
    page.run(&crib, &["secret", "remove", "canary"]);
    let arguments = json!({"url": echo.url("quiet")}).to_string();
    let ran = page.run(&crib, &["call", "canary", &arguments]);
    let output: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(output["error"], "the tool needs the secret `canary`, which cannot be given to it");
    assert_eq!(crib.records().last().unwrap()["outcome"], "denied");
    fs::write(crib.path("secrets/secrets.enc"), "toolcrib-secrets").unwrap();
    page.run(&crib, &["call", "canary", &arguments]);
    assert!(echo.heard().is_empty(), "nothing was sent without it");
    page.matches("secret/missing");
}

#[test]
fn no_tool_reaches_the_store_or_its_passphrase() {
    let crib = Crib::with_guests(&["env_dump"]);
    keep(&crib, "canary", CANARY);
    for flag in ["--allow-read=secrets", "--allow-write=secrets"] {
        let ran = crib.run(&["call", "env_dump", "{}", flag]);
        assert!(ran.code == Some(1) && ran.stderr.contains("would let a tool reach the secrets"), "{flag}: {ran:?}");
    }
    let mut command = crib.toolcrib(&["call", "env_dump", "{}", "--allow-env=TOOLCRIB_SECRETS_PASSPHRASE,OTHER"]);
    let command = command.env("TOOLCRIB_SECRETS_PASSPHRASE", "correct horse").env("OTHER", "passed on");
    let stdout = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(stdout.contains("passed on") && !stdout.contains("horse") && !stdout.contains("PASSPHRASE"), "{stdout}");
}

#[test]
fn a_manifest_that_nobody_trusts_sends_no_secret_anywhere() {
    let echo = Echo::start(CANARY);
    let mut crib = crib(&echo.host());
    crib.trusts = false;
    fs::remove_file(crib.trusted_file()).unwrap();
    let arguments = json!({ "url": echo.url("quiet") });
    let allowed = format!("--allow-net={}", echo.host());
    for flags in [&[][..], &[allowed.as_str()]] {
        let line = crib.call("canary", &arguments, flags);
        let heard = echo.heard().concat();
        assert!(found(heard.as_bytes(), CANARY).is_none() && !heard.to_lowercase().contains("bearer"), "{heard}");
        let granted = line["receipt"]["granted"].to_string();
        assert!(!granted.contains("secret"), "{line}");
    }
}
