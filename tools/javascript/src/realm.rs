//! World of programs: an engine whose global object has `tools`, `console` and `ToolError` besides the language, without a
//! system. Jobs of promises wait in a queue, which the session empties.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::task::{self, Poll, Waker};

use boa_engine::builtins::promise::{OperationType, Promise};
use boa_engine::context::{ContextBuilder, HostHooks};
use boa_engine::job::{GenericJob, Job, JobExecutor, PromiseJob};
use boa_engine::module::IdleModuleLoader;
use boa_engine::object::{FunctionObjectBuilder, ObjectInitializer};
use boa_engine::property::PropertyDescriptor;
use boa_engine::realm::Realm;
use boa_engine::{
    Context, JsError, JsNativeError, JsObject, JsResult, JsString, JsValue, NativeFunction, Source, js_string,
};

use crate::calls::Calls;
use crate::guards;
use crate::inspect::Inspector;
use crate::memory;
use crate::nesting;
use code_guest::output::Output;

/// State that the functions of the global object share with the session.
#[derive(Default)]
pub(crate) struct Shared {
    /// Printed text of the current program.
    pub(crate) output: RefCell<Output>,
    /// Tool calls of the current program.
    pub(crate) calls: RefCell<Calls>,
    /// Rejected promises that nothing handles.
    pub(crate) rejected: RefCell<Vec<JsObject<Promise>>>,
    /// Limit that stopped the program, other than those of the engine.
    pub(crate) stopped: RefCell<Option<String>>,
}

impl Shared {
    /// Returns the shared state of a context.
    pub(crate) fn of(context: &Context) -> Rc<Self> {
        context.get_data::<Rc<Self>>().cloned().unwrap_or_default()
    }

    /// Stops the program with an error that it cannot catch.
    pub(crate) fn stop(&self, message: String) -> JsError {
        self.stopped.borrow_mut().get_or_insert(message);
        boa_engine::error::RuntimeLimitError::Recursion.into()
    }
}

/// Jobs of promises.
#[derive(Default)]
pub(crate) struct Queue(RefCell<VecDeque<Job>>);

impl Queue {
    /// Takes the next job.
    pub(crate) fn next(&self) -> Option<Job> {
        self.0.borrow_mut().pop_front()
    }

    /// Drops all jobs.
    pub(crate) fn clear(&self) {
        self.0.take();
    }
}

impl JobExecutor for Queue {
    fn enqueue_job(self: Rc<Self>, job: Job, _: &mut Context) {
        self.0.borrow_mut().push_back(job);
    }

    fn run_jobs(self: Rc<Self>, context: &mut Context) -> JsResult<()> {
        while let Some(job) = self.next() {
            run_job(job, context)?;
        }
        Ok(())
    }
}

