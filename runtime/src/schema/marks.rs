//! What a schema says about single arguments besides their type: which of them the model may not set, and which nobody
//! is to be shown. A mark holds for a value wherever it stands: at the argument itself, behind a reference, at its items
//! or at its members of any name.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::tool::Tool;

use super::positions::{Positions, Step};

/// The most names of arguments that are looked for when a value is masked; where there are more, every one is.
const MAX_SENSITIVE: usize = 64;

impl Tool {
    /// The schema that a model is shown: the one its record gives, else its parameters, without internal fields.
    pub fn model_input_schema(&self) -> Option<Cow<'_, Value>> {
        let schemas = &self.interface.schemas;
        let schema = schemas.model_input_schema.value.as_ref().or(self.parameters.as_ref())?;
        let positions = Positions::of(schema);
        let internal = Internal::of(&positions);
        let shown = if internal.any { Cow::Owned(internal.hidden(schema)) } else { Cow::Borrowed(schema) };
        Some(if schemas.strict.value { Cow::Owned(closed(shown.into_owned())) } else { shown })
    }

    /// The schema by which a model's arguments are checked, where it is not the parameters themselves: as it is shown,
    /// but an internal field is refused by name and not only unknown.
    pub(crate) fn model_check_schema(&self) -> Option<Value> {
        let stated = self.interface.schemas.model_input_schema.value.as_ref();
        let strict = self.interface.schemas.strict.value;
        let any_object = json!({ "type": "object" });
        let schema = stated.or(self.parameters.as_ref()).unwrap_or(&any_object);
        let positions = Positions::of(schema);
        let internal = Internal::of(&positions);
        if stated.is_none() && !strict && !internal.any {
            return None;
        }
        let mut checked = internal.refused(schema);
        if let (Some(_), Some(parameters)) = (stated, &self.parameters) {
            // What the tool takes and the model is not shown is for the host alone.
            let shown = arguments(&positions);
            let mut hidden = arguments(&Positions::of(parameters));
            hidden.retain(|name| !shown.contains(name));
            refuse(&mut checked, hidden);
        }
        Some(if strict { closed(checked) } else { checked })
    }

    /// Returns the names of sensitive arguments: those whose schema has `"writeOnly": true`, `"sensitive": true` or
    /// `"format": "password"`; [`Tool::ANY_NAME`] if the mark is at no argument that has a name.
    pub fn sensitive_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let schemas = [self.parameters.as_ref(), self.interface.schemas.model_input_schema.value.as_ref()];
        for schema in schemas.into_iter().flatten() {
            let positions = Positions::of(schema);
            let marked = positions.leading_to(is_sensitive, &[Step::InPlace, Step::Part]);
            names.extend(marked[0].then_some(Tool::ANY_NAME));
            let members = positions.nodes().iter().flat_map(|node| &node.edges);
            let members = members.filter(|edge| edge.step == Step::Member && marked[edge.to]);
            names.extend(members.filter_map(|edge| edge.name));
        }
        let mut seen = HashSet::new();
        names.retain(|name| seen.insert(*name));
        if names.len() > MAX_SENSITIVE {
            names = vec![Tool::ANY_NAME];
        }
        names.into_iter().map(str::to_owned).collect()
    }
}

fn is_sensitive(schema: &Value) -> bool {
    let marked = ["writeOnly", "sensitive"].iter().any(|key| schema.get(key) == Some(&Value::Bool(true)));
    marked || schema.get("format").is_some_and(|format| format == "password")
}

fn is_internal(schema: &Value) -> bool {
    schema.get("visibility").is_some_and(|visibility| visibility == "internal")
}

/// The names of the arguments that a schema knows.
fn arguments<'a>(positions: &Positions<'a>) -> HashSet<&'a str> {
    let of_the_whole = positions.of_the_whole();
    let nodes = positions.nodes().iter().enumerate().filter(|(at, _)| of_the_whole[*at]);
    let members = nodes.flat_map(|(_, node)| &node.edges).filter(|edge| edge.step == Step::Member);
    members.filter_map(|edge| edge.name).collect()
}

/// Refuses members of these names.
fn refuse(schema: &mut Value, names: HashSet<&str>) {
    let Value::Object(fields) = schema else { return };
    if names.is_empty() {
        return;
    }
    // Where `properties` is no object, the schema as a whole is refused when it is compiled.
    if let Value::Object(properties) = fields.entry("properties").or_insert_with(|| json!({})) {
        properties.extend(names.into_iter().map(|name| (name.to_owned(), Value::Bool(false))));
    }
}

