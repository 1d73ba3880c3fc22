//! Session of programs: starts a program, runs it up to the next calls of tools, and continues it with their results. The
//! variables of a program stay for the next one. Knows no bindings: its types are those of this crate.

use std::path::Path;

use boa_engine::builtins::promise::PromiseState;
use boa_engine::object::builtins::JsPromise;
use boa_engine::{Context, JsError, JsNativeError, JsValue, Script, Source};

use crate::calls::{self, Call, Outcome};
use crate::failure::{Failure, Kind};
use crate::inspect::Inspector;
use crate::json::{self, Refusal, Writer};
use crate::memory;
use crate::program::{Invalid, Program};
use crate::realm::{self, Shared, World};
use code_guest::output::Output;
use code_guest::tools::Tools;

/// Deepest recursion that the stack of the guest holds.
const MAX_RECURSION: usize = 400;
/// Values on the stack of the engine, which is no part of the guest's.
const MAX_STACK: usize = 1 << 20;

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

/// End of one run of the interpreter: of the program, or at its calls.
#[derive(Debug)]
pub(crate) enum Step {
    /// JSON text of the value, and `true` if it is only shown.
    Finished(String, bool),
    /// Calls of tools.
    Calls(Vec<Call>),
    /// Failure.
    Failed(Failure),
}

/// State of a session.
enum State {
    /// No program runs.
    Idle,
    /// A program is paused. The promise is that of its value.
    Paused(Program, JsPromise),
    /// A limit was reached.
    Over,
}

/// Reason why a program did not start.
enum Started {
    /// It does not parse.
    Invalid(JsError),
    /// It failed before it first waited.
    Failed(JsError),
}

impl From<JsError> for Started {
    fn from(error: JsError) -> Self {
        Self::Failed(error)
    }
}

/// Session.
pub(crate) struct Session {
    world: World,
    state: State,
    limits: Limits,
    /// Bytes in use without values.
    base: usize,
    /// Programs so far.
    count: u32,
}

impl Session {
    /// Creates a session without variables.
    ///
    /// # Errors
    /// An error of the engine, which no state of this crate causes.
    pub(crate) fn new() -> Result<Self, String> {
        let world = World::new().map_err(|error| error.to_string())?;
        let limits = Limits { memory: None, recursion: 0, printed: 0, value: 0, calls: 0 };
        Ok(Self { world, state: State::Idle, limits, base: memory::used(), count: 0 })
    }

    /// Takes the printed text of the current program and the number of dropped bytes.
    pub(crate) fn take_output(&self) -> (String, u64) {
        self.world.shared.output.borrow_mut().take()
    }

    /// Returns `true` if another program can run.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Starts a program.
    pub(crate) fn run(&mut self, source: &str, tools: Tools, limits: Limits) -> Step {
        if !matches!(self.state, State::Idle) {
            return Step::Failed(Failure::misuse(
                "a program is paused, or reached a limit: the session cannot run another",
            ));
        }
        self.count += 1;
        *self.world.shared.output.borrow_mut() = Output::new(limits.printed);
        let program = match Program::new(source, self.count) {
            Ok(program) => program,
            Err(Invalid { message, line, column }) => {
                return Step::Failed(Failure::invalid(&message, line, column, source));
            }
        };
        self.limits = limits;
        self.world.shared.rejected.take();
        self.world.shared.stopped.take();
        let mut engine = self.world.context.runtime_limits();
        engine.set_recursion_limit(limits.recursion.min(MAX_RECURSION));
        engine.set_stack_size_limit(MAX_STACK);
        self.world.context.set_runtime_limits(engine);
        memory::set_limit(self.base, limits.memory);
        let started = self.start(&program, tools);
        match started {
            Ok(promise) => self.drive(program, &promise),
            Err(Started::Failed(error)) => self.failed(error, &program),
            Err(Started::Invalid(error)) => {
                let message = error.as_native().map_or("invalid syntax", |error| error.message());
                self.ended(Failure::invalid(message, 0, 0, source))
            }
        }
    }

    /// Calls the function of a program: returns the promise of its value.
    fn start(&mut self, program: &Program, tools: Tools) -> Result<JsPromise, Started> {
        let declare = self.world.declare.clone();
        let shared = self.world.shared.clone();
        let start = |context: &mut Context| {
            calls::define(&tools, context)?;
            shared.calls.borrow_mut().start(tools, self.limits.value, self.limits.calls);
            let source = Source::from_bytes(&program.script).with_path(Path::new(&program.path));
            let script = Script::parse(source, None, context).map_err(Started::Invalid)?;
            let function = script.evaluate(context)?;
            let function = function.as_callable().ok_or_else(|| none("function"))?;
            let value = function.call(&JsValue::undefined(), &[declare], context)?;
            let promise = value.as_object().ok_or_else(|| none("promise"))?;
            Ok(JsPromise::from_object(promise)?)
        };
        start(&mut self.world.context)
    }

    /// Continues the paused program.
    pub(crate) fn resume(&mut self, results: Vec<(u32, Outcome)>) -> Step {
        if !matches!(self.state, State::Paused(..)) {
            return Step::Failed(Failure::misuse("no program is paused"));
        }
        if results.is_empty() {
            return Step::Failed(Failure::misuse("no result was given"));
        }
        let mut answers = Vec::with_capacity(results.len());
        for (id, outcome) in results {
            let known = self.world.shared.calls.borrow().waits_for(id);
            if !known || answers.iter().any(|(other, _)| *other == id) {
                return Step::Failed(Failure::misuse(format!("no call with the id {id} waits for a result")));
            }
            let answer = match outcome {
                Ok(text) => match json::read(&text, true, &mut self.world.context) {
                    Ok(value) => Ok(value),
                    Err(problem) => {
                        return Step::Failed(Failure::misuse(format!("the result of the call {id} {problem}")));
                    }
                },
                Err(failure) => Err(failure),
            };
            answers.push((id, answer));
        }
        let State::Paused(program, promise) = std::mem::replace(&mut self.state, State::Idle) else {
            return Step::Failed(Failure::misuse("no program is paused"));
        };
        let tool_error = self.world.tool_error.clone();
        let context = &mut self.world.context;
        let settled = answers.into_iter().try_for_each(|(id, answer)| calls::settle(id, answer, &tool_error, context));
        match settled {
            Ok(()) => self.drive(program, &promise),
            Err(error) => self.failed(error, &program),
        }
    }

