//! Merging of schemas that apply to one value. A merged schema may accept more than the original, against which the runtime
//! checks the arguments of each call. It accepts less only for an argument that one alternative describes and another does
//! not name.

use serde_json::{Map, Value, json};

use super::notes::{Notes, below};
use super::reference::resolve;
use super::{Unsupported, limits};

/// Keywords that describe and constrain nothing. Of two, the first is kept.
pub(super) const ANNOTATIONS: [&str; 10] = [
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
    "sensitive",
    "visibility",
];

/// Maximum number of schemas that are read for one schema's root.
const MAX_STEPS: usize = 2_000;

/// Returns the schema of an object, without references and composition at its root.
///
/// # Errors
///
/// [`Unsupported`] if no object is valid, or a reference has no target or forms a cycle.
pub(super) fn object_root(root: &Value, notes: &mut Notes) -> Result<Map<String, Value>, Unsupported> {
    let flat = Flattening { root, notes, steps: 0 }.object(root, "", 0)?;
    let flat = flat.ok_or_else(|| Unsupported::new("arguments are an object, and its schema accepts none"))?;
    let mut fields = Map::from_iter([("type".to_owned(), json!("object"))]);
    fields.extend(flat);
    fields.entry("properties").or_insert_with(|| json!({}));
    Ok(fields)
}

/// Removal of references and composition from a schema's root.
struct Flattening<'a> {
    root: &'a Value,
    notes: &'a mut Notes,
    steps: usize,
}

impl Flattening<'_> {
    /// Returns an object's schema without references, composition and type; `None` if no object is valid.
    fn object(&mut self, schema: &Value, place: &str, depth: usize) -> Result<Option<Map<String, Value>>, Unsupported> {
        self.steps += 1;
        if depth > limits::MAX_DEPTH || self.steps > MAX_STEPS {
            return Err(Unsupported::new("the references and alternatives of its root form a cycle, or are too many"));
        }
        let mut fields = match schema {
            Value::Bool(false) => return Ok(None),
            Value::Bool(true) => return Ok(Some(Map::new())),
            Value::Object(fields) => fields.clone(),
            _ => return Err(Unsupported::new(format!("`#{place}` is not a schema"))),
        };
        let accepts_objects = match fields.shift_remove("type") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
            Some(kind) => kind == "object",
            None => true,
        };
        if !accepts_objects {
            return Ok(None);
        }
        if let Some(reference) = fields.shift_remove("$ref") {
            let target = reference.as_str().and_then(|reference| resolve(self.root, reference));
            let target = target.ok_or_else(|| Unsupported::new(format!("`$ref` {reference} has no target")))?.clone();
            match self.object(&target, place, depth + 1)? {
                Some(part) => fields = all_of(fields, part, place, self.notes),
                None => return Ok(None),
            }
        }
        if let Some(Value::Array(parts)) = fields.shift_remove("allOf") {
            for (index, part) in parts.iter().enumerate() {
                match self.object(part, &below(&below(place, "allOf"), &index.to_string()), depth + 1)? {
                    Some(part) => fields = all_of(fields, part, place, self.notes),
                    None => return Ok(None),
                }
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(alternatives)) = fields.shift_remove(keyword) else { continue };
            let at = below(place, keyword);
            let mut objects = Vec::new();
            for (index, one) in alternatives.iter().enumerate() {
                objects.extend(self.object(one, &below(&at, &index.to_string()), depth + 1)?);
            }
            if objects.is_empty() {
                return Ok(None);
            }
            self.notes.add(&at, "the alternatives are merged; a call is checked against each of them");
            fields = all_of(fields, any_of(objects), place, self.notes);
        }
        Ok(Some(fields))
    }
}

/// Merges a schema with another that applies to the same value.
pub(super) fn all_of(
    mut base: Map<String, Value>,
    part: Map<String, Value>,
    place: &str,
    notes: &mut Notes,
) -> Map<String, Value> {
    for (keyword, value) in part {
        let Some(known) = base.get_mut(&keyword) else {
            base.insert(keyword, value);
            continue;
        };
        if *known == value || ANNOTATIONS.contains(&keyword.as_str()) {
            continue;
        }
        match (keyword.as_str(), known, value) {
            ("properties" | "patternProperties", Value::Object(known), Value::Object(more)) => {
                for (name, schema) in more {
                    let both = match known.get(&name) {
                        Some(one) if *one != schema => json!({ "allOf": [one, schema] }),
                        _ => schema,
                    };
                    known.insert(name, both);
                }
            }
            ("$defs" | "definitions", Value::Object(known), Value::Object(more)) => {
                for (name, schema) in more {
                    known.entry(name).or_insert(schema);
                }
            }
            ("required", Value::Array(known), Value::Array(more)) => {
                more.into_iter().for_each(|name| {
                    if !known.contains(&name) {
                        known.push(name)
                    }
                });
            }
            ("additionalProperties", known, closed) => {
                if closed == false {
                    *known = closed;
                }
            }
            ("allOf", Value::Array(known), Value::Array(more)) => known.extend(more),
            ("enum", Value::Array(known), Value::Array(others)) => known.retain(|value| others.contains(value)),
            ("type", known, other) => {
                let kinds = common_types(known, &other);
                if !kinds.is_empty() {
                    *known = if kinds.len() == 1 { kinds[0].clone() } else { Value::Array(kinds) };
                }
            }
            (keyword, ..) => {
                notes.add(&below(place, keyword), "stated twice; the first is kept, and a call is checked against both")
            }
        }
    }
    base
}

