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
use wasmtime_wasi_http::p2::bindings::http;

use super::files::HasFiles;
use super::state::WasiStore;
use super::stream_error::HasStreamErrors;

struct HasTable;

impl HasData for HasTable {
    type Data<'a> = &'a mut ResourceTable;
}

/// Links every interface of the table with [`Link::All`](toolcrib_component::interfaces::Link::All).
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
    http::outgoing_handler::add_to_linker::<T, WasiHttp>(l, |store| store.wasi().http())?;
    http::types::add_to_linker::<T, WasiHttp>(l, &LinkOptions::default().into(), |store| store.wasi().http())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use toolcrib_component::interfaces::{INTERFACES, Link};

    /// Returns the interfaces that this file links, by the paths of its calls: `cli::exit` is `wasi:cli/exit`.
    fn linked() -> BTreeSet<String> {
        let calls = include_str!("linker.rs").lines();
        let calls = calls.filter_map(|line| line.trim().split_once("::add_to_linker::<T").map(|(path, _)| path));
        let is_path = |path: &&str| path.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == ':');
        calls.filter(is_path).map(|path| format!("wasi:{}", path.replace("::", "/").replace('_', "-"))).collect()
    }

    #[test]
    fn the_linker_holds_the_interfaces_of_the_table() {
        let table = INTERFACES.iter().filter(|known| known.link == Link::All).map(|known| known.name.to_owned());
        assert_eq!(linked(), table.collect());
    }
}
