//! Calls that wait for an answer from another terminal: `pending.json`, which the server and `toolcrib approvals` share. An
//! answer covers one repetition of the same call by the same client. Only the command line answers; a tool reaches neither
//! the file nor the command line, and an identifier alone allows nothing.
//!
//! Every change is made under the lock of the file and replaces it whole, so that several servers can share it and each
//! answer is used once. A process that is killed leaves the file as it was before or after the change. A used answer is
//! removed before the call runs: if the process is killed in between, the person is asked again. A process that waits holds
//! a lock, so that its calls end with it.

mod approver;
mod call;
mod waiter;
mod waiting;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use jiff::Timestamp;
use toolcrib::policy::{Approval, ApprovalAnswer, Approvals};
use toolcrib::{ListFile, SharedEntries};
use toolcrib_base::render::{Advice, excerpt, one_line, shortened};
use toolcrib_base::short_id;

use call::PendingAnswer;

pub use approver::{PendingApprover, WaitingCallback, is_denial, pending_refusal};
pub use call::{PendingCall, key};
pub use waiting::{Waiting, WaitingApprover, announce};

/// Maximum number of calls in the file. A new call replaces the oldest one without an answer; calls with an answer stay until
/// the answer is used or expires.
const MAX_PENDING: usize = 256;
/// Maximum number of calls of one owner that wait for an answer, so that nobody displaces the calls of all others.
const MAX_PER_OWNER: usize = 32;
/// Maximum size of the file in bytes: more than [`MAX_PENDING`] calls of the maximum length.
const MAX_BYTES: u64 = 96 << 20;
/// Maximum bytes in the calls that servers share.
const MAX_SHARED_BYTES: usize = 12 << 20;
/// Maximum bytes in the calls of one owner among them.
const MAX_SHARED_OWNER_BYTES: usize = 1 << 20;
const LIST_HINT: &str = "`toolcrib approvals pending` lists the calls that wait";

/// File of the calls that wait for an answer. It may be missing, and is then empty.
#[derive(Debug, Clone)]
pub struct PendingCalls(ListFile<PendingCall>);

/// Outcome of a request for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PendingOutcome {
    /// The answer of the person, and this use was the only one.
    Answer(ApprovalAnswer),
    /// The call waits for an answer.
    Waiting {
        /// Identifier that the person types.
        id: String,
    },
}

impl PendingOutcome {
    /// Returns the answer, if there is one.
    fn answer(self) -> Option<ApprovalAnswer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::Waiting { .. } => None,
        }
    }
}

