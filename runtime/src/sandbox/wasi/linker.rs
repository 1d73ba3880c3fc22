//! Imports of WASI that every guest can use: clocks, random numbers, standard streams, arguments, environment, folders,
//! and HTTP requests, which the egress refuses unless granted. An interface that is neither here, nor in
//! [`drafts`](super::drafts), nor in the imports of the crib does not exist for a guest: there is no name service and
//! no process.

use toolcrib_component::interfaces;
use wasmtime::Engine;
use wasmtime::component::{Component, HasData, Linker, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};
use wasmtime_wasi_http::WasiHttp;
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http;

use super::files::HasFiles;
use super::state::WasiStore;
use super::stream_error::HasStreamErrors;

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// Function that links one interface.
type AddToLinker<T> = fn(&mut Linker<T>) -> wasmtime::Result<()>;

/// Lists every interface of the table with [`Link::All`](toolcrib_component::interfaces::Link::All).
fn links<T: WasiStore>() -> [(&'static str, AddToLinker<T>); 22] {
    [
        ("wasi:io/error", |l| io::error::add_to_linker::<T, HasStreamErrors>(l, |store| store.wasi().stream_errors())),
        ("wasi:io/poll", |l| io::poll::add_to_linker::<T, HasTable>(l, |store| &mut store.wasi().table)),
        ("wasi:io/streams", |l| io::streams::add_to_linker::<T, HasTable>(l, |store| &mut store.wasi().table)),
        ("wasi:clocks/wall-clock", |l| {
            clocks::wall_clock::add_to_linker::<T, WasiClocks>(l, |store| store.wasi().clocks())
        }),
        ("wasi:clocks/monotonic-clock", |l| {
            clocks::monotonic_clock::add_to_linker::<T, WasiClocks>(l, |store| store.wasi().clocks())
        }),
        ("wasi:random/random", |l| random::random::add_to_linker::<T, WasiRandom>(l, |store| store.wasi().random())),
        ("wasi:random/insecure", |l| {
            random::insecure::add_to_linker::<T, WasiRandom>(l, |store| store.wasi().random())
        }),
        ("wasi:random/insecure-seed", |l| {
            random::insecure_seed::add_to_linker::<T, WasiRandom>(l, |store| store.wasi().random())
        }),
        ("wasi:cli/exit", |l| cli::exit::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())),
        ("wasi:cli/environment", |l| cli::environment::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())),
        ("wasi:cli/stdin", |l| cli::stdin::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())),
        ("wasi:cli/stdout", |l| cli::stdout::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())),
        ("wasi:cli/stderr", |l| cli::stderr::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())),
        ("wasi:cli/terminal-input", |l| {
            cli::terminal_input::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())
        }),
        ("wasi:cli/terminal-output", |l| {
            cli::terminal_output::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())
        }),
        ("wasi:cli/terminal-stdin", |l| {
            cli::terminal_stdin::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())
        }),
        ("wasi:cli/terminal-stdout", |l| {
            cli::terminal_stdout::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())
        }),
        ("wasi:cli/terminal-stderr", |l| {
            cli::terminal_stderr::add_to_linker::<T, WasiCli>(l, |store| store.wasi().cli())
        }),
        ("wasi:filesystem/types", |l| filesystem::types::add_to_linker::<T, HasFiles>(l, |store| store.wasi().files())),
        ("wasi:filesystem/preopens", |l| {
            filesystem::preopens::add_to_linker::<T, HasFiles>(l, |store| store.wasi().files())
        }),
        ("wasi:http/outgoing-handler", |l| {
            http::outgoing_handler::add_to_linker::<T, WasiHttp>(l, |store| store.wasi().http())
        }),
        ("wasi:http/types", |l| {
            http::types::add_to_linker::<T, WasiHttp>(l, &LinkOptions::default().into(), |store| store.wasi().http())
        }),
    ]
}

/// Links the interfaces that a component imports.
pub(in crate::sandbox) fn add_imports<T: WasiStore>(
    linker: &mut Linker<T>,
    engine: &Engine,
    component: &Component,
) -> wasmtime::Result<()> {
    let imports = component.component_type();
    let imports: Vec<&str> = imports.imports(engine).map(|(name, _)| interfaces::split(name).0).collect();
    links::<T>().iter().filter(|(name, _)| imports.contains(name)).try_for_each(|(_, link)| link(linker))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use toolcrib_component::interfaces::{INTERFACES, Link};

    use crate::sandbox::state::CallState;

    #[test]
    fn the_linker_holds_the_interfaces_of_the_table() {
        let linked: BTreeSet<_> = super::links::<CallState>().iter().map(|(name, _)| *name).collect();
        let table = INTERFACES.iter().filter(|known| known.link == Link::All).map(|known| known.name);
        assert_eq!(linked, table.collect());
    }
}
