//! Inspection of a program's file: the capabilities that it could request, and its metadata.

use std::path::Path;

use crate::error::Error;

use super::program_bytes;

pub use toolcrib_component::ProgramKind;
pub use toolcrib_component::capability::{Capability, Granted};
pub use toolcrib_component::inspect::{Inspection, Metadata, Producer, SkippedExport};
pub use toolcrib_component::interfaces::{CapabilityRequest, ImportedInterface};

/// Inspects a program without compiling or running it. A broken part of it becomes a note.
///
/// # Errors
///
/// The file cannot be read, is larger than any program that is loaded, or is not WebAssembly.
pub fn inspect(program: &Path) -> Result<Inspection, Error> {
    let failed = |reason: String| Error::Component { path: program.to_path_buf(), reason };
    let bytes = program_bytes(program).map_err(|error| failed(format!("cannot be read: {error}")))?;
    toolcrib_component::inspect(&bytes).map_err(|error| failed(error.to_string()))
}
