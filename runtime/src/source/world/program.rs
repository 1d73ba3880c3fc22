//! A program as a source's entries see it: what it imports, with which contract it can be called, and what it says of its
//! tools. All of it is read once.

use std::path::Path;

use serde_json::Value;

use crate::source::about::RUN;
use crate::source::imports::{self, Known};
use crate::source::typed::{self, Exported, Names};
use crate::source::{descriptor, program_bytes};
use crate::tool::typed::Function;
use crate::tool::{Import, Says};

/// How the names of the contract's interfaces begin and end: every version of the first major one.
const PACKAGE: &str = "toolcrib:tool/";
const VERSION: &str = "@1.";

/// What the bytes of a program tell.
pub(super) struct Program {
    pub(super) imports: Vec<Import>,
    pub(super) contract: Contract,
}

/// What is known of how a program is called.
pub(super) enum Contract {
    /// Nothing, but that it can only be a command.
    Unknown,
    Known {
        kind: Kind,
        descriptors: Result<Vec<Value>, String>,
    },
}

pub(super) enum Kind {
    /// By the contract of rich tools, of which it exports this.
    Rich(Says),
    /// By the functions that it exports.
    Functions(Result<Functions, String>),
    Command,
}

/// What a component exports by itself.
pub(super) struct Functions {
    pub(super) callable: Vec<(Function, Names)>,
    /// What can be no tool, and why.
    pub(super) refused: Vec<(String, String)>,
    /// Whether it is a command, too, or may be one: whoever runs it will say.
    pub(super) is_command: bool,
}

impl Program {
    /// Reads a program; `None` where its bytes do not tell anything.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let Known { imports, exports, is_described } = imports::read(path)?;
        let is_rich = says(&exports, "call");
        let is_typed = !is_rich && exports.iter().any(|name| !typed::is_contract(name));
        if !(is_rich || is_typed || is_described) {
            return Some(Self { imports, contract: Contract::Unknown });
        }
        let bytes = program_bytes(path).map_err(|error| format!("cannot be read: {error}"));
        let descriptors = bytes.as_ref().map_err(Clone::clone).and_then(|bytes| descriptor::sections(bytes));
        let kind = match (is_rich, bytes) {
            (true, _) => Kind::Rich(all(&exports)),
            (_, Ok(bytes)) if is_typed => Kind::Functions(Functions::read(&bytes, &exports)),
            _ => Kind::Command,
        };
        Some(Self { imports, contract: Contract::Known { kind, descriptors } })
    }
}

impl Functions {
    fn read(bytes: &[u8], exports: &[String]) -> Result<Self, String> {
        let Exported { functions, refused } = typed::read(bytes)?;
        let names = typed::names(&functions)?;
        let is_command = exports.iter().any(|name| name.starts_with(RUN));
        let is_command = is_command || functions.is_empty() && refused.is_empty();
        Ok(Self { callable: functions.into_iter().zip(names).collect(), refused, is_command })
    }
}

/// Whether a component exports this interface of our contract.
fn says(exports: &[String], interface: &str) -> bool {
    exports.iter().any(|name| {
        name.strip_prefix(PACKAGE)
            .and_then(|rest| rest.strip_prefix(interface))
            .is_some_and(|version| version.starts_with(VERSION))
    })
}

fn all(exports: &[String]) -> Says {
    Says {
        validate: says(exports, "validate"),
        preview: says(exports, "preview"),
        prepare: says(exports, "prepare"),
        route: says(exports, "route"),
        present: says(exports, "present"),
    }
}
