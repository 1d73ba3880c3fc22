//! Edits YAML by lines: a section at the top of the document, and in it an entry of block style. Any other form is refused,
//! since no editor of YAML is at hand that keeps comments.

use serde_json::{Map, Value};

use super::format::line_break;

/// Maximum number of values of a document.
const MAX_VALUES: usize = 50_000;
/// Maximum nesting depth of a document.
const MAX_DEPTH: usize = 64;
/// Indentation of one level in new lines.
const UNIT: usize = 2;

/// Reads a document as an object.
pub(super) fn read(text: &str) -> Result<Value, String> {
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

/// Sets the entry, and keeps every other byte.
pub(super) fn set(text: &str, keys: &[&str], entry: &Value) -> Result<String, String> {
    let &[section, key] = keys else { return Err("only an entry of a section can be set".to_owned()) };
    let end = line_break(text);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let heads: Vec<usize> = (0..lines.len()).filter(|&at| after_key(lines[at], section, 0).is_some()).collect();
    let new = |indent| block(key, entry, indent).replace('\n', end);
    match heads[..] {
        [] => {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
            Ok(format!("{text}{gap}{section}:{end}{}", new(UNIT)))
        }
        [head] => {
            let rest = after_key(lines[head], section, 0).unwrap_or_default().trim();
            let (value, comment) = match rest.split_once(" #") {
                Some((value, comment)) => (value.trim_end(), format!(" #{comment}")),
                None => (rest, String::new()),
            };
            if ["{}", "null", "~"].contains(&value) {
                let (before, after) = (lines[..head].concat(), lines[head + 1..].concat());
                return Ok(format!("{before}{section}:{comment}{end}{}{after}", new(UNIT)));
            }
            if !rest.is_empty() && !rest.starts_with('#') {
                return Err(format!("`{section}` is not in block style"));
            }
            Ok(within(&lines, head, key, new, end))
        }
        _ => Err(format!("`{section}` is there more than once")),
    }
}

/// Sets the entry in the section that begins at a line.
fn within(lines: &[&str], head: usize, key: &str, new: impl Fn(usize) -> String, end: &str) -> String {
    let is_content = |at: &usize| !is_blank(lines[*at]);
    let close = (head + 1..lines.len()).filter(is_content).find(|&at| indent_of(lines[at]) == 0).unwrap_or(lines.len());
    let indent = (head + 1..close).find(is_content).map_or(UNIT, |at| indent_of(lines[at]));
    let last = |first: usize, limit: usize| (first..limit).rfind(is_content).unwrap_or(first) + 1;
    let found = (head + 1..close).find(|&at| after_key(lines[at], key, indent).is_some());
    let (from, to) = match found {
        Some(at) => {
            let next = (at + 1..close).filter(is_content).find(|&next| indent_of(lines[next]) <= indent);
            (at, last(at, next.unwrap_or(close)))
        }
        None => {
            let at = last(head, close);
            (at, at)
        }
    };
    let before = lines[..from].concat();
    let gap = if before.ends_with('\n') { "" } else { end };
    format!("{before}{gap}{}{}", new(indent), lines[to..].concat())
}

/// Returns the text after the colon of a line that begins with this key at this indentation.
fn after_key<'a>(line: &'a str, key: &str, indent: usize) -> Option<&'a str> {
    let line = line.trim_end_matches(['\n', '\r']);
    let (before, line) = line.split_at_checked(indent)?;
    let quoted = [key.to_owned(), format!("\"{key}\""), format!("'{key}'")];
    let rest = quoted.iter().find_map(|name| line.strip_prefix(name.as_str()))?;
    let rest = rest.trim_start_matches(' ').strip_prefix(':')?;
    let is_key = before.bytes().all(|byte| byte == b' ') && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_key.then_some(rest)
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// `true` for a line without content: blank, or a comment.
fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}
