//! Effects of a call that are held back until its end.

use std::io;
use std::sync::Arc;

use toolcrib_staging::{Limits, Stage, Stages};

use crate::observe::SentRequests;
use crate::policy::Rule;
use crate::sandbox::{CallEffects, WaitingRequests};

/// Effects that a call holds back, with those of the calls below it, until somebody agrees to them. They are removed unless they are
/// kept.
pub(crate) struct HeldEffects {
    effects: Arc<CallEffects>,
    /// Rule that asks about them.
    rule: Arc<Rule>,
    is_kept: bool,
}

impl HeldEffects {
    /// Opens the stage of a call.
    ///
    /// # Errors
    ///
    /// As for [`Stages::open`].
    pub(crate) fn open(stages: &Stages, name: &str, rule: Arc<Rule>) -> io::Result<Self> {
        let stage = stages.open(name, Limits::default())?;
        let requests = rule.holds_requests().then(WaitingRequests::default);
        let effects = Arc::new(CallEffects { stage, sent: SentRequests::default(), requests });
        Ok(Self { effects, rule, is_kept: false })
    }

    pub(crate) fn effects(&self) -> &Arc<CallEffects> {
        &self.effects
    }

    pub(crate) fn stage(&self) -> &Arc<Stage> {
        &self.effects.stage
    }

    pub(crate) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Leaves the stage to a commit that goes on, or has removed it.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for HeldEffects {
    fn drop(&mut self) {
        if !self.is_kept {
            // Whoever lists the stages finds one that cannot be removed.
            let _ = self.effects.stage.remove();
        }
    }
}
