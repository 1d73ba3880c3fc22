//! The path of every guest call: a fresh store, its deadline, its fuel, and the error for its trap.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, ComponentNamedList, ComponentType, InstancePre, Lift, Lower};

use crate::error::{Outcome, ToolError};
use crate::sandbox::epoch;
use crate::sandbox::guest_io::{GuestInput, Streams};
use crate::sandbox::program::Sandbox;
use crate::sandbox::services::HostServices;
use crate::sandbox::state::{CallState, StoreConfig};
use crate::sandbox::trap;
use crate::sandbox::usage::{Metered, Usage};
use crate::sandbox::wasi::CappedStream;
use crate::tool::Limits;

/// Parameters of an export.
pub(super) trait Params: ComponentNamedList + Lower + Send + Sync {}
impl<T: ComponentNamedList + Lower + Send + Sync> Params for T {}

/// Result of an export.
pub(super) trait Returned: ComponentType + Lift + Send + Sync + 'static {}
impl<T: ComponentType + Lift + Send + Sync + 'static> Returned for T {}

/// Store in which one guest call runs.
pub(super) struct FreshStore<'a> {
    pub(super) config: StoreConfig,
    pub(super) counts_fuel: bool,
    pub(super) limits: &'a Limits,
    pub(super) usage: &'a Arc<Usage>,
}

impl Sandbox {
    /// Returns the configuration of a call under its grant.
    pub(super) fn granted(
        &self,
        input: &GuestInput<'_>,
        streams: &Streams,
        services: Option<Arc<dyn HostServices>>,
        usage: &Arc<Usage>,
    ) -> Result<StoreConfig, ToolError> {
        StoreConfig::granted(input, streams, services, usage, &self.descriptors, &self.http_client)
    }

    /// Returns the configuration of a call without grants.
    pub(super) fn bare(&self, stderr: Option<CappedStream>, limits: &Limits, usage: &Arc<Usage>) -> StoreConfig {
        StoreConfig::bare(stderr, limits, usage, &self.descriptors)
    }

    /// Runs a guest in a fresh store. `on_exit` maps the exit code of a guest that ended itself. Dropping the future stops
    /// the guest.
    pub(super) async fn execute<T>(
        &self,
        FreshStore { config, counts_fuel, limits, usage }: FreshStore<'_>,
        on_exit: impl FnOnce(i32) -> Result<T, ToolError>,
        run: impl AsyncFnOnce(&mut Store<CallState>) -> wasmtime::Result<T>,
    ) -> Result<T, ToolError> {
        let engine = self.engines.get(counts_fuel).map_err(|error| ToolError::new(Outcome::Trap, error.to_string()))?;
        let _ticks = engine.tick();
        let deadline = epoch::deadline(limits);
        let mut store = config.into_store(&engine.engine, limits, usage, deadline);
        // The epoch stops a guest that computes; the timeout stops one that waits in a host call.
        let running = Metered { inner: Box::pin(run(&mut store)), usage, deadline };
        let ended = tokio::time::timeout_at(deadline.into(), running).await;
        if let Some(fuel) = limits.fuel {
            usage.fuel.fetch_add(fuel.saturating_sub(store.get_fuel().unwrap_or_default()), Relaxed);
        }
        match ended.ok().flatten().ok_or_else(trap::timed_out)? {
            Ok(value) => Ok(value),
            Err(error) => {
                let code = trap::classify(&error, usage, limits)?;
                on_exit(code).map_err(|error| trap::after_exit(error, usage, limits))
            }
        }
    }
}

/// Instantiates a component and calls one of its exports.
pub(super) async fn call_export<P: Params, R: Returned>(
    store: &mut Store<CallState>,
    component: &InstancePre<CallState>,
    export: ComponentExportIndex,
    params: P,
) -> wasmtime::Result<R> {
    let instance = component.instantiate_async(&mut *store).await?;
    let function = instance.get_typed_func::<P, (R,)>(&mut *store, export)?;
    let (value,) = function.call_async(&mut *store, params).await?;
    Ok(value)
}

/// Returns the error for a guest that ended itself in the middle of a call that has to return.
pub(super) fn early_exit<T>(message: &str) -> Result<T, ToolError> {
    Err(ToolError::new(Outcome::Trap, message))
}