/// Runs one job. Programs have no timers, and no work goes on outside of the instance: jobs that wait for either are dropped.
///
/// # Errors
/// The error that the job did not catch.
pub(crate) fn run_job(job: Job, context: &mut Context) -> JsResult<()> {
    memory::relieve();
    match job {
        Job::PromiseJob(job) => PromiseJob::call(job, context).map(drop),
        Job::GenericJob(job) => GenericJob::call(job, context).map(drop),
        Job::AsyncJob(job) => {
            let context = RefCell::new(context);
            let mut running = pin!(job.call(&context));
            match running.as_mut().poll(&mut task::Context::from_waker(Waker::noop())) {
                Poll::Ready(result) => result.map(drop),
                Poll::Pending => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

struct Hooks(Rc<Shared>);

impl HostHooks for Hooks {
    fn promise_rejection_tracker(&self, promise: &JsObject<Promise>, operation: OperationType, _: &mut Context) {
        let mut rejected = self.0.rejected.borrow_mut();
        match operation {
            OperationType::Reject => rejected.push(promise.clone()),
            OperationType::Handle => rejected.retain(|other| !JsObject::equals(other, promise)),
        }
    }

    fn ensure_can_compile_strings(
        &self,
        _: Realm,
        parameters: &[JsString],
        body: &JsString,
        _: bool,
        _: &mut Context,
    ) -> JsResult<()> {
        let deep = parameters.iter().chain([body]).find_map(|part| nesting::problem(&part.to_std_string_lossy()));
        deep.map_or(Ok(()), |message| Err(JsNativeError::syntax().with_message(message).into()))
    }

    fn local_timezone_offset_seconds(&self, _: i64) -> i32 {
        0
    }

    fn max_buffer_size(&self, _: &mut Context) -> u64 {
        memory::left() as u64
    }
}

/// Engine and the objects that the session keeps before a program can change them.
pub(crate) struct World {
    /// Engine.
    pub(crate) context: Context,
    /// State that the functions share.
    pub(crate) shared: Rc<Shared>,
    /// Jobs.
    pub(crate) queue: Rc<Queue>,
    /// Class of failed calls.
    pub(crate) tool_error: JsObject,
    /// Function that makes the variables of a program global.
    pub(crate) declare: JsValue,
}

/// Class of failed calls. Its name is a property of the prototype, as with the errors of the language.
const TOOL_ERROR: &str = "(class ToolError extends Error {
    static { Object.defineProperty(this.prototype, 'name', { value: 'ToolError', writable: true, configurable: true }); }
    constructor(message, reason = 'failed') { super(message); this.reason = reason; }
})";

impl World {
    /// Creates a world.
    ///
    /// # Errors
    /// An error of the engine, which no state of this crate causes.
    pub(crate) fn new() -> JsResult<Self> {
        let shared = Rc::<Shared>::default();
        let queue = Rc::<Queue>::default();
        let mut context = ContextBuilder::new()
            .host_hooks(Rc::new(Hooks(shared.clone())))
            .job_executor(queue.clone())
            .module_loader(Rc::new(IdleModuleLoader))
            .build()?;
        context.insert_data(shared.clone());
        guards::install(&mut context)?;
        console(&mut context)?;
        let tool_error = context.eval(Source::from_bytes(TOOL_ERROR))?;
        global(&mut context, js_string!("ToolError"), tool_error.clone())?;
        let tool_error = tool_error.as_object().ok_or_else(|| JsNativeError::typ().with_message("no class"))?;
        let declare = FunctionObjectBuilder::new(context.realm(), NativeFunction::from_fn_ptr(declare)).build().into();
        Ok(Self { context, shared, queue, tool_error, declare })
    }
}

/// Defines a global variable as the language does its own: programs can replace it, and a list of all does not show it.
///
/// # Errors
/// An error of the engine: a program made the variable one that cannot be replaced.
pub(crate) fn global(context: &mut Context, name: JsString, value: impl Into<JsValue>) -> JsResult<()> {
    let property =
        PropertyDescriptor::builder().value(value.into()).writable(true).enumerable(false).configurable(true);
    context.global_object().define_property_or_throw(name, property, context).map(drop)
}

fn console(context: &mut Context) -> JsResult<()> {
    let mut console = ObjectInitializer::new(context);
    for name in ["log", "info", "warn", "error", "debug"] {
        console.function(NativeFunction::from_fn_ptr(print), JsString::from(name), 0);
    }
    let console = console.build();
    global(context, js_string!("console"), console)
}

/// Most bytes of one printed value.
const MAX_PRINTED_VALUE: usize = 64 << 10;

fn print(_: &JsValue, values: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let shared = Shared::of(context);
    memory::relieve();
    for (index, value) in values.iter().enumerate() {
        let separator = if index > 0 { " " } else { "" };
        let (text, dropped) = match value.as_string() {
            Some(text) => (text.to_std_string_lossy(), 0),
            None => Inspector::new(MAX_PRINTED_VALUE).show(value, context)?,
        };
        // The value is shown first: showing it may run a getter that prints.
        let mut output = shared.output.borrow_mut();
        output.write(separator);
        output.write(&text);
        output.drop_bytes(dropped);
    }
    shared.output.borrow_mut().write("\n");
    Ok(JsValue::undefined())
}

/// Makes variables of a program global: each argument is a list of a name and two functions that get and set the variable. The
/// next program of the session sees them, and functions of both share them.
fn declare(_: &JsValue, variables: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    for variable in variables.iter().filter_map(JsValue::as_object) {
        let name = variable.get(0, context)?.to_string(context)?;
        let property = PropertyDescriptor::builder()
            .get(variable.get(1, context)?)
            .set(variable.get(2, context)?)
            .enumerable(true)
            .configurable(true);
        // A few names, such as `undefined`, cannot be replaced: such a variable is the program's alone.
        let defined = context.global_object().define_property_or_throw(name, property, context);
        if let Err(error) = defined
            && error.as_engine().is_some()
        {
            return Err(error);
        }
    }
    Ok(JsValue::undefined())
}
