//! Budgets of a run: tokens, calls, processor time, bytes and money for the run with everything that its tools call and
//! delegate. Each is checked before a request, and those that calls use also before the calls of a step and of a program; what
//! already runs has limits of its own.

mod options;

use std::error::Error;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use toolcrib::Receipt;
use toolcrib::observe::{Event, EventKind, Observer};
use toolcrib_base::parse::size_in_words;
use toolcrib_base::render::{counted, one_line};

use super::turn::Usage;

pub use options::{BudgetOptions, Price};

/// Exit code of a run that stopped at a budget and can be resumed.
pub(crate) const AT_BUDGET: u8 = 4;

/// Amounts that a budget limits, each of them optional as a limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Amounts {
    pub(crate) tokens: Option<u64>,
    pub(crate) calls: Option<u64>,
    pub(crate) processor: Option<Duration>,
    pub(crate) bytes: Option<u64>,
    pub(crate) cost: Option<f64>,
}

/// Kind of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Model turns.
    Steps,
    /// Tokens of the model.
    Tokens,
    /// Tool calls.
    Calls,
    /// Processor time of the calls.
    ProcessorTime,
    /// Bytes that calls print, write, send and receive.
    Bytes,
    /// Cost of the tokens.
    Cost,
    /// Calls with the same arguments and the same result.
    Repeats,
}

/// Amounts that a run has used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Spent {
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) total_tokens: u64,
    pub(crate) calls: u64,
    pub(crate) processor: Duration,
    pub(crate) bytes: u64,
}

/// Budgets with the amounts used so far, shared by a run and its subagents.
#[derive(Debug, Default)]
pub struct Budget {
    /// Limits as they were set; each permission to go on adds one of them.
    set: Amounts,
    price: Option<Price>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    limits: Amounts,
    spent: Spent,
    /// `true` once the server has not counted the tokens of an answer, although a budget needs them.
    is_uncounted: bool,
}

/// The server has not counted the tokens of an answer, although a budget needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Uncounted;

impl fmt::Display for Uncounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server does not count tokens, so token and cost budgets cannot be enforced: run without them")
    }
}

impl Error for Uncounted {}

/// A budget that is used up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UsedUp {
    pub(crate) kind: BudgetKind,
    /// The budget in words, such as `100 tokens`.
    limit: String,
    /// Call that was made again and again.
    repeated: Option<String>,
}

impl fmt::Display for UsedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.repeated {
            Some(name) => {
                write!(f, "`{name}` was called with the same arguments and the same result in {}", self.limit)
            }
            None => write!(f, "the budget of {} is used up", self.limit),
        }
    }
}

impl UsedUp {
    /// Creates the end for a used-up step budget.
    pub(crate) fn steps(limit: String) -> Self {
        Self { kind: BudgetKind::Steps, limit, repeated: None }
    }

    /// Creates the end for a call that was made again and again.
    pub(crate) fn repeats(name: &str, count: u32) -> Self {
        Self { kind: BudgetKind::Repeats, limit: counted(count, "call"), repeated: Some(one_line(name)) }
    }

    /// Returns the budget in words.
    pub(crate) fn limit(&self) -> &str {
        &self.limit
    }
}

impl Budget {
    /// Creates budgets with these limits.
    pub(super) fn new(limits: Amounts, price: Option<Price>) -> Self {
        Self { set: limits, price, state: Mutex::new(State { limits, ..State::default() }) }
    }

    /// Returns `true` if tokens have to be counted.
    fn counts_tokens(&self) -> bool {
        self.set.tokens.is_some() || self.set.cost.is_some()
    }

    /// Adds the tokens of a request. Without them, no further request is made within a budget of tokens or money.
    pub(crate) fn add_tokens(&self, usage: Option<Usage>) {
        let mut state = self.lock();
        let Some(usage) = usage else {
            state.is_uncounted |= self.counts_tokens();
            return;
        };
        let spent = &mut state.spent;
        spent.prompt_tokens = spent.prompt_tokens.saturating_add(usage.prompt_tokens);
        spent.completion_tokens = spent.completion_tokens.saturating_add(usage.completion_tokens);
        spent.total_tokens = spent.total_tokens.saturating_add(usage.total_tokens);
    }

    /// Returns the money spent so far, if a price is set.
    pub(crate) fn cost(&self) -> Option<f64> {
        Some(self.price.as_ref()?.of(&self.lock().spent))
    }

    /// Refuses a further request if the tokens of an earlier one were not counted.
    ///
    /// # Errors
    ///
    /// [`Uncounted`].
    pub(crate) fn check_counted(&self) -> Result<(), Uncounted> {
        if self.lock().is_uncounted { Err(Uncounted) } else { Ok(()) }
    }

