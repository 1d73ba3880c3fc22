//! Preflight: a program's check before anything of it is compiled. One pass over its bytes, in time and memory in
//! proportion to their number, counts the items that cost a compiler most and refuses a program that exceeds a limit.
//! The compiler decides whether the rest is valid.

mod custom;
mod limits;
mod module;
mod scope;

use crate::error::{Error, Result};
use crate::extensions;
use crate::form::Form;
use crate::nesting::check_nesting;
use crate::sections::payloads;

use limits::Counts;
pub use limits::Limits;
pub use module::START;
use scope::Scopes;

/// Checks a program.
///
/// # Errors
///
/// The program is not WebAssembly, cannot be parsed, needs a feature that the sandbox does not have, or exceeds a limit.
pub fn check(program: &[u8], limits: &Limits) -> Result<()> {
    if program.len() > limits.program_bytes {
        return Err(Error::Limit(format!("more than the {} bytes that are loaded", limits.program_bytes)));
    }
    let form = Form::find(program).ok_or_else(|| match Error::not_webassembly(program) {
        found @ Error::NotWebAssembly => {
            Error::Invalid(format!("{found}; compile it for `wasm32-wasip2` or `wasm32-wasip1`"))
        }
        found => found,
    })?;
    check_nesting(program)?;
    let mut counts = Counts::new(limits);
    let mut scopes = Scopes::new(limits);
    for payload in payloads(program) {
        let (_, payload) = payload?;
        counts.add(&payload)?;
        extensions::check(&payload)?;
        scopes.visit(payload)?;
    }
    match form {
        Form::Component => Ok(()),
        Form::Module => module::check(program),
    }
}
