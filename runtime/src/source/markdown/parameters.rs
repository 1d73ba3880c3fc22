//! Conversion of `parameters` into a JSON Schema in file order. Undeclared arguments are allowed.

use serde_json::{Map, Value, json};

use crate::source::diagnostics::Diagnostics;
use crate::source::shape::kind;
use crate::source::suggestion::nearest;
use crate::tool::Place;

use super::node::{Fields, Node};

/// Fields of a parameter.
const FIELDS: [&str; 7] = ["type", "description", "required", "properties", "items", "enum", "default"];

/// Type of a parameter: its name, and the noun for its values in messages.
#[derive(Clone, Copy)]
struct Type {
    name: &'static str,
    kind: &'static str,
}

const TYPES: [Type; 5] = [
    Type { name: "string", kind: "a string" },
    Type { name: "number", kind: "a number" },
    Type { name: "boolean", kind: "a boolean" },
    Type { name: "object", kind: "an object" },
    Type { name: "array", kind: "an array" },
];
/// Names of other languages for the types.
const SYNONYMS: [(&str, &str); 8] = [
    ("int", "number"),
    ("integer", "number"),
    ("float", "number"),
    ("text", "string"),
    ("dict", "object"),
    ("map", "object"),
    ("list", "array"),
    ("tuple", "array"),
];

/// Returns the schema of the arguments. `owner` names the tool in messages.
pub(super) fn schema(parameters: Option<Node>, owner: &str, report: &mut Diagnostics) -> Value {
    let mut schema = json!({ "type": "object", "properties": {} });
    if let Some(parameters) = parameters {
        Reader { owner, report }.properties("parameters", parameters, &mut schema);
    }
    schema
}

struct Reader<'a> {
    owner: &'a str,
    report: &'a mut Diagnostics,
}

impl Reader<'_> {
    /// Adds the parameters of a map to an object's schema.
    fn properties(&mut self, at: &str, parameters: Node, schema: &mut Value) {
        let Some(fields) = self.report.parsed(parameters.fields(at)) else { return };
        let mut properties = Map::new();
        let mut required_names = Vec::new();
        for (key, node) in fields.rest() {
            let (property, required) = self.parameter(&format!("{at}.{}", key.name), node);
            if required {
                required_names.push(key.name.clone());
            }
            properties.insert(key.name, property);
        }
        schema["properties"] = properties.into();
        if !required_names.is_empty() {
            schema["required"] = required_names.into();
        }
    }

    /// Returns the schema of a parameter, and `true` if it is required.
    fn parameter(&mut self, at: &str, node: Node) -> (Value, bool) {
        let mut schema = json!({});
        let Some(mut fields) = self.report.parsed(node.fields(at)) else { return (schema, false) };
        let declared = self.declared_type(at, &mut fields);
        if let Some(declared) = declared {
            schema["type"] = json!(declared.name);
        }
        let description = fields.read("description", |node, field| node.text(&format!("{at}.{field}")));
        if let Some(description) = self.report.parsed(description).flatten() {
            schema["description"] = description.into();
        }
        let required = fields.read("required", |node, field| node.boolean(&format!("{at}.{field}")));
        let required = self.report.parsed(required).flatten().unwrap_or_default();
        if let Some(node) = fields.take("properties") {
            let at = format!("{at}.properties");
            self.require_type(&at, "object", &node, declared);
            self.properties(&at, node, &mut schema);
        }
        if let Some(node) = fields.take("items") {
            let at = format!("{at}.items");
            self.require_type(&at, "array", &node, declared);
            schema["items"] = self.parameter(&at, node).0;
        }
        if let Some(node) = fields.take("enum") {
            let at = format!("{at}.enum");
            let place = node.place;
            let values = self.report.parsed(node.list(&at)).unwrap_or_default();
            if values.is_empty() {
                self.invalid(place, &format!("{at} is empty: no value would be allowed"));
            }
            let values = values.into_iter().enumerate();
            schema["enum"] =
                values.map(|(index, node)| self.value(&format!("{at}[{index}]"), node, declared)).collect();
        }
        if let Some(node) = fields.take("default") {
            schema["default"] = self.value(&format!("{at}.default"), node, declared);
        }
        for (key, _) in fields.rest() {
            self.report.unknown_at(key.place, &format!("{at}: "), &key.name, &FIELDS);
        }
        (schema, required)
    }

    /// Reads the type of a parameter.
    fn declared_type(&mut self, at: &str, fields: &mut Fields) -> Option<Type> {
        let stated = fields.take("type");
        let place = stated.as_ref().map_or(fields.place, |node| node.place);
        let at = format!("{at}.type");
        let word = self.report.parsed(stated.map(|node| node.text(&at)).transpose())?;
        let declared = word.as_deref().and_then(|word| TYPES.into_iter().find(|known| known.name == word));
        if declared.is_none() {
            self.invalid(place, &format!("{at} {}", unknown_type(word.as_deref())));
        }
        declared
    }

    /// Adds an error if a field belongs to parameters of another type.
    fn require_type(&mut self, at: &str, wanted: &str, node: &Node, declared: Option<Type>) {
        if let Some(declared) = declared.filter(|declared| declared.name != wanted) {
            let message = format!("{at} is for type {wanted}, and this is of type {}", declared.name);
            self.invalid(node.place, &message);
        }
    }

    /// Reads a value that must be of the parameter's type.
    fn value(&mut self, at: &str, node: Node, declared: Option<Type>) -> Value {
        let place = node.place;
        let value = node.json();
        if let Some(declared) = declared.filter(|declared| declared.kind != kind(&value)) {
            self.invalid(place, &format!("{at} must be {}, found {}", declared.kind, kind(&value)));
        }
        value
    }

    fn invalid(&mut self, place: Option<Place>, message: &str) {
        self.report.invalid(place, format!("{} {message}", self.owner));
    }
}

