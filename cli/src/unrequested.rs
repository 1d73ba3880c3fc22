//! Interfaces that a program imports and its tools do not request: every use of one is refused, whatever is granted. Only the
//! author can mend that, in the descriptor.

use toolcrib::Tool;
use toolcrib::tool::{Capabilities, FileRequest, NetworkRequest};

/// Interfaces with the capability that a tool requests for them. A standard library imports some interfaces for every
/// program; those are not in the list.
const INTERFACES: [Interface; 5] = [
    Interface {
        name: "wasi:filesystem/types@",
        function: Some("[method]descriptor.open-at"),
        capability: "files",
        is_requested: |requested| requested.files != FileRequest::None,
        option: "files = \"read\"` or `files = \"write\"",
    },
    Interface {
        name: "wasi:http/outgoing-handler@",
        function: None,
        capability: "network",
        is_requested: |requested| requested.network != NetworkRequest::None || !requested.secrets.is_empty(),
        option: "network(\"HOST\")",
    },
    Interface {
        name: "toolcrib:tool/model@",
        function: None,
        capability: "model",
        is_requested: |requested| requested.model,
        option: "model",
    },
    Interface {
        name: "toolcrib:tool/tools@",
        function: None,
        capability: "tools",
        is_requested: |requested| !requested.tools.is_empty(),
        option: "tools(\"NAME\")",
    },
    Interface {
        name: "toolcrib:tool/cache@",
        function: None,
        capability: "cache",
        is_requested: |requested| requested.cache,
        option: "cache",
    },
];

/// An interface and the request for it.
struct Interface {
    /// Name up to the version.
    name: &'static str,
    /// Function that shows the use; any if `None`.
    function: Option<&'static str>,
    /// Key of `capabilities` in a descriptor.
    capability: &'static str,
    is_requested: fn(&Capabilities) -> bool,
    /// Option of the macro `#[tool]`.
    option: &'static str,
}

/// Capability that a program uses and none of its tools requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unrequested {
    /// The import.
    pub(crate) import: String,
    /// Key of `capabilities` in a descriptor.
    pub(crate) capability: &'static str,
    option: &'static str,
}

impl Unrequested {
    /// Advice for the author.
    pub(crate) fn advice(&self) -> String {
        let Self { capability, option, .. } = self;
        format!(
            "request it with `{option}` in `#[tool(…)]`, or as `{capability}` in the `capabilities` of the descriptor"
        )
    }
}

/// Returns the capabilities that the program of some tools uses and none of them requests. Tools that declare no requests get
/// all that flags grant.
pub(crate) fn unrequested(tools: &[Tool]) -> Vec<Unrequested> {
    let imports = tools.first().and_then(|tool| tool.imports.as_deref()).unwrap_or_default();
    if tools.iter().any(|tool| !tool.requested.declared) {
        return Vec::new();
    }
    let used = imports.iter().filter_map(|import| {
        let interface = INTERFACES.iter().find(|interface| {
            let uses = |function: &str| import.functions.iter().any(|used| used == function);
            import.from.starts_with(interface.name) && interface.function.is_none_or(uses)
        })?;
        let is_requested = tools.iter().any(|tool| (interface.is_requested)(&tool.requested));
        let Interface { capability, option, .. } = interface;
        (!is_requested).then(|| Unrequested { import: import.from.clone(), capability, option })
    });
    used.collect()
}
