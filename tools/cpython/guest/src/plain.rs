//! Entries of the build with the standard library. It has one function for requests of HTTP, which carries those of the
//! interpreter's Python code, and runs a function of that code at each start.

#![allow(unsafe_code, reason = "CPython passes addresses")]

use std::cell::RefCell;
use std::mem::take;
use std::slice;

use crate::exchange::{self, Refusal};
use crate::system;

/// Name of the archive of the standard library: the published snapshot has read its directory.
pub(crate) const LIBRARY: &[u8] = b"python314.zip";
/// Maximum memory of a fresh instance, in bytes.
pub(crate) const MAX_MEMORY: usize = 64 << 20;

/// Python code for requests.
macro_rules! requests {
    () => {
        include_str!("../../python/plain.py")
    };
}
pub(crate) use requests;

/// Statement that loads the Python code of the interpreter: the arguments of the first start of CPython.
const LOAD: &str = "import _bashkit, types, sys
code = dict(_bashkit.http('code', '', (), None, None)[1])['code']
module = sys.modules['toolcrib_program'] = types.ModuleType('toolcrib_program')
exec(compile(code, 'toolcrib_program', 'exec'), module.__dict__)
";

thread_local! {
    /// Response that CPython has not fetched.
    static RESPONSE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[link(wasm_import_module = "python")]
unsafe extern "C" {
    safe fn bashkit_run() -> i32;
}

/// Loads the Python code of the interpreter; `false` if that failed.
pub(crate) fn load() -> bool {
    system::set_arguments(&["python3", "-c", LOAD]);
    let code = bashkit_run();
    system::set_arguments(&["python3"]);
    code == 0
}

/// Runs the Python code of the interpreter once.
pub(crate) fn run() {
    bashkit_run();
}

/// Handles a request, and keeps its response until [`http_take`].
#[unsafe(no_mangle)]
unsafe extern "C" fn http_request(request: *const u8, length: i32, _timeout: i64, response: *mut u32) -> i32 {
    const NETWORK: i32 = 1;
    const INVALID: i32 = 3;
    // SAFETY: CPython passes the bytes of its request, which live until this function returns.
    let request = unsafe { slice::from_raw_parts(request, length as usize) };
    let (code, bytes) = match exchange::respond(request) {
        Ok(bytes) => (0, bytes),
        Err(Refusal::Network) => (NETWORK, b"programs have no network: use a tool".to_vec()),
        Err(Refusal::Invalid) => (INVALID, b"not a request".to_vec()),
    };
    // SAFETY: the address of a number on the stack of CPython.
    unsafe { response.write(bytes.len() as u32) };
    RESPONSE.set(bytes);
    code
}

/// Copies the kept response; a negative length drops it.
#[unsafe(no_mangle)]
unsafe extern "C" fn http_take(buffer: *mut u8, length: i32) -> i32 {
    let bytes = RESPONSE.with_borrow_mut(take);
    if bytes.len() != length as usize {
        return 1;
    }
    // SAFETY: CPython allocated as many bytes as it says.
    unsafe { buffer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    0
}
