//! `inspect`: the capabilities that a program could request and its metadata, read from its bytes without compiling or running
//! it. A guest reaches nothing but its imports, so they are all that it could request.

mod metadata;

use serde::Serialize;
use toolcrib_foundation::text::{MAX_MESSAGE, truncate};
use wasmparser::Payload;

use crate::capability::Capability;
use crate::error::{Error, Result};
use crate::externs::Externs;
use crate::form::{Form, digest};
use crate::functions;
use crate::interfaces::{self, CapabilityRequest};
use crate::kind::ProgramKind;
use crate::sections::{MAX_CUSTOM, MAX_DEPTH, payloads};

pub use metadata::{Metadata, Producer};

/// Maximum notes about sections with parts left out.
const MAX_NOTES: usize = 20;

/// Facts about a program. All names and texts are the author's, unchanged and unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Inspection {
    /// Kind of the program.
    pub kind: ProgramKind,
    /// SHA-256 of the file, as `sha256:HEX`.
    pub digest: String,
    /// Size of the file in bytes.
    pub bytes: usize,
    /// Number of core modules inside a component, at any depth; those before the first error if it cannot be read to
    /// its end.
    pub core_modules: usize,
    /// Proof that the program reaches nothing but its input; `None` if there is no proof.
    pub pure: Option<&'static str>,
    /// Capabilities that it could request; `None` if its imports are too many or cannot be read.
    pub asks: Option<Vec<CapabilityRequest>>,
    /// Names of a component's exports; `None` if they are too many or cannot be read.
    pub exports: Option<Vec<String>>,
    /// Exported functions that cannot be tools.
    pub not_tools: Vec<SkippedExport>,
    /// Metadata beside its code.
    pub metadata: Metadata,
    /// Information that was left out, and the reason, each in a sentence.
    pub notes: Vec<String>,
}

/// An exported function that cannot be a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedExport {
    /// The function with its interface.
    pub export: String,
    /// Reason, in a few words.
    pub why: String,
}

/// Inspects a program. A broken part of it becomes a note.
///
/// # Errors
///
/// [`Error::NotWebAssembly`] for bytes that are neither a component nor a core module.
pub fn inspect(program: &[u8]) -> Result<Inspection> {
    let form = Form::find(program).ok_or_else(|| Error::not_webassembly(program))?;
    let mut notes = Vec::new();
    let mut outline = Outline::default();
    let read = outline.read(program, &mut notes);
    if let Err(reason) = &read {
        notes.push(format!("it was read only in part: {reason}"));
    }
    let externs = Externs::of(program).ok();
    if externs.is_none() {
        notes.push("its imports are too many or cannot be read, so nothing follows from them".to_owned());
    }
    let kind = ProgramKind::of(form, externs.as_ref());
    let has_own_exports = externs.as_ref().is_some_and(functions::has_own_exports);
    let asks = externs.as_ref().map(|externs| interfaces::requests(&externs.imports, kind));
    let exports = externs.map(|externs| externs.exports).filter(|_| form == Form::Component);
    let skipped = match kind {
        ProgramKind::Functions | ProgramKind::Command if has_own_exports => {
            functions::read(program).map(|exported| exported.skipped).unwrap_or_else(|error| {
                notes.push(format!("its functions cannot be read: {error}"));
                Vec::new()
            })
        }
        _ => Vec::new(),
    };
    let not_tool = |(export, why): (String, String)| SkippedExport { export: truncate(&export, MAX_MESSAGE), why };
    Ok(Inspection {
        kind,
        digest: digest(program),
        bytes: program.len(),
        core_modules: outline.modules,
        pure: asks.as_deref().filter(|_| read.is_ok()).and_then(purity),
        asks,
        exports: exports.map(|names| names.iter().map(|name| truncate(name, MAX_MESSAGE)).collect()),
        not_tools: skipped.into_iter().map(not_tool).collect(),
        metadata: outline.metadata,
        notes,
    })
}

/// Returns the proof that nothing can be reached through these imports.
fn purity(asks: &[CapabilityRequest]) -> Option<&'static str> {
    match asks {
        [] => Some("it imports nothing"),
        _ if asks.iter().all(|request| request.capability == Capability::Types) => {
            Some("it imports only type definitions, without functions")
        }
        _ => None,
    }
}

/// Metadata of a program, and its part count.
#[derive(Default)]
struct Outline {
    metadata: Metadata,
    modules: usize,
    custom_sections: usize,
}

