//! A JSON Schema as rows of a table: one for each argument, however deep, within limits. References are named, not followed.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::layout;

/// Maximum number of rows.
const MAX_ROWS: usize = 200;
/// Maximum depth of a schema.
const MAX_DEPTH: usize = 12;
/// Maximum values of an enumeration that are listed.
const MAX_VALUES: usize = 20;
/// Keywords that are shown with their values.
const RULES: [&str; 15] = [
    "default",
    "const",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];
/// Keywords with several schemas.
const UNIONS: [(&str, &str); 3] = [("anyOf", "any of"), ("oneOf", "one of"), ("allOf", "all of")];

/// Row of the table: argument, type, rules and description.
type SchemaRow = [Markup; 4];

/// Rows so far.
struct Rows {
    rows: Vec<SchemaRow>,
    is_cut: bool,
}

/// Returns the rows for an arguments schema; `true` if it has more.
pub(super) fn rows(schema: &Value) -> (Vec<SchemaRow>, bool) {
    let mut rows = Rows { rows: Vec::new(), is_cut: false };
    rows.below(schema, "", 0);
    (rows.rows, rows.is_cut)
}

impl Rows {
    /// Adds the rows of a schema's parts at a path.
    fn below(&mut self, schema: &Value, path: &str, depth: usize) {
        let Some(schema) = schema.as_object() else { return };
        if depth > MAX_DEPTH {
            self.is_cut = true;
            return;
        }
        let required = schema.get("required").and_then(Value::as_array);
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let is_required = required.is_some_and(|names| names.iter().any(|one| one == name));
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.part(property, &path, is_required, depth);
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            self.part(items, &format!("{path}[]"), false, depth);
        }
        if let Some(others) = schema.get("additionalProperties").filter(|others| others.is_object()) {
            self.part(others, &format!("{path}.*"), false, depth);
        }
        for (keyword, words) in UNIONS {
            let options = schema.get(keyword).and_then(Value::as_array).into_iter().flatten();
            for (at, option) in options.enumerate() {
                self.part(option, &format!("{path} ({words}, {})", at + 1), false, depth);
            }
        }
    }

    fn part(&mut self, schema: &Value, path: &str, is_required: bool, depth: usize) {
        if self.rows.len() == MAX_ROWS {
            self.is_cut = true;
            return;
        }
        let empty = Map::new();
        let fields = schema.as_object().unwrap_or(&empty);
        let description = fields.get("description").and_then(Value::as_str).unwrap_or_default();
        self.rows.push([
            html! { code { (layout::line(path, 120)) } @if is_required { " " span.word.plain { "required" } } },
            layout::line(&kind(schema), 80),
            rules(fields),
            layout::line(description, 400),
        ]);
        self.below(schema, path, depth + 1);
    }
}

/// Type of a schema in words.
fn kind(schema: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match (schema, schema.get("type"), schema.get("$ref")) {
        (Value::Bool(true), ..) => "anything".to_owned(),
        (Value::Bool(false), ..) => "nothing".to_owned(),
        (_, Some(Value::Array(kinds)), _) => kinds.iter().take(MAX_VALUES).map(text).collect::<Vec<_>>().join(" or "),
        (_, Some(kind), _) => text(kind),
        (_, None, Some(reference)) => format!("see {}", text(reference)),
        _ if schema.get("enum").is_some() => "one of these".to_owned(),
        _ => "anything".to_owned(),
    }
}

/// Rules of a schema for a value.
pub(super) fn rules(fields: &Map<String, Value>) -> Markup {
    let values = fields.get("enum").and_then(Value::as_array);
    html! {
        @for name in RULES {
            @if let Some(value) = fields.get(name) { div { (name) " " code { (layout::line(&value.to_string(), 80)) } } }
        }
        @if let Some(values) = values {
            div {
                "one of "
                @for value in values.iter().take(MAX_VALUES) { code { (layout::line(&value.to_string(), 40)) } " " }
                @if values.len() > MAX_VALUES { "and " (values.len() - MAX_VALUES) " more" }
            }
        }
        @if fields.get("additionalProperties") == Some(&Value::Bool(false)) { div { "no other fields" } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nested_arguments_have_a_row_each_and_the_number_of_rows_is_bounded() {
        let schema = json!({ "type": "object", "required": ["a"], "properties": {
            "a": { "type": ["string", "null"], "maxLength": 3, "description": "<b>" },
            "b": { "type": "array", "items": { "type": "object", "properties": { "c": { "enum": [1, 2] } } } },
            "d": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/x" }] },
        }});
        let (rows, is_cut) = super::rows(&schema);
        let text: String = rows.iter().flatten().map(|cell| cell.0.clone() + "\n").collect();
        for part in [
            "<bdi>a</bdi>",
            "required",
            "string or null",
            "maxLength",
            "&lt;b&gt;",
            "b[].c",
            "one of ",
            "see #/$defs/x",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!is_cut);
        let mut deep = json!({ "type": "string" });
        for _ in 0..100 {
            deep = json!({ "properties": { "a": deep } });
        }
        assert!(super::rows(&deep).1);
        let wide: Map<String, Value> = (0..1_000).map(|at| (at.to_string(), json!({}))).collect();
        let (rows, is_cut) = super::rows(&json!({ "properties": wide }));
        assert!(rows.len() == MAX_ROWS && is_cut);
    }
}
