//! Tools of the Model Context Protocol: the object that a server lists, for the revisions 2025-11-25 and 2026-07-28. In the earlier
//! one, the root of an input schema is an object without composition, because clients pass it on to model APIs that refuse any
//! other. The later one allows composition there.

use serde_json::{Map, Value, json};
use toolcrib::Tool;
use toolcrib::tool::{Basis, Fact};

use super::merge::object_root;
use super::notes::Notes;
use super::reference::{relocate, resolve};
use super::{Definition, NameRule, Unsupported, limits};

/// Rule of the protocol for names.
pub const NAME_RULE: NameRule = NameRule { max: 128, further: &['.'], starts_with_letter: false };
/// Property that holds a result that is not an object.
pub const RESULT: &str = "result";
/// Property that refers to a result that is too long to be returned. It is `null` if the result was not stored.
pub const STORED: &str = "storedResult";
/// Key of the annotations' basis in `_meta`.
const BASIS_KEY: &str = "toolcrib/annotations";

/// Maximum number of schemas that are read to find a result's type.
const MAX_STEPS: usize = 500;

/// Schema of structured results.
#[derive(Debug, Clone)]
pub struct OutputSchema {
    /// Schema with an object as its root.
    pub(crate) schema: Value,
    /// `true` if the result is the property [`RESULT`] of the structured content, and not the structured content itself.
    pub is_wrapped: bool,
    /// Differences from the tool's own schema.
    pub(crate) notes: Vec<String>,
}

/// Returns the tool as a server lists it, under its name for the protocol.
///
/// # Errors
///
/// [`Unsupported`] if the input schema cannot be stated. An output schema that cannot be stated is left out.
pub fn definition(tool: &Tool, name: &str) -> Result<Definition, Unsupported> {
    let mut notes = Notes::default();
    let mut fields = Map::new();
    fields.insert("name".to_owned(), json!(name));
    let title = tool.interface.identity.user_facing_name.value.as_ref();
    fields.extend(title.map(|title| ("title".to_owned(), json!(title))));
    fields.extend(tool.description.as_ref().map(|text| ("description".to_owned(), json!(text))));
    fields.insert("inputSchema".to_owned(), input_schema(tool, &mut notes)?);
    let mut notes = notes.finish();
    match output_schema(tool) {
        Ok(Some(output)) => {
            if output.is_wrapped {
                notes.push(format!("a result that is not an object becomes the property `{RESULT}` of one"));
            }
            notes.push(format!("a result that is too long is replaced by its address, the property `{STORED}`"));
            notes.extend(output.notes.iter().map(|note| format!("output schema: {note}")));
            fields.insert("outputSchema".to_owned(), output.schema);
        }
        Ok(None) => {}
        Err(reason) => notes.push(format!("the output schema is left out: {reason}")),
    }
    let (annotations, basis) = annotations(tool);
    if !annotations.is_empty() {
        fields.insert("annotations".to_owned(), Value::Object(annotations));
    }
    if !basis.is_empty() {
        fields.insert("_meta".to_owned(), json!({ BASIS_KEY: basis }));
    }
    Ok(Definition { value: Value::Object(fields), notes })
}

/// Returns the schema of the arguments.
///
/// # Errors
///
/// [`Unsupported`] if the schema accepts no object, is too large, or references another.
pub(super) fn input_schema(tool: &Tool, notes: &mut Notes) -> Result<Value, Unsupported> {
    match tool.model_input_schema() {
        Some(schema) => {
            limits::check_size(&schema)?;
            let root = object_root(&schema, notes)?;
            Ok(without_foreign_dialect(limits::bound(Value::Object(root), notes)?, notes))
        }
        None => Ok(json!({ "type": "object", "properties": {} })),
    }
}

/// Returns the schema of the arguments with the composition at its root; `None` if there is none, or the schema cannot be stated.
pub fn composed_input(tool: &Tool) -> Option<Value> {
    let schema = tool.model_input_schema()?;
    if !["$ref", "allOf", "anyOf", "oneOf"].iter().any(|keyword| schema.get(keyword).is_some()) {
        return None;
    }
    let mut notes = Notes::default();
    let mut schema = without_foreign_dialect(limits::bound(schema.into_owned(), &mut notes).ok()?, &mut notes);
    schema.as_object_mut()?.insert("type".to_owned(), json!("object"));
    Some(schema)
}

