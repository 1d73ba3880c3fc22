//! Imports of WASI that every guest can use: clocks, random numbers, standard streams, arguments, environment, folders,
//! and HTTP requests, which the egress refuses unless granted. An interface that is neither here, nor in
//! [`drafts`](super::drafts), nor in the imports of the crib does not exist for a guest: there is no name service and
//! no process.

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};
use wasmtime_wasi_http::WasiHttp;
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types as http_types};

use super::files::HasFiles;
use super::state::WasiStore;
use super::stream_error::HasStreamErrors;

/// Names of the linked interfaces.
pub(in crate::sandbox) const INTERFACES: [&str; 22] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:http/outgoing-handler",
    "wasi:http/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// Links every interface of [`INTERFACES`].
pub(in crate::sandbox) fn add_to_linker<T: WasiStore>(l: &mut Linker<T>) -> wasmtime::Result<()> {
    io::error::add_to_linker::<T, HasStreamErrors>(l, |store| store.wasi().stream_errors())?;
    io::poll::add_to_linker::<T, HasTable>(l, |store| &mut store.wasi().table)?;
    io::streams::add_to_linker::<T, HasTable>(l, |store| &mut store.wasi().table)?;
    clocks::wall_clock::add_to_linker::<T, WasiClocks>(l, |store| store.wasi().clocks())?;
    clocks::monotonic_clock::add_to_linker::<T, WasiClocks>(l, |store| store.wasi().clocks())?;
    random::random::add_to_linker::<T, WasiRandom>(l, |store| store.wasi().random())?;
    random::insecure::add_to_linker::<T, WasiRandom>(l, |store| store.wasi().random())?;
    random::insecure_seed::add_to_linker::<T, WasiRandom>(l, |store| store.wasi().random())?;
    cli::exit::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    cli::environment::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    cli::stdin::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    cli::stdout::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    cli::stderr::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    cli::terminal_input::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    cli::terminal_output::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    cli::terminal_stdin::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    cli::terminal_stdout::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    cli::terminal_stderr::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())?;
    filesystem::types::add_to_linker::<T, HasFiles>(l, |store| store.wasi().files())?;
    filesystem::preopens::add_to_linker::<T, HasFiles>(l, |store| store.wasi().files())?;
    outgoing_handler::add_to_linker::<T, WasiHttp>(l, |store| store.wasi().http())?;
    http_types::add_to_linker::<T, WasiHttp>(l, &LinkOptions::default().into(), |store| store.wasi().http())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_told_of_a_program_that_imports_it() {
        let unknown = INTERFACES.iter().filter(|name| !crate::source::inspect::interface::is_known(name));
        assert_eq!(unknown.collect::<Vec<_>>(), [] as [&&str; 0]);
    }
}
