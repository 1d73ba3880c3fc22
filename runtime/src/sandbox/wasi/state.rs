//! WASI state of one store. It lives for one call and holds only resources that the call was granted.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::filesystem::WasiFilesystemCtxView;
use wasmtime_wasi::p2::{OutputStream, StreamError};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView};

use crate::sandbox::usage::Usage;

use super::descriptor_table::Preview1State;
use super::extras::WasiExtras;
use super::files::{FileState, Files};
use super::http::HttpHooks;
use super::stdio::CappedStream;
use super::stream_error::StreamErrors;

/// Maximum number of random bytes per host call. The bytes are generated one by one, without a check of the deadline.
pub(in crate::sandbox) const MAX_RANDOM_BYTES: u64 = 1 << 20;

/// Store data that contains the state of WASI.
pub(in crate::sandbox) trait WasiStore: Send + 'static {
    /// Returns the state of WASI.
    fn wasi(&mut self) -> &mut WasiState;
}

/// State of the WASI interfaces.
pub(in crate::sandbox) struct WasiState {
    pub(in crate::sandbox) ctx: WasiCtx,
    pub(in crate::sandbox) table: ResourceTable,
    pub(in crate::sandbox) files: FileState,
    pub(in crate::sandbox) http_hooks: HttpHooks,
    pub(in crate::sandbox) http: WasiHttpCtx,
    pub(in crate::sandbox) preview1: Preview1State,
    pub(in crate::sandbox) extras: WasiExtras,
    /// Stream for log messages, in a call with a grant.
    pub(in crate::sandbox) log: Option<CappedStream>,
}

impl WasiState {
    /// Returns the files of the call.
    pub(super) fn files(&mut self) -> Files<'_> {
        let inner = WasiFilesystemCtxView { ctx: self.ctx.filesystem(), table: &mut self.table };
        Files { inner, state: &mut self.files }
    }

    /// Returns the HTTP context, which sends every request through the hooks.
    pub(super) fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.http_hooks, table: &mut self.table, ctx: &mut self.http }
    }

    pub(super) fn stream_errors(&mut self) -> StreamErrors<'_> {
        StreamErrors(&mut self.table)
    }

    /// Returns the usage of the call.
    pub(in crate::sandbox) fn usage(&self) -> &Arc<Usage> {
        self.http_hooks.usage()
    }

    /// Writes a line to the log of the call, within its cap.
    ///
    /// # Errors
    ///
    /// The trap that ends the call if the cap is exceeded.
    pub(in crate::sandbox) fn log(&mut self, line: String) -> wasmtime::Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        match log.write(line.into()) {
            Err(StreamError::Trap(error)) => Err(error),
            _ => Ok(()),
        }
    }
}

impl WasiView for WasiState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.ctx, table: &mut self.table }
    }
}
