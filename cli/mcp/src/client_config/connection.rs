//! Server entries as they are in a client's settings: a program or an address, with the fields of every client's
//! spelling.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::client::{Client, SERVER};
use super::merge::{NATIVE_SERVERS, without_mark};

/// Names of the field with the program; in opencode it holds the arguments too.
const COMMANDS: [&str; 2] = ["command", "cmd"];
/// Names of the field for program variables.
const ENVIRONMENTS: [&str; 3] = ["env", "envs", "environment"];
/// Names of the field with an address.
const ADDRESSES: [&str; 3] = ["url", "httpUrl", "uri"];
/// Names of the field with request headers.
const HEADERS: [&str; 2] = ["headers", "http_headers"];
/// Field of Codex that names the variable with a token.
const TOKEN_VARIABLE: &str = "bearer_token_env_var";
/// Key of the entries that Claude Code keeps for one folder.
const PROJECTS: &str = "projects";

/// Server entry of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// Keys from the top of the file to the entry.
    pub keys: Vec<String>,
    /// `true` if the client does not use the entry.
    pub is_disabled: bool,
    /// Program or address of the server.
    pub target: Target,
}

/// Place of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A program that talks over standard streams.
    Program(Program),
    /// A server that listens.
    Address(Address),
}

/// Program of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Path or name of the program.
    pub command: String,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Variables in addition to the client's own.
    pub environment: Vec<(String, String)>,
    /// Folder in which the client starts the program.
    pub folder: Option<PathBuf>,
}

/// Address of an entry. Its token is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Address of the server.
    pub url: String,
    /// Value of the header `Authorization`.
    pub authorization: Option<String>,
    /// Name of the variable with the token.
    pub token_variable: Option<String>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Connection {
    /// Name of the server in the client.
    pub fn name(&self) -> &str {
        self.keys.last().map_or("", String::as_str)
    }

    /// `true` for the name under which this program is added to a client.
    pub fn has_own_name(&self) -> bool {
        self.name() == SERVER
    }

    fn read(keys: Vec<String>, entry: &Value) -> Option<Self> {
        let entry = entry.as_object()?;
        let flag = |name: &str| entry.get(name).and_then(Value::as_bool);
        let is_disabled = flag("enabled") == Some(false) || flag("disabled") == Some(true);
        let target = Program::read(entry).map(Target::Program).or_else(|| Address::read(entry).map(Target::Address))?;
        Some(Self { keys, is_disabled, target })
    }
}

impl Program {
    fn read(entry: &Map<String, Value>) -> Option<Self> {
        let mut line = match first(entry, &COMMANDS)? {
            Value::String(command) => vec![command.clone()],
            line => texts(line),
        };
        line.extend(entry.get("args").map(texts).unwrap_or_default());
        let folder = entry.get("cwd").and_then(Value::as_str).map(PathBuf::from);
        let mut line = line.into_iter();
        let environment = first(entry, &ENVIRONMENTS).map(named_texts).unwrap_or_default();
        Some(Self { command: line.next()?, arguments: line.collect(), environment, folder })
    }
}

impl Address {
    fn read(entry: &Map<String, Value>) -> Option<Self> {
        let url = first(entry, &ADDRESSES)?.as_str()?.to_owned();
        let headers = first(entry, &HEADERS).map(named_texts).unwrap_or_default();
        let authorization = headers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let token_variable = entry.get(TOKEN_VARIABLE).and_then(Value::as_str).map(str::to_owned);
        Some(Self { url, authorization: authorization.map(|(_, value)| value), token_variable })
    }
}

impl Client {
    /// Lists the server entries of a settings file, in their order. `folder` is the present one, for which Claude Code keeps
    /// entries in the user's file. Entries of an unknown form are left out.
    ///
    /// # Errors
    ///
    /// The reason why the text cannot be read.
    pub fn connections(self, text: &str, folder: &Path) -> Result<Vec<Connection>, String> {
        let facts = self.facts();
        let document = facts.format.read(without_mark(text).1)?;
        let servers: Vec<String> = facts.servers.iter().map(|&key| key.to_owned()).collect();
        let mut places = vec![servers.clone()];
        match self {
            Self::OpenCode => places.push([servers, vec![NATIVE_SERVERS.to_owned()]].concat()),
            Self::ClaudeCode => {
                let folder = folder.to_string_lossy().into_owned();
                places.push([vec![PROJECTS.to_owned(), folder], servers].concat());
            }
            _ => {}
        }
        let found = places.iter().filter_map(|keys| Some((keys, section(&document, keys)?)));
        let entries = found.flat_map(|(keys, servers)| {
            servers.iter().filter_map(move |(name, entry)| {
                Connection::read([keys.as_slice(), std::slice::from_ref(name)].concat(), entry)
            })
        });
        Ok(entries.collect())
    }