/// Message for a missing or unknown type.
fn unknown_type(word: Option<&str>) -> String {
    let types = TYPES.map(|known| known.name);
    let listed = types.join("|");
    let Some(word) = word else { return format!("is required: {listed}") };
    let synonym = SYNONYMS.into_iter().find(|(other, _)| *other == word).map(|(_, name)| name);
    let hint = match synonym.or_else(|| nearest(word, types.into_iter())) {
        Some(name) => format!("; did you mean `{name}`?"),
        None => String::new(),
    };
    format!("{word:?} must be {listed}{hint}")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(parameters: Value) -> (Value, Vec<String>) {
        let mut report = Diagnostics::new(Path::new("x.md"));
        let schema = schema(Some(Node::from(&parameters)), "tool \"n\"", &mut report);
        (schema, report.problems.into_iter().map(|noted| noted.problem.message).collect())
    }

    #[test]
    fn parameters_become_a_schema_in_their_order() {
        let (schema, problems) = read(json!({
            "z": {"type": "string", "description": "d", "required": true, "enum": ["a", "b"], "default": "a"},
            "a": {"type": "number", "default": 3},
            "o": {"type": "object", "required": true, "properties": {"y": {"type": "boolean", "required": true}}},
            "l": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
        }));
        assert_eq!(problems, Vec::<String>::new());
        let expected = r#"{"type":"object","properties":{"z":{"type":"string","description":"d","enum":["a","b"],"default":"a"},"a":{"type":"number","default":3},"o":{"type":"object","properties":{"y":{"type":"boolean"}},"required":["y"]},"l":{"type":"array","items":{"type":"array","items":{"type":"string"}}}},"required":["z","o"]}"#;
        assert_eq!(schema.to_string(), expected);
    }

    #[test]
    fn a_slip_names_the_parameter() {
        let types = "string|number|boolean|object|array";
        for (parameter, expected) in [
            (json!({}), format!("tool \"n\" parameters.p.type is required: {types}")),
            (
                json!({"type": "strng"}),
                format!("tool \"n\" parameters.p.type \"strng\" must be {types}; did you mean `string`?"),
            ),
            (
                json!({"type": "integer"}),
                format!("tool \"n\" parameters.p.type \"integer\" must be {types}; did you mean `number`?"),
            ),
            (json!({"type": "wondrous"}), format!("tool \"n\" parameters.p.type \"wondrous\" must be {types}")),
            (json!("string"), "parameters.p must be a map, found a string".to_owned()),
            (json!({"type": 1}), "parameters.p.type must be a string, found 1".to_owned()),
            (
                json!({"type": "string", "required": "maybe"}),
                "parameters.p.required must be true or false, found a string".to_owned(),
            ),
            (
                json!({"type": "string", "enum": ["a", true]}),
                "tool \"n\" parameters.p.enum[1] must be a string, found a boolean".to_owned(),
            ),
            (
                json!({"type": "array", "enum": []}),
                "tool \"n\" parameters.p.enum is empty: no value would be allowed".to_owned(),
            ),
            (
                json!({"type": "string", "items": {"type": "string"}}),
                "tool \"n\" parameters.p.items is for type array, and this is of type string".to_owned(),
            ),
            (
                json!({"type": "object", "properties": {"q": {"type": "nmber"}}}),
                format!("tool \"n\" parameters.p.properties.q.type \"nmber\" must be {types}; did you mean `number`?"),
            ),
            (
                json!({"type": "string", "desciption": "d"}),
                "parameters.p: unknown field `desciption` is ignored; did you mean `description`?".to_owned(),
            ),
        ] {
            let (_, problems) = read(json!({ "p": parameter }));
            assert!(problems.contains(&expected), "{expected}\n{problems:?}");
        }
        assert_eq!(read(json!([])).1, ["parameters must be a map, found a list"]);
    }
}
