//! Runs a program that calls tools. The program has no grant: each of its calls passes the whole pipeline, as a call of its caller
//! does, with this call as its parent. Neither the program nor its interpreter is trusted.

mod answer;
mod names;
mod result_keys;
mod session;
mod shown;

use std::future::pending;
use std::mem::take;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::{FutureExt, StreamExt, stream};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::call::{Flag, ToolCall, ToolResult};
use crate::delegate::MAX_DEPTH;
use crate::error::{Outcome, ToolError};
use crate::pipeline::prepared::PreparedTool;
use crate::pipeline::prepared::compute::{MAX_SIDE_TIME, aside, at_once};
use crate::pipeline::recorder::{CallRecorder, ToolOutput};
use crate::pipeline::state::{CallScope, OpenSession, Parent, Pipeline, Turn, unless_cancelled};
use crate::sandbox::{
    CodeCall, CodeCallResult, CodeEnd, CodeLimits, CodeProgram, CodeTool, FailedCall, FailedCallReason, Usage,
};
use crate::schema;
use crate::tool::{Interrupt, Limits};

use answer::Summary;
use names::CallableTools;
use shown::ShownParts;

/// Maximum number of calls of one program.
const MAX_CALLS: u32 = 1000;
/// Maximum number of calls of one program that run at the same time.
const MAX_CONCURRENT: usize = 16;
/// Maximum bytes of the text that a program prints.
const MAX_PRINTED: u32 = 16 << 10;
/// Maximum depth of the function calls of a program.
const MAX_RECURSION: u32 = 1000;
/// Part of the memory of an instance that the values of a program may take: a list doubles before it is counted.
const VALUES_PART: usize = 4;
/// Part of the memory of an instance that the results of calls that are made together may take.
const RESULTS_PART: usize = 8;

/// Arguments of `run_code`.
#[derive(Deserialize)]
struct Arguments {
    code: String,
    language: Option<String>,
    session: Option<String>,
}

/// A program, and the session in which it runs.
struct Program<'a> {
    language: &'a str,
    code: &'a str,
    session: Option<OpenSession<'a>>,
}

/// Runs a program.
pub(super) async fn run(
    pipeline: &Arc<Pipeline>,
    prepared: &PreparedTool,
    arguments: &Value,
    limits: Limits,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    let bad = |error: serde_json::Error| ToolError::new(Outcome::BadArguments, error.to_string());
    let Arguments { code, language, session } = Arguments::deserialize(arguments).map_err(bad)?;
    if scope.depth + 1 > MAX_DEPTH {
        let message = format!("calls are already nested {MAX_DEPTH} deep, the maximum");
        return Err(ToolError::new(Outcome::Denied, message));
    }
    let language = language.as_deref().unwrap_or(pipeline.code.default_language());
    let calls = ProgramCalls {
        pipeline,
        scope,
        call: recorder.call().clone(),
        invocation: recorder.invocation().to_owned(),
        usage: recorder.usage.clone(),
        tools: CallableTools::new(pipeline, scope),
        made: AtomicU32::new(0),
        summary: Mutex::default(),
        left: AtomicUsize::new(0),
        shown: Mutex::default(),
    };
    let running = async {
        let session = match &session {
            None => None,
            Some(name) => {
                let session = session::open(scope, name, limits.deadline).await?;
                // Later programs see its variables, and this one sees those of earlier ones.
                recorder.usage.flow.join_shared();
                recorder.usage.flow.leave();
                Some(session)
            }
        };
        calls.run(prepared, Program { language, code: &code, session }, limits).await
    };
    // The calls of a program take none of its own time, but that of its step.
    let left = scope.turn.and_then(Turn::left);
    let late = || ToolError::new(Outcome::Deadline, "the time of the step ended before the program did");
    let running = async {
        match left {
            Some(left) => tokio::time::timeout(left, running).await.unwrap_or_else(|_| Err(late())),
            None => running.await,
        }
    };
    let ended = unless_cancelled(scope.turn, pin!(running)).await.flatten();
    recorder.budget.set_end(Instant::now() + prepared.limits.deadline);
    let (shown, dropped) = calls.shown().take();
    recorder.set_output(ToolOutput { shown, ..ToolOutput::default() });
    if dropped > 0 {
        recorder.warn(format!("{dropped} parts that the calls of the program showed are left out: there are too many"));
    }
    // Whatever stopped it: another run makes its calls again.
    let answer = ended.map_err(|error| answer::stopped(error, calls.take_summary(), session.as_deref()))?;
    recorder.flag(Flag::in_json(&answer));
    if let Some(turn) = scope.turn {
        turn.spend(answer.len())?;
    }
    Ok(answer)
}

