//! `wasi:io/error` as a guest reads it: what went wrong in a stream, in one bounded text. The engine's own tells whatever
//! its error type prints, and with backtraces switched on that is the host's stack.

use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::io::error::{Host, HostError};

/// The most characters that are told.
const MAX_MESSAGE_CHARS: usize = 500;

/// The errors of one call.
pub(super) struct Errors<'a>(pub(super) &'a mut ResourceTable);

pub(super) struct Told;

impl HasData for Told {
    type Data<'a> = Errors<'a>;
}

impl Host for Errors<'_> {}

impl HostError for Errors<'_> {
    fn to_debug_string(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<String> {
        Ok(format!("{:#}", self.0.get(&error)?).chars().take(MAX_MESSAGE_CHARS).collect())
    }

    fn drop(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<()> {
        self.0.delete(error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_in_one_text_without_the_hosts_stack() {
        let mut table = ResourceTable::new();
        let error = wasmtime::Error::msg("x".repeat(1000)).context("the server closed the connection early");
        let error = table.push(error).unwrap();
        let told = Errors(&mut table).to_debug_string(Resource::new_borrow(error.rep())).unwrap();
        assert!(
            told.starts_with("the server closed the connection early: xxx") && told.len() == MAX_MESSAGE_CHARS,
            "{told}"
        );
        Errors(&mut table).drop(error).unwrap();
        assert!(table.is_empty());
    }
}
