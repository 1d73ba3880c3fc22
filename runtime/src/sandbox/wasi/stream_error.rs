//! `wasi:io/error`: the error of a stream in one bounded text. The engine's own implementation prints the error with
//! its `Debug` form, which contains the host's stack if backtraces are enabled.

use toolcrib_foundation::text::clipped;
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::p2::bindings::io::error::{Host, HostError};

/// Stream errors of one call.
pub(super) struct StreamErrors<'a>(pub(super) &'a mut ResourceTable);

pub(super) struct HasStreamErrors;

impl HasData for HasStreamErrors {
    type Data<'a> = StreamErrors<'a>;
}

impl Host for StreamErrors<'_> {}

impl HostError for StreamErrors<'_> {
    fn to_debug_string(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<String> {
        Ok(clipped(&format!("{:#}", self.0.get(&error)?)))
    }

    fn drop(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<()> {
        self.0.delete(error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use toolcrib_foundation::text::MAX_RECORDED;

    use super::*;

    #[test]
    fn an_error_is_told_in_one_text_without_the_hosts_stack() {
        let mut table = ResourceTable::new();
        let error = wasmtime::Error::msg("x".repeat(1000)).context("the server closed the connection early");
        let error = table.push(error).unwrap();
        let output = StreamErrors(&mut table).to_debug_string(Resource::new_borrow(error.rep())).unwrap();
        assert!(
            output.starts_with("the server closed the connection early: xxx") && output.len() == MAX_RECORDED,
            "{output}"
        );
        StreamErrors(&mut table).drop(error).unwrap();
        assert!(table.is_empty());
    }
}