/// Returns the schema of structured results; `None` if the tool has none.
///
/// # Errors
///
/// [`Unsupported`] if the schema is too large, or references another.
pub fn output_schema(tool: &Tool) -> Result<Option<OutputSchema>, Unsupported> {
    let Some(schema) = &tool.interface.schemas.output_schema.value else { return Ok(None) };
    let mut notes = Notes::default();
    let mut schema = without_foreign_dialect(limits::bound(schema.clone(), &mut notes)?, &mut notes);
    let is_object = is_object(&schema, &schema, &mut 0);
    match &mut schema {
        Value::Object(fields) if is_object => {
            fields.insert("type".to_owned(), json!("object"));
        }
        _ => {
            relocate(&mut schema, &format!("/properties/{RESULT}"));
            schema = json!({ "type": "object", "properties": { RESULT: schema }, "required": [RESULT] });
        }
    }
    relocate(&mut schema, "/anyOf/0");
    let dialect = schema.as_object_mut().and_then(|fields| fields.shift_remove("$schema"));
    let stored = json!({
        "type": "object",
        "properties": { STORED: { "type": ["string", "null"], "description": "Address of a result that is too long" } },
        "required": [STORED],
        "additionalProperties": false,
    });
    let mut schema = json!({ "type": "object", "anyOf": [schema, stored] });
    if let Some(dialect) = dialect {
        schema["$schema"] = dialect;
    }
    Ok(Some(OutputSchema { schema, is_wrapped: !is_object, notes: notes.finish() }))
}

/// Returns `true` if a schema accepts only objects. Schemas beyond a number are not read.
fn is_object(root: &Value, schema: &Value, steps: &mut usize) -> bool {
    *steps += 1;
    if *steps > MAX_STEPS {
        return false;
    }
    if let Some(kind) = schema.get("type") {
        return kind == "object" || kind == &json!(["object"]);
    }
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference));
    if target.is_some_and(|target| is_object(root, target, steps)) {
        return true;
    }
    let parts = schema.get("allOf").and_then(Value::as_array);
    if parts.is_some_and(|parts| parts.iter().any(|part| is_object(root, part, steps))) {
        return true;
    }
    let mut alternatives = ["anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array());
    alternatives.any(|all| !all.is_empty() && all.iter().all(|one| is_object(root, one, steps)))
}

/// Returns a schema without `$schema`, unless it names a dialect of JSON Schema: a reader might fetch any other address.
fn without_foreign_dialect(mut schema: Value, notes: &mut Notes) -> Value {
    if let Value::Object(fields) = &mut schema {
        let is_known = |dialect: &Value| {
            let dialect = dialect.as_str().unwrap_or_default();
            ["https://json-schema.org/", "http://json-schema.org/"].iter().any(|site| dialect.starts_with(site))
        };
        if fields.get("$schema").is_some_and(|dialect| !is_known(dialect)) {
            fields.shift_remove("$schema");
            notes.add("/$schema", "removed: not a dialect of JSON Schema");
        }
    }
    schema
}

/// Returns a tool's annotations, and the basis of each. A fact that nobody declares or proves is left out, so that a
/// client assumes the worst. A declaration that makes a tool look safer counts only from a trusted source.
pub(crate) fn annotations(tool: &Tool) -> (Map<String, Value>, Map<String, Value>) {
    let safety = &tool.interface.safety;
    let (mut annotations, mut basis) = (Map::new(), Map::new());
    let title = tool.interface.identity.user_facing_name.value.as_ref();
    annotations.extend(title.map(|title| ("title".to_owned(), json!(title))));
    let mut hint = |name: &str, fact: &Fact<bool>, safe: bool| {
        let counts = match fact.basis {
            Basis::Inferred => true,
            Basis::Declared => fact.value != safe || tool.is_vouched_for(),
            Basis::Default => false,
        };
        if counts {
            annotations.insert(name.to_owned(), json!(fact.value));
            basis.insert(name.to_owned(), json!(fact.basis));
        }
        counts
    };
    let is_read_only = hint("readOnlyHint", &safety.is_read_only, true) && safety.is_read_only.value;
    hint("destructiveHint", &safety.is_destructive, false);
    if is_read_only {
        // A call that changes nothing has no further effect when it is repeated.
        hint("idempotentHint", &safety.is_read_only, true);
    }
    hint("openWorldHint", &safety.is_open_world, false);
    (annotations, basis)
}

#[cfg(test)]
mod tests {
    use toolcrib::Runtime;
    use toolcrib::tool::Trust;

    use super::*;

    /// Creates a tool with these schemas.
    fn tool(parameters: Option<Value>, output: Option<Value>) -> Tool {
        let folder = tempfile::tempdir().expect("a folder");
        let wasm = folder.path().join("tools/bin/one.wasm");
        std::fs::create_dir_all(wasm.parent().expect("a folder")).expect("a folder");
        std::fs::write(&wasm, b"\0asm\x01\0\0\0").expect("a module");
        let manifest = folder.path().join("tools.json");
        let listed = json!({ "name": "one", "description": "first", "command": ["./tools/bin/one"] });
        std::fs::write(&manifest, json!({ "tools": [listed] }).to_string()).expect("a manifest");
        let runtime = Runtime::builder(toolcrib::Audit::off()).source(&manifest).build().expect("a runtime");
        let mut tool = runtime.tool("one").expect("the tool").clone();
        tool.parameters = parameters;
        tool.interface.schemas.output_schema.value = output;
        tool.interface.safety = toolcrib::tool::Interface::default().safety;
        tool
    }

