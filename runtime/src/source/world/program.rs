//! A program as the entries of a source use it: its imports, the contract for calling it, and its descriptors. Each
//! program is read once.

use std::path::Path;
use std::sync::Arc;

use toolcrib_component::externs::Externs;
use toolcrib_component::functions::{self, Exported, Names};
use toolcrib_component::{Error, INTERPRETER, Language, RUN, descriptor};
use toolcrib_foundation::text::{MAX_MESSAGE, truncate};

use crate::source::diagnostics::{Diagnostics, ScopedDiagnostic};
use crate::source::{files, program, program_bytes};
use crate::tool::typed::Typed;
use crate::tool::{Import, RichExports};

use super::descriptor::Descriptor;
use super::unfit;

/// Prefix of the contract's interface names.
const PACKAGE: &str = "toolcrib:tool/";
/// Version in these names: every minor version of the first major one.
const VERSION: &str = "@1.";

/// Facts about a program.
pub(super) struct Program {
    /// Imports; `None` if they are unknown.
    pub(super) imports: Option<Arc<[Import]>>,
    pub(super) contract: Contract,
    /// Reason why it cannot be linked: nothing else of it is read.
    pub(super) unlinked: Option<String>,
    /// Reason why it has nothing to call, if nothing else is wrong.
    pub(super) uncallable: Option<String>,
}

/// Reason why no tool can use a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It cannot be opened.
    Unavailable(String),
    /// It can never run.
    Unrunnable(String),
}

/// Contract for calling a program.
pub(super) enum Contract {
    /// Unknown: it can only be a command.
    Unknown,
    Known {
        kind: Kind,
        described: Vec<Arc<Descriptor>>,
        /// Problems of the descriptors.
        problems: Vec<ScopedDiagnostic>,
    },
}

/// Kind of a known contract.
pub(super) enum Kind {
    /// The contract of rich tools, with the optional parts that the program exports.
    Rich(RichExports),
    /// Exported functions, or the reason why they cannot be read.
    Functions(Result<Functions, String>),
    /// `wasi:cli/run`.
    Command,
    /// The contract of interpreters, with the language, or the reason why it is unknown.
    Interpreter(Result<Language, String>),
}

/// Functions that a component exports outside of contracts.
pub(super) struct Functions {
    pub(super) callable: Vec<(Arc<Typed>, Names)>,
    /// Functions that cannot be tools, each with the reason.
    pub(super) skipped: Vec<(String, String)>,
    /// `true` if it is a command too.
    pub(super) is_command: bool,
}

