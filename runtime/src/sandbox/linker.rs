//! Everything a guest can import, and so everything it can do: clocks, random numbers, standard streams, arguments, its
//! environment, its folders, and requests by HTTP, of which the gate refuses all that was not granted. What is named neither
//! here nor in [`imports`](super::imports) does not exist for a guest: no name service, no process.

use wasmtime::Engine;
use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::cli::{WasiCli, WasiCliView};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, io, random};
use wasmtime_wasi::random::{WasiRandom, WasiRandomView};
use wasmtime_wasi_http::WasiHttp;
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http;

use super::errors::Told;
use super::files::GatedFiles;
use super::host::Host;

struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// The imports of a command.
pub(super) fn command(engine: &Engine) -> wasmtime::Result<Linker<Host>> {
    let mut linker = Linker::new(engine);
    let l = &mut linker;
    io::error::add_to_linker::<Host, Told>(l, Host::errors)?;
    io::poll::add_to_linker::<Host, Table>(l, Host::table)?;
    io::streams::add_to_linker::<Host, Table>(l, Host::table)?;
    clocks::wall_clock::add_to_linker::<Host, WasiClocks>(l, Host::clocks)?;
    clocks::monotonic_clock::add_to_linker::<Host, WasiClocks>(l, Host::clocks)?;
    random::random::add_to_linker::<Host, WasiRandom>(l, Host::random)?;
    random::insecure::add_to_linker::<Host, WasiRandom>(l, Host::random)?;
    random::insecure_seed::add_to_linker::<Host, WasiRandom>(l, Host::random)?;
    cli::exit::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    cli::environment::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    cli::stdin::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    cli::stdout::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    cli::stderr::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    cli::terminal_input::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    cli::terminal_output::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    cli::terminal_stdin::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    cli::terminal_stdout::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    cli::terminal_stderr::add_to_linker::<Host, WasiCli>(l, Host::cli)?;
    filesystem::types::add_to_linker::<Host, GatedFiles>(l, Host::files)?;
    filesystem::preopens::add_to_linker::<Host, GatedFiles>(l, Host::files)?;
    http::outgoing_handler::add_to_linker::<Host, WasiHttp>(l, Host::http)?;
    http::types::add_to_linker::<Host, WasiHttp>(l, &LinkOptions::default().into(), Host::http)?;
    Ok(linker)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use toolcrib_component::interfaces::{INTERFACES, Link};

    /// Returns the interfaces that this file links, by the paths of its calls: `cli::exit` is `wasi:cli/exit`.
    fn linked() -> BTreeSet<String> {
        let calls = include_str!("linker.rs").lines();
        let calls = calls.filter_map(|line| line.trim().split_once("::add_to_linker::<Host").map(|(path, _)| path));
        let is_path = |path: &&str| path.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == ':');
        calls.filter(is_path).map(|path| format!("wasi:{}", path.replace("::", "/").replace('_', "-"))).collect()
    }

    #[test]
    fn the_linker_holds_the_interfaces_of_the_table() {
        let table = INTERFACES.iter().filter(|known| known.link == Link::All).map(|known| known.name.to_owned());
        assert_eq!(linked(), table.collect());
    }
}