    /// Returns the first budget that does not suffice for another step, or for `calls` more calls.
    pub(crate) fn used_up(&self, calls: usize) -> Option<UsedUp> {
        let state = self.lock();
        let State { limits, spent, .. } = &*state;
        let cost = self.price.as_ref().map_or(0.0, |price| price.of(spent));
        let after = spent.calls.saturating_add(calls as u64);
        // Calls use up no tokens of this run.
        let is_request = calls == 0;
        let tokens = limits.tokens.filter(|most| is_request && spent.total_tokens >= *most);
        let made = limits.calls.filter(|most| after > *most);
        let processor = limits.processor.filter(|most| spent.processor >= *most);
        let bytes = limits.bytes.filter(|most| spent.bytes >= *most);
        let money = limits.cost.filter(|most| is_request && cost >= *most);
        let found = [
            tokens.map(|most| (BudgetKind::Tokens, counted(most, "token"))),
            made.map(|most| (BudgetKind::Calls, counted(most, "call"))),
            processor.map(|most| (BudgetKind::ProcessorTime, format!("{most:?} of processor time"))),
            bytes.map(|most| (BudgetKind::Bytes, size_in_words(usize::try_from(most).unwrap_or(usize::MAX)))),
            money.map(|most| (BudgetKind::Cost, format!("{most} of money"))),
        ];
        found.into_iter().flatten().next().map(|(kind, limit)| UsedUp { kind, limit, repeated: None })
    }

    /// Adds the limit as it was set once more, as often as the run needs to go on with `calls` more calls.
    pub(crate) fn extend(&self, kind: BudgetKind, calls: usize) {
        let cost = self.cost().unwrap_or_default();
        let mut state = self.lock();
        let State { limits, spent, .. } = &mut *state;
        match kind {
            BudgetKind::Steps | BudgetKind::Repeats => {}
            BudgetKind::Tokens => limits.tokens = self.set.tokens.map(|add| spent.total_tokens.saturating_add(add)),
            BudgetKind::Calls => {
                let add = |add: u64| spent.calls.saturating_add(add.max(calls as u64));
                limits.calls = self.set.calls.map(add);
            }
            BudgetKind::ProcessorTime => {
                limits.processor = self.set.processor.map(|add| spent.processor.saturating_add(add));
            }
            BudgetKind::Bytes => limits.bytes = self.set.bytes.map(|add| spent.bytes.saturating_add(add)),
            BudgetKind::Cost => limits.cost = self.set.cost.map(|add| cost + add),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Budget {
    fn observe(&self, event: &Event<'_>) {
        let EventKind::Ended(result) = &event.kind else { return };
        let mut state = self.lock();
        let spent = &mut state.spent;
        let Receipt { cpu_ms, stdout_bytes, stderr_bytes, disk_bytes, network, .. } = &result.receipt;
        let (sent, received) = network.as_ref().map_or((0, 0), |network| (network.sent_bytes, network.received_bytes));
        spent.calls += 1;
        spent.processor = spent.processor.saturating_add(Duration::from_secs_f64(cpu_ms.clamp(0.0, 1e12) / 1e3));
        let moved = [*stdout_bytes, *stderr_bytes, *disk_bytes, sent, received];
        spent.bytes = moved.into_iter().fold(spent.bytes, u64::saturating_add);
    }

    fn refusal(&self) -> Option<String> {
        Some(self.used_up(1)?.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(tokens: u64) -> Option<Usage> {
        Some(Usage { prompt_tokens: tokens, completion_tokens: 0, total_tokens: tokens })
    }

    #[test]
    fn a_budget_is_used_up_and_extended_by_itself() {
        let limits = Amounts { tokens: Some(100), calls: Some(2), ..Amounts::default() };
        let budget = Budget::new(limits, None);
        assert_eq!(budget.used_up(2), None);
        assert_eq!(budget.used_up(3).map(|used| used.to_string()).as_deref(), Some("the budget of 2 calls is used up"));
        budget.extend(BudgetKind::Calls, 3);
        assert_eq!(budget.used_up(3), None);
        budget.add_tokens(used(99));
        assert_eq!(budget.used_up(0), None);
        budget.add_tokens(used(151));
        assert_eq!(budget.used_up(0).map(|used| used.kind), Some(BudgetKind::Tokens));
        budget.extend(BudgetKind::Tokens, 0);
        assert_eq!(budget.used_up(0), None);
        budget.add_tokens(used(100));
        assert!(budget.used_up(0).is_some());
    }

    #[test]
    fn money_is_counted_only_at_a_price() {
        let limits = Amounts { cost: Some(1.0), ..Amounts::default() };
        let budget = Budget::new(limits, "0.5/2".parse().ok());
        let usage = Usage { prompt_tokens: 1_000_000, completion_tokens: 200_000, total_tokens: 1_200_000 };
        budget.add_tokens(Some(usage));
        assert_eq!((budget.cost(), budget.used_up(0)), (Some(0.9), None));
        budget.add_tokens(used(200_000));
        assert_eq!(budget.used_up(0).map(|used| used.kind), Some(BudgetKind::Cost));
        assert_eq!(Budget::default().cost(), None);
        assert_eq!(budget.check_counted(), Ok(()));
        budget.add_tokens(None);
        assert_eq!(budget.check_counted(), Err(Uncounted));
        let calls = Budget::new(Amounts { calls: Some(1), ..Amounts::default() }, None);
        calls.add_tokens(None);
        assert_eq!(calls.check_counted(), Ok(()), "calls are counted here");
    }
}
