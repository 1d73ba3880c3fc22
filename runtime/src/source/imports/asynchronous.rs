//! The asynchronous parts of a component: functions that are lifted or lowered so, and the built-in functions of tasks,
//! streams and futures. They are looked for in the components inside, too; code is skipped over in the file.

use std::io::{BufReader, Read, Seek, SeekFrom};

use wasmparser::{BinaryReader, CanonicalFunction, CanonicalOption, ComponentCanonicalSectionReader, Parser};

use super::{MAX_BYTES, MAX_SECTIONS, Sections, section, types};

/// The length of what a module or component begins with.
const HEADER: u64 = 8;

/// Returns true where a component has any. What breaks off or is beyond a bound is looked at as far as that.
pub(super) fn inside(file: &mut BufReader<impl Read + Seek>, size: u64) -> bool {
    if file.seek(SeekFrom::Start(HEADER)).is_err() {
        return false;
    }
    let mut search = Search { budget: MAX_BYTES, sections: MAX_SECTIONS };
    search.through(&mut Sections { file, size, left: size - HEADER }).unwrap_or(false)
}

/// What may still be read.
struct Search {
    budget: u64,
    sections: usize,
}

impl Search {
    /// Whether there are any in what is left of the file: its components are gone through as if all were one, so that
    /// nothing is nested. `None` where that cannot be said.
    fn through<R: Read + Seek>(&mut self, parts: &mut Sections<'_, R>) -> Option<bool> {
        while parts.left > 0 {
            self.sections = self.sections.checked_sub(1)?;
            let id = parts.byte()?;
            let size = parts.size()?;
            let rest = parts.left.checked_sub(size)?;
            if id == section::COMPONENT {
                let mut header = [0; HEADER as usize];
                parts.left = parts.left.checked_sub(HEADER)?;
                parts.file.read_exact(&mut header).ok()?;
                if Parser::is_component(&header) {
                    continue;
                }
                return None;
            }
            parts.left = rest;
            if id != section::CANONICAL && id != section::TYPE {
                parts.file.seek_relative(i64::try_from(size).ok()?).ok()?;
                continue;
            }
            self.budget = self.budget.checked_sub(size)?;
            let mut body = vec![0; usize::try_from(size).ok()?];
            parts.file.read_exact(&mut body).ok()?;
            let body = BinaryReader::new(&body, 0);
            if if id == section::TYPE { has_types(body)? } else { has_functions(body)? } {
                return Some(true);
            }
        }
        Some(false)
    }
}

fn has_types(body: BinaryReader<'_>) -> Option<bool> {
    let mut found = false;
    types::read(body, &mut found).ok()?;
    Some(found)
}

fn has_functions(body: BinaryReader<'_>) -> Option<bool> {
    for function in ComponentCanonicalSectionReader::new(body).ok()? {
        if is_asynchronous(&function.ok()?) {
            return Some(true);
        }
    }
    Some(false)
}

fn is_asynchronous(function: &CanonicalFunction) -> bool {
    use CanonicalFunction as Of;
    match function {
        Of::Lift { options, .. } | Of::Lower { options, .. } => {
            options.iter().any(|option| matches!(option, CanonicalOption::Async | CanonicalOption::Callback(_)))
        }
        Of::ResourceNew { .. } | Of::ResourceDrop { .. } | Of::ResourceRep { .. } => false,
        // Of another proposal, with a name of its own.
        Of::ThreadSpawnRef { .. } | Of::ThreadSpawnIndirect { .. } | Of::ThreadAvailableParallelism => false,
        _ => true,
    }
}
