//! Argument defaults that the schema of their own argument refuses. A default describes an argument to a model, and the
//! SDK sets it: the author learns here what a call would refuse.

use serde_json::{Map, Value};

use super::CompiledSchema;
use super::clock::with_step_limit;
use super::violation::MAX_VIOLATION_STEPS;

/// Maximum number of defaults that are checked.
const MAX_DEFAULTS: usize = 256;
/// Parts of the schema for all arguments that count for one argument's schema.
const PARTS: [&str; 3] = ["properties", "$defs", "definitions"];

/// Default that its schema refuses.
pub(crate) struct RefusedDefault {
    /// JSON pointer to the default in the schema.
    pub(crate) pointer: String,
    pub(crate) message: String,
}

/// Returns the defaults of arguments that are not valid. `null` stands for an argument that is left out.
pub(crate) fn refused_defaults(schema: &Value) -> Vec<RefusedDefault> {
    let properties = schema.get(PARTS[0]).and_then(Value::as_object);
    let named = properties.into_iter().flatten().filter_map(|(name, property)| Some((name, property.get("default")?)));
    let defaults: Vec<_> = named.filter(|(_, default)| !default.is_null()).take(MAX_DEFAULTS).collect();
    if defaults.is_empty() {
        return Vec::new();
    }
    let part = |part: &str| Some((part.to_owned(), schema.get(part)?.clone()));
    let parts = Value::Object(PARTS.into_iter().filter_map(part).collect());
    // A schema that does not compile has its own error.
    let Ok(compiled) = CompiledSchema::compile(Some(&parts)) else { return Vec::new() };
    let refused = |(name, default): (&String, &Value)| {
        let arguments = Value::Object(Map::from_iter([(name.clone(), default.clone())]));
        let violations = with_step_limit(MAX_VIOLATION_STEPS, || compiled.violations(&arguments)).ok()??;
        let pointer = format!("/{}/{}/default", PARTS[0], name.replace('~', "~0").replace('/', "~1"));
        let message = format!("schema: the default of an argument is not valid: {violations}");
        Some(RefusedDefault { pointer, message })
    };
    defaults.into_iter().filter_map(refused).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_default_is_checked_by_the_schema_of_its_argument() {
        let schema = json!({
            "properties": {
                "a": {"type": "integer", "default": "x"},
                "b/c": {"$ref": "#/$defs/mode", "default": "fats"},
                "d": {"$ref": "#/$defs/mode", "default": "fast"},
                "e": {"type": "string", "default": null},
                "f": {"type": "integer", "maximum": 3, "default": 4},
                "g": true,
            },
            "$defs": {"mode": {"enum": ["fast", "slow"]}},
            "required": ["g"],
        });
        let refused = refused_defaults(&schema);
        let pointers: Vec<_> = refused.iter().map(|refused| refused.pointer.as_str()).collect();
        assert_eq!(pointers, ["/properties/a/default", "/properties/b~1c/default", "/properties/f/default"]);
        assert!(refused[0].message.contains("/a: \"x\" is not of type \"integer\""), "{}", refused[0].message);
        for schema in [json!({}), json!(true), json!({"properties": {"a": {"type": "strin", "default": 1}}})] {
            assert!(refused_defaults(&schema).is_empty(), "{schema}");
        }
    }
}
