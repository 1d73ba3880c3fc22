//! Pinned definitions: their file, and the differences of a server's present definitions from them.

use serde_json::{Map, Value, json};
use toolcrib::tool::Remote;

use super::listing::{Listing, PINNED};
use super::source::ServerSource;

/// Returns the text of the file with pinned definitions.
pub(super) fn text(source: &ServerSource, secret: Option<&str>, revision: &str, listing: &Listing) -> String {
    let mut file = Map::new();
    file.insert("url".to_owned(), json!(source.address.as_str()));
    file.insert("revision".to_owned(), json!(revision));
    if let Some(secret) = secret {
        file.insert("secret".to_owned(), json!(secret));
    }
    if !source.prefix.is_empty() {
        file.insert("prefix".to_owned(), json!(source.prefix));
    }
    file.insert("tools".to_owned(), json!(listing.tools));
    let mut text = serde_json::to_string_pretty(&Value::Object(file)).unwrap_or_default();
    text.push('\n');
    text
}

/// Describes how the present definition of a tool differs from the pinned one; `None` if it does not.
pub fn difference(remote: &Remote, listing: &Listing) -> Option<String> {
    let pinned = &remote.pinned;
    let Some(present) = listing.tool(&remote.name) else {
        return Some("the server does not have this tool any more".to_owned());
    };
    let changed: Vec<&str> =
        PINNED.into_iter().filter(|field| member(pinned, field) != member(present, field)).collect();
    (!changed.is_empty()).then(|| format!("the server has changed its {}", changed.join(", ")))
}

/// Returns a member; `None` for null.
fn member<'v>(definition: &'v Value, field: &str) -> Option<&'v Value> {
    definition.get(field).filter(|value| !value.is_null())
}
