//! `toolcrib schema --for TARGET`: each target's definitions against that side's published rules, read by a validator that
//! shares nothing with the conversion, for the shipped tools and for hostile schemas.

mod mapping;
mod rules;

use serde_json::{Value, json};

use crate::crib::{Crib, Ran, toolbox};

/// Targets with rules.
pub(super) const TARGETS: [&str; 5] = ["openai-strict", "anthropic", "anthropic-strict", "gemini", "mcp"];

/// Creates a crib with a tool of each of these schemas, by its name.
pub(super) fn crib(tools: &[(&str, Value)]) -> Crib {
    let crib = Crib::with_guests(&["echo"]);
    let entry = |(name, schema): &(&str, Value)| json!({ "name": name, "description": "echoes", "command": ["./tools/bin/echo"], "schema": schema });
    crib.manifest(&json!({ "tools": tools.iter().map(entry).collect::<Vec<_>>() }));
    crib
}

/// Definitions for a target, with notes.
pub(super) fn noted(crib: &Crib, target: &str, flags: &[&str]) -> (Ran, Vec<Value>) {
    let ran = crib.run(&[&["schema", "--for", target, "--notes"], flags].concat());
    let printed = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{target}: {error}: {ran:?}"));
    (ran, printed)
}

#[test]
fn every_shipped_tool_follows_the_rules_of_every_target() {
    let crib = Crib::new();
    let toolbox = toolbox();
    let flags = ["--tools", toolbox.to_str().unwrap()];
    for target in TARGETS {
        let (ran, printed) = noted(&crib, target, &flags);
        assert!(printed.len() > 15, "{target}: {ran:?}");
        let mut names = Vec::new();
        for one in &printed {
            if let Some(error) = one.get("error") {
                panic!("{target}: {}: {error}", one["tool"]);
            }
            rules::check(target, &one["definition"]).unwrap_or_else(|why| panic!("{target}: {why}: {one}"));
            names.push(rules::name(target, &one["definition"]).to_owned());
        }
        assert_eq!(ran.code, Some(0), "{target}: {ran:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), printed.len(), "{target}");
        let plain = crib.run(&[&["schema", "--for", target][..], &flags].concat());
        let plain: Vec<Value> = serde_json::from_str(&plain.stdout).unwrap();
        assert!(plain.iter().eq(printed.iter().map(|one| &one["definition"])), "{target}");
    }
}

#[test]
fn a_hostile_schema_follows_the_rules_or_is_refused_with_a_reason() {
    let text = json!({"type": "string"});
    let deep =
        (0..40).fold(text.clone(), |inner, _| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]}));
    let unions = (0..12).fold(text.clone(), |inner, _| json!({ "oneOf": [inner, { "type": "null" }] }));
    let many: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("p{n}"), json!({}))).collect();
    let wide: Vec<Value> = (0..500).map(|n| json!({ "const": n })).collect();
    let tree = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/t"}, "v": text}, "required": ["v"]});
    let hostile = [
        ("deep", deep),
        ("unions", json!({"properties": {"u": unions, "w": {"anyOf": wide}}})),
        ("many", json!({ "properties": many })),
        ("tree", json!({"properties": {"t": {"$ref": "#/$defs/t"}}, "required": ["t"], "$defs": {"t": tree}})),
        ("self", json!({"type": "object", "properties": {"me": {"$ref": "#"}}})),
        ("patterns", json!({"type": "object", "patternProperties": {"^x": text}, "minProperties": 1})),
        (
            "map",
            json!({"properties": {"m": {"type": "object", "additionalProperties": {"type": "integer"}}}, "required": ["m"]}),
        ),
        (
            "root_union",
            json!({"oneOf": [{"properties": {"a": text}, "required": ["a"]}, {"properties": {"b": text}, "required": ["b"]}]}),
        ),
        ("root_list", json!({"type": "array", "items": text})),
        ("anything", json!({})),
        ("typeless", json!({"properties": {"a": {}, "b": true, "c": {"enum": [1, "x", null, {"d": 1}]}}})),
        (
            "conditions",
            json!({
                "type": "object", "properties": {"a": text}, "if": {"required": ["a"]}, "then": {"minProperties": 1},
                "dependentRequired": {"a": ["b"]}, "not": {"required": ["z"]}, "propertyNames": {"maxLength": 9},
            }),
        ),
        (
            "lists",
            json!({"properties": {
                "a": {"type": "array", "prefixItems": [text, {"type": "number"}], "items": false, "minItems": 2},
                "b": {"type": "array", "uniqueItems": true, "contains": text, "maxItems": 5},
                "c": {"type": ["array", "object", "null"]},
            }}),
        ),
        (
            "texts",
            json!({"properties": {
                "a": {"type": "string", "format": "regex", "minLength": 2, "pattern": "^a+$", "default": "aa", "examples": ["aaa"]},
                "b": {"type": ["string", "integer"]}, "c d": {"type": "integer", "multipleOf": 2},
            }}),
        ),
        ("required_name", json!({"properties": {"a b": text}, "required": ["a b"]})),
        (
            "merged",
            json!({"allOf": [{"properties": {"a": {"minimum": 1}}}, {"properties": {"a": {"type": "integer"}}, "required": ["a"]}]}),
        ),
    ];
    let crib = crib(&hostile);
    for target in TARGETS {
        let (ran, printed) = noted(&crib, target, &[]);
        let (mut stated, mut refused) = (0, 0);
        for one in &printed {
            match one.get("error").and_then(Value::as_str) {
                Some(error) => {
                    assert!(error.len() > 10, "{target}: {one}");
                    refused += 1;
                }
                None => {
                    rules::check(target, &one["definition"]).unwrap_or_else(|why| panic!("{target}: {why}: {one}"));
                    stated += 1;
                }
            }
        }
        assert_eq!(ran.code, Some(i32::from(refused > 0)), "{target}: {ran:?}");
        assert!(stated >= 6, "{target}: {stated} stated, {refused} refused: {}", ran.stderr);
        let lost = |tool: &str| printed.iter().find(|one| one["tool"] == tool).map(|one| one["notes"].to_string());
        if target != "mcp" && target != "anthropic" {
            assert!(lost("conditions").is_none_or(|notes| notes.contains("propertyNames")), "{target}: {printed:?}");
        }
        if target.contains("strict") {
            for (name, part) in [("conditions", "/not"), ("texts", "minLength"), ("lists", "uniqueItems")] {
                let notes = lost(name).unwrap_or_else(|| panic!("{target}: {name} is not printed"));
                assert!(notes.contains(part), "{target}: {part}: {notes}");
            }
        }
        assert!(!ran.stderr.contains("panicked"), "{target}: {}", ran.stderr);
    }
}

