//! What a program imports and exports, read from its bytes without running it: the sections that tell are read, everything else is
//! skipped over in the file. Any bytes may stand there; what is not understood whole tells nothing.

mod asynchronous;
mod types;

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;

use wasmparser::{
    BinaryReader, ComponentAliasSectionReader, ComponentExportSectionReader, ComponentExternalKind,
    ComponentImportSectionReader, ComponentTypeRef, ExportSectionReader, ExternalKind, ImportSectionReader, Parser,
    TypeBounds,
};

use crate::tool::Import;

use super::descriptor::SECTION;

pub(crate) use types::check_nesting;

/// The most bytes of sections that are read.
const MAX_BYTES: u64 = 4 << 20;
/// The most sections of a program.
const MAX_SECTIONS: usize = 100_000;
/// The most bytes that are read of a section of which only the name matters.
const MAX_NAME_LEN: u64 = 64;
/// The most names that are kept of a program: imports and what is used of them.
const MAX_NAMES: usize = 2000;

/// The numbers of the sections that tell.
mod section {
    pub(super) const CUSTOM: u8 = 0;
    pub(super) const CORE_IMPORT: u8 = 2;
    pub(super) const COMPONENT: u8 = 4;
    pub(super) const CORE_EXPORT: u8 = 7;
    pub(super) const CANONICAL: u8 = 8;
    pub(super) const ALIAS: u8 = 6;
    pub(super) const TYPE: u8 = 7;
    pub(super) const IMPORT: u8 = 10;
    pub(super) const EXPORT: u8 = 11;
    /// The last number that any section has, in a module or a component.
    pub(super) const LAST: u8 = 13;
}

/// What the bytes of a program tell.
#[derive(Default)]
pub(super) struct Known {
    pub(super) imports: Vec<Import>,
    /// The names of what it exports, where it is a component.
    pub(super) exports: Vec<String>,
    /// Whether it says of itself what it is, at its top level.
    pub(super) is_described: bool,
    /// The names of the functions that it exports, where it is a core module.
    pub(super) core_functions: Option<Vec<String>>,
    /// True where it is a component with asynchronous functions, which WASI 0.3 has and WASI 0.2 has not.
    pub(super) is_asynchronous: bool,
}

/// The reason for which nothing is known of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    /// The file ends before the section that begins at this byte does.
    BreaksOff(u64),
    /// It begins as no version of WebAssembly does that is known.
    Foreign,
    /// It is beyond a bound, or not understood.
    Unknown,
}

/// What the bytes of the program in a file tell.
pub(super) fn read(program: &Path) -> Result<Known, Unread> {
    let file = File::open(program).and_then(|file| {
        let metadata = file.metadata()?;
        Ok((file, metadata.is_file(), metadata.len()))
    });
    match file {
        Ok((file, true, size)) => of_file(BufReader::new(file), size),
        _ => Err(Unread::Unknown),
    }
}

/// What these bytes of a program tell; `None` where they do not.
pub(super) fn of_bytes(program: &[u8]) -> Option<Known> {
    of_file(BufReader::new(Cursor::new(program)), program.len() as u64).ok()
}

fn of_file(mut file: BufReader<impl Read + Seek>, size: u64) -> Result<Known, Unread> {
    let mut header = [0; 8];
    file.read_exact(&mut header).map_err(|_| Unread::BreaksOff(0))?;
    let left = size.checked_sub(header.len() as u64).ok_or(Unread::BreaksOff(0))?;
    let sections = Sections { file: &mut file, size, left };
    if Parser::is_component(&header) {
        let mut known = of_component(sections)?;
        known.is_asynchronous = asynchronous::inside(&mut file, size);
        Ok(known)
    } else if Parser::is_core_wasm(&header) {
        of_module(sections)
    } else {
        Err(Unread::Foreign)
    }
}

fn of_module(sections: Sections<'_, impl Read + Seek>) -> Result<Known, Unread> {
    let mut found = Found::default();
    let mut functions = Vec::new();
    sections.each(&[section::CUSTOM, section::CORE_IMPORT, section::CORE_EXPORT], |id, mut body| {
        match id {
            section::CUSTOM => found.known.is_described |= body.read_string().is_ok_and(|name| name == SECTION),
            section::CORE_IMPORT => {
                for import in ImportSectionReader::new(body).ok()?.into_imports() {
                    let import = import.ok()?;
                    found.add(import.module, &[import.name])?;
                }
            }
            _ => {
                for export in ExportSectionReader::new(body).ok()? {
                    let export = export.ok()?;
                    // As many as are looked for: a module may export each of its functions.
                    if export.kind == ExternalKind::Func && (functions.len() < MAX_NAMES || is_entry(export.name)) {
                        functions.push(export.name.to_owned());
                    }
                }
            }
        }
        Some(())
    })?;
    found.known.core_functions = Some(functions);
    Ok(found.known)
}