impl PendingCalls {
    /// Uses the calls in a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(ListFile::new(path, "pending", MAX_BYTES))
    }

    /// Uses the calls in a store that several servers share.
    pub fn shared(entries: Arc<dyn SharedEntries>) -> Self {
        Self(ListFile::shared(entries, "pending", 16 << 20))
    }

    /// Returns `true` for calls in a store that several servers share.
    pub fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    /// Path, or a name for messages if servers share the calls.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Uses the answer to a call, or stores the call until a person answers. The same call of the same client keeps its
    /// identifier while it waits.
    ///
    /// # Errors
    ///
    /// The file cannot be read, locked or written, or it is full of calls with unused answers.
    fn record(&self, mut call: PendingCall) -> anyhow::Result<PendingOutcome> {
        self.change(|calls| {
            if let Some(known) = self.known(calls, &call) {
                return Ok(known);
            }
            make_room(calls, &call.owner)?;
            if self.is_shared() {
                make_shared_room(calls, &call);
            }
            while calls.iter().any(|one| one.id == call.id) {
                call.id = short_id::random()?;
            }
            let id = call.id.clone();
            calls.push(call.clone());
            Ok(PendingOutcome::Waiting { id })
        })
    }

    /// Returns `true` if a call that waits has an answer, without a change of the file; `None` if it is no longer there.
    ///
    /// # Errors
    ///
    /// The file cannot be read or parsed.
    fn is_answered(&self, key: &str) -> anyhow::Result<Option<bool>> {
        let (calls, now) = (self.read()?, Timestamp::now());
        let call = calls.iter().find(|call| call.key == key && !call.is_expired(now));
        Ok(call.map(|call| call.answer.is_some()))
    }

    /// Uses the answer to a call; `None` if it has none. A call that no longer waits is also `forgotten`.
    ///
    /// # Errors
    ///
    /// The file cannot be read, locked or written.
    fn take(&self, call: &PendingCall, forgotten: bool) -> anyhow::Result<Option<ApprovalAnswer>> {
        self.change(|calls| {
            let known = self.known(calls, call);
            if forgotten {
                calls.retain(|one| one.key != call.key);
            }
            Ok(known.and_then(PendingOutcome::answer))
        })
    }

    /// Lets a call for which no process waits any more wait to be repeated.
    ///
    /// # Errors
    ///
    /// The file cannot be read, locked or written.
    fn release(&self, key: &str) -> anyhow::Result<()> {
        self.change(|calls| {
            calls.iter_mut().filter(|call| call.key == key).for_each(PendingCall::release);
            Ok(())
        })
    }

    /// Lists the calls that wait or have an unused answer, oldest first.
    ///
    /// # Errors
    ///
    /// The file cannot be read or parsed, or can be written by other users.
    pub fn list(&self) -> anyhow::Result<Vec<PendingCall>> {
        let (mut calls, now) = (self.read()?, Timestamp::now());
        calls.retain(|call| !call.is_expired(now) && !self.is_gone(call));
        Ok(calls)
    }

    /// Returns the call with an identifier as a person typed it.
    ///
    /// # Errors
    ///
    /// As for [`PendingCalls::list`], and if the identifier is unknown or expired.
    pub fn find(&self, typed: &str) -> anyhow::Result<PendingCall> {
        let mut calls = self.read()?;
        let at = self.place(&calls, typed, Timestamp::now())?;
        Ok(calls.swap_remove(at))
    }

    /// Answers a call and returns it. An allowed call that was not repeated yet can still be denied.
    ///
    /// # Errors
    ///
    /// As for [`PendingCalls::find`], and if the call has an answer already or the file cannot be written.
    pub(crate) fn answer(&self, typed: &str, allowed: bool) -> anyhow::Result<PendingCall> {
        self.answer_with(typed, allowed, |_| Ok((None, false)))
    }

    /// Denies a call as `PendingCalls::answer` does, with a reason that the model gets on one line. An empty one is none.
    ///
    /// # Errors
    ///
    /// As for `PendingCalls::answer`.
    pub fn deny(&self, typed: &str, reason: &str) -> anyhow::Result<PendingCall> {
        let reason = shortened(&one_line(reason), ApprovalAnswer::MAX_REASON_LEN).into_owned();
        self.answer_with(typed, false, |_| Ok((Some(reason.clone()).filter(|reason| !reason.is_empty()), false)))
    }

    /// Allows a call and further ones in its scope, in the session that waits for this answer.
    ///
    /// # Errors
    ///
    /// As for `PendingCalls::answer`, and if no process waits, or if each such call requires its own approval.
    pub fn allow_session(&self, typed: &str) -> anyhow::Result<PendingCall> {
        self.answer_with(typed, true, |call| match (&call.approval, call.until) {
            (None, _) => Err(no_scope(call, "for the session").into()),
            (_, None) => Err(no_session(call).into()),
            _ => Ok((None, true)),
        })
    }

    /// Stores an answer, with the reason and the reach that a function chooses.
    fn answer_with(
        &self,
        typed: &str,
        allowed: bool,
        choose: impl Fn(&PendingCall) -> anyhow::Result<(Option<String>, bool)>,
    ) -> anyhow::Result<PendingCall> {
        self.change(|calls| {
            let time = Timestamp::now();
            let at = self.place(calls, typed, time)?;
            let call = &mut calls[at];
            if let Some(earlier) = call.answer.as_ref().filter(|earlier| allowed || !earlier.allowed) {
                return Err(answered(call, earlier));
            }
            let (reason, session) = choose(call)?;
            call.answer = Some(PendingAnswer { allowed, time, reason, session });
            Ok(call.clone())
        })
    }

    /// Allows a call. With a file of `permanent` approvals, also stores one of such calls, which is returned.
    ///
    /// # Errors
    ///
    /// As for `PendingCalls::answer`, and if each such call requires its own approval, or the permanent one cannot be stored.
    pub fn allow(&self, typed: &str, permanent: Option<&Approvals>) -> anyhow::Result<(PendingCall, Option<Approval>)> {
        let permanent = match permanent {
            Some(approvals) => {
                let call = self.find(typed)?;
                Some((approvals, call.approval.clone().ok_or_else(|| no_scope(&call, "permanently"))?))
            }
            None => None,
        };
        let call = self.answer(typed, true)?;
        let Some((approvals, approval)) = permanent else { return Ok((call, None)) };
        let client = approval.owner.as_ref().map(|_| call.client.as_str());
        approvals
            .add_for(&approval, client)
            .context("the call is allowed once, and no permanent approval was stored")?;
        Ok((call, Some(approval)))
    }

    /// Returns `true` if the process that waited for an answer has ended. Servers do not know that about one another.
    fn is_gone(&self, call: &PendingCall) -> bool {
        !self.is_shared() && call.run.as_deref().is_some_and(|run| waiter::is_gone(self.path(), run))
    }

    /// Returns the outcome of a call that waits or has an answer, which is used; `None` for a new call. Forgets calls
    /// that have expired, and calls of processes that have ended.
    fn known(&self, calls: &mut Vec<PendingCall>, call: &PendingCall) -> Option<PendingOutcome> {
        // Under the lock: an answer that another process gave while this one waited is not in the future.
        let now = Timestamp::now();
        calls.retain(|one| {
            let is_gone = one.run != call.run && self.is_gone(one);
            one.run.iter().filter(|_| is_gone).for_each(|run| waiter::remove(self.path(), run));
            !is_gone && !one.is_expired(now)
        });
        let at = calls.iter().position(|one| one.key == call.key)?;
        let known = &mut calls[at];
        if let Some(answer) = known.answer.take() {
            calls.remove(at);
            return Some(PendingOutcome::Answer(used(answer)));
        }
        if call.until > known.until {
            // An earlier call was refused; a process waits for this one.
            (known.run, known.until, known.asked) = (call.run.clone(), call.until, now);
        }
        Some(PendingOutcome::Waiting { id: known.id.clone() })
    }

    /// Returns the place of the call with an identifier as a person typed it.
    fn place(&self, calls: &[PendingCall], typed: &str, now: Timestamp) -> anyhow::Result<usize> {
        let at = place(calls, typed, now)?;
        if self.is_gone(&calls[at]) {
            let (id, tool) = (&calls[at].id, one_line(&calls[at].tool));
            let message = format!("no call waits under `{id}` (`{tool}`) any more: its run or server has ended");
            return Err(Advice::new(message, LIST_HINT).into());
        }
        Ok(at)
    }

    fn read(&self) -> anyhow::Result<Vec<PendingCall>> {
        self.0.read().with_context(|| self.unusable())
    }

    fn change<T>(&self, change: impl FnMut(&mut Vec<PendingCall>) -> anyhow::Result<T>) -> anyhow::Result<T> {
        self.0.update(change).with_context(|| self.unusable())?
    }

    fn unusable(&self) -> String {
        format!("cannot use the pending calls in `{}`", self.path().display())
    }
}

