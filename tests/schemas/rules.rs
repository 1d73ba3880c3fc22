//! Published rules of each target, read from a definition. The keywords and limits are written down here a second time on
//! purpose.

use serde_json::{Map, Value};

type Checked = Result<(), String>;

/// Keywords of strict functions.
const OPENAI: [&str; 20] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "pattern",
    "format",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxItems",
];
/// Keywords of strict tools.
const ANTHROPIC: [&str; 17] = [
    "type",
    "title",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "allOf",
    "$ref",
    "$defs",
    "definitions",
    "default",
    "format",
    "minItems",
];
/// Keywords that the Gemini API reads.
const GEMINI: [&str; 20] = [
    "$id",
    "$defs",
    "$ref",
    "$anchor",
    "type",
    "format",
    "title",
    "description",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "anyOf",
    "oneOf",
    "properties",
    "additionalProperties",
    "required",
];
const COMPOSITION: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Name in a definition.
pub(super) fn name<'a>(target: &str, definition: &'a Value) -> &'a str {
    let holder = if target == "openai-strict" { &definition["function"] } else { definition };
    holder["name"].as_str().unwrap_or_default()
}

/// Checks a definition for a target.
pub(super) fn check(target: &str, definition: &Value) -> Checked {
    let (pattern, schema) = match target {
        "openai-strict" => ("^[A-Za-z0-9_-]{1,64}$", &definition["function"]["parameters"]),
        "anthropic" | "anthropic-strict" => ("^[A-Za-z0-9_-]{1,64}$", &definition["input_schema"]),
        "gemini" => ("^[A-Za-z_][A-Za-z0-9_.-]{0,63}$", &definition["parametersJsonSchema"]),
        _ => ("^[A-Za-z0-9_.-]{1,128}$", &definition["inputSchema"]),
    };
    let name = name(target, definition);
    require(regex::Regex::new(pattern).unwrap().is_match(name), || format!("name {name:?}"))?;
    root(schema)?;
    match target {
        "openai-strict" => {
            require(definition["type"] == "function" && definition["function"]["strict"] == true, || {
                "not strict".into()
            })?;
            openai(schema)
        }
        "anthropic" => anthropic(schema),
        "anthropic-strict" => {
            require(definition["strict"] == true, || "not strict".into())?;
            anthropic(schema)?;
            anthropic_strict(schema)
        }
        "gemini" => {
            require(definition["description"].as_str().is_some_and(|text| !text.is_empty()), || {
                "no description".into()
            })?;
            require(definition.get("parameters").is_none(), || "both kinds of parameters".into())?;
            gemini(schema)
        }
        _ => mcp(definition),
    }
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(why()) }
}

/// Rules for the root that every target has: an object, without composition, and a valid schema that references itself.
fn root(schema: &Value) -> Checked {
    require(schema["type"] == "object", || format!("the root is {}", schema["type"]))?;
    require(COMPOSITION.iter().all(|keyword| schema.get(keyword).is_none()), || "composition at the root".into())?;
    require(schema["properties"].is_object(), || "no properties".into())?;
    references(schema, schema)?;
    jsonschema::validator_for(schema).map(drop).map_err(|error| format!("not a schema: {error}"))
}

/// Every reference has a target in the schema.
fn references(root: &Value, value: &Value) -> Checked {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| references(root, item)),
        Value::Object(fields) => fields.iter().try_for_each(|(keyword, value)| match value {
            Value::String(to) if keyword == "$ref" => {
                let pointer = to.strip_prefix('#').ok_or_else(|| format!("a reference to {to}"))?;
                require(pointer.is_empty() || root.pointer(pointer).is_some(), || format!("a reference to {to}"))
            }
            value => references(root, value),
        }),
        _ => Ok(()),
    }
}

/// Check of a schema at a depth in schemas and in objects.
type Visit<'v> = dyn FnMut(&Map<String, Value>, (usize, usize)) -> Checked + 'v;

/// Calls `visit` for each schema in a schema, with its depth in schemas and in objects.
fn walk(schema: &Value, depth: (usize, usize), visit: &mut Visit<'_>) -> Checked {
    let Some(fields) = schema.as_object() else {
        return require(schema.is_boolean(), || format!("not a schema: {schema}"));
    };
    visit(fields, depth)?;
    for (keyword, value) in fields {
        let is_object = keyword == "properties";
        let below = (depth.0 + 1, depth.1 + usize::from(is_object));
        match keyword.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                let named = value.as_object().ok_or_else(|| format!("{keyword} is {value}"))?;
                named.values().try_for_each(|one| walk(one, below, visit))?;
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                let several = value.as_array().ok_or_else(|| format!("{keyword} is {value}"))?;
                require(!several.is_empty(), || format!("{keyword} is empty"))?;
                several.iter().try_for_each(|one| walk(one, below, visit))?;
            }
            "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
                walk(value, below, visit)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn known(fields: &Map<String, Value>, keywords: &[&str]) -> Checked {
    match fields.keys().find(|keyword| !keywords.contains(&keyword.as_str())) {
        Some(keyword) => Err(format!("the keyword {keyword}")),
        None => Ok(()),
    }
}

fn has_type(fields: &Map<String, Value>, kind: &str) -> bool {
    fields
        .get("type")
        .is_some_and(|stated| stated == kind || stated.as_array().is_some_and(|all| all.iter().any(|one| one == kind)))
}

/// Names of the members of an object.
fn members(fields: &Map<String, Value>) -> Vec<&String> {
    fields.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys).collect()
}

