//! Extensions of WebAssembly that the sandbox does without, as far as a section shows them: refused by the name under
//! which a compiler's flags know them. What only an instruction shows, the compiler refuses.

use wasmparser::{CompositeInnerType, MemoryType, Payload};

use super::told;

/// Refuses what the sandbox's engine is not set up for.
///
/// # Errors
///
/// A text with the extension's name.
pub(super) fn check(payload: &Payload<'_>) -> Result<(), String> {
    match payload {
        Payload::MemorySection(section) => {
            section.clone().into_iter().try_for_each(|memory| of_memory(&memory.map_err(told)?))
        }
        Payload::TableSection(section) => section.clone().into_iter().try_for_each(|table| {
            let table = table.map_err(told)?.ty;
            refuse(table.table64, "a table of 64-bit indices", "memory64")?;
            refuse(table.shared, "a shared table", "shared-everything-threads")
        }),
        Payload::TagSection(section) => refuse(section.count() > 0, "a tag", "exceptions"),
        Payload::TypeSection(section) => {
            for group in section.clone() {
                for ty in group.map_err(told)?.types() {
                    let ty = &ty.composite_type;
                    refuse(ty.shared, "a shared type", "shared-everything-threads")?;
                    match ty.inner {
                        CompositeInnerType::Func(_) => {}
                        CompositeInnerType::Array(_) | CompositeInnerType::Struct(_) => {
                            refuse(true, "a type of collected objects", "gc")?;
                        }
                        CompositeInnerType::Cont(_) => refuse(true, "a type of continuations", "stack-switching")?,
                    }
                }
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn of_memory(memory: &MemoryType) -> Result<(), String> {
    refuse(memory.memory64, "a memory of 64-bit addresses", "memory64")?;
    refuse(memory.shared, "a shared memory", "threads")?;
    refuse(memory.page_size_log2.is_some(), "a memory with a page size of its own", "custom-page-sizes")
}

fn refuse(found: bool, what: &str, extension: &str) -> Result<(), String> {
    match found {
        true => Err(format!("it has {what}, and the sandbox has no `{extension}`; build it without")),
        false => Ok(()),
    }
}
