//! Entries of the build with packages to compute. It runs texts as programs, and has one function that passes bytes and
//! returns others.

#![allow(unsafe_code, reason = "CPython passes addresses")]

use std::slice;

use crate::exchange::{self, CODE};

/// Name of the archive of the standard library: the published snapshot has read its directory.
pub(crate) const LIBRARY: &[u8] = b"python315.zip";
/// Maximum memory of a fresh instance, in bytes.
pub(crate) const MAX_MEMORY: usize = 256 << 20;

/// Python code for requests.
macro_rules! requests {
    () => {
        include_str!("../../python/numeric.py")
    };
}
pub(crate) use requests;

/// Program that does one task.
const RUN: &str = "_ = __import__('sys').modules['toolcrib_program'].main()\n";

#[link(wasm_import_module = "python")]
unsafe extern "C" {
    /// Returns memory that CPython frees; null if there is none.
    safe fn host_alloc(length: u32) -> *mut u8;
    /// Runs a program, which it frees, and returns its exit code.
    fn turn(source: *const u8, length: u32) -> i32;
}

/// Copies bytes to memory that CPython frees.
fn given(bytes: &[u8]) -> Option<*mut u8> {
    let place = host_alloc(bytes.len() as u32);
    if place.is_null() {
        return None;
    }
    // SAFETY: CPython allocated as many bytes.
    unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Some(place)
}

/// Runs a program of this crate; `false` if it failed.
fn start(source: &str) -> bool {
    // SAFETY: the program is in memory of CPython.
    given(source.as_bytes()).is_some_and(|place| unsafe { turn(place, source.len() as u32) } == 0)
}

/// Loads the Python code of the interpreter; `false` if that failed.
pub(crate) fn load() -> bool {
    // The code has printable ASCII characters alone, and both languages write such texts in the same way.
    start(&format!(
        "import sys, types\nmodule = sys.modules['toolcrib_program'] = types.ModuleType('toolcrib_program')\n\
         exec(compile({CODE:?}, 'toolcrib_program', 'exec'), module.__dict__)\n"
    ))
}

/// Runs the Python code of the interpreter once.
pub(crate) fn run() {
    start(RUN);
}

/// Handles a request, and passes its response in memory that CPython frees.
#[unsafe(no_mangle)]
unsafe extern "C" fn call(request: *const u8, length: u32, response: *mut *mut u8, response_length: *mut u32) -> i32 {
    const FAILED: i32 = -2;
    // SAFETY: CPython passes the bytes of its request, which live until this function returns.
    let request = unsafe { slice::from_raw_parts(request, length as usize) };
    let Ok(bytes) = exchange::respond(request) else { return FAILED };
    let Some(place) = given(&bytes) else { return FAILED };
    // SAFETY: the addresses of two numbers of CPython.
    unsafe {
        response.write_unaligned(place);
        response_length.write_unaligned(bytes.len() as u32);
    }
    0
}
