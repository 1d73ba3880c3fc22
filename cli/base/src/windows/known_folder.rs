//! Folders of a user that Windows knows, wherever its variables point.

#![expect(unsafe_code, reason = "known folders have no interface in the standard library")]

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::slice;

use windows_sys::Win32::System::Com::CoTaskMemFree;
use windows_sys::Win32::UI::Shell::{
    FOLDERID_LocalAppData, FOLDERID_Profile, FOLDERID_RoamingAppData, SHGetKnownFolderPath,
};
use windows_sys::core::GUID;

/// The home folder.
pub fn profile() -> Option<PathBuf> {
    path(&FOLDERID_Profile)
}

/// The data of programs on this machine.
pub fn local_data() -> Option<PathBuf> {
    path(&FOLDERID_LocalAppData)
}

/// Program data on each machine of the user.
pub fn roaming_data() -> Option<PathBuf> {
    path(&FOLDERID_RoamingAppData)
}

fn path(folder: &GUID) -> Option<PathBuf> {
    let mut text = null_mut();
    // SAFETY: The identifier is read and the pointer is written during the call. No token means this user.
    let result = unsafe { SHGetKnownFolderPath(folder, 0, null_mut(), &raw mut text) };
    let path = (result == 0 && !text.is_null()).then(|| {
        // SAFETY: After a success, the text is valid up to the zero at its end.
        let wide = unsafe {
            let length = (0..).take_while(|at| *text.add(*at) != 0).count();
            slice::from_raw_parts(text, length)
        };
        PathBuf::from(OsString::from_wide(wide))
    });
    // SAFETY: The text is the caller's, also after a failure, and is not used any more. Freeing nothing has no effect.
    unsafe { CoTaskMemFree(text.cast()) };
    path
}
