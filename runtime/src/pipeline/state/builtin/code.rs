//! Definitions of the tools for programs of a model: the tool that runs them, and in code mode the two that find and describe the
//! tools that a program can call.

use serde_json::{Value, json};

use crate::tool::{Builtin, Fact, Interface, Tool};

use super::{MAX_FOUND, defined, prove_harmless};

/// Maximum characters of a program.
const MAX_CODE_CHARS: usize = 100_000;
/// Maximum characters of the name of a session.
const MAX_SESSION_CHARS: usize = 64;
/// Maximum number of tools that are described at once.
pub(crate) const MAX_DESCRIBED: usize = 20;

/// Languages of programs, and the tools that they can call.
#[derive(Debug, Default)]
pub(crate) struct CodeTools {
    /// Names and guides of the languages; the first is the default.
    pub(crate) languages: Vec<(String, String)>,
    /// Text about the tools that a program can call, if the model does not see their definitions.
    pub(crate) overview: Option<String>,
}

impl CodeTools {
    /// Returns the definition of a tool for programs.
    pub(crate) fn tool(&self, builtin: Builtin) -> Tool {
        match builtin {
            Builtin::SearchTools => search_tools(),
            Builtin::DescribeTool => self.describe_tool(),
            _ => self.run_code(),
        }
    }

    fn language(&self) -> Value {
        let names: Vec<&str> = self.languages.iter().map(|(name, _)| name.as_str()).collect();
        json!({"type": "string", "enum": names, "default": names.first().unwrap_or(&"")})
    }

    /// A program does nothing by itself: each of its calls is judged by the facts of the tool that it calls.
    fn run_code(&self) -> Tool {
        let names: Vec<&str> = self.languages.iter().map(|(name, _)| name.as_str()).collect();
        let guides: Vec<&str> = self.languages.iter().map(|(_, guide)| guide.trim()).collect();
        let (intro, overview) = match &self.overview {
            None => ("or to repeat a call; call a tool directly if one call is enough", ""),
            Some(overview) => ("to repeat a call, or to call a tool that you cannot call directly", overview.as_str()),
        };
        let description = format!(
            "Run a program ({}) that calls tools. Use it to compute, to combine or filter the results of many calls, {intro}. The \
             program makes at most 1,000 calls and gets the whole result of each; you get the value of its last expression and what it printed. \
             People see what its calls show, such as a chart. {}{}{overview}",
            names.join(" or "),
            guides.join(" "),
            if overview.is_empty() { "" } else { "\n" },
        );
        let parameters = json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "minLength": 1, "maxLength": MAX_CODE_CHARS, "description": "The program"},
                "language": self.language(),
                "session": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_SESSION_CHARS,
                    "pattern": "^[A-Za-z0-9_-]+$",
                    "description": "Name of a session: the program sees the variables of the programs before it in this session",
                },
            },
            "required": ["code"],
            "additionalProperties": false,
        });
        let mut interface = Interface::default();
        // The tools that it calls may make changes, and may not run beside others.
        interface.safety.is_read_only = Fact::declared(false);
        interface.safety.is_concurrency_safe = Fact::declared(false);
        defined(Builtin::RunCode, "run_code", description, parameters, interface)
    }

    fn describe_tool(&self) -> Tool {
        let names = json!({
            "type": "array",
            "items": {"type": "string", "maxLength": 200},
            "minItems": 1,
            "maxItems": MAX_DESCRIBED,
            "description": "Names of tools",
        });
        let parameters = json!({
            "type": "object",
            "properties": {"names": names, "language": self.language()},
            "required": ["names"],
            "additionalProperties": false,
        });
        let description =
            "Return the signatures of tools that a program can call: arguments, results and descriptions.";
        harmless(Builtin::DescribeTool, "describe_tool", description, parameters)
    }
}

fn search_tools() -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 1000, "description": "A few words"},
            "max_results": {"type": "integer", "minimum": 1, "maximum": MAX_FOUND, "default": 10},
        },
        "required": ["query"],
        "additionalProperties": false,
    });
    let description = "Find tools that a program can call, by words of their names and descriptions.";
    harmless(Builtin::SearchTools, "search_tools", description, parameters)
}

fn harmless(builtin: Builtin, name: &str, description: &str, parameters: Value) -> Tool {
    let mut interface = Interface::default();
    prove_harmless(&mut interface);
    defined(builtin, name, description.to_owned(), parameters, interface)
}
