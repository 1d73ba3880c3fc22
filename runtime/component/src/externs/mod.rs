//! The imports and exports of a program, read from its sections without running it. Sections that do not declare either are
//! skipped in the file. A program that is not understood completely yields nothing.

mod asynchronous;

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

use serde::Serialize;
use wasmparser::{
    BinaryReader, ComponentAliasSectionReader, ComponentExportSectionReader, ComponentExternalKind,
    ComponentImportSectionReader, ComponentTypeRef, ExportSectionReader, ExternalKind, ImportSectionReader, TypeBounds,
};

use crate::descriptor;
use crate::error::{Error, Result};
use crate::extensions;
use crate::form::Form;
use crate::nesting::{Types, is_type_alias};
use crate::sections::{Sections, id, is_named};

/// Maximum names of imports, imported items and exports.
const MAX_NAMES: usize = 2000;
/// Maximum bytes that are read of a custom section. Only its name matters.
const MAX_SECTION_NAME_BYTES: u64 = 64;
/// Export of a command.
const START: &str = "_start";
/// Export of a reactor.
const INITIALIZE: &str = "_initialize";

/// One import of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Import {
    /// The interface as the program names it, such as `wasi:filesystem/types@0.2.6`, or the module of a core module.
    pub from: String,
    /// The imported items, in the order of the program.
    pub functions: Vec<String>,
}

/// Imports and exports of a program.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Externs {
    /// Imports, each interface or module once.
    pub imports: Vec<Import>,
    /// Names of a component's exports.
    pub exports: Vec<String>,
    /// `true` if the top level has a section of descriptors.
    pub has_descriptor: bool,
    /// Names of the functions that a core module exports; `None` for a component.
    pub core_functions: Option<Vec<String>>,
    /// `true` for a component with asynchronous functions, which WASI 0.3 has and WASI 0.2 has not.
    pub is_async: bool,
    /// Reason why no sandbox runs the program: a section uses an extension of WebAssembly that none supports.
    pub unsupported: Option<String>,
}

