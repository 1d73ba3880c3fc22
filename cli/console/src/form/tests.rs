//! Round trips between arguments and the fields of a form, its buttons, its problems and its bounds.

use serde_json::{Value, json};

use super::*;

fn back(schema: &Value, fields: &Fields) -> (Value, Problems) {
    let mut problems = Problems::new();
    let value = Form(schema).node(fields).value(&mut problems);
    (value.unwrap_or(Value::Null), problems)
}

#[test]
fn arguments_of_every_shape_return_as_they_were() {
    let schema = json!({
        "type": "object", "required": ["name", "kind", "deep"],
        "$defs": { "tree": { "type": "object", "properties": {
            "label": { "type": "string" }, "below": { "type": "array", "items": { "$ref": "#/$defs/tree" } } } } },
        "properties": {
            "name": { "type": "string" }, "note": { "type": "string", "default": "n" }, "n": { "type": "integer" },
            "x": { "type": ["number", "null"] }, "on": { "type": "boolean" }, "kind": { "const": "a" },
            "one": { "enum": ["a", 1, null, ""] }, "any": {}, "tags": { "type": "array", "items": { "type": "string" } },
            "deep": { "type": "object", "properties": { "a/b~c": { "type": "object", "properties": { "z": { "type": "number" } } } } },
            "map": { "type": "object", "additionalProperties": { "type": "integer" } },
            "which": { "oneOf": [
                { "type": "object", "required": ["t", "v"], "properties": { "t": { "const": "text" }, "v": { "type": "string" } } },
                { "type": "object", "required": ["t", "v"], "properties": { "t": { "const": "n" }, "v": { "type": "integer" } } },
                { "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "boolean" }] } } ] },
            "tree": { "$ref": "#/$defs/tree" },
        },
    });
    for arguments in [
        json!({ "name": "", "kind": "a", "deep": {} }),
        json!({ "name": "x\ny", "note": "", "n": -3, "x": null, "on": false, "kind": "a", "one": null, "any": { "q": [1] },
            "tags": [], "deep": { "a/b~c": { "z": 1.5 } }, "map": {} }),
        json!({ "name": "n", "kind": "a", "deep": {}, "x": 2.0, "one": "", "tags": ["", "b"], "map": { "k": 1, "": 2 } }),
        json!({ "name": "n", "kind": "a", "deep": { "a/b~c": {} }, "which": { "t": "n", "v": 7 } }),
        json!({ "name": "n", "kind": "a", "deep": {}, "which": ["s", true, ""] }),
        json!({ "name": "n", "kind": "a", "deep": {}, "tree": { "label": "r", "below": [{ "label": "s", "below": [] }] } }),
    ] {
        let fields = Form(&schema).fill(&arguments).unwrap_or_else(|| panic!("{arguments}"));
        assert_eq!(back(&schema, &fields), (arguments, Problems::new()));
    }
    for beside in [
        json!({ "name": "n", "kind": "b", "deep": {} }),
        json!({ "name": "n", "kind": "a", "deep": {}, "other": 1 }),
        json!({ "name": "a\r\nb", "kind": "a", "deep": {} }),
        json!({ "name": 1, "kind": "a", "deep": {} }),
        json!([]),
    ] {
        assert!(Form(&schema).fill(&beside).is_none(), "{beside}");
    }
}

#[test]
fn a_form_begins_with_the_defaults_that_a_person_sees_as_they_are() {
    let schema = json!({ "type": "object", "required": ["r"], "properties": {
        "a": { "type": "integer", "default": 3 }, "b": { "type": "string", "default": "x\u{202e}y" },
        "c": { "type": "array", "items": { "type": "string" }, "default": [".git"] },
        "r": { "type": "object", "properties": { "in": { "type": "boolean", "default": true } } },
        "o": { "type": "object", "properties": { "in": { "type": "boolean", "default": true } } } } });
    let fields = Form(&schema).start();
    assert_eq!(back(&schema, &fields).0, json!({ "a": 3, "c": [".git"], "r": { "in": true } }));
}

#[test]
fn items_are_added_and_removed_with_all_that_is_in_them() {
    let schema = json!({ "type": "object", "properties": {
        "l": { "type": "array", "items": { "type": "object", "properties": { "s": { "type": "array", "items": { "type": "string" } } } } },
        "m": { "type": "object", "additionalProperties": { "type": "string" } } } });
    let arguments = json!({ "l": [{ "s": ["a"] }, { "s": ["b", "c"] }, { "s": ["d"] }], "m": { "x": "1", "y": "2" } });
    let mut fields = Form(&schema).fill(&arguments).unwrap();
    assert!(
        edit(&mut fields, "remove:f.0:1")
            && edit(&mut fields, "remove:f.0.0.0:0")
            && edit(&mut fields, "remove:f.1:m0")
    );
    // The optional list that became empty is left out, and so the object around it is empty.
    assert_eq!(back(&schema, &fields).0, json!({ "l": [{}, { "s": ["d"] }], "m": { "y": "2" } }));
    assert!(edit(&mut fields, "add:f.0") && !edit(&mut fields, "preview") && !edit(&mut fields, ""));
    assert_eq!(fields["n:f.0"], "3");
    for odd in ["remove:f.0:99", "remove:f.0:x", "remove:f.0:", "remove:::", "add:", "remove:f.9:0"] {
        edit(&mut fields, odd);
    }
    assert_eq!(fields["n:f.0"], "3");
}

#[test]
fn a_field_that_is_no_value_has_a_problem_at_its_place() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "number" }, "j": {},
        "l": { "type": "array", "items": { "type": "integer" } } } });
    let fields: Fields = [("v:f.0", "1,5"), ("v:f.1", "{"), ("n:f.2", "1")]
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .collect();
    let (_, problems) = back(&schema, &fields);
    assert_eq!(problems.keys().collect::<Vec<_>>(), ["/j", "/l/0", "/n"], "{problems:?}");
}

