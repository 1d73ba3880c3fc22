//! Running a call: its turn in its step, its slot among all calls, the sandbox, and the mapping of what was written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::call::Flag;
use crate::error::{Outcome, ToolError};
use crate::observe::EventKind;
use crate::policy::Credentials;
use crate::sandbox::{Finished, Interpreter, Invocation, Program, Usage};
use crate::schema::Checked;
use crate::tool::typed::Typed;
use crate::tool::{Body, Builtin, Limits, Script, Tool};

use super::answer::Mapped;
use super::ready::Ready;
use super::rich::{Asking, Asks, carried};
use super::ticket::Ticket;
use super::{Context, Pipeline, answer, contract, secret, unless_cancelled};

/// EventKind is to be run.
pub(super) struct Work<'p> {
    pub(super) tool: &'p Tool,
    pub(super) ready: &'p Ready,
    pub(super) code: Code<'p>,
}

/// EventKind does the work.
pub(super) enum Code<'p> {
    Command(Arc<Program>),
    Rich(Arc<Program>, Box<Asking>),
    Typed(Arc<Program>, &'p Typed),
    Script(Arc<Interpreter>, &'p Script),
    Host(Builtin),
}

impl Work<'_> {
    /// The digest of the program or script; empty where the host does the work.
    pub(super) fn digest(&self) -> &str {
        match &self.code {
            Code::Command(program) | Code::Rich(program, _) | Code::Typed(program, _) => &program.digest,
            Code::Script(_, script) => &script.digest,
            Code::Host(_) => "",
        }
    }
}

/// EventKind it is run with.
pub(super) struct Given<'a> {
    pub(super) checked: &'a Checked,
    pub(super) credentials: Option<&'a Arc<Credentials>>,
    pub(super) limits: &'a Limits,
}

