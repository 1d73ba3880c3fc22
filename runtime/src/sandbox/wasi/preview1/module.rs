//! Imports and exports of a core module, checked before it is compiled: it may import only preview 1, and must export a
//! memory and a start function. Everything else is refused by name.

use wasmparser::{ExternalKind, Parser, Payload, TypeRef};

/// Module from which a core module imports.
const PREVIEW_1: &str = "wasi_snapshot_preview1";
/// Drafts of preview 1.
const DRAFTS: [&str; 1] = ["wasi_unstable"];
/// Export by which a command starts.
pub(super) const START: &str = "_start";
/// Export by which a reactor is initialized.
const INITIALIZE: &str = "_initialize";
const MEMORY: &str = "memory";
/// Maximum length of a name in a message, in characters.
const MAX_NAME: usize = 100;

/// Refuses a core module that cannot be a command of preview 1.
///
/// # Errors
///
/// A text that names the problem and the fix.
pub(in crate::sandbox) fn check(module: &[u8]) -> Result<(), String> {
    let invalid = |error: wasmparser::BinaryReaderError| error.to_string();
    let (mut starts, mut initializes, mut has_memory) = (false, false, false);
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(invalid)? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.map_err(invalid)?;
                    check_import(import.module, import.name, matches!(import.ty, TypeRef::Func(_)))?;
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.map_err(invalid)?;
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
            return Err("a core module that exports no `memory`, which WASI preview 1 works on; export it".to_owned());
        }
        (false, true, _) => "reactor",
        (false, false, _) => "library",
    };
    Err(format!("a {kind} module: it exports functions but no `{START}`; build it as a command or as a component"))
}

fn check_import(module: &str, name: &str, is_function: bool) -> Result<(), String> {
    let clip = |name: &str| name.chars().take(MAX_NAME).collect::<String>();
    if DRAFTS.contains(&module) {
        return Err(format!(
            "a core module that imports `{module}`, a draft older than WASI preview 1; build it for `wasm32-wasip1`"
        ));
    }
    if module != PREVIEW_1 {
        let (module, name) = (clip(module), clip(name));
        return Err(format!(
            "a core module that imports `{module}` (`{name}`); of a core module only imports from `{PREVIEW_1}` are linked"
        ));
    }
    // Functions that preview 1 does not have are refused when the module is linked.
    match is_function {
        true => Ok(()),
        false => {
            Err(format!("a core module that imports `{}` from `{PREVIEW_1}`, which has only functions", clip(name)))
        }
    }
}
