//! What a program could ever ask for and what stands in it beside its code, read from its bytes without running or
//! compiling any of it. A guest reaches nothing but what it imports, so its imports are all that it could ask for.

mod capability;
pub(crate) mod interface;
mod metadata;

use std::path::Path;

use serde::Serialize;
use wasmparser::{Parser, Payload};

use crate::error::Error;

use super::imports::{self, Known};
use super::{digest, program_bytes, typed};

pub use capability::{Capability, Granted};
pub use interface::ImportedInterface;
pub use metadata::{Metadata, Producer};

/// The deepest that modules and components may be nested, to be counted.
const MAX_PART_DEPTH: usize = 100;
/// The most custom sections that are looked at: those of the outermost part, and what the others were made with.
const MAX_CUSTOM_SECTIONS: usize = 1000;
/// The most sections of which it is noted that something was left out.
const MAX_NOTES: usize = 20;
/// The longest name of something that is imported or exported, in characters. What is longer is cut.
const MAX_NAME_LEN: usize = 1000;
/// How the names begin of what a rich tool and a command export.
const CALL: &str = "toolcrib:tool/call@1.";
pub(super) const RUN: &str = "wasi:cli/run@0.2.";

/// What the bytes of a program tell. All names and texts are the author's, as they stand there; nothing has checked them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Inspection {
    /// What it is.
    pub kind: ProgramKind,
    /// SHA-256 of the file, as `sha256:HEX`.
    pub digest: String,
    /// The size of the file in bytes.
    pub bytes: usize,
    /// The core modules inside of a component, at any depth; as many as were counted, where it cannot be read whole.
    pub core_modules: usize,
    /// Why it is proven that it can reach nothing but what it is given; `None` where that is not so, or not known.
    pub pure: Option<&'static str>,
    /// All that it could ask for; `None` where its imports are too many or cannot be read.
    pub asks: Option<Vec<CapabilityRequest>>,
    /// The names of what it exports, where it is a component; `None` where they are too many or cannot be read.
    pub exports: Option<Vec<String>>,
    /// The functions that it exports and that can be no tools.
    pub not_tools: Vec<SkippedExport>,
    /// What it says of itself, outside of its code.
    pub metadata: Metadata,
    /// What was left out of all this and why, each in a sentence.
    pub notes: Vec<String>,
}

/// An exported function that can be no tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SkippedExport {
    /// The function with its interface.
    pub export: String,
    /// Why, in a few words.
    pub why: String,
}

/// What a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProgramKind {
    /// A component with the contract of rich tools.
    Rich,
    /// A component that is run as a command.
    Command,
    /// A component that exports functions of its own.
    Functions,
    /// A component that is nothing of these, or of which that is not known.
    Component,
    /// A core module, for WASI preview 1.
    Module,
}

/// One thing that a program could ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CapabilityRequest {
    /// What it is.
    pub capability: Capability,
    /// Who decides whether it is there.
    pub granted: Granted,
    /// The flags that grant it, where any do.
    pub flags: &'static [&'static str],
    /// By what it would ask, in the order of the program.
    pub interfaces: Vec<ImportedInterface>,
}

/// What the bytes of a program tell of it. Nothing of it is compiled or run.
///
/// # Errors
///
/// Where the file cannot be read, is larger than any program that is loaded, or is not WebAssembly. What is broken inside
/// of it is a note.
pub fn inspect(program: &Path) -> Result<Inspection, Error> {
    let failed = |reason: String| Error::Component { path: program.to_path_buf(), reason };
    let bytes = program_bytes(program).map_err(|error| failed(format!("cannot be read: {error}")))?;
    of(&bytes).ok_or_else(|| failed("not a WebAssembly component or module".to_owned()))
}