impl Pipeline {
    /// Lets a tool that exports a check of its own judge the arguments, without any grant.
    ///
    /// # Errors
    ///
    /// [`Outcome::BadArguments`] with the tool's words, or how its check ended.
    pub(super) async fn check_by_tool(
        &self,
        work: &Work<'_>,
        checked: &Checked,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<(), ToolError> {
        let (Code::Command(program) | Code::Rich(program, _) | Code::Typed(program, _)) = &work.code else {
            return Ok(());
        };
        if !program.checks() || work.asks().is_some_and(|asks| !asks.rich.says.validate) {
            return Ok(());
        }
        let since = Instant::now();
        let limits = ticket.left_of(&work.ready.limits)?;
        let slots = self.slots(work.ready, &limits, context.depth).await?;
        let judged = match work.asks() {
            None => self.sandbox.check(program, &checked.text, &limits, &ticket.usage).await,
            Some(Asks { program, rich, asking }) => {
                let prepared = context.memory.prepared(&self.prepared_key(work.tool, rich, program));
                let asked = asking.asked(rich, carried(work.tool, checked), prepared.as_deref());
                self.sandbox.check_rich(program, asked, &limits, &ticket.usage).await
            }
        };
        let judged = judged.and_then(|judged| judged.map_err(contract::invalid));
        drop(slots);
        // The check and the run share one deadline.
        ticket.spend(since.elapsed());
        judged
    }

    /// Runs the tool when its turn has come.
    pub(super) async fn execute(
        self: &Arc<Self>,
        work: &Work<'_>,
        checked: &Checked,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<String, ToolError> {
        let ready = work.ready;
        let credentials = self.credentials(ready, context, ticket).await?;
        ticket.program(work.digest(), checked.text.len());
        ticket.tell(EventKind::Queued);
        let since = Instant::now();
        let left = ticket.left_of(&ready.limits)?;
        let waited = async {
            if let Some(turn) = context.turn {
                turn.come().await?;
            }
            let since = Instant::now();
            let slots = unless_cancelled(context.turn, self.slots(ready, &left, context.depth)).await??;
            // Waiting for a slot counts, waiting for one's turn does not.
            let limits = Limits { deadline: left.deadline.saturating_sub(since.elapsed()), ..left };
            Ok::<_, ToolError>((context.turn.map_or(Ok(limits), |turn| turn.share(&limits))?, slots))
        };
        let waited = waited.await;
        ticket.waited(since);
        let (limits, slots) = waited?;
        let until = Instant::now() + limits.deadline;
        ticket.ends(until);
        ticket.tell(EventKind::Started(&checked.value));
        // Hooks may have sent requests.
        ticket.usage.ledger().begin_anew();
        let line = match &work.code {
            Code::Host(builtin) => {
                // It may wait for long, and needs no sandbox.
                drop(slots);
                let performed = self.perform(*builtin, &checked.value, context).await;
                ticket.ends(Instant::now() + ready.limits.deadline);
                return performed;
            }
            Code::Command(program) => {
                let given = Given { checked, credentials, limits: &limits };
                self.command(work, program, given, context, ticket).await?
            }
            Code::Rich(..) => {
                let given = Given { checked, credentials, limits: &limits };
                let asks = work.asks().ok_or_else(|| ToolError::new(Outcome::BadComponent, "no rich tool"))?;
                self.rich(work, asks, given, context, ticket).await?
            }
            Code::Typed(program, typed) => {
                let given = Given { checked, credentials, limits: &limits };
                self.typed(work, (program, typed), given, context, ticket).await?
            }
            Code::Script(interpreter, script) => {
                let given = Given { checked, credentials, limits: &limits };
                self.script(work, (interpreter, script), given, context, ticket).await?
            }
        };
        drop(slots);
        let line = line.map_err(|error| ticket.usage.ledger().blame(error));
        if let Err(error) = &line {
            ticket.flag(Flag::in_json(&error.content()));
        }
        let line = match line {
            Ok(line) => line,
            Err(error) => return Err(ready.framed(error, self.max_inline(work.tool, &ready.limits), until).await),
        };
        let Mapped { line, written, flags } = answer::map(work.tool, ready, line, until).await?;
        ticket.flag(flags);
        ticket.written(written);
        Ok(line)
    }

    /// Runs a command. The inner result is the command's own.
    async fn command(
        &self,
        work: &Work<'_>,
        program: &Program,
        given: Given<'_>,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<Result<Option<String>, ToolError>, ToolError> {
        let Given { checked, credentials, limits } = given;
        let argv = match &work.tool.body {
            Body::Command { argv, .. } => argv.as_slice(),
            _ => &[],
        };
        let stdin = Bytes::from(checked.text.clone());
        let grant = &work.ready.grant;
        let provided = self.provided(work, program, context);
        let before = ticket.usage.refusals().len();
        let invocation = Invocation { argv, stdin, grant, credentials, limits, provided };
        let run = self.sandbox.run(program, invocation, &ticket.usage);
        let Finished { exit, stdout, stderr } = unless_cancelled(context.turn, run).await?;
        let stderr = ticket.text(stderr);
        ticket.log(stderr.clone());
        secret::refuse_leak(ticket)?;
        // EventKind fails right after a request failed, fails for that reason.
        let exit = exit.map_err(|error| ticket.usage.ledger().blame(error))?;
        ticket.exited(exit);
        ticket.tell(EventKind::Progress { bytes: stdout.len() as u64 });
        if let Some(turn) = context.turn {
            turn.spend(stdout.len())?;
        }
        let answer = contract::answer(exit, ticket.text(stdout), &stderr);
        Ok(answer.map_err(|error| after_refusal(error, &ticket.usage, before)))
    }

    /// A slot of the tool's own and one of all: calls of a tool that hangs leave slots to the others. Calls of an agent to
    /// which a task was handed take none that whoever waits for it may hold.
    pub(super) async fn slots<'a>(
        &'a self,
        ready: &'a Ready,
        limits: &Limits,
        depth: u32,
    ) -> Result<[Option<SemaphorePermit<'a>>; 2], ToolError> {
        let all = &self.slots[(depth as usize).min(self.slots.len() - 1)];
        let own = (depth == 0).then_some(&*ready.slots);
        let free = || {
            let own = own.map(Semaphore::try_acquire).transpose().ok()?;
            Some([own, Some(all.try_acquire().ok()?)])
        };
        if let Some(slots) = free() {
            return Ok(slots);
        }
        let most = self.scheduler.queue;
        let _place = Waiting::among(&self.waiting, most).ok_or_else(|| {
            ToolError::new(Outcome::Busy, format!("{most} calls are already queued; try again later"))
        })?;
        // Neither semaphore is ever closed, which is all that can fail here.
        let slots = async {
            let own = match own {
                Some(own) => own.acquire().await.ok(),
                None => None,
            };
            [own, all.acquire().await.ok()]
        };
        let slots = tokio::time::timeout(limits.deadline, slots).await;
        slots.map_err(|_| ToolError::new(Outcome::Deadline, "tool timed out waiting for its turn"))
    }
}

/// EventKind fails after a refusal without an error of its own, fails for that reason; `before` is how many there were when it
/// began.
pub(super) fn after_refusal(error: ToolError, usage: &Usage, before: usize) -> ToolError {
    let says_nothing = matches!(error.outcome, Outcome::Failed | Outcome::Trap) && error.json.is_none();
    match says_nothing && usage.refusals().len() > before {
        true => ToolError { outcome: Outcome::Denied, ..error },
        false => error,
    }
}

/// A place among the calls that wait for a slot.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn among(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        let place = waiting.fetch_update(Relaxed, Relaxed, |count| (count < most).then_some(count + 1));
        place.is_ok().then(|| Self(waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
