//! Arguments against a schema, before anything runs. A schema is JSON Schema 2020-12, refers only to itself, and its
//! patterns are matched in linear time.

mod cost;
mod input;
mod marks;
mod positions;
mod strict;
pub(crate) mod typed;
mod values;

use std::sync::Arc;

use serde_json::Value;

use crate::error::{Outcome, ToolError};
use crate::tool::typed::Typed;
use crate::tool::{Body, Tool};

pub(crate) use input::{Checked, Input};
use positions::everything;
pub(crate) use strict::{Strict, check_line, parse};

/// The most bytes of arguments that are read.
pub(crate) const MOST_ARGUMENT_BYTES: usize = 4 << 20;
/// The most bytes of a schema that is compiled.
pub(crate) const MOST_SCHEMA_BYTES: usize = 1 << 20;
/// Arguments from here on are checked beside the calls and not among them.
const LARGE: usize = 16 << 10;
/// How many violations are told at once, and how long each may be.
const MOST_VIOLATIONS: usize = 5;
const LONGEST_VIOLATION: usize = 300;

/// What JSON takes for white space.
pub(crate) const JSON_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// A compiled schema of arguments.
#[derive(Debug)]
pub(crate) struct Arguments {
    validator: Option<jsonschema::Validator>,
    /// The types of the function whose arguments they are, where it is one of a component's.
    types: Option<Arc<Typed>>,
    refers: bool,
}

impl Arguments {
    /// Compiles a schema; without one, any object will do.
    ///
    /// # Errors
    ///
    /// A text that says what is wrong with the schema.
    pub(crate) fn compile(schema: Option<&Value>) -> Result<Self, String> {
        let Some(schema) = schema else {
            return Ok(Self { validator: None, types: None, refers: false });
        };
        let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
        if bytes > MOST_SCHEMA_BYTES {
            return Err(format!("schema: {bytes} bytes, more than the {MOST_SCHEMA_BYTES} allowed"));
        }
        if let Some(reference) = outside_reference(schema) {
            return Err(format!("schema: `$ref` {reference:?} leads outside the schema; only `#…` is followed"));
        }
        cost::check(schema).map_err(|error| format!("schema: {error}"))?;
        let validator = jsonschema::options()
            .with_pattern_options(jsonschema::PatternOptions::regex())
            .build(schema)
            .map_err(|error| format!("schema: {error}"))?;
        Ok(Self { validator: Some(validator), types: None, refers: refers(schema) })
    }

    /// Compiles what a tool may get. Of a function, its types are the check, beside a schema that says more.
    ///
    /// # Errors
    ///
    /// See [`Arguments::compile`].
    pub(crate) fn of_tool(tool: &Tool) -> Result<Self, String> {
        let Body::Typed(function) = &tool.body else { return Self::compile(tool.parameters.as_ref()) };
        let own = tool.parameters.as_ref().filter(|schema| **schema != typed::arguments(&function.function));
        Ok(Self { types: Some(function.clone()), ..Self::compile(own)? })
    }

    /// Whether a check may cost more than a call: the arguments are large, or the schema can multiply itself.
    pub(crate) fn may_take_long(&self, text: &str) -> bool {
        (self.validator.is_some() || self.types.is_some()) && (self.refers || text.len() > LARGE)
    }

    /// Reads the text of a call's arguments, `{}` where it is empty, and checks it.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadArguments`], with every violation up to a bound.
    pub(crate) fn check(&self, text: &str) -> Result<Checked, ToolError> {
        if text.len() > MOST_ARGUMENT_BYTES {
            return Err(bad(format!(
                "arguments are {} bytes, more than the {MOST_ARGUMENT_BYTES} allowed",
                text.len()
            )));
        }
        let text = match text.trim_matches(JSON_SPACE) {
            "" => "{}",
            text => text,
        };
        let value = parse(text).map_err(|error| bad(format!("arguments are not valid JSON: {error}")))?;
        self.check_value(&value)?;
        Ok(Checked { text: text.to_owned(), value })
    }

    /// Checks arguments that were read already.
    ///
    /// # Errors
    ///
    /// See [`Arguments::check`].
    pub(crate) fn check_value(&self, value: &Value) -> Result<(), ToolError> {
        if !value.is_object() {
            return Err(bad("arguments must be a JSON object".into()));
        }
        self.violations(value).map_or(Ok(()), |violations| Err(bad(format!("invalid arguments: {violations}"))))
    }

    /// What breaks the schema in a value, if anything does.
    pub(crate) fn violations(&self, value: &Value) -> Option<String> {
        if let (Some(types), Some(arguments)) = (&self.types, value.as_object())
            && let Err(why) = typed::check(&types.function, arguments)
        {
            return Some(why);
        }
        let validator = self.validator.as_ref().filter(|validator| !validator.is_valid(value))?;
        Some(violations(validator, value))
    }
}

fn bad(message: String) -> ToolError {
    ToolError::new(Outcome::BadArguments, message)
}

fn violations(validator: &jsonschema::Validator, value: &Value) -> String {
    let mut told = Vec::new();
    let mut more = "";
    for error in validator.iter_errors(value) {
        if told.len() == MOST_VIOLATIONS {
            more = "; and more";
            break;
        }
        let mut text = error.to_string();
        if text.len() > LONGEST_VIOLATION {
            text = error.masked().to_string();
        }
        let at = error.instance_path().to_string();
        if matches!(error.kind(), jsonschema::error::ValidationErrorKind::FalseSchema) {
            text = "only the host may set this field".to_owned();
        }
        let text = if at.is_empty() { text } else { format!("{at}: {text}") };
        told.push(match text.char_indices().nth(LONGEST_VIOLATION) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        });
    }
    format!("{}{more}", told.join("; "))
}

/// The first reference that leaves the schema.
fn outside_reference(schema: &Value) -> Option<&str> {
    references(schema).find(|reference| !reference.starts_with('#'))
}

fn refers(schema: &Value) -> bool {
    references(schema).next().is_some()
}

/// Every reference, wherever it could stand; one inside an `enum` or `const` counts too, which costs nobody a sensible
/// schema.
fn references(schema: &Value) -> impl Iterator<Item = &str> {
    let keywords = ["$ref", "$dynamicRef", "$recursiveRef"];
    everything(schema).flat_map(move |value| keywords.map(|keyword| value.get(keyword)?.as_str())).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: Value, text: &str) -> Result<String, String> {
        let arguments = Arguments::compile(Some(&schema)).unwrap();
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
            let error = Arguments::compile(Some(&json!({"properties": {"a": {"$ref": reference}}}))).unwrap_err();
            assert!(error.contains(reference), "{error}");
        }
    }

    #[test]
    fn a_schema_that_could_be_checked_for_ever_does_not_compile() {
        let schema = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        let error = Arguments::compile(Some(&schema)).unwrap_err();
        assert_eq!(error, "schema: a reference in it leads back to itself for one value");
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
}
