//! What a schema rules out for certain: arguments that no value has, and texts that no argument is. Whatever it cannot
//! prove, it says nothing about.

use std::cell::Cell;

use serde_json::{Map, Value};

use crate::tool::{Body, Tool};

use super::typed;

/// The most subschemas that are looked at for one question; beyond them nothing is proven.
const MAX_STEPS: u32 = 10_000;
/// How deep subschemas of one value, and names of a path, are followed.
const MAX_DEPTH: u32 = 32;
/// How a number of a function may be written that JSON has no digits for.
const NUMBER_WORDS: [&str; 3] = [typed::NOT_A_NUMBER, typed::INFINITE, typed::NEGATIVE_INFINITE];

/// What values of an argument are looked for.
pub(crate) trait Wanted {
    /// Returns true where a value may be one.
    fn may_be(&self, value: &Value) -> bool;
    /// Returns true where a number may be one.
    fn may_be_number(&self) -> bool;
}

/// Why no call of a tool has an argument as it is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuledOut {
    /// The tool takes no argument of the name; these are known where it stands.
    Name(Vec<String>),
    /// The argument takes no such value.
    Value,
}

/// Proves that no call of `tool` has the argument of this name, a key or a JSON pointer, with a value that is `wanted`.
pub(crate) fn ruled_out(tool: &Tool, argument: &str, wanted: &dyn Wanted) -> Option<RuledOut> {
    let path: Vec<String> = match argument.strip_prefix('/') {
        Some(pointer) => pointer.split('/').map(|part| part.replace("~1", "/").replace("~0", "~")).collect(),
        None => vec![argument.to_owned()],
    };
    if path.len() > MAX_DEPTH as usize {
        return None;
    }
    let generated = match &tool.body {
        Body::Typed(function) => Some(typed::arguments(&function.function)),
        _ => None,
    };
    let own: Vec<&Value> = tool.parameters.iter().chain(&generated).collect();
    for schema in &own {
        let proof = Proof::of(schema);
        if proof.lacks(schema, &path) {
            return Some(RuledOut::Name(proof.known(&path)));
        }
    }
    // What only the model may not send, a hook may still set, where the tool knows it.
    let model = tool.model_check_schema();
    if let Some(schema) = &model
        && !own.iter().any(|own| Proof::of(own).names(own).contains(&path[0]))
        && Proof::of(schema).lacks(schema, &path)
    {
        return Some(RuledOut::Name(Proof::of(schema).known(&path)));
    }
    own.iter().any(|schema| Proof::of(schema).excludes(schema, &path, wanted)).then_some(RuledOut::Value)
}

/// Proofs about one schema.
struct Proof<'a> {
    root: &'a Value,
    steps: Cell<u32>,
    depth: Cell<u32>,
}

impl<'a> Proof<'a> {
    fn of(root: &'a Value) -> Self {
        Self { root, steps: Cell::new(0), depth: Cell::new(0) }
    }

    /// Counts a step; `false` beyond the most.
    fn goes_on(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.steps.get() <= MAX_STEPS
    }