/// The schema with no argument beyond those it names at its top; what lies deeper is for the schema itself to say.
fn closed(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.insert("additionalProperties".into(), Value::Bool(false));
    }
    schema
}

/// The fields of a schema that are for the host alone.
struct Internal<'a> {
    positions: &'a Positions<'a>,
    marked: Vec<bool>,
    any: bool,
}

impl<'a> Internal<'a> {
    fn of(positions: &'a Positions<'a>) -> Self {
        let mut marked = positions.leading_to(is_internal, &[Step::InPlace]);
        // A mark at the whole says nothing of a field.
        marked.iter_mut().zip(positions.of_the_whole()).for_each(|(marked, whole)| *marked &= !whole);
        Self { positions, any: marked.contains(&true), marked }
    }

    /// The schema without them.
    fn hidden(&self, schema: &Value) -> Value {
        self.rewritten(schema, true)
    }

    /// The schema that they break, whatever their value.
    fn refused(&self, schema: &Value) -> Value {
        self.rewritten(schema, false)
    }

    fn holds(&self, schema: &Value) -> bool {
        self.positions.at(schema).is_some_and(|at| self.marked[at])
    }

    /// The schema in which nothing fulfils what is internal, and no such field is required, or even there.
    fn rewritten(&self, value: &Value, without: bool) -> Value {
        match value {
            _ if self.holds(value) => Value::Bool(false),
            Value::Array(items) => items.iter().map(|item| self.rewritten(item, without)).collect(),
            Value::Object(fields) => {
                let rewritten_field = |(name, value): (&String, &Value)| (name.clone(), self.rewritten(value, without));
                let mut rewritten: Map<_, _> = fields.iter().map(rewritten_field).collect();
                let is_schema = self.positions.at(value).is_some();
                if let (true, Some(Value::Object(properties))) = (is_schema, fields.get("properties")) {
                    let internal = properties.iter().filter(|(_, property)| self.holds(property));
                    let internal: HashSet<_> = internal.map(|(name, _)| name.as_str()).collect();
                    if let Some(Value::Array(required)) = rewritten.get_mut("required") {
                        required.retain(|name| !name.as_str().is_some_and(|name| internal.contains(name)));
                    }
                    if let (true, Some(Value::Object(properties))) = (without, rewritten.get_mut("properties")) {
                        properties.retain(|name, _| !internal.contains(name.as_str()));
                    }
                }
                Value::Object(rewritten)
            }
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tool::tests::plain;

    use super::*;

    fn tool(parameters: Value) -> Tool {
        Tool { parameters: Some(parameters), ..plain("t") }
    }

    fn stated(parameters: Value, model: Value) -> Tool {
        let mut tool = tool(parameters);
        tool.interface.schemas.model_input_schema.value = Some(model);
        tool
    }

    fn shown(tool: &Tool) -> Value {
        tool.model_input_schema().unwrap().into_owned()
    }

    fn checked(tool: &Tool) -> Value {
        tool.model_check_schema().unwrap()
    }

    #[test]
    fn internal_fields_are_neither_shown_nor_required_and_refused() {
        let tool = tool(json!({
            "required": ["path", "user"],
            "properties": {
                "path": {"type": "string"},
                "user": {"visibility": "internal"},
                "options": {"properties": {"trace": {"visibility": "internal"}, "token": {}}},
            },
        }));
        let model = shown(&tool);
        assert_eq!(model["required"], json!(["path"]));
        assert_eq!(model["properties"]["user"], Value::Null);
        assert_eq!(model["properties"]["options"]["properties"], json!({"token": {}}));
        assert_eq!(checked(&tool)["properties"]["user"], false);
        assert_eq!(checked(&tool)["properties"]["options"]["properties"]["trace"], false);
    }

    #[test]
    fn an_internal_field_is_refused_behind_a_reference_and_inside_items() {
        let internal = json!({"visibility": "internal"});
        let tool = tool(json!({
            "allOf": [{"properties": {"deep": {"anyOf": [{"$ref": "#/$defs/alias"}, true]}}}],
            "properties": {
                "user": {"$ref": "#/$defs/user"}, "far": {"$ref": "#/x/far"}, "list": {"items": internal},
                "pair": {"prefixItems": [{}, internal]}, "map": {"additionalProperties": internal},
            },
            "$defs": {"user": internal, "alias": {"$ref": "#/$defs/user"}},
            "x": {"far": {"properties": {"user": internal}}},
        }));
        let refused = checked(&tool);
        for place in [
            "/allOf/0/properties/deep",
            "/properties/user",
            "/properties/list/items",
            "/properties/pair/prefixItems/1",
            "/properties/map/additionalProperties",
            "/x/far/properties/user",
        ] {
            assert_eq!(refused.pointer(place), Some(&Value::Bool(false)), "{place}: {refused}");
        }
        assert!(!shown(&tool).to_string().contains("internal"), "{}", shown(&tool));
    }

    #[test]
    fn an_argument_that_is_called_like_a_keyword_is_an_argument() {
        let schema = json!({"properties": {
            "properties": {"enum": [{"visibility": "internal", "writeOnly": true}]},
            "items": {"default": {"properties": {"x": {"sensitive": true, "visibility": "internal"}}}},
        }});
        let tool = tool(schema.clone());
        assert_eq!((shown(&tool), tool.model_check_schema()), (schema, None));
        assert!(tool.sensitive_names().is_empty());
    }

    #[test]
    fn what_the_model_is_not_shown_is_refused_wherever_it_is_named() {
        let parameters = json!({"allOf": [{"properties": {"user": {}, "text": {}}}], "properties": {"more": {}}});
        let refused = checked(&stated(parameters.clone(), json!({"anyOf": [{"properties": {"text": {}}}]})));
        assert_eq!(refused["properties"], json!({"more": false, "user": false}));
        let broken = stated(parameters, json!({"properties": []}));
        assert_eq!(checked(&broken)["properties"], json!([]), "left for the compiler to refuse");
    }

    #[test]
    fn strict_wins_over_what_a_schema_says_of_further_arguments() {
        let mut tool = tool(json!({"additionalProperties": true, "properties": {"deep": {"properties": {}}}}));
        tool.interface.schemas.strict.value = true;
        for schema in [shown(&tool), checked(&tool)] {
            assert_eq!(schema["additionalProperties"], false);
            assert_eq!(schema["properties"]["deep"], json!({"properties": {}}), "only the top is closed");
        }
    }

    #[test]
    fn a_sensitive_argument_is_known_behind_a_reference_and_inside_items() {
        let secret = json!({"writeOnly": true});
        let names = tool(json!({
            "properties": {
                "a": {"items": secret}, "b": {"prefixItems": [{}, secret]}, "c": {"additionalProperties": secret},
                "d": {"$ref": "#/$defs/alias"}, "e": {"anyOf": [{"format": "password"}, true]},
                "f": {"patternProperties": {"^x": {"items": {"sensitive": true}}}},
                "g": {"properties": {"h": secret, "plain": {}}}, "next": {"$ref": "#"}, "items": {"type": "string"},
            },
            "$defs": {"secret": secret, "alias": {"$ref": "#/$defs/secret"}},
        }))
        .sensitive_names();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f", "h"]);
        assert_eq!(tool(json!({"additionalProperties": secret})).sensitive_names(), [Tool::ANY_NAME]);
    }

    #[test]
    fn a_schema_that_refers_to_itself_is_gone_through_once() {
        let defs = (0..2_000).map(|n| {
            (format!("d{n}"), json!({"anyOf": [{"$ref": "#"}, {"$ref": format!("#/$defs/d{}", (n + 1) % 2_000)}]}))
        });
        let schema = json!({"$ref": "#/$defs/d0", "properties": {"a": {"$ref": "#/$defs/d7"}}, "$defs": Value::Object(defs.collect())});
        assert!(tool(schema).sensitive_names().is_empty());
    }

    #[test]
    fn of_too_many_sensitive_names_every_name_is_one() {
        let named = |count: usize| {
            let each: serde_json::Map<_, _> =
                (0..count).map(|n| (format!("a{n}"), json!({"sensitive": true}))).collect();
            tool(json!({ "properties": each })).sensitive_names()
        };
        assert_eq!(named(MAX_SENSITIVE).len(), MAX_SENSITIVE);
        assert_eq!(named(MAX_SENSITIVE + 1), [Tool::ANY_NAME]);
    }
}
