//! Tokens, money and budgets of an agent: counted after each request, and asked about when a budget is used up.

use super::Agent;
use super::budget::UsedUp;
use super::event::{Ending, Event, Totals};
use super::keeper::Keeper;
use super::turn::Usage;
use super::unless_interrupted;

impl Agent {
    /// Counts the tokens of a request.
    pub(super) fn count(&mut self, step: u32, usage: Option<Usage>, is_final: bool) -> anyhow::Result<()> {
        self.spend(usage)?;
        match usage {
            Some(usage) => {
                self.context.note(usage, self.conversation.sent().len());
                self.report.emit(&Event::Usage { step, usage })
            }
            None if is_final => Ok(()),
            None => self.options.budget.check_counted().map_err(Into::into),
        }
    }

    /// Adds the tokens of a request to the totals and budgets.
    pub(super) fn spend(&mut self, usage: Option<Usage>) -> anyhow::Result<()> {
        self.options.budget.add_tokens(usage);
        let Some(usage) = usage else { return Ok(()) };
        *self.totals.usage.get_or_insert(Usage::default()) += usage;
        let totals = self.totals();
        self.conversation.keeper().map_or(Ok(()), |keeper: &Keeper| {
            keeper.spent(&totals);
            keeper.usage(usage)
        })
    }

    /// Asks at each budget that is used up; returns the end of the run if it does not go on.
    pub(super) async fn within_budget(&mut self, calls: usize) -> anyhow::Result<Option<Ending>> {
        while let Some(used_up) = self.options.budget.used_up(calls) {
            match self.goes_on(&used_up).await? {
                None => return Ok(Some(Ending::Interrupted)),
                Some(true) => self.options.budget.extend(used_up.kind, calls),
                Some(false) => {
                    let kind = used_up.kind;
                    self.stopped = Some(used_up);
                    return Ok(Some(Ending::Budget(kind)));
                }
            }
        }
        Ok(None)
    }

    /// Asks a person at the terminal, if there is one, whether the run goes on; `None` if the run is interrupted meanwhile.
    pub(super) async fn goes_on(&mut self, used_up: &UsedUp) -> anyhow::Result<Option<bool>> {
        let totals = self.totals();
        unless_interrupted(self.report.ask_to_go_on(used_up, &totals)).await
    }

    /// Returns the totals so far.
    pub(crate) fn totals(&self) -> Totals {
        let ms = self.started.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
        Totals { ms, cost: self.options.budget.cost(), ..self.totals }
    }
}
