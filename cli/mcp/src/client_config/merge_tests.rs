//! Tests of the merge: for every client the fragment, a file with comments and other servers, a second run, a broken file and
//! another entry.

use clap::ValueEnum;
use serde_json::json;

use super::format::Format;
use super::*;

fn launch() -> Launch {
    Launch {
        command: "/bin/toolcrib".into(),
        arguments: vec!["mcp".into(), "--tools".into(), "/a \"b\"/t.json".into()],
    }
}

fn plan(client: Client, text: &str) -> Plan {
    Plan::new(client, &launch(), text)
}

fn added(client: Client, text: &str) -> String {
    match plan(client, text).merge(text) {
        Ok(Merge::Added(text)) => text,
        other => panic!("{client:?}: {other:?}\n{text}"),
    }
}

fn replaced(client: Client, text: &str) -> (Vec<Change>, String) {
    match plan(client, text).merge(text) {
        Ok(Merge::Different { changes, text }) => (changes, text),
        other => panic!("{client:?}: {other:?}\n{text}"),
    }
}

fn refused(client: Client, text: &str) -> String {
    plan(client, text).merge(text).expect_err(text)
}

/// Clients whose files are edited: of YAML, only an empty file is written.
fn edited() -> impl Iterator<Item = Client> {
    Client::value_variants().iter().copied().filter(|client| client.facts().format != Format::Yaml)
}

/// Returns settings of a client with other servers, and with comments where its format has them. `¹` marks the place of
/// a comma and `²` the place of the entry.
fn marked(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => {
            "{\n\t\"numStartups\": 12,\n\t\"mcpServers\": {\n\t\t\"other\": { \"type\": \"http\", \"url\": \"https://a.example\" }¹²\n\t},\n\t\"big\": 12345678901234567890.50\n}"
        }
        Client::ClaudeDesktop => "{\"mcpServers\": {\"other\": {\"command\": \"x\"}¹²}, \"theme\": \"dark\"}\n",
        Client::Codex => {
            "model = \"gpt\" # mine\n\n[mcp_servers.other]\ncommand = 'npx'\nargs = [ \"-y\", # first\n  \"x\" ]\n\n[tui]\n# last\ntheme = \"dark\"\n²"
        }
        Client::VsCode => {
            "// servers of mine\n{\n    \"inputs\": [],\n    \"servers\": {\n        /* a */ \"other\": {\n            \"command\": \"x\", // why, so\n        }, // end, really²\n    },\n}\n"
        }
        Client::Cursor => {
            "{\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }¹ // a } in a comment\n    // last²\n  }\n}\n"
        }
        Client::Gemini => {
            "{\n  // look\n  \"theme\": \"x // no comment\",\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }¹²\n  }\n}\n"
        }
        Client::OpenCode => {
            "{\r\n  \"$schema\": \"https://opencode.ai/config.json\", // schema\r\n  \"mcp\": {\r\n    \"other\": { \"type\": \"local\", \"command\": [\"x\"] },²\r\n  },\r\n}\r\n"
        }
        Client::Crush => {
            "{\n  \"lsp\": { \"go\": { \"command\": \"gopls\" } },\n  \"mcp\": {\n    \"other\": { \"type\": \"stdio\", \"command\": \"x\" }¹²\n  }\n}\n"
        }
        Client::Goose => "GOOSE_MODEL: x # mine\nextensions:\n  developer:\n    enabled: true\n",
        Client::Zed => {
            "// Zed settings\n//\n{\n  \"theme\": \"One\", // light\n  \"context_servers\": {\n    \"other\": {\n      \"command\": \"x\",\n      \"args\": [],\n    },²\n  },\n  // fonts\n  \"ui_font_size\": 16,\n}\n"
        }
    }
}

/// The same settings as a file has them.
fn settings(client: Client) -> String {
    marked(client).replace(['¹', '²'], "")
}

/// Settings that the client's own parser rejects.
fn broken(client: Client) -> &'static str {
    match client.facts().format {
        Format::Json => "{ \"mcpServers\": {} } // no comments here\n",
        Format::Jsonc => "{ \"a\": 1 \"b\": 2 }\n",
        Format::Toml => "[mcp_servers.other\ncommand = 1\n",
        Format::Yaml => "extensions:\n  a: [1\nb: 2\n",
    }
}