impl Externs {
    /// Reads the program in a file.
    ///
    /// # Errors
    ///
    /// [`Error::Truncated`] and [`Error::UnknownVersion`] for a file that ends early or begins as no known version does;
    /// another error for a program that exceeds a bound or is not understood.
    pub fn read(program: &Path) -> Result<Self> {
        let unreadable = || Error::Invalid("the file cannot be read".to_owned());
        let file = File::open(program).map_err(|_| unreadable())?;
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Self::of_sections(Sections::open(file, metadata.len())?),
            _ => Err(unreadable()),
        }
    }

    /// Reads a program in memory.
    ///
    /// # Errors
    ///
    /// As [`Externs::read`].
    pub fn of(program: &[u8]) -> Result<Self> {
        Self::of_sections(Sections::of(program)?)
    }

    fn of_sections(mut sections: Sections<impl Read + Seek>) -> Result<Self> {
        let mut externs = match sections.form() {
            Form::Module => Self::of_module(&mut sections)?,
            Form::Component => {
                let mut externs = Self::of_component(&mut sections)?;
                externs.is_async = asynchronous::is_async(&mut sections);
                externs
            }
        };
        externs.unsupported = extensions::unsupported(&mut sections);
        Ok(externs)
    }

    fn of_module(sections: &mut Sections<impl Read + Seek>) -> Result<Self> {
        let mut found = Found::default();
        let mut functions = Vec::new();
        while let Some(section) = sections.next()? {
            let max = match section.id {
                id::CUSTOM => MAX_SECTION_NAME_BYTES,
                id::CORE_IMPORT | id::CORE_EXPORT => u64::MAX,
                _ => continue,
            };
            let body = sections.read(&section, max)?;
            let reader = BinaryReader::new(&body, 0);
            match section.id {
                id::CUSTOM => found.externs.has_descriptor |= is_named(&body, descriptor::SECTION),
                id::CORE_IMPORT if !body.is_empty() => {
                    for import in ImportSectionReader::new(reader)?.into_imports() {
                        let import = import?;
                        found.import(import.module, &[import.name])?;
                    }
                }
                id::CORE_EXPORT if !body.is_empty() => {
                    for export in ExportSectionReader::new(reader)? {
                        let export = export?;
                        // A module may export each of its functions: beyond the bound only entry points count.
                        let is_wanted = functions.len() < MAX_NAMES || is_entry(export.name);
                        if export.kind == ExternalKind::Func && is_wanted {
                            functions.push(export.name.to_owned());
                        }
                    }
                }
                _ => {}
            }
        }
        found.externs.core_functions = Some(functions);
        Ok(found.externs)
    }

    fn of_component(sections: &mut Sections<impl Read + Seek>) -> Result<Self> {
        let mut found = Found::default();
        // The index space of types; for an instance type, the names of its exports.
        let mut types: Vec<Option<Vec<String>>> = Vec::new();
        while let Some(section) = sections.next()? {
            let max = match section.id {
                id::CUSTOM => MAX_SECTION_NAME_BYTES,
                id::TYPE | id::IMPORT | id::ALIAS | id::EXPORT => u64::MAX,
                _ => continue,
            };
            let body = sections.read(&section, max)?;
            if body.is_empty() {
                continue;
            }
            let reader = BinaryReader::new(&body, 0);
            match section.id {
                id::CUSTOM => found.externs.has_descriptor |= is_named(&body, descriptor::SECTION),
                id::TYPE => types.extend(Types::read(reader)?.exports),
                id::IMPORT => {
                    for import in ComponentImportSectionReader::new(reader)? {
                        let import = import?;
                        let from = import.name.name;
                        match import.ty {
                            ComponentTypeRef::Instance(index) => {
                                let exports = types.get(index as usize).and_then(Option::as_ref);
                                found.import(from, exports.ok_or_else(|| no_type(from))?)?;
                            }
                            ComponentTypeRef::Type(TypeBounds::Eq(_)) => {}
                            _ => found.import(from, &[from])?,
                        }
                        types.extend(matches!(import.ty, ComponentTypeRef::Type(_)).then_some(None));
                    }
                }
                id::ALIAS => {
                    for alias in ComponentAliasSectionReader::new(reader)? {
                        types.extend(is_type_alias(&alias?).then_some(None));
                    }
                }
                _ => {
                    for export in ComponentExportSectionReader::new(reader)? {
                        let export = export?;
                        types.extend((export.kind == ComponentExternalKind::Type).then_some(None));
                        found.export(export.name.name)?;
                    }
                }
            }
        }
        Ok(found.externs)
    }
}

/// Returns `true` for an export that a host calls to start a core module.
pub fn is_entry(name: &str) -> bool {
    name == START || name == INITIALIZE
}

/// Externs found so far, and the number of their names.
#[derive(Default)]
struct Found {
    externs: Externs,
    names: usize,
}

impl Found {
    fn import(&mut self, from: &str, items: &[impl AsRef<str>]) -> Result<()> {
        self.count(1 + items.len())?;
        let items = items.iter().map(|name| name.as_ref().to_owned());
        match self.externs.imports.iter_mut().find(|import| import.from == from) {
            Some(import) => import.functions.extend(items),
            None => self.externs.imports.push(Import { from: from.to_owned(), functions: items.collect() }),
        }
        Ok(())
    }

    fn export(&mut self, name: &str) -> Result<()> {
        self.count(1)?;
        self.externs.exports.push(name.to_owned());
        Ok(())
    }

    fn count(&mut self, names: usize) -> Result<()> {
        self.names += names;
        match self.names {
            0..=MAX_NAMES => Ok(()),
            _ => Err(Error::Limit(format!("it has more than {MAX_NAMES} imports and exports"))),
        }
    }
}

fn no_type(import: &str) -> Error {
    Error::Invalid(format!("its import `{}` has no instance type", toolcrib_foundation::text::shown(import)))
}
