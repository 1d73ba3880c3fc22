//! A program as a source's entries see it: what it imports, with which contract it can be called, and what it says of its
//! tools. All of it is read once.

use std::path::Path;
use std::sync::Arc;

use crate::source::diagnostics::{Diagnostics, ScopedDiagnostic};
use crate::source::imports::{self, Known, Unread};
use crate::source::inspect::{RUN, cut};
use crate::source::typed::{self, Exported, Names};
use crate::source::{descriptor, program, program_bytes};
use crate::tool::typed::Typed;
use crate::tool::{Import, Says};

use super::described::Described;
use super::unfit;

/// How the names of the contract's interfaces begin and end: every version of the first major one.
const PACKAGE: &str = "toolcrib:tool/";
const VERSION: &str = "@1.";

/// The most characters of one thing that is wrong with a program: each entry that names it may tell that.
const MAX_REASON: usize = 1000;

/// What the bytes of a program tell.
pub(super) struct Program {
    /// `None` where they do not tell.
    pub(super) imports: Option<Arc<[Import]>>,
    pub(super) contract: Contract,
    /// Why it cannot be linked, where that is so: nothing else of it is read.
    pub(super) unlinked: Option<String>,
    /// Why it can be called in no way, where that is so and nothing else is wrong.
    pub(super) uncallable: Option<String>,
}

/// A program that is no tool's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unfit {
    /// There is none: the words are those of a manifest.
    Unavailable(String),
    /// It can never run.
    Unrunnable(String),
}

/// What is known of how a program is called.
pub(super) enum Contract {
    /// Nothing, but that it can only be a command.
    Unknown,
    Known {
        kind: Kind,
        described: Vec<Arc<Described>>,
        /// What is wrong in the descriptors.
        problems: Vec<ScopedDiagnostic>,
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
    pub(super) callable: Vec<(Arc<Typed>, Names)>,
    /// What can be no tool, and why.
    pub(super) refused: Vec<(String, String)>,
    /// Whether it is a command, too, or may be one: whoever runs it will say.
    pub(super) is_command: bool,
}

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    ///
    /// Why no tool can run it, as far as its bytes tell without compiling them.
    pub(super) fn read(path: &Path) -> Result<Self, Unfit> {
        program::available(path).map_err(Unfit::Unavailable)?;
        let known = match imports::read(path) {
            Ok(known) => known,
            Err(Unread::BreaksOff(at)) => return Err(Unfit::Unrunnable(unfit::breaks_off(at))),
            Err(Unread::Foreign) => return Err(Unfit::Unrunnable(unfit::FOREIGN.to_owned())),
            // Whoever compiles it will say why.
            Err(Unread::Unknown) => return Ok(Self::unread(None, None)),
        };
        let [unlinked, uncallable] =
            [unfit::unlinked(&known), unfit::uncallable(&known)].map(|why| why.map(|why| cut(&why, MAX_REASON)));
        let Known { imports, exports, is_described, .. } = known;
        let imports = Some(Arc::from(imports));
        if unlinked.is_some() {
            return Ok(Self::unread(imports, unlinked));
        }
        let is_rich = says(&exports, "call");
        let is_typed = !is_rich && exports.iter().any(|name| !typed::is_contract(name));
        if !(is_rich || is_typed || is_described) {
            return Ok(Self { uncallable, ..Self::unread(imports, None) });
        }
        let bytes = program_bytes(path).map_err(|error| format!("cannot be read: {error}"));
        let mut report = Diagnostics::new(path);
        let described = match bytes.as_ref().map_err(Clone::clone).and_then(|bytes| descriptor::sections(bytes)) {
            Ok(descriptors) => {
                let several = descriptors.len() > 1;
                let each = descriptors.into_iter().enumerate();
                each.filter_map(|(index, one)| Described::read(index, one, several, &mut report).map(Arc::new))
                    .collect()
            }
            Err(why) => {
                report.error(&why);
                Vec::new()
            }
        };
        for ScopedDiagnostic { problem, reason, .. } in &mut report.problems {
            problem.message = cut(&problem.message, MAX_REASON);
            *reason = reason.as_deref().map(|reason| cut(reason, MAX_REASON));
        }
        let kind = match (is_rich, bytes) {
            (true, _) => Kind::Rich(all(&exports)),
            (_, Ok(bytes)) if is_typed => Kind::Functions(Functions::read(&bytes, &exports, path)),
            _ => Kind::Command,
        };
        let contract = Contract::Known { kind, described, problems: report.problems };
        Ok(Self { imports, contract, unlinked: None, uncallable })
    }

    /// A program of which no more is read.
    fn unread(imports: Option<Arc<[Import]>>, unlinked: Option<String>) -> Self {
        Self { imports, contract: Contract::Unknown, unlinked, uncallable: None }
    }
}

impl Functions {
    fn read(bytes: &[u8], exports: &[String], path: &Path) -> Result<Self, String> {
        let Exported { functions, refused } = typed::read(bytes)?;
        let names = typed::names(&functions)?;
        let is_command = exports.iter().any(|name| name.starts_with(RUN));
        let typed = functions.into_iter().map(|function| Arc::new(Typed { program: path.to_path_buf(), function }));
        Ok(Self { callable: typed.zip(names).collect(), refused, is_command })
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
