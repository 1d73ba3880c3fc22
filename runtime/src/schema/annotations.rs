//! Annotations of arguments in a schema: internal fields, which a model must not set, and sensitive fields, which are
//! masked. An annotation may be in the schema of the argument itself, in the target of a reference, or in the schema of its
//! items or of its members with any name.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::tool::Tool;

use super::graph::{Relation, SchemaGraph};

/// Maximum number of sensitive argument names; if there are more, every argument is masked.
const MAX_SENSITIVE: usize = 64;

impl Tool {
    /// Returns the schema for a model: the declared one, else the parameters, without internal fields.
    pub fn model_input_schema(&self) -> Option<Cow<'_, Value>> {
        let schemas = &self.interface.schemas;
        let schema = schemas.model_input_schema.value.as_ref().or(self.parameters.as_ref())?;
        let graph = SchemaGraph::of(schema);
        let internal = InternalFields::of(&graph);
        let visible = if internal.any { Cow::Owned(internal.removed(schema)) } else { Cow::Borrowed(schema) };
        Some(if schemas.strict.value { Cow::Owned(close(visible.into_owned())) } else { visible })
    }

    /// Returns the schema for checking a model's arguments; `None` if it equals the parameters. It rejects internal fields
    /// by name, while the schema for a model omits them.
    pub(crate) fn model_check_schema(&self) -> Option<Value> {
        let declared = self.interface.schemas.model_input_schema.value.as_ref();
        let strict = self.interface.schemas.strict.value;
        let any_object = json!({ "type": "object" });
        let schema = declared.or(self.parameters.as_ref()).unwrap_or(&any_object);
        let graph = SchemaGraph::of(schema);
        let internal = InternalFields::of(&graph);
        if declared.is_none() && !strict && !internal.any {
            return None;
        }
        let mut checked = internal.rejected(schema);
        if let (Some(_), Some(parameters)) = (declared, &self.parameters) {
            // Only the host may set arguments of the tool that the model's schema does not name.
            let visible = arguments(&graph);
            let mut hidden = arguments(&SchemaGraph::of(parameters));
            hidden.retain(|name| !visible.contains(name));
            reject(&mut checked, hidden);
        }
        Some(if strict { close(checked) } else { checked })
    }

    /// Returns the names of sensitive arguments: those whose schema has `"writeOnly": true`, `"sensitive": true` or
    /// `"format": "password"`; [`Tool::ANY_NAME`] if the mark is at no argument that has a name.
    pub fn sensitive_names(&self) -> Vec<String> {
        let mut names = Vec::new();
        let schemas = [self.parameters.as_ref(), self.interface.schemas.model_input_schema.value.as_ref()];
        for schema in schemas.into_iter().flatten() {
            let graph = SchemaGraph::of(schema);
            let sensitive = graph.reaching(is_sensitive, &[Relation::InPlace, Relation::Element]);
            names.extend(sensitive[0].then_some(Tool::ANY_NAME));
            let members = graph.nodes().iter().flat_map(|node| &node.edges);
            let members = members.filter(|edge| edge.relation == Relation::Member && sensitive[edge.to]);
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
    let is_flagged = ["writeOnly", "sensitive"].iter().any(|key| schema.get(key) == Some(&Value::Bool(true)));
    is_flagged || schema.get("format").is_some_and(|format| format == "password")
}

fn is_internal(schema: &Value) -> bool {
    schema.get("visibility").is_some_and(|visibility| visibility == "internal")
}

/// Returns the names of the arguments in a schema.
fn arguments<'a>(graph: &SchemaGraph<'a>) -> HashSet<&'a str> {
    let in_place = graph.in_place_of_root();
    let nodes = graph.nodes().iter().enumerate().filter(|(index, _)| in_place[*index]);
    let members = nodes.flat_map(|(_, node)| &node.edges).filter(|edge| edge.relation == Relation::Member);
    members.filter_map(|edge| edge.name).collect()
}

/// Changes a schema to reject members of these names.
fn reject(schema: &mut Value, names: HashSet<&str>) {
    let Value::Object(fields) = schema else { return };
    if names.is_empty() {
        return;
    }
    // If `properties` is not an object, the compiler rejects the schema.
    if let Value::Object(properties) = fields.entry("properties").or_insert_with(|| json!({})) {
        properties.extend(names.into_iter().map(|name| (name.to_owned(), Value::Bool(false))));
    }
}

/// Returns the schema without additional arguments. Objects below the top level are unchanged.
fn close(mut schema: Value) -> Value {
    if let Value::Object(fields) = &mut schema {
        fields.insert("additionalProperties".into(), Value::Bool(false));
    }
    schema
}

/// Fields of a schema that only the host may set.
struct InternalFields<'a> {
    graph: &'a SchemaGraph<'a>,
    is_internal: Vec<bool>,
    any: bool,
}

impl<'a> InternalFields<'a> {
    fn of(graph: &'a SchemaGraph<'a>) -> Self {
        let mut is_internal = graph.reaching(is_internal, &[Relation::InPlace]);
        // An annotation of the root does not apply to a field.
        is_internal.iter_mut().zip(graph.in_place_of_root()).for_each(|(internal, at_root)| *internal &= !at_root);
        Self { graph, any: is_internal.contains(&true), is_internal }
    }

    /// Returns the schema without the internal fields.
    fn removed(&self, schema: &Value) -> Value {
        self.rewrite(schema, true)
    }

    /// Returns the schema in which internal fields are invalid, whatever their value.
    fn rejected(&self, schema: &Value) -> Value {
        self.rewrite(schema, false)
    }

    fn contains(&self, schema: &Value) -> bool {
        self.graph.index_of(schema).is_some_and(|index| self.is_internal[index])
    }

    /// Returns the schema with `false` for the internal fields, which are then not required; with `remove` their
    /// properties are removed.
    fn rewrite(&self, value: &Value, remove: bool) -> Value {
        match value {
            _ if self.contains(value) => Value::Bool(false),
            Value::Array(items) => items.iter().map(|item| self.rewrite(item, remove)).collect(),
            Value::Object(fields) => {
                let rewrite_field = |(name, value): (&String, &Value)| (name.clone(), self.rewrite(value, remove));
                let mut rewritten: Map<_, _> = fields.iter().map(rewrite_field).collect();
                let is_schema = self.graph.index_of(value).is_some();
                if let (true, Some(Value::Object(properties))) = (is_schema, fields.get("properties")) {
                    let internal = properties.iter().filter(|(_, property)| self.contains(property));
                    let internal: HashSet<_> = internal.map(|(name, _)| name.as_str()).collect();
                    if let Some(Value::Array(required)) = rewritten.get_mut("required") {
                        required.retain(|name| !name.as_str().is_some_and(|name| internal.contains(name)));
                    }
                    if let (true, Some(Value::Object(properties))) = (remove, rewritten.get_mut("properties")) {
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

    fn with_model_schema(parameters: Value, model: Value) -> Tool {
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
        let refused = checked(&with_model_schema(parameters.clone(), json!({"anyOf": [{"properties": {"text": {}}}]})));
        assert_eq!(refused["properties"], json!({"more": false, "user": false}));
        let broken = with_model_schema(parameters, json!({"properties": []}));
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
