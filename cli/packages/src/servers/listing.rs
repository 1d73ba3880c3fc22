//! The tools of a server, page by page, each reduced to what is pinned. A tool that cannot be used is left out and named.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use toolcrib_bundle::BundledTool;

use super::fault::{Fault, shown};
use super::headers::marked;
use super::message::aside;
use super::peer::{Peer, has_handshake};

/// Members of a definition that are pinned. Others, such as pictures, may differ from one answer to the next.
pub(super) const PINNED: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
/// Maximum number of pages.
const MAX_PAGES: usize = 100;
/// Maximum number of tools.
const MAX_TOOLS: usize = 1000;
/// Maximum bytes of all definitions.
const MAX_BYTES: usize = 4 << 20;
/// Maximum length of a mark for the next page.
const MAX_CURSOR: usize = 4096;
/// Maximum characters of a name.
const MAX_NAME: usize = 128;
/// Maximum number of tools that are left out and named.
const MAX_SKIPPED: usize = 20;

/// Tools that a server lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Definitions, sorted by name.
    pub tools: Vec<Value>,
    /// Tools that are left out, with the reason.
    pub skipped: Vec<String>,
}

impl Listing {
    /// Returns the definition of a tool.
    pub fn tool(&self, name: &str) -> Option<&Value> {
        self.tools.iter().find(|tool| tool["name"] == name)
    }

    /// Leaves out each tool whose name is too long with `prefix` before it.
    pub(super) fn fitting(mut self, prefix: &str) -> Self {
        let is_long = |tool: &Value| {
            prefix.chars().count() + tool["name"].as_str().map_or(0, |name| name.chars().count()) > MAX_NAME
        };
        let (long, fitting) = std::mem::take(&mut self.tools).into_iter().partition::<Vec<_>, _>(is_long);
        self.tools = fitting;
        for tool in long {
            let name = name_of(&tool);
            self.skip(format!("`{name}`: with the prefix `{prefix}` the name is longer than {MAX_NAME} characters"));
        }
        self
    }

    fn skip(&mut self, text: String) {
        match self.skipped.len() {
            0..MAX_SKIPPED => self.skipped.push(text),
            MAX_SKIPPED => self.skipped.push("and others".to_owned()),
            _ => {}
        }
    }
}

/// Definitions of the pages that a server has listed so far.
#[derive(Default)]
struct ListedPages {
    listing: Listing,
    names: HashSet<String>,
    /// Size of all definitions.
    bytes: usize,
}

impl ListedPages {
    fn add(&mut self, tools: &[Value], has_handshake: bool) -> Result<(), Fault> {
        for tool in tools {
            match definition(tool, has_handshake) {
                Ok(tool) if self.names.insert(tool["name"].to_string()) => {
                    self.bytes += tool.to_string().len();
                    self.listing.tools.push(tool);
                }
                Ok(tool) => self.listing.skip(format!("`{}`: another tool has the same name", name_of(&tool))),
                Err(reason) => self.listing.skip(format!("`{}`: {reason}", name_of(tool))),
            }
            if self.listing.tools.len() > MAX_TOOLS || self.bytes > MAX_BYTES {
                return Err(Fault::TooMuch(format!(
                    "more than {MAX_TOOLS} tools, or {MAX_BYTES} bytes of definitions"
                )));
            }
        }
        Ok(())
    }
}

/// Asks a server for all of its tools.
pub(super) async fn list(peer: &mut Peer<'_>) -> Result<Listing, Fault> {
    let mut pages = ListedPages::default();
    let (mut params, mut cursors) = (Map::new(), HashSet::new());
    for _ in 0..MAX_PAGES {
        let mut page = peer.ask("tools/list", params, &[], None).await?;
        let Value::Array(tools) = page["tools"].take() else {
            return Err(Fault::foreign("the list of tools has no `tools`"));
        };
        let has_handshake = has_handshake(&peer.conversation.revision);
        pages = aside(move || pages.add(&tools, has_handshake).map(|()| pages)).await?;
        let cursor = match page.get("nextCursor") {
            None | Some(Value::Null) => {
                pages.listing.tools.sort_by_cached_key(name_of);
                return Ok(pages.listing);
            }
            Some(Value::String(cursor)) if cursor.len() <= MAX_CURSOR => cursor.clone(),
            Some(_) => return Err(Fault::foreign("the cursor of the next page is not a short text")),
        };
        if !cursors.insert(cursor.clone()) {
            return Err(Fault::foreign("the list of tools leads back to an earlier page"));
        }
        params = Map::from_iter([("cursor".to_owned(), json!(cursor))]);
    }
    Err(Fault::TooMuch(format!("more than {MAX_PAGES} pages of tools")))
}

/// Reduces a definition to what is pinned.
fn definition(tool: &Value, has_handshake: bool) -> Result<Value, String> {
    let members = tool.as_object().ok_or("the definition is not an object")?;
    let name = members.get("name").and_then(Value::as_str).unwrap_or_default();
    // A bundle, and so the whole server, is refused with another name.
    if name.chars().count() > MAX_NAME || BundledTool::check_name(name).is_err() {
        return Err(format!("the name must have 1 to {MAX_NAME} visible characters, without spaces at its ends"));
    }
    if !members.get("inputSchema").is_some_and(Value::is_object) {
        return Err("no inputSchema".to_owned());
    }
    let is_of =
        |field: &str, fits: fn(&Value) -> bool| members.get(field).is_none_or(|value| value.is_null() || fits(value));
    let wrong = |fields: [&'static str; 2], fits| fields.into_iter().find(|field| !is_of(field, fits));
    let wrong_text = wrong(["title", "description"], Value::is_string);
    if let Some(field) = wrong_text.or_else(|| wrong(["outputSchema", "annotations"], Value::is_object)) {
        return Err(format!("{field} has the wrong type"));
    }
    if !has_handshake {
        marked(&members["inputSchema"])?;
    }
    let pinned = PINNED.into_iter().filter_map(|field| {
        let value = members.get(field).filter(|value| !value.is_null())?;
        Some((field.to_owned(), value.clone()))
    });
    Ok(Value::Object(pinned.collect()))
}

fn name_of(tool: &Value) -> String {
    shown(tool["name"].as_str().unwrap_or("?"))
}