    #[test]
    fn a_tool_without_schemas_takes_any_object() {
        let definition = definition(&tool(None, None), "one").unwrap();
        let empty = json!({ "type": "object", "properties": {} });
        assert_eq!(definition.value, json!({ "name": "one", "description": "first", "inputSchema": empty }));
        assert!(definition.notes.is_empty());
    }

    #[test]
    fn a_reference_to_elsewhere_is_refused() {
        let outside = json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}});
        let error = definition(&tool(Some(outside.clone()), None), "one").unwrap_err().to_string();
        assert!(error.contains("leads outside the schema"), "{error}");
        let definition = definition(&tool(None, Some(outside)), "one").unwrap();
        assert!(definition.value.get("outputSchema").is_none());
        assert!(definition.notes[0].starts_with("the output schema is left out: "), "{:?}", definition.notes);
        let dialect = json!({"$schema": "http://127.0.0.1:1/dialect", "type": "object"});
        let input = input_schema(&tool(Some(dialect), None), &mut Notes::default()).unwrap();
        assert_eq!(input, json!({ "type": "object", "properties": {} }));
    }

    #[test]
    fn composition_at_the_root_is_kept_where_the_revision_allows_it() {
        let part = json!({"properties": {"a": {"type": "string"}}, "required": ["a"]});
        let schema = json!({"type": ["object", "null"], "allOf": [part], "$schema": "http://127.0.0.1:1/dialect"});
        let composed = tool(Some(schema), None);
        assert_eq!(composed_input(&composed).unwrap(), json!({"type": "object", "allOf": [part]}));
        let merged = definition(&composed, "one").unwrap().value;
        assert_eq!((&merged["inputSchema"]["required"], merged["inputSchema"].get("allOf")), (&json!(["a"]), None));
        assert!(composed_input(&tool(Some(part), None)).is_none());
        let outside = json!({"allOf": [{"$ref": "http://127.0.0.1:1/x"}]});
        assert!(composed_input(&tool(Some(outside), None)).is_none());
    }

    #[test]
    fn a_result_that_is_not_an_object_becomes_a_property() {
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/x"}, "$defs": {"x": {"type": "string"}}});
        let output = output_schema(&tool(None, Some(list))).unwrap().unwrap();
        assert!(output.is_wrapped);
        assert_eq!(output.schema["anyOf"][0]["required"], json!([RESULT]));
        let validator = jsonschema::validator_for(&output.schema).unwrap();
        for valid in [json!({ RESULT: ["a"] }), json!({ STORED: "toolcrib://results/x" }), json!({ STORED: null })] {
            assert!(validator.is_valid(&valid), "{valid}");
        }
        for invalid in [json!({ RESULT: [1] }), json!({}), json!({ STORED: 1 }), json!({ STORED: null, "other": 1 })] {
            assert!(!validator.is_valid(&invalid), "{invalid}");
        }
        for object in [
            json!({"type": "object"}),
            json!({"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}}),
            json!({"oneOf": [{"type": "object"}, {"allOf": [{"type": "object"}]}]}),
        ] {
            let output = output_schema(&tool(None, Some(object.clone()))).unwrap().unwrap();
            assert!(!output.is_wrapped && output.schema["type"] == "object", "{object}");
        }
        let cycle = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert!(output_schema(&tool(None, Some(cycle))).unwrap().unwrap().is_wrapped);
    }

    #[test]
    fn a_hint_that_makes_a_tool_look_safer_needs_a_proof_or_a_person() {
        let hints = |tool: &Tool| Value::Object(annotations(tool).0);
        let mut plain = tool(None, None);
        assert_eq!(hints(&plain), json!({}), "defaults are nobody's statement");
        plain.interface.safety.is_read_only = Fact::declared(true);
        plain.interface.safety.is_destructive = Fact::declared(true);
        plain.interface.safety.is_open_world = Fact::declared(false);
        plain.origin.trust = Trust::Stranger;
        assert_eq!(hints(&plain), json!({ "destructiveHint": true }));
        plain.origin.trust = Trust::Reviewed;
        let all = json!({
            "readOnlyHint": true, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false,
        });
        assert_eq!(hints(&plain), all);
        plain.origin.trust = Trust::Stranger;
        plain.interface.safety = toolcrib::tool::Interface::default().safety;
        plain.interface.safety.is_read_only.infer(true);
        let (annotations, basis) = annotations(&plain);
        assert_eq!(Value::Object(annotations), json!({ "readOnlyHint": true, "idempotentHint": true }));
        assert_eq!(basis["readOnlyHint"], "inferred");
    }
}