    /// Runs until the program ends, fails or waits for the host.
    fn drive(&mut self, program: Program, promise: &JsPromise) -> Step {
        let (queue, shared) = (self.world.queue.clone(), self.world.shared.clone());
        let run = |context: &mut Context| {
            while !is_stopped(&shared)
                && let Some(job) = queue.next()
            {
                realm::run_job(job, context)?;
            }
            Ok(())
        };
        if let Err(error) = run(&mut self.world.context) {
            return self.failed(error, &program);
        }
        // The engine drops the error of a function that goes on after `await`.
        if is_stopped(&self.world.shared) {
            let message = self.world.shared.stopped.take().unwrap_or_else(|| self.too_much());
            return self.over(Failure::limit(message));
        }
        let state = promise.state();
        if let PromiseState::Rejected(value) = &state {
            return self.failed(JsError::from_opaque(value.clone()), &program);
        }
        let calls = self.world.shared.calls.borrow_mut().take();
        if let (PromiseState::Fulfilled(_), Some(first)) = (&state, calls.first()) {
            self.world.shared.output.borrow_mut().write(&not_awaited(&first.tool, calls.len()));
        }
        if !calls.is_empty() || self.world.shared.calls.borrow().is_waiting() {
            self.state = State::Paused(program, promise.clone());
            return Step::Calls(calls);
        }
        let rejected = self.world.shared.rejected.borrow().first().cloned();
        let rejected = rejected.and_then(|promise| match JsPromise::from_object(promise.upcast()).ok()?.state() {
            PromiseState::Rejected(value) => Some(value),
            _ => None,
        });
        match (state, rejected) {
            (PromiseState::Pending, None) => self.ended(Failure::unsettled()),
            (_, Some(value)) => self.failed(JsError::from_opaque(value), &program),
            (PromiseState::Fulfilled(value) | PromiseState::Rejected(value), None) => self.finished(&value, &program),
        }
    }

    fn finished(&mut self, value: &JsValue, program: &Program) -> Step {
        let limit = self.limits.value;
        let write = |context: &mut Context| {
            match Writer::new(limit).write(value, context) {
                Ok(text) => return Ok((text, false)),
                Err(Refusal::Thrown(error)) if error.as_engine().is_some() => return Err(error),
                Err(_) => {}
            }
            let shown = Inspector::new(limit).show(value, context);
            let shown = match shown {
                Ok((text, _)) => text,
                Err(error) if error.as_engine().is_some() => return Err(error),
                Err(_) => format!("[{}]", value.type_of()),
            };
            let mut text = String::new();
            json::quote(&mut text, &shown);
            Ok((text, true))
        };
        match write(&mut self.world.context) {
            Ok((text, shown)) => {
                self.end();
                Step::Finished(text, shown)
            }
            Err(error) => self.failed(error, program),
        }
    }

    /// Ends the program with an error of the engine, or with a value that it did not catch.
    fn failed(&mut self, error: JsError, program: &Program) -> Step {
        let stopped = self.world.shared.stopped.take();
        let stopped = if memory::exceeded() { Some(self.too_much()) } else { stopped };
        if stopped.is_some() || error.as_engine().is_some() {
            return self.over(Failure::stopped(&error, stopped, program));
        }
        let context = &mut self.world.context;
        match error.into_opaque(context).map(|value| Failure::thrown(&value, program, context)) {
            Ok(failure) => self.ended(failure),
            Err(_) => self.over(Failure::limit(self.too_much())),
        }
    }

    /// Ends the program; the session goes on.
    fn ended(&mut self, failure: Failure) -> Step {
        self.end();
        Step::Failed(failure)
    }

    /// Ends the program and the session: the engine promises nothing about its values after a limit.
    fn over(&mut self, failure: Failure) -> Step {
        debug_assert_eq!(failure.kind, Kind::Limit);
        self.end();
        self.state = State::Over;
        Step::Failed(failure)
    }

    fn end(&mut self) {
        self.state = State::Idle;
        self.world.queue.clear();
        self.world.shared.calls.borrow_mut().end();
        self.world.shared.rejected.take();
    }

    fn too_much(&self) -> String {
        format!("the program needs more than {} bytes of memory", self.limits.memory.unwrap_or_default())
    }
}

fn none(what: &str) -> JsError {
    JsNativeError::syntax().with_message(format!("the program is no {what}")).into()
}

/// Returns `true` if a limit of this crate was reached.
fn is_stopped(shared: &Shared) -> bool {
    memory::exceeded() || shared.stopped.borrow().is_some()
}

/// Note for an author: the program did not wait for the results of its last calls.
fn not_awaited(first: &str, count: usize) -> String {
    let others = match count {
        1 => String::new(),
        2 => " and of one more call".to_owned(),
        _ => format!(" and of {} more calls", count - 1),
    };
    format!(
        "note: the program did not wait for the result of `tools.{first}`{others}; to use a result, write `await`\n"
    )
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile_tests;