#[test]
fn an_entry_is_added_among_comments_and_servers_and_every_byte_stays() {
    for client in edited() {
        let text = settings(client);
        let new = added(client, &text);
        let (before, after) = marked(client).split_once('²').unwrap();
        let entry = new.strip_prefix(&before.replace('¹', ",")).and_then(|rest| rest.strip_suffix(after));
        assert!(entry.is_some_and(|entry| entry.contains("/bin/toolcrib")), "{client:?}\n{new}");
        let format = client.facts().format;
        let (old, document) = (format.read(&text).unwrap(), format.read(&new).unwrap());
        let plan = plan(client, &text);
        assert_eq!(plan.find(&document), Ok(Some(&plan.entry)), "{client:?}");
        assert_eq!(document, plan.expected(old), "{client:?}");
        assert_eq!(plan.merge(&new), Ok(Merge::Present), "{client:?}: a second run changes nothing");
    }
}

#[test]
fn an_edit_is_exactly_this_text() {
    for (client, wanted) in [
        (
            Client::VsCode,
            "        }, // end, really\n        \"toolcrib\": {\n            \"type\": \"stdio\",\n            \"command\": \"/bin/toolcrib\",\n            \"args\": [\n                \"mcp\",\n                \"--tools\",\n                \"/a \\\"b\\\"/t.json\"\n            ]\n        },\n    },\n}\n",
        ),
        (
            Client::Cursor,
            "    \"other\": { \"command\": \"x\" }, // a } in a comment\n    // last\n    \"toolcrib\": {\n      \"type\": \"stdio\",\n",
        ),
        (
            Client::OpenCode,
            "[\"x\"] },\r\n    \"toolcrib\": {\r\n      \"type\": \"local\",\r\n      \"command\": [\r\n        \"/bin/toolcrib\",\r\n",
        ),
        (Client::ClaudeCode, "a.example\" },\n\t\t\"toolcrib\": {\n\t\t\t\"type\": \"stdio\",\n\t\t\t\"command\""),
    ] {
        let new = added(client, &settings(client));
        assert!(new.contains(wanted), "{client:?}\n{new}");
    }
    let codex = settings(Client::Codex);
    let wanted = "\n[mcp_servers.toolcrib]\ncommand = \"/bin/toolcrib\"\nargs = [\"mcp\", \"--tools\", ";
    let new = added(Client::Codex, &codex);
    assert!(new.strip_prefix(&codex).is_some_and(|rest| rest.starts_with(wanted)), "{new}");
}

#[test]
fn a_fragment_is_a_whole_file() {
    for &client in Client::value_variants() {
        let plan = plan(client, "");
        assert_eq!(added(client, ""), plan.fragment(), "{client:?}");
        assert_eq!(plan.merge(&plan.fragment()), Ok(Merge::Present), "{client:?}");
    }
    let claude = plan(Client::ClaudeDesktop, "").fragment();
    assert!(
        claude.starts_with("{\n  \"mcpServers\": {\n    \"toolcrib\": {\n      \"command\": \"/bin/toolcrib\",\n"),
        "{claude}"
    );
    let codex = plan(Client::Codex, "").fragment();
    assert!(codex.starts_with("[mcp_servers.toolcrib]\ncommand = \"/bin/toolcrib\"\nargs = ["), "{codex}");
    let goose = plan(Client::Goose, "").fragment();
    assert!(goose.starts_with("extensions:\n  toolcrib:\n    enabled: true\n    type: \"stdio\"\n"), "{goose}");
}

#[test]
fn another_entry_is_described_and_replaced_in_its_place() {
    for client in edited() {
        let before = added(client, &settings(client));
        let old = before.replace("/bin/toolcrib", "/old/toolcrib");
        let (changes, text) = replaced(client, &old);
        assert_eq!(changes.len(), 1, "{client:?}: {changes:?}");
        let change = &changes[0];
        assert_eq!(change.field, "command", "{client:?}: {changes:?}");
        assert!(change.old.as_ref().is_some_and(|old| old.to_string().contains("/old/toolcrib")), "{changes:?}");
        assert_eq!(text, before, "{client:?}: the other bytes stay");
    }
}

#[test]
fn a_broken_file_is_refused() {
    for &client in Client::value_variants() {
        assert!(!refused(client, broken(client)).is_empty(), "{client:?}");
        refused(client, "[]");
    }
    assert!(refused(Client::Zed, "{\n  \"a\": 1 \"b\": 2\n}").contains(" at 2:"), "the place of the mistake");
    assert!(refused(Client::Codex, "a = 1\nb = = 2\n").ends_with(" in line 2"));
}

#[test]
fn a_section_of_another_form_is_refused() {
    for (client, text) in [
        (Client::Cursor, "{\"mcpServers\": []}"),
        (Client::Cursor, "{\"mcpServers\": null}"),
        (Client::Codex, "mcp_servers = {}\n"),
        (Client::Codex, "mcp_servers.other.command = 'x'\n[mcp_servers]\n"),
    ] {
        refused(client, text);
    }
}

