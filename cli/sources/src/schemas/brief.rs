//! Schemas of arguments as models read them. Every request to a model carries them, so that keywords that a model infers or
//! cannot follow are left out. The runtime checks each call against the whole schema, and its errors name what was refused.

use serde_json::{Map, Value};

/// Minimum of `maxLength` that is left out: a model counts no characters of so long a text.
const MIN_UNCOUNTED: u64 = 1_000;

/// Returns a schema without these keywords: `additionalProperties: false` of an object with named members, `minLength: 1`,
/// a `maxLength` of [`MIN_UNCOUNTED`] or more, and a `minimum` of 0 or 1, unless it is the lower end of a range without a default.
pub(super) fn brief(mut schema: Value) -> Value {
    shorten(&mut schema);
    schema
}

/// Shortens a schema and those of its members and items. Schemas in compositions stay as they are: a weaker part of one could
/// refuse more.
fn shorten(schema: &mut Value) {
    let Value::Object(fields) = schema else { return };
    if !["allOf", "anyOf", "oneOf", "not", "if"].iter().any(|keyword| fields.contains_key(*keyword)) {
        let is_left_out: Vec<bool> =
            fields.iter().map(|(keyword, value)| is_needless(keyword, value, fields)).collect();
        let mut is_left_out = is_left_out.into_iter();
        fields.retain(|_, _| !is_left_out.next().unwrap_or_default());
    }
    if let Some(Value::Object(members)) = fields.get_mut("properties") {
        members.values_mut().for_each(shorten);
    }
    fields.get_mut("items").into_iter().for_each(shorten);
}

/// Returns `true` for a keyword of a schema that a model does not need.
fn is_needless(keyword: &str, value: &Value, fields: &Map<String, Value>) -> bool {
    let is_number = |least: u64| value.as_u64() == Some(least);
    match keyword {
        "additionalProperties" => {
            let members = fields.get("properties").and_then(Value::as_object);
            *value == Value::Bool(false) && members.is_some_and(|members| !members.is_empty())
        }
        "minimum" => {
            let is_range = fields.contains_key("maximum") && !fields.contains_key("default");
            (is_number(0) || is_number(1)) && !is_range
        }
        "minLength" => is_number(1),
        "maxLength" => value.as_u64().is_some_and(|most| most >= MIN_UNCOUNTED),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_keywords_that_a_model_does_not_need_are_left_out() {
        let long = json!({
            "type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 1000},
                "post": {"type": "string", "minLength": 2, "maxLength": 999},
                "count": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
                "stars": {"type": "integer", "minimum": 1, "maximum": 5},
                "offset": {"type": "integer", "minimum": 0},
                "heat": {"type": "number", "minimum": -1},
                "minimum": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "none": {"type": "object", "properties": {}, "additionalProperties": false},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        });
        let short = json!({
            "type": "object", "required": ["name"],
            "properties": {
                "name": {"type": "string"},
                "post": {"type": "string", "minLength": 2, "maxLength": 999},
                "count": {"type": "integer", "maximum": 9, "default": 3},
                "stars": {"type": "integer", "minimum": 1, "maximum": 5},
                "offset": {"type": "integer"},
                "heat": {"type": "number", "minimum": -1},
                "minimum": {"type": "array", "items": {"type": "integer"}},
                "none": {"type": "object", "properties": {}, "additionalProperties": false},
                "map": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        });
        assert_eq!(brief(long), short);
    }

    #[test]
    fn compositions_and_values_stay_as_they_are() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "object", "default": {"minimum": 0}, "enum": [{"minLength": 1}]}},
            "not": {"properties": {"b": {"minimum": 0}}, "additionalProperties": false},
            "additionalProperties": false,
        });
        assert_eq!(brief(schema.clone()), schema);
        for other in [json!(true), json!([]), json!({"properties": []})] {
            assert_eq!(brief(other.clone()), other);
        }
    }
}
