//! Session of programs: starts a program, runs it up to the next calls of tools, and continues it with their results. The
//! variables of a program stay for the next one. Knows no bindings: its types are those of the interpreter.

use std::collections::{HashMap, HashSet};

use monty::{
    Dump, MontyRepl, ReplFunctionCall, ReplProgress, ReplResolveFutures, ReplStartError, Session as State, SessionRef,
    dump,
};
use monty_types::{
    CompileOptions, DictPairs, ExcType, ExtFunctionResult, MontyClassInstance, MontyClassType, MontyException,
    MontyObject, MontyUuid, PrintWriter, ResourceLimits, ResourceTracker,
};
use ruff_python_parser::parse_module;
use ruff_source_file::LineIndex;

use crate::answer::{self, Outcome};
use crate::arguments;
use crate::awaited::{self, AWAITED, PLAIN};
use crate::failure::{Failure, Frame};
use crate::json::{self, Writer};
use crate::nesting;
use crate::output::Output;
use crate::system;
use code_guest::tools::Tools;

/// Identity of the object `tools`.
const PLAIN_ID: MontyUuid = MontyUuid::from_u128(1);
/// Identity of the object whose calls are awaited.
const AWAITED_ID: MontyUuid = MontyUuid::from_u128(2);
/// Identity of the class of both.
const CLASS_ID: MontyUuid = MontyUuid::from_u128(3);
/// Start of the names of functions that stand for tools.
const PREFIX: &str = "tools.";
/// Deepest recursion that the stack of the guest holds.
const MAX_RECURSION: usize = 1_000;

/// Limits of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of the values; none for no limit.
    pub(crate) memory: Option<usize>,
    /// Depth of function calls.
    pub(crate) recursion: usize,
    /// Bytes of printed text.
    pub(crate) printed: usize,
    /// Bytes of a result or of arguments as JSON.
    pub(crate) value: usize,
    /// Calls of tools.
    pub(crate) calls: usize,
}

/// Call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    /// Identifier.
    pub(crate) id: u32,
    /// Name of the tool.
    pub(crate) tool: String,
    /// Text of a JSON object.
    pub(crate) arguments: String,
}

/// End of one run of the interpreter: of the program, or at its calls.
#[derive(Debug)]
pub(crate) enum Step {
    /// JSON text of the value, and whether it is only shown.
    Finished(String, bool),
    /// Calls of tools.
    Calls(Vec<Call>),
    /// Failure.
    Failed(Failure),
}

/// Paused program.
enum Paused {
    /// At one plain call.
    Call(ReplFunctionCall),
    /// At awaited calls.
    Futures(ReplResolveFutures),
}

/// Session.
pub(crate) struct Session {
    /// Interpreter between two programs. None while a program is paused, and after a limit was reached.
    idle: Option<MontyRepl>,
    paused: Option<Paused>,
    tools: Tools,
    limits: Limits,
    /// Printed text of the current program.
    pub(crate) output: Output,
    /// Awaited calls that the host does not have yet.
    held: Vec<Call>,
    /// Calls that the host has and did not answer.
    waiting: HashSet<u32>,
    /// Calls of the current program so far.
    made: usize,
    /// Places of awaited tools that the current program calls at one place only.
    places: HashMap<String, Frame>,
    /// `true` if the current program was stopped because it made too many calls.
    stopped: bool,
    /// `true` if a program ran before the next one.
    used: bool,
}

impl Session {
    /// Creates a session without variables.
    pub(crate) fn new() -> Self {
        let limits = Limits { memory: None, recursion: MAX_RECURSION, printed: 0, value: 0, calls: 0 };
        let mut repl = MontyRepl::new("main.py", tracker(&limits), CompileOptions::default());
        // The interpreter has no classes that inherit, and no value that stands for an exception type in `except`.
        let defined = repl.feed_run(awaited::PRELUDE, Vec::new(), PrintWriter::Disabled);
        debug_assert!(defined.is_ok(), "the prelude runs: {defined:?}");
        Self {
            idle: Some(repl),
            paused: None,
            tools: Tools::default(),
            limits,
            output: Output::default(),
            held: Vec::new(),
            waiting: HashSet::new(),
            made: 0,
            places: HashMap::new(),
            stopped: false,
            used: false,
        }
    }

    /// Functions that earlier programs defined; none if there were no programs.
    pub(crate) fn functions(&self) -> Option<Vec<&str>> {
        self.used.then(|| self.idle.as_ref().map_or_else(Vec::new, MontyRepl::function_names))
    }