/// Answer of a removed call.
fn used(answer: PendingAnswer) -> ApprovalAnswer {
    match answer {
        PendingAnswer { allowed: true, session: true, .. } => ApprovalAnswer::Session,
        PendingAnswer { allowed: true, .. } => ApprovalAnswer::Once,
        PendingAnswer { reason: Some(reason), .. } => ApprovalAnswer::NoBecause(reason),
        PendingAnswer { .. } => ApprovalAnswer::No,
    }
}

/// Removes the oldest calls without an answer until one more call of an owner has room.
fn make_room(calls: &mut Vec<PendingCall>, owner: &str) -> anyhow::Result<()> {
    let is_waiting = |one: &PendingCall| one.answer.is_none();
    let is_of_owner = |one: &PendingCall| is_waiting(one) && one.owner == owner;
    while calls.iter().filter(|one| is_of_owner(one)).count() >= MAX_PER_OWNER {
        calls.remove(calls.iter().position(is_of_owner).unwrap_or_default());
    }
    while calls.len() >= MAX_PENDING {
        let Some(oldest) = calls.iter().position(is_waiting) else {
            let message = format!("{MAX_PENDING} calls have an answer that was not used");
            return Err(Advice::new(message, "an answer expires if the call is not repeated").into());
        };
        calls.remove(oldest);
    }
    Ok(())
}

