//! Quotas for each token: all its calls, and those of some tools, are counted in the store, which all servers may share.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use toolcrib::ToolResult;
use toolcrib::error::HandlerError;
use toolcrib::hook::{Hook, HookPhase, ProposedCall, Verdict};
use toolcrib::tool::{Glob, Tool};
use toolcrib_base::parse::ToolQuota;
use toolcrib_base::render;
use toolcrib_shared_state::{AdmittedCall, QuotaExceeded, QuotaLimits, QuotaUse, StateStore, StoreError};

use super::access;
use super::refusal::Refusal;

/// Quotas of each token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuotaRules {
    /// Quotas for all calls with a token together.
    pub all: Option<QuotaLimits>,
    /// Window length for the quotas of tools.
    pub window: Duration,
    /// Quotas of tools. The first one that names a tool is the tool's.
    pub tools: Vec<ToolQuota>,
}

/// Quotas with the store of their use. As a hook, they count the calls of tools with a quota, also those of programs.
pub struct Quotas {
    rules: RwLock<Arc<QuotaRules>>,
    store: Arc<dyn StateStore>,
}

impl Quotas {
    /// Creates quotas whose use is counted in a store.
    pub fn new(rules: QuotaRules, store: Arc<dyn StateStore>) -> Self {
        Self { rules: RwLock::new(Arc::new(rules)), store }
    }

    /// Applies other quotas from now on. What was used counts for them, unless the length of the window changes.
    pub fn change(&self, rules: QuotaRules) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }

    fn rules(&self) -> Arc<QuotaRules> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a call of a token; `None` without a quota. One that goes on after a question (`is_continued`) needs no place among
    /// the calls at once.
    ///
    /// # Errors
    ///
    /// A quota is used up, with the time until the next window, or the store does not answer.
    pub(super) async fn admit(&self, token: &Arc<str>, is_continued: bool) -> Result<Option<AdmittedCall>, Refusal> {
        let Some(limits) = self.rules().all else { return Ok(None) };
        let admitted = self.store.admit(token, &limits, is_continued).await;
        let failed = |error: StoreError| {
            render::warning(&format!("a call with a quota is refused: {error}"));
            Refusal::Store
        };
        admitted.map_err(failed)?.map(Some).map_err(Refusal::Quota)
    }

    /// Counts the use by a call that has ended.
    pub(super) fn count(&self, token: &Arc<str>, result: &ToolResult) {
        let Some(limits) = self.rules().all else { return };
        let receipt = &result.receipt;
        let sent = receipt.network.as_ref().map_or(0, |network| network.sent_bytes + network.received_bytes);
        let bytes = receipt.stdin_bytes + receipt.stdout_bytes + receipt.stderr_bytes + receipt.disk_bytes + sent;
        let cpu = Duration::try_from_secs_f64(receipt.cpu_ms / 1000.0).unwrap_or_default();
        self.store.charge(token, &limits, QuotaUse { cpu, bytes });
    }

    /// Counts a call of a tool with a quota.
    async fn judge(&self, call: ProposedCall<'_>) -> Result<Verdict, HandlerError> {
        // A command of a script is a part of the script's call.
        if call.invocation.is_empty() {
            return Ok(Verdict::Pass);
        }
        let (rules, name) = (self.rules(), &call.tool.name);
        let Some(ToolQuota { tools, calls }) = rules.of(name) else { return Ok(Verdict::Pass) };
        let limits = QuotaLimits { window: rules.window, calls: Some(*calls), cpu: None, bytes: None, running: None };
        let counted = counter(tools, access::holder(call.owner));
        match self.store.admit(&counted, &limits, false).await {
            Ok(Ok(_)) => Ok(Verdict::Pass),
            Ok(Err(QuotaExceeded { wait, .. })) => {
                let why =
                    format!("the quota of {calls} calls to `{tools}` is used up: call `{name}` again in {wait} s");
                Ok(Verdict::Block(why))
            }
            Err(error) => {
                render::warning(&format!("a call of `{}` with a quota is refused: {error}", render::one_line(name)));
                Err(HandlerError::new("the call cannot be counted for its quota now: repeat it later"))
            }
        }
    }
}

impl Hook for Quotas {
    fn name(&self) -> &str {
        "quota"
    }

    /// Counts after all other hooks: a call that one of them blocks is not counted.
    fn priority(&self) -> i32 {
        i32::MAX
    }

    fn applies(&self, tool: &Tool, phase: HookPhase) -> bool {
        phase == HookPhase::Before && self.rules().of(&tool.name).is_some()
    }

    fn before<'a>(&'a self, call: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        self.judge(call).boxed()
    }
}

impl fmt::Debug for Quotas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quotas").field("rules", &self.rules()).finish_non_exhaustive()
    }
}

impl QuotaRules {
    /// Returns the quota of a tool.
    fn of(&self, tool: &str) -> Option<&ToolQuota> {
        self.tools.iter().find(|quota| quota.tools.is_match(tool))
    }
}

/// Returns the name under which the calls of a token to some tools are counted. No token has such a name.
fn counter(tools: &Glob, holder: &str) -> Arc<str> {
    format!("tool {tools} of {holder}").into()
}