    /// Starts a program.
    pub(crate) fn run(&mut self, source: &str, tools: Tools, limits: Limits) -> Step {
        if let Some(message) = nesting::problem(source) {
            return Step::Failed(Failure::invalid(message));
        }
        let Some(mut repl) = self.idle.take() else {
            return Step::Failed(Failure::misuse(
                "a program is paused, or reached a limit: the session cannot run another",
            ));
        };
        *repl.tracker_mut() = tracker(&limits);
        self.output = Output(code_guest::output::Output::new(limits.printed));
        self.tools = tools;
        self.limits = limits;
        self.made = 0;
        self.stopped = false;
        self.used = true;
        let inputs = vec![(PLAIN.to_owned(), object(PLAIN_ID)), (AWAITED.to_owned(), object(AWAITED_ID))];
        // A program that does not parse is given to the interpreter unchanged, for its message.
        let parsed = parse_module(source);
        let renamed = parsed.as_ref().map(|parsed| awaited::rename(source, parsed.suite()));
        self.places.clear();
        if let Ok((_, names)) = &renamed
            && !names.is_empty()
        {
            let index = LineIndex::from_source_text(source);
            self.places = names
                .iter()
                .filter_map(|(name, starts)| match starts[..] {
                    [start] => Some(((*name).to_owned(), Frame::at(&index, source, start))),
                    _ => None,
                })
                .collect();
            let functions: String = names.keys().map(|name| awaited::function(name)).collect();
            let defined = repl.feed_run(&functions, Vec::new(), PrintWriter::Disabled);
            debug_assert!(defined.is_ok(), "the functions are defined: {defined:?}");
        }
        let source = renamed.as_ref().map_or(source, |(source, _)| source);
        let progress = repl.feed_start(source, inputs, PrintWriter::Callback(&mut self.output));
        self.drive(progress)
    }

    /// Continues the paused program.
    pub(crate) fn resume(&mut self, results: Vec<(u32, Outcome)>) -> Step {
        let pending = matches!(self.paused, Some(Paused::Futures(_)));
        let mut answers = Vec::with_capacity(results.len());
        for (id, outcome) in results {
            if !self.waiting.contains(&id) || answers.iter().any(|(other, _)| *other == id) {
                return Step::Failed(Failure::misuse(format!("no call with the id {id} waits for a result")));
            }
            let answer = match answer::new(outcome, pending) {
                Ok(answer) => answer,
                Err(problem) => return Step::Failed(Failure::misuse(format!("the result of the call {id} {problem}"))),
            };
            answers.push((id, answer));
        }
        if answers.is_empty() {
            return Step::Failed(Failure::misuse("no result was given"));
        }
        for (id, _) in &answers {
            self.waiting.remove(id);
        }
        let print = PrintWriter::Callback(&mut self.output);
        let progress = match self.paused.take() {
            Some(Paused::Call(call)) => match answers.pop() {
                Some((_, answer)) => call.resume(answer, print),
                None => return Step::Failed(Failure::misuse("no result was given")),
            },
            Some(Paused::Futures(futures)) => futures.resume(answers, print),
            None => return Step::Failed(Failure::misuse("no program is paused")),
        };
        self.drive(progress)
    }

    /// Bytes of the session.
    ///
    /// # Errors
    /// The reason why there are none.
    pub(crate) fn save(&self) -> Result<Vec<u8>, String> {
        let repl = self.idle.as_ref().ok_or("a program is paused, or reached a limit")?;
        dump("main.py", None, SessionRef::Idle(repl)).map_err(|error| error.to_string())
    }

    /// Session of bytes.
    ///
    /// # Errors
    /// The reason why they cannot be read.
    pub(crate) fn restore(bytes: &[u8]) -> Result<Self, String> {
        match Dump::load(bytes).map_err(|error| error.to_string())?.state {
            State::Idle(repl) => Ok(Self { idle: Some(*repl), used: true, ..Self::new() }),
            _ => Err("the bytes hold a paused program".to_owned()),
        }
    }

    /// Runs until the program ends, fails or waits for the host.
    fn drive(&mut self, mut progress: Result<ReplProgress, Box<ReplStartError>>) -> Step {
        loop {
            progress = match progress {
                Err(error) => return self.failed(*error),
                Ok(ReplProgress::Complete { repl, value }) => {
                    self.end(repl);
                    return self.finished(&value);
                }
                Ok(ReplProgress::FunctionCall(call)) => match self.call(call) {
                    Ok(next) => next,
                    Err(step) => return step,
                },
                Ok(ReplProgress::OsCall(call)) => {
                    call.resume_with(PrintWriter::Callback(&mut self.output), |call| system::answer(&call))
                }
                Ok(ReplProgress::NameLookup(lookup)) => {
                    // `f = tools.fs_read`: its calls are plain. Its name tells it from a name that is not defined.
                    let known = lookup.object_id().is_some() && self.tools.get(&lookup.name).is_some();
                    let function =
                        || MontyObject::Function { name: format!("{PREFIX}{}", lookup.name), docstring: None };
                    let result = known.then(function).into();
                    lookup.resume(result, PrintWriter::Callback(&mut self.output))
                }
                Ok(ReplProgress::ResolveFutures(futures)) => {
                    let calls = std::mem::take(&mut self.held);
                    self.waiting.extend(calls.iter().map(|call| call.id));
                    self.paused = Some(Paused::Futures(futures));
                    return Step::Calls(calls);
                }
            };
        }
    }

