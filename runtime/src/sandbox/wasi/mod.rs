//! Interfaces of WASI that guests import, and the state behind them. Nothing here knows a kind of tool or a service of the
//! crib: store data only has to contain a [`WasiState`].

mod config;
mod descriptor_table;
mod drafts;
mod extras;
mod files;
mod http;
mod keyvalue;
mod linker;
mod logging;
pub(super) mod preview1;
mod sockets;
mod state;
mod stdio;
mod stream_error;

pub(super) use descriptor_table::Preview1State;
pub(super) use drafts::add_drafts;
pub(crate) use extras::{Settings, WasiExtras};
pub(super) use files::{FileState, PathGuard};
pub(crate) use http::{Certificates, HttpClient, certificates};
pub(super) use http::{Driver, HttpAccess, HttpEgress, HttpHooks, ResponseBody, Timeouts};
pub(super) use linker::add_imports;
pub(super) use state::{MAX_RANDOM_BYTES, WasiState, WasiStore};
pub(super) use stdio::CappedStream;
