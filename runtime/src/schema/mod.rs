//! Validation of tool arguments and results before and after a call. Schemas are JSON Schema 2020-12, contain only
//! references to themselves, and use patterns that are matched in linear time.

mod annotations;
mod bounded;
mod clock;
mod cost;
mod defaults;
mod graph;
mod members;
mod mending;
mod metered;
mod mismatch;
mod pattern;
pub(crate) mod typed;
mod validator;
mod values;
mod violation;

use std::sync::Arc;

use serde_json::Value;

use crate::error::{Outcome, ToolError};
use crate::tool::typed::Typed;
use crate::tool::{Body, Tool};

pub(crate) use bounded::text_within;
pub(crate) use clock::{Clock, step, with_clock};
pub(crate) use defaults::{RefusedDefault, refused_defaults};
use graph::{SchemaGraph, objects, outside_reference};
pub(crate) use members::Members;
use mending::Shape;
use metered::MeteredJson;
pub(crate) use mismatch::{Mismatch, ValuePredicate, find_mismatch};
use pattern::MAX_AUTOMATON;
pub(crate) use toolcrib_foundation::json::{StrictValue, check_line, parse};
pub(crate) use validator::{CheckedArguments, ToolValidator};
pub(crate) use violation::schema_errors;
use violation::{SchemaError, describe_violations};

/// Maximum size of arguments in bytes.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 4 << 20;
/// Maximum size of a schema in bytes.
pub(crate) const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// Maximum size in bytes of a text that is processed inline. Larger texts are processed on a blocking thread.
pub(crate) const MAX_INLINE_BYTES: usize = 16 << 10;
/// Maximum length in bytes of a member's name that is matched against `patternProperties`. A single match cannot be
/// interrupted.
const MAX_MATCHED_NAME: usize = 512;

/// White space in JSON.
pub(crate) const JSON_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Compiled schema for arguments or a result.
#[derive(Debug)]
pub(crate) struct CompiledSchema {
    validator: Option<jsonschema::Validator<MeteredJson>>,
    /// Function of the tool, if its WIT types belong to the check.
    types: Option<Arc<Typed>>,
    /// `true` if the schema has patterns for names of members.
    matches_names: bool,
    /// Spellings that are replaced in arguments; `None` for a result, or if there are none.
    shape: Option<Shape>,
}

impl CompiledSchema {
    /// Compiles a schema. Without a schema, every object is valid.
    ///
    /// # Errors
    ///
    /// A message that describes the error in the schema.
    pub(crate) fn compile(schema: Option<&Value>) -> Result<Self, String> {
        let Some(schema) = schema else {
            return Ok(Self { validator: None, types: None, matches_names: false, shape: None });
        };
        let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!("schema: {bytes} bytes, more than the {MAX_SCHEMA_BYTES} allowed"));
        }
        if let Some(reference) = outside_reference(schema) {
            return Err(format!("schema: `$ref` {reference:?} leads outside the schema; only `#…` is followed"));
        }
        let graph = SchemaGraph::of(schema);
        cost::check(schema, &graph).map_err(|error| format!("schema: {error}"))?;
        let patterns = pattern::compile(&graph).map_err(|error| format!("schema: {error}"))?;
        let matches_names = graph.nodes().iter().any(|node| node.schema.get("patternProperties").is_some());
        let name_patterns = jsonschema::PatternOptions::regex().size_limit(MAX_AUTOMATON);
        let validator = jsonschema::options_for::<MeteredJson>()
            .with_pattern_options(name_patterns)
            .with_keyword("pattern", move |_, written, _| pattern::keyword(&patterns, written))
            .build(schema)
            .map_err(|error| SchemaError::of(&error).to_string())?;
        Ok(Self { validator: Some(validator), types: None, matches_names, shape: None })
    }

    /// Compiles the schema of the arguments that a tool receives. For an exported function its types are checked, and its
    /// schema only if it differs from the one that the types generate.
    ///
    /// # Errors
    ///
    /// See [`CompiledSchema::compile`].
    pub(crate) fn of_parameters(tool: &Tool) -> Result<Self, String> {
        let shape = tool.parameters.as_ref().and_then(Shape::of);
        let Body::Typed(function) = &tool.body else {
            return Ok(Self { shape, ..Self::compile(tool.parameters.as_ref())? });
        };
        let own = tool.parameters.as_ref().filter(|schema| **schema != typed::arguments(&function.function));
        let shape = Some(Shape::of_function(shape, &function.function));
        Ok(Self { types: Some(function.clone()), shape, ..Self::compile(own)? })
    }

    /// Parses and checks the text of a call's arguments, and replaces spellings that are certain: see [`mending`]. An empty text
    /// means `{}`.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadArguments`] with all violations up to a limit.
    pub(crate) fn check(&self, text: &str) -> Result<CheckedArguments, ToolError> {
        if text.len() > MAX_ARGUMENT_BYTES {
            let bytes = text.len();
            return Err(bad_arguments(format!(
                "arguments are {bytes} bytes, more than the {MAX_ARGUMENT_BYTES} allowed"
            )));
        }
        let text = match text.trim_matches(JSON_SPACE) {
            "" => "{}",
            text => text,
        };
        let invalid = |error| bad_arguments(format!("arguments are not valid JSON: {error}"));
        let mut value = parse(text).map_err(invalid)?;
        let mended = self.shape.as_ref().and_then(|shape| shape.mend(&value, text));
        if let Some(text) = &mended {
            value = parse(text).map_err(invalid)?;
        }
        self.check_value(&value)?;
        Ok(CheckedArguments { text: mended.unwrap_or_else(|| text.to_owned()), value: Arc::new(value) })
    }

    /// Checks parsed arguments.
    ///
    /// # Errors
    ///
    /// See [`CompiledSchema::check`].
    pub(crate) fn check_value(&self, value: &Value) -> Result<(), ToolError> {
        if !value.is_object() {
            return Err(bad_arguments("arguments must be a JSON object".into()));
        }
        match self.violations(value) {
            Some(violations) => Err(bad_arguments(format!("invalid arguments: {violations}"))),
            None => Ok(()),
        }
    }

    /// Describes how a value violates the schema; `None` if it is valid.
    pub(crate) fn violations(&self, value: &Value) -> Option<String> {
        if let (Some(types), Some(arguments)) = (&self.types, value.as_object())
            && let Err(violation) = typed::check(&types.function, arguments)
        {
            return Some(violation);
        }
        let validator = self.validator.as_ref()?;
        if self.matches_names
            && let Some(bytes) = overlong_name(value)
        {
            return Some(format!(
                "a name in it has {bytes} bytes, more than the {MAX_MATCHED_NAME} that a pattern takes"
            ));
        }
        (!validator.is_valid(value)).then(|| describe_violations(validator, value))
    }
}