impl Program {
    /// Reads a program.
    ///
    /// # Errors
    ///
    /// No tool can run it, as far as its bytes show without compilation.
    pub(super) fn read(path: &Path) -> Result<Self, Unusable> {
        program::available(path).map_err(Unusable::Unavailable)?;
        // Every read of a program in a bundle is a read of all of it.
        let whole =
            files::is_bundled(path).then(|| program_bytes(path).map_err(|error| format!("cannot be read: {error}")));
        let externs = match &whole {
            Some(Ok(bytes)) => Externs::of(bytes),
            Some(Err(reason)) => return Err(Unusable::Unavailable(reason.clone())),
            None => Externs::read(path),
        };
        let externs = match externs {
            Ok(externs) => externs,
            Err(error @ (Error::Truncated { .. } | Error::UnknownVersion)) => {
                return Err(Unusable::Unrunnable(error.to_string()));
            }
            // The compiler reports the reason.
            Err(_) => return Ok(Self::unread(None, None)),
        };
        if let Some(why) = &externs.unsupported {
            return Err(Unusable::Unrunnable(truncate(why, MAX_MESSAGE)));
        }
        let skipped = || {
            let read = |bytes: &[u8]| functions::read(bytes).map(|exported| exported.skipped).unwrap_or_default();
            match &whole {
                Some(bytes) => bytes.as_ref().map(|bytes| read(bytes)).unwrap_or_default(),
                None => program_bytes(path).map(|bytes| read(&bytes)).unwrap_or_default(),
            }
        };
        let [unlinked, uncallable] = [unfit::unlinked(&externs, skipped), unfit::uncallable(&externs)]
            .map(|why| why.map(|why| truncate(&why, MAX_MESSAGE)));
        let has_own_exports = functions::has_own_exports(&externs);
        let Externs { imports, exports, has_descriptor, .. } = externs;
        let imports = Some(Arc::from(imports));
        if unlinked.is_some() {
            return Ok(Self::unread(imports, unlinked));
        }
        let is_rich = exports_part(&exports, "call");
        let is_interpreter = !is_rich && exports.iter().any(|name| name.starts_with(INTERPRETER));
        let is_typed = !(is_rich || is_interpreter) && has_own_exports;
        if !(is_rich || is_typed || is_interpreter || has_descriptor) {
            return Ok(Self { uncallable, ..Self::unread(imports, None) });
        }
        let bytes = whole.unwrap_or_else(|| program_bytes(path).map_err(|error| format!("cannot be read: {error}")));
        let mut report = Diagnostics::new(path);
        let descriptors = match &bytes {
            Ok(bytes) => descriptor::sections(bytes).map_err(|error| error.to_string()),
            Err(why) => Err(why.clone()),
        };
        let described = match descriptors {
            Ok(descriptors) => {
                let several = descriptors.len() > 1;
                let each = descriptors.into_iter().enumerate();
                each.filter_map(|(index, one)| Descriptor::read(index, one, several, &mut report).map(Arc::new))
                    .collect()
            }
            Err(reason) => {
                report.error(&reason);
                Vec::new()
            }
        };
        for ScopedDiagnostic { problem, reason, .. } in &mut report.problems {
            problem.message = truncate(&problem.message, MAX_MESSAGE);
            *reason = reason.as_deref().map(|reason| truncate(reason, MAX_MESSAGE));
        }
        let kind = match (is_rich, bytes) {
            (true, _) => Kind::Rich(optional_parts(&exports)),
            (_, Ok(bytes)) if is_interpreter => Kind::Interpreter(read_language(&bytes)),
            (_, Ok(bytes)) if is_typed => Kind::Functions(Functions::read(&bytes, &exports, path)),
            _ => Kind::Command,
        };
        let contract = Contract::Known { kind, described, problems: report.problems };
        Ok(Self { imports, contract, unlinked: None, uncallable })
    }

    /// Creates a program that is read no further.
    fn unread(imports: Option<Arc<[Import]>>, unlinked: Option<String>) -> Self {
        Self { imports, contract: Contract::Unknown, unlinked, uncallable: None }
    }
}

impl Functions {
    fn read(bytes: &[u8], exports: &[String], path: &Path) -> Result<Self, String> {
        let Exported { functions, skipped, .. } = functions::read(bytes).map_err(|error| error.to_string())?;
        let names = functions::names(&functions).map_err(|error| error.to_string())?;
        let is_command = exports.iter().any(|name| name.starts_with(RUN));
        let typed = functions.into_iter().map(|function| Arc::new(Typed { program: path.to_path_buf(), function }));
        Ok(Self { callable: typed.zip(names).collect(), skipped, is_command })
    }
}

/// Returns the language of an interpreter, which it has to state.
fn read_language(bytes: &[u8]) -> Result<Language, String> {
    let stated = toolcrib_component::language(bytes).map_err(|error| error.to_string())?;
    stated.ok_or_else(|| "an interpreter of programs without the custom section `toolcrib:language`".to_owned())
}

/// Returns `true` if a component exports this interface of the rich tool contract.
fn exports_part(exports: &[String], interface: &str) -> bool {
    exports.iter().any(|name| {
        name.strip_prefix(PACKAGE)
            .and_then(|rest| rest.strip_prefix(interface))
            .is_some_and(|version| version.starts_with(VERSION))
    })
}

/// Returns the optional parts of the contract that a component exports.
fn optional_parts(exports: &[String]) -> RichExports {
    RichExports {
        validate: exports_part(exports, "validate"),
        preview: exports_part(exports, "preview"),
        prepare: exports_part(exports, "prepare"),
        route: exports_part(exports, "route"),
        present: exports_part(exports, "present"),
    }
}
