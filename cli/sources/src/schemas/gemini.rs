//! Function declarations of the Gemini API, with the arguments in `parametersJsonSchema`. The rules come from its
//! reference for function declarations and for the part of JSON Schema that it reads.

use serde_json::{Value, json};
use toolcrib::Tool;

use super::notes::Notes;
use super::strict::{self, Subset};
use super::{Definition, NameRule, Unsupported};

/// Rule for names that every endpoint of the API accepts.
pub const NAME_RULE: NameRule = NameRule { max: 64, further: &['.'], starts_with_letter: true };

const SUBSET: Subset = Subset {
    keywords: &["minimum", "maximum", "maxItems"],
    formats: None,
    is_enum_value: |value| value.is_string() || value.is_number(),
    has_const: false,
    max_min_items: u64::MAX,
    closes_objects: false,
    requires_all: false,
    // The API follows such a reference only a few times.
    is_recursive: false,
    has_tuples: true,
    is_property_name: |_| true,
};

/// Returns a tool as a function declaration.
///
/// # Errors
///
/// [`Unsupported`] if a declaration cannot state the tool.
pub fn function_declaration(tool: &Tool, name: &str) -> Result<Definition, Unsupported> {
    let mut notes = Notes::default();
    let schema = tool.model_input_schema();
    let any_object = json!({ "type": "object" });
    let parameters = strict::convert(schema.as_deref().unwrap_or(&any_object), &SUBSET, &mut notes)?;
    let mut notes = notes.finish();
    let description = tool.description.as_deref().filter(|text| !text.is_empty()).unwrap_or_else(|| {
        notes.push("the name takes the place of the missing description, which the API requires".to_owned());
        tool.name.as_str()
    });
    let value: Value = json!({ "name": name, "description": description, "parametersJsonSchema": parameters });
    Ok(Definition { value, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_keeps_what_the_api_reads_and_notes_the_rest() {
        let mut notes = Notes::default();
        let schema = json!({
            "type": "object", "required": ["at"],
            "properties": {
                "at": {"type": "array", "prefixItems": [{"type": "number"}, {"const": "x"}]},
                "env": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^a"}},
                "on": {"const": true},
            },
        });
        let converted = strict::convert(&schema, &SUBSET, &mut notes).unwrap();
        let at = json!({"type": "array", "prefixItems": [{"type": "number"}, {"type": "string", "enum": ["x"]}]});
        assert_eq!(converted["properties"]["at"], at);
        assert_eq!(converted["properties"]["env"]["additionalProperties"], json!({"type": "string"}));
        assert_eq!(converted["properties"]["on"], json!({"type": "boolean"}));
        let notes = notes.finish();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].contains("pattern") && notes[1].contains("#/properties/on/const"), "{notes:?}");
    }
}