    /// `true` if the client replaces a part of the text.
    pub fn replaces(self, text: &str) -> bool {
        self.facts().placeholders.iter().any(|begin| text.contains(begin))
    }
}

/// Returns the map at the end of these keys.
fn section<'d>(document: &'d Value, keys: &[String]) -> Option<&'d Map<String, Value>> {
    keys.iter().try_fold(document, |value, key| value.get(key))?.as_object()
}

/// Returns the first of these fields that an entry has.
fn first<'a>(entry: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| entry.get(*name))
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn named_texts(map: &Value) -> Vec<(String, String)> {
    let members = map.as_object().into_iter().flatten();
    members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::super::{Launch, Plan};
    use super::*;

    fn program(command: &str, arguments: &[&str]) -> Program {
        let arguments = arguments.iter().map(|&text| text.to_owned()).collect();
        Program { command: command.to_owned(), arguments, environment: Vec::new(), folder: None }
    }

    fn connections(client: Client, text: &str) -> Vec<Connection> {
        client.connections(text, Path::new("/p")).unwrap_or_else(|error| panic!("{client:?}: {error}"))
    }

    #[test]
    fn every_client_s_own_fragment_is_read_back() {
        let arguments = ["mcp", "--tools", "/a \"b\"/t.json"];
        let wanted = program("/bin/toolcrib", &arguments);
        let launch = Launch { command: wanted.command.clone(), arguments: wanted.arguments.clone() };
        for client in Client::value_variants() {
            let fragment = Plan::new(*client, &launch, "").fragment();
            let found = connections(*client, &fragment);
            assert_eq!(found.len(), 1, "{client:?}: {fragment}");
            assert!(found[0].has_own_name() && !found[0].is_disabled, "{client:?}: {found:?}");
            assert_eq!(found[0].target, Target::Program(wanted.clone()), "{client:?}");
            assert!(connections(*client, "").is_empty(), "{client:?}");
        }
    }

    #[test]
    fn variables_folders_states_and_addresses_are_read_in_every_spelling() {
        let text = r#"{"mcp": {
            "a": {"type": "local", "command": ["toolcrib", "mcp"], "enabled": false, "environment": {"K": "v"}, "cwd": "/w"},
            "b": {"type": "remote", "url": "http://127.0.0.1:1/mcp", "headers": {"authorization": "Bearer t"}},
            "servers": {"c": {"type": "local", "command": ["x"], "disabled": true}},
            "d": {"type": "unknown"}, "e": 1}}"#;
        let found = connections(Client::OpenCode, text);
        assert_eq!(found.iter().map(Connection::name).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(found.iter().map(|found| found.is_disabled).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(found[2].keys, ["mcp", "servers", "c"]);
        let mut wanted = program("toolcrib", &["mcp"]);
        wanted.environment.push(("K".to_owned(), "v".to_owned()));
        wanted.folder = Some("/w".into());
        assert_eq!(found[0].target, Target::Program(wanted));
        let Target::Address(address) = &found[1].target else { panic!("{found:?}") };
        assert_eq!(address.authorization.as_deref(), Some("Bearer t"));
        assert!(!format!("{found:?}").contains("Bearer"), "a token is a secret");
        let found = connections(
            Client::Codex,
            "[mcp_servers.toolcrib]\nurl = \"http://localhost:1/mcp\"\nbearer_token_env_var = \"T\"\n",
        );
        let Target::Address(address) = &found[0].target else { panic!("{found:?}") };
        assert_eq!((&address.authorization, address.token_variable.as_deref()), (&None, Some("T")));
        let text = r#"{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}, "/q": {"mcpServers": {"b": {"command": "x"}}}}}"#;
        let found = connections(Client::ClaudeCode, text);
        assert_eq!(found.iter().map(|found| found.keys.join(".")).collect::<Vec<_>>(), ["projects./p.mcpServers.a"]);
    }

    #[test]
    fn other_forms_of_entries_and_texts_are_no_connection() {
        for text in
            ["{\"mcpServers\": []}", "{\"mcpServers\": {\"toolcrib\": {\"command\": []}}}", "{\"mcpServers\": null}"]
        {
            assert!(connections(Client::Cursor, text).is_empty(), "{text}");
        }
        assert!(Client::Cursor.connections("{", Path::new("/p")).is_err());
        assert!(Client::VsCode.replaces("${workspaceFolder}/x") && !Client::Zed.replaces("${x}"));
    }
}
