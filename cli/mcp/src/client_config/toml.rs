//! Edits TOML: a new entry is a table at the end of the file, and a replaced one keeps its place.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table};
use toolcrib_settings::config::json_of_table;

use super::format::line_break;

/// Reads a document as an object.
pub(super) fn read(text: &str) -> Result<Value, String> {
    Ok(json_of_table(parse(text)?.as_table()))
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let reason = error.message().lines().next().unwrap_or_default().to_owned();
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("{reason} in line {}", before.matches('\n').count() + 1)
    })
}

/// Returns a document with nothing but the entry.
pub(super) fn fragment(keys: &[&str], entry: &Value) -> String {
    let lines = fields(entry).map(|(key, value)| format!("{key} = {value}\n"));
    format!("[{}]\n{}", keys.join("."), lines.collect::<String>())
}

/// Fields of an entry as TOML values.
fn fields(entry: &Value) -> impl Iterator<Item = (&String, toml_edit::Value)> {
    entry.as_object().into_iter().flatten().map(|(key, value)| (key, to_toml(value)))
}

fn to_toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Array(values) => values.iter().map(to_toml).collect::<Array>().into(),
        Value::Object(members) => inline(members).into(),
        Value::String(text) => text.as_str().into(),
        Value::Null | Value::Number(_) => value.to_string().into(),
    }
}

fn inline(members: &Map<String, Value>) -> InlineTable {
    members.iter().map(|(key, value)| (key.as_str(), to_toml(value))).collect()
}

/// Sets the entry. A new one is added as text, so that every other byte stays.
pub(super) fn set(text: &str, keys: &[&str], entry: &Value) -> Result<String, String> {
    let end = line_break(text);
    let mut document = parse(text)?;
    // An item that is asked for to be changed is created, so its presence is checked first.
    if keys.iter().try_fold(document.as_item(), |item, key| item.get(*key)).is_none() {
        let gap = match text {
            "" => 0,
            _ if text.ends_with('\n') => 1,
            _ => 2,
        };
        let gap = end.repeat(gap);
        return Ok(format!("{text}{gap}{}", fragment(keys, entry).replace('\n', end)));
    }
    let mut item = document.as_item_mut();
    for key in keys {
        item = item.get_mut(*key).ok_or_else(|| format!("`{key}` must be a table"))?;
    }
    match item {
        Item::Table(old) if !old.is_dotted() => {
            let mut new = Table::new();
            new.set_position(old.position());
            *new.decor_mut() = old.decor().clone();
            for (key, value) in fields(entry) {
                new.insert(key, Item::Value(value));
            }
            *item = Item::Table(new);
        }
        Item::Value(old) => {
            let mut new = to_toml(entry);
            *new.decor_mut() = old.decor().clone();
            *old = new;
        }
        _ => return Err(format!("`{}` has a form that cannot be replaced", keys.join("."))),
    }
    let edited = document.to_string();
    Ok(if end == "\n" { edited } else { edited.replace("\r\n", "\n").replace('\n', end) })
}