/// Removes the oldest calls without an answer until the texts of one more call have room among the calls that servers share.
fn make_shared_room(calls: &mut Vec<PendingCall>, new: &PendingCall) {
    let size = |call: &PendingCall| serde_json::to_vec_pretty(call).map_or(0, |text| text.len());
    for (max, is_counted) in [
        (MAX_SHARED_OWNER_BYTES, (|one, new| one.owner == new.owner) as fn(&PendingCall, &PendingCall) -> bool),
        (MAX_SHARED_BYTES, |_, _| true),
    ] {
        let mut bytes = size(new) + calls.iter().filter(|one| is_counted(one, new)).map(size).sum::<usize>();
        while bytes > max {
            let oldest = calls.iter().position(|one| one.answer.is_none() && is_counted(one, new));
            let Some(oldest) = oldest else { break };
            bytes -= size(&calls.remove(oldest));
        }
    }
}

/// Returns the place of the call with an identifier as a person typed it.
fn place(calls: &[PendingCall], typed: &str, now: Timestamp) -> anyhow::Result<usize> {
    let Some(id) = short_id::parse(typed) else {
        let message = format!("`{}` is not the identifier of a call, which is like `7k3md-x0q9a`", excerpt(typed));
        return Err(Advice::new(message, LIST_HINT).into());
    };
    let Some(at) = calls.iter().position(|call| call.id == id) else {
        let message = format!("no call waits under `{id}`: it is unknown, its answer was used, or it has expired");
        return Err(Advice::new(message, LIST_HINT).into());
    };
    let call = &calls[at];
    if call.is_expired(now) {
        let what = if call.answer.is_some() { "answer to" } else { "request for" };
        let message = format!("the {what} `{id}` (`{}`) has expired", one_line(&call.tool));
        return Err(Advice::new(message, "if the call is repeated, it waits under a new identifier").into());
    }
    Ok(at)
}

/// Error of an approval of further calls for a call without a scope.
fn no_scope(call: &PendingCall, reach: &str) -> Advice {
    let message = format!("`{}` cannot be allowed {reach}: `{}` asks each time", call.id, one_line(&call.rests_on));
    Advice::new(message, once(call))
}

/// Error of an approval for the session of a call for which no process waits.
fn no_session(call: &PendingCall) -> Advice {
    let message = format!("`{}` cannot be allowed for the session: no process waits for this answer", call.id);
    Advice::new(message, once(call))
}

fn once(call: &PendingCall) -> String {
    format!("`toolcrib approvals allow {}` allows it once", call.id)
}

/// Error of a second answer.
fn answered(call: &PendingCall, earlier: &PendingAnswer) -> anyhow::Error {
    let message = format!("`{}` (`{}`) was {} at {:.0}", call.id, one_line(&call.tool), call.state(), earlier.time);
    let hint = match earlier.allowed {
        true if call.until.is_some() => "the call continues with that answer".to_owned(),
        true => format!("the call passes once if it is repeated; `toolcrib approvals deny {}` denies it", call.id),
        false => "the call is denied once if it is repeated; after that it waits under a new identifier".to_owned(),
    };
    Advice::new(message, hint).into()
}

#[cfg(test)]
mod tests;