    /// One call of a tool: the next progress if the host is not needed now, or the step that asks the host.
    fn call(&mut self, call: ReplFunctionCall) -> Result<Result<ReplProgress, Box<ReplStartError>>, Step> {
        let print = PrintWriter::Callback(&mut self.output);
        let raise = |kind, message| ExtFunctionResult::Error(MontyException::new(kind, Some(message)));
        let name = match call.object_id {
            Some(_) => call.function_name.as_str(),
            None => match call.function_name.strip_prefix(PREFIX) {
                Some(name) => name,
                // A call of a name that is not defined comes here too.
                None => {
                    let message = undefined(&call.function_name, &self.tools);
                    return Ok(call.resume(raise(ExcType::NameError, message), print));
                }
            },
        };
        let Some(tool) = self.tools.get(name) else {
            let message = self.tools.unknown(name);
            return Ok(call.resume(raise(ExcType::AttributeError, message), print));
        };
        let arguments = match arguments::join(tool, &call.args, &call.kwargs, self.limits.value) {
            Ok(arguments) => arguments,
            Err(message) => return Ok(call.resume(raise(ExcType::TypeError, message), print)),
        };
        if self.made >= self.limits.calls {
            self.stopped = true;
            let message = format!("the program made more than {} tool calls", self.limits.calls);
            return Ok(call.abort(MontyException::new(ExcType::RuntimeError, Some(message)), print));
        }
        self.made += 1;
        let asked = Call { id: call.call_id, tool: tool.name.clone(), arguments };
        if call.object_id == Some(AWAITED_ID) {
            self.held.push(asked);
            return Ok(call.resume_pending(print));
        }
        self.waiting.insert(asked.id);
        self.paused = Some(Paused::Call(call));
        Err(Step::Calls(vec![asked]))
    }

    fn finished(&self, value: &MontyObject) -> Step {
        match Writer::new(self.limits.value).write(value) {
            Ok(text) => Step::Finished(text, false),
            Err(_) => {
                let mut shown = match value {
                    MontyObject::Repr(text) => text.clone(),
                    other => other.py_repr(),
                };
                shown.truncate(shown.floor_char_boundary(self.limits.value));
                let mut text = String::new();
                json::quote(&mut text, &shown);
                Step::Finished(text, true)
            }
        }
    }

    fn failed(&mut self, error: ReplStartError) -> Step {
        let mut failure = Failure::new(&error.error, self.stopped);
        if failure.traceback.is_empty() {
            // The interpreter does not say where a gathered coroutine was awaited.
            let tool = error.error.traceback().iter().find_map(|frame| awaited::tool_of(frame.frame_name.as_deref()?));
            failure.traceback.extend(tool.and_then(|tool| self.places.get(tool).cloned()));
        }
        self.end(error.repl);
        if failure.kind == crate::failure::Kind::Limit {
            // The interpreter promises nothing about its values after a limit.
            self.idle = None;
        }
        Step::Failed(failure)
    }

    fn end(&mut self, repl: MontyRepl) {
        self.idle = Some(repl);
        self.held.clear();
        self.waiting.clear();
    }
}

fn tracker(limits: &Limits) -> ResourceTracker {
    ResourceTracker::new(ResourceLimits {
        max_memory: limits.memory,
        max_recursion_depth: limits.recursion.min(MAX_RECURSION),
        max_suspensions: usize::MAX,
        ..ResourceLimits::default()
    })
}

/// Object whose methods are the tools.
fn object(instance_id: MontyUuid) -> MontyObject {
    let attrs = || DictPairs::from(Vec::new());
    let class_type = MontyClassType {
        name: PLAIN.to_owned(),
        id: CLASS_ID,
        host_defined: true,
        is_dataclass: false,
        attrs: attrs(),
    };
    MontyObject::ClassInstance(Box::new(MontyClassInstance { class_type, instance_id, attrs: attrs() }))
}

fn undefined(name: &str, tools: &Tools) -> String {
    match tools.get(name) {
        Some(_) => format!("name '{name}' is not defined: the tool is `{PREFIX}{name}`"),
        None => format!("name '{name}' is not defined"),
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
