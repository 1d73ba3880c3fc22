//! Running a call: its turn in its step, its slot among all calls, the sandbox, and the mapping of what was written.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::SemaphorePermit;

use crate::error::{Error, Outcome, ToolError};
use crate::observe::What;
use crate::sandbox::{self, Finished, Invocation, Program, Sandbox};
use crate::schema::Checked;
use crate::tool::{Body, Limits, Tool};

use super::ready::Ready;
use super::ticket::Ticket;
use super::{Context, Pipeline, answer, contract, unless_cancelled};

/// What is to be run.
pub(super) struct Work<'p> {
    pub(super) tool: &'p Tool,
    pub(super) ready: &'p Ready,
    pub(super) program: Option<&'p Program>,
}

impl Work<'_> {
    /// The digest of the program; empty where the host does the work.
    pub(super) fn digest(&self) -> &str {
        self.program.map_or("", |program| &program.digest)
    }
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
        arguments: &str,
        ticket: &mut Ticket<'_>,
    ) -> Result<(), ToolError> {
        let Some(program) = work.program.filter(|program| program.checks()) else { return Ok(()) };
        let since = Instant::now();
        let limits = ticket.left_of(&work.ready.limits)?;
        let slots = self.slots(work.ready, &limits).await?;
        let judged = self.sandbox.check(program, arguments, &limits, &ticket.meter).await;
        drop(slots);
        // The check and the run share one deadline.
        ticket.spend(since.elapsed());
        judged
    }

    /// Runs the tool when its turn has come.
    pub(super) async fn execute(
        &self,
        work: &Work<'_>,
        checked: &Checked,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<String, ToolError> {
        let ready = work.ready;
        ticket.program(work.digest(), checked.text.len());
        ticket.tell(What::Queued);
        let since = Instant::now();
        let left = ticket.left_of(&ready.limits)?;
        let waited = async {
            if let Some(turn) = context.turn {
                turn.come().await?;
            }
            let since = Instant::now();
            let slots = unless_cancelled(context.turn, self.slots(ready, &left)).await??;
            // Waiting for a slot counts, waiting for one's turn does not.
            let limits = Limits { deadline: left.deadline.saturating_sub(since.elapsed()), ..left };
            Ok::<_, ToolError>((context.turn.map_or(Ok(limits), |turn| turn.share(&limits))?, slots))
        };
        let waited = waited.await;
        ticket.waited(since);
        let (limits, slots) = waited?;
        ticket.tell(What::Started(&checked.value));
        let (Some(program), Body::Command { argv, .. }) = (work.program, &work.tool.body) else {
            let Body::Builtin(builtin) = work.tool.body else {
                return Err(ToolError::new(Outcome::BadComponent, "the tool has no program"));
            };
            return self.perform(builtin, &checked.value, context.memory).await;
        };
        let stdin = Bytes::from(checked.text.clone());
        let invocation = Invocation { argv, stdin, grant: &ready.grant, limits: &limits };
        let run = self.sandbox.run(program, invocation, &ticket.meter);
        let Finished { exit, stdout, stderr } = unless_cancelled(context.turn, run).await?;
        drop(slots);
        ticket.log(&stderr);
        // What fails right after a request failed, fails for that reason.
        let exit = exit.map_err(|error| ticket.meter.ledger.blame(error))?;
        ticket.exited(exit);
        ticket.tell(What::Progress { bytes: stdout.len() as u64 });
        if let Some(turn) = context.turn {
            turn.spend(stdout.len())?;
        }
        let line = contract::answer(exit, stdout, stderr);
        let line = line.map_err(|error| ticket.meter.ledger.blame(error));
        let line = line.map_err(|error| answer::framed_error(error, &ready.masks, self.most_inline(work.tool)))?;
        let (line, written) = answer::map(work.tool, ready, line).await?;
        ticket.written(written);
        Ok(line)
    }

    /// A slot of the tool's own and one of all: calls of a tool that hangs leave slots to the others.
    async fn slots<'a>(
        &'a self,
        ready: &'a Ready,
        limits: &Limits,
    ) -> Result<[Option<SemaphorePermit<'a>>; 2], ToolError> {
        if let (Ok(own), Ok(one)) = (ready.slots.try_acquire(), self.slots.try_acquire()) {
            return Ok([Some(own), Some(one)]);
        }
        let most = self.scheduler.queue;
        let _place = Waiting::among(&self.waiting, most)
            .ok_or_else(|| ToolError::new(Outcome::Busy, format!("{most} calls wait already; call again later")))?;
        // Neither semaphore is ever closed, which is all that can fail here.
        let slots = async { [ready.slots.acquire().await.ok(), self.slots.acquire().await.ok()] };
        let slots = tokio::time::timeout(limits.deadline, slots).await;
        slots.map_err(|_| ToolError::new(Outcome::Deadline, "tool timed out waiting for its turn"))
    }

    /// The compiled program of a tool, made at most once.
    ///
    /// # Errors
    ///
    /// [`Error::Component`] where the program cannot be run.
    pub(crate) async fn program(&self, index: usize) -> Result<Arc<Program>, Error> {
        let ready = &self.ready[index];
        let path = self.registry.tools()[index].body.program().unwrap_or(Path::new(""));
        let made = ready.program.get_or_try_init(|| async {
            let (sandbox, path) = (self.sandbox.clone(), path.to_path_buf());
            let counts_fuel = ready.limits.fuel.is_some();
            let made = tokio::task::spawn_blocking(move || prepare(&sandbox, &path, counts_fuel)).await;
            made.unwrap_or_else(|_| Ok(Err("the program could not be compiled".to_owned())))
        });
        let bad = |reason: String| Error::Component { path: path.to_path_buf(), reason };
        // A file that cannot be read now may be read later; what is wrong with its bytes stays wrong.
        made.await.map_err(bad)?.clone().map_err(bad)
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

/// Reads and compiles a program. The outer error is the system's, the inner one the program's own.
fn prepare(sandbox: &Sandbox, path: &Path, counts_fuel: bool) -> Result<Result<Arc<Program>, String>, String> {
    let unreadable = |error: std::io::Error| format!("the program cannot be read: {}", error.kind());
    let mut bytes = Vec::new();
    let most = sandbox::MOST_PROGRAM_BYTES as u64 + 1;
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(unreadable)?;
    Ok(sandbox.prepare(&bytes, counts_fuel).map(Arc::new))
}