/// Returns true where an exported function of a core module is called by a host that starts it.
pub(super) fn is_entry(name: &str) -> bool {
    name == "_start" || name == "_initialize"
}

fn of_component(sections: Sections<'_, impl Read + Seek>) -> Result<Known, Unread> {
    let mut found = Found::default();
    // Every type that the component has a number for; of an instance type, the names of what it has.
    let mut types: Vec<Option<Vec<String>>> = Vec::new();
    const WANTED: [u8; 5] = [section::CUSTOM, section::TYPE, section::IMPORT, section::ALIAS, section::EXPORT];
    sections.each(&WANTED, |id, mut body| {
        match id {
            section::CUSTOM => found.known.is_described |= body.read_string().is_ok_and(|name| name == SECTION),
            section::TYPE => types.extend(types::read(body, &mut false).ok()?),
            section::IMPORT => {
                for import in ComponentImportSectionReader::new(body).ok()? {
                    let import = import.ok()?;
                    let from = import.name.name;
                    match import.ty {
                        ComponentTypeRef::Instance(index) => found.add(from, types.get(index as usize)?.as_ref()?)?,
                        ComponentTypeRef::Type(TypeBounds::Eq(_)) => {}
                        _ => found.add(from, &[from])?,
                    }
                    types.extend(matches!(import.ty, ComponentTypeRef::Type(_)).then_some(None));
                }
            }
            section::ALIAS => {
                for alias in ComponentAliasSectionReader::new(body).ok()? {
                    types.extend(types::is_alias(&alias.ok()?).then_some(None));
                }
            }
            _ => {
                for export in ComponentExportSectionReader::new(body).ok()? {
                    let export = export.ok()?;
                    types.extend((export.kind == ComponentExternalKind::Type).then_some(None));
                    found.export(export.name.name)?;
                }
            }
        }
        Some(())
    })?;
    Ok(found.known)
}

/// What was found so far.
#[derive(Default)]
struct Found {
    known: Known,
    names: usize,
}

impl Found {
    /// Adds what is used of one import; `None` where there are too many.
    fn add(&mut self, from: &str, used: &[impl AsRef<str>]) -> Option<()> {
        self.names += 1 + used.len();
        if self.names > MAX_NAMES {
            return None;
        }
        let used = used.iter().map(|name| name.as_ref().to_owned());
        match self.known.imports.iter_mut().find(|import| import.from == from) {
            Some(import) => import.functions.extend(used),
            None => self.known.imports.push(Import { from: from.to_owned(), functions: used.collect() }),
        }
        Some(())
    }

    /// Adds something that is exported; `None` where there is too much.
    fn export(&mut self, name: &str) -> Option<()> {
        self.names += 1;
        self.known.exports.push(name.to_owned());
        (self.names <= MAX_NAMES).then_some(())
    }
}

/// The sections of a program, one after the other.
struct Sections<'f, R> {
    file: &'f mut BufReader<R>,
    /// Bytes of the whole file.
    size: u64,
    /// Bytes of it that are still to come.
    left: u64,
}

impl<R: Read + Seek> Sections<'_, R> {
    /// Gives each section whose number is wanted to `visit`.
    ///
    /// # Errors
    ///
    /// Where the file breaks off, is beyond a bound, or `visit` does not understand what it was given.
    fn each(mut self, wanted: &[u8], mut visit: impl FnMut(u8, BinaryReader<'_>) -> Option<()>) -> Result<(), Unread> {
        let mut budget = MAX_BYTES;
        for _ in 0..MAX_SECTIONS {
            if self.left == 0 {
                return Ok(());
            }
            let breaks_off = Unread::BreaksOff(self.size - self.left);
            let id = self.byte().ok_or(breaks_off)?;
            if id > section::LAST {
                return Err(Unread::Unknown);
            }
            let size = self.size().ok_or(if self.left == 0 { breaks_off } else { Unread::Unknown })?;
            self.left = self.left.checked_sub(size).ok_or(breaks_off)?;
            let read = match wanted.contains(&id) {
                // Its name alone says whether it matters.
                true if id == section::CUSTOM => size.min(MAX_NAME_LEN),
                true => size,
                false => 0,
            };
            let visited = (|| {
                if read > 0 {
                    budget = budget.checked_sub(read)?;
                    let mut body = vec![0; usize::try_from(read).ok()?];
                    self.file.read_exact(&mut body).ok()?;
                    visit(id, BinaryReader::new(&body, 0))?;
                }
                self.file.seek_relative(i64::try_from(size - read).ok()?).ok()
            })();
            visited.ok_or(Unread::Unknown)?;
        }
        Err(Unread::Unknown)
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.left = self.left.checked_sub(1)?;
        self.file.read_exact(&mut byte).ok()?;
        Some(byte[0])
    }

    /// A number in at most five bytes of seven bits each, the lowest first.
    fn size(&mut self) -> Option<u64> {
        let mut size = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            size |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(size);
            }
        }
        None
    }
}
