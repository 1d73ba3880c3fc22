//! Runs a program that calls tools. The program has no grant: each of its calls passes the whole pipeline, as a call of its caller
//! does, with this call as its parent.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use futures::{StreamExt, stream};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::call::{ToolCall, ToolResult, TraceContext};
use crate::delegate::MAX_DEPTH;
use crate::error::{Outcome, ToolError};
use crate::pipeline::prepared::PreparedTool;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Parent, Pipeline, unless_cancelled};
use crate::sandbox::{
    CodeCall, CodeCallResult, CodeCompletion, CodeFailure, CodeFailureKind, CodeForm, CodeLimits, CodeOutput,
    CodeProgram, CodeSession, CodeStep, CodeTool, FailedCall, FailedCallReason, Usage,
};
use crate::tool::{Body, Limits, Tool, Visibility};

/// Maximum number of calls of one program.
const MAX_CALLS: u32 = 1000;
/// Maximum number of calls of one program that run at the same time.
const MAX_CONCURRENT: usize = 16;
/// Maximum bytes of the text that a program prints.
const MAX_PRINTED: u32 = 16 << 10;
/// Maximum depth of the function calls of a program.
const MAX_RECURSION: u32 = 1000;
/// Maximum number of tools whose names an interpreter gets although its program does not mention them, to suggest one.
const MAX_NAMED: usize = 200;
/// Maximum number of problems of a program in a message.
const MAX_PROBLEMS: usize = 10;
/// Maximum number of calls in the summary of a program.
const MAX_SUMMARIZED: usize = 20;

/// Arguments of `run_code`.
#[derive(Deserialize)]
struct Arguments {
    code: String,
}

/// Runs a program.
pub(super) async fn run(
    pipeline: &Arc<Pipeline>,
    prepared: &PreparedTool,
    arguments: &Value,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<String, ToolError> {
    let bad = |error: serde_json::Error| ToolError::new(Outcome::BadArguments, error.to_string());
    let Arguments { code } = Arguments::deserialize(arguments).map_err(bad)?;
    let calls = ProgramCalls {
        pipeline,
        scope,
        call_id: recorder.call_id().to_owned(),
        invocation: recorder.invocation().to_owned(),
        trace: recorder.trace(),
        usage: recorder.usage.clone(),
        tools: callable(pipeline, scope),
        made: AtomicU32::new(0),
    };
    let limits = recorder.remaining(&prepared.limits)?;
    let since = Instant::now();
    let ended = unless_cancelled(scope.turn, pin!(calls.run(prepared, &code, limits))).await;
    // Only the time of the interpreter counts, and it has ended.
    recorder.budget.add_wait(since);
    recorder.budget.set_end(Instant::now() + prepared.limits.deadline);
    ended?
}

/// A tool with its name in programs.
struct CallableTool<'p> {
    name: String,
    tool: &'p Tool,
}

impl CallableTool<'_> {
    /// Returns the schema of the tool as text; of a tool without one, any object.
    fn schema(&self) -> String {
        self.tool.model_input_schema().map_or("{}".to_owned(), |schema| schema.to_string())
    }
}

/// Returns the tools that a caller can name, by their names in programs, which are identifiers. A call of a tool that is denied
/// is refused and recorded, as a direct call is.
fn callable<'p>(pipeline: &'p Pipeline, scope: &'p CallScope<'_>) -> Vec<CallableTool<'p>> {
    let known = pipeline.registry.tools().iter();
    let added = scope.memory.tools.iter().map(|added| &added.tool);
    let is_called = |tool: &&Tool| {
        !matches!(tool.body, Body::Builtin(_))
            && tool.interface.discovery.schema_visibility.value != Visibility::Internal
    };
    let mut names = HashSet::new();
    let identifier = |tool: &Tool| tool.name.replace(|c: char| !c.is_alphanumeric() && c != '_', "_");
    known
        .chain(added)
        .filter(is_called)
        .map(|tool| CallableTool { name: identifier(tool), tool })
        .filter(|tool| names.insert(tool.name.clone()))
        .collect()
}

/// The calls of one program.
struct ProgramCalls<'a> {
    pipeline: &'a Arc<Pipeline>,
    scope: &'a CallScope<'a>,
    call_id: String,
    invocation: String,
    trace: Option<TraceContext>,
    usage: Arc<Usage>,
    tools: Vec<CallableTool<'a>>,
    made: AtomicU32,
}