#[test]
fn endless_and_wide_schemas_end_in_fields_for_json() {
    let endless = json!({ "type": "object", "required": ["a", "b"], "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#" } } });
    let node = Form(&endless).node(&Form(&endless).start());
    assert!(shown(&node, &Problems::new()).into_string().len() < 4 << 20);
    let members: serde_json::Map<String, Value> =
        (0..500).map(|at| (format!("a{at}"), json!({ "$ref": "#", "default": {} }))).collect();
    let wide = json!({ "type": "object", "properties": members });
    let node = Form(&wide).node(&Form(&wide).start());
    assert!(shown(&node, &Problems::new()).into_string().len() < 4 << 20, "each of many members names them all");
    let circle =
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } });
    Form(&circle).node(&Fields::new());
    let union = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }, { "$ref": "#" }] });
    assert!(Form(&union).fill(&json!({ "x": 1 })).is_none_or(|fields| fields.len() < 100));
    Form(&union).start();
    let many: Fields = [("n:f".to_owned(), "99999999".to_owned())].into();
    let list = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(back(&list, &many).0.as_array().map(Vec::len), Some(MAX_ITEMS));
}

/// Every example that its schema allows in the tests of a shipped tool.
#[test]
fn the_examples_of_the_shipped_tools_return_as_they_were() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: std::path::PathBuf| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let tools = read(root.join("tools/tools.json"));
    let mut seen = 0;
    for tool in tools["tools"].as_array().unwrap() {
        let (Some(schema), Some(name)) = (tool.get("schema"), tool["name"].as_str()) else { continue };
        let cases = root.join(format!("tests/cases/toolbox/{name}.json"));
        if !cases.is_file() {
            continue;
        }
        let cases = read(cases);
        let first = cases["cases"].as_array().unwrap().iter().find_map(|case| case.get("arguments"));
        let Some(arguments) = first else { continue };
        let fields = Form(schema).fill(arguments).unwrap_or_else(|| panic!("{name}: {arguments}"));
        assert_eq!(back(schema, &fields), (arguments.clone(), Problems::new()), "{name}");
        seen += 1;
    }
    assert!(seen >= 12, "{seen}");
}
