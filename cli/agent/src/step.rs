//! One step's calls: begun within the budgets, kept when each of them ends, and reported in their order.

use toolcrib::call::{Part, Payload};
use toolcrib::tool::Body;
use toolcrib::{Outcome, Tool, ToolResult};
use toolcrib_base::{interrupt, render};
use toolcrib_settings::permission::{hint, limit_hint};

use super::Agent;
use super::batch::Batch;
use super::budget::{BudgetKind, UsedUp};
use super::change::change_of;
use super::event::{Ending, Event, ToolResult as CallEnd};
use super::turn::Call;
use crate::watch::{CallEvent, CallEventKind};

/// Shown in place of the result while a call waits.
const NOT_MADE: &str = r#"{"error":"not made: interrupted before the call began"}"#;

impl Agent {
    /// Makes the pending calls of the last message; returns the run's end if something stops it.
    pub(super) async fn call(&mut self, step: u32) -> anyhow::Result<Option<Ending>> {
        if let Some(ending) = self.within_budget(self.conversation.pending().len()).await? {
            return Ok(Some(ending));
        }
        for Call { id, name, arguments, payload } in self.conversation.pending() {
            let custom = *payload == Payload::Text;
            self.report.emit(&Event::ToolCall { step, id, name, arguments, custom })?;
        }
        if let Some(keeper) = self.conversation.keeper() {
            keeper.calls(self.conversation.pending())?;
        }
        self.repeats.begin_step();
        let calls = self.conversation.take_pending();
        self.batch = Some(Batch::start(&self.session, self.options.api, calls));
        while self.next_result(step).await? {}
        self.save()?;
        if interrupt::is_requested() {
            return Ok(Some(Ending::Interrupted));
        }
        self.within_repeats().await
    }

    /// Asks whether the run goes on after the same call was made again and again; returns the end of the run if it does not.
    async fn within_repeats(&mut self) -> anyhow::Result<Option<Ending>> {
        let Some((name, count)) = self.repeats.take_stuck() else { return Ok(None) };
        let used_up = UsedUp::repeats(&name, count);
        match self.goes_on(&used_up).await? {
            None => Ok(Some(Ending::Interrupted)),
            Some(true) => Ok(None),
            Some(false) => {
                self.stopped = Some(used_up);
                Ok(Some(Ending::Budget(BudgetKind::Repeats)))
            }
        }
    }

    /// Awaits the next event of the running calls and reports it; `false` if all have ended.
    async fn next_result(&mut self, step: u32) -> anyhow::Result<bool> {
        let Some(batch) = &mut self.batch else { return Ok(false) };
        let alone = batch.len() == 1;
        let (call, result) = tokio::select! {
            biased;
            Some(seen) = self.events.next() => {
                self.show(step, seen)?;
                return Ok(true);
            }
            next = batch.next() => match next {
                Some((call, result)) => (call.clone(), result),
                None => return Ok(false),
            },
        };
        // Parts shown before the end are reported before it.
        while let Some(seen) = self.events.ready() {
            self.show(step, seen)?;
        }
        self.note(&call.id, &result)?;
        let waits = self.waits(&call.id, &result);
        if !waits {
            self.totals.calls += 1;
            self.totals.failed_calls += u64::from(result.is_error());
            self.totals.denied_calls += u64::from(result.receipt.outcome == Outcome::Denied);
        }
        let tool = self.session.tools().into_iter().find(|tool| tool.name == result.receipt.tool);
        let hint = hint(&result.receipt, tool, &call.arguments);
        let content = if waits { NOT_MADE.into() } else { result.content() };
        let log_end = render::log_end(&result);
        let deadline = tool.and_then(|tool| self.session.limits(&tool.name)).map(|limits| limits.deadline);
        let limit = limit_hint(result.receipt.outcome, tool.map(|tool| &tool.limits), deadline);
        self.report.emit(&Event::ToolResult(CallEnd {
            step,
            id: &call.id,
            name: &call.name,
            is_error: result.is_error(),
            content: &content,
            display: result.display.as_deref(),
            plugin: tool.map(Tool::plugin),
            shown: &result.shown,
            receipt: &result.receipt,
            log: &result.log,
            log_end: log_end.as_deref(),
            hint: hint.as_deref(),
            limit: limit.as_deref(),
            alone,
        }))?;
        Ok(true)
    }