/// A call of a program and its result.
struct Performed {
    id: u32,
    result: ToolResult,
}

impl ProgramCalls<'_> {
    /// Checks a program and runs it to its end.
    async fn run(&self, prepared: &PreparedTool, code: &str, limits: Limits) -> Result<String, ToolError> {
        let (interpreter, _permit) = self.pipeline.code.interpreter(prepared).await?;
        // The names of all tools are known to the program, and the schemas of those that it can mention.
        let mentioned = self.tools.iter().map(|tool| code.contains(&tool.name).then(|| tool.schema()));
        let schemas: Vec<String> = mentioned.map(Option::unwrap_or_default).collect();
        let mut unmentioned = 0;
        let tools = self.tools.iter().zip(&schemas).filter(|(_, schema)| {
            unmentioned += usize::from(schema.is_empty());
            !schema.is_empty() || unmentioned <= MAX_NAMED
        });
        let tools: Vec<CodeTool<'_>> = tools
            .map(|(tool, schema)| CodeTool { name: &tool.name, schema: if schema.is_empty() { "{}" } else { schema } })
            .collect();
        let program = || CodeProgram { name: "program", source: code, tools: &tools };
        let mut session = self.pipeline.sandbox.start_code(interpreter, limits, &self.usage).await?;
        let problems = session.check(program()).await?;
        if !problems.is_empty() {
            let lines = problems.iter().take(MAX_PROBLEMS);
            let lines: Vec<_> =
                lines.map(|at| format!("line {}, column {}: {}", at.line, at.column, at.message)).collect();
            let more = problems.len().saturating_sub(MAX_PROBLEMS);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let message = format!("the program was not run: {}{more}", lines.join("; "));
            return Err(ToolError::new(Outcome::BadArguments, message));
        }
        let code_limits = CodeLimits {
            memory: Some(limits.memory as u64 / 4),
            recursion: MAX_RECURSION,
            printed: MAX_PRINTED,
            value: u32::try_from(limits.stdout).unwrap_or(u32::MAX),
            calls: MAX_CALLS,
        };
        let step = session.run(program(), code_limits).await?;
        self.finish(session, step).await
    }

    /// Makes the calls of a program until it ends.
    async fn finish(&self, mut session: CodeSession<'_>, mut step: CodeStep) -> Result<String, ToolError> {
        let mut summary = Vec::new();
        loop {
            let calls = match step {
                CodeStep::Finished(completion) => return completed(completion, &summary),
                CodeStep::Failed(failure) => return Err(failed(&failure, &summary)),
                CodeStep::Calls(calls) => calls,
            };
            let made = self.made.fetch_add(u32::try_from(calls.len()).unwrap_or(u32::MAX), Relaxed);
            if calls.is_empty() || made as usize + calls.len() > MAX_CALLS as usize {
                let message = format!("the interpreter paused without a call, or made more than {MAX_CALLS}");
                return Err(ToolError::new(Outcome::BadComponent, message));
            }
            let performed = self.perform(made, calls).await;
            summary.extend(performed.iter().map(|call| (call.result.name.clone(), call.result.receipt.outcome)));
            let lines: Vec<_> = performed.iter().map(|call| call.result.line()).collect();
            let results: Vec<_> = performed.iter().zip(&lines).map(|(call, line)| result_of(call, line)).collect();
            step = session.resume(&results).await?;
        }
    }

    /// Makes calls: at the same time if the facts of all tools allow it, else one after another.
    async fn perform(&self, first: u32, calls: Vec<CodeCall>) -> Vec<Performed> {
        let is_safe = |call: &CodeCall| {
            let tool = self.tools.iter().find(|tool| tool.name == call.tool);
            tool.is_none_or(|tool| tool.tool.interface.safety.is_concurrency_safe.value)
        };
        let at_once = if calls.iter().all(is_safe) { MAX_CONCURRENT } else { 1 };
        let calls = calls.into_iter().zip(first + 1..).map(|(call, number)| self.call(call, number));
        stream::iter(calls).buffered(at_once).collect().await
    }

    /// Makes one call through all stages of the pipeline.
    async fn call(&self, CodeCall { id, tool, arguments }: CodeCall, number: u32) -> Performed {
        let name = self.tools.iter().find(|known| known.name == tool).map_or(tool, |known| known.tool.name.clone());
        let mut call = ToolCall::new(format!("{}/{number}", self.call_id), name, arguments);
        call.trace = self.trace;
        let depth = self.scope.depth + 1;
        let memory = self.scope.memory;
        if depth > MAX_DEPTH {
            let message = format!("calls are already nested {MAX_DEPTH} deep, the maximum");
            let result = self.pipeline.refuse(call, memory, ToolError::new(Outcome::Denied, message));
            return Performed { id, result };
        }
        self.usage.whole().calls.fetch_add(1, Relaxed);
        // Each call has counters of its own for the calls that its tool makes.
        let tree = Arc::default();
        let parent = Parent { invocation: &self.invocation, grant: None, usage: &self.usage, tree: &tree };
        let scope = CallScope { depth, parent: Some(parent), ..CallScope::alone(memory) };
        Performed { id, result: self.pipeline.call(call, scope).await }
    }
}

