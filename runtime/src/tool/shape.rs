//! What a schema says about single arguments besides their type: which of them the model may not set, and which nobody
//! is to be shown. It looks at schemas as data and validates nothing.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::Tool;

/// Stands in the place of a value that nobody is to be shown.
const MASK: &str = "***";

impl Tool {
    /// The schema that a model is shown: the one its record gives, else its parameters without their internal fields.
    pub fn model_input_schema(&self) -> Option<Cow<'_, Value>> {
        let stated = self.interface.schemas.model_input_schema.value.as_ref().map(Cow::Borrowed);
        let shown = stated.or_else(|| {
            let schema = self.parameters.as_ref()?;
            let has_internal = any_property(schema, &is_internal);
            Some(if has_internal { Cow::Owned(without_internal(schema)) } else { Cow::Borrowed(schema) })
        })?;
        Some(if self.interface.schemas.strict.value { Cow::Owned(closed(shown.into_owned())) } else { shown })
    }

    /// The schema by which a model's arguments are checked, where it is not the parameters themselves: as it is shown,
    /// but an internal field is refused by name and not only unknown.
    pub(crate) fn model_check_schema(&self) -> Option<Value> {
        let stated = self.interface.schemas.model_input_schema.value.as_ref();
        let strict = self.interface.schemas.strict.value;
        let parameters = self.parameters.as_ref();
        if stated.is_none() && !strict && !parameters.is_some_and(|schema| any_property(schema, &is_internal)) {
            return None;
        }
        let mut checked = stated.or(parameters).map_or_else(|| json!({ "type": "object" }), forbidding_internal);
        if stated.is_some() {
            // What the tool takes and the model is not shown is for the host alone.
            for name in parameters.into_iter().flat_map(properties).map(|(name, _)| name) {
                let known = checked.get("properties").and_then(Value::as_object);
                if !known.is_some_and(|known| known.contains_key(name)) {
                    checked["properties"][name] = Value::Bool(false);
                }
            }
        }
        Some(if strict { closed(checked) } else { checked })
    }

    /// The names of arguments that nobody is to be shown: those whose schema has `"writeOnly": true`,
    /// `"sensitive": true` or `"format": "password"`.
    pub(crate) fn sensitive_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let schemas = [self.parameters.as_ref(), self.interface.schemas.model_input_schema.value.as_ref()];
        for schema in schemas.into_iter().flatten() {
            visit_properties(schema, &mut |name, property| {
                let marked =
                    ["writeOnly", "sensitive"].iter().any(|key| property.get(*key) == Some(&Value::Bool(true)));
                if (marked || property.get("format").is_some_and(|format| format == "password"))
                    && !names.iter().any(|known| known == name)
                {
                    names.push(name.to_owned());
                }
            });
        }
        names
    }
}

/// `value` with the members of these names masked, at any depth.
pub(crate) fn masked(value: &Value, names: &[String]) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| masked(item, names)).collect(),
        Value::Object(fields) => {
            let shown = |(name, value): (&String, &Value)| {
                let hidden = names.iter().any(|hidden| hidden == name);
                (name.clone(), if hidden { Value::from(MASK) } else { masked(value, names) })
            };
            Value::Object(fields.iter().map(shown).collect())
        }
        other => other.clone(),
    }
}

fn is_internal(_: &str, property: &Value) -> bool {
    property.get("visibility").is_some_and(|visibility| visibility == "internal")
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn any_property(schema: &Value, holds: &dyn Fn(&str, &Value) -> bool) -> bool {
    let mut found = false;
    visit_properties(schema, &mut |name, property| found |= holds(name, property));
    found
}

/// Looks at every property, wherever in the schema it stands.
fn visit_properties(schema: &Value, look: &mut dyn FnMut(&str, &Value)) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| visit_properties(item, look)),
        Value::Object(fields) => {
            properties(schema).for_each(|(name, property)| look(name, property));
            fields.values().for_each(|value| visit_properties(value, look));
        }
        _ => {}
    }
}

/// Rewrites every object that has properties.
fn rewritten(schema: &Value, rewrite: &dyn Fn(&mut Map<String, Value>)) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(|item| rewritten(item, rewrite)).collect(),
        Value::Object(fields) => {
            let mut fields: Map<_, _> =
                fields.iter().map(|(name, value)| (name.clone(), rewritten(value, rewrite))).collect();
            if fields.get("properties").is_some_and(Value::is_object) {
                rewrite(&mut fields);
            }
            Value::Object(fields)
        }
        other => other.clone(),
    }
}

fn internal_of(fields: &Map<String, Value>) -> Vec<String> {
    let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.filter(|(name, property)| is_internal(name, property)).map(|(name, _)| name.clone()).collect()
}

fn not_required(fields: &mut Map<String, Value>, names: &[String]) {
    if let Some(Value::Array(required)) = fields.get_mut("required") {
        required.retain(|name| !names.iter().any(|internal| name == internal));
    }
}

fn without_internal(schema: &Value) -> Value {
    rewritten(schema, &|fields| {
        let internal = internal_of(fields);
        not_required(fields, &internal);
        if let Some(Value::Object(properties)) = fields.get_mut("properties") {
            properties.retain(|name, _| !internal.contains(name));
        }
    })
}

fn forbidding_internal(schema: &Value) -> Value {
    rewritten(schema, &|fields| {
        let internal = internal_of(fields);
        not_required(fields, &internal);
        if let Some(Value::Object(properties)) = fields.get_mut("properties") {
            for name in internal {
                properties.insert(name, Value::Bool(false));
            }
        }
    })
}

/// The schema with no argument beyond those it names, unless it says otherwise itself.
fn closed(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "required": ["path", "user"],
            "properties": {
                "path": {"type": "string"},
                "user": {"type": "string", "visibility": "internal"},
                "options": {"type": "object", "properties": {"trace": {"visibility": "internal"}, "token": {"format": "password"}}},
            },
        })
    }

    #[test]
    fn internal_fields_are_neither_shown_nor_required() {
        let shown = without_internal(&schema());
        assert_eq!(shown["required"], json!(["path"]));
        assert_eq!(shown["properties"]["user"], Value::Null);
        assert_eq!(shown["properties"]["options"]["properties"], json!({"token": {"format": "password"}}));
    }

    #[test]
    fn internal_fields_are_refused_and_not_ignored() {
        let checked = forbidding_internal(&schema());
        assert_eq!(checked["properties"]["user"], false);
        assert_eq!(checked["properties"]["options"]["properties"]["trace"], false);
    }

    #[test]
    fn sensitive_values_are_masked_wherever_they_stand() {
        let value = json!({"token": "a", "list": [{"token": {"deep": 1}, "plain": 2}]});
        assert_eq!(masked(&value, &["token".into()]), json!({"token": "***", "list": [{"token": "***", "plain": 2}]}));
    }
}
