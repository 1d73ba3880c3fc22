//! Proofs that no call of a tool can have an argument with a matching value. If nothing can be proven, nothing is reported.

use std::cell::Cell;

use serde_json::{Map, Value};

use crate::tool::{Body, Tool};

use super::typed;

/// Maximum number of visited subschemas per proof; beyond it nothing is proven.
const MAX_STEPS: u32 = 10_000;
/// Maximum depth of in-place subschemas, and maximum length of a name path.
const MAX_DEPTH: u32 = 32;
/// Strings for the numbers of a function that JSON cannot represent as numbers.
const NUMBER_WORDS: [&str; 3] = [typed::NOT_A_NUMBER, typed::INFINITE, typed::NEGATIVE_INFINITE];

/// Predicate over the values of an argument. It may return `true` for a value that does not match, but never `false` for
/// one that does.
pub(crate) trait ValuePredicate {
    /// Returns `true` if the value may match.
    fn may_match(&self, value: &Value) -> bool;
    /// Returns `true` if some number may match.
    fn may_match_number(&self) -> bool;
}

/// Reason why no call of a tool can match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The tool has no argument of this name; contains the names that it has at the same place.
    Name(Vec<String>),
    /// The argument cannot have a matching value.
    Value,
}

/// Proves that no call of `tool` has this argument, a name or a JSON pointer, with a value that matches `predicate`.
pub(crate) fn find_mismatch(tool: &Tool, argument: &str, predicate: &dyn ValuePredicate) -> Option<Mismatch> {
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
        if proof.excludes_path(schema, &path) {
            return Some(Mismatch::Name(proof.known_names(&path)));
        }
    }
    // A hook may set an argument that only the model must not set, if the tool knows the argument.
    let model = tool.model_check_schema();
    if let Some(schema) = &model
        && !own.iter().any(|own| Proof::of(own).names(own).contains(&path[0]))
        && Proof::of(schema).excludes_path(schema, &path)
    {
        return Some(Mismatch::Name(Proof::of(schema).known_names(&path)));
    }
    let excludes_value = |schema: &&Value| Proof::of(schema).excludes_value(schema, &path, predicate);
    own.iter().any(excludes_value).then_some(Mismatch::Value)
}

/// Proofs about one schema, with their bounds.
struct Proof<'a> {
    root: &'a Value,
    steps: Cell<u32>,
    depth: Cell<u32>,
}

impl<'a> Proof<'a> {
    fn of(root: &'a Value) -> Self {
        Self { root, steps: Cell::new(0), depth: Cell::new(0) }
    }