/// Returns the result of a call for the interpreter. The line is the answer as JSON.
fn result_of<'a>(call: &'a Performed, line: &'a str) -> CodeCallResult<'a> {
    let outcome = match &call.result.outcome {
        Ok(_) => Ok(line),
        Err(error) => {
            let reason = match error.outcome {
                Outcome::Denied => FailedCallReason::Refused,
                Outcome::Deadline => FailedCallReason::Timeout,
                Outcome::BadArguments => FailedCallReason::Invalid,
                _ => FailedCallReason::Failed,
            };
            Err(FailedCall { reason, message: &error.message })
        }
    };
    CodeCallResult { id: call.id, outcome }
}

/// Names and outcomes of the calls of a program, in the order in which they were made.
type Summary = [(String, Outcome)];

/// Returns the answer of a program that ran to its end.
fn completed(completion: CodeCompletion, summary: &Summary) -> Result<String, ToolError> {
    let CodeCompletion { value, form, output } = completion;
    let broken = |_| ToolError::new(Outcome::BadComponent, "the interpreter returned a value that is not JSON");
    let value: Box<RawValue> = RawValue::from_string(value).map_err(broken)?;
    let mut answer = json!({ "value": value });
    if form == CodeForm::Shown {
        answer["note"] = json!("the value has no JSON form; it is shown as the language shows it");
    }
    add_output(&mut answer, output, summary);
    Ok(answer.to_string())
}

/// Returns the error of a program that failed.
fn failed(failure: &CodeFailure, summary: &Summary) -> ToolError {
    let at = failure.traceback.last().map(|frame| format!(" (line {})", frame.line)).unwrap_or_default();
    let message = format!("{}: {}{at}", failure.exception, failure.message);
    let outcome = match failure.kind {
        CodeFailureKind::Invalid => Outcome::BadArguments,
        CodeFailureKind::Uncaught | CodeFailureKind::Limit => Outcome::Failed,
        CodeFailureKind::Misuse => Outcome::BadComponent,
    };
    let mut error = json!({ "error": message });
    let traceback = failure.traceback.iter().map(|frame| {
        let function = frame.function.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
        let source = frame.source.as_deref().map(|line| format!(": {line}")).unwrap_or_default();
        format!("line {}{function}{source}", frame.line)
    });
    let traceback: Vec<_> = traceback.collect();
    if !traceback.is_empty() {
        error["traceback"] = json!(traceback);
    }
    add_output(&mut error, failure.output.clone(), summary);
    ToolError { outcome, message, json: Some(error.to_string()) }
}

/// Adds the printed text of a program, and the number of its calls by tool and outcome.
fn add_output(answer: &mut Value, output: CodeOutput, summary: &Summary) {
    if !output.text.is_empty() {
        answer["printed"] = json!(output.text);
    }
    if output.dropped > 0 {
        answer["dropped_bytes"] = json!(output.dropped);
    }
    let mut counted: Vec<(&(String, Outcome), usize)> = Vec::new();
    for call in summary {
        match counted.iter_mut().find(|(known, _)| *known == call) {
            Some((_, count)) => *count += 1,
            None => counted.push((call, 1)),
        }
    }
    if !counted.is_empty() {
        let shown = counted.iter().take(MAX_SUMMARIZED);
        let calls =
            shown.map(|((tool, outcome), count)| json!({"tool": tool, "outcome": outcome.as_str(), "count": count}));
        answer["calls"] = json!(calls.collect::<Vec<_>>());
    }
}
