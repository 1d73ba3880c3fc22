//! Sizes of results: the metadata of a tool states the maximum that the server really sends, if clients accept less of other
//! tools.

use serde_json::{Value, json};

use super::{Client, text};
use crate::crib::Crib;

/// Key of the maximum in the metadata of a tool.
const HINT: &str = "anthropic/maxResultSizeChars";

/// Creates a crib with tools that differ in the results that a model gets whole.
fn crib() -> Crib {
    let crib = Crib::new();
    let tool = |name: &str, interface: Value| {
        let mut entry = crib.entry("big_result");
        entry["name"] = json!(name);
        entry["interface"] = interface;
        entry
    };
    let tools = [
        tool("large", json!({"max_inline_chars": 200_000})),
        tool("plain", json!({})),
        tool("small", json!({"max_inline_chars": 1000})),
        tool("whole", json!({"persistence_policy_ref": "inline"})),
    ];
    crib.manifest(&json!({ "tools": tools }));
    crib
}

/// Names of the listed tools, each with its maximum.
fn hints(crib: &Crib, flags: &[&str]) -> Vec<(String, Option<u64>)> {
    let mut client = Client::initialized(crib, flags, &json!({}));
    let list = client.ask("tools/list", &json!({}));
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
    let hint = |tool: &Value| (tool["name"].as_str().unwrap().to_owned(), tool["_meta"][HINT].as_u64());
    tools.iter().map(hint).collect()
}

#[test]
fn a_tool_that_allows_more_than_clients_accept_states_the_maximum_that_is_sent() {
    let crib = crib();
    let wanted = |large: Option<u64>, plain: Option<u64>, whole: u64| {
        [("large", large), ("plain", plain), ("small", None), ("whole", Some(whole)), ("read_result", None)]
            .map(|(name, hint)| (name.to_owned(), hint))
    };
    assert_eq!(hints(&crib, &[]), wanted(Some(200_000), None, 1 << 20));
    assert_eq!(hints(&crib, &["--set=results.max_inline=100000"]), wanted(Some(100_000), Some(100_000), 1 << 20));
    assert_eq!(hints(&crib, &["--set=results.max_inline=65537"]), wanted(Some(65_537), Some(65_537), 1 << 20));
    assert_eq!(hints(&crib, &["--set=results.max_inline=65536"]), wanted(None, None, 1 << 20));
    let capped = wanted(Some(150 << 10), None, 150 << 10);
    assert_eq!(hints(&crib, &["--set=limits.max_output=150KiB"]), capped, "no result is longer than the output");
}

#[test]
fn a_result_up_to_the_maximum_is_whole_and_a_longer_one_is_a_preview_with_a_link() {
    let crib = crib();
    let mut client = Client::initialized(&crib, &[], &json!({}));
    let links = |answer: &Value| {
        let content = answer["result"]["content"].as_array().unwrap_or_else(|| panic!("{answer}"));
        content.iter().filter(|block| block["type"] == "resource_link").count()
    };
    // With the quotes, a result is two characters longer.
    for (name, max) in [("large", 200_000), ("plain", 65_536), ("small", 1000)] {
        let whole = client.call(name, &json!({ "bytes": max - 2 }));
        assert_eq!((text(&whole).len(), links(&whole)), (max, 0), "{name}");
        let longer = client.call(name, &json!({ "bytes": max - 1 }));
        assert_eq!(links(&longer), 1, "{name}");
        assert!(text(&longer).len() < 5000, "{name}");
    }
    assert_eq!(text(&client.call("whole", &json!({"bytes": 500_000}))).len(), 500_002);
    assert_eq!(client.leave(), Some(0));
}

#[test]
fn the_tool_that_calls_unlisted_ones_states_the_largest_maximum_of_these() {
    let crib = crib();
    let listed = |maximum: Option<u64>| {
        [("read_result", None), ("tool_call", maximum), ("tool_search", None)]
            .map(|(name, hint)| (name.to_owned(), hint))
    };
    assert_eq!(hints(&crib, &["--max-listed=0"]), listed(Some(1 << 20)));
    assert_eq!(hints(&crib, &["--max-listed=0", "--set=limits.max_output=100KiB"]), listed(Some(100 << 10)));
    assert_eq!(hints(&crib, &["--max-listed=0", "--set=limits.max_output=60KiB"]), listed(None));
}
