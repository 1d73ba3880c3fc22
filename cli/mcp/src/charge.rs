//! Charges: the use of a client's calls, with all calls that these make, counted for its token. Every call is counted when it ends,
//! also one that was cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use toolcrib::observe::{Event, EventKind};
use toolcrib_shared_state::AdmittedCall;

use super::metrics::Metrics;
use super::quotas::Quotas;

/// Places where the calls of a token are counted.
#[derive(Debug, Clone)]
pub(super) struct Charge {
    pub(super) metrics: Arc<Metrics>,
    pub(super) quotas: Option<Arc<Quotas>>,
    /// Name for the figures.
    pub(super) token: Arc<str>,
    /// Holder of the quotas.
    pub(super) holder: Arc<str>,
}

/// Charges of the running calls, by the call's identifier.
#[derive(Debug, Default)]
pub(super) struct Charges(Mutex<HashMap<String, Charge>>);

/// Charge of one call, which is counted until this value is dropped.
pub(super) struct RunningCharge {
    charges: Arc<Charges>,
    call: String,
    /// The call's place among those at once.
    _admitted: Option<Arc<AdmittedCall>>,
}

impl Charges {
    /// Counts a call and the calls below it from now on.
    pub(super) fn begin(
        self: &Arc<Self>,
        call: &str,
        charge: Charge,
        admitted: Option<Arc<AdmittedCall>>,
    ) -> RunningCharge {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(call.to_owned(), charge);
        RunningCharge { charges: self.clone(), call: call.to_owned(), _admitted: admitted }
    }

    /// Counts a call that has ended, if the event is such an end.
    pub(super) fn record(&self, event: &Event<'_>) {
        let EventKind::Ended(result) = event.kind else { return };
        let call = event.call_id.split('/').next().unwrap_or_default();
        let charge = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(call).cloned();
        let Some(Charge { metrics, quotas, token, holder }) = charge else { return };
        quotas.iter().for_each(|quotas| quotas.count(&holder, result));
        if call == event.call_id {
            // A name without a tool is the client's, and may be any.
            metrics.count(result, event.tool.is_some(), &token);
        }
    }
}

impl Drop for RunningCharge {
    fn drop(&mut self) {
        self.charges.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.call);
    }
}