/// Returns the length of the first member name that is too long for patterns.
fn overlong_name(value: &Value) -> Option<usize> {
    let mut lengths = objects(value).filter_map(Value::as_object).flat_map(serde_json::Map::keys).map(String::len);
    lengths.find(|length| *length > MAX_MATCHED_NAME || !step(1)).filter(|length| *length > MAX_MATCHED_NAME)
}

fn bad_arguments(message: String) -> ToolError {
    ToolError::new(Outcome::BadArguments, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: Value, text: &str) -> Result<String, String> {
        let arguments = CompiledSchema::compile(Some(&schema)).unwrap();
        arguments.check(text).map(|checked| checked.text).map_err(|error| error.message)
    }

    #[test]
    fn arguments_pass_byte_for_byte() {
        assert_eq!(check(json!({}), " {\"a\":  1.0}\n").unwrap(), "{\"a\":  1.0}");
        assert_eq!(check(json!({}), "").unwrap(), "{}");
    }

    #[test]
    fn a_violation_names_its_place() {
        let schema =
            json!({"properties": {"n": {"type": "integer"}}, "required": ["m"], "additionalProperties": false});
        let message = check(schema, r#"{"n":"x","o":1}"#).unwrap_err();
        for part in ["/n: \"x\" is not of type \"integer\"", "\"m\" is a required property", "'o' was unexpected"] {
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn what_is_not_an_object_is_refused() {
        for text in ["[]", "1", "null", "{", "{} {}", "{\"a\":NaN}", "{\"a\":1e999}", r#"{"a":"\ud800"}"#] {
            assert!(check(json!({}), text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_reference_outside_is_refused_and_never_fetched() {
        for reference in ["http://127.0.0.1:1/x", "file:///etc/passwd", "other.json#/x"] {
            let error = CompiledSchema::compile(Some(&json!({"properties": {"a": {"$ref": reference}}}))).unwrap_err();
            assert!(error.contains(reference), "{error}");
        }
    }

    #[test]
    fn a_schema_that_could_be_checked_for_ever_does_not_compile() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        let error = CompiledSchema::compile(Some(&schema)).unwrap_err();
        assert_eq!(error, "schema: its references form a cycle for one value");
    }

    #[test]
    fn the_deepest_value_against_the_longest_chain_of_references_leaves_stack() {
        let deep = |leaf: &str| format!("{}{leaf}{}", r#"{"a":"#.repeat(126), "}".repeat(126));
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let link = |n: usize| (format!("d{n}"), json!({keyword: [{"$ref": format!("#/$defs/d{}", n + 1)}]}));
            let mut defs: serde_json::Map<_, _> = (0..15).map(link).collect();
            defs.insert("d15".into(), json!({"type": "object", "additionalProperties": {"$ref": "#/$defs/d0"}}));
            let schema = json!({"$ref": "#/$defs/d0", "$defs": defs});
            check(schema.clone(), &deep("{}")).unwrap();
            check(schema, &deep("1")).unwrap_err();
        }
    }

    #[test]
    fn a_pattern_made_to_backtrack_is_matched_in_linear_time() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}}});
        let text = format!(r#"{{"a":"{}b"}}"#, "a".repeat(50_000));
        assert!(check(schema, &text).is_err());
    }

    #[test]
    fn a_name_too_long_for_a_pattern_is_refused() {
        let schema = json!({"patternProperties": {"^a": {"type": "integer"}}});
        let named = |length: usize| format!(r#"{{"{}":1}}"#, "a".repeat(length));
        check(schema.clone(), &named(512)).unwrap();
        let error = check(schema, &named(513)).unwrap_err();
        assert!(error.contains("a name in it has 513 bytes, more than the 512 that a pattern takes"), "{error}");
        check(json!({"propertyNames": {"pattern": "^a"}}), &named(100_000)).unwrap();
    }

    #[test]
    fn of_very_many_violations_the_first_is_told() {
        let schema = json!({"properties": {"a": {"items": {"type": "string"}}}});
        let error = check(schema, &json!({"a": vec![1; 400_000]}).to_string()).unwrap_err();
        assert!(error.contains("/a/0: 1 is not of type \"string\"; there may be more"), "{error}");
    }
}
