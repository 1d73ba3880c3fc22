//! Tool definitions for the OpenAI APIs, with the schema of their source.

use serde_json::{Map, Value, json};
use toolcrib::Tool;
use toolcrib::tool::{Grammar, TextInput};

use super::with_object_root;
use crate::schemas::brief::brief;

/// Returns the definition of a tool for the chat completions API, with its source's schema, without the parts that are
/// not for models or that they do not need.
pub fn function(tool: &Tool, name: &str) -> Value {
    let mut function = described(tool, name);
    function.insert("parameters".to_owned(), parameters(tool));
    json!({ "type": "function", "function": function })
}

/// Returns the definition of a tool for the responses API. With `custom_tools`, a tool that takes text is a custom tool.
pub fn responses_tool(tool: &Tool, name: &str, custom_tools: bool) -> Value {
    let of_type =
        |kind: &str| Map::from_iter([("type".to_owned(), json!(kind))].into_iter().chain(described(tool, name)));
    let definition = match tool.text.as_ref().filter(|_| custom_tools) {
        Some(text) => {
            let mut custom = of_type("custom");
            custom.insert("format".to_owned(), format(text));
            custom
        }
        None => {
            let mut function = of_type("function");
            function.insert("parameters".to_owned(), parameters(tool));
            // Strict mode supports only a part of JSON Schema; the runtime validates arguments by the whole of it.
            function.insert("strict".to_owned(), json!(false));
            function
        }
    };
    Value::Object(definition)
}

/// Returns the name and the description of a tool.
fn described(tool: &Tool, name: &str) -> Map<String, Value> {
    let description = tool.description.as_ref().map(|text| ("description".to_owned(), json!(text)));
    [("name".to_owned(), json!(name))].into_iter().chain(description).collect()
}

/// Returns the schema for models, which is empty for a tool without one.
fn parameters(tool: &Tool) -> Value {
    let empty = || json!({ "type": "object", "properties": {} });
    tool.model_input_schema().map_or_else(empty, |schema| brief(with_object_root(&schema)))
}

/// Returns the format of the text that a custom tool takes.
fn format(text: &TextInput) -> Value {
    match &text.grammar {
        Some(Grammar { syntax, definition, .. }) => {
            json!({ "type": "grammar", "syntax": syntax, "definition": definition })
        }
        None => json!({ "type": "text" }),
    }
}

#[cfg(test)]
mod tests {
    use toolcrib::Runtime;
    use toolcrib::tool::Syntax;

    use super::*;

    /// Creates a tool that takes text.
    fn tool(grammar: Option<Grammar>) -> Tool {
        let folder = tempfile::tempdir().expect("a folder");
        let wasm = folder.path().join("tools/bin/patch.wasm");
        std::fs::create_dir_all(wasm.parent().expect("a folder")).expect("a folder");
        std::fs::write(&wasm, b"\0asm\x01\0\0\0").expect("a module");
        let manifest = folder.path().join("tools.json");
        let listed = json!({ "name": "patch", "description": "change files", "command": ["./tools/bin/patch"] });
        std::fs::write(&manifest, json!({ "tools": [listed] }).to_string()).expect("a manifest");
        let runtime = Runtime::builder(toolcrib::Audit::off()).source(&manifest).build().expect("a runtime");
        let mut tool = runtime.tool("patch").expect("the tool").clone();
        let mut text = TextInput::new("patch");
        text.grammar = grammar;
        text.description = Some("the patch".to_owned());
        tool.parameters = Some(text.schema());
        tool.text = Some(text);
        tool
    }

    #[test]
    fn a_tool_that_takes_text_is_offered_as_one_where_that_can_be_said() {
        let grammar = Grammar::new(Syntax::Lark, "start: /a+/");
        let custom =
            |format| json!({ "type": "custom", "name": "patch", "description": "change files", "format": format });
        assert_eq!(
            responses_tool(&tool(Some(grammar.clone())), "patch", true),
            custom(json!({ "type": "grammar", "syntax": "lark", "definition": "start: /a+/" }))
        );
        assert_eq!(responses_tool(&tool(None), "patch", true), custom(json!({ "type": "text" })));
        let parameters = json!({
            "type": "object",
            "properties": { "patch": { "type": "string", "description": "the patch" } },
            "required": ["patch"],
        });
        let described = json!({ "name": "patch", "description": "change files", "parameters": parameters });
        assert_eq!(function(&tool(Some(grammar)), "patch"), json!({ "type": "function", "function": described }));
        let mut flat = described;
        (flat["type"], flat["strict"]) = (json!("function"), json!(false));
        assert_eq!(responses_tool(&tool(None), "patch", false), flat);
    }
}
