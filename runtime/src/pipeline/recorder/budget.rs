//! Time of one call: how much its preparation has used, how long it has waited, and when it has to end.

use std::time::{Duration, Instant};

use crate::error::{Outcome, ToolError};
use crate::tool::Limits;

/// Time of one call, counted against its tool's deadline.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Time that the call has waited for its turn, its permits and people's answers. It does not count as used.
    pub(super) waited: Duration,
    /// Part of the deadline that checks, hooks and compilation have used.
    spent: Duration,
    /// End of the call, once its tool runs.
    until: Option<Instant>,
}

impl Budget {
    /// Adds the time since `since` to the time that the call has waited.
    pub(crate) fn add_wait(&mut self, since: Instant) {
        self.waited += since.elapsed();
    }

    /// Takes `time` from the deadline of the call.
    pub(crate) fn spend(&mut self, time: Duration) {
        self.spent += time;
    }

    /// Sets the end of a call that starts to run.
    pub(crate) fn set_end(&mut self, until: Instant) {
        self.until = Some(until);
    }

    /// Returns the end of the call; for a call that has not run, it is calculated from `limits`.
    pub(crate) fn end(&self, limits: &Limits) -> Instant {
        self.until.unwrap_or_else(|| Instant::now() + limits.deadline.saturating_sub(self.spent))
    }

    /// Returns the part of `limits` that remains after `fuel` units and the time spent so far.
    pub(super) fn remaining(&self, limits: &Limits, fuel: u64) -> Result<Limits, ToolError> {
        let deadline = limits.deadline.saturating_sub(self.spent);
        if deadline.is_zero() {
            return Err(ToolError::new(Outcome::Deadline, "tool timed out before it started"));
        }
        let fuel = limits.fuel.map(|limit| limit.saturating_sub(fuel));
        if fuel == Some(0) {
            return Err(ToolError::new(Outcome::Fuel, "tool used up its fuel while its arguments were checked"));
        }
        Ok(Limits { deadline, fuel, ..*limits })
    }
}
