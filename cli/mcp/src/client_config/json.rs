//! Edits JSON and JSON with comments as text: the parser only says where each value lies, so that every byte around the entry
//! stays.

use jsonc_parser::ast::{self, Object};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Number, Value};

use super::format::line_break;

/// Indentation of new files.
const DEFAULT_UNIT: &str = "  ";
const NOT_AN_OBJECT: &str = "the document must be an object";

/// Strictness of the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// No comments and no trailing commas.
    Strict,
    /// Comments and trailing commas.
    Comments,
}

/// Reads a document as an object.
pub(super) fn read(text: &str, dialect: Dialect) -> Result<Value, String> {
    match parse(text, dialect)? {
        None => Ok(Value::Object(Map::new())),
        Some(root @ ast::Value::Object(_)) => convert(&root),
        Some(_) => Err(NOT_AN_OBJECT.to_owned()),
    }
}

fn parse(text: &str, dialect: Dialect) -> Result<Option<ast::Value<'_>>, String> {
    let is_relaxed = dialect == Dialect::Comments;
    let options = ParseOptions {
        allow_comments: is_relaxed,
        allow_trailing_commas: is_relaxed,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options);
    parsed.map(|parsed| parsed.value).map_err(|error| {
        let reason = error.kind().to_string().to_lowercase();
        format!("{reason} at {}:{}", error.line_display(), error.column_display())
    })
}

/// Converts a parsed value. The last of several equal keys counts, as in the clients.
fn convert(value: &ast::Value<'_>) -> Result<Value, String> {
    Ok(match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::StringLit(literal) => Value::String(literal.value.clone().into_owned()),
        ast::Value::NumberLit(literal) => {
            let number: Number = literal.value.parse().map_err(|_| format!("`{}` is not a number", literal.value))?;
            Value::Number(number)
        }
        ast::Value::Array(array) => Value::Array(array.elements.iter().map(convert).collect::<Result<_, _>>()?),
        ast::Value::Object(object) => {
            let properties = object.properties.iter();
            let members = properties.map(|one| Ok((one.name.as_str().to_owned(), convert(&one.value)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
    })
}

/// Returns a document with nothing but the entry.
pub(super) fn fragment(keys: &[&str], entry: &Value) -> String {
    format!("{}\n", pretty(&nested(keys, entry), DEFAULT_UNIT))
}

/// Sets the entry, and keeps every other byte.
pub(super) fn set(text: &str, dialect: Dialect, keys: &[&str], entry: &Value) -> Result<String, String> {
    let end = line_break(text);
    let Some(root) = parse(text, dialect)? else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { end };
        return Ok(format!("{text}{gap}{}", fragment(keys, entry).replace('\n', end)));
    };
    let mut object = root.as_object().ok_or(NOT_AN_OBJECT)?;
    let page = Page { text, end, unit: unit(text, object) };
    for (depth, key) in keys.iter().enumerate() {
        let rest = &keys[depth + 1..];
        match object.properties.iter().rfind(|property| property.name.as_str() == *key) {
            None => return Ok(page.insert(object, key, &nested(rest, entry))),
            Some(property) if rest.is_empty() => return Ok(page.replace(property, entry)),
            Some(property) => {
                let path = keys[..=depth].join(".");
                object = property.value.as_object().ok_or_else(|| format!("`{path}` must be an object"))?;
            }
        }
    }
    Err("no key is named".to_owned())
}

/// Wraps an entry in objects with these keys, outermost first.
fn nested(keys: &[&str], entry: &Value) -> Value {
    keys.iter().rev().fold(entry.clone(), |inner, key| Value::Object(Map::from_iter([((*key).to_owned(), inner)])))
}

fn pretty(value: &Value, unit: &str) -> String {
    let mut bytes = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(unit.as_bytes()));
    // A JSON value always has a text.
    let written = value.serialize(&mut serializer);
    debug_assert!(written.is_ok(), "{written:?}");
    String::from_utf8(bytes).unwrap_or_default()
}

/// Indentation per level, as the first property in the document shows it.
fn unit<'a>(text: &'a str, root: &Object<'_>) -> &'a str {
    let own = root.properties.first().and_then(|first| own_indent(text, first.range().start));
    own.filter(|indent| !indent.is_empty()).unwrap_or(DEFAULT_UNIT)
}

/// Returns the indentation of the line with this position.
fn indent_of_line(text: &str, position: usize) -> &str {
    let start = text[..position].rfind('\n').map_or(0, |at| at + 1);
    let line = &text[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

/// Returns the indentation before this position if the line has nothing else before it.
fn own_indent(text: &str, position: usize) -> Option<&str> {
    let start = text[..position].rfind('\n')? + 1;
    Some(&text[start..position]).filter(|before| before.chars().all(|c| matches!(c, ' ' | '\t')))
}

/// `true` if there is a comma outside the comments of a text between two values.
fn has_comma(gap: &str) -> bool {
    let mut rest = gap;
    while let Some(next) = rest.chars().next() {
        let skipped = match rest {
            _ if next == ',' => return true,
            _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            _ => next.len_utf8(),
        };
        rest = &rest[skipped..];
    }
    false
}

/// Text of a document with its layout.
#[derive(Debug)]
struct Page<'a> {
    text: &'a str,
    /// Line break.
    end: &'static str,
    /// Indentation of one level.
    unit: &'a str,
}

impl Page<'_> {
    /// Text of a value that begins on a line with this indentation.
    fn value(&self, value: &Value, indent: &str) -> String {
        pretty(value, self.unit).replace('\n', &format!("{}{indent}", self.end))
    }

    /// Replaces the value of a property; a value on one line stays on one.
    fn replace(&self, property: &ast::ObjectProp<'_>, value: &Value) -> String {
        let range = property.value.range();
        let new = match self.text[range.start..range.end].contains('\n') {
            true => self.value(value, indent_of_line(self.text, property.range().start)),
            false => value.to_string(),
        };
        format!("{}{new}{}", &self.text[..range.start], &self.text[range.end..])
    }

    /// Adds a property as the last of an object.
    fn insert(&self, object: &Object<'_>, key: &str, value: &Value) -> String {
        let Self { text, end, unit } = self;
        let range = object.range();
        let close = range.end - 1;
        let outer = indent_of_line(text, range.start);
        let name = Value::from(key);
        let Some(last) = object.properties.last() else {
            let indent = format!("{outer}{unit}");
            let comments = text[range.start + 1..close].trim_end();
            let value = self.value(value, &indent);
            let before = &text[..=range.start];
            return format!("{before}{comments}{end}{indent}{name}: {value}{end}{outer}{}", &text[close..]);
        };
        let (before, gap) = (&text[..last.range().end], &text[last.range().end..close]);
        let kept = gap.trim_end();
        let after = &text[before.len() + kept.len()..];
        let (comma, trailing) = if has_comma(gap) { ("", ",") } else { (",", "") };
        if !text[range.start..range.end].contains('\n') {
            return format!("{before}{comma}{kept} {name}: {value}{trailing}{after}");
        }
        let first = object.properties.first().and_then(|first| own_indent(text, first.range().start));
        let indent = first.map_or_else(|| format!("{outer}{unit}"), str::to_owned);
        let value = self.value(value, &indent);
        format!("{before}{comma}{kept}{end}{indent}{name}: {value}{trailing}{after}")
    }
}
