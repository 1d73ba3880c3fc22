//! The MCP clients: format and key path of each one's settings, shape of a server entry, and notes for the user.

use super::entry::Shape;
use super::format::Format;

/// Name of the server in every client.
pub(super) const SERVER: &str = "toolcrib";

/// MCP client with a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Client {
    /// Claude Code
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Codex
    Codex,
    /// Visual Studio Code
    #[value(name = "vscode", alias = "vs-code")]
    VsCode,
    /// Cursor
    Cursor,
    /// Gemini CLI
    #[value(alias = "gemini-cli")]
    Gemini,
    /// opencode
    #[value(name = "opencode")]
    OpenCode,
    /// goose
    Goose,
    /// Crush
    Crush,
    /// Zed
    Zed,
}

/// Owner of a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The user, for every project.
    User,
    /// The project in the current directory.
    Project,
}

impl Scope {
    /// Word for messages and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// Facts about the settings of a client.
#[derive(Debug)]
pub struct Facts {
    /// Name for a person.
    pub name: &'static str,
    pub(super) format: Format,
    /// Keys from the file's top to the map of servers.
    pub(super) servers: &'static [&'static str],
    pub(super) shape: Shape,
    /// Beginnings of placeholders that the client replaces in an entry's text.
    pub(super) placeholders: &'static [&'static str],
}

impl Facts {
    /// Returns `true` if an entry of the file can be replaced.
    pub fn can_replace(&self) -> bool {
        self.format != Format::Yaml
    }
}

impl Client {
    /// Facts about the settings of this client.
    pub fn facts(self) -> &'static Facts {
        match self {
            Self::ClaudeCode => &Facts {
                name: "Claude Code",
                format: Format::Json,
                servers: &["mcpServers"],
                shape: Shape::Typed,
                placeholders: &["${"],
            },
            Self::ClaudeDesktop => &Facts {
                name: "Claude Desktop",
                format: Format::Json,
                servers: &["mcpServers"],
                shape: Shape::Plain,
                placeholders: &[],
            },
            Self::Codex => &Facts {
                name: "Codex",
                format: Format::Toml,
                servers: &["mcp_servers"],
                shape: Shape::Plain,
                placeholders: &[],
            },
            Self::VsCode => &Facts {
                name: "VS Code",
                format: Format::Jsonc,
                servers: &["servers"],
                shape: Shape::Typed,
                placeholders: &["${"],
            },
            Self::Cursor => &Facts {
                name: "Cursor",
                format: Format::Jsonc,
                servers: &["mcpServers"],
                shape: Shape::Typed,
                placeholders: &["${"],
            },
            // Variables are replaced with and without braces.
            Self::Gemini => &Facts {
                name: "Gemini CLI",
                format: Format::Jsonc,
                servers: &["mcpServers"],
                shape: Shape::Plain,
                placeholders: &["$"],
            },
            Self::OpenCode => &Facts {
                name: "opencode",
                format: Format::Jsonc,
                servers: &["mcp"],
                shape: Shape::Local,
                placeholders: &["{env:", "{file:"],
            },
            Self::Goose => &Facts {
                name: "goose",
                format: Format::Yaml,
                servers: &["extensions"],
                shape: Shape::Extension,
                placeholders: &["$"],
            },
            // Commands and arguments are expanded as in a shell.
            Self::Crush => &Facts {
                name: "Crush",
                format: Format::Jsonc,
                servers: &["mcp"],
                shape: Shape::Typed,
                placeholders: &["$", "`"],
            },
            Self::Zed => &Facts {
                name: "Zed",
                format: Format::Jsonc,
                servers: &["context_servers"],
                shape: Shape::Plain,
                placeholders: &[],
            },
        }
    }

    /// Sentence about the way the client takes up a new entry, where it needs a step of a person.
    pub fn note(self, scope: Scope) -> Option<&'static str> {
        match (self, scope) {
            (Self::ClaudeCode, Scope::Project) => Some("Claude Code asks before it starts a server of a project"),
            (Self::ClaudeDesktop, _) => Some("restart Claude Desktop to start the server"),
            (Self::Codex, Scope::Project) => Some("Codex reads this file only in a project that it trusts"),
            (Self::Gemini, Scope::Project) => Some("Gemini CLI reads this file only in a folder that it trusts"),
            (Self::Zed, Scope::Project) => Some("Zed starts servers of a project only after you trust the project"),
            _ => None,
        }
    }
}