/// What these bytes tell; `None` where they are not WebAssembly.
fn of(program: &[u8]) -> Option<Inspection> {
    let is_component = Parser::is_component(program);
    if !is_component && !Parser::is_core_wasm(program) {
        return None;
    }
    let mut notes = Vec::new();
    let mut outer = Outer::default();
    let read = outer.read(program, &mut notes);
    if let Err(why) = &read {
        notes.push(format!("it was not read whole: {why}"));
    }
    let known = imports::of_bytes(program);
    if known.is_none() {
        notes.push("its imports are too many or cannot be read, so nothing follows from them".to_owned());
    }
    let kind = kind(is_component, known.as_ref());
    let exports_own = known.as_ref().is_some_and(|known| known.exports.iter().any(|name| !typed::is_contract(name)));
    let asks = known.as_ref().map(|known| interface::asked(&known.imports, kind));
    let exports = known.map(|known| known.exports).filter(|_| is_component);
    let not_tools = match kind {
        ProgramKind::Functions | ProgramKind::Command if exports_own => {
            typed::read(program).map(|exported| exported.refused).unwrap_or_else(|why| {
                notes.push(format!("its functions cannot be read: {why}"));
                Vec::new()
            })
        }
        _ => Vec::new(),
    };
    let not_tool = |(export, why): (String, String)| SkippedExport { export: cut(&export, MAX_NAME_LEN), why };
    Some(Inspection {
        kind,
        digest: digest(program),
        bytes: program.len(),
        core_modules: outer.modules,
        pure: asks.as_deref().filter(|_| read.is_ok()).and_then(purity),
        asks,
        exports: exports.map(|names| names.iter().map(|name| cut(name, MAX_NAME_LEN)).collect()),
        not_tools: not_tools.into_iter().map(not_tool).collect(),
        metadata: outer.metadata,
        notes,
    })
}

pub(super) fn kind(is_component: bool, known: Option<&Known>) -> ProgramKind {
    let exports = |beginning| known.is_some_and(|it| it.exports.iter().any(|name| name.starts_with(beginning)));
    match is_component {
        false => ProgramKind::Module,
        true if exports(CALL) => ProgramKind::Rich,
        true if exports(RUN) => ProgramKind::Command,
        true if known.is_some_and(|it| it.exports.iter().any(|name| !typed::is_contract(name))) => {
            ProgramKind::Functions
        }
        true => ProgramKind::Component,
    }
}

/// Why nothing can be reached by what is imported.
fn purity(asks: &[CapabilityRequest]) -> Option<&'static str> {
    match asks {
        [] => Some("it imports nothing"),
        _ if asks.iter().all(|asked| asked.capability == Capability::Types) => {
            Some("it imports types alone, of which there is nothing to call")
        }
        _ => None,
    }
}

/// What stands beside the code of a program, and how much there is inside.
#[derive(Default)]
struct Outer {
    metadata: Metadata,
    modules: usize,
    custom_sections: usize,
}