    /// Stops the calls of a step that failed. What ends meanwhile is kept if it can be.
    pub(super) async fn stop_calls(&mut self) {
        let Some(mut batch) = self.batch.take() else { return };
        // None begins from here on, also none that waits because its beginning cannot be kept.
        batch.cancel();
        let ended = self.events.during(batch.stop(), |kind| matches!(kind, CallEventKind::Ended(_))).await;
        self.batch = Some(batch);
        for CallEvent { call_id: id, kind, .. } in ended {
            let waits = self.conversation.keeper().is_some_and(|keeper| keeper.waits(&id));
            if let (CallEventKind::Ended(result), false) = (kind, waits) {
                // The error that stopped the step is the one to return.
                let _ = self.note(&id, &result);
            }
        }
    }

    /// Ends the tasks in the background, and reports the hooks of their calls.
    pub(super) async fn end_tasks(&mut self) -> anyhow::Result<()> {
        let session = self.session.clone();
        let hooks = self.events.during(session.end(), |kind| matches!(kind, CallEventKind::Hooks(_))).await;
        hooks.into_iter().try_for_each(|seen| self.show(self.totals.steps, seen))
    }

    /// Reports a call event; the result of a call that has ended is kept at once. The previews of a step come in the
    /// order of its calls.
    pub(super) fn show(&mut self, step: u32, seen: CallEvent) -> anyhow::Result<()> {
        if let (CallEventKind::Part { part, .. }, Some(keeper)) = (&seen.kind, self.conversation.keeper()) {
            keeper.shown(&seen.call_id, part);
        }
        match (seen.kind, &mut self.batch) {
            (CallEventKind::NotKept(error, _waits), batch) => {
                // Before the call goes on, it is cancelled.
                batch.iter().for_each(|batch| batch.cancel());
                Err(error)
            }
            (CallEventKind::Decided, _) => self.show_previews(step, &seen.call_id),
            (CallEventKind::Ended(result), _) => {
                self.note(&seen.call_id, &result)?;
                self.show_previews(step, &seen.call_id)
            }
            (kind @ CallEventKind::Preview(_), Some(batch)) => {
                let other = batch.previews.hold(CallEvent { kind, ..seen });
                other.map_or(Ok(()), |seen| self.emit(step, &seen))
            }
            (kind, _) => self.emit(step, &CallEvent { kind, ..seen }),
        }
    }

    /// Reports the previews whose turn has come with the decision about a call, or its end.
    fn show_previews(&mut self, step: u32, decided: &str) -> anyhow::Result<()> {
        let ready = self.batch.as_mut().map_or(Vec::new(), |batch| batch.previews.after(decided));
        ready.iter().try_for_each(|seen| self.emit(step, seen))
    }

    fn emit(&mut self, step: u32, seen: &CallEvent) -> anyhow::Result<()> {
        // The words of a definition say no more than the line of the call.
        let is_preview = matches!(seen.kind, CallEventKind::Preview(_));
        if is_preview && self.report.is_brief() && !self.has_own_preview(&seen.name) {
            return Ok(());
        }
        Event::of(step, seen).map_or(Ok(()), |event| self.report.emit(&event))
    }

    /// Returns `true` if a tool writes the previews of its calls.
    fn has_own_preview(&self, name: &str) -> bool {
        let tools = self.session.tools();
        tools.iter().any(|tool| tool.name == name && matches!(&tool.body, Body::Rich(rich) if rich.exports.preview))
    }

    /// Returns `true` if an interruption stopped a call of a kept run before it began: it is made when the run goes on.
    fn waits(&self, id: &str, result: &ToolResult) -> bool {
        result.receipt.outcome == Outcome::Cancelled
            && interrupt::is_requested()
            && self.conversation.keeper().is_some_and(|keeper| keeper.waits(id))
    }

    /// Keeps the result of a call in this step, once. A call that waits has none.
    fn note(&mut self, id: &str, result: &ToolResult) -> anyhow::Result<()> {
        if self.waits(id, result) {
            return Ok(());
        }
        let Some(batch) = &mut self.batch else { return Ok(()) };
        let tool = self.session.tools().into_iter().find(|tool| tool.name == result.receipt.tool);
        let change = change_of(tool, result);
        match (batch.note(id, result, change.clone(), &mut self.repeats), self.conversation.keeper()) {
            (Some(message), Some(keeper)) => {
                result.media.iter().for_each(|media| keeper.shown(id, &Part::Media(media.clone())));
                result.shown.iter().for_each(|part| keeper.shown(id, part));
                keeper.label(&self.session.label())?;
                keeper.message(&message, change)
            }
            _ => Ok(()),
        }
    }
}
