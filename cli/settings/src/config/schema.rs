//! JSON Schema of the settings files, from the same table as the parser.

use serde_json::{Map, Value, json};

use super::key::{ANY, KEYS, Key, sections};
use super::kind::Kind;

/// Returns the schema of a settings file.
pub fn schema() -> Value {
    let mut definitions = Map::new();
    let mut settings = Map::new();
    for section in sections() {
        definitions.insert(section.to_owned(), table(section));
        settings.insert(section.to_owned(), json!({ "$ref": format!("#/$defs/{section}") }));
    }
    let profile = json!({ "type": "object", "properties": settings, "additionalProperties": false });
    definitions.insert("profile".to_owned(), profile);
    settings.insert(
        "profile".to_owned(),
        json!({
            "description": "Settings that `--profile NAME` or `TOOLCRIB_PROFILE` adds; only in the user's file",
            "type": "object",
            "additionalProperties": { "$ref": "#/$defs/profile" },
        }),
    );
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of toolcrib",
        "type": "object",
        "properties": settings,
        "additionalProperties": false,
        "$defs": definitions,
    })
}

/// Schema of a section.
fn table(section: &str) -> Value {
    let keys: Vec<&Key> = KEYS.iter().filter(|key| key.section == section).collect();
    if let [only] = keys[..]
        && only.name == ANY
    {
        return json!({ "description": only.about, "type": "object", "additionalProperties": value(&only.kind) });
    }
    let properties = keys.iter().map(|key| {
        let mut schema = value(&key.kind);
        let not_all = if key.is_of_host { "; not in a project's file" } else { "" };
        schema["description"] = format!("{}{not_all}", key.about).into();
        (key.name.to_owned(), schema)
    });
    json!({ "type": "object", "properties": properties.collect::<Map<_, _>>(), "additionalProperties": false })
}

fn value(kind: &Kind) -> Value {
    match kind {
        Kind::Text { pattern: "", .. } => json!({ "type": "string" }),
        Kind::Text { pattern, .. } => json!({ "type": "string", "pattern": pattern }),
        Kind::Path(_) => json!({ "type": "string", "minLength": 1 }),
        Kind::Word(words) => json!({ "enum": words }),
        Kind::Count(min, u64::MAX) => json!({ "type": "integer", "minimum": min }),
        Kind::Count(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Number(max) => json!({ "type": "number", "minimum": 0, "maximum": max }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::List(of) => json!({ "type": "array", "items": value(of) }),
        Kind::Object => json!({ "type": "object" }),
    }
}
