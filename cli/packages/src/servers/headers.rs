//! Headers that repeat parts of a request: arguments that a schema marks with `x-mcp-header` (revision 2026-07-28).

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// Mark of a parameter in a schema.
const MARK: &str = "x-mcp-header";
/// Prefix of the headers.
const PREFIX: &str = "mcp-param-";
/// Maximum number of marked parameters.
const MAX_MARKED: usize = 32;
/// Maximum total length of the parameters' paths.
const MAX_PATHS: usize = 16 << 10;
/// Maximum length of a header's name.
const MAX_NAME: usize = 64;
/// Greatest integer that every server reads as it is.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// Marked parameter: its header, and its path of properties.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MarkedParameter {
    name: String,
    path: Vec<String>,
}

/// Returns the marked parameters of a schema.
///
/// # Errors
///
/// The reason why a mark is not allowed; the tool is left out then.
pub(super) fn marked(schema: &Value) -> Result<Vec<MarkedParameter>, String> {
    let mut found = Found::default();
    collect(schema, &mut Vec::new(), &mut found)?;
    match found.all.len() == count(schema) {
        true => Ok(found.all),
        false => Err(format!("`{MARK}` is outside of the properties of its inputSchema")),
    }
}

/// Marked parameters that are found so far.
#[derive(Default)]
struct Found {
    all: Vec<MarkedParameter>,
    names: HashSet<String>,
    /// Total length of the paths.
    length: usize,
}

impl Found {
    fn add(&mut self, mark: &str, path: &[&str]) -> Result<(), String> {
        let name = mark.to_ascii_lowercase();
        self.length += path.iter().map(|name| name.len()).sum::<usize>();
        if self.all.len() >= MAX_MARKED || self.length > MAX_PATHS {
            return Err(format!(
                "more than {MAX_MARKED} parameters, or {MAX_PATHS} bytes of their paths, have `{MARK}`"
            ));
        }
        if !self.names.insert(name.clone()) {
            return Err(format!("two parameters have the `{MARK}` {name:?}"));
        }
        self.all.push(MarkedParameter { name, path: path.iter().map(|&name| name.to_owned()).collect() });
        Ok(())
    }
}

fn collect<'s>(schema: &'s Value, path: &mut Vec<&'s str>, found: &mut Found) -> Result<(), String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        path.push(name);
        if let Some(mark) = property.get(MARK) {
            let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
            let mark =
                mark.as_str().filter(|mark| !mark.is_empty() && mark.len() <= MAX_NAME && mark.chars().all(is_token));
            let mark = mark.ok_or_else(|| format!("`{MARK}` of `{name}` is not a header name"))?;
            if !matches!(property["type"].as_str(), Some("string" | "integer" | "boolean")) {
                return Err(format!("`{name}` has `{MARK}`, and is neither a string, an integer nor a boolean"));
            }
            found.add(mark, path)?;
        }
        collect(property, path, found)?;
        path.pop();
    }
    Ok(())
}

/// Counts the marks anywhere in a schema.
fn count(schema: &Value) -> usize {
    match schema {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => {
            // A property may have the name of the mark.
            let own = usize::from(members.get(MARK).is_some_and(Value::is_string));
            own + members.iter().filter(|(name, _)| *name != MARK).map(|(_, member)| count(member)).sum::<usize>()
        }
        _ => 0,
    }
}

/// Returns the headers of marked parameters that have a value.
pub(super) fn of_arguments(marked: &[MarkedParameter], arguments: &Value) -> Vec<(String, String)> {
    let value = |parameter: &MarkedParameter| {
        let value = parameter.path.iter().try_fold(arguments, |value, name| value.get(name))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(is_set) => is_set.to_string(),
            Value::Number(number) => {
                let whole = number.as_i64().or_else(|| {
                    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
                    (float.abs() <= MAX_INTEGER as f64).then_some(float as i64)
                });
                whole.filter(|whole| whole.abs() <= MAX_INTEGER)?.to_string()
            }
            _ => return None,
        };
        Some((format!("{PREFIX}{}", parameter.name), encoded(&text)))
    };
    marked.iter().filter_map(value).collect()
}

/// Encodes a text for a header: a plain one as it is, every other in base64.
pub(super) fn encoded(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim() == text
        && !text.is_empty()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// Returns the members of a request's `_meta` in this revision.
pub(super) fn meta(version: &str) -> Map<String, Value> {
    let of = |name: &str| format!("io.modelcontextprotocol/{name}");
    let client = serde_json::json!({ "name": "toolcrib", "version": env!("CARGO_PKG_VERSION") });
    Map::from_iter([
        (of("protocolVersion"), version.into()),
        (of("clientInfo"), client),
        (of("clientCapabilities"), Map::new().into()),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marked_arguments_become_headers_that_end_no_line() {
        let schema = json!({"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "b": {"type": "boolean", "x-mcp-header": "B"},
        }});
        let marked = marked(&schema).unwrap();
        let of = |arguments: Value| of_arguments(&marked, &arguments);
        let all = of(json!({"region": "us-west1", "deep": {"n": 42.0}, "b": true}));
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            all,
            [header("mcp-param-region", "us-west1"), header("mcp-param-n", "42"), header("mcp-param-b", "true")]
        );
        assert_eq!(of(json!({"region": null, "deep": {}})), []);
        for (text, wanted) in [
            ("a\r\nx: y", "=?base64?YQ0KeDogeQ==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(of(json!({"region": text}))[0].1, wanted);
        }
    }

    #[test]
    fn too_many_marks_or_too_long_paths_leave_the_tool_out() {
        let property = |n: usize| json!({"type": "string", "x-mcp-header": format!("H{n}")});
        let of = |count: usize, length: usize| {
            let properties: Map<String, Value> = (0..count).map(|n| (format!("{n:0>length$}"), property(n))).collect();
            json!({"properties": properties})
        };
        assert_eq!(marked(&of(MAX_MARKED, 8)).unwrap().len(), MAX_MARKED);
        assert!(marked(&of(MAX_MARKED + 1, 8)).unwrap_err().contains("more than"));
        assert!(marked(&of(2, MAX_PATHS)).unwrap_err().contains("more than"));
    }

    #[test]
    fn a_mark_in_a_wrong_place_leaves_the_tool_out() {
        let mark = |value: Value| json!({"type": "string", "x-mcp-header": value});
        for schema in [
            json!({"properties": {"a": mark(json!(""))}}),
            json!({"properties": {"a": mark(json!("a b"))}}),
            json!({"properties": {"a": mark(json!("a\r\nb"))}}),
            json!({"properties": {"a": mark(json!("X")), "b": mark(json!("x"))}}),
            json!({"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}),
            json!({"properties": {"a": {"type": "array", "items": mark(json!("A"))}}}),
            json!({"anyOf": [{"properties": {"a": mark(json!("A"))}}]}),
        ] {
            assert!(marked(&schema).is_err(), "{schema}");
        }
    }
}
