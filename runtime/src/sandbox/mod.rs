//! The one place that names the engine. A [`Program`] is compiled once; a call gets a fresh store, with its limits and
//! its grant and nothing else, and the store is dropped with the call. The sandbox knows no dialect and no JSON.

mod bindings;
mod cache;
mod check;
pub mod compiler;
mod engine;
mod epoch;
mod errors;
mod files;
mod host;
mod imports;
mod interpreter;
mod linker;
mod network;
mod preview1;
mod requests;
mod rich;
mod services;
mod stdio;
mod tool_imports;
mod trap;
mod typed;
mod usage;
mod values;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use toolcrib_component::interfaces::{self, Link};
use toolcrib_component::{Form, preflight};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker, ResourceTable};
use wasmtime::{Store, UpdateDeadline};
use wasmtime_wasi::p2::bindings::CommandPre;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{FsPerms, WasiCtx};
use wasmtime_wasi_http::WasiHttpCtx;

use crate::error::{Error, Outcome, ToolError};
use crate::policy::{Credentials, Grant};
use crate::source;
use crate::tool::{Access, Limits};

pub(crate) use crate::source::MAX_PROGRAM_BYTES;
pub(crate) use bindings::{
    Answer, Asked, Bytes as MediaBytes, Carried, Elsewhere, Envelope, Failure, FailureKind, ModelAnswer, ModelQuestion,
    Opinion, Piece, Presentation,
};
pub(crate) use imports::{Provided, Settings};
pub(crate) use interpreter::{Act, Entry, Interpreter, Said, ScriptText, Wrong};
pub(crate) use network::{Certificates, Client, certificates};
pub(crate) use rich::Told;
pub(crate) use services::{Addition, Ended, How, Left, Services};
pub(crate) use typed::Returned;
pub(crate) use usage::Usage;

use bindings::Exports;
use cache::{Cache, Code};
use compiler::{Compiler, Failure as NotCompiled, Job};
use engine::{Room, Rooms};
use files::{Allowance, Fence, OpenFiles};
use host::Host;
use network::Gate;
use preview1::Preview1;
use requests::{Requests, Way};
use rich::Linked;
use stdio::{Capped, OverCap};
use trap::DeadlinePassed;
use usage::{MemoryBudget, Metered};

/// The most random bytes that one host call makes: they are made one by one, and no deadline looks between them.
const MAX_RANDOM: u64 = 1 << 20;

/// Engines, linkers and compiled code.
pub(crate) struct Sandbox {
    rooms: Rooms,
    cache: Option<Cache>,
    /// Who compiles elsewhere; without one it is done here.
    compiler: Option<Arc<dyn Compiler>>,
    /// What the guests of all calls hold open.
    open_files: Arc<OpenFiles>,
    client: Arc<Client>,
}

/// What a store is made with: what the guest finds inside, what it may add to its folders, and where its requests go.
struct Inside {
    wasi: WasiCtx,
    allowance: Allowance,
    way: Way,
    /// What it finds that was written for other hosts.
    provided: Provided,
    /// Where its notes go.
    notes: Option<Capped>,
    /// Who answers the questions of a script or a rich tool.
    services: Option<Arc<dyn Services>>,
}

/// A program, compiled and linked: all that a call needs but its store.
pub(crate) struct Program {
    kind: Kind,
    counts_fuel: bool,
    /// SHA-256 of the file, as `sha256:HEX`.
    pub(crate) digest: String,
    /// Whether it imports what [`Provided`] holds.
    pub(crate) asks_provided: bool,
}

/// With which contract it is called.
enum Kind {
    Command {
        pre: CommandPre<Host>,
        /// The export by which it checks arguments, where it has one.
        check: Option<ComponentExportIndex>,
    },
    /// A core module for preview 1, by its `_start`.
    Module(wasmtime::InstancePre<Host>),
    Rich(Box<Linked>),
    /// By the functions that it exports, of which each call names one.
    Plain {
        pre: InstancePre<Host>,
        /// The export by which it checks arguments, where it has one.
        check: Option<ComponentExportIndex>,
    },
}

