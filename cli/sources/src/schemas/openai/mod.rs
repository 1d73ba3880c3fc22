//! Strict functions for OpenAI's chat completions API: the model can write only arguments that the schema accepts. The
//! rules come from the "Supported schemas" section of its guide to structured outputs.

mod definition;

use serde_json::{Map, Value, json};
use toolcrib::Tool;

use super::notes::Notes;
use super::strict::{self, Subset};
use super::{Definition, NameRule, Unsupported, merge};

pub use definition::{function, responses_tool};

/// Rule of the API for names.
pub const NAME_RULE: NameRule = NameRule { max: 64, further: &[], starts_with_letter: false };
/// Maximum number of members in all objects.
const MAX_PROPERTIES: usize = 5_000;
/// Maximum depth of objects.
const MAX_NESTING: usize = 10;
/// Maximum number of characters in all names and fixed values.
const MAX_CHARACTERS: usize = 120_000;
/// Maximum number of values in all `enum`s.
const MAX_ENUM_VALUES: usize = 1_000;
/// Number of values above which the characters in one `enum` are limited.
const MAX_UNLIMITED_ENUM: usize = 250;
/// Maximum number of characters in one such `enum`.
const MAX_ENUM_CHARACTERS: usize = 15_000;

const SUBSET: Subset = Subset {
    keywords: &["pattern", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxItems"],
    formats: Some(&["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]),
    is_enum_value: |value| !value.is_object() && !value.is_array(),
    has_const: true,
    max_min_items: u64::MAX,
    closes_objects: true,
    requires_all: true,
    is_recursive: true,
    has_tuples: false,
    is_property_name: |_| true,
};

/// Keywords that the API refuses at the root of a schema.
const REFUSED_AT_ROOT: [&str; 6] = ["$ref", "allOf", "anyOf", "enum", "not", "oneOf"];

/// Returns the schema of arguments as an object with named arguments, which the API wants at the root: references and
/// alternatives there are merged. A schema that accepts no object stays as it is.
pub(crate) fn with_object_root(schema: &Value) -> Value {
    let is_object = schema["type"] == "object" && schema["properties"].is_object();
    if is_object && REFUSED_AT_ROOT.iter().all(|keyword| schema.get(keyword).is_none()) {
        return schema.clone();
    }
    // The runtime checks each call against the whole schema, so that no note about the difference is needed.
    let merged = merge::object_root(schema, &mut Notes::default());
    let Ok(mut merged) = merged else { return schema.clone() };
    merged.retain(|keyword, _| !REFUSED_AT_ROOT.contains(&keyword.as_str()));
    Value::Object(merged)
}

/// Returns a tool as a strict function.
///
/// # Errors
///
/// [`Unsupported`] if a strict function cannot state the tool.
pub fn strict_function(tool: &Tool, name: &str) -> Result<Definition, Unsupported> {
    let mut notes = Notes::default();
    let schema = tool.model_input_schema();
    let any_object = json!({ "type": "object" });
    let parameters = strict::convert(schema.as_deref().unwrap_or(&any_object), &SUBSET, &mut notes)?;
    check_limits(&parameters)?;
    let mut function = Map::from_iter([("name".to_owned(), json!(name))]);
    function.extend(tool.description.as_ref().map(|text| ("description".to_owned(), json!(text))));
    function.insert("parameters".to_owned(), parameters);
    function.insert("strict".to_owned(), json!(true));
    Ok(Definition { value: json!({ "type": "function", "function": function }), notes: notes.finish() })
}

/// Sizes of a schema that the API limits.
#[derive(Default)]
struct Sizes {
    properties: usize,
    nesting: usize,
    characters: usize,
    enum_values: usize,
    enum_characters: usize,
}

impl Sizes {
    fn add(&mut self, schema: &Value, nesting: usize) {
        self.nesting = self.nesting.max(nesting);
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            match (keyword.as_str(), value) {
                ("properties" | "$defs", Value::Object(named)) => {
                    let is_object = keyword == "properties";
                    self.properties += if is_object { named.len() } else { 0 };
                    for (name, one) in named {
                        self.characters += name.chars().count();
                        self.add(one, nesting + usize::from(is_object));
                    }
                }
                ("items", one) => self.add(one, nesting),
                ("anyOf", Value::Array(several)) => several.iter().for_each(|one| self.add(one, nesting)),
                ("const", value) => self.characters += characters(value),
                ("enum", Value::Array(values)) => {
                    let total: usize = values.iter().map(characters).sum();
                    self.enum_values += values.len();
                    self.characters += total;
                    if values.len() > MAX_UNLIMITED_ENUM {
                        self.enum_characters = self.enum_characters.max(total);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Returns the number of characters in a fixed value.
fn characters(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        other => other.to_string().len(),
    }
}

/// Checks the limits of the API for one schema.
fn check_limits(parameters: &Value) -> Result<(), Unsupported> {
    let mut sizes = Sizes::default();
    sizes.add(parameters, 0);
    let limits = [
        ("arguments", sizes.properties, MAX_PROPERTIES),
        ("levels of objects", sizes.nesting, MAX_NESTING),
        ("characters in names and fixed values", sizes.characters, MAX_CHARACTERS),
        ("values in `enum`", sizes.enum_values, MAX_ENUM_VALUES),
        ("characters in one `enum`", sizes.enum_characters, MAX_ENUM_CHARACTERS),
    ];
    match limits.iter().find(|(_, found, max)| found > max) {
        Some((of, found, max)) => {
            Err(Unsupported::new(format!("its schema has {found} {of}, more than the {max} of the API")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(schema: Value) -> Result<(Value, Vec<String>), String> {
        let mut notes = Notes::default();
        let schema = strict::convert(&schema, &SUBSET, &mut notes).map_err(|error| error.to_string())?;
        check_limits(&schema).map_err(|error| error.to_string())?;
        Ok((schema, notes.finish()))
    }

    #[test]
    fn the_root_is_an_object_with_named_arguments() {
        for schema in [json!({}), json!({"type": "object"}), json!(true)] {
            assert_eq!(with_object_root(&schema), json!({"type": "object", "properties": {}}), "{schema}");
        }
        let either = json!({"oneOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]},
        ]});
        let merged = with_object_root(&either);
        assert_eq!((&merged["type"], merged.get("oneOf")), (&json!("object"), None), "{merged}");
        assert_eq!(merged["properties"].as_object().map(Map::len), Some(2), "{merged}");
        let own = json!({"properties": {"a": {"oneOf": [{}]}}, "type": "object", "$defs": {"x": {}}});
        assert_eq!(with_object_root(&own).to_string(), own.to_string(), "alternatives below the root stay");
        let reference = json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {}}}}});
        assert_eq!(with_object_root(&reference)["properties"], json!({"x": {}}));
        assert_eq!(with_object_root(&json!({"type": "string"})), json!({"type": "string"}));
    }

    #[test]
    fn an_optional_argument_becomes_nullable_with_a_note() {
        let (schema, notes) = converted(json!({
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": {"path": {"type": "string", "minLength": 1}, "lines": {"type": "integer", "minimum": 1}},
        }))
        .unwrap();
        let expected = json!({
            "type": "object", "additionalProperties": false, "required": ["path", "lines"],
            "properties": {"path": {"type": "string"}, "lines": {"type": ["integer", "null"], "minimum": 1}},
        });
        assert_eq!(schema, expected);
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("#/properties/path/minLength") && notes[1].contains("`null` means"), "{notes:?}");
    }

    #[test]
    fn a_schema_that_contains_itself_becomes_a_definition() {
        let node = json!({
            "type": "object", "additionalProperties": false, "required": ["name", "children"],
            "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/definitions/node"}}},
        });
        let (schema, _) = converted(json!({
            "properties": {"tree": {"$ref": "#/definitions/node"}}, "required": ["tree"], "definitions": {"node": node},
        }))
        .unwrap();
        assert_eq!(schema["properties"]["tree"], json!({ "$ref": "#/$defs/d0" }));
        assert_eq!(schema["$defs"]["d0"]["properties"]["children"]["items"], json!({ "$ref": "#/$defs/d0" }));
        assert_eq!(schema["$defs"].as_object().map(Map::len), Some(1));
    }

    #[test]
    fn an_object_with_any_names_is_left_out_or_refuses_the_tool() {
        let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
        let (schema, notes) = converted(json!({"properties": {"a": {"const": 1}, "env": map}})).unwrap();
        assert!(schema["properties"].get("env").is_none());
        assert!(notes.iter().any(|note| note.contains("#/properties/env") && note.contains("left out")), "{notes:?}");
        let error = converted(json!({"properties": {"env": map}, "required": ["env"]})).unwrap_err();
        assert!(error.contains("members of any name"), "{error}");
    }

    #[test]
    fn an_argument_of_any_value_keeps_its_description() {
        let (schema, notes) = converted(json!({"properties": {"a": {"description": "x"}}, "required": ["a"]})).unwrap();
        assert_eq!(schema["properties"]["a"]["description"], "x");
        assert_eq!(schema["properties"]["a"]["anyOf"].as_array().map(Vec::len), Some(4));
        assert!(notes.iter().any(|note| note.starts_with("`#/properties/a`: any value is narrowed")), "{notes:?}");
    }

    #[test]
    fn each_limit_of_the_api_refuses_a_schema_beyond_it() {
        let text = json!({"type": "string"});
        let named = |count: usize| {
            let properties: Map<_, _> = (0..count).map(|n| (format!("p{n}"), text.clone())).collect();
            json!({ "properties": properties })
        };
        converted(named(MAX_PROPERTIES)).unwrap();
        assert!(converted(named(MAX_PROPERTIES + 1)).unwrap_err().contains("more than the 5000 of the API"));
        let nested = |levels: usize| {
            (0..levels)
                .fold(text.clone(), |inner, _| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]}))
        };
        converted(nested(MAX_NESTING)).unwrap();
        assert!(converted(nested(MAX_NESTING + 1)).unwrap_err().contains("11 levels of objects"));
        let listed = |count: usize, length: usize| {
            let values: Vec<String> = (0..count).map(|n| format!("{n:0length$}")).collect();
            json!({ "properties": { "a": { "enum": values } } })
        };
        converted(listed(MAX_ENUM_VALUES - 1, 5)).unwrap();
        assert!(converted(listed(MAX_ENUM_VALUES + 1, 5)).unwrap_err().contains("values in `enum`"));
        assert!(converted(listed(300, 60)).unwrap_err().contains("characters in one `enum`"));
        assert!(converted(listed(200, 700)).unwrap_err().contains("characters in names and fixed values"));
    }
}
