//! Reads YAML, and writes the entry into an empty file.

use serde_json::{Map, Value};

/// Maximum number of values in a document.
const MAX_VALUES: usize = 50_000;
/// Maximum nesting depth of a document.
const MAX_DEPTH: usize = 64;
/// Indentation of one level in new lines.
const UNIT: usize = 2;

/// Reads a document as an object.
pub(super) fn read(text: &str) -> Result<Value, String> {
    let is_blank = |line: &str| line.trim_start().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_blank) {
        return Ok(Value::Object(Map::new()));
    }
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_nodes: MAX_VALUES, max_depth: MAX_DEPTH },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 2 * MAX_VALUES },
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options(text, options) {
        Ok(Value::Object(document)) => Ok(Value::Object(document)),
        Ok(_) => Err("the document must be a mapping".to_owned()),
        Err(error) => Err(error.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

/// Returns a document with nothing but the entry.
pub(super) fn fragment(keys: &[&str], entry: &Value) -> String {
    let heads = keys.iter().enumerate().take(keys.len().saturating_sub(1));
    let heads: String = heads.map(|(depth, key)| format!("{}{key}:\n", " ".repeat(depth * UNIT))).collect();
    let depth = keys.len().saturating_sub(1);
    format!("{heads}{}", keys.last().map(|key| block(key, entry, depth * UNIT)).unwrap_or_default())
}

/// Lines of an entry at an indentation.
fn block(key: &str, entry: &Value, indent: usize) -> String {
    let (outer, inner) = (" ".repeat(indent), " ".repeat(indent + UNIT));
    let fields = entry.as_object().into_iter().flatten();
    let fields: String = fields.map(|(name, value)| format!("{inner}{name}: {}\n", flow(value))).collect();
    format!("{outer}{key}:\n{fields}")
}

/// Formats a value on one line. Quoted strings are JSON strings, which YAML 1.2 includes.
fn flow(value: &Value) -> String {
    match value {
        Value::Array(values) => format!("[{}]", values.iter().map(flow).collect::<Vec<_>>().join(", ")),
        _ => value.to_string(),
    }
}

/// Writes the entry into an empty file. Any other file is refused, since no editor of YAML is at hand that keeps comments.
pub(super) fn set(text: &str, keys: &[&str], entry: &Value) -> Result<String, String> {
    match text.trim().is_empty() {
        true => Ok(fragment(keys, entry)),
        false => Err("only an empty file of YAML is written".to_owned()),
    }
}
