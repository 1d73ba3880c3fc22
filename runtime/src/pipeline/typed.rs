//! Functions of components on the way of a call: called by their types, and answered with what they return.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use crate::error::ToolError;
use crate::observe::EventKind;
use crate::sandbox::{GuestInput, GuestOutput, Program};
use crate::tool::typed::Typed;

use super::rich::showing;
use super::run::{Given, Work, after_refusal};
use super::ticket::Ticket;
use super::{Context, Pipeline, secret, unless_cancelled};

impl Pipeline {
    /// Calls a function. The inner result is the function's own.
    pub(super) async fn typed(
        self: &Arc<Self>,
        work: &Work<'_>,
        (program, typed): (&Program, &Typed),
        given: Given<'_>,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<Result<Option<String>, ToolError>, ToolError> {
        let Given { checked, credentials, limits } = given;
        let (attendant, mut receiver) = self.attendant(work.ready, program, context, ticket);
        let (grant, provided) = (&work.ready.grant, self.provided(work, program, context));
        let call = GuestInput { argv: &[], stdin: Bytes::new(), grant, credentials, limits, extras: provided };
        let (usage, before) = (ticket.usage.clone(), ticket.usage.refusals().len());
        let run = self.sandbox.run_typed(program, &typed.function, &checked.value, call, attendant, &usage);
        let GuestOutput { result: ended, stderr: log, .. } =
            showing(&mut receiver, ticket, unless_cancelled(context.turn, run)).await?;
        let log = ticket.text(log);
        ticket.log(log);
        secret::refuse_leak(ticket)?;
        // EventKind fails right after a request failed, fails for that reason.
        let returned = ended.map_err(|error| ticket.usage.requests().attribute(error));
        let returned = returned.map_err(|error| after_refusal(error, &ticket.usage, before))?;
        let bytes = ticket.usage.stdout.load(Relaxed);
        ticket.tell(EventKind::Progress { bytes });
        if let Some(turn) = context.turn {
            turn.spend(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        }
        Ok(returned)
    }
}