#[test]
fn yaml_with_settings_is_left_to_the_user() {
    let text = settings(Client::Goose);
    assert_eq!(refused(Client::Goose, &text), "only an empty file of YAML is written");
    refused(Client::Goose, "# only a comment\n");
    let entry = plan(Client::Goose, "").fragment();
    assert_eq!(added(Client::Goose, "\n"), entry);
    let present = text.clone() + entry.strip_prefix("extensions:\n").unwrap();
    assert_eq!(plan(Client::Goose, &text).merge(&present), Ok(Merge::Present));
    refused(Client::Goose, &present.replace("/bin/toolcrib", "/old/toolcrib"));
}

#[test]
fn json_of_other_layouts_is_edited() {
    let with = |text: &str| added(Client::Zed, text);
    assert!(
        with("{}").starts_with("{\n  \"context_servers\": {\n    \"toolcrib\": {\n      \"command\""),
        "{}",
        with("{}")
    );
    assert!(with("{\n  // nothing\n}\n").starts_with("{\n  // nothing\n  \"context_servers\": {"));
    assert!(with("// only a comment\n").starts_with("// only a comment\n{\n  \"context_servers\""));
    assert!(with("\u{feff}{ \"a\": 1 }").starts_with("\u{feff}{ \"a\": 1, \"context_servers\": {"));
    assert!(with("{ \"context_servers\": {} /* none */ }").ends_with("\n} /* none */ }"));
    let twice = "{\"context_servers\": {\"a\": {}}, \"context_servers\": {\"b\": {}}}";
    assert!(
        with(twice).starts_with("{\"context_servers\": {\"a\": {}}, \"context_servers\": {\"b\": {}, \"toolcrib\"")
    );
}

#[test]
fn fields_that_only_the_file_has_are_kept_and_their_values_stay_secret() {
    let entry = json!({ "command": "/bin/toolcrib", "args": launch().arguments, "env": { "KEY": "secret" } });
    let text = json!({ "mcpServers": { "toolcrib": entry } }).to_string();
    assert_eq!(plan(Client::ClaudeDesktop, &text).merge(&text), Ok(Merge::Present));
    let other = text.replace("/bin/", "/old/");
    let (changes, new) = replaced(Client::ClaudeDesktop, &other);
    let shown = serde_json::to_string(&changes).unwrap();
    assert!(shown.contains("\"field\":\"env\"") && !shown.contains("secret"), "{shown}");
    assert!(!new.contains("env"), "the whole entry is replaced: {new}");
    let codex =
        "[mcp_servers.toolcrib] # mine\ncommand = 'x'\n\n[mcp_servers.toolcrib.env]\nKEY = 'secret'\n\n[tui]\na = 1\n";
    let (_, new) = replaced(Client::Codex, codex);
    assert!(new.starts_with("[mcp_servers.toolcrib] # mine\ncommand = \"/bin/toolcrib\"\n"), "{new}");
    assert!(!new.contains("secret") && new.ends_with("\n[tui]\na = 1\n"), "{new}");
    let inline = "[mcp_servers]\ntoolcrib = { command = 'x' } # mine\n";
    let (_, new) = replaced(Client::Codex, inline);
    assert!(
        new.starts_with("[mcp_servers]\ntoolcrib = { command = \"/bin/toolcrib\"") && new.ends_with("} # mine\n"),
        "{new}"
    );
}

#[test]
fn opencode_keeps_the_version_of_its_settings() {
    let native = "{\"mcp\": {\"servers\": {\"a\": {\"type\": \"remote\"}}}}";
    let plan = plan(Client::OpenCode, native);
    assert_eq!(plan.keys, ["mcp", "servers", "toolcrib"]);
    assert!(plan.entry.get("enabled").is_none() && plan.entry["command"][0] == "/bin/toolcrib");
    let first = "{\"mcp\": {\"servers\": {\"type\": \"local\", \"command\": [\"x\"]}}}";
    assert_eq!(Plan::new(Client::OpenCode, &launch(), first).keys, ["mcp", "toolcrib"]);
}

#[test]
fn a_document_beyond_the_limits_is_refused() {
    let deep = format!("a: {}{}\n", "[".repeat(100), "]".repeat(100));
    refused(Client::Goose, &deep);
    let wide = format!("a: [{}1]\n", "1, ".repeat(50_001));
    refused(Client::Goose, &wide);
    let json = format!("{{\"a\": {}{}}}", "[".repeat(1000), "]".repeat(1000));
    refused(Client::Zed, &json);
}
