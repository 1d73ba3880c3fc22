//! Extensions of WebAssembly that the sandbox does not have. A section that uses one is refused with the name that compiler
//! flags have for it; an extension that only instructions use is refused by the compiler.

use std::io::{Read, Seek};

use wasmparser::{
    BinaryReader, CompositeInnerType, MemorySectionReader, MemoryType, Payload, TableSectionReader, TypeSectionReader,
};

use crate::error::{Error, Result};
use crate::form::Form;
use crate::sections::{Sections, id};

/// Returns the reason why no sandbox runs a program, as far as its sections show without its code. An unreadable or too large
/// program is searched up to that point.
pub(crate) fn unsupported(sections: &mut Sections<impl Read + Seek>) -> Option<String> {
    match search(sections) {
        Err(found @ Error::Unsupported(_)) => Some(found.to_string()),
        _ => None,
    }
}

/// Checks the sections of all modules as one sequence, so that nesting depth costs nothing.
fn search(sections: &mut Sections<impl Read + Seek>) -> Result<()> {
    sections.rewind()?;
    // Modules do not nest.
    let mut module_end = if sections.form() == Form::Module { u64::MAX } else { 0 };
    while let Some(section) = sections.next()? {
        if section.start >= module_end {
            match section.id {
                id::MODULE => {
                    sections.enter(&section, Form::Module)?;
                    module_end = section.body.end;
                }
                id::COMPONENT => sections.enter(&section, Form::Component)?,
                _ => {}
            }
            continue;
        }
        if !matches!(section.id, id::CORE_TYPE | id::CORE_TABLE | id::CORE_MEMORY) {
            continue;
        }
        let body = sections.read(&section, u64::MAX)?;
        let reader = BinaryReader::new(&body, 0);
        check(&match section.id {
            id::CORE_TYPE => Payload::TypeSection(TypeSectionReader::new(reader)?),
            id::CORE_TABLE => Payload::TableSection(TableSectionReader::new(reader)?),
            _ => Payload::MemorySection(MemorySectionReader::new(reader)?),
        })?;
    }
    Ok(())
}

/// Checks one section.
///
/// # Errors
///
/// The section uses an extension, which the message names, or cannot be parsed.
pub(crate) fn check(payload: &Payload<'_>) -> Result<()> {
    match payload {
        Payload::MemorySection(section) => section.clone().into_iter().try_for_each(|memory| check_memory(&memory?)),
        Payload::TableSection(section) => section.clone().into_iter().try_for_each(|table| {
            let table = table?.ty;
            refuse(table.table64, "a table with 64-bit indices", "memory64")?;
            refuse(table.shared, "a shared table", "shared-everything-threads")
        }),
        Payload::TypeSection(section) => {
            for group in section.clone() {
                for ty in group?.types() {
                    let ty = &ty.composite_type;
                    refuse(ty.shared, "a shared type", "shared-everything-threads")?;
                    match ty.inner {
                        CompositeInnerType::Func(_) => {}
                        CompositeInnerType::Array(_) | CompositeInnerType::Struct(_) => {
                            refuse(true, "a garbage-collected type", "gc")?;
                        }
                        CompositeInnerType::Cont(_) => refuse(true, "a continuation type", "stack-switching")?,
                    }
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn check_memory(memory: &MemoryType) -> Result<()> {
    refuse(memory.memory64, "a memory with 64-bit addresses", "memory64")?;
    refuse(memory.shared, "a shared memory", "threads")?;
    refuse(memory.page_size_log2.is_some(), "a memory with a custom page size", "custom-page-sizes")
}

fn refuse(found: bool, item: &str, extension: &str) -> Result<()> {
    match found {
        true => Err(Error::Unsupported(format!(
            "it has {item}, and the sandbox does not support `{extension}`; build it without"
        ))),
        false => Ok(()),
    }
}
