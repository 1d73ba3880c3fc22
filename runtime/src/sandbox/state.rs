//! Data and configuration of a store. A store lives for one call.

use std::sync::Arc;
use std::time::Instant;

use wasmtime::component::ResourceTable;
use wasmtime::{Engine, Store, UpdateDeadline};
use wasmtime_wasi::WasiCtx;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi_http::WasiHttpCtx;

use crate::error::ToolError;
use crate::figures::{Present, SANDBOXES};
use crate::policy::FlagHints;
use crate::tool::Limits;

use super::causes::DeadlinePassed;
use super::descriptor_budget::DescriptorBudget;
use super::guest_io::{GuestInput, Streams};
use super::services::{HostServices, NoServices};
use super::usage::{MemoryBudget, Usage};
use super::wasi::{
    CappedStream, FileState, HttpAccess, HttpClient, HttpEgress, HttpHooks, MAX_RANDOM_BYTES, PathGuard, Preview1State,
    WasiExtras, WasiState, WasiStore,
};

/// Data of one store: it contains only resources that the call was granted.
pub(super) struct CallState {
    wasi: WasiState,
    memory: MemoryBudget,
    deadline: Instant,
    services: Option<Arc<dyn HostServices>>,
    /// Counts the store among those of this process.
    _present: Present,
}

impl CallState {
    /// Sets the time at which the guest has to return.
    pub(super) fn set_deadline(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// Returns the services of the call.
    pub(super) fn services(&self) -> Arc<dyn HostServices> {
        match &self.services {
            Some(services) => services.clone(),
            None => Arc::new(NoServices(self.memory.usage.clone())),
        }
    }
}

impl WasiStore for CallState {
    fn wasi(&mut self) -> &mut WasiState {
        &mut self.wasi
    }
}

/// Configuration of a store: its WASI context, its files, its network access and the services that answer it.
pub(super) struct StoreConfig {
    ctx: WasiCtx,
    files: FileState,
    http: HttpAccess,
    extras: WasiExtras,
    /// Stream for log messages.
    log: Option<CappedStream>,
    services: Option<Arc<dyn HostServices>>,
}

impl StoreConfig {
    /// Creates the configuration of a call under its grant. Log messages go to its standard error.
    ///
    /// # Errors
    ///
    /// [`Denied`](crate::error::Outcome::Denied) if a granted folder can no longer be opened.
    pub(super) fn granted(
        input: &GuestInput<'_>,
        streams: &Streams,
        services: Option<Arc<dyn HostServices>>,
        usage: &Arc<Usage>,
        budget: &Arc<DescriptorBudget>,
        client: &Arc<HttpClient>,
    ) -> Result<Self, ToolError> {
        let files = FileState::new(input.limits, usage, budget, PathGuard::new(input.grant));
        let mut files = files.staged(input.grant.stage());
        input.grant.folders().iter().try_for_each(|folder| files.grant(folder))?;
        Ok(Self {
            ctx: context(input, streams),
            files,
            http: http_access(input, usage, client),
            extras: input.extras.clone(),
            log: Some(streams.stderr().clone()),
            services,
        })
    }

    /// Creates the configuration of a call without grants.
    pub(super) fn bare(
        stderr: Option<CappedStream>,
        limits: &Limits,
        usage: &Arc<Usage>,
        budget: &Arc<DescriptorBudget>,
    ) -> Self {
        let mut ctx = WasiCtx::builder();
        ctx.max_random_size(MAX_RANDOM_BYTES);
        if let Some(stderr) = stderr {
            ctx.stderr(stderr);
        }
        Self {
            ctx: ctx.build(),
            files: FileState::new(limits, usage, budget, PathGuard::default()),
            http: HttpAccess::Closed(FlagHints::default()),
            extras: WasiExtras::default(),
            log: None,
            services: None,
        }
    }

    /// Adds services of the host.
    pub(super) fn with_services(self, services: Arc<dyn HostServices>) -> Self {
        Self { services: Some(services), ..self }
    }

    /// Creates the store, with the limits of its call.
    pub(super) fn into_store(
        self,
        engine: &Engine,
        limits: &Limits,
        usage: &Arc<Usage>,
        deadline: Instant,
    ) -> Store<CallState> {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let wasi = WasiState {
            ctx: self.ctx,
            table,
            files: self.files,
            http_hooks: HttpHooks::new(self.http, limits, usage),
            http: WasiHttpCtx::new(),
            preview1: Preview1State::default(),
            extras: self.extras,
            log: self.log,
        };
        let memory = MemoryBudget::new(limits.memory, usage);
        let state = CallState { wasi, memory, deadline, services: self.services, _present: SANDBOXES.enter() };
        let mut store = Store::new(engine, state);
        store.limiter(|state| &mut state.memory);
        store.set_hostcall_fuel(limits.host_call);
        store.set_max_component_handles(limits.handles);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|context| {
            if Instant::now() >= context.data().deadline {
                Err(wasmtime::Error::from(DeadlinePassed))
            } else {
                // Unlike the engine's own yield, this one lets the scheduler poll its timers and sockets before the
                // guest continues. With guests on every thread, the scheduler would otherwise poll the timers and
                // sockets of other calls up to 60 turns later.
                Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
            }
        });
        if let Some(fuel) = limits.fuel {
            // An engine that counts no fuel returns an error; no program on it has a fuel limit.
            let _ = store.set_fuel(fuel);
        }
        store
    }
}

/// Returns the WASI context of one call: its streams, its arguments and its variables.
fn context(input: &GuestInput<'_>, streams: &Streams) -> WasiCtx {
    let mut ctx = WasiCtx::builder();
    ctx.args(input.argv)
        .envs(input.grant.env())
        .initial_cwd("/")
        .max_random_size(MAX_RANDOM_BYTES)
        .stdin(MemoryInputPipe::new(input.stdin.clone()))
        .stdout(streams.stdout().clone())
        .stderr(streams.stderr().clone());
    ctx.build()
}

/// Returns the network access of a call. A call without a network grant allocates nothing here.
fn http_access(input: &GuestInput<'_>, usage: &Arc<Usage>, client: &Arc<HttpClient>) -> HttpAccess {
    let network = input.grant.network();
    if network.is_empty() {
        return HttpAccess::Closed(network.hints().clone());
    }
    HttpAccess::Open(Arc::new(HttpEgress {
        client: client.clone(),
        grant: network.clone(),
        credentials: input.credentials.cloned(),
        limits: *input.limits,
        usage: usage.clone(),
    }))
}