    /// Whether something holds for a value because it holds by one of the subschemas that are about the same value.
    fn in_place(&self, fields: &'a Map<String, Value>, holds: &dyn Fn(&'a Value) -> bool) -> bool {
        let depth = self.depth.get();
        if depth == MAX_DEPTH {
            return false;
        }
        self.depth.set(depth + 1);
        let list = |keyword: &str| fields.get(keyword).and_then(Value::as_array);
        let every = |list: &'a Vec<Value>| !list.is_empty() && list.iter().all(holds);
        let proven = list("allOf").is_some_and(|list| list.iter().any(holds))
            || list("anyOf").is_some_and(every)
            || list("oneOf").is_some_and(every)
            || self.target(fields).is_some_and(holds);
        self.depth.set(depth);
        proven
    }

    /// The subschema that a reference names.
    fn target(&self, fields: &Map<String, Value>) -> Option<&'a Value> {
        let pointer = fields.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    /// Returns true where no value of the schema has a member at the end of this path.
    fn lacks(&self, schema: &'a Value, path: &[String]) -> bool {
        let (fields, [name, rest @ ..]) = (schema, path) else { return false };
        if !self.goes_on() {
            return false;
        }
        let Value::Object(fields) = fields else { return *schema == Value::Bool(false) };
        let property = fields.get("properties").and_then(|properties| properties.get(name));
        let deeper = |property: &'a Value| match property {
            Value::Bool(false) => true,
            property => {
                // Of an array the same path would name an item.
                let is_index = |next: &String| next.bytes().all(|byte| byte.is_ascii_digit());
                let by_name = !rest.first().is_none_or(is_index) && self.lacks(property, rest);
                by_name || (!rest.is_empty() && self.is_plain(property))
            }
        };
        property.map_or_else(|| is_closed(fields), deeper) || self.in_place(fields, &|one| self.lacks(one, path))
    }

    /// Returns true where a value of the schema has no members and no items.
    fn is_plain(&self, schema: &'a Value) -> bool {
        let Value::Object(fields) = schema else { return false };
        let plain = |kind: &Value| kind.as_str().is_some_and(|kind| kind != "object" && kind != "array");
        self.goes_on()
            && (match fields.get("type") {
                Some(Value::Array(kinds)) => !kinds.is_empty() && kinds.iter().all(plain),
                Some(kind) => plain(kind),
                None => false,
            } || self.in_place(fields, &|one| self.is_plain(one)))
    }

    /// Whether no value of the schema has a member at the end of this path that is `wanted`, though it may have one.
    fn excludes(&self, schema: &'a Value, path: &[String], wanted: &dyn Wanted) -> bool {
        let (Value::Object(fields), [name, rest @ ..]) = (schema, path) else { return false };
        if !self.goes_on() {
            return false;
        }
        let property = fields.get("properties").and_then(|properties| properties.get(name));
        // An argument that is left out is judged by its default, whatever that is.
        let default = property.and_then(|property| property.get("default"));
        let deeper = |property: &'a Value| match rest {
            [] => self.never(property, wanted),
            [next, ..] if next.bytes().all(|byte| byte.is_ascii_digit()) => false,
            rest => self.excludes(property, rest, wanted),
        };
        !default.is_some_and(|default| wanted.may_be(default))
            && (property.is_some_and(deeper) || self.in_place(fields, &|one| self.excludes(one, path, wanted)))
    }

    /// Returns true where no value of the schema is `wanted`.
    fn never(&self, schema: &'a Value, wanted: &dyn Wanted) -> bool {
        if !self.goes_on() {
            return false;
        }
        let Value::Object(fields) = schema else { return *schema == Value::Bool(false) };
        let wrong = |kind: &str| match kind {
            "boolean" => !wanted.may_be(&Value::Bool(true)) && !wanted.may_be(&Value::Bool(false)),
            "null" => !wanted.may_be(&Value::Null),
            "integer" | "number" => {
                !wanted.may_be_number() && !NUMBER_WORDS.iter().any(|word| wanted.may_be(&Value::from(*word)))
            }
            // Of several values one is enough.
            "array" if !fields.contains_key("prefixItems") => {
                fields.get("items").is_some_and(|items| self.never(items, wanted))
            }
            _ => false,
        };
        let by_kind = match fields.get("type") {
            Some(Value::String(kind)) => wrong(kind),
            Some(Value::Array(kinds)) => !kinds.is_empty() && kinds.iter().all(|kind| kind.as_str().is_some_and(wrong)),
            _ => false,
        };
        let known = |values: &Value| values.as_array().is_some_and(|all| !all.iter().any(|one| wanted.may_be(one)));
        by_kind
            || fields.get("enum").is_some_and(known)
            || fields.get("const").is_some_and(|value| !wanted.may_be(value))
            || self.in_place(fields, &|one| self.never(one, wanted))
    }

    /// The names of members that the schema knows.
    fn names(&self, schema: &'a Value) -> Vec<String> {
        let (mut names, mut open) = (Vec::<String>::new(), vec![schema]);
        while let Some(fields) = open.pop().and_then(Value::as_object) {
            if !self.goes_on() {
                break;
            }
            let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
            names.extend(properties.filter(|(_, one)| **one != Value::Bool(false)).map(|(name, _)| name.clone()));
            let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| fields.get(*keyword)?.as_array());
            open.extend(lists.flatten().filter(|one| one.is_object()).chain(self.target(fields)));
        }
        names
    }

    /// The names that could stand where the first name of the path that is not known stands, as far as they are plain.
    fn known(&self, path: &[String]) -> Vec<String> {
        let (mut schema, mut known) = (self.root, self.names(self.root));
        for name in path {
            let next = schema.get("properties").and_then(|properties| properties.get(name));
            let Some(next) = next.filter(|_| known.contains(name)) else { break };
            schema = next;
            known = self.names(schema);
        }
        known
    }
}