/// Returns the types that both of two `type` keywords name.
fn common_types(one: &Value, other: &Value) -> Vec<Value> {
    let list = |kinds: &Value| kinds.as_array().cloned().unwrap_or_else(|| vec![kinds.clone()]);
    let (one, other) = (list(one), list(other));
    let names =
        |kinds: &[Value], kind: &Value| kinds.contains(kind) || kind == "integer" && kinds.contains(&json!("number"));
    let mut common: Vec<Value> = one.iter().filter(|kind| names(&other, kind)).cloned().collect();
    common.extend(other.iter().filter(|kind| names(&one, kind) && !one.contains(kind)).cloned());
    common
}

/// Merges alternative object schemas: allows the arguments of each, and requires the ones that all require.
fn any_of(alternatives: Vec<Map<String, Value>>) -> Map<String, Value> {
    let mut properties = Map::<String, Value>::new();
    let mut required: Option<Vec<Value>> = None;
    let mut is_closed = true;
    for fields in alternatives {
        let own = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        match &mut required {
            Some(required) => required.retain(|name| own.contains(name)),
            None => required = Some(own),
        }
        is_closed &= fields.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, schema) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let known = properties.entry(name.clone()).or_insert_with(|| json!([]));
            if let Value::Array(several) = known
                && !several.contains(schema)
            {
                several.push(schema.clone());
            }
        }
    }
    for schema in properties.values_mut() {
        if let Value::Array(several) = schema {
            *schema = if several.len() == 1 { several.remove(0) } else { json!({ "anyOf": several }) };
        }
    }
    let mut merged = Map::new();
    if !properties.is_empty() {
        merged.insert("properties".to_owned(), Value::Object(properties));
    }
    let required = required.unwrap_or_default();
    if !required.is_empty() {
        merged.insert("required".to_owned(), Value::Array(required));
    }
    if is_closed {
        merged.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(schema: Value) -> Result<(Value, Vec<String>), String> {
        let mut notes = Notes::default();
        let fields = object_root(&schema, &mut notes).map_err(|error| error.to_string())?;
        Ok((Value::Object(fields), notes.finish()))
    }

    #[test]
    fn a_root_without_a_word_is_an_object() {
        for schema in [json!({}), json!(true), json!({"type": ["object", "null"]})] {
            assert_eq!(root(schema).unwrap(), (json!({"type": "object", "properties": {}}), vec![]));
        }
    }

    #[test]
    fn a_root_that_accepts_no_object_is_refused() {
        for schema in [json!(false), json!({"type": "string"}), json!({"anyOf": [{"type": "array"}, false]}), json!(1)]
        {
            root(schema.clone()).expect_err(&schema.to_string());
        }
        for cycle in [json!({"$ref": "#"}), json!({"allOf": [{"$ref": "#"}]}), json!({"$ref": "#/$defs/x"})] {
            root(cycle.clone()).expect_err(&cycle.to_string());
        }
    }

    #[test]
    fn references_that_multiply_are_refused_at_once() {
        let twice = |n: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{n}")}, {"$ref": format!("#/$defs/d{n}")}]});
        let mut defs: Map<_, _> = (0..24).map(|n| (format!("d{n}"), twice(n + 1))).collect();
        defs.insert("d24".to_owned(), json!({}));
        let error = root(json!({"$ref": "#/$defs/d0", "$defs": defs})).unwrap_err();
        assert!(error.contains("form a cycle, or are too many"), "{error}");
    }

    #[test]
    fn composition_at_the_root_is_merged() {
        let text = json!({"type": "string"});
        let schema = json!({
            "$ref": "#/$defs/base", "$defs": {"base": {"properties": {"id": text}, "required": ["id"]}},
            "allOf": [{"properties": {"more": text, "id": {"minLength": 1}}, "required": ["more"]}],
        });
        let (merged, notes) = root(schema.clone()).unwrap();
        assert_eq!(merged["required"], json!(["id", "more"]));
        assert_eq!(merged["properties"]["id"], json!({"allOf": [text, {"minLength": 1}]}));
        assert!(
            merged.get("allOf").is_none() && merged.get("$ref").is_none() && notes.is_empty(),
            "{merged} {notes:?}"
        );

        let schema = json!({
            "properties": {"path": text},
            "oneOf": [
                {"properties": {"by": {"const": "name"}, "name": text}, "required": ["by", "name"]},
                {"properties": {"by": {"const": "id"}, "id": text}, "required": ["by", "id"]},
            ],
        });
        let (merged, notes) = root(schema).unwrap();
        assert_eq!(merged["required"], json!(["by"]));
        assert_eq!(merged["properties"]["by"], json!({"anyOf": [{"const": "name"}, {"const": "id"}]}));
        assert!(["path", "name", "id"].iter().all(|name| merged["properties"][name] == text), "{merged}");
        assert_eq!(notes, ["`#/oneOf`: the alternatives are merged; a call is checked against each of them"]);
    }
}
