//! Limits of a schema for readers that check values against it: depth, composition and size. A part beyond a limit accepts
//! every value instead, because the runtime checks the arguments of a call itself.

use serde_json::{Map, Value};

use super::notes::{Notes, below};
use super::reference::{REFERENCES, resolve};
use super::{Unsupported, reference};

/// Maximum subschema depth, and maximum number of references and alternatives from the root to one schema.
pub(super) const MAX_DEPTH: usize = 32;
/// Maximum number of schemas in one `allOf`, `anyOf` or `oneOf`.
pub(super) const MAX_ALTERNATIVES: usize = 64;
/// Maximum depth of composition within composition.
pub(super) const MAX_COMPOSITION: usize = 6;
/// Maximum size of a schema in bytes.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// Keywords with a subschema or an array of subschemas that apply to parts of the value.
pub(super) const PARTS: [&str; 9] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "contentSchema",
];
/// Keywords with a subschema or an array of subschemas that apply to the value itself.
pub(super) const COMPOSITION: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords that refuse more values if their subschema accepts more.
const INVERTED: [&str; 4] = ["not", "oneOf", "if", "contains"];
/// Keywords with an object of subschemas.
pub(super) const BY_NAME: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Checks the size of a schema.
///
/// # Errors
///
/// [`Unsupported`] with the size.
pub(super) fn check_size(schema: &Value) -> Result<(), Unsupported> {
    let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_BYTES {
        return Err(Unsupported::new(format!("its schema has {bytes} bytes, more than the {MAX_BYTES} allowed")));
    }
    Ok(())
}

/// Bounds a schema that references only itself.
///
/// # Errors
///
/// [`Unsupported`] if the schema is too large, or references another.
pub(super) fn bound(mut schema: Value, notes: &mut Notes) -> Result<Value, Unsupported> {
    check_size(&schema)?;
    reference::check(&schema)?;
    if cut(&mut schema, "", 0, 0, notes) {
        drop_inverted_references(&mut schema, "", notes);
    }
    let whole = schema.clone();
    drop_dangling(&mut schema, &whole, "", notes);
    Ok(schema)
}

/// Removes composition beyond the limits, and replaces subschemas that are too deep. Returns `true` if the schema accepts more
/// than before.
fn cut(schema: &mut Value, place: &str, depth: usize, composed: usize, notes: &mut Notes) -> bool {
    if !schema.is_object() {
        return false;
    }
    if depth > MAX_DEPTH {
        notes.add(place, "nested too deep; accepts every value here, and a call is checked against the original");
        *schema = Value::Bool(true);
        return true;
    }
    let Value::Object(fields) = schema else { return false };
    let before = fields.len();
    fields.retain(|keyword, value| {
        if !COMPOSITION.contains(&keyword.as_str()) && keyword != "dependentSchemas" {
            return true;
        }
        let fits = composed < MAX_COMPOSITION && value.as_array().is_none_or(|all| all.len() <= MAX_ALTERNATIVES);
        if !fits {
            notes.add(&below(place, keyword), "removed: too many alternatives; a call is checked against them");
        }
        fits
    });
    let mut weaker = Vec::new();
    for (keyword, value) in fields.iter_mut() {
        let at = below(place, keyword);
        let is_composition = COMPOSITION.contains(&keyword.as_str());
        let mut is_weaker = false;
        match value {
            Value::Object(named) if BY_NAME.contains(&keyword.as_str()) => {
                let composed = composed + usize::from(keyword == "dependentSchemas");
                for (name, one) in named.iter_mut() {
                    is_weaker |= cut(one, &below(&at, name), depth + 1, composed, notes);
                }
            }
            Value::Array(several) if is_composition || PARTS.contains(&keyword.as_str()) => {
                for (index, one) in several.iter_mut().enumerate() {
                    let at = below(&at, &index.to_string());
                    is_weaker |= cut(one, &at, depth + 1, composed + usize::from(is_composition), notes);
                }
            }
            one if is_composition || PARTS.contains(&keyword.as_str()) => {
                is_weaker = cut(one, &at, depth + 1, composed + usize::from(is_composition), notes);
            }
            _ => {}
        }
        weaker.extend(is_weaker.then(|| keyword.clone()));
    }
    drop_inverted(fields, &weaker, place, notes);
    before > fields.len() || !weaker.is_empty()
}

/// Removes keywords that a weaker subschema makes stricter.
fn drop_inverted(fields: &mut Map<String, Value>, weaker: &[String], place: &str, notes: &mut Notes) {
    for keyword in weaker.iter().filter(|keyword| INVERTED.contains(&keyword.as_str())) {
        notes.add(&below(place, keyword), "removed: a part is beyond the limits; a call is checked against it");
        fields.shift_remove(keyword);
    }
}

/// Removes keywords that would be stricter if the target of a reference in them became weaker.
fn drop_inverted_references(schema: &mut Value, place: &str, notes: &mut Notes) {
    match schema {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                drop_inverted_references(item, &below(place, &index.to_string()), notes);
            }
        }
        Value::Object(fields) => {
            let inverted = |(keyword, value): (&String, &Value)| {
                (INVERTED.contains(&keyword.as_str()) && has_reference(value)).then(|| keyword.clone())
            };
            let found: Vec<String> = fields.iter().filter_map(inverted).collect();
            drop_inverted(fields, &found, place, notes);
            for (keyword, value) in fields.iter_mut() {
                drop_inverted_references(value, &below(place, keyword), notes);
            }
        }
        _ => {}
    }
}

/// Returns `true` if a value contains a reference.
fn has_reference(value: &Value) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) if REFERENCES.iter().any(|keyword| fields.contains_key(*keyword)) => return true,
            Value::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    false
}

