//! The table of interfaces: every interface that the host links or refuses by name, with its versions, the capability that it
//! belongs to, its effect and the programs that may import it. The sandbox, `inspect` and the inference of facts read it.

mod link;
pub mod preview1;

use crate::capability::Capability;
use crate::externs::Import;

pub use link::{CapabilityRequest, ImportedInterface, requests, unlinked};

/// Prefix of the interfaces between the host and the script interpreter.
const SCRIPT: &str = "toolcrib:script/";
/// Prefix of the interfaces that only interpreters of programs import.
const CODE: &str = "toolcrib:code/";

/// One interface that the host knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interface {
    /// Name without version. A name that ends in `/` is a package and matches all of its interfaces.
    pub name: &'static str,
    /// Versions that are linked.
    pub versions: Versions,
    /// Capability that it belongs to.
    pub capability: Capability,
    /// Effect that a program can have through it.
    pub effect: Effect,
    /// Programs that may import it, and the way in which it is linked.
    pub link: Link,
}

/// Versions of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Versions {
    /// WASI 0.2.
    Wasi02,
    /// Major version 1 of the contract `toolcrib:tool`.
    Contract1,
    /// Any version or none: drafts.
    Any,
}

impl Versions {
    /// Returns `true` if this version is among them.
    pub fn contain(self, version: &str) -> bool {
        match self {
            Self::Wasi02 => version.starts_with("0.2."),
            Self::Contract1 => version.starts_with("1."),
            Self::Any => true,
        }
    }

    /// The name that messages use.
    fn as_str(self) -> &'static str {
        match self {
            Self::Wasi02 => "0.2",
            Self::Contract1 => "1",
            Self::Any => "any",
        }
    }
}

/// Effect that a program can have through an interface or a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// Nothing outside of the call changes or is reached.
    None,
    /// Files change, if the tool may write any.
    Files,
    /// Values are stored for later calls, if the tool may store any.
    Store,
    /// A network is reached.
    Network,
    /// Another or an unknown effect.
    Other,
}

/// Programs that may import an interface, and the way in which it is linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Link {
    /// Every component; linked in advance.
    All,
    /// Rich tools and components of functions, not commands.
    Tools,
    /// Every component; linked for a component that imports it, under the name that it imports.
    OnImport,
    /// Every component; linked so that each use is refused.
    Refused,
}

impl Interface {
    const fn wasi(name: &'static str, capability: Capability, effect: Effect) -> Self {
        Self { name, versions: Versions::Wasi02, capability, effect, link: Link::All }
    }

    const fn contract(name: &'static str, capability: Capability, effect: Effect) -> Self {
        Self { name, versions: Versions::Contract1, capability, effect, link: Link::Tools }
    }

    const fn draft(name: &'static str, capability: Capability, effect: Effect) -> Self {
        Self { name, versions: Versions::Any, capability, effect, link: Link::OnImport }
    }

    fn has_name(&self, name: &str) -> bool {
        self.name == name || (self.name.ends_with('/') && name.starts_with(self.name))
    }
}

/// Every interface that the host knows.
pub const INTERFACES: [Interface; 36] = [
    Interface::wasi("wasi:cli/environment", Capability::Environment, Effect::None),
    Interface::wasi("wasi:cli/exit", Capability::Exit, Effect::None),
    Interface::wasi("wasi:cli/stderr", Capability::Streams, Effect::None),
    Interface::wasi("wasi:cli/stdin", Capability::Streams, Effect::None),
    Interface::wasi("wasi:cli/stdout", Capability::Streams, Effect::None),
    Interface::wasi("wasi:cli/terminal-input", Capability::Streams, Effect::None),
    Interface::wasi("wasi:cli/terminal-output", Capability::Streams, Effect::None),
    Interface::wasi("wasi:cli/terminal-stderr", Capability::Streams, Effect::None),
    Interface::wasi("wasi:cli/terminal-stdin", Capability::Streams, Effect::None),
    Interface::wasi("wasi:cli/terminal-stdout", Capability::Streams, Effect::None),
    Interface::wasi("wasi:clocks/monotonic-clock", Capability::Clock, Effect::None),
    Interface::wasi("wasi:clocks/wall-clock", Capability::Clock, Effect::None),
    Interface::wasi("wasi:filesystem/preopens", Capability::Files, Effect::None),
    Interface::wasi("wasi:filesystem/types", Capability::Files, Effect::Files),
    Interface::wasi("wasi:http/outgoing-handler", Capability::Http, Effect::Network),
    Interface::wasi("wasi:http/types", Capability::Http, Effect::Network),
    Interface::wasi("wasi:io/error", Capability::Io, Effect::None),
    Interface::wasi("wasi:io/poll", Capability::Io, Effect::None),
    Interface::wasi("wasi:io/streams", Capability::Io, Effect::None),
    Interface::wasi("wasi:random/insecure", Capability::Random, Effect::None),
    Interface::wasi("wasi:random/insecure-seed", Capability::Random, Effect::None),
    Interface::wasi("wasi:random/random", Capability::Random, Effect::None),
    Interface::draft("wasi:config/runtime", Capability::Config, Effect::None),
    Interface::draft("wasi:config/store", Capability::Config, Effect::None),
    Interface::draft("wasi:keyvalue/atomics", Capability::KeyValue, Effect::Store),
    Interface::draft("wasi:keyvalue/batch", Capability::KeyValue, Effect::Store),
    Interface::draft("wasi:keyvalue/store", Capability::KeyValue, Effect::Store),
    Interface::draft("wasi:logging/logging", Capability::Logging, Effect::None),
    Interface { link: Link::Refused, ..Interface::wasi("wasi:sockets/", Capability::Sockets, Effect::None) },
    Interface::contract("toolcrib:tool/cache", Capability::Cache, Effect::Other),
    Interface::contract("toolcrib:tool/log", Capability::Logging, Effect::None),
    Interface::contract("toolcrib:tool/model", Capability::Model, Effect::Other),
    Interface::contract("toolcrib:tool/progress", Capability::Progress, Effect::None),
    Interface::contract("toolcrib:tool/secrets", Capability::Secrets, Effect::None),
    Interface::contract("toolcrib:tool/tools", Capability::Tools, Effect::Other),
    Interface::contract("toolcrib:tool/types", Capability::Types, Effect::None),
];

