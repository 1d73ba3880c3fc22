//! Standard streams: lists, calls, both revisions, many requests at once, large results, and reload.

use std::fs;

use serde_json::{Value, json};

use super::{Client, modern, names, text};
use crate::crib::Crib;
#[cfg(target_os = "linux")]
use crate::permissions::terminal::Terminal;
use crate::screen::Page;

/// Crib with an echo and a tool that never ends.
fn crib() -> Crib {
    Crib::with_guests(&["echo", "spin"])
}

#[test]
fn a_client_of_the_earlier_revision_lists_and_calls() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &[], &json!({}));
    assert_eq!(client.tools(), ["echo", "spin", "read_result"]);
    let answer = client.call("echo", &json!({"a": 1}));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(text(&answer).contains("\"a\":1"), "{answer}");
    let receipt = &answer["result"]["_meta"]["toolcrib/receipt"];
    assert_eq!(receipt["outcome"], "ok", "{answer}");
    assert!(receipt["peakMemoryBytes"].as_u64().unwrap() > 0, "{receipt}");
    assert!(answer["result"].get("resultType").is_none(), "of the later revision: {answer}");
    let answer = client.call("ecco", &json!({}));
    assert_eq!(answer["error"], json!({"code": -32602, "message": "unknown tool: ecco: did you mean `echo`?"}));
    let answer = client.call("functions.Echo", &json!({}));
    assert!(
        answer["error"]["message"].as_str().is_some_and(|message| message.ends_with(": did you mean `echo`?")),
        "{answer}"
    );
    let answer = client.ask("prompts/get", &json!({"name": "any"}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        assert!(client.ask(method, &json!({}))["result"].is_object(), "{method}");
    }
    assert_eq!(client.ask("ping", &json!({}))["result"], json!({}));
    assert_eq!(client.leave(), Some(0));
    let records = crib.records();
    assert_eq!(records.len(), 3, "one for each call: {records:?}");
    assert_eq!((&records[0]["caller"], &records[0]["door"]), (&json!("probe 1"), &json!("mcp")));
}

