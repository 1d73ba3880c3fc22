//! Tools of Anthropic's messages API, without and with its strict mode. The rules come from its pages on tool
//! definitions and on the limitations of structured outputs.

use serde_json::{Map, Value, json};
use toolcrib::Tool;

use super::brief::brief;
use super::notes::{Notes, below};
use super::strict::{self, Subset};
use super::{Definition, NameRule, Unsupported, mcp};

/// Rule of the API for names.
pub const NAME_RULE: NameRule = NameRule { max: 64, further: &[], starts_with_letter: false };
/// Maximum number of strict tools in one request.
const MAX_STRICT_TOOLS: usize = 20;
/// Maximum number of optional arguments in all strict tools in a request.
const MAX_OPTIONAL: usize = 24;
/// Maximum number of arguments with several types in all strict tools in a request.
const MAX_UNIONS: usize = 16;

const SUBSET: Subset = Subset {
    keywords: &["default"],
    formats: Some(&["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]),
    is_enum_value: |value| !value.is_object() && !value.is_array(),
    has_const: true,
    max_min_items: 1,
    closes_objects: true,
    requires_all: false,
    is_recursive: false,
    has_tuples: false,
    is_property_name,
};

/// Returns `true` for names that an argument may have.
fn is_property_name(name: &str) -> bool {
    NameRule { further: &['.'], ..NAME_RULE }.accepts(name)
}

/// Returns a tool.
///
/// # Errors
///
/// [`Unsupported`] if the input schema cannot be stated.
pub fn tool(tool: &Tool, name: &str) -> Result<Definition, Unsupported> {
    let mut notes = Notes::default();
    let mut schema = mcp::input_schema(tool, &mut notes)?;
    drop_names(&mut schema, &mut notes)?;
    Ok(Definition { value: stated(tool, name, brief(schema), false), notes: notes.finish() })
}

/// Returns a tool in strict mode.
///
/// # Errors
///
/// [`Unsupported`] if strict mode cannot state the tool.
pub fn strict_tool(tool: &Tool, name: &str) -> Result<Definition, Unsupported> {
    let mut notes = Notes::default();
    let schema = tool.model_input_schema();
    let any_object = json!({ "type": "object" });
    let schema = strict::convert(schema.as_deref().unwrap_or(&any_object), &SUBSET, &mut notes)?;
    let (optional, unions) = counts(&schema);
    let limits = [("optional arguments", optional, MAX_OPTIONAL), ("arguments of several types", unions, MAX_UNIONS)];
    if let Some((of, found, max)) = limits.iter().find(|(_, found, max)| found > max) {
        return Err(Unsupported::new(format!("its schema has {found} {of}, more than the {max} of strict mode")));
    }
    Ok(Definition { value: stated(tool, name, schema, true), notes: notes.finish() })
}

/// Returns sentences about limits that several strict tools exceed together in one request.
pub fn exceeded_together(definitions: &[&Value]) -> Vec<String> {
    let all = definitions.iter().map(|definition| counts(&definition["input_schema"]));
    let (optional, unions) = all.fold((0_usize, 0_usize), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let limits = [
        ("strict tools", definitions.len(), MAX_STRICT_TOOLS),
        ("optional arguments", optional, MAX_OPTIONAL),
        ("arguments of several types", unions, MAX_UNIONS),
    ];
    let exceeded = limits.iter().filter(|(_, found, max)| found > max);
    let sentence = |(of, found, max): &(&str, usize, usize)| {
        format!("{found} {of}, and one request may have {max}: name fewer tools, or use `--for anthropic`")
    };
    exceeded.map(sentence).collect()
}

fn stated(tool: &Tool, name: &str, schema: Value, is_strict: bool) -> Value {
    let mut fields = Map::from_iter([("name".to_owned(), json!(name))]);
    fields.extend(tool.description.as_ref().map(|text| ("description".to_owned(), json!(text))));
    fields.insert("input_schema".to_owned(), schema);
    if is_strict {
        fields.insert("strict".to_owned(), json!(true));
    }
    Value::Object(fields)
}

/// Removes optional arguments with names that the API refuses.
fn drop_names(schema: &mut Value, notes: &mut Notes) -> Result<(), Unsupported> {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return Ok(()) };
    let refused: Vec<String> = properties.keys().filter(|name| !is_property_name(name)).cloned().collect();
    for name in refused {
        if required.contains(&json!(name)) {
            return Err(Unsupported::new(format!("the API refuses the name of its required argument {name:?}")));
        }
        properties.shift_remove(&name);
        notes.add(&below("/properties", &name), "this optional argument is left out: the API refuses its name");
    }
    Ok(())
}

/// Returns the number of optional arguments, and the number with several types.
fn counts(schema: &Value) -> (usize, usize) {
    let (mut optional, mut unions) = (0, 0);
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let is_union = schema.get("anyOf").is_some() || schema.get("type").is_some_and(Value::is_array);
        unions += usize::from(is_union);
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
        optional += properties.map_or(0, |named| named.len().saturating_sub(required));
        open.extend(properties.into_iter().flat_map(|named| named.values()));
        open.extend(schema.get("items"));
        open.extend(schema.get("anyOf").and_then(Value::as_array).into_iter().flatten());
    }
    (optional, unions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(schema: Value) -> Result<(Value, Vec<String>), String> {
        let mut notes = Notes::default();
        let schema = strict::convert(&schema, &SUBSET, &mut notes).map_err(|error| error.to_string())?;
        Ok((schema, notes.finish()))
    }

    #[test]
    fn strict_mode_loses_nothing_in_silence() {
        let (schema, notes) = converted(json!({
            "type": "object", "required": ["list"],
            "properties": {
                "list": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 3, "maxItems": 4},
                "mode": {"enum": ["a", {"b": 1}], "default": "a"},
            },
        }))
        .unwrap();
        let list = json!({"type": "array", "minItems": 1, "items": {"type": "string"}});
        assert_eq!(schema["properties"]["list"], list);
        assert_eq!((&schema["additionalProperties"], &schema["required"]), (&json!(false), &json!(["list"])));
        for place in ["`#`: objects are closed", "minItems`: lowered from 3 to 1", "maxItems", "maxLength"] {
            assert!(notes.iter().any(|note| note.contains(place)), "{place}: {notes:?}");
        }
        assert!(notes.iter().any(|note| note.contains("#/properties/mode")), "{notes:?}");
    }

    #[test]
    fn a_schema_that_contains_itself_is_left_out_where_it_is_optional() {
        let node = json!({"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/n"}}});
        let (schema, notes) =
            converted(json!({"properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}})).unwrap();
        assert_eq!(schema["properties"]["n"]["properties"], json!({"v": {"type": "integer"}}));
        assert!(notes.iter().any(|note| note.contains("contains itself")), "{notes:?}");
        let endless = json!({"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"]});
        converted(json!({"properties": {"n": {"$ref": "#/$defs/n"}}, "required": ["n"], "$defs": {"n": endless}}))
            .unwrap_err();
    }

    #[test]
    fn limits_of_a_request_are_counted_over_all_tools() {
        let optional: Map<_, _> = (0..13).map(|n| (format!("p{n}"), json!({"type": ["string", "null"]}))).collect();
        let one = json!({"input_schema": {"type": "object", "properties": optional}});
        assert!(exceeded_together(&[&one]).is_empty());
        let two = exceeded_together(&[&one, &one]);
        assert_eq!(two.len(), 2, "{two:?}");
        assert!(two[0].starts_with("26 optional arguments, and one request may have 24"), "{two:?}");
        let plain = json!({"input_schema": {}});
        let many = exceeded_together(&[&plain; MAX_STRICT_TOOLS + 1]);
        assert!(many[0].starts_with("21 strict tools"), "{many:?}");
    }

    #[test]
    fn an_argument_with_a_refused_name_is_left_out() {
        let mut notes = Notes::default();
        let mut schema = json!({"type": "object", "properties": {"a b": {}, "c.d": {}}});
        drop_names(&mut schema, &mut notes).unwrap();
        assert_eq!(schema["properties"], json!({"c.d": {}}));
        assert_eq!(notes.finish().len(), 1);
        let mut schema = json!({"properties": {"a b": {}}, "required": ["a b"]});
        drop_names(&mut schema, &mut Notes::default()).unwrap_err();
    }
}
