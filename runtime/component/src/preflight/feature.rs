//! Extensions of WebAssembly that the sandbox does not have. A section that uses one is refused with the name that compiler
//! flags have for it; an extension that only instructions use is refused by the compiler.

use wasmparser::{CompositeInnerType, MemoryType, Payload};

use crate::error::{Error, Result};

/// Checks one section.
///
/// # Errors
///
/// The section uses an extension, which the message names, or cannot be parsed.
pub(super) fn check(payload: &Payload<'_>) -> Result<()> {
    match payload {
        Payload::MemorySection(section) => section.clone().into_iter().try_for_each(|memory| check_memory(&memory?)),
        Payload::TableSection(section) => section.clone().into_iter().try_for_each(|table| {
            let table = table?.ty;
            refuse(table.table64, "a table with 64-bit indices", "memory64")?;
            refuse(table.shared, "a shared table", "shared-everything-threads")
        }),
        Payload::TagSection(section) => refuse(section.count() > 0, "a tag", "exceptions"),
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