#[test]
fn a_client_of_the_later_revision_needs_no_handshake() {
    let crib = crib();
    let mut client = Client::start(&crib, &[]);
    let answer = client.ask("server/discover", &modern(json!({}), &json!({})));
    let result = &answer["result"];
    assert!(result["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{answer}");
    assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string(), "{answer}");
    let list = client.ask("tools/list", &modern(json!({}), &json!({})));
    assert_eq!(names(&list), ["echo", "spin", "read_result"]);
    assert!(list["result"]["ttlMs"].is_u64() && list["result"]["cacheScope"] == "private", "{list}");
    let call = modern(json!({"name": "echo", "arguments": {"b": 2}}), &json!({}));
    let answer = client.ask("tools/call", &call);
    assert_eq!((&answer["result"]["resultType"], &answer["result"]["isError"]), (&json!("complete"), &json!(false)));
    let mut wrong = call.clone();
    wrong["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
    let answer = client.ask("tools/call", &wrong);
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    assert!(answer["error"]["data"]["supported"].is_array(), "{answer}");
    let answer = client.ask("tools/call", &json!({"name": "echo", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602, "without the metadata: {answer}");
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn an_endless_loop_ends_at_its_deadline() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &["--timeout=300ms"], &json!({}));
    let answer = client.call("spin", &json!({}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["_meta"]["toolcrib/receipt"]["outcome"], "deadline");
}

#[test]
fn a_thousand_requests_at_once_are_all_answered() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &["--set=results.max_inline=100000"], &json!({}));
    let ids: Vec<(u64, usize)> = (0..1000)
        .map(|number| {
            let size = 1024 << (number % 7);
            let arguments = json!({ "number": number, "text": "x".repeat(size) });
            (client.request("tools/call", &json!({"name": "echo", "arguments": arguments})), number)
        })
        .collect();
    for (id, number) in ids {
        let answer = client.answer(id);
        assert!(text(&answer).contains(&format!("number\":{number},")), "{number}: {answer}");
    }
    assert_eq!(client.leave(), Some(0));
    assert_eq!(crib.records().len(), 1000);
}

#[test]
fn a_name_that_the_protocol_refuses_is_mapped_and_the_order_is_stable() {
    let crib = Crib::with_guests(&["echo"]);
    let mut odd = crib.entry("echo");
    odd["name"] = json!("wörter zählen");
    crib.manifest(&json!({ "tools": [odd, crib.entry("echo")] }));
    let mut client = Client::initialized(&crib, &[], &json!({}));
    let tools = client.tools();
    assert_eq!(tools, client.tools());
    let mapped = tools.iter().find(|name| name.starts_with("w_rter_z_hlen_")).unwrap_or_else(|| panic!("{tools:?}"));
    assert!(text(&client.call(mapped, &json!({"c": 3}))).contains("\"c\":3"));
    let listed: Value = serde_json::from_str(&crib.run(&["list", "--json"]).stdout).unwrap();
    let of = |name: &str| listed.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap().clone();
    assert_eq!(of("wörter zählen")["mcpName"], mapped.as_str(), "{listed}");
    assert!(of("echo").get("mcpName").is_none(), "{listed}");
    let table = crib.run(&["list"]).stdout;
    let rows: Vec<&str> = table.lines().skip_while(|line| !line.contains("NAME FOR MCP CLIENTS")).skip(1).collect();
    assert_eq!(rows, [format!("wörter zählen  {mapped}")], "{table}");
    crib.manifest(&json!({ "tools": [crib.entry("echo")] }));
    assert!(!crib.run(&["list"]).stdout.contains("MCP"), "only if a name differs");
}

#[test]
fn a_missing_source_is_named_with_a_hint() {
    let crib = Crib::new();
    for command in [&["mcp"][..], &["list"], &["call", "echo", "{}"]] {
        let ran = crib.run(&[command, &["--tools", "work/none"]].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let wanted = "error: work/none: read manifest: no such file or folder\n\
                      hint: pass an existing path; a relative one starts at the current directory\n";
        assert!(ran.stderr.ends_with(wanted), "{ran:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn only_a_person_at_a_terminal_gets_the_hint_about_clients() {
    let page = Page::new();
    let crib = crib();
    let mut terminal = Terminal::start(crib.toolcrib(&["mcp"]));
    terminal.until("hint: waiting for a client on standard input; `toolcrib mcp config CLIENT` connects one\n");
    terminal.types("\u{4}");
    let left = terminal.end();
    assert_eq!((left.code, left.stdout.as_str()), (Some(0), ""), "{}", left.terminal);
    let mut command = crib.toolcrib(&["mcp"]);
    page.command(command.stdin(std::process::Stdio::null()));
    page.matches("mcp/terminal");
}

#[test]
fn with_many_tools_a_fixed_pair_finds_and_calls_them() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &["--max-listed=1"], &json!({}));
    let listed = ["read_result", "tool_call", "tool_search"];
    assert_eq!(client.tools(), listed);
    let found: Value = serde_json::from_str(text(&client.call("tool_search", &json!({"query": "echo"})))).unwrap();
    assert_eq!(found["tools"][0]["name"], "echo", "{found}");
    let answer = client.call("tool_call", &json!({"name": "echo", "arguments": {"d": 4}}));
    assert!(text(&answer).contains("\"d\":4"), "{answer}");
    assert_eq!(client.tools(), listed, "a search changes no list");
    let answer = client.call("tool_call", &json!({"name": "tool_call", "arguments": {"name": "echo"}}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[test]
fn a_large_result_is_a_preview_with_a_link_that_can_be_read() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &["--set=results.max_inline=2000"], &json!({}));
    let answer = client.call("echo", &json!({"text": "y".repeat(10_000)}));
    assert!(answer.to_string().len() < 6000, "{answer}");
    let content = answer["result"]["content"].as_array().unwrap();
    let link = content.iter().find(|block| block["type"] == "resource_link").unwrap_or_else(|| panic!("{answer}"));
    let read = client.ask("resources/read", &json!({"uri": link["uri"]}));
    let whole = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
    assert!(whole.contains(&"y".repeat(10_000)));
    for uri in ["toolcrib://results/res_0", "toolcrib://results/../../tools.json", "file:///etc/passwd"] {
        let answer = client.ask("resources/read", &json!({ "uri": uri }));
        assert!(answer["error"]["code"].is_i64(), "{uri}: {answer}");
    }
}

#[test]
fn a_large_result_of_a_tool_with_an_output_schema_still_conforms_to_it() {
    let crib = Crib::new();
    let mut entry = crib.entry("echo");
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    entry["interface"] = json!({ "output_schema": schema });
    crib.manifest(&json!({ "tools": [entry] }));
    let mut client = Client::initialized(&crib, &["--set=results.max_inline=2000"], &json!({}));
    let listed = client.ask("tools/list", &json!({}));
    let schema = jsonschema::validator_for(&listed["result"]["tools"][0]["outputSchema"]).unwrap();
    for (length, is_stored) in [(10, false), (10_000, true)] {
        let answer = client.call("echo", &json!({"text": "y".repeat(length)}));
        let structured = &answer["result"]["structuredContent"];
        assert!(schema.is_valid(structured), "{answer}");
        assert_eq!(structured["storedResult"].is_string(), is_stored, "{answer}");
    }
}

#[test]
fn changed_sources_are_read_again_and_broken_ones_keep_the_last_good() {
    let mut crib = Crib::with_guests(&["echo"]);
    crib.trusts = false;
    crib.entry("spin");
    let mut client = Client::initialized(&crib, &[], &json!({}));
    assert_eq!(client.tools(), ["echo", "read_result"]);
    let is_change = |message: &Value| message["method"] == "notifications/tools/list_changed";
    crib.manifest(&json!({ "tools": [crib.entry("echo"), crib.entry("spin")] }));
    client.wait(is_change);
    assert_eq!(client.tools(), ["echo", "spin", "read_result"]);
    fs::write(crib.path("tools.json"), "{").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2500));
    assert_eq!(client.tools(), ["echo", "spin", "read_result"], "the last good one");
    crib.manifest(&json!({ "tools": [crib.entry("spin")] }));
    client.wait(is_change);
    assert_eq!(client.tools(), ["spin", "read_result"]);
}

#[test]
fn garbage_and_half_messages_end_nothing_but_themselves() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &[], &json!({}));
    for garbage in ["", "{", "[]", "null", "{\"jsonrpc\":\"2.0\",\"id\":[],\"method\":7}", "\u{1b}[2J"] {
        use std::io::Write;
        writeln!(client.input.as_mut().unwrap(), "{garbage}").unwrap();
    }
    assert!(text(&client.call("echo", &json!({"e": 5}))).contains("\"e\":5"));
    assert_eq!(client.leave(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_client_that_listens_gets_changes_and_leaves() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::start(&crib, &[]);
    client.ask("server/discover", &modern(json!({}), &json!({})));
    let listen = json!({"notifications": {"toolsListChanged": true}});
    client.request("subscriptions/listen", &modern(listen, &json!({})));
    client.wait(|message| message["method"] == "notifications/subscriptions/acknowledged");
    crib.manifest(&json!({ "tools": [crib.entry("echo"), crib.entry("spin")] }));
    client.wait(|message| message["method"] == "notifications/tools/list_changed");
    assert_eq!(client.leave(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_message_that_is_too_long_ends_nothing_but_itself() {
    let crib = Crib::with_guests(&["echo"]);
    let mut client = Client::initialized(&crib, &[], &json!({}));
    let arguments = json!({ "text": "x".repeat(17 << 20) });
    client.request("tools/call", &json!({"name": "echo", "arguments": arguments}));
    assert!(text(&client.call("echo", &json!({"f": 6}))).contains("\"f\":6"));
    assert_eq!(client.leave(), Some(0));
    assert_eq!(crib.records().len(), 1, "the long one is no call");
}

#[test]
fn a_long_list_has_pages_and_a_foreign_cursor_is_refused() {
    let crib = Crib::new();
    let entry = crib.entry("echo");
    let named = |number: usize| {
        let mut tool = entry.clone();
        tool["name"] = json!(format!("tool_{number:04}"));
        tool
    };
    crib.manifest(&json!({ "tools": (0..600).map(named).collect::<Vec<_>>() }));
    let mut client = Client::initialized(&crib, &["--max-listed=1000"], &json!({}));
    let first = client.ask("tools/list", &json!({}));
    assert_eq!(names(&first).len(), 500);
    let second = client.ask("tools/list", &json!({"cursor": first["result"]["nextCursor"]}));
    assert_eq!(names(&second).len(), 101, "with the reader of results");
    assert!(second["result"].get("nextCursor").is_none(), "{second}");
    for cursor in ["601", "-1", "x", "99999999999999999999999"] {
        let answer = client.ask("tools/list", &json!({ "cursor": cursor }));
        assert_eq!(answer["error"]["code"], -32602, "{cursor}: {answer}");
    }
}

#[test]
fn no_tool_takes_the_name_of_the_servers_own() {
    let crib = Crib::new();
    let named = |name: &str| {
        let mut entry = crib.entry("echo");
        entry["name"] = json!(name);
        entry
    };
    crib.manifest(&json!({"tools": [named("tool_call"), named("task_poll"), named("other")]}));
    let mut client = Client::initialized(&crib, &["--max-listed=1"], &json!({}));
    let names = client.tools();
    assert_eq!(names.iter().filter(|name| *name == "tool_call").count(), 1, "{names:?}");
    let answer = client.call("tool_search", &json!({"query": "tool_call"}));
    let found: Value = serde_json::from_str(text(&answer)).unwrap();
    let name = found["tools"][0]["name"].as_str().unwrap();
    assert!(name.starts_with("tool_call_"), "{found}");
    let answer = client.call("tool_call", &json!({"name": name, "arguments": {"a": 1}}));
    assert!(answer["result"]["isError"] == false && text(&answer).contains("\"a\":1"), "{answer}");
}

#[cfg(unix)]
#[test]
fn a_client_over_a_socket_or_a_file_is_served_as_over_pipes() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    let crib = crib();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}}});
    let call = |id: u32, text: &str| {
        let params = json!({"name": "echo", "arguments": {"text": text}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    // Node.js starts programs with one socket for each stream, others with the same for both.
    let (own, client) = UnixStream::pair().unwrap();
    let both: [OwnedFd; 2] = [own.try_clone().unwrap().into(), own.into()];
    let [input, output] = both;
    let mut child = crib.toolcrib(&["mcp"]).stdin(input).stdout(output).spawn().unwrap();
    let mut answers = BufReader::new(client.try_clone().unwrap()).lines();
    let mut client = client;
    let long = "x".repeat(900_000);
    let messages = [(hello.clone(), "serverInfo"), (call(2, &long), "\"id\":2,"), (call(3, "short"), "short")];
    for (message, wanted) in messages {
        client.write_all(format!("{message}\n").as_bytes()).unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert!(answer.contains(wanted) && !answer.contains("\"isError\":true"), "{answer}");
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "the client has left");
    // Answers in a file.
    fs::write(crib.path("requests"), format!("{hello}\n")).unwrap();
    let requests = fs::File::open(crib.path("requests")).unwrap();
    let answered = fs::File::create(crib.path("answers")).unwrap();
    let status = crib.toolcrib(&["mcp"]).stdin(requests).stdout(answered).status().unwrap();
    let mut text = String::new();
    fs::File::open(crib.path("answers")).unwrap().read_to_string(&mut text).unwrap();
    assert!(status.success() && text.contains("serverInfo"), "{text}");
}
