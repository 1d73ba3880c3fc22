//! Detection of asynchronous parts: functions that are lifted or lowered so, types, and the built-in functions for
//! tasks, streams and futures. Nested components are searched too.

use std::io::{Read, Seek};

use wasmparser::{BinaryReader, CanonicalFunction, CanonicalOption, ComponentCanonicalSectionReader};

use crate::error::Result;
use crate::form::Form;
use crate::nesting::Types;
use crate::sections::{Sections, id};

/// Returns `true` if a component has asynchronous parts. An unreadable or too large program is searched up to that point.
pub(super) fn is_async(sections: &mut Sections<impl Read + Seek>) -> bool {
    search(sections).unwrap_or(false)
}

/// Searches the sections of all components as one sequence, so that nesting depth costs nothing.
fn search(sections: &mut Sections<impl Read + Seek>) -> Result<bool> {
    sections.rewind()?;
    while let Some(section) = sections.next()? {
        let found = match section.id {
            id::COMPONENT => {
                sections.enter(&section, Form::Component)?;
                false
            }
            id::TYPE => Types::read(BinaryReader::new(&sections.read(&section, u64::MAX)?, 0))?.is_async,
            id::CANONICAL => has_async_function(BinaryReader::new(&sections.read(&section, u64::MAX)?, 0))?,
            _ => false,
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_async_function(body: BinaryReader<'_>) -> Result<bool> {
    for function in ComponentCanonicalSectionReader::new(body)? {
        if is_async_function(&function?) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_async_function(function: &CanonicalFunction) -> bool {
    use CanonicalFunction as Kind;
    match function {
        Kind::Lift { options, .. } | Kind::Lower { options, .. } => {
            options.iter().any(|option| matches!(option, CanonicalOption::Async | CanonicalOption::Callback(_)))
        }
        Kind::ResourceNew { .. } | Kind::ResourceDrop { .. } | Kind::ResourceRep { .. } => false,
        // Part of another proposal, with a name of its own.
        Kind::ThreadSpawnRef { .. } | Kind::ThreadSpawnIndirect { .. } | Kind::ThreadAvailableParallelism => false,
        _ => true,
    }
}
