//! Identifier of this process's user.

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::null_mut;
use std::sync::OnceLock;

use windows_sys::Win32::Security::{GetTokenInformation, TOKEN_QUERY, TOKEN_USER, TokenUser};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use crate::access::Sid;

/// Length in words that holds the answer with the longest identifier.
const ANSWER_WORDS: usize = 32;

/// Returns the identifier of this process's user, which stays the same.
pub(crate) fn current() -> io::Result<Sid> {
    static CURRENT: OnceLock<Sid> = OnceLock::new();
    if let Some(known) = CURRENT.get() {
        return Ok(known.clone());
    }
    let sid = ask(&token()?)?;
    Ok(CURRENT.get_or_init(|| sid).clone())
}

#[expect(unsafe_code, reason = "calls of the system with a handle that is owned from here on")]
fn token() -> io::Result<OwnedHandle> {
    let mut token = null_mut();
    // SAFETY: the process handle is a constant that needs no closing, and `token` outlives the call.
    let opened = unsafe { OpenProcessToken(GetCurrentProcess(), TOKEN_QUERY, &raw mut token) };
    match opened {
        0 => Err(io::Error::last_os_error()),
        // SAFETY: the call succeeded, so the handle is open and nobody else closes it.
        _ => Ok(unsafe { OwnedHandle::from_raw_handle(token) }),
    }
}

#[expect(unsafe_code, reason = "a call of the system that fills a buffer with a structure and what it points to")]
fn ask(token: &OwnedHandle) -> io::Result<Sid> {
    // Words, so that the structure at the start of the buffer is aligned.
    let mut answer = [0u64; ANSWER_WORDS];
    let len = size_of_val(&answer);
    let mut used = 0;
    let capacity = u32::try_from(len).unwrap_or_default();
    // SAFETY: the handle is open, and the buffer has the given length.
    let asked = unsafe {
        GetTokenInformation(token.as_raw_handle(), TokenUser, answer.as_mut_ptr().cast(), capacity, &raw mut used)
    };
    if asked == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so the buffer starts with this structure, for which it is aligned and long enough.
    let user = unsafe { answer.as_ptr().cast::<TOKEN_USER>().read() };
    // The identifier lies in the buffer behind the structure.
    let at = (user.User.Sid as usize).wrapping_sub(answer.as_ptr() as usize);
    let bytes: Vec<u8> = answer.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes
        .get(at..)
        .and_then(Sid::at_start_of)
        .ok_or_else(|| io::Error::other("the system names no user of this process"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_user_of_this_process_has_an_identifier() {
        let user = super::current().unwrap();
        assert!(user.to_string().starts_with("S-1-"), "{user}");
        assert_eq!(super::current().unwrap(), user);
    }
}