/// What a call gives to a command.
pub(crate) struct Invocation<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) stdin: Bytes,
    pub(crate) grant: &'a Grant,
    /// The values of the grant's secrets, where it has any.
    pub(crate) credentials: Option<&'a Arc<Credentials>>,
    pub(crate) limits: &'a Limits,
    /// What it finds that was written for other hosts.
    pub(crate) provided: Provided,
}

/// What a command left.
pub(crate) struct Finished {
    /// The exit code, or why there is none.
    pub(crate) exit: Result<i32, ToolError>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Sandbox {
    /// Sets up the engine for this many calls at once.
    pub(crate) fn new(
        slots: u32,
        cache: Option<PathBuf>,
        compiler: Option<Arc<dyn Compiler>>,
        client: Client,
    ) -> Result<Self, Error> {
        Ok(Self {
            rooms: Rooms::new(slots)?,
            cache: cache.map(Cache::new),
            compiler,
            open_files: OpenFiles::of_process().clone(),
            client: Arc::new(client),
        })
    }

    /// Compiles a program, or takes it from the cache. This blocks for as long as a compiler takes.
    ///
    /// # Errors
    ///
    /// Why the bytes are no program that can run, or why they could not be compiled now, in words that name no host path.
    pub(crate) fn prepare(&self, bytes: &[u8], counts_fuel: bool) -> Result<Program, NotCompiled> {
        let digest = source::digest(bytes);
        let room = self.rooms.room(counts_fuel).map_err(|error| NotCompiled::System(error.to_string()))?;
        let component = match self.code(room, bytes, counts_fuel, &digest)? {
            Code::Component(component) => component,
            Code::Module(module) => {
                let pre = preview1::linked(&room.engine, &module).map_err(NotCompiled::Program)?;
                return Ok(Program { kind: Kind::Module(pre), counts_fuel, digest, asks_provided: false });
            }
        };
        let exports = Exports::of(&component);
        let is_plain = typed::is_plain(&room.engine, &component);
        let mut linker = room.linker.clone();
        let unlinked = |error: wasmtime::Error| NotCompiled::System(format!("{error:#}"));
        let asks_provided = imports::add(&mut linker, &room.engine, &component).map_err(unlinked)?;
        if exports.is_some() || is_plain {
            tool_imports::add_to_linker(&mut linker).map_err(unlinked)?;
        }
        let pre = linked(room, &linker, &component).map_err(NotCompiled::Program)?;
        let kind = match (exports, CommandPre::new(pre.clone())) {
            (Some(exports), _) => Kind::Rich(Box::new(Linked { pre, exports })),
            (None, Ok(pre)) => Kind::Command { pre, check: check::export(&component) },
            (None, Err(_)) if is_plain => Kind::Plain { pre, check: check::export(&component) },
            (None, Err(_)) => return Err(NotCompiled::Program(no_command(room, &component))),
        };
        Ok(Program { kind, counts_fuel, digest, asks_provided })
    }

    /// The compiled code of a program, of the kind that its bytes are.
    fn code(&self, room: &Room, bytes: &[u8], counts_fuel: bool, digest: &str) -> Result<Code, NotCompiled> {
        let form = Form::of(bytes);
        if let Some(known) = self.cache.as_ref().and_then(|cache| cache.get(&room.engine, digest, form)) {
            return Ok(known);
        }
        preflight::check(bytes, &preflight::Limits::default())
            .map_err(|error| NotCompiled::Program(error.to_string()))?;
        let code = match &self.compiler {
            None => compiler::compiled(&room.engine, bytes).map_err(NotCompiled::Program)?,
            Some(compiler) => compiler::code(compiler.compile(&Job { program: bytes.into(), counts_fuel })?)?,
        };
        let loaded = cache::load(&room.engine, &code, form).map_err(|error| {
            let why = format!("the compiled program cannot be loaded: {error:#}");
            // What a slot of the sandbox has no room for has none anywhere.
            if why.contains("exceeds the configured maximum") {
                NotCompiled::Program(why)
            } else {
                NotCompiled::System(why)
            }
        })?;
        if let Some(cache) = &self.cache {
            cache.put(&room.engine, digest, form, &code);
        }
        Ok(loaded)
    }

    /// The same of a program that has to be a component.
    fn component(&self, room: &Room, bytes: &[u8], counts_fuel: bool, digest: &str) -> Result<Component, NotCompiled> {
        match self.code(room, bytes, counts_fuel, digest)? {
            Code::Component(component) => Ok(component),
            Code::Module(_) => Err(NotCompiled::Program("a core module, where a component is wanted".to_owned())),
        }
    }

    /// Runs a command once, in a store of its own. Dropping the future stops the guest.
    pub(crate) async fn run(&self, program: &Program, call: Invocation<'_>, usage: &Arc<Usage>) -> Finished {
        let stdout = Capped::new(OverCap::Stdout, call.limits.stdout, usage);
        let stderr = Capped::new(OverCap::Stderr, call.limits.stderr, usage);
        let exit = match self.inside(&call, (&stdout, &stderr), None, usage) {
            Ok(inside) => self.execute(program, inside, call.limits, usage).await,
            Err(error) => Err(error),
        };
        Finished { exit, stdout: stdout.take(), stderr: stderr.take() }
    }

    /// What the store of a granted call is made with. Notes go where its standard error goes.
    fn inside(
        &self,
        call: &Invocation<'_>,
        (stdout, stderr): (&Capped, &Capped),
        services: Option<Arc<dyn Services>>,
        usage: &Arc<Usage>,
    ) -> Result<Inside, ToolError> {
        Ok(Inside {
            wasi: context(call, stdout, stderr)?,
            allowance: Allowance::new(call.limits, usage, &self.open_files, Fence::new(call.grant)),
            way: self.way(call, usage),
            provided: call.provided.clone(),
            notes: Some(stderr.clone()),
            services,
        })
    }

    /// Where the requests of a call go. A tool without a network costs nothing here.
    fn way(&self, call: &Invocation<'_>, usage: &Arc<Usage>) -> Way {
        let network = call.grant.network();
        if network.is_empty() {
            return Way::Closed(network.prospect());
        }
        let (client, grant, usage) = (self.client.clone(), network.clone(), usage.clone());
        let credentials = call.credentials.cloned();
        Way::Open(Arc::new(Gate { client, grant, credentials, limits: *call.limits, usage }))
    }

    async fn execute(
        &self,
        program: &Program,
        inside: Inside,
        limits: &Limits,
        usage: &Arc<Usage>,
    ) -> Result<i32, ToolError> {
        let ended = self.within(program.counts_fuel, inside, limits, usage, async |store| match &program.kind {
            Kind::Command { pre, .. } => {
                let command = pre.instantiate_async(&mut *store).await?;
                Ok(Some(command.wasi_cli_run().call_run(store).await?.map_or(1, |()| 0)))
            }
            Kind::Module(pre) => preview1::run(pre, store).await.map(|()| Some(0)),
            Kind::Rich(_) | Kind::Plain { .. } => Ok(None),
        });
        let exit = match ended.await? {
            Ok(Some(code)) => Ok(code),
            Ok(None) => Err(ToolError::new(
                Outcome::BadComponent,
                "the program is no command: it does not export `wasi:cli/run`",
            )),
            Err(error) => trap::classify(&error, usage, limits),
        };
        trap::over_quota(exit, |code| *code == 0, usage, limits)
    }

    /// Does something in a store of its own, within the limits of a call.
    async fn within<T>(
        &self,
        counts_fuel: bool,
        inside: Inside,
        limits: &Limits,
        usage: &Arc<Usage>,
        act: impl AsyncFnOnce(&mut Store<Host>) -> wasmtime::Result<T>,
    ) -> Result<wasmtime::Result<T>, ToolError> {
        let room = self.rooms.room(counts_fuel).map_err(|error| ToolError::new(Outcome::Trap, error.to_string()))?;
        let _ticking = room.tick();
        let deadline = trap::deadline(limits);
        let mut store = store(room, inside, limits, usage, deadline);
        // The epoch stops a guest that computes; the time-out one that waits in a host call.
        let acting = Metered { inner: Box::pin(act(&mut store)), usage, deadline };
        let ended = tokio::time::timeout_at(deadline.into(), acting).await;
        if let Some(given) = limits.fuel {
            usage.fuel.fetch_add(given.saturating_sub(store.get_fuel().unwrap_or_default()), Relaxed);
        }
        ended.ok().flatten().ok_or_else(trap::timed_out)
    }
}

/// The WASI context of one call: its streams, its arguments, and what was granted.
fn context(call: &Invocation<'_>, stdout: &Capped, stderr: &Capped) -> Result<WasiCtx, ToolError> {
    let mut wasi = WasiCtx::builder();
    wasi.args(call.argv)
        .envs(call.grant.env())
        .initial_cwd("/")
        .max_random_size(MAX_RANDOM)
        .stdin(MemoryInputPipe::new(call.stdin.clone()))
        .stdout(stdout.clone())
        .stderr(stderr.clone());
    for folder in call.grant.folders() {
        let perms = match folder.access {
            Access::Read => FsPerms::ReadOnly,
            Access::Write => FsPerms::ReadWrite,
        };
        for name in &folder.guest {
            wasi.preopened_dir(folder.path(), name, perms).map_err(|_| {
                ToolError::new(Outcome::Denied, format!("the granted folder `{name}` can no longer be opened"))
            })?;
        }
    }
    Ok(wasi.build())
}

fn store(
    room: &Room,
    inside: Inside,
    limits: &Limits,
    usage: &Arc<Usage>,
    deadline: std::time::Instant,
) -> Store<Host> {
    let Inside { wasi, allowance, way, provided, notes, services } = inside;
    let mut table = ResourceTable::new();
    table.set_max_capacity(limits.handles);
    let memory = MemoryBudget { used: 0, cap: limits.memory, usage: usage.clone() };
    let requests = Requests { usage: usage.clone(), limits: *limits, way };
    let http = WasiHttpCtx::new();
    let preview1 = Preview1::default();
    let host = Host { wasi, table, memory, requests, http, deadline, allowance, preview1, provided, notes, services };
    let mut store = Store::new(&room.engine, host);
    store.limiter(|host| &mut host.memory);
    store.set_hostcall_fuel(limits.host_call);
    store.set_max_component_handles(limits.handles);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|context| {
        if std::time::Instant::now() >= context.data().deadline {
            Err(wasmtime::Error::from(DeadlinePassed))
        } else {
            // This yield, unlike the engine's own, lets the scheduler look at its timers and sockets before the guest goes
            // on: where guests keep every thread busy, those of the other calls would be seen to some 60 turns later.
            Ok(UpdateDeadline::YieldCustom(1, Box::pin(tokio::task::yield_now())))
        }
    });
    if let Some(fuel) = limits.fuel {
        // An engine that counts no fuel refuses this, and then has no program that asked for it.
        let _ = store.set_fuel(fuel);
    }
    store
}

/// Links a component with what it may import.
fn linked(room: &Room, linker: &Linker<Host>, component: &Component) -> Result<InstancePre<Host>, String> {
    linker.instantiate_pre(component).map_err(|error| {
        let imports = component.component_type();
        let asks = Exports::of(component).is_some() || typed::is_plain(&room.engine, component);
        let unknown: Vec<_> = imports
            .imports(&room.engine)
            .map(|(name, _)| name)
            .filter(|name| interfaces::find_import(name).is_none_or(|known| known.link == Link::Tools && !asks))
            .map(|name| format!("`{name}`"))
            .collect();
        match unknown.is_empty() {
            true => format!("{error:#}"),
            false => format!("it imports {}, which no tool is given; build it without", unknown.join(", ")),
        }
    })
}

/// Why a component can be called in no way.
fn no_command(room: &Room, component: &Component) -> String {
    let component = component.component_type();
    let exports: Vec<_> = component.exports(&room.engine).map(|(name, _)| format!("`{name}`")).collect();
    let exports = if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") };
    format!(
        "no tool: it exports {exports}; a tool exports functions of its own, a command `wasi:cli/run`, a rich tool `{}`",
        bindings::CALL
    )
}