/// Splits the name of an import into the interface and its version; the version is empty if it is missing.
pub fn split(import: &str) -> (&str, &str) {
    import.split_once('@').unwrap_or((import, ""))
}

/// Returns the row for an interface, whatever its version.
pub fn find(interface: &str) -> Option<&'static Interface> {
    INTERFACES.iter().find(|known| known.has_name(interface))
}

/// Returns the row for an import, if its version is linked.
pub fn find_import(import: &str) -> Option<&'static Interface> {
    let (interface, version) = split(import);
    find(interface).filter(|known| known.versions.contain(version))
}

/// Functions of `wasi:filesystem/types` that change no file. `open-at` is not among them: it creates and truncates.
const READING_FILES: [&str; 16] = [
    "filesystem-error-code",
    "[method]descriptor.advise",
    "[method]descriptor.get-flags",
    "[method]descriptor.get-type",
    "[method]descriptor.is-same-object",
    "[method]descriptor.metadata-hash",
    "[method]descriptor.metadata-hash-at",
    "[method]descriptor.read",
    "[method]descriptor.read-directory",
    "[method]descriptor.read-via-stream",
    "[method]descriptor.readlink-at",
    "[method]descriptor.stat",
    "[method]descriptor.stat-at",
    "[method]descriptor.sync",
    "[method]descriptor.sync-data",
    "[method]directory-entry-stream.read-directory-entry",
];

/// Returns the effect of a component import.
///
/// Requests by HTTP count as such in every version, so that a declaration against them is found before linking fails.
pub fn effect(import: &Import) -> Effect {
    if import.from.starts_with("wasi:http/") {
        return Effect::Network;
    }
    match find_import(&import.from).map_or(Effect::Other, |known| known.effect) {
        Effect::Files if import.functions.iter().all(|name| READING_FILES.contains(&name.as_str())) => Effect::None,
        effect => effect,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_a_name_of_its_own() {
        for (index, known) in INTERFACES.iter().enumerate() {
            assert_eq!(find(known.name), Some(known));
            assert!(INTERFACES[..index].iter().all(|other| !other.has_name(known.name)), "{}", known.name);
        }
    }

    #[test]
    fn an_effect_depends_on_version_and_function() {
        for (import, function, expected) in [
            ("wasi:filesystem/types@0.2.6", "[method]descriptor.stat", Effect::None),
            ("wasi:filesystem/types@0.2.6", "[method]descriptor.open-at", Effect::Files),
            ("wasi:filesystem/types@0.3.0", "[method]descriptor.stat", Effect::Other),
            ("wasi:http/incoming-handler@0.3.0", "handle", Effect::Network),
            ("wasi:keyvalue/store@0.2.0-draft", "open", Effect::Store),
            ("wasi:sockets/tcp@0.2.0", "bind", Effect::None),
            ("toolcrib:tool/log@1.0.0", "log", Effect::None),
            ("toolcrib:tool/log@2.0.0", "log", Effect::Other),
            ("a:b/c", "f", Effect::Other),
        ] {
            let import = Import { from: import.to_owned(), functions: vec![function.to_owned()] };
            assert_eq!(effect(&import), expected, "{import:?}");
        }
    }
}