#[test]
fn every_keyword_is_in_the_definition_or_in_a_note() {
    let text = json!({"type": "string"});
    let properties = json!({
        "s": {
            "type": "string", "minLength": 2, "maxLength": 9, "pattern": "^a", "format": "regex", "default": "ab",
            "contentEncoding": "base64", "contentMediaType": "text/plain", "examples": ["a"], "title": "S", "description": "s",
        },
        "n": {"type": "number", "minimum": 1, "maximum": 9, "exclusiveMinimum": 0, "exclusiveMaximum": 10, "multipleOf": 1},
        "l": {
            "type": "array", "prefixItems": [text], "items": text, "minItems": 2, "maxItems": 9, "uniqueItems": true,
            "contains": text, "minContains": 1, "maxContains": 2, "unevaluatedItems": false,
        },
        "o": {
            "type": "object", "properties": {"x": text}, "required": ["x"], "minProperties": 1, "maxProperties": 9,
            "patternProperties": {"^p": text}, "additionalProperties": text, "propertyNames": {"maxLength": 9},
            "dependentRequired": {"x": []}, "dependentSchemas": {"x": {}}, "unevaluatedProperties": false,
            "if": {}, "then": {}, "else": {}, "not": {"required": ["z"]},
        },
        "u": {"oneOf": [{"const": 1}, {"enum": ["a", "b"]}]},
    });
    let keywords: Vec<String> =
        properties.as_object().unwrap().values().flat_map(|one| one.as_object().unwrap().keys().cloned()).collect();
    let crib = crib(&[("all", json!({ "type": "object", "properties": properties }))]);
    for target in TARGETS {
        let (ran, printed) = noted(&crib, target, &[]);
        let (definition, notes) = (printed[0]["definition"].to_string(), printed[0]["notes"].to_string());
        rules::check(target, &printed[0]["definition"]).unwrap_or_else(|why| panic!("{target}: {why}: {ran:?}"));
        for keyword in &keywords {
            let is_kept = definition.contains(&format!("\"{keyword}\":"));
            let is_noted = notes.contains(&format!("/{keyword}`"));
            assert!(is_kept || is_noted, "{target}: {keyword}: {definition} {notes}");
        }
    }
}

#[test]
fn a_validator_notices_what_breaks_a_rule() {
    let function = |parameters: Value| json!({"type": "function", "function": {"name": "a", "strict": true, "parameters": parameters}});
    let object = |properties: Value| json!({"type": "object", "properties": properties, "required": [], "additionalProperties": false});
    for (target, broken) in [
        ("openai-strict", function(json!({"type": "object", "properties": {"a": {"type": "string"}}}))),
        ("openai-strict", function(object(json!({"a": {"type": "string"}})))),
        ("openai-strict", function(json!({"anyOf": []}))),
        (
            "anthropic-strict",
            json!({"name": "a", "strict": true, "input_schema": object(json!({"a": {"type": "integer", "minimum": 1}}))}),
        ),
        ("anthropic", json!({"name": "a b", "input_schema": object(json!({}))})),
        ("anthropic", json!({"name": "a", "input_schema": {"type": "object", "oneOf": [{}]}})),
        ("gemini", json!({"name": "1", "description": "d", "parametersJsonSchema": object(json!({}))})),
        (
            "gemini",
            json!({"name": "a", "description": "d", "parametersJsonSchema": object(json!({"a": {"const": 1}}))}),
        ),
        ("mcp", json!({"name": "", "inputSchema": {"type": "object"}})),
        ("mcp", json!({"name": "a", "inputSchema": {"type": "array"}})),
        ("mcp", json!({"name": "a", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "https://x/"}}}})),
    ] {
        rules::check(target, &broken).expect_err(&format!("{target}: {broken}"));
    }
}