impl Outline {
    /// Reads a program up to its end or the first error, which it returns as a text.
    fn read(&mut self, program: &[u8], notes: &mut Vec<String>) -> Result<(), String> {
        for payload in payloads(program) {
            let (depth, payload) = payload.map_err(|error| metadata::shortened(&error))?;
            match payload {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } if depth == MAX_DEPTH => {
                    return Err(format!("its parts are nested deeper than {MAX_DEPTH} levels"));
                }
                Payload::ModuleSection { .. } => self.modules += 1,
                Payload::CustomSection(section) if depth == 0 || section.name() == metadata::PRODUCERS => {
                    self.custom_sections += 1;
                    if self.custom_sections > MAX_CUSTOM {
                        return Err(format!("it has more than {MAX_CUSTOM} custom sections"));
                    }
                    if let Err(reason) = self.metadata.read(&section)
                        && notes.len() < MAX_NOTES
                    {
                        notes.push(format!("`{}`: {reason}", section.name()));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &[u8] = b"\0asm\x01\0\0\0";
    const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn leb(mut number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    fn sized(body: &[u8]) -> Vec<u8> {
        [leb(body.len()), body.to_vec()].concat()
    }

    fn section(id: u8, body: &[u8]) -> Vec<u8> {
        [vec![id], sized(body)].concat()
    }

    fn custom(name: &str, content: &[u8]) -> Vec<u8> {
        section(0, &[sized(name.as_bytes()), content.to_vec()].concat())
    }

    fn component(sections: &[Vec<u8>]) -> Inspection {
        inspect(&[COMPONENT, &sections.concat()].concat()).expect("a component")
    }

    /// As many imports of the module with this name, each a function without parameters.
    fn imports(module: &str, count: usize) -> Vec<u8> {
        let one = [sized(module.as_bytes()), sized(b"f"), vec![0, 0]].concat();
        let body = [leb(count), one.repeat(count)].concat();
        [MODULE, &section(1, &[1, 0x60, 0, 0]), &section(2, &body)].concat()
    }

    #[test]
    fn a_program_without_imports_is_pure() {
        let about = component(&[]);
        assert_eq!(
            (about.kind, about.pure, about.notes.len()),
            (ProgramKind::Component, Some("it imports nothing"), 0)
        );
        assert_eq!((about.asks, about.exports), (Some(Vec::new()), Some(Vec::new())));
        assert_eq!(inspect(MODULE).ok().map(|about| (about.kind, about.exports)), Some((ProgramKind::Module, None)));
        for other in [&b"\0asm\x02\0\0\0"[..], b""] {
            assert!(matches!(inspect(other), Err(Error::NotWebAssembly)));
        }
        for text in [&b"(component)"[..], b"\n (module (func))"] {
            assert!(matches!(inspect(text), Err(Error::TextFormat)));
        }
    }

    #[test]
    fn an_unreadable_program_is_not_proven_pure() {
        assert_eq!(inspect(&imports("env", 1)).expect("a module").pure, None);
        for program in [imports("env", 100_000), [COMPONENT, &[4, 9, 0]].concat()] {
            let about = inspect(&program).expect("WebAssembly");
            assert_eq!((about.asks, about.pure), (None, None));
            assert!(about.notes.iter().any(|note| note.contains("too many or cannot be read")), "{:?}", about.notes);
        }
    }

    #[test]
    fn parts_are_counted_as_deep_as_they_may_be_nested() {
        let inside =
            |levels: usize| (0..levels).fold(section(1, MODULE), |it, _| section(4, &[COMPONENT, &it].concat()));
        let about = component(&[inside(0), inside(MAX_DEPTH - 1)]);
        assert_eq!((about.core_modules, about.notes), (2, Vec::new()));
        for levels in [MAX_DEPTH, 1000] {
            let about = component(&[inside(levels)]);
            assert_eq!(about.pure, None);
            assert_eq!(about.notes, ["it was read only in part: its parts are nested deeper than 100 levels"]);
        }
    }

    #[test]
    fn the_number_of_custom_sections_is_bounded() {
        let about = component(&[custom("x", b"").repeat(MAX_CUSTOM - 1), custom("version", b"1")]);
        assert_eq!((about.metadata.version.as_deref(), about.notes.len()), (Some("1"), 0));
        let about = component(&[custom("source", &[0xff]).repeat(MAX_CUSTOM)]);
        assert_eq!(about.notes.len(), MAX_NOTES);
        let made_with = [vec![1], sized(b"sdk"), vec![1], sized(b"x"), sized(b"")].concat();
        let inside = [MODULE, &custom("producers", &made_with), &custom("version", b"2")].concat();
        let metadata = component(&[section(1, &inside), section(1, &inside)]).metadata;
        assert_eq!(
            (metadata.producers.len(), metadata.version),
            (1, None),
            "the texts are those of the outermost part"
        );
        let about = component(&[custom("x", b"").repeat(MAX_CUSTOM), custom("version", b"1")]);
        assert_eq!(about.metadata.version, None);
        assert!(about.notes[0].contains("more than 1000 custom sections"), "{:?}", about.notes);
    }

    #[test]
    fn a_long_name_is_cut() {
        let about = inspect(&imports(&"é".repeat(MAX_MESSAGE + 1), 1)).expect("a module");
        let asks = about.asks.expect("imports");
        assert_eq!(asks[0].interfaces[0].name.chars().count(), MAX_MESSAGE);
    }
}
