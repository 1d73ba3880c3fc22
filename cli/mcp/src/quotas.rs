//! Quotas for each token: its calls are counted in the store, which all servers may share.

use std::sync::Arc;
use std::time::Duration;

use toolcrib::ToolResult;
use toolcrib_base::render;
use toolcrib_shared_state::{AdmittedCall, QuotaLimits, QuotaUse, StateStore, StoreError};

use super::refusal::Refusal;

/// Quotas with the store of their use.
#[derive(Debug)]
pub(super) struct Quotas {
    limits: QuotaLimits,
    store: Arc<dyn StateStore>,
}

impl Quotas {
    pub(super) fn new(limits: QuotaLimits, store: Arc<dyn StateStore>) -> Self {
        Self { limits, store }
    }

    /// Counts a call of a token. One that goes on after a question (`is_continued`) needs no place among the calls at once.
    ///
    /// # Errors
    ///
    /// A quota is used up, with the time until the next window, or the store does not answer.
    pub(super) async fn admit(&self, token: &Arc<str>, is_continued: bool) -> Result<AdmittedCall, Refusal> {
        let admitted = self.store.admit(token, &self.limits, is_continued).await;
        let failed = |error: StoreError| {
            render::warning(&format!("a call with a quota is refused: {error}"));
            Refusal::Store
        };
        admitted.map_err(failed)?.map_err(Refusal::Quota)
    }

    /// Counts the use by a call that has ended.
    pub(super) fn count(&self, token: &Arc<str>, result: &ToolResult) {
        let receipt = &result.receipt;
        let sent = receipt.network.as_ref().map_or(0, |network| network.sent_bytes + network.received_bytes);
        let bytes = receipt.stdin_bytes + receipt.stdout_bytes + receipt.stderr_bytes + receipt.disk_bytes + sent;
        let cpu = Duration::try_from_secs_f64(receipt.cpu_ms / 1000.0).unwrap_or_default();
        self.store.charge(token, &self.limits, QuotaUse { cpu, bytes });
    }
}