impl Outer {
    fn read(&mut self, program: &[u8], notes: &mut Vec<String>) -> Result<(), String> {
        let mut depth = 0;
        for payload in Parser::new(0).parse_all(program) {
            match payload.map_err(metadata::told)? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } if depth == MAX_PART_DEPTH => {
                    return Err(format!("its parts are nested deeper than {MAX_PART_DEPTH} levels"));
                }
                Payload::ModuleSection { .. } => {
                    self.modules += 1;
                    depth += 1;
                }
                Payload::ComponentSection { .. } => depth += 1,
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::CustomSection(section) if depth == 0 || section.name() == metadata::PRODUCERS => {
                    self.custom_sections += 1;
                    if self.custom_sections > MAX_CUSTOM_SECTIONS {
                        return Err(format!("it has more than {MAX_CUSTOM_SECTIONS} custom sections"));
                    }
                    if let Err(why) = self.metadata.read(&section)
                        && notes.len() < MAX_NOTES
                    {
                        notes.push(format!("`{}`: {why}", section.name()));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// At most so many characters of a text, the last an ellipsis where something was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().nth(most).is_none() {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
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

    fn told(sections: &[Vec<u8>]) -> Inspection {
        of(&[COMPONENT, &sections.concat()].concat()).expect("a component")
    }

    /// As many imports of the module with this name, each of a function without parameters.
    fn imports(module: &str, count: usize) -> Vec<u8> {
        let one = [sized(module.as_bytes()), sized(b"f"), vec![0, 0]].concat();
        let body = [leb(count), one.repeat(count)].concat();
        [MODULE, &section(1, &[1, 0x60, 0, 0]), &section(2, &body)].concat()
    }

    #[test]
    fn what_imports_nothing_is_pure() {
        let about = told(&[]);
        assert_eq!(
            (about.kind, about.pure, about.notes.len()),
            (ProgramKind::Component, Some("it imports nothing"), 0)
        );
        assert_eq!((about.asks, about.exports), (Some(Vec::new()), Some(Vec::new())));
        assert_eq!(of(MODULE).map(|about| (about.kind, about.exports)), Some((ProgramKind::Module, None)));
        assert_eq!(of(b"\0asm\x02\0\0\0"), None);
        assert_eq!(of(b""), None);
    }

    #[test]
    fn what_cannot_be_read_proves_nothing() {
        assert_eq!(of(&imports("env", 1)).and_then(|about| about.pure), None);
        for program in [imports("env", 100_000), [COMPONENT, &[4, 9, 0]].concat()] {
            let about = of(&program).expect("WebAssembly");
            assert_eq!((about.asks, about.pure), (None, None));
            assert!(about.notes.iter().any(|note| note.contains("too many or cannot be read")), "{:?}", about.notes);
        }
    }

    #[test]
    fn parts_are_counted_as_deep_as_they_may_be_nested() {
        let inside =
            |levels: usize| (0..levels).fold(section(1, MODULE), |it, _| section(4, &[COMPONENT, &it].concat()));
        let about = told(&[inside(0), inside(MAX_PART_DEPTH - 1)]);
        assert_eq!((about.core_modules, about.notes), (2, Vec::new()));
        for levels in [MAX_PART_DEPTH, 1000] {
            let about = told(&[inside(levels)]);
            assert_eq!(about.pure, None);
            assert_eq!(about.notes, ["it was not read whole: its parts are nested deeper than 100 levels"]);
        }
    }

    #[test]
    fn custom_sections_are_not_without_number() {
        let about = told(&[custom("x", b"").repeat(MAX_CUSTOM_SECTIONS - 1), custom("version", b"1")]);
        assert_eq!((about.metadata.version.as_deref(), about.notes.len()), (Some("1"), 0));
        let about = told(&[custom("source", &[0xff]).repeat(MAX_CUSTOM_SECTIONS)]);
        assert_eq!(about.notes.len(), MAX_NOTES);
        let made_with = [vec![1], sized(b"sdk"), vec![1], sized(b"x"), sized(b"")].concat();
        let inside = [MODULE, &custom("producers", &made_with), &custom("version", b"2")].concat();
        let metadata = told(&[section(1, &inside), section(1, &inside)]).metadata;
        assert_eq!(
            (metadata.producers.len(), metadata.version),
            (1, None),
            "the texts are those of the outermost part"
        );
        let about = told(&[custom("x", b"").repeat(MAX_CUSTOM_SECTIONS), custom("version", b"1")]);
        assert_eq!(about.metadata.version, None);
        assert!(about.notes[0].contains("more than 1000 custom sections"), "{:?}", about.notes);
    }

    #[test]
    fn a_name_is_cut_between_characters() {
        assert_eq!((cut("日本語", 3), cut("日本語", 2)), ("日本語".to_owned(), "日…".to_owned()));
        let about = of(&imports(&"é".repeat(MAX_NAME_LEN + 1), 1)).expect("a module");
        let asks = about.asks.expect("imports");
        assert_eq!(asks[0].interfaces[0].name.chars().count(), MAX_NAME_LEN);
    }
}
