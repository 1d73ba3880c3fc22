//! Effects of a call that are held back until its end.

use std::io;
use std::sync::{Arc, Mutex};

use toolcrib_staging::{Limits, Stage, Stages};

use crate::observe::SentRequests;
use crate::policy::Rule;
use crate::sandbox::{CallEffects, WaitingRequests};

/// Effects that a call holds back, with those of the calls below it, until somebody agrees to them. They are removed with it, unless
/// their commit has begun.
pub(crate) struct HeldEffects {
    effects: Arc<CallEffects>,
    /// Rule that asks about them.
    rule: Arc<Rule>,
}

impl HeldEffects {
    /// Opens the stage of a call.
    ///
    /// # Errors
    ///
    /// As for [`Stages::open`].
    pub(crate) fn open(stages: &Stages, name: &str, rule: Arc<Rule>) -> io::Result<Self> {
        let stage = stages.open(name, Limits::default())?;
        let (sent, requests, flows) = (SentRequests::default(), WaitingRequests::default(), Mutex::default());
        let effects = Arc::new(CallEffects { stage, sent, requests, flows });
        Ok(Self { effects, rule })
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
}

impl Drop for HeldEffects {
    fn drop(&mut self) {
        // A commit that has begun goes on later. Whoever lists the stages finds one that cannot be removed.
        if !self.effects.stage.is_committing() {
            let _ = self.effects.stage.remove();
        }
    }
}