/// Removes references whose target is no longer a part of the schema. Returns `true` if the schema accepts more than before.
fn drop_dangling(schema: &mut Value, whole: &Value, place: &str, notes: &mut Notes) -> bool {
    match schema {
        Value::Array(items) => {
            let mut is_weaker = false;
            for (index, item) in items.iter_mut().enumerate() {
                is_weaker |= drop_dangling(item, whole, &below(place, &index.to_string()), notes);
            }
            is_weaker
        }
        Value::Object(fields) => drop_dangling_fields(fields, whole, place, notes),
        _ => false,
    }
}

fn drop_dangling_fields(fields: &mut Map<String, Value>, whole: &Value, place: &str, notes: &mut Notes) -> bool {
    let before = fields.len();
    fields.retain(|keyword, value| {
        let Some(reference) = value.as_str().filter(|_| REFERENCES.contains(&keyword.as_str())) else { return true };
        let is_found = resolve(whole, reference).is_some();
        if !is_found {
            notes.add(place, "a reference was removed with its target; a call is checked against the original");
        }
        is_found
    });
    let mut weaker = Vec::new();
    for (keyword, value) in fields.iter_mut() {
        let is_weaker = drop_dangling(value, whole, &below(place, keyword), notes);
        weaker.extend(is_weaker.then(|| keyword.clone()));
    }
    drop_inverted(fields, &weaker, place, notes);
    before > fields.len() || !weaker.is_empty()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bounded(schema: Value) -> (Value, Vec<String>) {
        let mut notes = Notes::default();
        let schema = bound(schema, &mut notes).expect("a schema within its size");
        (schema, notes.finish())
    }

    /// Depth of the deepest object in a value.
    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(items) => items.iter().map(depth).max().unwrap_or_default(),
            Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
            _ => 0,
        }
    }

    fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
        (0..levels).fold(json!({"type": "string"}), |inner, _| wrap(inner))
    }

    #[test]
    fn an_ordinary_schema_stays_as_it_is() {
        let schema = json!({
            "type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}},
            "$defs": {"x": {"type": "array", "items": {"$ref": "#/$defs/x"}}}, "x-own": {"allOf": 1},
        });
        assert_eq!(bounded(schema.clone()), (schema, vec![]));
    }

    #[test]
    fn depth_is_bounded() {
        let fits = nested(MAX_DEPTH, |inner| json!({ "items": inner }));
        assert_eq!(bounded(fits.clone()), (fits, vec![]));
        let (cut, notes) = bounded(nested(MAX_DEPTH + 5, |inner| json!({ "items": inner })));
        assert_eq!(depth(&cut), MAX_DEPTH + 1);
        assert!(notes[0].contains("nested too deep"), "{notes:?}");
    }

    #[test]
    fn composition_is_bounded_in_depth_and_width() {
        let (cut, notes) = bounded(nested(MAX_COMPOSITION + 1, |inner| json!({ "anyOf": [inner] })));
        assert_eq!(cut.to_string().matches("anyOf").count(), MAX_COMPOSITION);
        assert_eq!(notes.len(), 1);
        let several = |count: usize| json!({"anyOf": (0..count).map(|n| json!({ "const": n })).collect::<Vec<_>>()});
        assert_eq!(bounded(several(MAX_ALTERNATIVES)).1, Vec::<String>::new());
        assert_eq!(bounded(several(MAX_ALTERNATIVES + 1)).0, json!({}));
    }

    #[test]
    fn a_reference_into_a_removed_part_is_removed() {
        let deep = nested(MAX_COMPOSITION + 1, |inner| json!({ "anyOf": [inner] }));
        let pointer = format!("#/properties/a{}", "/anyOf/0".repeat(MAX_COMPOSITION + 1));
        let (cut, notes) = bounded(json!({"properties": {"a": deep, "b": {"$ref": pointer}, "c": {"$ref": "#"}}}));
        assert_eq!((&cut["properties"]["b"], &cut["properties"]["c"]), (&json!({}), &json!({"$ref": "#"})));
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn size_is_bounded() {
        let schema = json!({"description": "x".repeat(MAX_BYTES)});
        let error = bound(schema, &mut Notes::default()).unwrap_err().to_string();
        assert!(error.contains("more than the 262144 allowed"), "{error}");
    }

    #[test]
    fn a_bounded_schema_refuses_no_value_that_the_original_accepts() {
        let mut deep = json!({"type": "string"});
        for _ in 0..=MAX_DEPTH {
            deep = json!({"type": "object", "properties": {"a": deep}, "required": ["a"]});
        }
        for inverted in [
            json!({ "not": deep }),
            json!({"oneOf": [{"type": "object"}, deep]}),
            json!({"if": deep, "then": false}),
            json!({"contains": deep, "maxContains": 1}),
            json!({"not": {"properties": {"b": {"not": deep}}}}),
            json!({"not": {"$ref": "#/$defs/x"}, "$defs": {"x": deep}}),
            json!({"not": {"$ref": "#/$defs/x/oneOf/1"}, "$defs": {"x": {"oneOf": [true, deep]}}}),
        ] {
            let (bounded, notes) = bounded(inverted.clone());
            assert!(!notes.is_empty(), "{bounded}");
            let [before, after] = [&inverted, &bounded].map(|schema| jsonschema::validator_for(schema).unwrap());
            for value in
                [json!({}), json!({"a": {}}), json!({"b": {}}), json!([]), json!([{"a": {}}, {"a": {}}]), json!(1)]
            {
                assert!(!before.is_valid(&value) || after.is_valid(&value), "{value} of {inverted} in {bounded}");
            }
        }
    }
}