/// Returns true where an object of these keywords has no members but those that stand in its `properties`.
fn is_closed(fields: &Map<String, Value>) -> bool {
    let refused = |keyword: &str| fields.get(keyword) == Some(&Value::Bool(false));
    let by_pattern = fields.get("patternProperties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    let elsewhere = ["allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas", "dependencies"];
    let elsewhere = elsewhere.iter().chain(&["$ref", "$dynamicRef", "$recursiveRef", "additionalProperties"]);
    !by_pattern
        && (refused("additionalProperties")
            || (refused("unevaluatedProperties")
                && !elsewhere.into_iter().any(|keyword| fields.contains_key(*keyword))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::tests::plain;

    /// Texts that are one of these.
    struct Texts(&'static [&'static str]);

    impl Wanted for Texts {
        fn may_be(&self, value: &Value) -> bool {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.0.contains(&text.as_str())
        }

        fn may_be_number(&self) -> bool {
            self.0.iter().any(|text| text.parse::<f64>().is_ok())
        }
    }

    fn judged(schema: Value, argument: &str, texts: &'static [&'static str]) -> Option<RuledOut> {
        ruled_out(&Tool { parameters: Some(schema), ..plain("t") }, argument, &Texts(texts))
    }

    fn lacks(schema: Value, argument: &str) -> bool {
        matches!(judged(schema, argument, &["x"]), Some(RuledOut::Name(_)))
    }

    #[test]
    fn what_a_closed_schema_does_not_name_is_ruled_out() {
        let closed = |extra: Value| {
            let mut schema = json!({"type": "object", "properties": {"path": {}}, "additionalProperties": false});
            schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            schema
        };
        assert_eq!(judged(closed(json!({})), "pth", &["x"]), Some(RuledOut::Name(vec!["path".into()])));
        assert!(!lacks(closed(json!({})), "path"));
        assert!(lacks(closed(json!({})), "/pth") && lacks(closed(json!({})), "/pth/deeper"));
        assert!(lacks(json!({"unevaluatedProperties": false, "properties": {"path": {}}}), "pth"));
        assert!(lacks(json!({"$ref": "#/$defs/a", "$defs": {"a": closed(json!({}))}}), "pth"));
        assert!(lacks(json!({"allOf": [{}, closed(json!({}))]}), "pth"));
        assert!(lacks(json!({"anyOf": [closed(json!({})), closed(json!({}))]}), "pth"));
        let nested = json!({"properties": {"options": closed(json!({})), "text": {"type": "string"}}});
        assert!(lacks(nested.clone(), "/options/pth") && !lacks(nested.clone(), "/options/path"));
        assert!(lacks(nested.clone(), "/text/a") && !lacks(nested, "/other/a"));
    }

    #[test]
    fn what_a_schema_leaves_open_is_not_ruled_out() {
        for schema in [
            json!({}),
            json!({"properties": {"path": {}}}),
            json!({"properties": {"path": {}}, "additionalProperties": {"type": "string"}}),
            json!({"additionalProperties": false, "patternProperties": {"^p": {}}}),
            json!({"anyOf": [{"additionalProperties": false}, {}]}),
            json!({"unevaluatedProperties": false, "allOf": [{"properties": {"pth": {}}}]}),
            json!({"additionalProperties": false, "properties": {"pth": {}}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
        ] {
            assert!(!lacks(schema.clone(), "pth"), "{schema}");
        }
        let items = json!({"properties": {"a": {"additionalProperties": false}}});
        assert!(!lacks(items, "/a/0"), "it may be an array");
    }

    #[test]
    fn a_value_that_no_argument_takes_is_ruled_out() {
        let of = |schema: Value, texts| judged(json!({"properties": {"mode": schema}}), "mode", texts);
        for schema in [
            json!({"enum": ["slow", "safe"]}),
            json!({"const": "slow"}),
            json!({"type": "boolean"}),
            json!({"type": ["integer", "null"]}),
            json!({"type": "array", "items": {"enum": ["slow"]}}),
            json!({"anyOf": [{"const": "slow"}, {"type": "null"}]}),
        ] {
            assert_eq!(of(schema.clone(), &["fast"]), Some(RuledOut::Value), "{schema}");
        }
        for (schema, texts) in [
            (json!({"enum": ["slow", "fast"]}), &["fast"] as &[_]),
            (json!({"type": "string"}), &["fast"]),
            (json!({"type": "integer"}), &["7"]),
            (json!({"type": ["boolean", "string"]}), &["fast"]),
            (json!({"enum": ["slow"], "default": "fast"}), &["fast"]),
            (json!({"type": "array"}), &["fast"]),
        ] {
            assert_eq!(of(schema.clone(), texts), None, "{schema}");
        }
    }

    #[test]
    fn what_is_for_the_host_alone_is_not_ruled_out() {
        let schema = json!({
            "properties": {"path": {}, "user": {"visibility": "internal"}},
            "additionalProperties": false,
        });
        assert!(!lacks(schema, "user"));
        let mut strict = Tool { parameters: Some(json!({"properties": {"path": {}}})), ..plain("t") };
        strict.interface.schemas.strict.value = true;
        let proven = ruled_out(&strict, "pth", &Texts(&["x"]));
        assert_eq!(proven, Some(RuledOut::Name(vec!["path".into()])));
    }

    #[test]
    fn a_schema_that_multiplies_itself_is_left_alone_in_time() {
        let mut defs = Map::new();
        for n in 0..60 {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            defs.insert(format!("d{n}"), json!({"anyOf": [next, next]}));
        }
        defs.insert("d60".into(), json!({"additionalProperties": false}));
        assert!(!lacks(json!({"$ref": "#/$defs/d0", "$defs": defs}), "pth"));
    }
}
