//! Capabilities that a tool uses and does not request: every use of one is refused, whatever is granted. Only the author can
//! mend that, in the descriptor of a component or in the front matter of a script. Imports show the uses of a program before any
//! call; an attempt shows the use by a script.

use toolcrib::Tool;
use toolcrib::tool::{Body, Capabilities, FileRequest, Import, NetworkRequest, Service, ServiceKind};
use toolcrib_base::render::{MAX_NAMED, one_line};
use toolcrib_component::capability::Capability;
use toolcrib_component::interfaces::{find, split};

/// A request of a tool: a service, or one of the other capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Files,
    Network,
    Cache,
    Service(Service),
}

impl Request {
    fn all() -> impl Iterator<Item = Self> {
        [Self::Files, Self::Network, Self::Cache].into_iter().chain(Service::ALL.map(Self::Service))
    }

    /// Returns the request for an import; `None` if it needs none, or if a standard library imports it for every program.
    fn of_import(import: &Import) -> Option<Self> {
        let opens = || import.functions.iter().any(|function| function == "[method]descriptor.open-at");
        let interface = find(split(&import.from).0)?;
        match interface.capability {
            Capability::Files if opens() => Some(Self::Files),
            Capability::Http if interface.name == "wasi:http/outgoing-handler" => Some(Self::Network),
            Capability::Cache => Some(Self::Cache),
            Capability::Model => Some(Self::Service(Service::Model)),
            Capability::Tools => Some(Self::Service(Service::Call)),
            _ => None,
        }
    }

    /// Key of `capabilities` in a descriptor.
    fn key(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Network => "network",
            Self::Cache => "cache",
            Self::Service(service) => service.key(),
        }
    }

    fn is_in(self, requested: &Capabilities) -> bool {
        match self {
            Self::Files => requested.files != FileRequest::None,
            Self::Network => requested.network != NetworkRequest::None || !requested.secrets.is_empty(),
            Self::Cache => requested.cache,
            Self::Service(service) => !requested.service(service).is_empty(),
        }
    }

    /// Option of the macro `#[tool]`, and field of `capabilities` in front matter.
    fn written(self) -> [String; 2] {
        let key = self.key();
        match self {
            Self::Files => {
                ["files = \"read\"` or `files = \"write\"", "files: read` or `files: write"].map(str::to_owned)
            }
            Self::Network => [format!("{key}(\"HOST\")"), format!("{key}: [HOST]")],
            Self::Service(service) if service.kind() == ServiceKind::Names => {
                [format!("{key}(\"NAME\")"), format!("{key}: [NAME]")]
            }
            Self::Cache | Self::Service(_) => [key.to_owned(), format!("{key}: true")],
        }
    }

    /// Returns the missing request if none of the tools has it.
    fn missing(self, tools: &[Tool], import: &str, place: Place) -> Option<Unrequested> {
        let is_requested = tools.iter().any(|tool| self.is_in(&tool.requested));
        (!is_requested).then(|| Unrequested { import: import.to_owned(), capability: self.key(), request: self, place })
    }
}

/// Place of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Descriptor,
    /// Front matter of this file.
    FrontMatter(String),
}

/// Capability that a program or a script can use and none of its tools requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrequested {
    /// The import; empty for a script.
    pub import: String,
    /// Key of `capabilities` in a descriptor.
    pub capability: &'static str,
    request: Request,
    place: Place,
}

impl Unrequested {
    /// Advice for the author.
    pub fn advice(&self) -> String {
        let Self { capability, place, .. } = self;
        let [option, field] = self.request.written();
        match place {
            Place::Descriptor => format!(
                "request it with `{option}` in `#[tool(…)]`, or as `{capability}` in the `capabilities` of the descriptor"
            ),
            Place::FrontMatter(file) => format!("add `{field}` to `capabilities` in `{file}`"),
        }
    }
}

