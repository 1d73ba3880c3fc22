//! Integrity level of this process. Windows lets a process change nothing of a higher level than its own, whatever its user may
//! do, and no process raises its level.

#![expect(unsafe_code, reason = "tokens have no safe interface in the standard library")]

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null_mut;

use windows_sys::Win32::Security::{
    SID, SID_AND_ATTRIBUTES, SID_IDENTIFIER_AUTHORITY, SetTokenInformation, TOKEN_ADJUST_DEFAULT,
    TOKEN_MANDATORY_LABEL, TokenIntegrityLevel,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// Authority of integrity levels.
const MANDATORY_LABEL_AUTHORITY: SID_IDENTIFIER_AUTHORITY = SID_IDENTIFIER_AUTHORITY { Value: [0, 0, 0, 0, 0, 16] };
/// Lowest level. A file has a higher level unless it has this one explicitly.
const UNTRUSTED: u32 = 0;
/// Attribute of a label.
const SE_GROUP_INTEGRITY: u32 = 0x20;

/// Lowers this process to the lowest integrity level for good: it can then change no file, setting or other process. What is
/// open stays open, and what its user may read it still may read.
pub fn lower() -> io::Result<()> {
    // The source of random numbers opens its device at the first use.
    let _ = RandomState::new().hash_one(0_u8);
    let token = token()?;
    let mut level = SID {
        Revision: 1,
        SubAuthorityCount: 1,
        IdentifierAuthority: MANDATORY_LABEL_AUTHORITY,
        SubAuthority: [UNTRUSTED],
    };
    let label = SID_AND_ATTRIBUTES { Sid: (&raw mut level).cast(), Attributes: SE_GROUP_INTEGRITY };
    let label = TOKEN_MANDATORY_LABEL { Label: label };
    let length = (size_of::<TOKEN_MANDATORY_LABEL>() + size_of::<SID>()) as u32;
    let handle = token.as_raw_handle();
    // SAFETY: The handle is valid. The label and the identifier that it points to live during the call, which only reads them;
    // the documented length covers both.
    let done = unsafe { SetTokenInformation(handle, TokenIntegrityLevel, (&raw const label).cast(), length) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Opens the process token to change its defaults, which include the integrity level.
fn token() -> io::Result<OwnedHandle> {
    let mut token = null_mut();
    // SAFETY: The pseudo handle of this process is always valid, and the pointer is written once.
    let done = unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_DEFAULT, &raw mut token) };
    if done == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: The handle is valid, and nothing else closes it.
    Ok(unsafe { OwnedHandle::from_raw_handle(token) })
}
