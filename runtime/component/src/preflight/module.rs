//! The imports and exports of a core module before it is compiled. It may import preview 1, and exports a memory and `_start`.
//! Everything else is refused by its name.

use toolcrib_foundation::text::shown;
use wasmparser::{ExternalKind, Payload, TypeRef};

use crate::error::{Error, Result};
use crate::interfaces::preview1::{DRAFT, MODULE};
use crate::sections::payloads;

/// Export that starts a command.
pub const START: &str = "_start";
/// Export that initializes a reactor.
const INITIALIZE: &str = "_initialize";
const MEMORY: &str = "memory";

/// Checks that a core module can be a command of preview 1.
///
/// # Errors
///
/// An import or a missing export rules it out; the message names the fix.
pub(super) fn check(module: &[u8]) -> Result<()> {
    let (mut starts, mut initializes, mut has_memory) = (false, false, false);
    for payload in payloads(module) {
        match payload?.1 {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    check_import(import.module, import.name, matches!(import.ty, TypeRef::Func(_)))?;
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    starts |= export.name == START && export.kind == ExternalKind::Func;
                    initializes |= export.name == INITIALIZE;
                    has_memory |= export.name == MEMORY && export.kind == ExternalKind::Memory;
                }
            }
            Payload::CodeSectionStart { .. } => break,
            _ => {}
        }
    }
    let kind = match (starts, initializes, has_memory) {
        (true, _, true) => return Ok(()),
        (true, _, false) => {
            return Err(Error::Invalid(
                "a core module that exports no `memory`, which WASI preview 1 works on; export it".to_owned(),
            ));
        }
        (false, true, _) => "reactor",
        (false, false, _) => "library",
    };
    Err(Error::Invalid(format!(
        "a {kind} module: it exports functions but no `{START}`; build it as a command or as a component"
    )))
}

fn check_import(module: &str, name: &str, is_function: bool) -> Result<()> {
    if module == DRAFT {
        return Err(Error::Unsupported(format!(
            "a core module that imports `{module}`, a draft older than WASI preview 1; build it for `wasm32-wasip1`"
        )));
    }
    if module != MODULE {
        let (module, name) = (shown(module), shown(name));
        return Err(Error::Unsupported(format!(
            "a core module that imports `{module}` (`{name}`); of a core module only imports from `{MODULE}` are linked"
        )));
    }
    // Functions that preview 1 does not have are refused when the module is linked.
    match is_function {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "a core module that imports `{}` from `{MODULE}`, which has only functions",
            shown(name)
        ))),
    }
}