/// Returns the capabilities that the program of some tools imports, or that a script can use, and that none of these
/// tools requests. Tools that declare no requests get all that flags grant.
pub fn unrequested(tools: &[Tool]) -> Vec<Unrequested> {
    if tools.iter().any(|tool| !tool.requested.declared) {
        return Vec::new();
    }
    if let Some(Tool { body: Body::Script(_), origin, .. }) = tools.first() {
        let file = origin.path.file_name().unwrap_or_default().to_string_lossy();
        let place = Place::FrontMatter(one_line(&file));
        return Request::all().filter_map(|request| request.missing(tools, "", place.clone())).collect();
    }
    let imports = tools.first().and_then(|tool| tool.imports.as_deref()).unwrap_or_default();
    let missing = |import: &Import| Request::of_import(import)?.missing(tools, &import.from, Place::Descriptor);
    imports.iter().filter_map(missing).collect()
}

/// Functions of scripts that read a variable.
const READS: [&str; 2] = ["env.get(", "env.has("];
/// Variables that every guest has, with values of its own.
const OWN: [&str; 2] = ["PATH", "HOME"];

/// Variables that a script reads by a name in its text and does not request: they are never there.
#[derive(Debug, PartialEq, Eq)]
pub struct UnrequestedVariables {
    names: Vec<String>,
    /// Requested variables and these, for the front matter.
    all: Vec<String>,
    file: String,
}

impl UnrequestedVariables {
    /// Finds the variables of a script; `None` for a tool that gets all that flags grant.
    pub fn of(tool: &Tool) -> Option<Self> {
        let Body::Script(script) = &tool.body else { return None };
        let requested = &tool.requested;
        if !requested.declared {
            return None;
        }
        let is_known = |name: &str| OWN.contains(&name) || requested.env.iter().any(|known| known == name);
        let mut names: Vec<String> = Vec::new();
        for name in script.source.lines().flat_map(variables).filter(|name| !is_known(name)) {
            if !names.iter().any(|known| known == name) && names.len() < MAX_NAMED {
                names.push(name.to_owned());
            }
        }
        let file = one_line(&tool.origin.path.file_name().unwrap_or_default().to_string_lossy());
        let all = [requested.env.as_slice(), &names].concat();
        (!names.is_empty()).then_some(Self { names, all, file })
    }

    /// The variables, and that they are not requested.
    pub fn message(&self) -> String {
        let names = self.names.join("`, `");
        match self.names.len() {
            1 => format!("the variable `{names}` and does not request it"),
            _ => format!("the variables `{names}` and does not request them"),
        }
    }

    /// Advice for the author.
    pub fn advice(&self) -> String {
        format!("add `env: [{}]` to `capabilities` in `{}`", self.all.join(", "), self.file)
    }
}

/// Returns the names of variables that a script line reads.
fn variables(line: &str) -> Vec<&str> {
    if line.trim_start().starts_with('#') {
        return Vec::new();
    }
    let reads = READS.iter().flat_map(|read| line.match_indices(read));
    let name = |(at, read): (usize, &str)| {
        let before = line[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.') {
            return None;
        }
        let argument = line[at + read.len()..].trim_start();
        let quote = argument.chars().next().filter(|c| ['"', '\''].contains(c))?;
        let (name, _) = argument[1..].split_once(quote)?;
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then_some(name)
    };
    reads.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_that_a_line_reads_are_those_with_a_plain_name() {
        for (line, names) in [
            (r#"key = env.get("API_KEY") or env.get( 'TZ', "UTC")"#, &["API_KEY", "TZ"][..]),
            (r#"if env.has("A"):"#, &["A"]),
            (r#"# env.get("A")"#, &[]),
            (r#"my_env.get("A") + a.env.get("B") + env.get(name) + env.get("a b") + env.get("#, &[]),
        ] {
            assert_eq!(variables(line), names, "{line}");
        }
    }
}
