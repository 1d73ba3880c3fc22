//! The state behind one store: it lives for one call and holds only what that call was granted.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime_wasi::filesystem::WasiFilesystemCtxView;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView};

use super::errors::Errors;
use super::files::{Allowance, Files};
use super::imports::Provided;
use super::preview1::Preview1;
use super::requests::Requests;
use super::services::Services;
use super::stdio::Capped;
use super::usage::MemoryBudget;

pub(super) struct Host {
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
    pub(super) memory: MemoryBudget,
    pub(super) requests: Requests,
    pub(super) http: WasiHttpCtx,
    pub(super) deadline: Instant,
    pub(super) allowance: Allowance,
    /// The descriptors of a core module.
    pub(super) preview1: Preview1,
    /// What it finds that was written for other hosts.
    pub(super) provided: Provided,
    /// Where its notes go, where it runs under its grant.
    pub(super) notes: Option<Capped>,
    /// Who answers the questions of a script or a rich tool, where one runs.
    pub(super) services: Option<Arc<dyn Services>>,
}

impl Host {
    /// The files of this call, behind the gate.
    pub(super) fn files(&mut self) -> Files<'_> {
        let ctx = self.wasi.filesystem();
        let inner = WasiFilesystemCtxView { ctx, table: &mut self.table };
        Files { inner, allowance: &mut self.allowance }
    }

    /// The requests of this call, before the gate.
    pub(super) fn http(&mut self) -> WasiHttpCtxView<'_> {
        WasiHttpCtxView { hooks: &mut self.requests, table: &mut self.table, ctx: &mut self.http }
    }

    pub(super) fn errors(&mut self) -> Errors<'_> {
        Errors(&mut self.table)
    }

    pub(super) fn table(&mut self) -> &mut ResourceTable {
        &mut self.table
    }
}

impl WasiView for Host {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}
