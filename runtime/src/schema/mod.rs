//! Arguments against a schema, before anything runs. A schema is JSON Schema 2020-12, refers only to itself, and its
//! patterns are matched in linear time.

mod clock;
mod closed;
mod cost;
mod input;
mod marks;
mod pattern;
mod positions;
pub(crate) mod typed;
mod values;
mod watched;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::error::{Outcome, ToolError};
use crate::tool::typed::Typed;
use crate::tool::{Body, Tool};

use clock::within_steps;
pub(crate) use clock::{Clock, step, watched};
pub(crate) use closed::{RuledOut, Wanted, ruled_out};
pub(crate) use input::{Checked, Input};
use pattern::MAX_COMPILED_NAME;
use positions::{Positions, everything};
pub(crate) use toolcrib_component::json::{Strict, check_line, parse};
use watched::Watched;

/// The most bytes of arguments that are read.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 4 << 20;
/// The most bytes of a schema that is compiled.
pub(crate) const MAX_SCHEMA_BYTES: usize = 1 << 20;
/// Texts from here on are looked at beside the calls and not among them.
pub(crate) const LARGE: usize = 16 << 10;
/// How many violations are told at once, and how long each may be.
const MAX_VIOLATIONS: usize = 5;
const MAX_VIOLATION_LEN: usize = 300;
/// The most steps that are taken to find all violations and not only the first.
const MAX_VIOLATION_STEPS: u64 = 200_000;
/// The most bytes of a member's name that is held against the patterns of names, each of which is matched in one go.
const MAX_MATCHED_NAME: usize = 512;
/// The most faults of one schema that are told.
const MAX_FAULTS: usize = 100;

/// What JSON takes for white space.
pub(crate) const JSON_SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Something wrong in a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The JSON pointer to the part of the schema that is wrong, empty for the whole.
    pub(crate) pointer: String,
    message: String,
}

impl Fault {
    fn of(error: &jsonschema::ValidationError<'_>) -> Self {
        let mut message = error.to_string();
        if message.len() > MAX_VIOLATION_LEN {
            message = error.masked().to_string();
        }
        Self { pointer: error.instance_path().to_string(), message }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => write!(f, "schema: {}", self.message),
            pointer => write!(f, "schema: at `{pointer}`: {}", self.message),
        }
    }
}

/// Everything in a schema that its own standard does not allow, up to a bound.
pub(crate) fn faults(schema: &Value) -> Vec<Fault> {
    let Ok(standard) = jsonschema::meta::validator_for(schema) else { return Vec::new() };
    standard.iter_errors(schema).take(MAX_FAULTS).map(|error| Fault::of(&error)).collect()
}

/// A compiled schema of arguments.
#[derive(Debug)]
pub(crate) struct Arguments {
    validator: Option<jsonschema::Validator<Watched>>,
    /// The types of the function whose arguments they are, where it is one of a component's.
    types: Option<Arc<Typed>>,
    /// True where names of members are held against patterns.
    matches_names: bool,
}

impl Arguments {
    /// Compiles a schema; without one, any object will do.
    ///
    /// # Errors
    ///
    /// A text that says what is wrong with the schema.
    pub(crate) fn compile(schema: Option<&Value>) -> Result<Self, String> {
        let Some(schema) = schema else {
            return Ok(Self { validator: None, types: None, matches_names: false });
        };
        let bytes = serde_json::to_vec(schema).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!("schema: {bytes} bytes, more than the {MAX_SCHEMA_BYTES} allowed"));
        }
        if let Some(reference) = outside_reference(schema) {
            return Err(format!("schema: `$ref` {reference:?} leads outside the schema; only `#…` is followed"));
        }
        let positions = Positions::of(schema);
        cost::check(schema, &positions).map_err(|error| format!("schema: {error}"))?;
        let patterns = pattern::compile(&positions).map_err(|error| format!("schema: {error}"))?;
        let matches_names = positions.nodes().iter().any(|node| node.schema.get("patternProperties").is_some());
        let names = jsonschema::PatternOptions::regex().size_limit(MAX_COMPILED_NAME);
        let validator = jsonschema::options_for::<Watched>()
            .with_pattern_options(names)
            .with_keyword("pattern", move |_, written, _| pattern::keyword(&patterns, written))
            .build(schema)
            .map_err(|error| Fault::of(&error).to_string())?;
        Ok(Self { validator: Some(validator), types: None, matches_names })
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

    /// Reads the text of a call's arguments, `{}` where it is empty, and checks it.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadArguments`], with every violation up to a bound.
    pub(crate) fn check(&self, text: &str) -> Result<Checked, ToolError> {
        if text.len() > MAX_ARGUMENT_BYTES {
            return Err(bad(format!("arguments are {} bytes, more than the {MAX_ARGUMENT_BYTES} allowed", text.len())));
        }
        let text = match text.trim_matches(JSON_SPACE) {
            "" => "{}",
            text => text,
        };
        let value = parse(text).map_err(|error| bad(format!("arguments are not valid JSON: {error}")))?;
        self.check_value(&value)?;
        Ok(Checked { text: text.to_owned(), value: Arc::new(value) })
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
        let validator = self.validator.as_ref()?;
        if self.matches_names
            && let Some(long) = long_name(value)
        {
            return Some(format!(
                "a name in it has {long} bytes, more than the {MAX_MATCHED_NAME} that a pattern takes"
            ));
        }
        (!validator.is_valid(value)).then(|| violations(validator, value))
    }
}

/// The length of a member's name that no pattern is tried on.
fn long_name(value: &Value) -> Option<usize> {
    let mut names = everything(value).filter_map(Value::as_object).flat_map(serde_json::Map::keys).map(String::len);
    names.find(|length| *length > MAX_MATCHED_NAME || !step(1)).filter(|length| *length > MAX_MATCHED_NAME)
}

fn bad(message: String) -> ToolError {
    ToolError::new(Outcome::BadArguments, message)
}

fn violations(validator: &jsonschema::Validator<Watched>, value: &Value) -> String {
    let several = || told(validator.iter_errors(value));
    // Where there may be a great many, the first has to do.
    let one = |_| validator.validate(value).err().map(|error| told(std::iter::once(error)) + "; there may be more");
    let found = within_steps(MAX_VIOLATION_STEPS, several).map_or_else(one, Some);
    found.unwrap_or_default()
}

fn told<'e>(errors: impl Iterator<Item = jsonschema::ValidationError<'e>>) -> String {
    let mut told = Vec::new();
    let mut more = "";
    for error in errors {
        if told.len() == MAX_VIOLATIONS {
            more = "; and more";
            break;
        }
        let mut text = error.to_string();
        if text.len() > MAX_VIOLATION_LEN {
            text = error.masked().to_string();
        }
        let at = error.instance_path().to_string();
        if matches!(error.kind(), jsonschema::error::ValidationErrorKind::FalseSchema) {
            text = "only the host may set this field".to_owned();
        }
        let text = if at.is_empty() { text } else { format!("{at}: {text}") };
        told.push(match text.char_indices().nth(MAX_VIOLATION_LEN) {
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