/// The calls of one program.
struct ProgramCalls<'a> {
    pipeline: &'a Arc<Pipeline>,
    scope: &'a CallScope<'a>,
    /// Call of the program.
    call: Arc<ToolCall>,
    invocation: String,
    usage: Arc<Usage>,
    tools: CallableTools<'a>,
    made: AtomicU32,
    /// Calls that have ended; `None` unless the program runs.
    summary: Mutex<Option<Summary>>,
    /// Bytes that are left for the results of the calls that are made together.
    left: AtomicUsize,
    /// Parts that the calls showed.
    shown: Mutex<ShownParts>,
}

impl ProgramCalls<'_> {
    /// Checks a program and runs it to its end.
    async fn run(&self, prepared: &PreparedTool, program: Program<'_>, limits: Limits) -> Result<String, ToolError> {
        let Program { language, code, session: kept } = program;
        if let Some(kept) = &kept {
            session::check_language(kept, language)?;
        }
        let interpreters = &self.pipeline.code;
        let (interpreter, _permit) =
            interpreters.interpreter(language, prepared, self.scope.memory, &limits, self.scope.depth).await?;
        let mentioned = self.tools.mentioned(code);
        let tools: Vec<_> = mentioned.iter().map(CodeTool::from).collect();
        let program = || CodeProgram { name: "program", source: code, tools: &tools };
        let digest = interpreter.digest().to_owned();
        let mut session = self.pipeline.sandbox.start_code(interpreter, limits, &self.usage).await?;
        if let Some(kept) = &kept {
            session::restore(kept, &digest, &mut session).await?;
        }
        let problems = session.check(program()).await?;
        if !problems.is_empty() {
            return Err(answer::refused(&problems));
        }
        let code_limits = CodeLimits {
            memory: Some((limits.memory / VALUES_PART) as u64),
            recursion: MAX_RECURSION,
            printed: MAX_PRINTED,
            value: u32::try_from(limits.stdout).unwrap_or(u32::MAX),
            calls: MAX_CALLS,
        };
        *self.summary() = Some(Summary::default());
        let make = |calls| self.make_all(calls, limits.memory).boxed();
        let end = session.run(program(), code_limits, &make).await?;
        let mut summary = self.take_summary().unwrap_or_default();
        if let Some(kept) = kept {
            summary.session = Some(session::save(kept, (language, &digest), &mut session, &end).await);
        }
        match end {
            CodeEnd::Finished(completion) => answer::completed(completion, &summary, limits.stdout),
            CodeEnd::Failed(failure) => Err(answer::failed(&failure, &summary)),
        }
    }

    /// Makes calls of a program.
    ///
    /// # Errors
    ///
    /// There are none, or too many; [`Outcome::Cancelled`] if the step was interrupted.
    async fn make_all(&self, calls: Vec<CodeCall>, memory: usize) -> Result<Vec<CodeCallResult>, ToolError> {
        let made = self.made.fetch_add(u32::try_from(calls.len()).unwrap_or(u32::MAX), Relaxed);
        if calls.is_empty() || made as usize + calls.len() > MAX_CALLS as usize {
            let message = format!("the interpreter paused without a call, or made more than {MAX_CALLS}");
            return Err(ToolError::new(Outcome::BadComponent, message));
        }
        self.left.store(memory / RESULTS_PART, Relaxed);
        self.perform(made, calls).await.into_iter().collect()
    }

    /// Makes calls: at the same time if the facts of all tools allow it, else one after another. If the step is interrupted
    /// meanwhile, the calls that run end, and the others are [`Outcome::Cancelled`].
    async fn perform(&self, first: u32, calls: Vec<CodeCall>) -> Vec<Result<CodeCallResult, ToolError>> {
        let is_safe = |call: &CodeCall| {
            let tool = self.tools.find(&call.tool);
            tool.is_some_and(|(_, tool)| tool.interface.safety.is_concurrency_safe.value)
        };
        // Another tool than the named one may answer a call where tools claim calls.
        let is_safe = !self.pipeline.has_claimants() && calls.iter().all(is_safe);
        let calls = calls.into_iter().zip(first + 1..).map(|(call, number)| self.make(call, number));
        stream::iter(calls).buffered(if is_safe { MAX_CONCURRENT } else { 1 }).collect().await
    }

    /// Makes one call through all stages of the pipeline.
    ///
    /// # Errors
    ///
    /// [`Outcome::Cancelled`] if the step was interrupted before the call was authorized, or ended if an interruption stops it.
    async fn make(&self, CodeCall { id, tool, arguments }: CodeCall, number: u32) -> Result<CodeCallResult, ToolError> {
        let interrupted = || {
            let message = format!("interrupted after {} calls of the program", number - 1);
            Err(ToolError::new(Outcome::Cancelled, message))
        };
        if self.scope.turn.is_some_and(Turn::is_interrupted) {
            return interrupted();
        }
        let known = self.tools.find(&tool);
        let stops =
            known.is_some_and(|(_, tool)| tool.interface.execution.interrupt_behavior.value == Interrupt::Cancel);
        let name = known.map_or(tool, |(name, _)| name.to_owned());
        let call = ToolCall {
            context: self.call.context.clone(),
            caller: self.call.caller.clone(),
            trace: self.call.trace,
            ..ToolCall::new(format!("{}/{number}", self.call.id), name, arguments)
        };
        self.usage.whole().calls.fetch_add(1, Relaxed);
        // Each call has counters of its own for the calls that its tool makes.
        let tree = Arc::default();
        let parent = Parent { invocation: &self.invocation, grant: None, usage: &self.usage, tree: &tree };
        let (sender, authorized) = oneshot::channel();
        let sender = Mutex::new(Some(sender));
        let scope = CallScope {
            depth: self.scope.depth + 1,
            parent: Some(parent),
            authorized: Some(&sender),
            turn_above: self.scope.turn.or(self.scope.turn_above),
            ..CallScope::alone(self.scope.memory)
        };
        let name = call.name.clone();
        let mut result = tokio::select! {
            biased;
            result = self.pipeline.call(call, scope) => result,
            () = self.interrupted(authorized, stops) => {
                self.count(&name, Outcome::Cancelled);
                return interrupted();
            }
        };
        self.count(&result.name, result.receipt.outcome);
        if let (Ok(line), Some(summary)) = (&result.outcome, &mut *self.summary()) {
            summary.keys.add(&result.name, line);
        }
        self.shown().add(&result.name, take(&mut result.media), take(&mut result.shown));
        Ok(CodeCallResult { id, outcome: self.answer(result).await })
    }

    /// Counts a call that has ended.
    fn count(&self, tool: &str, outcome: Outcome) {
        if let Some(summary) = &mut *self.summary() {
            summary.add(tool, outcome);
        }
    }

    /// Takes the calls of a program that runs.
    fn take_summary(&self) -> Option<Summary> {
        let mut summary = self.summary().take()?;
        self.shown().add_to(&mut summary.shown);
        Some(summary)
    }

    fn shown(&self) -> MutexGuard<'_, ShownParts> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn summary(&self) -> MutexGuard<'_, Option<Summary>> {
        self.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the step is interrupted; for ever if a call is authorized first, unless an interruption stops its tool.
    async fn interrupted(&self, authorized: oneshot::Receiver<()>, stops: bool) {
        let Some(turn) = self.scope.turn else { return pending().await };
        tokio::select! {
            biased;
            Ok(()) = authorized, if !stops => pending().await,
            () = turn.interrupted() => {}
        }
    }

    /// Returns the answer of a call for its program, if it is strict JSON and there is room for it. Nothing else of the result
    /// is kept.
    async fn answer(&self, result: ToolResult) -> Result<String, FailedCall> {
        let failed = |message: &str| Err(FailedCall { reason: FailedCallReason::Failed, message: message.to_owned() });
        let line = match result.outcome {
            Ok(line) => line,
            Err(error) => {
                let reason = match error.outcome {
                    Outcome::Denied => FailedCallReason::Refused,
                    Outcome::Deadline => FailedCallReason::Timeout,
                    Outcome::BadArguments => FailedCallReason::Invalid,
                    _ => FailedCallReason::Failed,
                };
                return Err(FailedCall { reason, message: error.message });
            }
        };
        let fits = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(line.len())).is_ok();
        if !fits {
            return failed(
                "the results of the calls that were made together are too long for the program, more than an eighth of \
                 `limits.max_memory`: make fewer calls at a time",
            );
        }
        let is_strict = |line: &str| schema::parse(line).is_ok();
        let checked = match at_once(line.len(), || is_strict(&line)) {
            Some(is_strict) => Some((is_strict, line)),
            None => {
                let check = move || (is_strict(&line), line);
                aside(Instant::now() + MAX_SIDE_TIME, check).await
            }
        };
        match checked {
            Some((true, line)) => Ok(line),
            _ => failed("the result of the tool is no strict JSON, such as an object with a key twice"),
        }
    }
}
