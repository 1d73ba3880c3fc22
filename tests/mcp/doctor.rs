//! `toolcrib doctor`: the handshake with the servers that clients are configured to start, and with hostile ones.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;
use super::http::{Server, token};
use crate::crib::{Crib, Ran, TOOLCRIB};
use crate::screen::Page;

/// Entry key of a finding of the check.
const MCP: &str = "mcp";

fn crib() -> Crib {
    Crib::with_guests(&["echo", "spin"])
}

/// Writes the user's settings of Cursor.
fn cursor(crib: &Crib, servers: &Value) -> PathBuf {
    settings(&crib.path("home/.cursor/mcp.json"), servers)
}

fn settings(path: &Path, servers: &Value) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, json!({ "mcpServers": servers }).to_string()).unwrap();
    path.to_owned()
}

/// Writes a shell script, and returns its path.
fn script(crib: &Crib, name: &str, text: &str) -> String {
    let path = crib.path("work").join(name);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Entry with a program of the usual name that answers in its own way.
fn imitation(crib: &Crib, text: &str) -> Value {
    json!({ "toolcrib": { "command": script(crib, "toolcrib", text), "args": ["mcp"] } })
}

/// Findings about servers.
fn findings(crib: &Crib, flags: &[&str]) -> Vec<Value> {
    let ran = crib.run(&[&["doctor", "--json"], flags].concat());
    let all: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let failed = all.iter().any(|finding| finding["status"] == "fail");
    assert_eq!(ran.code, Some(i32::from(failed)), "{ran:?}");
    all.into_iter().filter(|finding| finding["check"] == MCP).collect()
}

/// The only finding, with its status.
fn finding(crib: &Crib, status: &str) -> (String, String) {
    let found = findings(crib, &[]);
    assert!(found.len() == 1 && found[0]["status"] == status, "{status}: {found:?}");
    let text = |key: &str| found[0][key].as_str().unwrap_or_default().to_owned();
    (text("detail"), text("cure"))
}

#[test]
fn the_server_of_every_configured_client_is_started_and_lists_its_tools() {
    let page = Page::new();
    let crib = crib();
    for args in [["claude-code", "--user"], ["codex", "--user"], ["goose", "--user"], ["cursor", "--project"]] {
        page.run(&crib, &[&["mcp", "config"], &args[..], &["--write", "--tools", "tools.json"]].concat());
    }
    let found = findings(&crib, &[]);
    assert_eq!(found.len(), 4, "{found:?}");
    for (finding, client) in found.iter().zip(["Claude Code", "Codex", "Cursor (project)", "goose"]) {
        let detail = finding["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("{client}: 3 tools in ")) && detail.ends_with(" s"), "{finding}");
        assert!(finding["status"] == "ok" && finding.get("cure").is_none(), "{finding}");
    }
    page.run(&crib, &["doctor"]);
    page.matches("mcp/doctor");
}

#[test]
fn without_a_client_the_program_checks_itself() {
    let sound = crib();
    let (detail, _) = finding(&sound, "ok");
    let ending = "; no client is configured: `toolcrib mcp config CLIENT` connects one";
    assert!(detail.starts_with("this program: 3 tools in ") && detail.ends_with(ending), "{detail}");
    let found = findings(&sound, &["--tools", "tools/bin/echo.wasm"]);
    assert!(found[0]["detail"].as_str().unwrap().starts_with("this program: 2 tools in "), "{found:?}");
    let empty = Crib::new();
    let (detail, _) = finding(&empty, "ok");
    assert!(detail.starts_with("this program: ") && detail.ends_with(ending), "the built-in tools: {detail}");
    fs::create_dir(empty.path("tools.json")).unwrap();
    let (detail, _) = finding(&empty, "ok");
    assert_eq!(detail, "no client is configured: `toolcrib mcp config CLIENT` connects one");
}

#[test]
fn a_command_that_does_not_exist_and_a_source_that_does_not_exist_have_a_fix() {
    let crib = crib();
    for command in ["/none/toolcrib", "toolcrib"] {
        let file = cursor(&crib, &json!({ "toolcrib": { "command": command, "args": ["mcp"] } }));
        let (detail, fix) = finding(&crib, "fail");
        assert_eq!(detail, format!("Cursor: `{command}` not found"));
        let place = format!("correct `mcpServers.toolcrib` in `{}`", file.canonicalize().unwrap().display());
        assert!(fix.starts_with(&place) && fix.ends_with("`toolcrib mcp config cursor --write --force`"), "{fix}");
    }
    cursor(&crib, &json!({ "tools": { "command": TOOLCRIB, "args": ["mcp", "--tools", "/none/tools.json"] } }));
    let (detail, fix) = finding(&crib, "fail");
    let wanted = "Cursor, `tools`: ended without an answer: /none/tools.json: read manifest: no such file or folder";
    assert_eq!(detail, wanted);
    assert!(fix.contains("pass an existing path") && fix.contains("`mcpServers.tools`"), "{fix}");
    cursor(&crib, &json!({ "toolcrib": { "command": TOOLCRIB, "args": ["mcp"], "cwd": "/none" } }));
    assert_eq!(finding(&crib, "fail").0, "Cursor: the folder `/none` does not exist");
    cursor(&crib, &json!({ "toolcrib": { "command": TOOLCRIB, "args": ["mcp"], "cwd": crib.path("home") } }));
    fs::create_dir(crib.path("home/tools.json")).unwrap();
    assert!(finding(&crib, "fail").0.contains("no tools found"), "in the folder of the entry");
}

#[test]
fn arguments_that_start_no_server_are_not_run() {
    let crib = crib();
    let entry = |args: &[&str]| cursor(&crib, &json!({ "toolcrib": { "command": TOOLCRIB, "args": args } }));
    entry(&["mcp", "--alow-read=/x"]);
    let (detail, fix) = finding(&crib, "fail");
    assert_eq!(detail, "Cursor: unexpected argument '--alow-read' found");
    assert!(fix.contains("'--allow-read'"), "{fix}");
    for args in [&["mcp", "token", "new", "ada"][..], &["call", "echo", "{}"], &[], &["--version"]] {
        entry(args);
        let (detail, _) = finding(&crib, "fail");
        assert!(detail.starts_with("Cursor: these arguments start no server"), "{args:?}: {detail}");
    }
    entry(&["mcp", "--http=127.0.0.1:0", "--no-token"]);
    assert!(finding(&crib, "fail").0.contains("`--http` starts no server for a client"));
    assert_eq!(crib.run(&["mcp", "token", "list", "--json"]).stdout, "[]\n");
    assert!(crib.records().is_empty(), "nothing was called");
}

#[test]
fn a_server_that_hangs_is_killed_with_its_children() {
    let crib = crib();
    let pid = crib.path("work/pid");
    let text = format!("sleep 600 &\necho $! > {}\necho 'still loading' >&2\nwait", pid.display());
    cursor(&crib, &imitation(&crib, &text));
    let begin = Instant::now();
    let (detail, fix) = finding(&crib, "fail");
    assert_eq!(detail, "Cursor: no answer to `initialize` within 10 s: still loading");
    assert!(fix.starts_with("correct `mcpServers.toolcrib`"), "{fix}");
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    let child = fs::read_to_string(pid).unwrap();
    let is_alive = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
    };
    while is_alive() {
        assert!(begin.elapsed() < PATIENCE, "the child lives");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_server_that_floods_or_sends_something_else_is_ended() {
    let crib = crib();
    let notice = r#"yes "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":\"$(printf %060000d 0)\"}""#;
    for (text, wanted) in [
        ("exec cat /dev/zero", "Cursor: sent more than 32 MiB or 200 pages"),
        (notice, "Cursor: sent more than 32 MiB or 200 pages"),
        ("exec yes", "Cursor: sent text that is not an MCP message: `y`"),
        (
            "echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":1,\"message\":\"no\\u001b[2J\"}}'; cat",
            "Cursor: refused `initialize`: no\\u{1b}[2J",
        ),
        ("exit 3", "Cursor: ended without an answer and without a message"),
        ("echo 'error: broken' >&2; echo 'hint: mend it' >&2", "Cursor: ended without an answer: broken"),
        // The pages of this list never end.
        (
            "while read line; do case $line in *'\"id\":'*) id=${line#*'\"id\":'}; id=${id%%,*};\n\
          echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"result\\\":{\\\"tools\\\":[],\\\"nextCursor\\\":\\\"1\\\"}}\";; esac; done",
            "Cursor: sent more than 32 MiB or 200 pages",
        ),
    ] {
        cursor(&crib, &imitation(&crib, text));
        assert_eq!(finding(&crib, "fail").0, wanted, "{text}");
    }
}

#[test]
fn nothing_but_the_program_is_started() {
    let crib = crib();
    let mark = crib.path("work/ran");
    let trap = |name: &str| script(&crib, name, &format!("touch {}", mark.display()));
    // Another program under the usual name, and one that concerns nobody here.
    cursor(&crib, &json!({ "toolcrib": { "command": trap("other") }, "x": { "command": trap("more") } }));
    let (detail, _) = finding(&crib, "warn");
    assert!(detail.ends_with("other` is another program and is not started"), "{detail}");
    // A path that depends on the folder.
    cursor(&crib, &json!({ "toolcrib": { "command": "./work/toolcrib", "args": ["mcp"] } }));
    trap("toolcrib");
    assert!(finding(&crib, "warn").0.ends_with("depends on the client's folder: not started"));
    // The settings of a project name a program of the right name, or variables for this one.
    cursor(&crib, &json!({}));
    let library = json!({ "LD_PRELOAD": crib.path("work/evil.so") });
    for entry in [
        json!({ "command": trap("toolcrib"), "args": ["mcp"] }),
        json!({ "command": TOOLCRIB, "args": ["mcp"], "env": library }),
    ] {
        settings(&crib.path(".cursor/mcp.json"), &json!({ "toolcrib": entry }));
        let (detail, _) = finding(&crib, "warn");
        assert!(detail.starts_with("Cursor (project): the project's entry names another program"), "{detail}");
    }
    settings(&crib.path(".cursor/mcp.json"), &json!({}));
    // A client that replaces text, and one that has the entry disabled.
    cursor(&crib, &json!({ "toolcrib": { "command": "${env:X}/toolcrib", "args": ["mcp"] } }));
    assert!(finding(&crib, "ok").0.starts_with("Cursor: not checked: "));
    cursor(&crib, &json!({ "toolcrib": { "command": trap("toolcrib"), "args": ["mcp"], "disabled": true } }));
    assert_eq!(finding(&crib, "ok").0, "Cursor: not checked: the client has disabled the entry");
    assert!(!mark.exists(), "something was started");
}

#[test]
fn settings_that_cannot_be_read_and_too_many_entries_are_told() {
    let crib = crib();
    let path = cursor(&crib, &json!({}));
    fs::write(&path, "{ \"mcpServers\": { \"toolcrib\"").unwrap();
    let found = findings(&crib, &[]);
    assert!(found[0]["status"] == "warn" && found[0]["detail"].to_string().contains("cannot read"), "{found:?}");
    fs::write(&path, "{ \"other\"").unwrap();
    assert_eq!(findings(&crib, &[]).len(), 1, "another's file is another's concern");
    let entry = json!({ "command": "/none/toolcrib" });
    let entries: serde_json::Map<_, _> = (0..40).map(|number| (format!("t{number}"), entry.clone())).collect();
    cursor(&crib, &Value::Object(entries));
    let found = findings(&crib, &[]);
    assert_eq!(found.len(), 33, "{found:?}");
    assert_eq!(found[32]["detail"], "8 more of 40 entries: not checked");
}

#[test]
fn a_server_that_listens_on_this_machine_is_asked_with_the_token_of_the_entry() {
    let crib = crib();
    let header = token(&crib, "ada", &[]);
    let bearer = header.trim().split_once(": ").unwrap().1;
    for flags in [&[][..], &["--stateless"]] {
        let server = Server::start(&crib, flags);
        let url = format!("http://{}/mcp", server.address);
        cursor(&crib, &json!({ "toolcrib": { "url": url, "headers": { "Authorization": bearer } } }));
        let mut command = crib.toolcrib(&["doctor"]);
        // A proxy would see the token.
        let ran = Ran::from(command.env("http_proxy", "http://127.0.0.1:9").output().unwrap());
        let line = ran.stdout.lines().find(|line| line.contains(" mcp ")).unwrap_or_else(|| panic!("{ran:?}"));
        assert!(
            line.starts_with("ok   mcp          Cursor: 3 tools in ") && line.ends_with(&format!("({url})")),
            "{flags:?}: {ran:?}"
        );
        assert!(!ran.stdout.contains("crib_"), "{ran:?}");
        cursor(&crib, &json!({ "toolcrib": { "url": url, "headers": { "Authorization": "Bearer crib_x" } } }));
        let (detail, fix) = finding(&crib, "fail");
        assert!(detail.contains("requires a token") && fix.contains("toolcrib mcp token new NAME"), "{detail}: {fix}");
        drop(server);
        let (detail, fix) = finding(&crib, "fail");
        assert!(detail.contains("cannot be reached") && fix.contains("toolcrib mcp --http"), "{detail}: {fix}");
    }
    // The token in a variable of the user, which no project may name.
    let server = Server::start(&crib, &[]);
    let codex =
        format!("[mcp_servers.toolcrib]\nurl = \"http://{}/mcp\"\nbearer_token_env_var = \"CRIB\"\n", server.address);
    cursor(&crib, &json!({}));
    for (folder, ending) in
        [("home/.codex", "ok   mcp          Codex: 3"), (".codex", "Codex (project): requires a token")]
    {
        fs::create_dir_all(crib.path(folder)).unwrap();
        fs::write(crib.path(folder).join("config.toml"), &codex).unwrap();
        let mut command = crib.toolcrib(&["doctor"]);
        let ran = Ran::from(command.env("CRIB", bearer.trim_start_matches("Bearer ")).output().unwrap());
        assert!(ran.stdout.contains(ending), "{folder}: {ran:?}");
        fs::remove_dir_all(crib.path(folder)).unwrap();
    }
    for url in ["http://192.0.2.1:8931/mcp", "http://127.0.0.1:1/other", "nothing"] {
        cursor(&crib, &json!({ "toolcrib": { "url": url } }));
        assert!(finding(&crib, "ok").0.starts_with("Cursor: not checked: only addresses of this machine"), "{url}");
    }
}
