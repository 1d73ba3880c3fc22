//! Import for interpreters of programs, `toolcrib:code`: calls that they wait for.

use wasmtime::component::Linker;

use crate::sandbox::bindings::{CODE_CALLS, CodeCall};
use crate::sandbox::state::CallState;

/// Links the interface. The time that a call takes is not the interpreter's: it gets a new deadline with the results.
pub(in crate::sandbox) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    linker.instance(CODE_CALLS)?.func_wrap_async("make", |mut store, (calls,): (Vec<CodeCall>,)| {
        let services = store.data().services();
        Box::new(async move {
            let (results, deadline) = services.make(calls).await.map_err(wasmtime::Error::msg)?;
            store.data_mut().set_deadline(deadline);
            store.set_epoch_deadline(1);
            Ok((results,))
        })
    })
}