fn is_closed(fields: &Map<String, Value>) -> Checked {
    let is_closed = !has_type(fields, "object") || fields.get("additionalProperties") == Some(&Value::Bool(false));
    require(is_closed, || format!("an open object: {fields:?}"))
}

fn openai(schema: &Value) -> Checked {
    let (mut properties, mut enum_values, mut characters) = (0, 0, 0);
    walk(schema, (0, 0), &mut |fields, (_, objects)| {
        known(fields, &[&OPENAI[..], &["minItems"]].concat())?;
        require(["type", "anyOf", "$ref"].iter().any(|keyword| fields.contains_key(*keyword)), || {
            format!("no type: {fields:?}")
        })?;
        require(!fields.contains_key("$ref") || fields.len() == 1, || {
            format!("keywords beside a reference: {fields:?}")
        })?;
        require(!has_type(fields, "array") || fields.contains_key("items"), || "an array without items".into())?;
        is_closed(fields)?;
        let names = members(fields);
        let required = fields.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
        let all =
            names.len() == required.len() && names.iter().all(|name| required.contains(&Value::from(name.as_str())));
        require(!has_type(fields, "object") || all, || format!("optional members: {names:?} {required:?}"))?;
        properties += names.len();
        characters += names.iter().map(|name| name.chars().count()).sum::<usize>();
        let values = fields.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        characters += values.iter().filter_map(Value::as_str).map(|text| text.chars().count()).sum::<usize>();
        enum_values += values.len();
        require(objects <= 10, || format!("{objects} levels of objects"))
    })?;
    require(properties <= 5_000, || format!("{properties} properties"))?;
    require(enum_values <= 1_000, || format!("{enum_values} values in enum"))?;
    require(characters <= 120_000, || format!("{characters} characters"))
}

/// Rules of both modes.
fn anthropic(schema: &Value) -> Checked {
    let name = regex::Regex::new("^[A-Za-z0-9_.-]{1,64}$").unwrap();
    let names = schema["properties"].as_object().into_iter().flat_map(Map::keys);
    let refused: Vec<&String> = names.filter(|one| !name.is_match(one)).collect();
    require(refused.is_empty(), || format!("the arguments {refused:?}"))
}

fn anthropic_strict(schema: &Value) -> Checked {
    let (mut optional, mut unions) = (0, 0);
    let formats =
        ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"].map(Value::from);
    walk(schema, (0, 0), &mut |fields, _| {
        known(fields, &ANTHROPIC)?;
        is_closed(fields)?;
        require(fields.get("minItems").is_none_or(|min| *min == 0 || *min == 1), || "minItems".into())?;
        require(fields.get("format").is_none_or(|format| formats.contains(format)), || "format".into())?;
        let values = fields.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        require(values.iter().all(|value| !value.is_object() && !value.is_array()), || "values in enum".into())?;
        // The conversion follows every reference, so that none can be recursive.
        require(!fields.contains_key("$ref"), || "a reference".into())?;
        let required = fields.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        optional += members(fields).len().saturating_sub(required);
        unions += usize::from(fields.contains_key("anyOf") || fields.get("type").is_some_and(Value::is_array));
        Ok(())
    })?;
    require(optional <= 24 && unions <= 16, || format!("{optional} optional arguments, {unions} unions"))
}

fn gemini(schema: &Value) -> Checked {
    walk(schema, (0, 0), &mut |fields, _| {
        known(fields, &GEMINI)?;
        let values = fields.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        require(values.iter().all(|value| value.is_string() || value.is_number()), || "values in enum".into())?;
        require(!fields.contains_key("$ref"), || "a reference that may be recursive".into())
    })
}

fn mcp(definition: &Value) -> Checked {
    let fields = definition.as_object().ok_or("not an object")?;
    known(fields, &["name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta"])?;
    for schema in [definition.get("inputSchema"), definition.get("outputSchema")].into_iter().flatten() {
        require(schema["type"] == "object", || format!("the root is {}", schema["type"]))?;
        references(schema, schema)?;
        jsonschema::validator_for(schema).map(drop).map_err(|error| format!("not a schema: {error}"))?;
        walk(schema, (0, 0), &mut |fields, (depth, _)| {
            require(depth <= 40, || format!("a depth of {depth}"))?;
            let widths = COMPOSITION.iter().filter_map(|keyword| fields.get(*keyword)?.as_array());
            let widest = widths.map(Vec::len).max().unwrap_or_default();
            require(widest <= 64, || format!("{widest} alternatives"))
        })?;
    }
    for (hint, value) in definition.get("annotations").and_then(Value::as_object).into_iter().flatten() {
        let is_valid = match hint.as_str() {
            "title" => value.is_string(),
            "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => value.is_boolean(),
            _ => false,
        };
        require(is_valid, || format!("the annotation {hint}: {value}"))?;
    }
    Ok(())
}
