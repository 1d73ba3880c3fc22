//! Access to the memory of a module.

use wasmtime_wasi::p1::types::{Errno, Error};
use wiggle::{GuestMemory, GuestPtr};

/// Maximum length of a path in bytes.
const MAX_PATH_BYTES: u32 = 4096;

/// Result of a preview 1 function.
pub(super) type Result<T, E = Error> = std::result::Result<T, E>;

/// Reads a path or the target of a link.
pub(super) fn path(memory: &GuestMemory<'_>, path: GuestPtr<str>) -> Result<String> {
    if path.len() > MAX_PATH_BYTES {
        return Err(Errno::Nametoolong.into());
    }
    Ok(memory.as_cow_str(path)?.into_owned())
}

/// Writes bytes to a buffer of the guest.
pub(super) fn put(memory: &mut GuestMemory<'_>, at: GuestPtr<u8>, bytes: &[u8]) -> Result<()> {
    memory.copy_from_slice(bytes, at.as_array(u32::try_from(bytes.len())?))?;
    Ok(())
}
