//! The server entry: the program with its arguments, in the shape that a client expects.

use serde_json::{Value, json};

use super::client::{Client, SERVER};

/// Sentence that goose shows beside the extension.
const DESCRIPTION: &str = "Sandboxed tools with permissions that you control";

/// Program that a client starts, with its arguments.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Absolute path of the program.
    pub command: String,
    /// Arguments of `toolcrib`.
    pub arguments: Vec<String>,
}

/// Shape of a server entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `command` and `args`.
    Plain,
    /// The same with `"type": "stdio"`.
    Typed,
    /// Shape of opencode 1, which version 2 reads too: `command` holds the arguments.
    Local,
    /// Shape of opencode 2, without `enabled`.
    LocalNative,
    /// Extension of goose.
    Extension,
}

impl Launch {
    /// Returns the entry in a shape.
    pub(super) fn entry(&self, shape: Shape) -> Value {
        let Self { command, arguments } = self;
        let line: Vec<&String> = std::iter::once(command).chain(arguments).collect();
        match shape {
            Shape::Plain => json!({ "command": command, "args": arguments }),
            Shape::Typed => json!({ "type": "stdio", "command": command, "args": arguments }),
            Shape::Local => json!({ "type": "local", "command": line, "enabled": true }),
            Shape::LocalNative => json!({ "type": "local", "command": line }),
            Shape::Extension => json!({
                "enabled": true,
                "type": "stdio",
                "name": SERVER,
                "description": DESCRIPTION,
                "cmd": command,
                "args": arguments,
            }),
        }
    }

    /// Returns the first text that the client would change, with the beginning of the placeholder in it.
    pub fn placeholder(&self, client: Client) -> Option<(&str, &'static str)> {
        let texts = std::iter::once(&self.command).chain(&self.arguments);
        let found = |text: &str| client.facts().placeholders.iter().copied().find(|begin| text.contains(begin));
        texts.map(String::as_str).find_map(|text| Some((text, found(text)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(arguments: &[&str]) -> Launch {
        Launch { command: "/bin/toolcrib".into(), arguments: arguments.iter().map(|&text| text.into()).collect() }
    }

    #[test]
    fn each_shape_names_the_program_and_its_arguments() {
        let launch = launch(&["mcp", "--tools", "/a b/tools.json"]);
        assert_eq!(
            launch.entry(Shape::Typed),
            json!({ "type": "stdio", "command": "/bin/toolcrib", "args": ["mcp", "--tools", "/a b/tools.json"] })
        );
        assert_eq!(
            launch.entry(Shape::LocalNative),
            json!({ "type": "local", "command": ["/bin/toolcrib", "mcp", "--tools", "/a b/tools.json"] })
        );
        let goose = launch.entry(Shape::Extension);
        assert_eq!((&goose["cmd"], &goose["args"][2]), (&json!("/bin/toolcrib"), &json!("/a b/tools.json")));
    }

    #[test]
    fn a_text_that_a_client_would_replace_is_found() {
        let launch = launch(&["mcp", "--tools", "/a/${HOME}/$x"]);
        assert_eq!(launch.placeholder(Client::VsCode), Some(("/a/${HOME}/$x", "${")));
        assert_eq!(launch.placeholder(Client::Gemini), Some(("/a/${HOME}/$x", "$")));
        for client in [Client::Codex, Client::Zed, Client::ClaudeDesktop, Client::OpenCode] {
            assert_eq!(launch.placeholder(client), None, "{client:?}");
        }
    }
}