    /// Counts a step. Returns `false` beyond the maximum.
    fn step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.steps.get() <= MAX_STEPS
    }

    /// Returns `true` if the in-place subschemas prove a property of every valid value; `holds` decides for one subschema.
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

    /// Returns the target of a `$ref`.
    fn target(&self, fields: &Map<String, Value>) -> Option<&'a Value> {
        let pointer = fields.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(pointer)
    }

    /// Returns `true` if no valid value has a member at this path.
    fn excludes_path(&self, schema: &'a Value, path: &[String]) -> bool {
        let [name, rest @ ..] = path else { return false };
        if !self.step() {
            return false;
        }
        let Value::Object(fields) = schema else { return *schema == Value::Bool(false) };
        let property = fields.get("properties").and_then(|properties| properties.get(name));
        let below = |property: &'a Value| match property {
            Value::Bool(false) => true,
            property => {
                // In an array a number names an item.
                let is_index = |next: &String| next.bytes().all(|byte| byte.is_ascii_digit());
                let by_name = !rest.first().is_none_or(is_index) && self.excludes_path(property, rest);
                by_name || (!rest.is_empty() && self.is_scalar(property))
            }
        };
        property.map_or_else(|| is_closed(fields), below) || self.in_place(fields, &|one| self.excludes_path(one, path))
    }

    /// Returns `true` if no valid value has members or items.
    fn is_scalar(&self, schema: &'a Value) -> bool {
        let Value::Object(fields) = schema else { return false };
        let is_scalar = |kind: &Value| kind.as_str().is_some_and(|kind| kind != "object" && kind != "array");
        self.step()
            && (match fields.get("type") {
                Some(Value::Array(kinds)) => !kinds.is_empty() && kinds.iter().all(is_scalar),
                Some(kind) => is_scalar(kind),
                None => false,
            } || self.in_place(fields, &|one| self.is_scalar(one)))
    }

    /// Returns `true` if valid values may have a member at this path, but not with a matching value.
    fn excludes_value(&self, schema: &'a Value, path: &[String], predicate: &dyn ValuePredicate) -> bool {
        let (Value::Object(fields), [name, rest @ ..]) = (schema, path) else { return false };
        if !self.step() {
            return false;
        }
        let property = fields.get("properties").and_then(|properties| properties.get(name));
        // The default, valid or not, replaces an absent argument.
        let default = property.and_then(|property| property.get("default"));
        let below = |property: &'a Value| match rest {
            [] => self.never_matches(property, predicate),
            [next, ..] if next.bytes().all(|byte| byte.is_ascii_digit()) => false,
            rest => self.excludes_value(property, rest, predicate),
        };
        !default.is_some_and(|default| predicate.may_match(default))
            && (property.is_some_and(below) || self.in_place(fields, &|one| self.excludes_value(one, path, predicate)))
    }

    /// Returns `true` if no valid value matches.
    fn never_matches(&self, schema: &'a Value, predicate: &dyn ValuePredicate) -> bool {
        if !self.step() {
            return false;
        }
        let Value::Object(fields) = schema else { return *schema == Value::Bool(false) };
        let excludes = |kind: &str| match kind {
            "boolean" => !predicate.may_match(&Value::Bool(true)) && !predicate.may_match(&Value::Bool(false)),
            "null" => !predicate.may_match(&Value::Null),
            "integer" | "number" => {
                !predicate.may_match_number() && !NUMBER_WORDS.iter().any(|word| predicate.may_match(&(*word).into()))
            }
            // An array matches if one of its items does.
            "array" if !fields.contains_key("prefixItems") => {
                fields.get("items").is_some_and(|items| self.never_matches(items, predicate))
            }
            _ => false,
        };
        let by_type = match fields.get("type") {
            Some(Value::String(kind)) => excludes(kind),
            Some(Value::Array(kinds)) => {
                !kinds.is_empty() && kinds.iter().all(|kind| kind.as_str().is_some_and(excludes))
            }
            _ => false,
        };
        let excludes_all =
            |values: &Value| values.as_array().is_some_and(|all| !all.iter().any(|one| predicate.may_match(one)));
        by_type
            || fields.get("enum").is_some_and(excludes_all)
            || fields.get("const").is_some_and(|value| !predicate.may_match(value))
            || self.in_place(fields, &|one| self.never_matches(one, predicate))
    }

    /// Returns the names of members in the schema.
    fn names(&self, schema: &'a Value) -> Vec<String> {
        let (mut names, mut open) = (Vec::<String>::new(), vec![schema]);
        while let Some(fields) = open.pop().and_then(Value::as_object) {
            if !self.step() {
                break;
            }
            let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
            names.extend(properties.filter(|(_, one)| **one != Value::Bool(false)).map(|(name, _)| name.clone()));
            let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| fields.get(*keyword)?.as_array());
            open.extend(lists.flatten().filter(|one| one.is_object()).chain(self.target(fields)));
        }
        names
    }

    /// Returns the known names at the place of the path's first unknown name.
    fn known_names(&self, path: &[String]) -> Vec<String> {
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

/// Returns `true` if an object with these keywords has only the members of its `properties`.
fn is_closed(fields: &Map<String, Value>) -> bool {
    let is_false = |keyword: &str| fields.get(keyword) == Some(&Value::Bool(false));
    let by_pattern = fields.get("patternProperties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    let evaluating = ["allOf", "anyOf", "oneOf", "if", "then", "else", "not", "dependentSchemas", "dependencies"];
    let evaluating = evaluating.iter().chain(&["$ref", "$dynamicRef", "$recursiveRef", "additionalProperties"]);
    !by_pattern
        && (is_false("additionalProperties")
            || (is_false("unevaluatedProperties")
                && !evaluating.into_iter().any(|keyword| fields.contains_key(*keyword))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::tests::plain;

    /// Predicate that matches one of these texts.
    struct Texts(&'static [&'static str]);

    impl ValuePredicate for Texts {
        fn may_match(&self, value: &Value) -> bool {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            self.0.contains(&text.as_str())
        }

        fn may_match_number(&self) -> bool {
            self.0.iter().any(|text| text.parse::<f64>().is_ok())
        }
    }

    fn judged(schema: Value, argument: &str, texts: &'static [&'static str]) -> Option<Mismatch> {
        find_mismatch(&Tool { parameters: Some(schema), ..plain("t") }, argument, &Texts(texts))
    }

    fn lacks(schema: Value, argument: &str) -> bool {
        matches!(judged(schema, argument, &["x"]), Some(Mismatch::Name(_)))
    }

    #[test]
    fn what_a_closed_schema_does_not_name_is_ruled_out() {
        let closed = |extra: Value| {
            let mut schema = json!({"type": "object", "properties": {"path": {}}, "additionalProperties": false});
            schema.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            schema
        };
        assert_eq!(judged(closed(json!({})), "pth", &["x"]), Some(Mismatch::Name(vec!["path".into()])));
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
            assert_eq!(of(schema.clone(), &["fast"]), Some(Mismatch::Value), "{schema}");
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
        let proven = find_mismatch(&strict, "pth", &Texts(&["x"]));
        assert_eq!(proven, Some(Mismatch::Name(vec!["path".into()])));
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
